#include "core/decode_args.h"

namespace fdbench {

DecodeArgs dense_args(const Problem& problem) {
  DecodeArgs args;
  args.seq = problem.seq;
  args.heads = problem.heads;
  args.kv_heads = problem.kv_heads;
  args.dim = problem.dim;
  args.q_head_stride = problem.dim;
  args.k_seq_stride = problem.kv_heads * problem.dim;
  args.k_head_stride = problem.dim;
  args.v_seq_stride = problem.kv_heads * problem.dim;
  args.v_head_stride = problem.dim;
  args.o_head_stride = problem.dim;
  args.scale = problem.softmax_scale();
  args.dtype = problem.dtype;
  return args;
}

}  // namespace fdbench
