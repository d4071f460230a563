// cpu_split_kv in SIMD: compiled once for each instruction set that Highway knows for this architecture.
#if defined(FDBENCH_HAVE_HIGHWAY)

#include "cpu/detail/vector_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/detail/split_kv_simd.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h, as Highway asks.
#include <hwy/highway.h>

#include <cmath>
#include <limits>

#include "cpu/detail/ahead.h"
#include "cpu/detail/power_of_two.h"
#include "cpu/detail/rows.h"

HWY_BEFORE_NAMESPACE();
namespace fdbench::cpu::HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR

SplitKvKernels split_kv_table() {
  return split_kv_plain();
}

#else

namespace hn = hwy::HWY_NAMESPACE;

using DF = hn::CappedTag<float, 16>;
using VF = hn::Vec<DF>;
using DU = hn::RebindToUnsigned<DF>;
constexpr std::int64_t kN = hn::MaxLanes(DF());
static_assert(kN >= 4 && kN <= 16);

// Row r of block b of a tile is token b + r * quarter (kStreams, ahead.h); scores and weights are kept in the
// order of blocks.

// With 32 registers a score block holds the sums of four heads and a half of each row; with 16, of two heads.
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_SSE4 || HWY_TARGET == HWY_SSSE3 || HWY_TARGET == HWY_SSE2
constexpr bool kManyRegisters = false;
#else
constexpr bool kManyRegisters = true;
#endif
constexpr int kScoreHeads = kManyRegisters ? 4 : 2;
constexpr int kWeighHeads = kManyRegisters ? 8 : 4;

// Half (0 or 1) of the 2 * kN elements from `from`. bf16: the even elements, then the odd ones, as shifts of
// 32-bit words give them; fp16: the first kN, then the others. Query and accumulators follow the same order.
template <Dtype dtype, int half>
HWY_INLINE VF load_half(const std::uint16_t* from) {
  const DF df;
  if constexpr (dtype == Dtype::bf16) {
    const DU du;
    const auto words = hn::LoadU(du, reinterpret_cast<const std::uint32_t*>(from));
    if constexpr (half == 0) return hn::BitCast(df, hn::ShiftLeft<16>(words));
    return hn::BitCast(df, hn::And(words, hn::Set(du, 0xffff0000u)));
  } else {
#if HWY_TARGET == HWY_SSE4 || HWY_TARGET == HWY_SSSE3 || HWY_TARGET == HWY_SSE2
    // As fp16_value (rows.h): Highway's own, where there is no instruction, takes infinity and NaN for
    // numbers.
    const DU du;
    const hn::Rebind<std::uint16_t, DF> dh;
    const auto bits = hn::PromoteTo(du, hn::LoadU(dh, from + half * kN));
    const auto magnitude = hn::ShiftLeft<13>(hn::And(bits, hn::Set(du, 0x7fffu)));
    const auto scaled = hn::BitCast(du, hn::Mul(hn::BitCast(df, magnitude), hn::Set(df, 0x1p112f)));
    const auto special =
        hn::IfThenElseZero(hn::Gt(magnitude, hn::Set(du, (0x7c00u << 13) - 1)), hn::Set(du, 0x7f800000u));
    const auto sign = hn::ShiftLeft<16>(hn::And(bits, hn::Set(du, 0x8000u)));
    return hn::BitCast(df, hn::Or(hn::Or(scaled, special), sign));
#else
    const hn::Rebind<hwy::float16_t, DF> dh;
    return hn::PromoteTo(df, hn::LoadU(dh, reinterpret_cast<const hwy::float16_t*>(from) + half * kN));
#endif
  }
}

template <Dtype dtype>
void load_query_as(const DecodeArgs& args, float* query) {
  const DF df;
  for (std::int64_t h = 0; h < args.heads; ++h) {
    const auto* const q = static_cast<const std::uint16_t*>(args.q) + h * args.q_head_stride;
    for (std::int64_t d = 0; d < args.dim; d += 2 * kN) {
      hn::StoreU(load_half<dtype, 0>(q + d), df, query + h * args.dim + d);
      hn::StoreU(load_half<dtype, 1>(q + d), df, query + h * args.dim + d + kN);
    }
  }
}

// Sums over 128-bit blocks, lane by lane.
template <class D, class V>
HWY_INLINE auto fold_blocks(D d, V v) {
  if constexpr (hn::MaxLanes(D()) > 4) {
    const hn::Half<D> half;
    return fold_blocks(half, hn::Add(hn::LowerHalf(half, v), hn::UpperHalf(half, v)));
  } else {
    (void)d;
    return v;
  }
}

// {sum of a, of b, of c, of d}.
HWY_INLINE auto sums_of_four(VF a, VF b, VF c, VF d) {
  const DF df;
  const VF ac = hn::Add(hn::InterleaveLower(df, a, c), hn::InterleaveUpper(df, a, c));
  const VF bd = hn::Add(hn::InterleaveLower(df, b, d), hn::InterleaveUpper(df, b, d));
  return fold_blocks(df, hn::Add(hn::InterleaveLower(df, ac, bd), hn::InterleaveUpper(df, ac, bd)));
}

template <Dtype dtype, int half, int heads, int tokens>
HWY_INLINE void add_products(const std::uint16_t* k, std::int64_t stride, const float* q, std::int64_t dim,
                             VF (&dots)[heads][tokens]) {
  const DF df;
  VF x[tokens];
#pragma GCC unroll 4
  for (int t = 0; t < tokens; ++t) x[t] = load_half<dtype, half>(k + t * stride);
#pragma GCC unroll 4
  for (int h = 0; h < heads; ++h) {
    const VF qh = hn::LoadU(df, q + h * dim + half * kN);
#pragma GCC unroll 4
    for (int t = 0; t < tokens; ++t) dots[h][t] = hn::MulAdd(qh, x[t], dots[h][t]);
  }
}

// scores[h][t] = scale * q[h] . k[t]; rows `stride` elements apart.
template <Dtype dtype, int heads, int tokens>
HWY_NOINLINE void score_block(const std::uint16_t* k, std::int64_t stride, const float* q, std::int64_t dim,
                              float scale, float* scores, std::int64_t tile) {
  const DF df;
  VF dots[heads][tokens];
#pragma GCC unroll 4
  for (int h = 0; h < heads; ++h) {
#pragma GCC unroll 4
    for (int t = 0; t < tokens; ++t) dots[h][t] = hn::Zero(df);
  }
  for (std::int64_t d = 0; d < dim; d += 2 * kN) {
    add_products<dtype, 0>(k + d, stride, q + d, dim, dots);
    add_products<dtype, 1>(k + d, stride, q + d, dim, dots);
  }
#pragma GCC unroll 4
  for (int h = 0; h < heads; ++h) {
    if constexpr (tokens == 4) {
      const hn::CappedTag<float, 4> d4;
      const auto sums = sums_of_four(dots[h][0], dots[h][1], dots[h][2], dots[h][3]);
      hn::StoreU(hn::Mul(sums, hn::Set(d4, scale)), d4, scores + h * tile);
    } else {
      for (int t = 0; t < tokens; ++t)
        scores[h * tile + t] = scale * hn::GetLane(hn::SumOfLanes(df, dots[h][t]));
    }
  }
}

// acc[h] += sum over blocks and streams of weight * V row, `pairs` pairs of vectors of every row. The sums
// stay in registers over all blocks.
template <Dtype dtype, int streams, int heads, int pairs>
HWY_NOINLINE void weigh_block(const std::uint16_t* v, std::int64_t step, std::int64_t stride,
                              std::int64_t blocks, const float* weights, std::int64_t tile, std::int64_t dim,
                              float* acc) {
  const DF df;
  VF sums[heads][2 * pairs];
#pragma GCC unroll 8
  for (int h = 0; h < heads; ++h) {
#pragma GCC unroll 4
    for (int i = 0; i < 2 * pairs; ++i) sums[h][i] = hn::LoadU(df, acc + h * dim + i * kN);
  }
  for (std::int64_t b = 0; b < blocks; ++b, v += step, weights += streams) {
#pragma GCC unroll 4
    for (int r = 0; r < streams; ++r) {
      const std::uint16_t* const row = v + r * stride;
      VF x[2 * pairs];
#pragma GCC unroll 2
      for (int i = 0; i < pairs; ++i) {
        x[2 * i] = load_half<dtype, 0>(row + i * 2 * kN);
        x[2 * i + 1] = load_half<dtype, 1>(row + i * 2 * kN);
      }
#pragma GCC unroll 8
      for (int h = 0; h < heads; ++h) {
        const VF weight = hn::Set(df, weights[h * tile + r]);
#pragma GCC unroll 4
        for (int i = 0; i < 2 * pairs; ++i) sums[h][i] = hn::MulAdd(weight, x[i], sums[h][i]);
      }
    }
  }
#pragma GCC unroll 8
  for (int h = 0; h < heads; ++h) {
#pragma GCC unroll 4
    for (int i = 0; i < 2 * pairs; ++i) hn::StoreU(sums[h][i], df, acc + h * dim + i * kN);
  }
}

// Blocks of a stream whose V rows one visit to a KV head takes. Grouped heads take several, so that their
// sums are loaded and stored once for all; ungrouped ones move on along the memory.
constexpr std::int64_t kGroupedBlocks = 4;

// Steps that the memory is asked ahead: fewer come late, more push out what is not read yet.
constexpr std::int64_t kLead = 8;

// Scores of `heads` heads at a time, of the group from first_head on, for `tokens` rows `stride` apart.
template <Dtype dtype, int tokens, int heads>
HWY_INLINE void score_heads(const ChunkJob& job, const std::uint16_t* k, std::int64_t stride,
                            std::int64_t& head, std::int64_t end, std::int64_t at) {
  const std::int64_t dim = job.args->dim;
  for (; end - head >= heads; head += heads) {
    score_block<dtype, heads, tokens>(k, stride, job.query + head * dim, dim, job.args->scale * kLog2E,
                                      job.scores + head * job.tile + at, job.tile);
  }
}

// Rows of all KV heads: `tokens` of them, the first being row `row`, the others `stride` apart; their scores
// go to place `at`.
template <Dtype dtype, int tokens>
HWY_INLINE void score_rows(const ChunkJob& job, std::int64_t row, std::int64_t stride, std::int64_t at,
                           Ahead& ahead) {
  const DecodeArgs& args = *job.args;
  const std::int64_t group = args.heads / args.kv_heads;
  const auto* k = static_cast<const std::uint16_t*>(args.k) + row * args.k_seq_stride;
  for (std::int64_t head = 0; head < args.heads; k += args.k_head_stride) {
    if constexpr (tokens > 1) ahead.step();
    const std::int64_t end = head + group;
    score_heads<dtype, tokens, kScoreHeads>(job, k, stride, head, end, at);
    if constexpr (kScoreHeads > 2) score_heads<dtype, tokens, 2>(job, k, stride, head, end, at);
    score_heads<dtype, tokens, 1>(job, k, stride, head, end, at);
  }
}

// As score_heads, for V: `blocks` blocks of kStreams rows.
template <Dtype dtype, int streams, int heads, int pairs>
HWY_INLINE void weigh_heads(const ChunkJob& job, const std::uint16_t* v, std::int64_t stride,
                            std::int64_t blocks, std::int64_t& head, std::int64_t end, std::int64_t at) {
  const std::int64_t dim = job.args->dim;
  for (; end - head >= heads; head += heads) {
    for (std::int64_t d = 0; d < dim; d += 2 * pairs * kN) {
      weigh_block<dtype, streams, heads, pairs>(v + d, job.args->v_seq_stride, stride, blocks,
                                                job.scores + head * job.tile + at, job.tile, dim,
                                                job.acc + head * dim + d);
    }
  }
}

template <Dtype dtype, int streams>
HWY_INLINE void weigh_rows(const ChunkJob& job, std::int64_t row, std::int64_t stride, std::int64_t blocks,
                           std::int64_t at, Ahead& ahead) {
  const DecodeArgs& args = *job.args;
  const std::int64_t group = args.heads / args.kv_heads;
  const bool two_pairs = args.dim % (4 * kN) == 0;
  const auto* v = static_cast<const std::uint16_t*>(args.v) + row * args.v_seq_stride;
  for (std::int64_t head = 0; head < args.heads; v += args.v_head_stride) {
    if constexpr (streams > 1) {
      ahead.steps(blocks);
    }
    const std::int64_t end = head + group;
    weigh_heads<dtype, streams, kWeighHeads, 1>(job, v, stride, blocks, head, end, at);
    if (two_pairs) {
      weigh_heads<dtype, streams, kWeighHeads / 2, 2>(job, v, stride, blocks, head, end, at);
      weigh_heads<dtype, streams, 1, 2>(job, v, stride, blocks, head, end, at);
    } else {
      weigh_heads<dtype, streams, 1, 1>(job, v, stride, blocks, head, end, at);
    }
  }
}

// As power_of_two (power_of_two.h).
HWY_INLINE VF powers_of_two(VF x) {
  const DF df;
  const DU du;
  const VF least = hn::Set(df, kLeastPower);
  const auto small = hn::Lt(x, least);
  const VF clamped = hn::IfThenElse(small, least, x);  // not Max: NaN must stay
  const VF magic = hn::Set(df, kRoundMagic);
  const VF shifted = hn::Add(clamped, magic);
  const VF f = hn::Sub(clamped, hn::Sub(shifted, magic));
  VF p = hn::Set(df, kPowerSeries[5]);
#pragma GCC unroll 5
  for (int i = 4; i >= 0; --i) p = hn::MulAdd(p, f, hn::Set(df, kPowerSeries[i]));
  p = hn::MulAdd(p, f, hn::Set(df, 1.0f));
  const auto exponent = hn::ShiftLeft<23>(hn::BitCast(du, shifted));
  const VF scaled = hn::BitCast(df, hn::Add(hn::BitCast(du, p), exponent));
  return hn::IfThenZeroElse(small, scaled);
}

// Scores to weights relative to the greatest score so far; what was summed before is rescaled to it.
void update_softmax(const ChunkJob& job, std::int64_t count) {
  const DF df;
  const DecodeArgs& args = *job.args;
  const std::int64_t padded = round_up(count, kN);
  for (std::int64_t h = 0; h < args.heads; ++h) {
    float* const scores = job.scores + h * job.tile;
    for (std::int64_t t = count; t < padded; ++t) scores[t] = -std::numeric_limits<float>::infinity();
    VF greatest = hn::LoadU(df, scores);
    for (std::int64_t t = kN; t < padded; t += kN) greatest = hn::Max(greatest, hn::LoadU(df, scores + t));
    const float max = std::max(job.max[h], hn::GetLane(hn::MaxOfLanes(df, greatest)));
    if (max > job.max[h]) {
      const float factor = power_of_two(job.max[h] - max);
      job.sum[h] *= factor;
      float* const acc = job.acc + h * args.dim;
      for (std::int64_t d = 0; d < args.dim; d += kN)
        hn::StoreU(hn::Mul(hn::LoadU(df, acc + d), hn::Set(df, factor)), df, acc + d);
      job.max[h] = max;
    }
    VF sum = hn::Zero(df);
    const VF base = hn::Set(df, subtrahend(max));
    for (std::int64_t t = 0; t < padded; t += kN) {
      const VF weight = powers_of_two(hn::Sub(hn::LoadU(df, scores + t), base));
      hn::StoreU(weight, df, scores + t);
      sum = hn::Add(sum, weight);
    }
    job.sum[h] += hn::GetLane(hn::SumOfLanes(df, sum));
  }
}

template <Dtype dtype>
void run_chunk_as(const ChunkJob& job) {
  const DecodeArgs& args = *job.args;
  std::fill(job.max, job.max + args.heads, -std::numeric_limits<float>::infinity());
  std::fill(job.sum, job.sum + args.heads, 0.0f);
  std::fill(job.acc, job.acc + args.heads * args.dim, 0.0f);
  const std::int64_t visit = args.heads > args.kv_heads ? kGroupedBlocks : 1;
  Ahead ahead(job, visit);
  ahead.steps(kLead);
  for (std::int64_t first = job.begin; first < job.end; first += job.tile) {
    const std::int64_t count = std::min(job.tile, job.end - first);
    const std::int64_t quarter = count / kStreams;
    const std::int64_t k_stride = quarter * args.k_seq_stride;
    const std::int64_t v_stride = quarter * args.v_seq_stride;
    for (std::int64_t b = 0; b < quarter; ++b)
      score_rows<dtype, kStreams>(job, first + b, k_stride, b * kStreams, ahead);
    for (std::int64_t t = quarter * kStreams; t < count; ++t)
      score_rows<dtype, 1>(job, first + t, 0, t, ahead);
    update_softmax(job, count);
    for (std::int64_t b = 0; b < quarter; b += visit) {
      weigh_rows<dtype, kStreams>(job, first + b, v_stride, std::min(visit, quarter - b), b * kStreams,
                                  ahead);
    }
    for (std::int64_t t = quarter * kStreams; t < count; ++t)
      weigh_rows<dtype, 1>(job, first + t, 0, 1, t, ahead);
  }
}

void load_query(const DecodeArgs& args, float* query) {
  if (args.dtype == Dtype::bf16) {
    load_query_as<Dtype::bf16>(args, query);
  } else {
    load_query_as<Dtype::fp16>(args, query);
  }
}

void run_chunk(const ChunkJob& job) {
  if (job.args->dtype == Dtype::bf16) {
    run_chunk_as<Dtype::bf16>(job);
  } else {
    run_chunk_as<Dtype::fp16>(job);
  }
}

// As float_to_bf16 (core/half.h), left in the upper half of each word.
HWY_INLINE hn::Vec<DU> round_to_bf16(VF x) {
  const DU du;
  const auto bits = hn::BitCast(du, x);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1u));
  const auto rounded = hn::Add(bits, hn::Add(odd, hn::Set(du, 0x7fffu)));
  const auto quiet = hn::Or(bits, hn::Set(du, 0x400000u));
  return hn::IfThenElse(hn::RebindMask(du, hn::IsNaN(x)), quiet, rounded);
}

// Undoes the order of load_half.
void store_row(const DecodeArgs& args, const float* row, float divisor, std::uint16_t* o) {
  const DF df;
  const DU du;
  const VF by = hn::Set(df, divisor);
  for (std::int64_t d = 0; d < args.dim; d += 2 * kN) {
    const VF a = hn::Div(hn::LoadU(df, row + d), by);
    const VF b = hn::Div(hn::LoadU(df, row + d + kN), by);
    if (args.dtype == Dtype::bf16) {
      const auto high = hn::And(round_to_bf16(b), hn::Set(du, 0xffff0000u));
      const auto words = hn::Or(high, hn::ShiftRight<16>(round_to_bf16(a)));
      hn::StoreU(words, du, reinterpret_cast<std::uint32_t*>(o + d));
    } else {
      // Not every target's conversion to fp16 rounds to nearest.
      float values[2 * kN];
      hn::StoreU(a, df, values);
      hn::StoreU(b, df, values + kN);
      for (std::int64_t i = 0; i < 2 * kN; ++i) o[d + i] = float_to_fp16(values[i]);
    }
  }
}

void merge(const MergeJob& job) {
  const DF df;
  const DecodeArgs& args = *job.args;
  for (std::int64_t h = job.head_begin; h < job.head_end; ++h) {
    float max = -std::numeric_limits<float>::infinity();
    for (std::int64_t s = 0; s < job.splits; ++s) max = std::max(max, job.max[s * args.heads + h]);
    float sum = 0.0f;
    std::fill(job.row, job.row + args.dim, 0.0f);
    for (std::int64_t s = 0; s < job.splits; ++s) {
      const float weight = power_of_two(job.max[s * args.heads + h] - subtrahend(max));
      sum += weight * job.sum[s * args.heads + h];
      const float* const acc = job.acc + (s * args.heads + h) * args.dim;
      for (std::int64_t d = 0; d < args.dim; d += kN) {
        const VF so_far = hn::LoadU(df, job.row + d);
        hn::StoreU(hn::MulAdd(hn::Set(df, weight), hn::LoadU(df, acc + d), so_far), df, job.row + d);
      }
    }
    store_row(args, job.row, sum, static_cast<std::uint16_t*>(args.o) + h * args.o_head_stride);
    if (args.lse) args.lse[h] = (max + std::log2(sum)) * kLn2;
  }
}

SplitKvKernels split_kv_table() {
  return {load_query, run_chunk, merge};
}

#endif  // HWY_TARGET == HWY_SCALAR

}  // namespace fdbench::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

namespace fdbench::cpu {

template <>
SplitKvKernels split_kv_of<HWY_TARGET>() {
  return HWY_NAMESPACE::split_kv_table();
}

}  // namespace fdbench::cpu

#if HWY_ONCE
namespace fdbench::cpu {

SplitKvKernels split_kv_simd(std::int64_t target) {
  return choose_target<HWY_TARGETS>(target, []<std::int64_t one> { return split_kv_of<one>(); });
}

}  // namespace fdbench::cpu
#endif  // HWY_ONCE

#endif  // FDBENCH_HAVE_HIGHWAY
