// cpu_split_kv on Intel's matrix tiles (AMX-BF16), for grouped heads over bf16: with eight query heads to a
// row of K the vector units cannot multiply as fast as the memory delivers; tiles can.
//
// One visit takes 32 tokens of one KV head and up to 16 of its query heads. Scores are [tokens, heads] =
// K [16 tokens, 32 dims] x Q^T, summed over dims, so that softmax runs with heads as lanes. Weights are
// rounded to bf16 (their sum too is of the rounded ones), transposed to [heads, tokens], and multiplied by V,
// whose rows are interleaved in pairs, as tiles want them.
#include "cpu/detail/split_kv_amx.h"

#include <cstring>

#if FDBENCH_CPU_AMX

// gcc 12 warns of its own intrinsics, which start from registers of undefined content on purpose.
#if !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif

#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "cpu/detail/ahead.h"
#include "cpu/detail/power_of_two.h"
#include "cpu/detail/rows.h"

#define FDBENCH_AMX_CODE __attribute__((target("avx512f,avx512bw,amx-tile,amx-bf16")))

namespace fdbench::cpu {

namespace {

constexpr std::int64_t kBlock = 32;      // tokens: the depth of a tile product
constexpr std::int64_t kMostHeads = 16;  // lanes of a vector, rows of a tile
constexpr std::int64_t kTileBytes = 1024;

// Tile registers, as the two passes use them. Macros: the compiler's intrinsics paste the number into the
// instruction's text.
#define FDBENCH_TILE_SCORES0 0
#define FDBENCH_TILE_SCORES1 1
#define FDBENCH_TILE_KEYS0 2
#define FDBENCH_TILE_KEYS1 3
#define FDBENCH_TILE_RIGHT 5
#define FDBENCH_TILE_OUT0 0
#define FDBENCH_TILE_OUT1 1
#define FDBENCH_TILE_OUT2 2
#define FDBENCH_TILE_OUT3 3
#define FDBENCH_TILE_WEIGHTS 4
#define FDBENCH_TILE_PAIRS0 5
#define FDBENCH_TILE_PAIRS1 6

// As ldtilecfg reads it.
struct alignas(64) TileConfig {
  std::uint8_t palette = 1;
  std::uint8_t start_row = 0;
  std::uint8_t reserved[14] = {};
  std::uint16_t row_bytes[16] = {};
  std::uint8_t rows[16] = {};
};
static_assert(sizeof(TileConfig) == 64);

// How the query heads of a KV head are dealt out: `blocks` blocks of `heads` each.
struct Deal {
  std::int64_t blocks = 0;
  std::int64_t heads = 0;
};

Deal deal_of(std::int64_t group) {
  const std::int64_t blocks = (group + kMostHeads - 1) / kMostHeads;
  return {blocks, group / blocks};
}

// Parts of ChunkJob::scores; floats, each on a cache line.
struct Work {
  float* scores = nullptr;        // [tile, 16]
  float* max = nullptr;           // [kv_heads, blocks, 16]
  float* sum = nullptr;           // likewise
  char* weights = nullptr;        // [kv_heads, blocks, tile / 32] tiles
  char* pairs = nullptr;          // 4 tiles: 32 rows of V, 64 dims
  std::uint16_t* tail = nullptr;  // [32, dim]: the last tokens, padded with zeros
};

std::int64_t tile_blocks(std::int64_t tile) {
  return (tile + kBlock - 1) / kBlock;
}

Work work_of(const ChunkJob& job, std::int64_t lanes) {
  Work work;
  const std::int64_t blocks = tile_blocks(job.tile);
  float* at = job.scores;
  const auto take = [&](std::int64_t floats) {
    float* const part = at;
    at += floats;
    return part;
  };
  work.scores = take(blocks * kBlock * kMostHeads);
  work.max = take(lanes);
  work.sum = take(lanes);
  work.weights = reinterpret_cast<char*>(take(lanes / kMostHeads * blocks * kTileBytes / 4));
  work.pairs = reinterpret_cast<char*>(take(4 * kTileBytes / 4));
  work.tail = reinterpret_cast<std::uint16_t*>(take(kBlock * job.args->dim / 2));
  return work;
}

// Q^T of each block of heads as tiles [dim / 32] of [16 pairs of dims, 16 heads, 2], heads beyond the block
// 0.
void load_query(const DecodeArgs& args, float* query) {
  const std::int64_t group = args.heads / args.kv_heads;
  const Deal deal = deal_of(group);
  auto* out = reinterpret_cast<std::uint16_t*>(query);
  for (std::int64_t first = 0; first < args.heads; first += deal.heads) {
    std::memset(out, 0, static_cast<std::size_t>(args.dim / 32 * kTileBytes));
    for (std::int64_t h = 0; h < deal.heads; ++h) {
      const auto* const q = static_cast<const std::uint16_t*>(args.q) + (first + h) * args.q_head_stride;
      for (std::int64_t d = 0; d < args.dim; ++d) out[d / 2 * 2 * kMostHeads + h * 2 + d % 2] = q[d];
    }
    out += args.dim * kMostHeads;
  }
}

// scores[32, 16] of 32 rows of K. `fetch` steps of `ahead` are taken meanwhile, spread out: a
// burst would fill the buffers that loads need too.
FDBENCH_AMX_CODE void score_block(const std::uint16_t* k, std::int64_t stride, const char* query,
                                  std::int64_t dim, float* scores, Ahead& ahead, std::int64_t fetch) {
  const auto row_bytes = static_cast<std::size_t>(stride * 2);
  _tile_zero(FDBENCH_TILE_SCORES0);
  _tile_zero(FDBENCH_TILE_SCORES1);
  for (std::int64_t d = 0; d < dim; d += 32, query += kTileBytes) {
    ahead.steps(fetch * (d + 32) / dim - fetch * d / dim);
    _tile_loadd(FDBENCH_TILE_RIGHT, query, 64);
    _tile_loadd(FDBENCH_TILE_KEYS0, k + d, row_bytes);
    _tile_loadd(FDBENCH_TILE_KEYS1, k + d + 16 * stride, row_bytes);
    _tile_dpbf16ps(FDBENCH_TILE_SCORES0, FDBENCH_TILE_KEYS0, FDBENCH_TILE_RIGHT);
    _tile_dpbf16ps(FDBENCH_TILE_SCORES1, FDBENCH_TILE_KEYS1, FDBENCH_TILE_RIGHT);
  }
  _tile_stored(FDBENCH_TILE_SCORES0, scores, 64);
  _tile_stored(FDBENCH_TILE_SCORES1, scores + 16 * kMostHeads, 64);
}

// As power_of_two (power_of_two.h).
FDBENCH_AMX_CODE inline __m512 powers_of_two(__m512 x) {
  const __m512 least = _mm512_set1_ps(kLeastPower), magic = _mm512_set1_ps(kRoundMagic);
  const __m512 clamped = _mm512_max_ps(x, least);
  const __m512 shifted = _mm512_add_ps(clamped, magic);
  const __m512 f = _mm512_sub_ps(clamped, _mm512_sub_ps(shifted, magic));
  __m512 p = _mm512_set1_ps(kPowerSeries[5]);
  for (int i = 4; i >= 0; --i) p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(kPowerSeries[i]));
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(1.0f));
  const __m512i exponent = _mm512_slli_epi32(_mm512_castps_si512(shifted), 23);
  const __m512 scaled = _mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(p), exponent));
  return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(x, least, _CMP_GE_OQ), scaled);
}

// 16 x 16 words, in place.
FDBENCH_AMX_CODE inline void transpose(__m512i (&r)[16]) {
  __m512i s[16];
  for (int i = 0; i < 16; i += 2) {
    s[i] = _mm512_unpacklo_epi32(r[i], r[i + 1]);
    s[i + 1] = _mm512_unpackhi_epi32(r[i], r[i + 1]);
  }
  for (int i = 0; i < 16; i += 4) {
    r[i] = _mm512_unpacklo_epi64(s[i], s[i + 2]);
    r[i + 1] = _mm512_unpackhi_epi64(s[i], s[i + 2]);
    r[i + 2] = _mm512_unpacklo_epi64(s[i + 1], s[i + 3]);
    r[i + 3] = _mm512_unpackhi_epi64(s[i + 1], s[i + 3]);
  }
  // r[4 * i + j]: 128-bit block b holds column 4 * b + j of rows 4 * i ... 4 * i + 3.
  for (int j = 0; j < 4; ++j) {
    const __m512i a = _mm512_shuffle_i32x4(r[j], r[4 + j], 0x88),
                  b = _mm512_shuffle_i32x4(r[j], r[4 + j], 0xdd);
    const __m512i c = _mm512_shuffle_i32x4(r[8 + j], r[12 + j], 0x88),
                  d = _mm512_shuffle_i32x4(r[8 + j], r[12 + j], 0xdd);
    s[j] = _mm512_shuffle_i32x4(a, c, 0x88);
    s[8 + j] = _mm512_shuffle_i32x4(a, c, 0xdd);
    s[4 + j] = _mm512_shuffle_i32x4(b, d, 0x88);
    s[12 + j] = _mm512_shuffle_i32x4(b, d, 0xdd);
  }
  for (int i = 0; i < 16; ++i) r[i] = s[i];
}

// Softmax of [blocks * 32, 16] scores, heads as lanes: weights as tiles [16 heads, 32 tokens]; `acc` is
// rescaled where a maximum grew. [heads, dim].
FDBENCH_AMX_CODE void weigh_scores(const float* scores, std::int64_t blocks, float scale, std::int64_t heads,
                                   std::int64_t dim, float* max, float* sum, float* acc, char* weights,
                                   Ahead& ahead, std::int64_t fetch) {
  __m512 greatest = _mm512_loadu_ps(scores);
  for (std::int64_t t = 1; t < blocks * kBlock; ++t)
    greatest = _mm512_max_ps(greatest, _mm512_loadu_ps(scores + t * kMostHeads));
  const __m512 by = _mm512_set1_ps(scale);
  const __m512 old_max = _mm512_loadu_ps(max);
  const __m512 new_max = _mm512_max_ps(old_max, _mm512_mul_ps(greatest, by));
  __m512 total = _mm512_loadu_ps(sum);
  if (_mm512_cmp_ps_mask(new_max, old_max, _CMP_GT_OQ)) {
    const __m512 factor = powers_of_two(_mm512_sub_ps(old_max, new_max));
    float factors[kMostHeads];
    _mm512_storeu_ps(factors, factor);
    total = _mm512_mul_ps(total, factor);
    for (std::int64_t h = 0; h < heads; ++h) {
      if (factors[h] == 1.0f) continue;
      const __m512 f = _mm512_set1_ps(factors[h]);
      for (float* at = acc + h * dim; at < acc + (h + 1) * dim; at += 16)
        _mm512_storeu_ps(at, _mm512_mul_ps(_mm512_loadu_ps(at), f));
    }
    _mm512_storeu_ps(max, new_max);
  }
  const __m512i half = _mm512_set1_epi32(0x8000), high = _mm512_set1_epi32(static_cast<int>(0xffff0000u));
  for (std::int64_t b = 0; b < blocks; ++b, scores += kBlock * kMostHeads, weights += kTileBytes) {
    __m512i packed[16];
    for (int pair = 0; pair < 16; ++pair) {
      if (pair % 4 == 0) ahead.steps(fetch);
      const float* const at = scores + 2 * pair * kMostHeads;
      const __m512 even = powers_of_two(_mm512_fmsub_ps(_mm512_loadu_ps(at), by, new_max));
      const __m512 odd = powers_of_two(_mm512_fmsub_ps(_mm512_loadu_ps(at + kMostHeads), by, new_max));
      // To the nearest bf16; weights are never NaN unless an input was.
      const __m512i e = _mm512_and_si512(_mm512_add_epi32(_mm512_castps_si512(even), half), high);
      const __m512i o = _mm512_and_si512(_mm512_add_epi32(_mm512_castps_si512(odd), half), high);
      total = _mm512_add_ps(total, _mm512_add_ps(_mm512_castsi512_ps(e), _mm512_castsi512_ps(o)));
      packed[pair] = _mm512_or_si512(_mm512_srli_epi32(e, 16), o);
    }
    transpose(packed);
    for (int h = 0; h < heads; ++h) _mm512_storeu_si512(weights + h * 64, packed[h]);
  }
  _mm512_storeu_ps(sum, total);
}

// 32 rows of V, two by two, `vectors` vectors of 32 dims of them, as tiles [16 pairs, 16 dims, 2]. Of 32 dims
// the first tile gets those with bit 2 clear, the second the others.
template <int vectors>
FDBENCH_AMX_CODE inline void pair_rows(const std::uint16_t* v, std::int64_t stride, char* pairs, Ahead& ahead,
                                       std::int64_t fetch) {
  for (std::int64_t p = 0; p < kBlock / 2; ++p, v += 2 * stride, pairs += 64) {
    if (p % 2 == 0) ahead.steps(fetch);
    for (int i = 0; i < vectors; ++i) {
      const __m512i a = _mm512_loadu_si512(v + 32 * i), b = _mm512_loadu_si512(v + stride + 32 * i);
      _mm512_storeu_si512(pairs + 2 * i * kTileBytes, _mm512_unpacklo_epi16(a, b));
      _mm512_storeu_si512(pairs + (2 * i + 1) * kTileBytes, _mm512_unpackhi_epi16(a, b));
    }
  }
}

// Rows of V for one KV head: `whole` blocks of 32 at `rows`, and one at `tail` where that is not null.
struct Values {
  const std::uint16_t* rows;
  std::int64_t stride;
  std::int64_t whole;
  const std::uint16_t* tail;
  std::int64_t tail_stride;
};

// acc[heads, d ... d + 32 * vectors - 1] += weights x V; dims in the order of pair_rows. The sums stay in
// tiles over all blocks.
template <int vectors>
FDBENCH_AMX_CODE void add_weighted(const Values& v, const char* weights, std::int64_t d, std::int64_t dim,
                                   float* acc, char* pairs, Ahead& ahead, std::int64_t fetch) {
  const auto row_bytes = static_cast<std::size_t>(dim * 4);
  acc += d;
  _tile_loadd(FDBENCH_TILE_OUT0, acc, row_bytes);
  _tile_loadd(FDBENCH_TILE_OUT1, acc + 16, row_bytes);
  if constexpr (vectors > 1) {
    _tile_loadd(FDBENCH_TILE_OUT2, acc + 32, row_bytes);
    _tile_loadd(FDBENCH_TILE_OUT3, acc + 48, row_bytes);
  }
  const std::int64_t blocks = v.whole + (v.tail ? 1 : 0);
  for (std::int64_t b = 0; b < blocks; ++b, weights += kTileBytes) {
    if (b < v.whole) {
      pair_rows<vectors>(v.rows + b * kBlock * v.stride + d, v.stride, pairs, ahead, fetch);
    } else {
      pair_rows<vectors>(v.tail + d, v.tail_stride, pairs, ahead, fetch);
    }
    _tile_loadd(FDBENCH_TILE_WEIGHTS, weights, 64);
    _tile_loadd(FDBENCH_TILE_PAIRS0, pairs, 64);
    _tile_dpbf16ps(FDBENCH_TILE_OUT0, FDBENCH_TILE_WEIGHTS, FDBENCH_TILE_PAIRS0);
    _tile_loadd(FDBENCH_TILE_PAIRS1, pairs + kTileBytes, 64);
    _tile_dpbf16ps(FDBENCH_TILE_OUT1, FDBENCH_TILE_WEIGHTS, FDBENCH_TILE_PAIRS1);
    if constexpr (vectors > 1) {
      _tile_loadd(FDBENCH_TILE_PAIRS0, pairs + 2 * kTileBytes, 64);
      _tile_dpbf16ps(FDBENCH_TILE_OUT2, FDBENCH_TILE_WEIGHTS, FDBENCH_TILE_PAIRS0);
      _tile_loadd(FDBENCH_TILE_PAIRS1, pairs + 3 * kTileBytes, 64);
      _tile_dpbf16ps(FDBENCH_TILE_OUT3, FDBENCH_TILE_WEIGHTS, FDBENCH_TILE_PAIRS1);
    }
  }
  _tile_stored(FDBENCH_TILE_OUT0, acc, row_bytes);
  _tile_stored(FDBENCH_TILE_OUT1, acc + 16, row_bytes);
  if constexpr (vectors > 1) {
    _tile_stored(FDBENCH_TILE_OUT2, acc + 32, row_bytes);
    _tile_stored(FDBENCH_TILE_OUT3, acc + 48, row_bytes);
  }
}

// The last `count` rows of a chunk, padded to a block with zeros: what lies behind them may not be touched.
void pad_tail(const std::uint16_t* rows, std::int64_t stride, std::int64_t count, std::int64_t dim,
              std::uint16_t* tail) {
  for (std::int64_t t = 0; t < count; ++t)
    std::copy(rows + t * stride, rows + t * stride + dim, tail + t * dim);
  std::fill(tail + count * dim, tail + kBlock * dim, std::uint16_t{0});
}

// Every tile 16 rows for scores; for output, those of heads have a row each.
FDBENCH_AMX_CODE void configure(std::int64_t output_heads) {
  TileConfig config;
  for (int tile = 0; tile < 8; ++tile) {
    config.row_bytes[tile] = 64;
    config.rows[tile] = static_cast<std::uint8_t>(tile <= FDBENCH_TILE_WEIGHTS ? output_heads : 16);
  }
  // The intrinsic tells the compiler of the first word only; all of it must be in memory.
  asm volatile("" : : "r"(&config) : "memory");
  _tile_loadconfig(&config);
}

FDBENCH_AMX_CODE void release_tiles() {
  _tile_release();
}

// Tokens of a tile: K rows of all heads, which are read head by head, in 64 KiB, so that what was asked for
// is still near when its turn comes.
std::int64_t tile_tokens(const ChunkJob& job) {
  const std::int64_t fit = (std::int64_t{64} << 10) / (job.args->kv_heads * job.args->dim * 2);
  return std::min(job.tile, std::max(kBlock, fit / kBlock * kBlock));
}

void run_chunk(const ChunkJob& asked) {
  ChunkJob job = asked;
  job.tile = tile_tokens(asked);
  const DecodeArgs& args = *job.args;
  const Deal deal = deal_of(args.heads / args.kv_heads);
  const std::int64_t lanes = args.kv_heads * deal.blocks * kMostHeads;
  const Work work = work_of(job, lanes);
  const float scale = args.scale * kLog2E;
  std::fill(work.max, work.max + lanes, -std::numeric_limits<float>::infinity());
  std::fill(work.sum, work.sum + lanes, 0.0f);
  std::fill(job.acc, job.acc + args.heads * args.dim, 0.0f);
  // Within a tile rows are read head by head, not as they are asked for: be a whole pass ahead.
  Ahead ahead(job, 1);
  ahead.steps(ahead.steps_of_pass());
  const auto* const k = static_cast<const std::uint16_t*>(args.k);
  const auto* const v = static_cast<const std::uint16_t*>(args.v);
  const std::int64_t query_bytes = args.dim / 32 * kTileBytes;
  const std::int64_t weight_bytes = tile_blocks(job.tile) * kTileBytes;
  for (std::int64_t first = job.begin; first < job.end; first += job.tile) {
    const std::int64_t count = std::min(job.tile, job.end - first);
    const std::int64_t whole = count / kBlock, blocks = tile_blocks(count), rest = count % kBlock;
    configure(16);
    for (std::int64_t kv = 0; kv < args.kv_heads; ++kv) {
      const std::uint16_t* const rows = k + first * args.k_seq_stride + kv * args.k_head_stride;
      const std::uint16_t* const after = rows + whole * kBlock * args.k_seq_stride;
      if (rest > 0) pad_tail(after, args.k_seq_stride, rest, args.dim, work.tail);
      for (std::int64_t i = 0; i < deal.blocks; ++i) {
        const std::int64_t block = kv * deal.blocks + i;
        const char* const query = reinterpret_cast<const char*>(job.query) + block * query_bytes;
        const std::int64_t fetch = i == 0 ? kBlock / kStreams / 2 : 0;
        for (std::int64_t b = 0; b < whole; ++b) {
          score_block(rows + b * kBlock * args.k_seq_stride, args.k_seq_stride, query, args.dim,
                      work.scores + b * kBlock * kMostHeads, ahead, fetch);
        }
        if (rest > 0) {
          score_block(work.tail, args.dim, query, args.dim, work.scores + whole * kBlock * kMostHeads, ahead,
                      fetch);
          std::fill(work.scores + count * kMostHeads, work.scores + blocks * kBlock * kMostHeads,
                    -std::numeric_limits<float>::infinity());
        }
        weigh_scores(work.scores, blocks, scale, deal.heads, args.dim, work.max + block * kMostHeads,
                     work.sum + block * kMostHeads, job.acc + block * deal.heads * args.dim,
                     work.weights + block * weight_bytes, ahead, i == 0 ? 1 : 0);
      }
    }
    configure(deal.heads);
    for (std::int64_t kv = 0; kv < args.kv_heads; ++kv) {
      Values values{v + first * args.v_seq_stride + kv * args.v_head_stride, args.v_seq_stride, whole,
                    nullptr, args.dim};
      if (rest > 0) {
        pad_tail(values.rows + whole * kBlock * args.v_seq_stride, args.v_seq_stride, rest, args.dim,
                 work.tail);
        values.tail = work.tail;
      }
      for (std::int64_t i = 0; i < deal.blocks; ++i) {
        const std::int64_t block = kv * deal.blocks + i;
        const char* const weights = work.weights + block * weight_bytes;
        float* const acc = job.acc + block * deal.heads * args.dim;
        for (std::int64_t d = 0; d < args.dim; d += 64) {
          const std::int64_t fetch = i == 0 && d == 0 ? 1 : 0;
          if (args.dim - d >= 64) {
            add_weighted<2>(values, weights, d, args.dim, acc, work.pairs, ahead, fetch);
          } else {
            add_weighted<1>(values, weights, d, args.dim, acc, work.pairs, ahead, fetch);
          }
        }
      }
    }
  }
  release_tiles();
  for (std::int64_t h = 0; h < args.heads; ++h) {
    const std::int64_t lane = h / deal.heads * kMostHeads + h % deal.heads;
    job.max[h] = work.max[lane];
    job.sum[h] = work.sum[lane];
  }
}

// Undoes the order of pair_rows.
void reorder(const DecodeArgs& args, float* row) {
  float ordered[32];
  for (std::int64_t d = 0; d < args.dim; d += 32) {
    for (std::int64_t i = 0; i < 32; ++i) ordered[i] = row[d + (i & 4) * 4 + i / 8 * 4 + (i & 3)];
    std::copy(ordered, ordered + 32, row + d);
  }
}

FDBENCH_AMX_CODE void merge(const MergeJob& job) {
  const DecodeArgs& args = *job.args;
  for (std::int64_t h = job.head_begin; h < job.head_end; ++h) {
    float max = -std::numeric_limits<float>::infinity();
    for (std::int64_t s = 0; s < job.splits; ++s) max = std::max(max, job.max[s * args.heads + h]);
    float sum = 0.0f;
    std::fill(job.row, job.row + args.dim, 0.0f);
    for (std::int64_t s = 0; s < job.splits; ++s) {
      const float weight = power_of_two(job.max[s * args.heads + h] - max);
      sum += weight * job.sum[s * args.heads + h];
      const float* const acc = job.acc + (s * args.heads + h) * args.dim;
      for (std::int64_t d = 0; d < args.dim; ++d) job.row[d] += weight * acc[d];
    }
    reorder(args, job.row);
    auto* const o = static_cast<std::uint16_t*>(args.o) + h * args.o_head_stride;
    for (std::int64_t d = 0; d < args.dim; ++d) o[d] = float_to_bf16(job.row[d] / sum);
    if (args.lse) args.lse[h] = (max + std::log2(sum)) * kLn2;
  }
}

bool cpu_has_tiles() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (!__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx)) return false;
  constexpr unsigned kAmxBf16 = 1u << 22, kAmxTile = 1u << 24;
  return (edx & kAmxBf16) && (edx & kAmxTile) && __builtin_cpu_supports("avx512f") &&
         __builtin_cpu_supports("avx512bw");
}

}  // namespace

bool amx_usable() {
  // The kernel keeps tile state only for processes that ask (for all their threads).
  static const bool usable = [] {
    constexpr long kRequestPermission = 0x1023, kTileData = 18;
    return cpu_has_tiles() && syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
  }();
  return usable;
}

bool amx_applies(const DecodeArgs& args) {
  const std::int64_t group = args.heads / args.kv_heads;
  return args.dtype == Dtype::bf16 && group >= kLeastAmxGroup && group % deal_of(group).blocks == 0;
}

SplitKvKernels split_kv_amx() {
  return {load_query, run_chunk, merge};
}

}  // namespace fdbench::cpu

#else

namespace fdbench::cpu {

bool amx_usable() {
  return false;
}
bool amx_applies(const DecodeArgs&) {
  return false;
}
SplitKvKernels split_kv_amx() {
  return split_kv_plain();
}

}  // namespace fdbench::cpu

#endif
