// What to compute: attention of one new token over a KV cache.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace fdbench {

enum class Dtype { bf16, fp16 };

std::string_view to_string(Dtype dtype);
std::optional<Dtype> parse_dtype(std::string_view text);

// Bytes of one element.
constexpr std::int64_t element_bytes(Dtype) {
  return 2;
}

// o[h, :] = softmax(scale * q[h, :] . k[:, h / group, :]) v[:, h / group, :]
// q, o: [heads, dim]; k, v: [seq, kv_heads, dim]; scale = 1 / sqrt(dim) unless `scale` says otherwise.
struct Problem {
  std::int64_t seq = 0;       // KV tokens; 0 is a legal library input (o = 0, lse = -inf)
  std::int64_t heads = 0;     // query heads
  std::int64_t kv_heads = 0;  // divides heads
  std::int64_t dim = 0;       // head dimension, the same for K and V
  Dtype dtype = Dtype::bf16;
  std::optional<float> scale;  // softmax scale; absent means 1 / sqrt(dim)

  std::int64_t group() const { return heads / kv_heads; }
  float softmax_scale() const;

  // Elements and bytes of one tensor.
  std::int64_t q_elements() const { return heads * dim; }
  std::int64_t kv_elements() const { return seq * kv_heads * dim; }  // of K, and again of V
  std::int64_t q_bytes() const { return q_elements() * element_bytes(dtype); }
  std::int64_t kv_bytes() const { return kv_elements() * element_bytes(dtype); }

  // The bytes that count for bandwidth: Q + K + V + O, once each.
  std::int64_t logical_bytes() const { return 2 * q_bytes() + 2 * kv_bytes(); }

  bool operator==(const Problem&) const = default;
};

// Why the extents make no problem (a sentence that names the extent), or nothing when they do: positive
// heads, kv_heads and dim, kv_heads dividing heads, seq >= 0, and every byte count within 2^62.
std::optional<std::string> invalid_reason(const Problem& problem);

// Whether every plan's workspace is within 2^62 bytes, however it is cut. Few KV heads keep the tensors
// small, and not the partial results.
bool has_countable_plans(const Problem& problem);

// "seq=8192/heads=32/kv_heads=8/dim=128/bf16": the shape's part of a result id.
std::string shape_id(const Problem& problem);

}  // namespace fdbench
