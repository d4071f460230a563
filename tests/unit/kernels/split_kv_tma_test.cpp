// Plans of the split_kv kernels: how heads are cut and meet again, on this and other devices, with no GPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/variant.h"
#include "cuda/detail/split_plan.h"

namespace fdbench {
namespace {

using split::Merge;

constexpr split::Kernel kTma{.name = "split_kv_tma", .lowest_cc = 90, .clusters = true, .max_stages = 8};
constexpr split::Kernel kCpAsync{.name = "split_kv_cp_async", .lowest_cc = 80, .max_stages = 2};

DeviceInfo device(int cc, int sms, std::int64_t smem_per_sm, std::int64_t smem_per_block) {
  DeviceInfo info;
  info.kind = BackendKind::cuda;
  info.cc = cc;
  info.sms = sms;
  info.smem_per_sm = smem_per_sm;
  info.smem_per_block = smem_per_block;
  info.regs_per_sm = 65536;
  info.threads_per_sm = cc == 120 ? 1536 : 2048;
  info.ctas_per_sm = cc == 120 ? 24 : 32;
  info.cooperative_launch = true;
  return info;
}
DeviceInfo h200() {
  DeviceInfo info = device(90, 132, 228 * 1024, 227 * 1024);
  info.bandwidth_datasheet = 4.8e12;
  return info;
}
DeviceInfo blackwell(int sms) {
  return device(120, sms, 100 * 1024, 99 * 1024);
}

Problem problem(std::int64_t heads, std::int64_t kv_heads, std::int64_t seq, std::int64_t dim = 128) {
  Problem made;
  made.seq = seq;
  made.heads = heads;
  made.kv_heads = kv_heads;
  made.dim = dim;
  return made;
}

TuningPoint point(std::optional<std::int64_t> splits, std::optional<Merge> merge = {},
                  std::optional<std::int64_t> stages = {}) {
  TuningPoint tuning;
  if (splits) tuning.set("splits", *splits);
  if (merge) tuning.set("merge", static_cast<std::int64_t>(*merge));
  if (stages) tuning.set("stages", *stages);
  return tuning;
}

LaunchPlan planned(const PlanResult& result) {
  if (const auto* no = std::get_if<Unsupported>(&result)) {
    ADD_FAILURE() << no->reason;
    return {};
  }
  return std::get<LaunchPlan>(result);
}

std::string refused(const PlanResult& result) {
  if (const auto* no = std::get_if<Unsupported>(&result)) return no->reason;
  ADD_FAILURE() << "a plan where none was expected";
  return {};
}

void expect_says(const std::string& reason, const std::string& part) {
  EXPECT_NE(reason.find(part), std::string::npos) << reason;
}

struct Expected {
  std::int64_t heads, kv_heads, seq;
  const char* merge;
  std::int64_t splits;
  std::int64_t row_blocks = 1;
  std::int64_t dim = 128;
};

// Where the best cut measured on the H200 is the only one within a few per cent, the model must find it.
TEST(SplitKvTmaPlan, TakesTheCutThatWonOnTheH200) {
  for (const Expected& e : {Expected{32, 32, 128, "none", 1},
                            Expected{32, 32, 1024, "cluster", 2},
                            Expected{32, 32, 8192, "shared", 4},
                            Expected{32, 8, 1024, "cluster", 8},
                            Expected{32, 8, 8192, "cluster", 8},
                            Expected{64, 8, 131072, "cluster", 8},
                            Expected{28, 4, 131072, "shared", 32},
                            Expected{16, 2, 8192, "shared", 32},
                            Expected{8, 1, 131072, "shared", 64},
                            Expected{16, 1, 32768, "shared", 64},
                            Expected{16, 1, 512, "cluster", 8, 4},
                            Expected{16, 1, 8192, "shared", 32, 2},
                            Expected{64, 4, 2048, "cluster", 8, 2},
                            Expected{32, 1, 2048, "cluster", 16, 4},
                            Expected{16, 2, 2048, "cluster", 16, 2},
                            Expected{128, 8, 4096, "cluster", 8},
                            Expected{32, 8, 8192, "cluster", 8, 1, 64},
                            Expected{8, 1, 32768, "shared", 64, 1, 64},
                            Expected{16, 1, 32768, "shared", 64, 1, 64},
                            Expected{16, 2, 32768, "shared", 32, 1, 64},
                            Expected{64, 4, 8192, "cluster", 16, 1, 64}}) {
    const LaunchPlan plan =
        planned(split::plan(kTma, problem(e.heads, e.kv_heads, e.seq, e.dim), h200(), {}));
    SCOPED_TRACE(std::to_string(e.heads) + "/" + std::to_string(e.kv_heads) + ", " + std::to_string(e.seq) +
                 ", dim " + std::to_string(e.dim));
    EXPECT_EQ(plan.merge, e.merge);
    EXPECT_EQ(plan.splits, e.splits);
    EXPECT_EQ(plan.rule, "cost_model");
    EXPECT_EQ(plan.cooperative, plan.merge == "shared");
    EXPECT_EQ(plan.cluster.x, plan.merge == "cluster" ? e.splits : 1);
    EXPECT_EQ(plan.grid, (Extent3{e.splits, e.kv_heads, e.row_blocks}));
  }
}

TEST(SplitKvTmaPlan, TakesTwoStagesOnlyForWarpsWithThreeUnitsAndAMultiprocessorOfTheirOwn) {
  EXPECT_EQ(planned(split::plan(kTma, problem(32, 8, 8192), h200(), {})).stages, 2);
  EXPECT_EQ(planned(split::plan(kTma, problem(32, 8, 2048), h200(), {})).stages, 1);
  EXPECT_EQ(planned(split::plan(kTma, problem(32, 32, 65536), h200(), point(8, Merge::last_cta))).stages, 1);
  EXPECT_EQ(planned(split::plan(kTma, problem(32, 32, 8192), h200(), point(4, Merge::last_cta))).stages, 2);
  EXPECT_EQ(planned(split::plan(kTma, problem(32, 32, 32768), h200(), point(4, Merge::last_cta))).stages, 1);
  EXPECT_EQ(planned(split::plan(kTma, problem(32, 8, 2048), h200(), point({}, {}, 3))).stages, 3);
}

// Worked by hand: 4 rows of 32 quads over 8 owners are 16 quads each, by 2 lanes with 4 parts each.
TEST(SplitKvTmaPlan, DealsOutTheOutput) {
  const split::Pieces made = split::pieces(8, 4, 128, {8, Merge::cluster, 1});
  EXPECT_EQ(made.rows, 4);
  EXPECT_EQ(made.meeting.parts, 8);
  EXPECT_EQ(made.meeting.piece_log2, 4);
  EXPECT_EQ(made.meeting.lanes_log2, 1);
  EXPECT_EQ(made.inbox_slots, 128);
  EXPECT_EQ(made.inbox_rows, 8);
  EXPECT_EQ(made.slots, 0);

  const split::Pieces one_owner = split::pieces(8, 7, 128, {16, Merge::last_cta, 1});
  EXPECT_EQ(one_owner.meeting.piece_log2, 8);  // 7 rows of 32 quads, rounded up
  EXPECT_EQ(one_owner.slots, 8 * 16 * 256);
}

// No output is without an owner, and no slot without its bytes, whatever is asked for.
TEST(SplitKvTmaPlan, EveryQuadHasAnOwnerAndEverySlotItsBytes) {
  for (const Merge merge : {Merge::last_cta, Merge::shared, Merge::cluster}) {
    for (const std::int64_t group : {1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 17, 64}) {
      for (const std::int64_t dim : {64, 128}) {
        for (const std::int64_t splits : {2, 3, 4, 8, 16, 17, 33, 64, 129}) {
          for (std::int64_t row_blocks = split::least_row_blocks(group);
               row_blocks <= split::most_row_blocks(group); ++row_blocks) {
            const split::Pieces made = split::pieces(2, group, dim, {splits, merge, row_blocks});
            const std::int64_t owners = merge == Merge::last_cta ? 1 : splits;
            const std::int64_t piece = std::int64_t{1} << made.meeting.piece_log2;
            EXPECT_GE(owners * piece, made.rows * dim / 4);
            EXPECT_GE(row_blocks * made.rows, group);
            EXPECT_LE(made.rows, split::kMaxRows);
            EXPECT_LE(made.meeting.lanes_log2, 5);
            if (merge == Merge::cluster) {
              EXPECT_EQ(made.inbox_slots, splits * piece);
            } else {
              EXPECT_EQ(made.slots, 2 * row_blocks * owners * splits * piece);
            }
          }
        }
      }
    }
  }
}

// Each part brings each quad to a slot of its own, within what the plan asks for; and the way that a thread
// takes from its first quad to the ones kThreads further on ends at the same slots.
TEST(SplitKvTmaPlan, EveryPartBringsEveryQuadToASlotOfItsOwn) {
  for (const Merge merge : {Merge::last_cta, Merge::shared}) {
    for (const std::int64_t group : {1, 2, 3, 7, 8, 9, 12, 16}) {
      for (const std::int64_t dim : {64, 128}) {
        for (const std::int64_t splits : {2, 3, 4, 7, 8, 16, 33, 64, 128}) {
          const split::Pieces made = split::pieces(1, group, dim, {splits, merge, 1});
          const split::Meeting& meeting = made.meeting;
          std::vector<bool> taken(static_cast<std::size_t>(made.slots));
          const auto quads = static_cast<std::int32_t>(group * dim / 4);
          for (std::int32_t part = 0; part < splits; ++part) {
            for (std::int32_t quad = 0; quad < quads; ++quad) {
              const std::int32_t slot = meeting.slot(quad, part);
              ASSERT_LT(slot, made.slots);
              ASSERT_FALSE(taken[static_cast<std::size_t>(slot)]);
              taken[static_cast<std::size_t>(slot)] = true;
              const std::int32_t first = quad % split::kThreads;
              ASSERT_EQ(slot, meeting.slot(first, part) + meeting.slot(quad - first, 0));
            }
          }
        }
      }
    }
  }
}

TEST(SplitKvTmaPlan, MergeSaysWhatMemoryItNeeds) {
  const Problem shape = problem(32, 8, 8192);
  const LaunchPlan none = planned(split::plan(kTma, shape, h200(), point(1)));
  EXPECT_EQ(none.scratch_bytes, 0);
  EXPECT_EQ(none.zeroed_bytes, 0);
  const LaunchPlan last = planned(split::plan(kTma, shape, h200(), point(16, Merge::last_cta)));
  EXPECT_EQ(last.scratch_bytes, 8 * 16 * 128 * (16 + 8));
  EXPECT_EQ(last.zeroed_bytes, 8 * 4);
  const LaunchPlan shared = planned(split::plan(kTma, shape, h200(), point(16, Merge::shared)));
  EXPECT_EQ(shared.scratch_bytes, 0);
  EXPECT_EQ(shared.zeroed_bytes, 8 * 16 * 16 * 8 * (16 + 8));
  const LaunchPlan cluster = planned(split::plan(kTma, shape, h200(), point(8, Merge::cluster)));
  EXPECT_EQ(cluster.scratch_bytes + cluster.zeroed_bytes, 0);
}

// A wait is only for CTAs that are there: more than the device holds is refused, with both numbers.
TEST(SplitKvTmaPlan, SharedNeedsEveryCtaResident) {
  const std::string reason =
      refused(split::plan(kTma, problem(32, 32, 131072), h200(), point(64, Merge::shared)));
  expect_says(reason, "2048");
  expect_says(reason, "resident");
  DeviceInfo old = h200();
  old.cooperative_launch = false;
  expect_says(refused(split::plan(kTma, problem(8, 1, 8192), old, point(64, Merge::shared))), "cooperative");
  EXPECT_NE(planned(split::plan(kTma, problem(8, 1, 8192), old, {})).merge, "shared");
}

TEST(SplitKvTmaPlan, EveryNumberOfSplitsHasAMerge) {
  for (const std::int64_t splits : {1, 2, 3, 16, 17, 32, 64, 129, 256, 4096}) {
    const LaunchPlan plan = planned(split::plan(kTma, problem(16, 8, 4096), h200(), point(splits)));
    EXPECT_EQ(plan.splits, splits);
    EXPECT_EQ(plan.rule, "");
  }
}

TEST(SplitKvTmaPlan, SaysWhatIsWrongWithATuningPoint) {
  const Problem shape = problem(16, 8, 4096);
  expect_says(refused(split::plan(kTma, shape, h200(), point(0))), "1 to 4096 splits");
  expect_says(refused(split::plan(kTma, shape, h200(), point(5000))), "5000");
  expect_says(refused(split::plan(kTma, shape, h200(), point(2, Merge::none))), "one split");
  expect_says(refused(split::plan(kTma, shape, h200(), point(1, Merge::last_cta))), "1 splits");
  expect_says(refused(split::plan(kTma, shape, h200(), point(12, Merge::cluster))), "powers of two up to 16");
  expect_says(refused(split::plan(kTma, shape, blackwell(84), point(16, Merge::cluster))),
              "powers of two up to 8");
  expect_says(refused(split::plan(kCpAsync, shape, h200(), point(4, Merge::cluster))), "0 to 2 as merge");
  expect_says(refused(split::plan(kCpAsync, shape, h200(), point(4, {}, 3))), "1 to 2 stages");
}

TEST(SplitKvTmaPlan, SaysWhatIsNotSupported) {
  Problem shape = problem(16, 8, 4096);
  EXPECT_FALSE(split::unsupported(kTma, shape, h200()).has_value());
  expect_says(split::unsupported(kTma, shape, device(89, 128, 100 * 1024, 99 * 1024)).value_or(""), "8.9");
  EXPECT_FALSE(split::unsupported(kCpAsync, shape, device(89, 128, 100 * 1024, 99 * 1024)).has_value());
  shape.dim = 96;
  expect_says(split::unsupported(kTma, shape, h200()).value_or(""), "96");
  shape.dim = 64;
  EXPECT_FALSE(split::unsupported(kTma, shape, h200()).has_value());
  shape.dtype = Dtype::fp16;
  expect_says(split::unsupported(kTma, shape, h200()).value_or(""), "fp16");
  expect_says(split::unsupported(kTma, problem(1, 1, std::int64_t{1} << 31), h200()).value_or(""), "32 bits");
  expect_says(split::unsupported(kTma, problem(65536, 65536, 1), h200()).value_or(""), "65536");
}

TEST(SplitKvTmaPlan, ADeviceTooSmallIsToldTheBytes) {
  const std::string reason =
      refused(split::plan(kTma, problem(32, 32, 8192), device(120, 26, 48 * 1024, 48 * 1024), {}));
  expect_says(reason, std::to_string(split::dynamic_smem(8, 1, 0, 0)));
  expect_says(reason, std::to_string(47 * 1024));
  DeviceInfo none = h200();
  none.sms = 0;
  expect_says(refused(split::plan(kTma, problem(32, 32, 8192), none, {})), "multiprocessors");
}

// Every size of sm_120: 99 KB a CTA, 26 to 170 multiprocessors; the grid is neither empty nor more than the
// machine and a cluster's slack.
TEST(SplitKvTmaPlan, FitsEveryBlackwell) {
  for (const int sms : {26, 30, 36, 48, 70, 84, 170}) {
    for (const std::int64_t kv_heads : {1, 2, 4, 8, 32}) {
      for (const std::int64_t seq : {1, 128, 8192, 131072}) {
        for (const split::Kernel& kernel : {kTma, kCpAsync}) {
          const LaunchPlan plan =
              planned(split::plan(kernel, problem(32, kv_heads, seq), blackwell(sms), {}));
          EXPECT_LE(plan.dynamic_smem, 99 * 1024);
          EXPECT_EQ(plan.stages, 1);
          EXPECT_GE(plan.grid.total(), 1);
          EXPECT_LE(plan.cluster.x, 8);
          if (plan.merge == "shared") {
            EXPECT_LE(plan.grid.total(), sms);
          }
        }
      }
    }
  }
}

TEST(SplitKvTmaPlan, ASingleKvHeadIsSplit) {
  for (const std::int64_t seq : {512, 4096}) {
    EXPECT_GT(planned(split::plan(kTma, problem(64, 1, seq), h200(), {})).splits, 1);
  }
}

TEST(SplitKvTmaPlan, GroupsBeyondSixteenTakeSeveralBlocks) {
  EXPECT_EQ(planned(split::plan(kTma, problem(64, 1, 131072), h200(), {})).grid.z, 4);
  EXPECT_EQ(planned(split::plan(kTma, problem(17, 1, 131072), h200(), {})).grid.z, 2);
  EXPECT_EQ(planned(split::plan(kTma, problem(16, 1, 131072), h200(), {})).grid.z, 1);
}

// Blocks of 4 to 16 query heads; as few as possible where splits are asked for and row blocks are not.
TEST(SplitKvTmaPlan, RowBlocksShareOutAGroup) {
  const auto with = [](std::int64_t row_blocks) {
    TuningPoint tuning = point(16, Merge::cluster);
    tuning.set("row_blocks", row_blocks);
    return tuning;
  };
  const Problem shape = problem(16, 1, 2048);
  for (const std::int64_t row_blocks : {1, 2, 3, 4}) {
    const LaunchPlan plan = planned(split::plan(kTma, shape, h200(), with(row_blocks)));
    EXPECT_EQ(plan.grid, (Extent3{16, 1, row_blocks}));
  }
  EXPECT_EQ(planned(split::plan(kTma, shape, h200(), point(16, Merge::cluster))).grid.z, 1);
  EXPECT_EQ(planned(split::plan(kTma, shape, h200(), point(16))).grid.z, 1);
  EXPECT_EQ(planned(split::plan(kTma, shape, h200(), {})).grid.z, 4);
  EXPECT_EQ(planned(split::plan(kTma, problem(33, 1, 2048), h200(), with(8))).grid.z, 7) << "none is empty";
  expect_says(refused(split::plan(kTma, shape, h200(), with(5))), "takes 1 to 4 row blocks here, not 5");
  expect_says(refused(split::plan(kTma, problem(4, 1, 2048), h200(), with(2))), "1 to 1 row blocks");
  expect_says(refused(split::plan(kTma, problem(40, 1, 2048), h200(), with(2))), "3 to 10 row blocks");
}

// A tile is 8 KB, so that dim 64 takes twice the tokens: chunks and tiles of whole units either way.
TEST(SplitKvTmaPlan, UnitsAreOfEqualBytes) {
  EXPECT_EQ(split::unit_tokens(128), 32);
  EXPECT_EQ(split::unit_tokens(64), 64);
  for (const std::int64_t dim : {64, 128}) {
    const LaunchPlan plan =
        planned(split::plan(kTma, problem(8, 1, 5000, dim), h200(), point(7, Merge::last_cta)));
    EXPECT_EQ(plan.tile, 4 * split::unit_tokens(dim));
    EXPECT_EQ(plan.chunk % split::unit_tokens(dim), 0);
    EXPECT_GE(plan.chunk * 7, 5000);
    EXPECT_LT(plan.chunk * 7, 5000 + 7 * split::unit_tokens(dim));
    EXPECT_EQ(plan.block.x, 128);
  }
}

// In a cluster each part brings each quad to a place of its own in its owner's inbox, and as many bytes as
// the owner's barrier awaits; all inside the CTA's shared memory, where a warp's result fits its stages, too.
TEST(SplitKvTmaPlan, AClusterBringsEachOwnerTheBytesThatItAwaits) {
  for (const std::int64_t dim : {64, 128}) {
    const auto row_quads = static_cast<std::int32_t>(dim / 4);
    for (std::int64_t group = 1; group <= split::kMaxRows; ++group) {
      for (const std::int64_t splits : {2, 4, 8, 16}) {
        const split::Pieces made = split::pieces(1, group, dim, {splits, Merge::cluster, 1});
        const split::Meeting& meeting = made.meeting;
        const std::int32_t piece = 1 << meeting.piece_log2;
        const std::int32_t piece_rows = std::max(1, piece / row_quads);
        // The last block may have fewer rows than the plan's.
        for (std::int32_t rows = 1; rows <= group; ++rows) {
          std::vector<std::int32_t> quads_of(static_cast<std::size_t>(splits));
          std::vector<std::int32_t> rows_of(static_cast<std::size_t>(splits));
          for (std::int32_t quad = 0; quad < rows * row_quads; ++quad) {
            const auto owner = static_cast<std::size_t>(quad >> meeting.piece_log2);
            ASSERT_LT(owner, quads_of.size());
            const std::int32_t local = quad & (piece - 1);
            ASSERT_LT(local / row_quads, piece_rows);
            ++quads_of[owner];
            if (local % row_quads == 0) ++rows_of[owner];
          }
          for (std::size_t owner = 0; owner < quads_of.size(); ++owner) {
            const std::int32_t first = static_cast<std::int32_t>(owner) * piece;
            const std::int32_t mine = std::clamp(rows * row_quads - first, 0, piece);
            EXPECT_EQ(quads_of[owner], mine);
            EXPECT_EQ(rows_of[owner], (mine + row_quads - 1) / row_quads);
          }
        }
        EXPECT_EQ(made.inbox_slots, splits * piece);
        EXPECT_EQ(made.inbox_rows, splits * piece_rows);
      }
    }
  }
}

// What declares a kernel's shared memory says no less than the largest plan takes.
TEST(SplitKvTmaPlan, NoPlanTakesMoreSharedMemoryThanIsDeclared) {
  for (const std::int64_t stages : {1, 2}) {
    std::int64_t most = 0;
    for (const std::int64_t dim : {64, 128}) {
      for (const std::int64_t heads : {1, 8, 16}) {
        const LaunchPlan plan = planned(
            split::plan(kCpAsync, problem(heads, 1, 65536, dim), h200(), point(8, Merge::last_cta, stages)));
        most = std::max(most, plan.dynamic_smem);
      }
    }
    EXPECT_EQ(most, split::largest_smem(stages));
  }
}

TEST(SplitKvTmaPlan, NothingOverflows) {
  const LaunchPlan plan = planned(split::plan(kTma, problem(64, 64, std::int64_t{1} << 26), h200(), {}));
  EXPECT_GE(plan.splits, 1);
  EXPECT_GE(plan.chunk * plan.splits, std::int64_t{1} << 26);
  const Problem most = problem(65535, 65535, split::kMaxSeq);
  EXPECT_GT(split::predicted_us(most, h200(), {4096, Merge::last_cta}, 1), 0.0);
  EXPECT_LT(split::predicted_us(most, h200(), {4096, Merge::last_cta}, 1),
            std::numeric_limits<double>::infinity());
}

TEST(SplitKvTmaPlan, NoTokensNeedNoMerge) {
  const LaunchPlan plan = planned(split::plan(kTma, problem(32, 8, 0), h200(), {}));
  EXPECT_EQ(plan.splits, 1);
  EXPECT_EQ(plan.merge, "none");
}

TEST(SplitKvTmaPlan, NamesOfMergesReadBack) {
  for (const Merge merge : {Merge::none, Merge::last_cta, Merge::shared, Merge::cluster}) {
    EXPECT_EQ(split::parse_merge(split::to_string(merge)), merge);
  }
  EXPECT_FALSE(split::parse_merge("kernel").has_value());
}

}  // namespace
}  // namespace fdbench
