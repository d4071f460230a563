#include "io/gpu_description.h"

#include <cstdint>
#include <filesystem>
#include <set>
#include <system_error>

#include "core/error.h"
#include "io/file.h"
#include "io/json_reader.h"

namespace fdbench::io {

namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMostBytes = std::int64_t{1} << 50;
constexpr std::int64_t kMostBytesPerSecond = std::int64_t{1} << 60;

}  // namespace

GpuDescription parse_gpu(std::string_view text, const std::string& name) {
  const Source source{name, "a GPU of schema fdbench.gpu/1.x"};
  const nlohmann::json value = parse_json(text, source);
  const Cursor root(value, source);
  check_schema(root, "fdbench.gpu");
  root.only({"schema", "name", "cc", "sms", "l2_bytes", "memory_bytes", "bandwidth", "smem_per_sm",
             "smem_per_block", "regs_per_sm", "threads_per_sm", "ctas_per_sm"});
  GpuDescription gpu;
  DeviceInfo& device = gpu.device;
  device.kind = BackendKind::cuda;
  device.cooperative_launch = true;  // every capability that kernels here run on
  device.name = root.at("name").text();
  const auto figure = [&](const char* key, std::int64_t least, std::int64_t most) {
    const Cursor entry = root.at(key);
    entry.only({"value", "source"});
    const Cursor from = entry.at("source"), number = entry.at("value");
    if (from.text().empty()) from.must_be("where the figure is from");
    gpu.sources.emplace_back(key, from.text());
    return number.integer(least, most);
  };
  device.cc = static_cast<int>(figure("cc", 50, 999));
  device.sms = static_cast<int>(figure("sms", 1, 1 << 16));
  device.l2_bytes = figure("l2_bytes", 1, kMostBytes);
  device.memory_bytes = figure("memory_bytes", 1, kMostBytes);
  device.memory_available_bytes = device.memory_bytes;
  device.bandwidth_datasheet = static_cast<double>(figure("bandwidth", 1, kMostBytesPerSecond));
  device.smem_per_sm = figure("smem_per_sm", 1, kMostBytes);
  device.smem_per_block = figure("smem_per_block", 1, kMostBytes);
  device.regs_per_sm = static_cast<int>(figure("regs_per_sm", 1, 1 << 24));
  device.threads_per_sm = static_cast<int>(figure("threads_per_sm", 32, 1 << 16));
  device.ctas_per_sm = static_cast<int>(figure("ctas_per_sm", 1, 1 << 10));
  return gpu;
}

GpuDescription read_gpu(const std::string& path) {
  return parse_gpu(read_file(path), path);
}

std::vector<std::string> gpu_names(const std::vector<std::string>& directories) {
  std::set<std::string> names;
  for (const std::string& directory : directories) {
    std::error_code ignored;
    for (const fs::directory_entry& entry : fs::directory_iterator(directory, ignored)) {
      if (entry.path().extension() == ".json") names.insert(entry.path().stem().string());
    }
  }
  return {names.begin(), names.end()};
}

GpuDescription find_gpu(const std::string& name_or_path, const std::vector<std::string>& directories) {
  if (name_or_path.find('/') != std::string::npos || fs::path(name_or_path).extension() == ".json")
    return read_gpu(name_or_path);
  for (const std::string& directory : directories) {
    const fs::path path = fs::path(directory) / (name_or_path + ".json");
    std::error_code ignored;
    if (fs::exists(path, ignored)) return read_gpu(path.string());
  }
  std::string list;
  for (const std::string& name : gpu_names(directories)) list += (list.empty() ? "" : ", ") + name;
  throw usage_error("--gpu " + name_or_path + ": no such GPU; " +
                    (list.empty() ? "none is installed" : "there are " + list) + "; or name a FILE.json");
}

}  // namespace fdbench::io
