// cpu_split_kv in plain loops: what builds without Highway run, and what the SIMD code is tested beside.
#include <cmath>
#include <limits>

#include "cpu/detail/power_of_two.h"
#include "cpu/detail/rows.h"
#include "cpu/detail/split_kv.h"

namespace fdbench::cpu {

namespace {

void load_query(const DecodeArgs& args, float* query) {
  for (std::int64_t h = 0; h < args.heads; ++h) {
    const auto* const q = static_cast<const std::uint16_t*>(args.q) + h * args.q_head_stride;
    for (std::int64_t d = 0; d < args.dim; ++d)
      query[h * args.dim + d] = args.dtype == Dtype::bf16 ? bf16_to_float(q[d]) : fp16_value(q[d]);
  }
}

// Scores of tokens first ... first + count - 1. A row of K is converted once for all heads of its group.
template <Dtype dtype>
void score_tile(const ChunkJob& job, std::int64_t first, std::int64_t count) {
  const DecodeArgs& args = *job.args;
  const std::int64_t group = args.heads / args.kv_heads;
  const float scale = args.scale * kLog2E;
  float k[256];
  for (std::int64_t t = 0; t < count; ++t) {
    for (std::int64_t kv = 0; kv < args.kv_heads; ++kv) {
      const auto* const row = static_cast<const std::uint16_t*>(args.k) + (first + t) * args.k_seq_stride +
                              kv * args.k_head_stride;
      for (std::int64_t d = 0; d < args.dim; ++d) k[d] = element_value<dtype>(row[d]);
      for (std::int64_t h = kv * group; h < (kv + 1) * group; ++h) {
        const float* const q = job.query + h * args.dim;
        float sums[kLanes] = {};
        for (std::int64_t d = 0; d < args.dim; d += kLanes) {
          for (std::int64_t i = 0; i < kLanes; ++i) sums[i] += q[d + i] * k[d + i];
        }
        float sum = 0.0f;
        for (std::int64_t i = 0; i < kLanes; ++i) sum += sums[i];
        job.scores[h * job.tile + t] = sum * scale;
      }
    }
  }
}

// Scores to weights relative to the greatest score so far; what was summed before is rescaled to it.
void update_softmax(const ChunkJob& job, std::int64_t count) {
  const DecodeArgs& args = *job.args;
  for (std::int64_t h = 0; h < args.heads; ++h) {
    float* const scores = job.scores + h * job.tile;
    float max = job.max[h];
    for (std::int64_t t = 0; t < count; ++t) max = std::max(max, scores[t]);
    if (max > job.max[h]) {
      const float factor = power_of_two(job.max[h] - max);
      job.sum[h] *= factor;
      for (std::int64_t d = 0; d < args.dim; ++d) job.acc[h * args.dim + d] *= factor;
      job.max[h] = max;
    }
    const float base = subtrahend(max);
    for (std::int64_t t = 0; t < count; ++t) scores[t] = power_of_two(scores[t] - base);
    float sum = 0.0f;
    for (std::int64_t t = 0; t < count; ++t) sum += scores[t];
    job.sum[h] += sum;
  }
}

template <Dtype dtype>
void weigh_tile(const ChunkJob& job, std::int64_t first, std::int64_t count) {
  const DecodeArgs& args = *job.args;
  const std::int64_t group = args.heads / args.kv_heads;
  float v[256];
  for (std::int64_t t = 0; t < count; ++t) {
    for (std::int64_t kv = 0; kv < args.kv_heads; ++kv) {
      const auto* const row = static_cast<const std::uint16_t*>(args.v) + (first + t) * args.v_seq_stride +
                              kv * args.v_head_stride;
      for (std::int64_t d = 0; d < args.dim; ++d) v[d] = element_value<dtype>(row[d]);
      for (std::int64_t h = kv * group; h < (kv + 1) * group; ++h) {
        const float weight = job.scores[h * job.tile + t];
        float* const acc = job.acc + h * args.dim;
        for (std::int64_t d = 0; d < args.dim; ++d) acc[d] += weight * v[d];
      }
    }
  }
}

template <Dtype dtype>
void run_chunk_as(const ChunkJob& job) {
  const DecodeArgs& args = *job.args;
  std::fill(job.max, job.max + args.heads, -std::numeric_limits<float>::infinity());
  std::fill(job.sum, job.sum + args.heads, 0.0f);
  std::fill(job.acc, job.acc + args.heads * args.dim, 0.0f);
  for (std::int64_t first = job.begin; first < job.end; first += job.tile) {
    const std::int64_t count = std::min(job.tile, job.end - first);
    score_tile<dtype>(job, first, count);
    update_softmax(job, count);
    weigh_tile<dtype>(job, first, count);
  }
}

void run_chunk(const ChunkJob& job) {
  if (job.args->dtype == Dtype::bf16) {
    run_chunk_as<Dtype::bf16>(job);
  } else {
    run_chunk_as<Dtype::fp16>(job);
  }
}

void merge(const MergeJob& job) {
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
      for (std::int64_t d = 0; d < args.dim; ++d) job.row[d] += weight * acc[d];
    }
    auto* const o = static_cast<std::uint16_t*>(args.o) + h * args.o_head_stride;
    for (std::int64_t d = 0; d < args.dim; ++d) o[d] = round_element(args.dtype, job.row[d] / sum);
    if (args.lse) args.lse[h] = (max + std::log2(sum)) * kLn2;
  }
}

}  // namespace

SplitKvKernels split_kv_plain() {
  return {load_query, run_chunk, merge};
}

}  // namespace fdbench::cpu
