#include "rules/field_split_rules.h"

#include <gtest/gtest.h>

#include "rules/fa3_tiles.h"
#include "rules/occupancy.h"

namespace fdbench::rules {
namespace {

SplitInput on_sm90(std::int64_t seq, std::int64_t heads, std::int64_t kv_heads) {
  SplitInput input;
  input.seq = seq;
  input.heads = heads;
  input.kv_heads = kv_heads;
  input.dim = 128;
  input.num_sms = 132;
  const SmLimits limits = sm_limits(90).value();
  input.smem_per_sm = limits.smem_per_sm;
  input.smem_per_cta = limits.smem_per_cta;
  input.threads_per_sm = limits.threads_per_sm;
  input.ctas_per_sm = limits.ctas_per_sm;
  input.cc = 90;
  return input;
}

Split split_of(std::int64_t splits, std::int64_t chunk) {
  return {.splits = splits, .chunk = chunk, .upstream_splits = splits};
}

TEST(FlashinferCta, ByHand) {
  // Ungrouped, dim 128: bdx 16, bdz 8, tile 8: 2*2*1*8*8*128*2 + 8*8.
  EXPECT_EQ(flashinfer_cta(1, 128, 2).threads, 128);
  EXPECT_EQ(flashinfer_cta(1, 128, 2).dynamic_smem, 65600);
  // Group 4: bdz 2, tile 1: 8192 + 64.
  EXPECT_EQ(flashinfer_cta(4, 128, 2).dynamic_smem, 8256);
  // Group 8: 512 threads, bdz 4: 32768 + 256.
  EXPECT_EQ(flashinfer_cta(8, 128, 2).threads, 512);
  EXPECT_EQ(flashinfer_cta(8, 128, 2).dynamic_smem, 33024);
  // Group 6, dim 256: bdx 32, 192 threads, bdz 1: 2*2*6*256*2 + 48. Group 3: bdz 128/48 = 2.
  EXPECT_EQ(flashinfer_cta(6, 256, 2).threads, 192);
  EXPECT_EQ(flashinfer_cta(6, 256, 2).dynamic_smem, 12336);
  EXPECT_EQ(flashinfer_cta(3, 128, 2).dynamic_smem, 2 * 2 * 3 * 2 * 128 * 2 + 48);
  EXPECT_EQ(flashinfer_cta(5, 128, 2).error, "flashinfer: heads a KV head must be 1, 2, 3, 4, 6 or 8, not 5");
  EXPECT_FALSE(flashinfer_cta(4, 96, 2).ok());
  EXPECT_FALSE(flashinfer_cta(4, 128, 1).ok());
}

TEST(FlashinferRule, ByHand) {
  // Ungrouped: 233472 / 66688 = 3 CTAs, mc = 3 * 132 / 32 = 12, 8192 / 12 = 682.7.
  EXPECT_EQ(flashinfer_rule(on_sm90(8192, 32, 32)), split_of(12, 683));
  // Group 4: 16 CTAs by threads, mc = 264: chunks at their least.
  EXPECT_EQ(flashinfer_rule(on_sm90(8192, 32, 8)), split_of(32, 256));
  EXPECT_EQ(flashinfer_rule(on_sm90(131072, 32, 8)), split_of(264, 497));
  EXPECT_EQ(flashinfer_rule(on_sm90(256, 32, 8)), split_of(1, 256));
  EXPECT_EQ(flashinfer_rule(on_sm90(257, 32, 8)), split_of(2, 256));
  // An occupancy that was measured is taken as it is, for any group.
  SplitInput measured = on_sm90(8192, 40, 8);
  EXPECT_FALSE(flashinfer_rule(measured).ok());
  measured.occupancy = 1;
  EXPECT_EQ(flashinfer_rule(measured), split_of(16, 512));
}

TEST(FlashinferRule, SaysWhyWhereItsOriginDividesByZero) {
  SplitInput small = on_sm90(8192, 32, 32);
  small.num_sms = 26;
  small.smem_per_sm = 100 * 1024;
  small.smem_per_cta = 48 * 1024;
  EXPECT_EQ(flashinfer_rule(small).error,
            "flashinfer: a CTA needs 65600 bytes of shared memory, and it can have at most 49152");
  small.occupancy = 0;
  EXPECT_EQ(flashinfer_rule(small).error,
            "flashinfer: a multiprocessor holds no CTA of its kernel (occupancy 0)");
  small.occupancy = 1;
  EXPECT_EQ(
      flashinfer_rule(small).error,
      "flashinfer: 26 multiprocessors of 1 CTAs hold fewer than one for each of 32 KV heads, so no number of "
      "chunks fits");
  small.seq = 256;
  EXPECT_EQ(flashinfer_rule(small), split_of(1, 256));  // nothing to divide
  SplitInput unknown = on_sm90(8192, 32, 32);
  unknown.smem_per_sm = 0;
  EXPECT_EQ(flashinfer_rule(unknown).error, "flashinfer: the device states no multiprocessor limits");
  SplitInput batched = on_sm90(8192, 32, 32);
  batched.batch = 2;
  EXPECT_FALSE(flashinfer_rule(batched).ok());
}

TEST(Fa2Rule, ByHand) {
  // See Fa2NumSplits.ByHand: 7 splits of 10 blocks; grouped, 32 of 2.
  EXPECT_EQ(fa2_rule(on_sm90(8192, 32, 32)), split_of(7, 1280));
  EXPECT_EQ(fa2_rule(on_sm90(8192, 32, 8)), split_of(32, 256));
  EXPECT_EQ(fa2_rule(on_sm90(100, 32, 8)), split_of(1, 128));
  // 512 heads over one KV head are 8 query blocks, like 8 heads of 64.
  EXPECT_EQ(fa2_rule(on_sm90(8192, 512, 1)), split_of(32, 256));
  SplitInput wide = on_sm90(8192, 32, 8);
  wide.dim = 256;  // 128 blocks of 64
  EXPECT_EQ(fa2_rule(wide).chunk % 64, 0);
  wide.dim = 64;  // 32 blocks of 256
  EXPECT_EQ(fa2_rule(wide), split_of(32, 256));
  wide.dim = 257;
  EXPECT_EQ(fa2_rule(wide).error, "fa2: dim must be at most 256, not 257");
}

TEST(Fa3Rule, CountsTheEmptySplitsApart) {
  // 47 blocks of 176 over 15 splits are 4 each: 12 have some, 3 have none.
  EXPECT_EQ(fa3_rule(on_sm90(8192, 32, 8)), (Split{.splits = 12, .chunk = 704, .upstream_splits = 15}));
  EXPECT_EQ(fa3_rule(on_sm90(512, 64, 1)), split_of(1, 528));  // three blocks: one CTA a head
  SplitInput cpu = on_sm90(8192, 32, 8);
  cpu.cc = 0;
  EXPECT_EQ(fa3_rule(cpu).splits, 12);
  cpu.cc = 89;  // 128 a block: 64
  EXPECT_EQ(fa3_rule(cpu).chunk % 128, 0);
  cpu.cc = 75;
  EXPECT_FALSE(fa3_rule(cpu).ok());
  SplitInput wide = on_sm90(8192, 32, 8);
  wide.element_bytes = 4;
  EXPECT_EQ(fa3_rule(wide).error, "fa3: element_bytes must be 1 to 2, not 4");
}

TEST(Fa3Rule, AgreesWithTheBlockRangesOfItsSplits) {
  for (std::int64_t seq = 1; seq < 60000; seq = seq * 5 / 3 + 1) {
    const Split split = fa3_rule(on_sm90(seq, 8, 1));
    ASSERT_TRUE(split.ok());
    std::int64_t busy = 0;
    for (std::int64_t s = 0; s < split.upstream_splits; ++s) {
      Fa3BlockQuery query{
          .block_m = 128, .block_n = 176, .pack_gqa = true, .split = true, .seq_q = 1, .seq_k = seq};
      query.split_idx = s;
      query.num_splits = split.upstream_splits;
      query.group = 8;
      const BlockRange range = fa3_block_range(query);
      if (range.empty()) continue;
      EXPECT_EQ(range.min * 176, busy * split.chunk);
      ++busy;
    }
    EXPECT_EQ(busy, split.splits) << seq;
  }
}

TEST(XqaRule, ByHand) {
  EXPECT_EQ(xqa_rule(on_sm90(8192, 32, 8)), split_of(16, 512));
  EXPECT_EQ(xqa_rule(on_sm90(2048, 32, 8)), split_of(8, 256));
  EXPECT_EQ(xqa_rule(on_sm90(8192, 256, 256)), split_of(1, 8192));
  SplitInput batched = on_sm90(8192, 32, 8);
  batched.batch = 4;
  EXPECT_EQ(xqa_rule(batched), split_of(4, 2048));
}

TEST(TrtllmRule, ByHand) {
  // m = 64, sqrt(512) = 22.6; 8 * 23 / 132 / 8 = 0.17 leaves it.
  EXPECT_EQ(trtllm_rule(on_sm90(8192, 32, 8)), split_of(23, 357));
  // m = 4: sqrt(32) = 5.7 is more.
  EXPECT_EQ(trtllm_rule(on_sm90(512, 32, 8)), split_of(4, 128));
  EXPECT_EQ(trtllm_rule(on_sm90(100, 32, 8)), split_of(1, 100));
  SplitInput batched = on_sm90(8192, 32, 8);
  batched.batch = 64;  // 64 * 8 * 23 / 132 / 8 = 11.15; 23 / 11.15 = 2.06
  EXPECT_EQ(trtllm_rule(batched), split_of(2, 4096));
  batched.batch = 6001;  // 6000 / 6001 is 0
  EXPECT_EQ(trtllm_rule(batched), split_of(1, 8192));
}

TEST(VllmRules, ByHand) {
  EXPECT_EQ(vllm_v2_rule(on_sm90(8192, 32, 8)), split_of(16, 512));
  EXPECT_EQ(vllm_v2_rule(on_sm90(512, 32, 8)), split_of(1, 512));
  EXPECT_EQ(vllm_v2_rule(on_sm90(513, 32, 8)), split_of(2, 512));
  SplitInput busy = on_sm90(8192, 32, 8);
  busy.batch = 16;  // 512 is not above 512
  EXPECT_EQ(vllm_v2_rule(busy).splits, 16);
  busy.batch = 17;
  EXPECT_EQ(vllm_v2_rule(busy), split_of(1, 8192));
  EXPECT_EQ(vllm_v1_rule(busy), split_of(1, 8192));
  busy.seq = 8193;
  EXPECT_EQ(vllm_v2_rule(busy), split_of(17, 512));
  EXPECT_EQ(vllm_v1_rule(busy).error, "vllm_v1: one pass serves at most 8192 tokens, not 8193");
}

TEST(LlamaCppRule, ByHand) {
  // One CTA unsplit, 200 tiles of keys, one a multiprocessor: 132 fill one wave.
  SplitInput input = on_sm90(25600, 1, 1);
  input.occupancy = 1;
  EXPECT_EQ(llama_cpp_rule(input), split_of(132, 194));
  // 32 heads on 264 slots: 8 reach 96 %, and 9 need a second wave.
  input = on_sm90(8192, 32, 8);
  input.occupancy = 2;
  EXPECT_EQ(llama_cpp_rule(input), split_of(8, 1024));
  // Fewer tiles than the occupancy it starts from.
  input = on_sm90(300, 1, 1);
  input.occupancy = 8;
  EXPECT_EQ(llama_cpp_rule(input), split_of(3, 100));
  input.occupancy = 0;
  EXPECT_EQ(llama_cpp_rule(input).error,
            "llama_cpp: a multiprocessor holds no CTA of its kernel (occupancy 0)");
  input.occupancy.reset();
  EXPECT_EQ(llama_cpp_rule(input).error,
            "llama_cpp: the rule needs its kernel's occupancy, and none was given");
}

}  // namespace
}  // namespace fdbench::rules
