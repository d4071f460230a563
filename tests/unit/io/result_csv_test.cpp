#include "io/result_csv.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "example_result.h"

namespace fdbench {
namespace {

using Row = std::vector<std::string>;

// By the grammar of RFC 4180, strictly: fields, quoted or not, commas, CR LF.
std::vector<Row> rows_of(const std::string& text) {
  std::vector<Row> rows(1);
  std::string field;
  std::size_t i = 0;
  while (i < text.size()) {
    if (field.empty() && text[i] == '"') {
      for (++i; i < text.size(); ++i) {
        if (text[i] == '"' && (i + 1 == text.size() || text[i + 1] != '"')) break;
        if (text[i] == '"') ++i;
        field += text[i];
      }
      ++i;
    } else {
      while (i < text.size() && text[i] != ',' && text[i] != '\r') {
        if (text[i] == '"' || text[i] == '\n') ADD_FAILURE() << "byte " << i << " stands unquoted";
        field += text[i++];
      }
    }
    rows.back().push_back(field);
    field.clear();
    if (i < text.size() && text[i] == ',') {
      ++i;
      if (i == text.size() || text[i] == '\r') rows.back().emplace_back();
    }
    if (text.compare(i, 2, "\r\n") == 0) {
      i += 2;
      if (i < text.size()) rows.emplace_back();
    }
  }
  return rows;
}

TEST(ResultCsv, TextIsTheGolden) {
  const std::string text = io::to_csv(io_test::example_result());
  EXPECT_EQ(text, io_test::golden("results.csv", text));
}

TEST(ResultCsv, EveryRowHasEveryColumnWhateverItsStatus) {
  const ResultFile file = io_test::example_result();
  const std::vector<Row> rows = rows_of(io::to_csv(file));
  ASSERT_EQ(rows.size(), 1 + file.results.size());
  const std::vector<std::string_view> columns = io::csv_columns();
  EXPECT_EQ(rows[0], Row(columns.begin(), columns.end()));
  for (const Row& row : rows) EXPECT_EQ(row.size(), columns.size());
}

TEST(ResultCsv, NoResultsIsAHeaderAlone) {
  EXPECT_EQ(rows_of(io::to_csv({})).size(), 1u);
}

TEST(ResultCsv, TextThatNeedsQuotesSurvives) {
  ResultFile file = io_test::example_result();
  const std::string awkward = "a, \"b\"\r\nc\n\rd, ";
  file.results[1].reason = awkward;
  file.run.tool.version = std::string(1, '"');
  const std::vector<Row> rows = rows_of(io::to_csv(file));
  EXPECT_EQ(rows.at(2).at(4), awkward);
  EXPECT_EQ(rows.at(0).at(4), "reason");
  ASSERT_EQ(rows[2].size(), rows[0].size());
  EXPECT_EQ(rows[2][rows[2].size() - 3], "\"");
}

TEST(ResultCsv, NumbersKeepTheirFullPrecision) {
  ResultFile file = io_test::example_result();
  file.results[0].speedup = 0.1 + 0.2;
  file.results[0].time->median = 1e5;
  file.results[0].roof_share = std::numeric_limits<double>::infinity();
  const std::vector<Row> rows = rows_of(io::to_csv(file));
  const auto value = [&](const std::string& column) {
    for (std::size_t i = 0; i < rows[0].size(); ++i) {
      if (rows[0][i] == column) return rows.at(1).at(i);
    }
    return std::string("no such column");
  };
  EXPECT_EQ(value("speedup"), "0.30000000000000004");
  EXPECT_EQ(value("median_ns"), "100000");
  EXPECT_EQ(value("roof_share"), "");
  EXPECT_EQ(value("bytes"), "33570816");
}

}  // namespace
}  // namespace fdbench
