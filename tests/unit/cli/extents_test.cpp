// Lists and ranges of extents. What is refused, and in which words: tests/cli/bad_input_test.py.
#include "cli/extents.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "core/error.h"

namespace fdbench::cli {
namespace {

using Values = std::vector<std::int64_t>;
constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

Values extents(const std::string& text) {
  return parse_extents("--seq", text);
}

std::string refusal(const std::string& text) {
  try {
    extents(text);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Exit::usage);
    return error.what();
  }
  return "nothing";
}

TEST(Extents, OneAndLists) {
  EXPECT_EQ(extents("8192"), Values{8192});
  EXPECT_EQ(extents("1"), Values{1});
  EXPECT_EQ(extents("1024,8192"), (Values{1024, 8192}));
  EXPECT_EQ(extents("3,1,2"), (Values{3, 1, 2}));  // in the order given
  EXPECT_EQ(extents(std::to_string(kMost)), Values{kMost});
  EXPECT_EQ(extents("007"), Values{7});
}

TEST(Extents, Factors) {
  EXPECT_EQ(extents("1024:131072*2"), (Values{1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072}));
  EXPECT_EQ(extents("1:30*3"), (Values{1, 3, 9, 27}));  // the end only where it is met
  EXPECT_EQ(extents("5:5*2"), Values{5});
  EXPECT_EQ(extents("5:9*2"), Values{5});
}

TEST(Extents, Steps) {
  EXPECT_EQ(extents("4096:16384:4096"), (Values{4096, 8192, 12288, 16384}));
  EXPECT_EQ(extents("1:10:4"), (Values{1, 5, 9}));
  EXPECT_EQ(extents("5:5:1"), Values{5});
}

TEST(Extents, Mixtures) {
  EXPECT_EQ(extents("1,4:16*2,100:120:10,7"), (Values{1, 4, 8, 16, 100, 110, 120, 7}));
}

TEST(Extents, RangesUpToTheLastNumberEnd) {
  const std::string most = std::to_string(kMost);
  EXPECT_EQ(extents("1:" + most + "*2").size(), 63u);
  EXPECT_EQ(extents("1:" + most + "*2").back(), std::int64_t{1} << 62);
  EXPECT_EQ(extents(std::to_string(kMost - 2) + ":" + most + ":1"), (Values{kMost - 2, kMost - 1, kMost}));
  EXPECT_EQ(extents(most + ":" + most + ":" + most), Values{kMost});
  EXPECT_EQ(extents("1:" + most + ":" + most), Values{1});
}

TEST(Extents, SoManyAndNoMore) {
  EXPECT_EQ(extents("1:4096:1").size(), kMaxExtents);
  EXPECT_EQ(refusal("1:4097:1"), "--seq 1:4097:1: more than 4096 values");
  EXPECT_NE(refusal("1:4096:1,5").find("more than 4096 values"), std::string::npos);
}

TEST(Extents, EveryRefusalBeginsWithFlagAndText) {
  for (const char* text :
       {"", "0", "-1", "x", "8192,", "4096:1024", "1:10", "1:8*1", "1:8:0", "1e9x", "99999999999999999999"}) {
    EXPECT_EQ(refusal(text).rfind("--seq " + std::string(text) + ": ", 0), 0u) << text;
  }
}

TEST(Axis, NameAndValues) {
  const AxisValues axis = parse_axis("-a", "chunk=64:256*2,1000");
  EXPECT_EQ(axis.name, "chunk");
  EXPECT_EQ(axis.values, (Values{64, 128, 256, 1000}));
  for (const char* text : {"", "chunk", "=4", "chunk=", "chunk=x"})
    EXPECT_THROW(parse_axis("-a", text), Error) << text;
}

}  // namespace
}  // namespace fdbench::cli
