#include "io/suite.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <system_error>
#include <utility>

#include "core/error.h"
#include "io/file.h"
#include "io/json_reader.h"
#include "io/json_text.h"
#include "io/record_json.h"

namespace fdbench::io {

namespace {

namespace fs = std::filesystem;

// One value or a list of at least one.
template <class Value, class Read>
std::vector<Value> read_one_or_more(const Cursor& from, Read read) {
  if (!from.is_array()) return {read(from)};
  std::vector<Value> out;
  for (std::size_t i = 0; i < from.size(); ++i) {
    const Cursor item = from.item(i);
    out.push_back(read(item));
  }
  if (out.empty()) from.must_be("a value or a list of at least one");
  return out;
}

std::vector<std::int64_t> read_extents(const Cursor& from) {
  return read_one_or_more<std::int64_t>(from, [](const Cursor& value) { return value.integer(1); });
}

class ProblemList {
 public:
  // All combinations of one entry.
  void add(const Cursor& entry) {
    entry.only({"seq", "heads", "kv_heads", "dim", "dtype"});
    const auto seqs = read_extents(entry.at("seq"));
    const auto heads = read_extents(entry.at("heads"));
    const auto kv = entry.find("kv_heads");
    const auto kv_heads = kv ? read_extents(*kv) : std::vector<std::int64_t>{};
    const auto dim = entry.find("dim");
    const auto dims = dim ? read_extents(*dim) : std::vector<std::int64_t>{128};
    const auto type = entry.find("dtype");
    const auto dtypes = type ? read_one_or_more<Dtype>(*type, read_dtype) : std::vector<Dtype>{Dtype::bf16};
    for (const std::int64_t h : heads) {
      for (const std::int64_t k : kv ? kv_heads : std::vector<std::int64_t>{h}) {
        for (const std::int64_t d : dims) {
          for (const Dtype t : dtypes) {
            for (const std::int64_t s : seqs) add(entry, Problem{s, h, k, d, t, std::nullopt});
          }
        }
      }
    }
  }

  std::vector<Problem> take() { return std::move(problems_); }

 private:
  void add(const Cursor& entry, const Problem& problem) {
    if (const auto reason = invalid_reason(problem)) entry.fail("makes no problem: " + *reason);
    if (problems_.size() == kMaxSuiteProblems) {
      entry.fail("goes past the " + std::to_string(kMaxSuiteProblems) + " shapes that a suite may have");
    }
    if (!seen_.emplace(shape_id(problem), true).second) {
      entry.fail("repeats the shape " + shape_id(problem) + "; a suite has each once");
    }
    problems_.push_back(problem);
  }

  std::vector<Problem> problems_;
  std::map<std::string, bool> seen_;
};

bool is_path(const std::string& text) {
  return text.find('/') != std::string::npos || fs::path(text).extension() == ".json";
}

}  // namespace

Suite parse_suite(std::string_view text, const std::string& name) {
  const Source source{name, "a suite of schema fdbench.suite/1.x"};
  const nlohmann::json value = parse_json(text, source);
  const Cursor root(value, source);
  check_schema(root, "fdbench.suite");
  root.only({"schema", "name", "description", "problems"});
  Suite suite;
  suite.name = root.at("name").text();
  suite.description = text_or(root, "description");
  const Cursor problems = root.at("problems");
  if (problems.size() == 0) problems.must_be("a list of at least one shape");
  ProblemList list;
  for (std::size_t i = 0; i < problems.size(); ++i) {
    const Cursor entry = problems.item(i);
    list.add(entry);
  }
  suite.problems = list.take();
  return suite;
}

std::string to_json(const Suite& suite) {
  nlohmann::ordered_json problems = nlohmann::ordered_json::array();
  for (const Problem& problem : suite.problems) {
    problems.push_back({{"seq", problem.seq},
                        {"heads", problem.heads},
                        {"kv_heads", problem.kv_heads},
                        {"dim", problem.dim},
                        {"dtype", std::string(to_string(problem.dtype))}});
  }
  nlohmann::ordered_json out;
  out["schema"] = "fdbench.suite/1.0";
  out["name"] = suite.name;
  out["description"] = suite.description;
  out["problems"] = std::move(problems);
  return pretty_text(out);
}

Suite read_suite(const std::string& path) {
  return parse_suite(read_file(path), path);
}

Suite find_suite(const std::string& name_or_path, const std::vector<std::string>& directories) {
  if (is_path(name_or_path)) return read_suite(name_or_path);
  std::string names;
  for (const SuiteListing& listing : list_suites(directories)) {
    if (listing.name == name_or_path) return read_suite(listing.path);
    names += (names.empty() ? "" : ", ") + listing.name;
  }
  throw usage_error("--suite " + name_or_path + ": no such suite; " +
                    (names.empty() ? "none is installed" : "there are " + names) + "; or name a FILE.json");
}

std::vector<SuiteListing> list_suites(const std::vector<std::string>& directories) {
  std::map<std::string, std::string> paths;
  for (const std::string& directory : directories) {
    std::error_code ignored;
    for (const fs::directory_entry& entry : fs::directory_iterator(directory, ignored)) {
      const fs::path& path = entry.path();
      if (path.extension() == ".json") paths.emplace(path.stem().string(), path.string());
    }
  }
  std::vector<SuiteListing> listings;
  for (const auto& [name, path] : paths) {
    SuiteListing listing{name, path, {}, {}};
    try {
      listing.suite = read_suite(path);
    } catch (const Error& error) {
      listing.error = error.what();
    }
    listings.push_back(std::move(listing));
  }
  return listings;
}

}  // namespace fdbench::io
