// Results as CSV (RFC 4180): a header, then one row a result, the same columns whatever its status, units in
// the headers; docs/results.md has them all. Nothing where there is no value. Numbers in full precision,
// lines end in CR LF.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/result_record.h"

namespace fdbench::io {

std::string to_csv(const ResultFile& file);

std::vector<std::string_view> csv_columns();

// `text` as one field: quoted where it holds a comma, a quote or a line break.
std::string csv_field(std::string_view text);

}  // namespace fdbench::io
