#include "core/problem.h"

#include <cmath>

namespace fdbench {

std::string_view to_string(Dtype dtype) {
  switch (dtype) {
    case Dtype::bf16:
      return "bf16";
    case Dtype::fp16:
      return "fp16";
  }
  return "?";
}

std::optional<Dtype> parse_dtype(std::string_view text) {
  if (text == "bf16") return Dtype::bf16;
  if (text == "fp16") return Dtype::fp16;
  return std::nullopt;
}

float Problem::softmax_scale() const {
  return scale ? *scale : static_cast<float>(1.0 / std::sqrt(static_cast<double>(dim)));
}

std::optional<std::string> invalid_reason(const Problem& p) {
  if (p.heads <= 0) return "heads must be at least 1, not " + std::to_string(p.heads);
  if (p.kv_heads <= 0) return "kv_heads must be at least 1, not " + std::to_string(p.kv_heads);
  if (p.dim <= 0) return "dim must be at least 1, not " + std::to_string(p.dim);
  if (p.seq < 0) return "seq must not be negative, not " + std::to_string(p.seq);
  if (p.heads % p.kv_heads != 0) {
    return "heads " + std::to_string(p.heads) + " is not a multiple of kv_heads " +
           std::to_string(p.kv_heads);
  }
  const long double bytes = 4.0L * static_cast<long double>(element_bytes(p.dtype)) *
                            static_cast<long double>(p.dim) *
                            (static_cast<long double>(p.heads) +
                             static_cast<long double>(p.seq) * static_cast<long double>(p.kv_heads));
  if (bytes > 0x1p62L) return "the tensors exceed 2^62 bytes";
  return std::nullopt;
}

bool has_countable_plans(const Problem& p) {
  // At most one partial result a token, or a thread; 64: rows padded to 16, warps that keep float64 (oracle).
  return 64.0L * static_cast<long double>(p.heads) * (static_cast<long double>(p.seq) + 1024.0L) *
             (static_cast<long double>(p.dim) + 64.0L) <=
         0x1p62L;
}

std::string shape_id(const Problem& p) {
  return "seq=" + std::to_string(p.seq) + "/heads=" + std::to_string(p.heads) +
         "/kv_heads=" + std::to_string(p.kv_heads) + "/dim=" + std::to_string(p.dim) + "/" +
         std::string(to_string(p.dtype));
}

}  // namespace fdbench
