#include "report/markup.h"

#include <fmt/core.h>

#include <cmath>

namespace fdbench::report {

namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

// Bytes of the well-formed UTF-8 sequence at the front; 0 where there is none.
std::size_t sequence_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = byte(0);
  if (lead < 0x80) return 1;
  const std::size_t length = lead >= 0xC2 && lead < 0xE0   ? 2
                             : lead >= 0xE0 && lead < 0xF0 ? 3
                             : lead >= 0xF0 && lead < 0xF5 ? 4
                                                           : 0;
  if (length == 0 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  // Overlong, surrogates, past U+10FFFF.
  const unsigned second = byte(1);
  if ((lead == 0xE0 && second < 0xA0) || (lead == 0xED && second > 0x9F) || (lead == 0xF0 && second < 0x90) ||
      (lead == 0xF4 && second > 0x8F)) {
    return 0;
  }
  return length;
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = sequence_length(text);
    const char c = text.front();
    if (length == 0 ||
        (length == 1 && ((static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t') || c == 0x7F))) {
      out += kReplacement;
      text.remove_prefix(1);
      continue;
    }
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += text.substr(0, length);
    }
    text.remove_prefix(length);
  }
  return out;
}

std::string clipped(std::string_view text, std::size_t characters) {
  std::size_t at = 0, seen = 0;
  while (at < text.size()) {
    const std::size_t length = sequence_length(text.substr(at));
    if (++seen > characters) return std::string(text.substr(0, at)) + "\u2026";
    at += length == 0 ? 1 : length;
  }
  return std::string(text);
}

std::string coord(double value) {
  std::string text = fmt::format("{:.1f}", value);
  if (text.size() > 2 && text.compare(text.size() - 2, 2, ".0") == 0) text.resize(text.size() - 2);
  return text == "-0" ? "0" : text;
}

std::string microseconds(double ns) {
  const double us = ns / 1e3;
  const int decimals = us >= 1000.0 ? 0 : us >= 100.0 ? 1 : us >= 10.0 ? 2 : 3;
  return fmt::format("{:.{}f}", us, decimals);
}

std::string gigabytes_per_s(double bytes_per_s) {
  return fmt::format("{:.{}f}", bytes_per_s / 1e9, bytes_per_s < 100e9 ? 2 : 0);
}

std::string percent(double share) {
  return fmt::format("{:.1f} %", share * 100.0);
}

std::string signed_percent(double share) {
  return fmt::format("{:+.1f} %", share * 100.0);
}

std::string size_text(std::int64_t bytes) {
  const double value = static_cast<double>(bytes);
  if (value >= 1e9) return fmt::format("{:.2f} GB", value / 1e9);
  if (value >= 1e6) return fmt::format("{:.1f} MB", value / 1e6);
  return fmt::format("{:.1f} kB", value / 1e3);
}

std::vector<double> ticks_to(double top, int count) {
  if (!(top > 0.0) || !std::isfinite(top)) return {0.0, 1.0};
  const double raw = top / count;
  const double unit = std::pow(10.0, std::floor(std::log10(raw)));
  const double ratio = raw / unit;
  const double step = unit * (ratio <= 1.0 ? 1.0 : ratio <= 2.0 ? 2.0 : ratio <= 5.0 ? 5.0 : 10.0);
  std::vector<double> ticks{0.0};
  for (int i = 1; ticks.back() < top * (1.0 - 1e-9); ++i) ticks.push_back(step * i);
  return ticks;
}

std::string length_text(std::int64_t tokens) {
  if (tokens >= 1024 * 1024 && tokens % (1024 * 1024) == 0)
    return std::to_string(tokens / (1024 * 1024)) + "M";
  if (tokens >= 1024 && tokens % 1024 == 0) return std::to_string(tokens / 1024) + "k";
  return std::to_string(tokens);
}

}  // namespace fdbench::report
