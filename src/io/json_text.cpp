#include "io/json_text.h"

#include <charconv>
#include <cmath>
#include <limits>

namespace fdbench::io {

namespace {

using Json = nlohmann::ordered_json;

std::string scalar_text(const Json& value) {
  if (value.is_string()) return json_string(value.get_ref<const std::string&>());
  if (!value.is_number_float()) return value.dump();
  const double number = value.get<double>();
  return std::isfinite(number) ? number_text(number) : "null";
}

// Appends `value` on one line; false, with `out` in any state, once it is longer than `limit`.
bool append_line(const Json& value, std::size_t limit, std::string& out) {
  if (!value.is_structured()) {
    out += scalar_text(value);
    return out.size() <= limit;
  }
  out += value.is_object() ? '{' : '[';
  bool first = true;
  for (const auto& [key, item] : value.items()) {
    if (!first) out += ", ";
    first = false;
    if (value.is_object()) out += json_string(key) + ": ";
    if (!append_line(item, limit, out)) return false;
  }
  out += value.is_object() ? '}' : ']';
  return out.size() <= limit;
}

// `column`: where the value begins, with room for the comma behind it.
void append_pretty(const Json& value, std::size_t width, std::size_t indent, std::size_t column,
                   std::string& out) {
  std::string line;
  if (append_line(value, column + 1 < width ? width - column - 1 : 0, line) || !value.is_structured()) {
    out += line;
    return;
  }
  out += value.is_object() ? "{\n" : "[\n";
  const std::string margin(indent + 2, ' ');
  bool first = true;
  for (const auto& [key, item] : value.items()) {
    if (!first) out += ",\n";
    first = false;
    const std::string head = value.is_object() ? margin + json_string(key) + ": " : margin;
    out += head;
    append_pretty(item, width, indent + 2, head.size(), out);
  }
  out += '\n' + std::string(indent, ' ');
  out += value.is_object() ? '}' : ']';
}

}  // namespace

std::string number_text(double value) {
  if (value == 0.0) return std::signbit(value) ? "-0.0" : "0";
  const double magnitude = std::abs(value);
  const bool plain = magnitude >= 1e-5 && magnitude < 1e17;
  char buffer[64];
  const auto end = plain ? std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::fixed)
                         : std::to_chars(buffer, buffer + sizeof buffer, value);
  return {buffer, end.ptr};
}

std::string json_string(std::string_view text) {
  return Json(std::string(text)).dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string pretty_text(const Json& value, std::size_t width) {
  std::string out;
  append_pretty(value, width, 0, 0, out);
  out += '\n';
  return out;
}

std::string line_text(const Json& value) {
  std::string out;
  append_line(value, std::numeric_limits<std::size_t>::max(), out);
  return out;
}

Json number_or_null(double value) {
  return std::isfinite(value) ? Json(value) : Json(nullptr);
}

Json text_or_null(const std::string& text) {
  return text.empty() ? Json(nullptr) : Json(text);
}

}  // namespace fdbench::io
