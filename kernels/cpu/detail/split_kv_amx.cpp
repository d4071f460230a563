// cpu_split_kv on Intel's matrix tiles (AMX-BF16), for grouped heads over bf16: with several query heads to a
// row of K the vector units hardly multiply as fast as the memory delivers; tiles can.
//
// One visit takes 16 tokens of one KV head and up to 16 of its query heads. Scores are [tokens, heads] =
// K [16 tokens, 32 dims] x Q^T, summed over dims. Softmax runs over a tile of tokens with heads, and several
// tokens of few heads, as lanes. Weights are rounded to bf16 (their sum too is of the rounded ones),
// transposed to [heads, tokens], and multiplied by V as it lies in memory. They are made just before the V
// rows they weigh: in one go they would hold up the asking for rows. A pair of dims of V shares a word: an
// infinity or NaN in one makes the other NaN, too. Tiles take subnormal bf16 (below 2^-126) for 0.
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
#include <utility>

#include "cpu/detail/amx_softmax.h"
#include "cpu/detail/power_of_two.h"
#include "cpu/detail/rows.h"
#include "cpu/detail/touch.h"

namespace fdbench::cpu {

namespace {

constexpr std::int64_t kLead = 2;  // visits that rows are asked for ahead of their use

// Tile registers, as the two passes use them. Macros: the compiler's intrinsics paste the number into the
// instruction's text.
#define FDBENCH_TILE_SCORES 0
#define FDBENCH_TILE_KEYS0 2
#define FDBENCH_TILE_KEYS1 3
#define FDBENCH_TILE_QUERY0 4
#define FDBENCH_TILE_QUERY1 5
#define FDBENCH_TILE_QUERY2 6
#define FDBENCH_TILE_QUERY3 7
#define FDBENCH_TILE_OUT0 0
#define FDBENCH_TILE_OUT1 1
#define FDBENCH_TILE_OUT2 2
#define FDBENCH_TILE_OUT3 3
#define FDBENCH_TILE_WEIGHTS 4
#define FDBENCH_TILE_VALUES0 5
#define FDBENCH_TILE_VALUES1 6

// As ldtilecfg reads it.
struct alignas(64) TileConfig {
  std::uint8_t palette = 1;
  std::uint8_t start_row = 0;
  std::uint8_t reserved[14] = {};
  std::uint16_t row_bytes[16] = {};
  std::uint8_t rows[16] = {};
};
static_assert(sizeof(TileConfig) == 64);

// How the query heads of a KV head are dealt out: `blocks` blocks of `heads` each, which take `width` lanes.
struct Deal {
  std::int64_t blocks = 0;
  std::int64_t heads = 0;
  std::int64_t width = 0;
};

Deal deal_of(std::int64_t group) {
  const std::int64_t blocks = tile_blocks(group);
  const std::int64_t heads = group / blocks;
  return {blocks, heads, heads <= 4 ? 4 : heads <= 8 ? 8 : 16};
}

// Parts of ChunkJob::scores; each on a cache line.
struct Work {
  float* scores = nullptr;        // [kv_heads, blocks, units, 16, columns, width]
  float* max = nullptr;           // [kv_heads, blocks, columns, width]; columns alike
  float* sum = nullptr;           // likewise; columns to be added
  char* weights = nullptr;        // [kv_heads, blocks, columns] of [2, heads, 16 tokens] words
  std::uint16_t* tail = nullptr;  // [16, dim]: the last tokens, padded with zeros
};

// Floats of a tile's scores.
std::int64_t scores_of_block(const Deal& deal) {
  return round_up(kMostTileTokens, unit_of(deal.width)) * deal.width;
}

Work work_of(const ChunkJob& job, const Deal& deal) {
  Work work;
  const std::int64_t blocks = job.args->kv_heads * deal.blocks;
  float* at = job.scores;
  const auto take = [&](std::int64_t floats) {
    float* const part = at;
    at += floats;
    return part;
  };
  work.scores = take(blocks * scores_of_block(deal));
  work.max = take(blocks * kMostHeads);
  work.sum = take(blocks * kMostHeads);
  work.weights =
      reinterpret_cast<char*>(take(blocks * columns_of(deal.width) * weight_bytes(deal.heads) / 4));
  work.tail = reinterpret_cast<std::uint16_t*>(take(kVisitRows * job.args->dim / 2));
  return work;
}

// Q^T of each block of heads as tiles [dim / 32] of [16 pairs of dims, 16 heads, 2], heads beyond the block
// 0.
void load_query(const DecodeArgs& args, float* query) {
  const Deal deal = deal_of(args.heads / args.kv_heads);
  auto* out = reinterpret_cast<std::uint16_t*>(query);
  for (std::int64_t first = 0; first < args.heads; first += deal.heads) {
    std::memset(out, 0, static_cast<std::size_t>(args.dim / 32 * kTileBytes));
    for (std::int64_t h = 0; h < deal.heads; ++h) {
      const auto* const q = static_cast<const std::uint16_t*>(args.q) + (first + h) * args.q_head_stride;
      std::uint16_t* to = out + h * 2;
      for (std::int64_t d = 0; d < args.dim; d += 2, to += 2 * kMostHeads) std::memcpy(to, q + d, 4);
    }
    out += args.dim * kMostHeads;
  }
}

// Tile t of scores: column t % columns of unit t / columns.
constexpr std::int64_t score_place(std::int64_t tile, std::int64_t width) {
  const std::int64_t columns = columns_of(width);
  return tile / columns * kVisitRows * kMostHeads + tile % columns * width;
}

// Query tiles that stay in registers; with `tiles` 0 there are more than fit.
template <int tiles>
FDBENCH_AMX_CODE inline void load_query_tiles(const char* query) {
  if constexpr (tiles > 0) _tile_loadd(FDBENCH_TILE_QUERY0, query, kTileRowBytes);
  if constexpr (tiles > 1) _tile_loadd(FDBENCH_TILE_QUERY1, query + kTileBytes, kTileRowBytes);
  if constexpr (tiles > 2) _tile_loadd(FDBENCH_TILE_QUERY2, query + 2 * kTileBytes, kTileRowBytes);
  if constexpr (tiles > 3) _tile_loadd(FDBENCH_TILE_QUERY3, query + 3 * kTileBytes, kTileRowBytes);
}

#define FDBENCH_ADD_SCORES(query, keys)             \
  _tile_loadd(keys, k, row_bytes);                  \
  _tile_dpbf16ps(FDBENCH_TILE_SCORES, keys, query); \
  if (touches) touch.step();                        \
  k += kTileRowBytes

// Scores of 16 rows of K.
template <int tiles>
FDBENCH_AMX_CODE void score_rows(const char* k, std::int64_t row_bytes_apart, const char* query,
                                 bool load_query, std::int64_t dim, float* scores, Touch& touch,
                                 bool touches) {
  const auto row_bytes = static_cast<std::size_t>(row_bytes_apart);
  if (load_query) load_query_tiles<tiles>(query);
  _tile_zero(FDBENCH_TILE_SCORES);
  if constexpr (tiles == 0) {
    for (std::int64_t d = 0; d < dim; d += 32, query += kTileBytes) {
      _tile_loadd(FDBENCH_TILE_QUERY0, query, kTileRowBytes);
      FDBENCH_ADD_SCORES(FDBENCH_TILE_QUERY0, FDBENCH_TILE_KEYS0);
    }
  } else {
    FDBENCH_ADD_SCORES(FDBENCH_TILE_QUERY0, FDBENCH_TILE_KEYS0);
    if constexpr (tiles > 1) {
      FDBENCH_ADD_SCORES(FDBENCH_TILE_QUERY1, FDBENCH_TILE_KEYS1);
    }
    if constexpr (tiles > 2) {
      FDBENCH_ADD_SCORES(FDBENCH_TILE_QUERY2, FDBENCH_TILE_KEYS0);
    }
    if constexpr (tiles > 3) {
      FDBENCH_ADD_SCORES(FDBENCH_TILE_QUERY3, FDBENCH_TILE_KEYS1);
    }
  }
  _tile_stored(FDBENCH_TILE_SCORES, scores, kTileRowBytes);
}

#define FDBENCH_ADD_VALUES(out, values, at) \
  _tile_loadd(values, (at), row_bytes);     \
  _tile_dpbf16ps(out, FDBENCH_TILE_WEIGHTS, values)

template <int tiles>
FDBENCH_AMX_CODE inline void load_output(const float* acc, std::size_t acc_bytes) {
  _tile_loadd(FDBENCH_TILE_OUT0, acc, acc_bytes);
  if constexpr (tiles > 1) _tile_loadd(FDBENCH_TILE_OUT1, acc + 16, acc_bytes);
  if constexpr (tiles > 2) _tile_loadd(FDBENCH_TILE_OUT2, acc + 32, acc_bytes);
  if constexpr (tiles > 3) _tile_loadd(FDBENCH_TILE_OUT3, acc + 48, acc_bytes);
}
template <int tiles>
FDBENCH_AMX_CODE inline void store_output(float* acc, std::size_t acc_bytes) {
  _tile_stored(FDBENCH_TILE_OUT0, acc, acc_bytes);
  if constexpr (tiles > 1) _tile_stored(FDBENCH_TILE_OUT1, acc + 16, acc_bytes);
  if constexpr (tiles > 2) _tile_stored(FDBENCH_TILE_OUT2, acc + 32, acc_bytes);
  if constexpr (tiles > 3) _tile_stored(FDBENCH_TILE_OUT3, acc + 48, acc_bytes);
}

// acc[rows, 16 * tiles] += weights x V, 32 * tiles dims of 16 rows. A row of V is taken as it lies, a pair of
// dims a word: rows of weights that are 0 in the other half of each word pick the even dims or the odd ones.
// With one block of heads the sums stay in tiles from the first rows of a pass to the last.
template <int tiles>
FDBENCH_AMX_CODE void add_weighted(const char* v, std::int64_t row_bytes_apart, std::int64_t dim,
                                   const char* weights, float* acc, bool load, bool store, Touch& touch,
                                   bool touches) {
  const auto acc_bytes = static_cast<std::size_t>(dim * 2);
  const auto row_bytes = static_cast<std::size_t>(row_bytes_apart);
  if (load) load_output<tiles>(acc, acc_bytes);
  _tile_loadd(FDBENCH_TILE_WEIGHTS, weights, kTileRowBytes);
  FDBENCH_ADD_VALUES(FDBENCH_TILE_OUT0, FDBENCH_TILE_VALUES0, v);
  if (touches) touch.step();
  if constexpr (tiles > 1) {
    FDBENCH_ADD_VALUES(FDBENCH_TILE_OUT1, FDBENCH_TILE_VALUES1, v + kTileRowBytes);
  }
  if (touches && tiles > 1) touch.step();
  if constexpr (tiles > 2) {
    FDBENCH_ADD_VALUES(FDBENCH_TILE_OUT2, FDBENCH_TILE_VALUES0, v + 2 * kTileRowBytes);
  }
  if (touches && tiles > 2) touch.step();
  if constexpr (tiles > 3) {
    FDBENCH_ADD_VALUES(FDBENCH_TILE_OUT3, FDBENCH_TILE_VALUES1, v + 3 * kTileRowBytes);
  }
  if (touches && tiles > 3) touch.step();
  if (store) store_output<tiles>(acc, acc_bytes);
}

// The last `count` rows of a chunk, padded with zeros: what lies behind them may not be touched.
void pad_tail(const char* rows, std::int64_t row_bytes_apart, std::int64_t count, std::int64_t dim,
              std::uint16_t* tail) {
  std::memset(tail, 0, static_cast<std::size_t>(kVisitRows * dim * 2));
  for (std::int64_t t = 0; t < count; ++t)
    std::memcpy(tail + t * dim, rows + t * row_bytes_apart, static_cast<std::size_t>(dim * 2));
}

// Scores of padding, yet to be scaled, count for nothing.
void mask_scores(float* scores, float scale, std::int64_t count, std::int64_t padded, std::int64_t width) {
  const float masked = std::copysign(std::numeric_limits<float>::infinity(), -scale);
  for (std::int64_t t = count; t < padded; ++t) {
    float* const at = scores + score_place(t / kVisitRows, width) + t % kVisitRows * kMostHeads;
    std::fill(at, at + width, masked);
  }
}

FDBENCH_AMX_CODE void configure(const TileConfig& config) {
  // The intrinsic tells the compiler of the first word only; all of it must be in memory.
  asm volatile("" : : "r"(&config) : "memory");
  _tile_loadconfig(&config);
}

// Scores and Q^T have a column for each lane of a head.
TileConfig config_of_scores(const Deal& deal) {
  TileConfig config;
  for (int tile = 0; tile < 8; ++tile) {
    const bool keys = tile == FDBENCH_TILE_KEYS0 || tile == FDBENCH_TILE_KEYS1;
    config.row_bytes[tile] = static_cast<std::uint16_t>(keys ? kTileRowBytes : deal.width * 4);
    config.rows[tile] = kVisitRows;
  }
  return config;
}

// Output and weights have a row for each head, or two.
TileConfig config_of_output(const Deal& deal) {
  TileConfig config;
  for (int tile = 0; tile < 8; ++tile) {
    const std::int64_t rows = deal.width > 8 ? deal.heads : 2 * deal.heads;
    config.row_bytes[tile] = kTileRowBytes;
    config.rows[tile] = static_cast<std::uint8_t>(tile <= FDBENCH_TILE_WEIGHTS ? rows : kVisitRows);
  }
  return config;
}

FDBENCH_AMX_CODE void release_tiles() {
  _tile_release();
}

// 16 rows of V for all dims of one block of heads. More than 8 heads take the even and the odd dims one after
// the other, as a tile has 16 rows.
FDBENCH_AMX_CODE void add_rows(const char* v, std::int64_t row_bytes_apart, const Deal& deal,
                               std::int64_t dim, const char* weights, float* acc, bool load, bool store,
                               Touch& touch, bool touches) {
  for (std::int64_t part = 0; part < (deal.width > 8 ? 2 : 1); ++part) {
    const char* const w = weights + part * deal.heads * kTileRowBytes;
    float* const out = acc + part * deal.heads * dim / 2;
    for (std::int64_t d = 0; d < dim;) {
      const std::int64_t tiles = std::min<std::int64_t>(4, (dim - d) / 32);
      const auto add = tiles == 4 ? add_weighted<4> : tiles == 3 ? add_weighted<3> : add_weighted<2>;
      add(v + d * 2, row_bytes_apart, dim, w, out + d / 2, load, store, touch, touches && part == 0);
      d += 32 * tiles;
    }
  }
}

void run_chunk(const ChunkJob& job) {
  const DecodeArgs& args = *job.args;
  const Deal deal = deal_of(args.heads / args.kv_heads);
  const std::int64_t all_blocks = args.kv_heads * deal.blocks;
  const Work work = work_of(job, deal);
  // The least there is for 0: scores then differ by nothing, and masked ones stay infinite.
  const float scale = args.scale == 0.0f ? std::numeric_limits<float>::min() : args.scale * kLog2E;
  std::fill(work.max, work.max + all_blocks * kMostHeads, -std::numeric_limits<float>::infinity());
  std::fill(work.sum, work.sum + all_blocks * kMostHeads, 0.0f);
  std::fill(job.acc, job.acc + args.heads * args.dim, 0.0f);
  const std::int64_t unit = unit_of(deal.width), columns = columns_of(deal.width);
  const std::int64_t query_bytes = args.dim / 32 * kTileBytes;
  const std::int64_t block_scores = scores_of_block(deal), block_weights = columns * weight_bytes(deal.heads);
  const bool one_output = all_blocks == 1 && args.dim <= 128 && deal.width <= 8;
  const auto score = args.dim == 64    ? score_rows<2>
                     : args.dim == 96  ? score_rows<3>
                     : args.dim == 128 ? score_rows<4>
                                       : score_rows<0>;
  const auto raise = deal.width == 4 ? raise_max<4> : deal.width == 8 ? raise_max<8> : raise_max<16>;
  const auto weigh_unit = deal.width == 4 ? weigh<4> : deal.width == 8 ? weigh<8> : weigh<16>;
  const auto lanes_of = [&](std::int64_t b) {
    return Lanes{work.max + b * kMostHeads, work.sum + b * kMostHeads, job.acc + b * deal.heads * args.dim};
  };
  const TileConfig scores_config = config_of_scores(deal), output_config = config_of_output(deal);
  Touch touch(job);
  touch.steps(kLead * touch.lines());
  for (std::int64_t first = job.begin, count; first < job.end; first += count) {
    const std::int64_t stream = stream_rows(job.end - first);
    count = stream > 0 ? stream * kVisitRows : job.end - first;
    const std::int64_t visits = std::max<std::int64_t>(stream, 1);
    const std::int64_t lanes_padded = round_up(count, unit);
    // 16 rows for one KV head; those of the last visit, if too few, are copied.
    const auto rows_of = [&](const void* tensor, std::int64_t seq_stride, std::int64_t head_stride,
                             std::int64_t visit, std::int64_t kv) {
      const char* const at =
          static_cast<const char*>(tensor) + ((first + visit) * seq_stride + kv * head_stride) * 2;
      if (stream > 0) return std::pair(at, stream * seq_stride * 2);
      pad_tail(at, seq_stride * 2, count, args.dim, work.tail);
      return std::pair(reinterpret_cast<const char*>(work.tail), args.dim * 2);
    };
    configure(scores_config);
    for (std::int64_t visit = 0; visit < visits; ++visit) {
      for (std::int64_t b = 0; b < all_blocks; ++b) {
        const auto [rows, apart] =
            rows_of(args.k, args.k_seq_stride, args.k_head_stride, visit, b / deal.blocks);
        score(rows, apart, reinterpret_cast<const char*>(job.query) + b * query_bytes,
              visit == 0 || all_blocks > 1, args.dim,
              work.scores + b * block_scores + score_place(visit, deal.width), touch, b % deal.blocks == 0);
      }
    }
    for (std::int64_t b = 0; b < all_blocks; ++b) {
      float* const scores = work.scores + b * block_scores;
      mask_scores(scores, scale, count, lanes_padded, deal.width);
      raise(scores, lanes_padded / unit, scale, deal.heads, args.dim, lanes_of(b));
    }
    configure(output_config);
    for (std::int64_t visit = 0; visit < visits; ++visit) {
      for (std::int64_t b = 0; b < all_blocks; ++b) {
        const auto [rows, apart] =
            rows_of(args.v, args.v_seq_stride, args.v_head_stride, visit, b / deal.blocks);
        char* const weights = work.weights + b * block_weights;
        if (visit % columns == 0) {
          weigh_unit(work.scores + b * block_scores + score_place(visit, deal.width), scale, deal.heads,
                     lanes_of(b), weights);
        }
        add_rows(rows, apart, deal, args.dim, weights + visit % columns * weight_bytes(deal.heads),
                 job.acc + b * deal.heads * args.dim, !one_output || visit == 0,
                 !one_output || visit + 1 == visits, touch, b % deal.blocks == 0);
      }
    }
  }
  release_tiles();
  for (std::int64_t h = 0; h < args.heads; ++h) {
    const std::int64_t lane = h / deal.heads * kMostHeads + h % deal.heads;
    job.max[h] = work.max[lane];
    job.sum[h] = 0.0f;
    for (std::int64_t c = 0; c < columns; ++c) job.sum[h] += work.sum[lane + c * deal.width];
  }
}

// As float_to_bf16 (core/half.h), left in the upper half of each word.
FDBENCH_AMX_CODE inline __m512i round_to_bf16(__m512 x) {
  const __m512i bits = _mm512_castps_si512(x);
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  const __m512i rounded = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
  const __mmask16 nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
  const __m512i words = _mm512_mask_or_epi32(rounded, nan, bits, _mm512_set1_epi32(0x400000));
  return _mm512_and_si512(words, _mm512_set1_epi32(static_cast<int>(0xffff0000u)));
}

FDBENCH_AMX_CODE void merge(const MergeJob& job) {
  const DecodeArgs& args = *job.args;
  const Deal deal = deal_of(args.heads / args.kv_heads);
  const std::int64_t half = args.dim / 2;
  for (std::int64_t h = job.head_begin; h < job.head_end; ++h) {
    float max = -std::numeric_limits<float>::infinity();
    for (std::int64_t s = 0; s < job.splits; ++s) max = std::max(max, job.max[s * args.heads + h]);
    float sum = 0.0f;
    std::fill(job.row, job.row + args.dim, 0.0f);
    for (std::int64_t s = 0; s < job.splits; ++s) {
      const float weight = power_of_two(job.max[s * args.heads + h] - subtrahend(max));
      sum += weight * job.sum[s * args.heads + h];
      // Even dims, then odd ones, as Lanes::acc has them.
      const float* const block = job.acc + (s * args.heads + h / deal.heads * deal.heads) * args.dim;
      for (std::int64_t part = 0; part < 2; ++part) {
        const float* const acc = block + (part * deal.heads + h % deal.heads) * half;
        float* const row = job.row + part * half;
        for (std::int64_t d = 0; d < half; d += 16) {
          const __m512 so_far = _mm512_loadu_ps(row + d);
          _mm512_storeu_ps(row + d,
                           _mm512_fmadd_ps(_mm512_set1_ps(weight), _mm512_loadu_ps(acc + d), so_far));
        }
      }
    }
    auto* const o = static_cast<std::uint16_t*>(args.o) + h * args.o_head_stride;
    const __m512 by = _mm512_set1_ps(sum);
    for (std::int64_t d = 0; d < half; d += 16) {
      const __m512i even = round_to_bf16(_mm512_div_ps(_mm512_loadu_ps(job.row + d), by));
      const __m512i odd = round_to_bf16(_mm512_div_ps(_mm512_loadu_ps(job.row + half + d), by));
      _mm512_storeu_si512(o + 2 * d, _mm512_or_si512(odd, _mm512_srli_epi32(even, 16)));
    }
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

SplitKvKernels split_kv_amx() {
  return {load_query, run_chunk, merge};
}

}  // namespace fdbench::cpu

#else

namespace fdbench::cpu {

bool amx_usable() {
  return false;
}
SplitKvKernels split_kv_amx() {
  return split_kv_plain();
}

}  // namespace fdbench::cpu

#endif
