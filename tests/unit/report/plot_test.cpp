#include "report/plot.h"

#include <gtest/gtest.h>

#include <vector>

namespace fdbench::report {
namespace {

ResultRecord row(Role role, std::int64_t seq, double gigabytes_per_s) {
  ResultRecord r;
  r.variant = role == Role::roof ? "roof" : "mine";
  r.role = role;
  r.problem = {seq, 8, 8, 64, Dtype::bf16, std::nullopt};
  r.bytes = 1'000'000'000;
  r.time = TimeSummary{};
  r.time->median = 1e9 / gigabytes_per_s;
  return r;
}

TEST(Plot, LinesRiseToTheirFigures) {
  const std::vector<ResultRecord> rows = {row(Role::roof, 1024, 40), row(Role::candidate, 1024, 0.001),
                                          row(Role::roof, 4096, 40), row(Role::candidate, 4096, 20)};
  const std::string text = plot_text(rows, {40, 5});
  EXPECT_EQ(text,
            "8 heads, dim 64, bf16\n"
            "     40 |=============================\n"
            "        |\n"
            "     20 |                     .......a\n"
            "        |       ..............\n"
            "      0 |a......\n"
            "        +-----------------------------\n"
            "        1k                          4k\n"
            "         GB/s against sequence length, log scale\n"
            "  = roof (roof)\n"
            "  a mine\n");
}

TEST(Plot, NothingForOneLength) {
  const std::vector<ResultRecord> rows = {row(Role::roof, 1024, 40)};
  EXPECT_EQ(plot_text(rows, {}), "");
}

}  // namespace
}  // namespace fdbench::report
