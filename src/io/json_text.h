// Inside io only: JSON values as text.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace fdbench::io {

// The shortest decimal text that reads back as the same double; without an exponent from 1e-5 up to 1e17.
// `value` is finite.
std::string number_text(double value);

// `text` as a JSON string, quotes included. Bytes that are not UTF-8 become U+FFFD.
std::string json_string(std::string_view text);

// Pretty: whatever fits within `width` columns stands on one line, the rest is indented by two. A line feed
// ends it.
std::string pretty_text(const nlohmann::ordered_json& value, std::size_t width = 110);

// All on one line, no line feed at its end.
std::string line_text(const nlohmann::ordered_json& value);

// null where `value` is not finite: JSON has no NaN and no infinity.
nlohmann::ordered_json number_or_null(double value);
// null where `text` is empty.
nlohmann::ordered_json text_or_null(const std::string& text);

}  // namespace fdbench::io
