#include "rules/split_rule_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

namespace fdbench::rules {
namespace {

// Each rule with the argument it takes by itself, or a few.
std::vector<NamedSplitRule> every_rule() {
  std::vector<NamedSplitRule> rules;
  for (const SplitRule& rule : split_rules()) {
    if (rule.argument.empty()) {
      rules.push_back(find_split_rule(rule.name));
    } else {
      for (const char* n : {":1", ":2", ":7", ":132", ":65536"}) {
        rules.push_back(find_split_rule(std::string(rule.name) + n));
      }
    }
  }
  return rules;
}

TEST(SplitRuleTable, ListsEveryRuleOnceWithItsSource) {
  std::set<std::string> names;
  for (const SplitRule& rule : split_rules()) {
    EXPECT_TRUE(names.emplace(rule.name).second) << rule.name;
    EXPECT_FALSE(rule.summary.empty()) << rule.name;
    EXPECT_FALSE(rule.source.empty()) << rule.name;
    EXPECT_NE(rule.answer, nullptr) << rule.name;
  }
  EXPECT_EQ(names,
            (std::set<std::string>{"fa2", "fa3", "fixed", "flashinfer", "llama_cpp", "seed", "seed_fine",
                                   "sm_multiple", "trtllm", "vllm_v1", "vllm_v2", "xqa"}));
}

TEST(FindSplitRule, ReadsNameAndArgument) {
  EXPECT_EQ(find_split_rule("seed").name(), "seed");
  EXPECT_EQ(find_split_rule("sm_multiple:2").name(), "sm_multiple:2");
  EXPECT_EQ(find_split_rule("sm_multiple").name(), "sm_multiple:1");
  EXPECT_EQ(find_split_rule("fixed:16").argument, 16);
}

TEST(FindSplitRule, SaysWhatIsWrong) {
  EXPECT_EQ(
      find_split_rule("fa4").error,
      "'fa4' is no split rule; there are fixed:N, seed, seed_fine, sm_multiple:N, fa2, fa3, flashinfer, "
      "llama_cpp, trtllm, vllm_v1, vllm_v2, xqa");
  EXPECT_EQ(find_split_rule("seed:3").error, "seed takes no argument, and was given '3'");
  EXPECT_EQ(find_split_rule("fixed").error, "fixed needs a number: fixed:N, N = chunks a head");
  for (const char* bad : {"fixed:", "fixed:0", "fixed:-1", "fixed:x", "fixed:3x", "fixed: 3", "fixed:+3",
                          "fixed:99999999999999999999", "sm_multiple:1.5", "fixed:1:2"}) {
    const NamedSplitRule found = find_split_rule(bad);
    EXPECT_FALSE(found.ok()) << bad;
    EXPECT_NE(found.error.find("takes a whole number"), std::string::npos) << bad;
  }
  EXPECT_FALSE(find_split_rule("").ok());
  EXPECT_EQ(find_split_rule("fa4")({}).error, find_split_rule("fa4").error);
  EXPECT_EQ(NamedSplitRule{}({}).error, "no split rule was named");
}

// Every answer covers the sequence with chunks of which none is empty, for any machine and shape; what has no
// answer has a reason.
TEST(EveryRule, CoversTheSequenceAndLeavesNoSplitEmpty) {
  std::int64_t answers = 0;
  for (const NamedSplitRule& rule : every_rule()) {
    ASSERT_TRUE(rule.ok());
    for (const std::int64_t seq :
         {std::int64_t{0}, std::int64_t{1}, std::int64_t{2}, std::int64_t{127}, std::int64_t{255},
          std::int64_t{256}, std::int64_t{257}, std::int64_t{1000}, std::int64_t{8192}, std::int64_t{8193},
          std::int64_t{16385}, std::int64_t{131073}, std::int64_t{524288}, std::int64_t{1} << 26,
          std::int64_t{1} << 31, std::int64_t{1} << 40}) {
      for (const auto& [heads, kv_heads] :
           {std::pair{1, 1}, {8, 1}, {32, 8}, {32, 32}, {40, 8}, {64, 8}, {64, 1}}) {
        for (const std::int64_t sms : {1, 4, 26, 132, 188}) {
          for (const std::int64_t occupancy : {-1, 0, 1, 3, 16}) {
            SplitInput input;
            input.seq = seq;
            input.heads = heads;
            input.kv_heads = kv_heads;
            input.dim = 128;
            input.num_sms = sms;
            if (occupancy >= 0) input.occupancy = occupancy;
            input.smem_per_sm = 100 * 1024;
            input.smem_per_cta = 99 * 1024;
            input.threads_per_sm = 1536;
            input.ctas_per_sm = 24;
            const Split split = rule(input);
            if (!split.ok()) {
              EXPECT_EQ(split.splits, 0);
              EXPECT_EQ(split.chunk, 0);
              continue;
            }
            ++answers;
            const auto holds = [&](const Split& s) {
              return s.chunk >= 1 && s.splits >= 1 && s.splits * s.chunk >= seq &&
                     (s.splits == 1 || (s.splits - 1) * s.chunk < seq) && s.upstream_splits >= 1;
            };
            EXPECT_TRUE(holds(split))
                << rule.name() << " seq " << seq << " heads " << heads << "/" << kv_heads << " sms " << sms
                << ": " << split.splits << " x " << split.chunk;
            const Split tiled = round_to_tile(split, seq, 64);
            EXPECT_TRUE(holds(tiled) && tiled.chunk % 64 == 0) << rule.name() << " seq " << seq;
            EXPECT_LE(tiled.splits, split.splits);
          }
        }
      }
    }
  }
  EXPECT_GT(answers, 30000);
}

TEST(EveryRule, DoesNotOverflowAtHeads64AndSeqTwoToThe26) {
  SplitInput input;
  input.seq = std::int64_t{1} << 26;
  input.heads = 64;
  input.kv_heads = 64;
  input.dim = 128;
  input.num_sms = 132;
  input.occupancy = 2;
  const auto splits = [&input](const char* name) { return find_split_rule(name)(input).splits; };
  EXPECT_EQ(splits("seed"), 32768);
  EXPECT_EQ(splits("seed_fine"), 32768);
  EXPECT_EQ(splits("sm_multiple:4"), 8);  // 528 / 64
  EXPECT_EQ(splits("fixed:100"), 100);
  EXPECT_EQ(splits("flashinfer"), 4);  // 264 / 64
  EXPECT_EQ(splits("fa2"), 4);         // 64 of 264 slots: 256 fill 0.970
  EXPECT_EQ(splits("fa3"), 2);         // 64 of 132 slots: 128 fill 0.970
  EXPECT_EQ(splits("xqa"), 2);         // 132 / 64
  EXPECT_EQ(splits("trtllm"), 16);     // sqrt(8 x 524288) = 2048, thinned 124.1 times
  EXPECT_EQ(splits("vllm_v2"), 131072);
  EXPECT_EQ(splits("llama_cpp"), 4);  // 96 %
  EXPECT_FALSE(find_split_rule("vllm_v1")(input).ok());
}

TEST(EveryRule, RefusesBadExtentsAndNamesItselfOrTheExtent) {
  for (const NamedSplitRule& rule : every_rule()) {
    SplitInput input;
    input.seq = 8192;
    input.heads = 33;
    input.kv_heads = 8;
    input.dim = 128;
    input.num_sms = 132;
    EXPECT_NE(rule(input).error.find("heads 33 is not a multiple of kv_heads 8"), std::string::npos)
        << rule.name();
    input.heads = 32;
    input.num_sms = 0;
    EXPECT_NE(rule(input).error.find("num_sms"), std::string::npos) << rule.name();
  }
}

}  // namespace
}  // namespace fdbench::rules
