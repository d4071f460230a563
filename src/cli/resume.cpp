#include "cli/resume.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <initializer_list>
#include <iterator>
#include <set>
#include <utility>

#include "core/error.h"
#include "io/result_json.h"

namespace fdbench::cli {

namespace {

// The value that a flag was given on a command line, or by the environment; empty where it was not.
std::string value_of(const RunInfo& run, const std::string& flag) {
  const std::vector<std::string>& argv = run.argv;
  for (std::size_t i = 0; i < argv.size(); ++i) {
    if (argv[i] == flag && i + 1 < argv.size()) return argv[i + 1];
    if (argv[i].rfind(flag + "=", 0) == 0) return argv[i].substr(flag.size() + 1);
  }
  std::string variable = "FDBENCH_";
  for (const char c : flag.substr(2)) variable += c == '-' ? '_' : static_cast<char>(std::toupper(c));
  const auto found = run.environment.find(variable);
  return found == run.environment.end() ? std::string() : found->second;
}

std::string build_of(const ToolInfo& tool) {
  return fmt::format("{} {}, {}, CUDA {}, {}", tool.version, commit_text(tool), tool.compiler,
                     tool.cuda.empty() ? "off" : tool.cuda, tool.flags);
}

void must_be_same(const std::string& path, const char* what, const std::string& was, const std::string& is) {
  if (was != is)
    throw usage_error(fmt::format("--resume {}: {} was {}, and is {} now; such rows don't go together", path,
                                  what, was.empty() ? "not given" : was, is.empty() ? "not given" : is));
}

// Not in the file but as they were typed.
void refuse_other_flags(const std::string& path, const RunInfo& old, const RunInfo& now,
                        std::initializer_list<const char*> flags) {
  for (const char* flag : flags) must_be_same(path, flag, value_of(old, flag), value_of(now, flag));
}

bool is_finished(const ResultRecord& record, int processes) {
  if (record.status == Status::unsupported || record.status == Status::incorrect) return true;
  if (record.status != Status::ok || !record.time || record.time->stop == "interrupted") return false;
  std::set<int> measured;
  for (const Sample& sample : record.time->samples) measured.insert(sample.process);
  return measured.size() == static_cast<std::size_t>(processes);
}

}  // namespace

void refuse_foreign(const std::string& path, const RunInfo& old, const RunInfo& now) {
  const auto same = [&](const char* what, const std::string& was, const std::string& is) {
    must_be_same(path, what, was, is);
  };
  const auto device = [](const DeviceInfo& d) {
    return fmt::format("{} {} ({} cores or multiprocessors) {}", to_string(d.kind), d.name, d.sms, d.uuid);
  };
  same("the device", device(old.device), device(now.device));
  if (isas_differ(old.device, now.device))
    same("the device's instruction sets", isas_text(old.device), isas_text(now.device));
  same("the build", build_of(old.tool), build_of(now.tool));
  // Files of earlier builds don't say.
  if (!old.tool.sources.empty() && !now.tool.sources.empty())
    same("the digest of the build's sources", old.tool.sources, now.tool.sources);
  same("--cache", std::string(to_string(old.cache)), std::string(to_string(now.cache)));
  same("--timer", std::string(to_string(old.timer)), std::string(to_string(now.timer)));
  same("--seed", std::to_string(old.seed), std::to_string(now.seed));
  same("the inputs", old.inputs, now.inputs);
  same("--processes", std::to_string(old.processes), std::to_string(now.processes));
  refuse_other_flags(path, old, now, {"--plant-slowdown", "--fake"});
}

Resumed::Resumed(const std::string& path, const RunInfo& run, std::vector<bench::ShapeWork>& work) {
  for (const bench::ShapeWork& shape : work) order_.push_back(shape.problem);
  if (path.empty()) return;
  ResultFile file = io::read_result_file(path);
  refuse_foreign(path, file.run, run);
  refuse_other_flags(path, file.run, run, {"--rounds", "--max-noise", "--max-time"});
  std::set<std::string> finished, wanted, all_ids;
  for (ResultRecord& record : file.results) {
    // As its fields say, whatever was written.
    record.id = result_id(record.variant, record.problem, record.tuning, file.run.cache, file.run.timer);
    if (!all_ids.insert(record.id).second)
      throw usage_error(fmt::format("--resume {}: has {} twice", path, record.id));
    if (is_finished(record, run.processes)) finished.insert(record.id);
  }
  std::vector<bench::ShapeWork> left;
  for (bench::ShapeWork& shape : work) {
    bool all = true;
    for (const bench::RowRequest& row : shape.rows) {
      const std::string id = result_id(row.variant->name, shape.problem, row.tuning, run.cache, run.timer);
      all = all && finished.count(id) != 0;
      wanted.insert(id);
    }
    if (all) {
      ++kept_;
    } else {
      left.push_back(std::move(shape));
    }
  }
  work = std::move(left);
  for (ResultRecord& record : file.results) {
    if (wanted.count(record.id)) old_.push_back(std::move(record));
  }
}

std::vector<ResultRecord> Resumed::with(const std::vector<ResultRecord>& measured) const {
  if (old_.empty()) return measured;
  std::vector<ResultRecord> all;
  for (const Problem& problem : order_) {
    const auto of_shape = [&](const ResultRecord& record) { return record.problem == problem; };
    const bool is_measured = std::any_of(measured.begin(), measured.end(), of_shape);
    const auto& from = is_measured ? measured : old_;
    std::copy_if(from.begin(), from.end(), std::back_inserter(all), of_shape);
  }
  return all;
}

}  // namespace fdbench::cli
