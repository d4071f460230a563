// The shapes that flags make. What is refused: tests/cli/bad_input_test.py.
#include "cli/shape_options.h"

#include <gtest/gtest.h>

#include <vector>

namespace fdbench::cli {
namespace {

TEST(Shapes, Defaults) {
  ShapeOptions options;
  options.seq = "8192";
  EXPECT_EQ(options.problems(), (std::vector{Problem{8192, 32, 32, 128, Dtype::bf16, {}}}));
  options.heads = "40";
  options.dtype = "fp16";
  options.dim = "64";
  EXPECT_EQ(options.problems(), (std::vector{Problem{8192, 40, 40, 64, Dtype::fp16, {}}}));
}

TEST(Shapes, CrossProductSeqFastest) {
  ShapeOptions options;
  options.seq = "1,2";
  options.heads = "4,8";
  options.kv_heads = "1,4";
  const auto shape = [](std::int64_t seq, std::int64_t heads, std::int64_t kv_heads) {
    return Problem{seq, heads, kv_heads, 128, Dtype::bf16, {}};
  };
  EXPECT_EQ(options.problems(),
            (std::vector{shape(1, 4, 1), shape(2, 4, 1), shape(1, 4, 4), shape(2, 4, 4), shape(1, 8, 1),
                         shape(2, 8, 1), shape(1, 8, 4), shape(2, 8, 4)}));
}

TEST(Shapes, NoneTwice) {
  ShapeOptions options;
  options.seq = "64,64:256*2,128";
  EXPECT_EQ(options.problems().size(), 3u);
}

TEST(Shapes, OfTheDefaultSuite) {
  const ShapeOptions nothing;
  EXPECT_FALSE(nothing.problems().empty());
  ShapeOptions named;
  named.suite = "default";
  EXPECT_EQ(named.problems(), nothing.problems());
}

}  // namespace
}  // namespace fdbench::cli
