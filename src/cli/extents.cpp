#include "cli/extents.h"

#include <charconv>
#include <utility>

#include "core/error.h"

namespace fdbench::cli {

namespace {

constexpr std::string_view kForms = "8192, a list 1024,8192, or a range 1024:131072*2 or 4096:16384:4096";

class ExtentParser {
 public:
  // `given`: the flag and what was typed, which begin every message.
  ExtentParser(std::string given, std::string_view text) : given_(std::move(given)), text_(text) {}

  std::vector<std::int64_t> parse() {
    std::size_t begin = 0;
    while (true) {
      const std::size_t comma = text_.find(',', begin);
      element(text_.substr(begin, comma == std::string_view::npos ? comma : comma - begin));
      if (comma == std::string_view::npos) return std::move(values_);
      begin = comma + 1;
    }
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { throw usage_error(given_ + ": " + what); }

  std::int64_t number(std::string_view digits) const {
    if (digits.empty()) fail("a number is missing; give " + std::string(kForms));
    std::int64_t value = 0;
    const char* end = digits.data() + digits.size();
    const auto [stop, error] = std::from_chars(digits.data(), end, value);
    if (error == std::errc::result_out_of_range) fail("'" + std::string(digits) + "' is too large");
    if (error != std::errc() || stop != end) {
      fail("'" + std::string(digits) + "' is not a whole number; give " + std::string(kForms));
    }
    if (value < 1) fail("must be at least 1, not " + std::string(digits));
    return value;
  }

  void add(std::int64_t value) {
    if (values_.size() == kMaxExtents) fail("more than " + std::to_string(kMaxExtents) + " values");
    values_.push_back(value);
  }

  void element(std::string_view part) {
    const std::size_t colon = part.find(':');
    if (colon == std::string_view::npos) return add(number(part));
    const std::int64_t first = number(part.substr(0, colon));
    const std::string_view rest = part.substr(colon + 1);
    const std::size_t mark = rest.find_first_of(":*");
    const std::int64_t last = number(rest.substr(0, mark));
    if (first > last)
      fail("the range starts above its end: " + std::to_string(first) + " > " + std::to_string(last));
    if (mark == std::string_view::npos) {
      fail("the range has no step; write " + std::to_string(first) + ":" + std::to_string(last) + "*2 or " +
           std::to_string(first) + ":" + std::to_string(last) + ":" + std::to_string(first));
    }
    const std::int64_t step = number(rest.substr(mark + 1));
    if (rest[mark] == '*' && step < 2) fail("the factor of a range must be at least 2");
    for (std::int64_t value = first;;) {
      add(value);
      // Compared this way round, nothing overflows.
      if (rest[mark] == '*' ? value > last / step : value > last - step) break;
      value = rest[mark] == '*' ? value * step : value + step;
    }
  }

  std::string given_;
  std::string_view text_;
  std::vector<std::int64_t> values_;
};

}  // namespace

std::vector<std::int64_t> parse_extents(std::string_view flag, std::string_view text) {
  return ExtentParser(std::string(flag) + " " + std::string(text), text).parse();
}

AxisValues parse_axis(std::string_view flag, std::string_view text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0) {
    throw usage_error(std::string(flag) + " " + std::string(text) +
                      ": give NAME=VALUES, chunk=64:4096*2 say");
  }
  const std::string given = std::string(flag) + " " + std::string(text);
  return {std::string(text.substr(0, equals)), ExtentParser(given, text.substr(equals + 1)).parse()};
}

}  // namespace fdbench::cli
