// The table's figures: digits, units, remarks. Whole tables: tests/cli/golden_test.py.
#include "report/table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

namespace fdbench::report {
namespace {

ResultRecord measured(double median_ns) {
  ResultRecord row;
  row.problem = {8192, 32, 8, 128, Dtype::bf16, {}};
  row.variant = "a_variant";
  row.bytes = row.problem.logical_bytes();
  row.time.emplace();
  row.time->n = 7;
  row.time->median = median_ns;
  row.time->ci95 = Bounds{median_ns * 0.99, median_ns * 1.01};
  row.time->stop = "converged";
  row.bytes_per_s = static_cast<double>(row.bytes) / (median_ns * 1e-9);
  return row;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}
// The row's line in a table of that row alone.
std::string line(const ResultRecord& row) {
  return lines_of(shape_table({&row, 1}, {})).at(2);
}
bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(Table, MicrosecondsHaveFourDigits) {
  EXPECT_TRUE(holds(line(measured(5.0)), " 0.005 "));
  EXPECT_TRUE(holds(line(measured(1234.0)), " 1.234 "));
  EXPECT_TRUE(holds(line(measured(35678.0)), " 35.68 "));
  EXPECT_TRUE(holds(line(measured(467890.0)), " 467.9 "));
  EXPECT_TRUE(holds(line(measured(4678901.0)), " 4679 "));
  EXPECT_TRUE(holds(line(measured(12345678901.0)), " 12345679 "));
}

TEST(Table, HeadingNamesTheShapeAndItsBytes) {
  const ResultRecord row = measured(1000.0);
  EXPECT_EQ(lines_of(shape_table({&row, 1}, {})).at(0),
            "seq 8192, heads 32/8, dim 128, bf16, 33.6 MB of Q, K, V and O");
}

TEST(Table, Bandwidth) {
  ResultRecord row = measured(1000.0);
  row.bytes_per_s = 99.99e9;
  EXPECT_TRUE(holds(line(row), " 99.99 "));
  row.bytes_per_s = 4567.8e9;
  EXPECT_TRUE(holds(line(row), " 4568 "));
}

TEST(Table, SharesAndErrors) {
  ResultRecord row = measured(1000.0);
  row.roof_share = 0.98765;
  row.speedup = 1.236;
  row.accuracy = Accuracy{0.00165, 0.1, {}, "an oracle"};
  EXPECT_TRUE(holds(line(row), " 98.8 % "));
  EXPECT_TRUE(holds(line(row), " 1.24x "));
  EXPECT_TRUE(holds(line(row), " 1.6e-03 ") || holds(line(row), " 1.7e-03 "));
  row.accuracy->rel_l2 = std::numeric_limits<double>::infinity();
  EXPECT_TRUE(holds(line(row), " not finite "));
}

// fdbench verify times nothing: each row says what was found.
TEST(Table, Verdicts) {
  ResultRecord right = measured(1000.0);
  right.time.reset();
  right.accuracy = Accuracy{0.00165, 0.1, 4e-7, "an oracle"};
  right.tolerance = 0.004;
  ResultRecord wrong = right;
  wrong.status = Status::incorrect;
  wrong.reason = "too far";
  ResultRecord roof = right;
  roof.accuracy.reset();
  const ResultRecord rows[] = {right, wrong, roof};
  const auto lines = lines_of(shape_table(rows, {false, Shown::verdicts}));
  ASSERT_EQ(lines.size(), 5u);
  EXPECT_TRUE(holds(lines[1], "verdict  ")) << lines[1];
  EXPECT_FALSE(holds(lines[1], "median"));
  EXPECT_EQ(lines[1].back(), 't') << "no blanks at the end";
  EXPECT_TRUE(holds(lines[2], " ok ")) << lines[2];
  EXPECT_TRUE(holds(lines[2], " 1.6e-03    4.0e-03 ")) << lines[2];
  EXPECT_TRUE(holds(lines[2], " 1.0e-01 ")) << lines[2];
  EXPECT_TRUE(holds(lines[2], " 4.0e-07  an oracle")) << lines[2];
  EXPECT_TRUE(holds(lines[3], " incorrect ")) << lines[3];
  EXPECT_TRUE(holds(lines[3], "too far")) << lines[3];
  EXPECT_TRUE(holds(lines[4], " no output ")) << lines[4];

  ResultFile file;
  file.results = {right};
  file.run.command = "verify";
  EXPECT_TRUE(holds(markdown_tables(file), "| verdict |"));
  file.run.command = "run";
  EXPECT_FALSE(holds(markdown_tables(file), "| verdict |"));
}

TEST(Table, ARowWithoutFiguresSaysWhy) {
  ResultRecord row;
  row.problem = {16, 2, 2, 64, Dtype::bf16, {}};
  row.variant = "a_variant";
  row.status = Status::timeout;
  row.reason = "no sign of life for 60 s";
  EXPECT_TRUE(holds(line(row), "  timeout: no sign of life for 60 s"));
  row.status = Status::unsupported;
  row.reason = "dim 96";
  EXPECT_TRUE(holds(line(row), "  unsupported: dim 96"));
}

TEST(Table, Remarks) {
  ResultRecord row = measured(1000.0);
  row.flags = {"throttled", "above_roof"};
  row.time->set_aside = 3;
  row.time->stop = "max_time";
  EXPECT_TRUE(holds(line(row), "  throttled, above_roof, 3 set aside, max_time"));
}

TEST(Table, TuningStandsBesideTheName) {
  ResultRecord row = measured(1000.0);
  row.tuning.set("chunk", 512);
  row.tuning.set("axis", 2);
  EXPECT_TRUE(holds(line(row), "a_variant axis=2,chunk=512 "));
}

TEST(Table, ColumnsStandUnderTheirNames) {
  std::vector<ResultRecord> rows{measured(1000.0), measured(123456789.0)};
  rows[1].variant = "a_variant_with_a_long_name";
  rows[1].speedup = 1.0;
  const auto lines = lines_of(shape_table(rows, {}));
  ASSERT_EQ(lines.size(), 4u);
  // Right-aligned: the header's last letter and the figures' last digits share a column.
  const std::size_t end = lines[1].find("median us") + std::string("median us").size();
  EXPECT_EQ(lines[2].substr(end - 5, 5), "1.000");
  EXPECT_EQ(lines[3].substr(end - 6, 6), "123457");
  for (const std::string& text : lines) EXPECT_NE(text.back(), ' ');
}

TEST(Table, ColoursOnlyWhereWanted) {
  ResultRecord row = measured(1000.0);
  row.status = Status::failed;
  row.reason = "why";
  EXPECT_FALSE(holds(shape_table({&row, 1}, {false}), "\x1b"));
  EXPECT_TRUE(holds(shape_table({&row, 1}, {true}), "\x1b[31mfailed: why\x1b[0m"));
}

TEST(Table, OfNothingIsNothing) {
  EXPECT_EQ(shape_table({}, {}), "");
  EXPECT_EQ(markdown_tables({}), "");
}

TEST(Markdown, EveryLineHasAsManyCells) {
  ResultFile file;
  file.results = {measured(1000.0), measured(2000.0)};
  file.results[1].reason = "a|b||c";
  file.results[1].status = Status::failed;
  const std::string text = markdown_tables(file);
  EXPECT_TRUE(holds(text, "a\\|b\\|\\|c"));
  for (std::string one : lines_of(text)) {
    if (one.empty() || one[0] != '|') continue;
    for (std::size_t at; (at = one.find("\\|")) != std::string::npos;) one.erase(at, 2);
    EXPECT_EQ(std::count(one.begin(), one.end(), '|'), 11) << one;
  }
}

TEST(Shapes, StandTogether) {
  std::vector<ResultRecord> rows{measured(1.0), measured(2.0), measured(3.0)};
  rows[2].problem.seq = 1;
  std::vector<std::size_t> sizes;
  for_each_shape(rows, [&](std::span<const ResultRecord> shape) { sizes.push_back(shape.size()); });
  EXPECT_EQ(sizes, (std::vector<std::size_t>{2, 1}));
}

TEST(DeviceLine, SaysWhichAndWhy) {
  RunInfo run;
  run.tool.version = "1.2.3";
  run.device.kind = BackendKind::cuda;
  run.device.index = 1;
  run.device.name = "A GPU";
  run.device.cc = 90;
  run.device.sms = 132;
  run.device.l2_bytes = 60'000'000;
  EXPECT_EQ(device_line(run, "asked for"),
            "fdbench 1.2.3: cuda A GPU (cuda:1, sm_90, 132 multiprocessors, 60 MB L2): asked for");
  run.device.kind = BackendKind::cpu;
  run.device.name = "A CPU";
  run.device.sms = 8;
  EXPECT_EQ(device_line(run, "no CUDA device: none"),
            "fdbench 1.2.3: cpu A CPU (8 cores, 60 MB last-level cache): no CUDA device: none");
}

}  // namespace
}  // namespace fdbench::report
