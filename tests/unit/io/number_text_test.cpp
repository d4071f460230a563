#include "io/json_text.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <random>
#include <string>

namespace fdbench::io {
namespace {

TEST(NumberText, IsPlainInTheRangeOfMeasurements) {
  EXPECT_EQ(number_text(0.0), "0");
  EXPECT_EQ(number_text(-0.0), "-0.0");
  EXPECT_EQ(number_text(100000.0), "100000");
  EXPECT_EQ(number_text(4.8e12), "4800000000000");
  EXPECT_EQ(number_text(0.00165), "0.00165");
  EXPECT_EQ(number_text(0.1 + 0.2), "0.30000000000000004");
  EXPECT_EQ(number_text(-1.5), "-1.5");
  EXPECT_EQ(number_text(1.5e-7), "1.5e-07");
  EXPECT_EQ(number_text(5e-324), "5e-324");
  EXPECT_EQ(number_text(std::numeric_limits<double>::max()), "1.7976931348623157e+308");
}

TEST(NumberText, EveryDoubleReadsBackAndNoShorterTextWould) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 100'000; ++i) {
    const double value = std::bit_cast<double>(random());
    if (!std::isfinite(value)) continue;
    const std::string text = number_text(value);
    ASSERT_EQ(std::strtod(text.c_str(), nullptr), value) << text;
  }
  for (int i = 0; i < 20'000; ++i) {
    const double value = static_cast<double>(random() % 100'000'000) / 1000.0;
    char printed[64];
    std::snprintf(printed, sizeof printed, "%.3f", value);
    ASSERT_LE(number_text(value).size(), std::string(printed).size());
  }
}

TEST(PrettyText, BreaksOnlyWhatDoesNotFit) {
  const nlohmann::ordered_json value = {
      {"b", {1, 2, 3}}, {"a", {{"long", std::string(30, 'x')}, {"empty", nlohmann::ordered_json::array()}}}};
  EXPECT_EQ(pretty_text(value, 110),
            "{\"b\": [1, 2, 3], \"a\": {\"long\": \"" + std::string(30, 'x') + "\", \"empty\": []}}\n");
  EXPECT_EQ(pretty_text(value, 44), "{\n  \"b\": [1, 2, 3],\n  \"a\": {\n    \"long\": \"" +
                                        std::string(30, 'x') + "\",\n    \"empty\": []\n  }\n}\n");
}

}  // namespace
}  // namespace fdbench::io
