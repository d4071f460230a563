// The golden tables under tests/data/rules: whole numbers with a header line, one row a call of the upstream
// function.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <limits>
#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace fdbench::rules {

struct GoldenRow {
  std::size_t line = 0;  // in the file, from 1
  std::map<std::string, std::int64_t> cells;

  std::int64_t operator[](const std::string& column) const { return cells.at(column); }
  bool flag(const std::string& column) const { return cells.at(column) != 0; }
};

inline std::vector<std::string> split_line(const std::string& line) {
  std::vector<std::string> parts;
  std::istringstream in(line);
  for (std::string part; std::getline(in, part, ',');) parts.push_back(part);
  return parts;
}

inline std::vector<GoldenRow> read_golden(const std::string& name) {
  std::vector<GoldenRow> rows;
  std::ifstream in(std::string(FDBENCH_TEST_DATA) + "/rules/" + name);
  std::string line;
  EXPECT_TRUE(std::getline(in, line)) << "no table " << name;
  const std::vector<std::string> header = split_line(line);
  for (std::size_t number = 2; std::getline(in, line); ++number) {
    const std::vector<std::string> cells = split_line(line);
    EXPECT_EQ(cells.size(), header.size()) << name << ":" << number;
    GoldenRow row{.line = number, .cells = {}};
    for (std::size_t i = 0; i < cells.size() && i < header.size(); ++i)
      row.cells[header[i]] = std::stoll(cells[i]);
    rows.push_back(row);
  }
  return rows;
}

// Whether a value that upstream keeps in an int is past it.
inline bool past_32_bits(std::int64_t value) {
  return value > std::numeric_limits<std::int32_t>::max() || value < std::numeric_limits<std::int32_t>::min();
}

// Lines whose row overflows upstream: there the table is not the reference. None does in today's tables.
using Lines = std::vector<std::size_t>;
constexpr std::size_t kGoldenRows = 400;

}  // namespace fdbench::rules
