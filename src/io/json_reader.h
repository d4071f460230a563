// Inside io only: JSON from outside, read with errors that say where and what would be right.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "core/error.h"

namespace fdbench::io {

// What is being read, for messages.
struct Source {
  std::string name;         // the file, as the user named it
  std::string expected;     // "a fdbench.result/1.x file"
  Exit exit = Exit::usage;  // what an error becomes
  std::size_t max_bytes = std::size_t{1} << 24;
};

inline constexpr std::size_t kMaxJsonDepth = 64;

// The whole of `text` as one JSON value. Throws Error with Source::exit, one line, "name:line:column: ..."
// for syntax: truncated or empty text, NaN, numbers that no double holds, text that is not UTF-8, nesting
// past kMaxJsonDepth, a key given twice, more than max_bytes.
nlohmann::json parse_json(std::string_view text, const Source& source);

bool has_control(std::string_view text);

// `text` fit for a message: on one line, at most `limit` bytes.
std::string excerpt(std::string_view text, std::size_t limit = 40);

// A value and the path to it ("results[3].time_ns.median"). Lives on the stack, below its parent. Every
// accessor throws Error, "name: path must be ..., not ...".
class Cursor {
 public:
  Cursor(const nlohmann::json& root, const Source& source) : node_(&root), source_(&source) {}

  Cursor at(const char* key) const&;                   // must be there
  std::optional<Cursor> find(const char* key) const&;  // nothing when absent or null
  Cursor item(std::size_t index) const&;
  // A child points to its parent: name the parent first.
  Cursor at(const char*) const&& = delete;
  std::optional<Cursor> find(const char*) const&& = delete;
  Cursor item(std::size_t) const&& = delete;
  std::size_t size() const;  // of an array

  bool is_array() const { return node_->is_array(); }
  bool is_string() const { return node_->is_string(); }
  bool is_null() const { return node_->is_null(); }
  const nlohmann::json& node() const { return *node_; }

  void object() const;  // must be one
  std::int64_t integer(std::int64_t lo = std::numeric_limits<std::int64_t>::min(),
                       std::int64_t hi = std::numeric_limits<std::int64_t>::max()) const;
  int small_integer(int lo = std::numeric_limits<int>::min()) const;
  std::uint64_t unsigned_integer() const;
  double number() const;
  double number_at_least(double lo) const;
  bool boolean() const;
  const std::string& text() const;
  const std::string& word() const;  // shown in tables and messages, a line each: without control characters

  // No other keys than these: for files that people write, where a mistyped key must not pass unseen.
  void only(std::initializer_list<std::string_view> keys) const;

  // "name: path `complaint`"
  [[noreturn]] void fail(const std::string& complaint) const;
  // "name: path must be `what`, not <the value>"
  [[noreturn]] void must_be(const std::string& what) const;

 private:
  Cursor(const nlohmann::json& node, const Cursor& parent, const char* key, std::size_t index)
      : node_(&node), source_(parent.source_), parent_(&parent), key_(key), index_(index) {}
  std::string path() const;

  const nlohmann::json* node_;
  const Source* source_;
  const Cursor* parent_ = nullptr;
  const char* key_ = nullptr;  // null: an array's item
  std::size_t index_ = 0;
};

// Holds the schema field to `family`/1.x, "fdbench.result" say; other versions and other files are refused.
void check_schema(const Cursor& root, std::string_view family);

}  // namespace fdbench::io
