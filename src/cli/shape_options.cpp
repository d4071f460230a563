#include "cli/shape_options.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "cli/extents.h"
#include "core/error.h"
#include "io/suite.h"

namespace fdbench::cli {

namespace {
constexpr std::int64_t kDims[] = {64, 96, 128, 192, 256};
constexpr const char* kGroup = "Shapes";
}  // namespace

void ShapeOptions::add_to(CLI::App& app) {
  app.add_option("--seq", seq, "KV tokens: 8192 | 1024,8192 | 1024:131072*2 | 4096:16384:4096")
      ->group(kGroup);
  app.add_option("--heads", heads, "query heads, in the same forms (32 where --seq is given alone)")
      ->group(kGroup);
  app.add_option("--kv-heads", kv_heads, "KV heads; divides the query heads (as many as --heads)")
      ->group(kGroup);
  app.add_option("--dim", dim, "head dimension: 64, 96, 128, 192 or 256 (128)")->group(kGroup);
  app.add_option("--dtype", dtype, "bf16 or fp16 (bf16)")->group(kGroup)->option_text("TYPE");
  app.add_option("--suite", suite, "a named set of shapes (fdbench list suites), or a file")->group(kGroup);
}

std::vector<Problem> ShapeOptions::problems() const {
  const bool by_flags = !seq.empty() || !heads.empty() || !kv_heads.empty() || !dim.empty() || !dtype.empty();
  if (!suite.empty() && by_flags) {
    throw usage_error("--suite " + suite +
                      " brings its own shapes; leave out --seq, --heads, --kv-heads, --dim and --dtype");
  }
  const auto type = parse_dtype(dtype.empty() ? "bf16" : dtype);
  if (!type) throw usage_error("--dtype " + dtype + ": must be bf16 or fp16");
  if (!by_flags) {
    return io::find_suite(suite.empty() ? "default" : suite, config_directories("suites")).problems;
  }
  if (seq.empty()) throw usage_error("--seq is missing: how many KV tokens? (--seq 8192, say)");
  const auto seqs = parse_extents("--seq", seq);
  const auto all_heads = parse_extents("--heads", heads.empty() ? "32" : heads);
  const auto dims = parse_extents("--dim", dim.empty() ? "128" : dim);
  for (const std::int64_t d : dims) {
    if (std::find(std::begin(kDims), std::end(kDims), d) == std::end(kDims)) {
      throw usage_error(fmt::format("--dim {}: must be 64, 96, 128, 192 or 256", d));
    }
  }
  std::vector<Problem> problems;
  for (const std::int64_t d : dims) {
    for (const std::int64_t h : all_heads) {
      const auto kv = kv_heads.empty() ? std::vector{h} : parse_extents("--kv-heads", kv_heads);
      for (const std::int64_t kv_head_count : kv) {
        if (h % kv_head_count != 0) {
          throw usage_error(fmt::format("--heads {} --kv-heads {}: the KV heads must divide the query heads",
                                        h, kv_head_count));
        }
        for (const std::int64_t s : seqs) {
          Problem problem{s, h, kv_head_count, d, *type, {}};
          if (const auto reason = invalid_reason(problem)) {
            throw usage_error(fmt::format("--seq {} --heads {} --kv-heads {} --dim {}: {}", s, h,
                                          kv_head_count, d, *reason));
          }
          // 64,64:256*2 is a union.
          if (std::find(problems.begin(), problems.end(), problem) != problems.end()) continue;
          if (problems.size() == kMaxExtents) {
            throw usage_error(
                fmt::format("--seq, --heads, --kv-heads and --dim make more than {} shapes", kMaxExtents));
          }
          problems.push_back(problem);
        }
      }
    }
  }
  return problems;
}

std::vector<std::string> config_directories(const std::string& kind) {
  std::vector<std::string> found;
  const auto add = [&](const std::filesystem::path& base) {
    const std::filesystem::path directory = base / kind;
    std::error_code ignored;
    if (std::filesystem::is_directory(directory, ignored)) found.push_back(directory.string());
  };
  if (const char* set = std::getenv("FDBENCH_CONFIG_DIR"); set && *set) add(set);
  std::error_code none;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", none);
  if (!none) add(program.parent_path().parent_path() / "share" / "fdbench" / "configs");
  add(FDBENCH_SOURCE_CONFIGS);
  return found;
}

}  // namespace fdbench::cli
