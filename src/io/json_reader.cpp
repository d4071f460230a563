#include "io/json_reader.h"

#include <algorithm>
#include <cctype>
#include <utility>
#include <vector>

#include "io/json_text.h"

namespace fdbench::io {

namespace {

using Json = nlohmann::json;

// "3:14" of the byte at `offset`, both from 1; columns count bytes.
std::string line_and_column(std::string_view text, std::size_t offset) {
  const std::string_view before = text.substr(0, std::min(offset, text.size()));
  const auto lines = std::count(before.begin(), before.end(), '\n');
  const std::size_t newline = before.rfind('\n');
  const std::size_t column = before.size() - (newline == std::string_view::npos ? 0 : newline + 1);
  return std::to_string(lines + 1) + ':' + std::to_string(column + 1);
}

bool in_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '+' || c == '-' || c == '_';
}

// NaN, nan, Infinity, -inf, ...
bool is_not_finite(std::string_view word) {
  if (!word.empty() && (word[0] == '-' || word[0] == '+')) word.remove_prefix(1);
  std::string lower(word.substr(0, 3));
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower == "nan" || lower == "inf";
}

// Builds the value from the parser's events, so that depth and repeated keys are caught as they come.
class Builder : public nlohmann::json_sax<Json> {
 public:
  Builder(std::string_view text, const Source& source) : text_(text), source_(source) {}

  Json take() { return std::move(root_); }

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t&) override { return add(value); }
  bool string(string_t& value) override { return add(std::move(value)); }
  bool binary(binary_t&) override { return false; }  // never in JSON text
  bool start_object(std::size_t) override { return open(Json::object()); }
  bool start_array(std::size_t) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t& name) override {
    if (open_.back()->contains(name)) {
      throw Error(source_.exit, source_.name + ": the key " + excerpt(json_string(name)) +
                                    " stands twice in one object; keep one of them");
    }
    key_ = std::move(name);
    return true;
  }

  // `position` counts the bytes read, the end of the text as one more.
  bool parse_error(std::size_t position, const std::string& token, const Json::exception& cause) override {
    if (position > text_.size()) {
      fail(text_.size(), "the text ends in the middle of a value (truncated?)");
    }
    // The parser's token may begin long before what it stumbled over: show the word or string that ends here.
    const std::size_t last = position - std::min<std::size_t>(position, 1);
    std::size_t start = last, end = last + 1;
    if (in_word(text_[last])) {
      while (start > 0 && in_word(text_[start - 1])) --start;
      while (end < text_.size() && in_word(text_[end])) ++end;
    } else if (text_[last] == '"' && token.size() <= position) {
      start = position - token.size();
    }
    const std::string_view bad = text_.substr(start, end - start);
    if (dynamic_cast<const Json::out_of_range*>(&cause)) {
      fail(start, "the number " + excerpt(bad) + " is beyond what a double holds");
    }
    std::string what = "not JSON here: unexpected " + excerpt(json_string(bad));
    const std::size_t previous = text_.substr(0, start).find_last_not_of(" \t\r\n");
    if (is_not_finite(bad)) {
      what += " (JSON has no NaN and no infinity: write null)";
    } else if (previous != std::string_view::npos && text_[previous] == ',' && (bad == "]" || bad == "}")) {
      what += " (no comma before it)";
    } else if (bad == "'") {
      what += " (strings take double quotes)";
    } else if (bad == "/") {
      what += " (JSON has no comments)";
    }
    fail(start, what);
  }

 private:
  template <class Value>
  Json* place(Value&& value) {
    if (open_.empty()) {
      root_ = std::forward<Value>(value);
      return &root_;
    }
    Json& parent = *open_.back();
    if (parent.is_array()) {
      parent.push_back(std::forward<Value>(value));
      return &parent.back();
    }
    return &(parent[key_] = std::forward<Value>(value));
  }
  template <class Value>
  bool add(Value&& value) {
    place(std::forward<Value>(value));
    return true;
  }
  bool open(Json&& empty) {
    if (open_.size() == kMaxJsonDepth) {
      throw Error(source_.exit, source_.name + ": nested more than " + std::to_string(kMaxJsonDepth) +
                                    " deep; expected " + source_.expected);
    }
    open_.push_back(place(std::move(empty)));
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }
  [[noreturn]] void fail(std::size_t offset, const std::string& what) const {
    throw Error(source_.exit, source_.name + ':' + line_and_column(text_, offset) + ": " + what +
                                  "; expected " + source_.expected);
  }

  std::string_view text_;
  const Source& source_;
  Json root_;
  std::vector<Json*> open_;  // an array's items move only while it is the innermost
  std::string key_;
};

std::string description(const Json& value) {
  if (value.is_object()) return "an object";
  if (value.is_array())
    return value.empty() ? "an empty array" : "an array of " + std::to_string(value.size());
  if (value.is_null()) return "null";
  if (value.is_string()) return "the string " + excerpt(json_string(value.get_ref<const std::string&>()));
  if (value.is_number_float()) return number_text(value.get<double>());
  return value.dump();
}

bool is_control(char c) {
  return static_cast<unsigned char>(c) < ' ' || c == 0x7f;
}

}  // namespace

bool has_control(std::string_view text) {
  return std::any_of(text.begin(), text.end(), is_control);
}

std::string excerpt(std::string_view text, std::size_t limit) {
  std::size_t end = std::min(text.size(), limit);
  if (end < text.size()) {
    // Not in the middle of a character.
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0u) == 0x80u) --end;
  }
  std::string out;
  for (const char c : text.substr(0, end)) {
    out += is_control(c) ? ' ' : c;
  }
  if (end < text.size()) out += "...";
  return out;
}

Json parse_json(std::string_view text, const Source& source) {
  if (text.size() > source.max_bytes) {
    throw Error(source.exit, source.name + ": " + std::to_string(text.size()) + " bytes, of which at most " +
                                 std::to_string(source.max_bytes) + " are read; expected " + source.expected);
  }
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) {
    throw Error(source.exit, source.name + ": empty; expected " + source.expected);
  }
  Builder builder(text, source);
  Json::sax_parse(text.begin(), text.end(), &builder);
  return builder.take();
}

Cursor Cursor::at(const char* key) const& {
  object();
  const auto found = node_->find(key);
  if (found == node_->end()) {
    fail(std::string(parent_ ? "" : "the file ") + "has no \"" + key + "\"; expected " + source_->expected);
  }
  return {*found, *this, key, 0};
}

std::optional<Cursor> Cursor::find(const char* key) const& {
  object();
  const auto found = node_->find(key);
  if (found == node_->end() || found->is_null()) return std::nullopt;
  return Cursor(*found, *this, key, 0);
}

Cursor Cursor::item(std::size_t index) const& {
  return {(*node_)[index], *this, nullptr, index};
}

std::size_t Cursor::size() const {
  if (!node_->is_array()) must_be("an array");
  return node_->size();
}

void Cursor::object() const {
  if (!node_->is_object()) must_be("an object");
}

std::int64_t Cursor::integer(std::int64_t lo, std::int64_t hi) const {
  const bool fits =
      node_->is_number_integer() &&
      (!node_->is_number_unsigned() || node_->get<std::uint64_t>() <= static_cast<std::uint64_t>(INT64_MAX));
  const std::int64_t value = fits ? node_->get<std::int64_t>() : 0;
  if (fits && value >= lo && value <= hi) return value;
  std::string what = "an integer";
  if (lo != INT64_MIN) what += " of at least " + std::to_string(lo);
  if (hi != INT64_MAX) what += (lo != INT64_MIN ? " and at most " : " of at most ") + std::to_string(hi);
  must_be(what);
}

int Cursor::small_integer(int lo) const {
  return static_cast<int>(integer(lo, std::numeric_limits<int>::max()));
}

std::uint64_t Cursor::unsigned_integer() const {
  if (!node_->is_number_integer() || (!node_->is_number_unsigned() && node_->get<std::int64_t>() < 0)) {
    must_be("an integer from 0 to 2^64 - 1");
  }
  return node_->get<std::uint64_t>();
}

double Cursor::number() const {
  if (!node_->is_number()) must_be("a number");
  return node_->get<double>();
}

double Cursor::number_at_least(double lo) const {
  if (!node_->is_number() || node_->get<double>() < lo) must_be("a number of at least " + number_text(lo));
  return node_->get<double>();
}

bool Cursor::boolean() const {
  if (!node_->is_boolean()) must_be("true or false");
  return node_->get<bool>();
}

const std::string& Cursor::text() const {
  if (!node_->is_string()) must_be("a string");
  return node_->get_ref<const std::string&>();
}

const std::string& Cursor::word() const {
  const std::string& word = text();
  if (has_control(word)) must_be("without control characters");
  return word;
}

void Cursor::only(std::initializer_list<std::string_view> keys) const {
  object();
  for (const auto& [key, value] : node_->items()) {
    if (std::find(keys.begin(), keys.end(), key) != keys.end()) continue;
    std::string known;
    for (const std::string_view name : keys) known += (known.empty() ? "" : ", ") + std::string(name);
    fail(std::string(parent_ ? "" : "the file ") + "has an unknown key " + excerpt(json_string(key)) +
         "; the keys are " + known);
  }
}

void Cursor::fail(const std::string& complaint) const {
  const std::string where = path();
  throw Error(source_->exit, source_->name + ": " + (where.empty() ? "" : where + ' ') + complaint);
}

void Cursor::must_be(const std::string& what) const {
  fail(std::string(parent_ ? "" : "the file ") + "must be " + what + ", not " + description(*node_));
}

std::string Cursor::path() const {
  if (!parent_) return {};
  std::string path = parent_->path();
  if (!key_) return path + '[' + std::to_string(index_) + ']';
  return path.empty() ? key_ : path + '.' + key_;
}

void check_schema(const Cursor& root, std::string_view family) {
  const std::string schema = root.at("schema").text();
  const std::string prefix = std::string(family) + "/1.";
  const bool known = schema.size() > prefix.size() && schema.size() < prefix.size() + 6 &&
                     schema.compare(0, prefix.size(), prefix) == 0 &&
                     std::all_of(schema.begin() + static_cast<std::ptrdiff_t>(prefix.size()), schema.end(),
                                 [](unsigned char c) { return std::isdigit(c) != 0; });
  if (!known) root.at("schema").must_be(prefix + "x (all that this build reads)");
}

}  // namespace fdbench::io
