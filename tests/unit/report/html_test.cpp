#include "report/html.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "report/markup.h"

namespace fdbench::report {
namespace {

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) ++n;
  return n;
}

ResultRecord timed(const std::string& variant, Role role, std::int64_t seq, double ns) {
  ResultRecord row;
  row.variant = variant;
  row.role = role;
  row.problem = {seq, 8, 8, 64, Dtype::bf16, std::nullopt};
  row.bytes = row.problem.logical_bytes();
  TimeSummary time;
  time.n = 6;
  time.min = ns * 0.9;
  time.q1 = time.median = time.q3 = ns;
  time.max = ns * 1.1;
  time.ci95 = Bounds{ns * 0.98, ns * 1.02};
  row.time = time;
  row.bytes_per_s = static_cast<double>(row.bytes) / (ns * 1e-9);
  return row;
}

std::string page_of(const std::vector<ResultFile>& files, std::vector<RuleChoice> rules = {}) {
  ReportInput input;
  input.files = files;
  input.names.assign(files.size(), "results.json");
  input.rules = std::move(rules);
  return html_report(input);
}

TEST(Escaped, LeavesNothingThatIsMarkup) {
  EXPECT_EQ(escaped("<a href=\"x\">'&'"), "&lt;a href=&quot;x&quot;&gt;&#39;&amp;&#39;");
  EXPECT_EQ(escaped(std::string("a\0b\x1b", 4)),
            "a\xEF\xBF\xBD"
            "b\xEF\xBF\xBD");
  EXPECT_EQ(escaped("\xC3\xA9 \xC3"), "\xC3\xA9 \xEF\xBF\xBD");
}

TEST(Html, TextOfFilesIsEscapedEverywhere) {
  const std::string evil = "</script><script>alert(1)</script>";
  ResultFile file;
  file.run.device.name = file.run.tool.flags = file.run.host.cpu = evil;
  file.run.argv = {evil};
  for (const std::int64_t seq : {64, 128}) {
    ResultRecord row = timed(evil, Role::candidate, seq, 1e4);
    row.flags = {evil};
    row.reason = row.source = evil;
    row.roof_share = row.speedup = 0.5;
    row.tuning.set(evil, seq);
    file.results.push_back(row);
    row.tuning.set(evil, 2 * seq);
    file.results.push_back(row);
  }
  const std::string page = page_of({file}, {{0, evil, file.results[0].problem, evil, 64}});
  EXPECT_EQ(count(page, "<script"), 1u);
  EXPECT_EQ(count(page, "</script"), 1u);
  EXPECT_GT(count(page, "&lt;script&gt;alert(1)"), 10u);
}

TEST(Html, AMarkARow) {
  ResultFile file;
  for (const std::int64_t seq : {64, 128, 256}) {
    file.results.push_back(timed("roof", Role::roof, seq, 9e3));
    file.results.push_back(timed("mine", Role::candidate, seq, 1e4));
  }
  file.results.back().status = Status::failed;
  file.results.back().reason = "it threw";
  const std::string page = page_of({file});
  EXPECT_EQ(count(page, "class=\"m pt\""), 5u);  // the failed row is not in the picture
  EXPECT_EQ(count(page, "<tr id=\"r"), 6u);
  EXPECT_NE(page.find("it threw"), std::string::npos);
}

TEST(Html, NoRows) {
  EXPECT_NE(page_of({ResultFile{}}).find("The files hold no row"), std::string::npos);
}

TEST(SweepMaps, BestTieSetAndCostOfAChunk) {
  std::vector<ResultRecord> rows;
  const double ns[] = {1030, 1000, 1500};
  for (int i = 0; i < 3; ++i) {
    rows.push_back(timed("mine", Role::candidate, 64, ns[i]));
    rows.back().tuning.set("chunk", 64 << i);
  }
  const auto maps = sweep_maps_of(rows, 0);
  ASSERT_EQ(maps.size(), 1u);
  ASSERT_EQ(maps[0].cells.size(), 3u);
  EXPECT_TRUE(maps[0].cells[1].is_best);
  EXPECT_TRUE(maps[0].cells[0].tied);  // 1009 <= 1020
  EXPECT_FALSE(maps[0].cells[2].tied);
  const auto cost = rule_cost(maps[0], 200);
  ASSERT_TRUE(cost);
  EXPECT_EQ(cost->measured_chunk, 256);
  EXPECT_NEAR(cost->loss, 0.5, 1e-12);
}

TEST(Html, FiveHundredRowsWithSamplesStayUnderTwoMegabytes) {
  ResultFile file;
  for (int i = 0; i < 500; ++i) {
    ResultRecord row =
        timed("variant_with_a_long_name_" + std::to_string(i % 5), Role::candidate, 1024 << (i % 7), 1e5 + i);
    row.problem.heads = row.problem.kv_heads = 1 + i / 35;
    row.roof_share = 0.9;
    row.roof_share_ci95 = Bounds{0.89, 0.91};
    row.speedup = 1.5;
    row.speedup_ci95 = Bounds{1.4, 1.6};
    for (int s = 0; s < 1000; ++s)
      row.time->samples.push_back({s / 100, s, 1e5 + 37.0 * (s % 101), 1900.0, s == 500});
    file.results.push_back(row);
  }
  const std::string page = page_of({file});
  EXPECT_LT(page.size(), std::size_t{2'000'000});
  EXPECT_NE(page.find("one in 2 is shown"), std::string::npos);
}

}  // namespace
}  // namespace fdbench::report
