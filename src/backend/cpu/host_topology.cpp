#include "backend/cpu/host_topology.h"

#include <sched.h>
#include <sys/utsname.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <limits>
#include <set>
#include <sstream>

namespace fdbench {

namespace {

constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();

std::string_view trim(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\n");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\n") - first + 1);
}

std::optional<std::int64_t> parse_int(std::string_view text) {
  text = trim(text);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<std::int64_t> read_int(const ReadText& read, const std::string& path) {
  const auto text = read(path);
  return text ? parse_int(*text) : std::nullopt;
}

// The number after `key` at the start of a line of "key value [unit]" text.
std::optional<std::int64_t> keyed_int(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    const auto line = text.substr(0, text.find('\n'));
    if (line.substr(0, key.size()) == key && line.size() > key.size() &&
        (line[key.size()] == ' ' || line[key.size()] == ':')) {
      std::string_view rest = trim(line.substr(key.size() + 1));
      return parse_int(rest.substr(0, rest.find(' ')));
    }
    text.remove_prefix(std::min(text.size(), line.size() + 1));
  }
  return std::nullopt;
}

// This process's cgroup directories that could hold `controller`'s files, from the leaf to the root. In a
// container the path may name the host's tree while the mount shows only our part: unreadable levels are the
// caller's to skip.
std::vector<std::string> cgroup_levels(const ReadText& read, std::string_view controller) {
  std::vector<std::string> levels;
  const auto add = [&](const std::string& mount, std::string_view path) {
    while (!path.empty() && path != "/") {
      levels.push_back(mount + std::string(path));
      path = path.substr(0, path.find_last_of('/'));
    }
    levels.push_back(mount);
  };
  std::istringstream lines(read("/proc/self/cgroup").value_or("0::/\n"));
  for (std::string line; std::getline(lines, line);) {
    const auto first = line.find(':');
    const auto second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string names = line.substr(first + 1, second - first - 1);
    const std::string path = line.substr(second + 1);
    if (names.empty()) {
      add("/sys/fs/cgroup", path);
      add("/sys/fs/cgroup/unified", path);
      continue;
    }
    std::istringstream list(names);
    for (std::string name; std::getline(list, name, ',');) {
      if (name != controller) continue;
      add("/sys/fs/cgroup/" + name, path);
      if (names != name) add("/sys/fs/cgroup/" + names, path);
    }
  }
  return levels;
}

struct MemoryLimit {
  std::int64_t total = kNoLimit;
  std::int64_t available = kNoLimit;
};

MemoryLimit cgroup_memory(const ReadText& read) {
  MemoryLimit least;
  for (const std::string& level : cgroup_levels(read, "memory")) {
    auto limit = read_int(read, level + "/memory.max");
    auto usage = read_int(read, level + "/memory.current");
    std::string_view droppable = "inactive_file";
    if (!limit) {
      limit = read_int(read, level + "/memory.limit_in_bytes");
      usage = read_int(read, level + "/memory.usage_in_bytes");
      droppable = "total_inactive_file";
    }
    // v1 writes "no limit" as a number near 2^63.
    if (!limit || *limit >= (std::int64_t{1} << 60)) continue;
    const std::string stat = read(level + "/memory.stat").value_or("");
    const std::int64_t used =
        std::max<std::int64_t>(0, usage.value_or(0) - keyed_int(stat, droppable).value_or(0));
    least.total = std::min(least.total, *limit);
    least.available = std::min(least.available, std::max<std::int64_t>(0, *limit - used));
  }
  return least;
}

std::int64_t meminfo_bytes(const ReadText& read, std::string_view key) {
  return keyed_int(read("/proc/meminfo").value_or(""), key).value_or(0) * 1024;
}

std::string cpu_dir(int cpu) {
  return "/sys/devices/system/cpu/cpu" + std::to_string(cpu);
}

// The first allowed hardware thread of each physical core.
std::vector<int> one_cpu_a_core(const std::vector<int>& affinity, const ReadText& read) {
  std::vector<int> cpus;
  std::set<int> taken;
  for (const int cpu : affinity) {
    if (taken.count(cpu)) continue;
    cpus.push_back(cpu);
    taken.insert(cpu);
    for (const int sibling :
         parse_cpu_list(read(cpu_dir(cpu) + "/topology/thread_siblings_list").value_or("")))
      taken.insert(sibling);
  }
  return cpus;
}

struct Cache {
  int level = 0;
  std::int64_t bytes = 0;
  std::string shared_with;
};

// Data and unified caches of one CPU.
std::vector<Cache> caches_of(int cpu, const ReadText& read) {
  std::vector<Cache> caches;
  for (int index = 0;; ++index) {
    const std::string dir = cpu_dir(cpu) + "/cache/index" + std::to_string(index);
    const auto level = read_int(read, dir + "/level");
    if (!level) return caches;
    if (trim(read(dir + "/type").value_or("")) == "Instruction") continue;
    const auto bytes = parse_byte_size(read(dir + "/size").value_or(""));
    if (!bytes || *bytes <= 0) continue;
    const std::string shared(trim(read(dir + "/shared_cpu_list").value_or(std::to_string(cpu))));
    caches.push_back({static_cast<int>(*level), *bytes, shared});
  }
}

void set_caches(HostTopology& host, const ReadText& read) {
  std::set<std::string> counted;
  for (const int cpu : host.cpus) {
    const Cache* last = nullptr;
    const auto caches = caches_of(cpu, read);
    for (const Cache& cache : caches) {
      if (cache.level == 1 && host.l1d_bytes == 0) host.l1d_bytes = cache.bytes;
      if (cache.level == 2 && host.core_l2_bytes == 0) host.core_l2_bytes = cache.bytes;
      if (!last || cache.level > last->level) last = &cache;
    }
    if (last && last->level > 1 && counted.insert(last->shared_with).second) host.llc_bytes += last->bytes;
  }
  if (host.l1d_bytes == 0) host.l1d_bytes = 32 << 10;
  if (host.core_l2_bytes == 0) host.core_l2_bytes = 1 << 20;
  if (host.llc_bytes == 0) host.llc_bytes = 32 << 20;
}

std::string cpu_name(const ReadText& read) {
  std::istringstream lines(read("/proc/cpuinfo").value_or(""));
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("model name", 0) != 0) continue;
    const auto colon = line.find(':');
    if (colon != std::string::npos) return std::string(trim(std::string_view(line).substr(colon + 1)));
  }
  utsname names{};
  return uname(&names) == 0 ? std::string(names.machine) + " CPU" : "CPU";
}

}  // namespace

std::optional<std::string> read_text_file(const std::string& path) {
  std::ifstream file(path);
  if (!file) return std::nullopt;
  std::ostringstream text;
  text << file.rdbuf();
  if (file.bad()) return std::nullopt;
  return std::move(text).str();
}

std::vector<int> parse_cpu_list(std::string_view text) {
  constexpr int kMostCpus = 1 << 16;  // a bound on what a broken list can make us allocate
  std::vector<int> cpus;
  text = trim(text);
  while (!text.empty()) {
    const auto item = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), item.size() + 1));
    const auto dash = item.find('-');
    const auto first = parse_int(item.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : parse_int(item.substr(dash + 1));
    if (!first || !last || *first < 0 || *last < *first || *last >= kMostCpus) break;
    for (auto cpu = *first; cpu <= *last; ++cpu) cpus.push_back(static_cast<int>(cpu));
  }
  return cpus;
}

std::optional<std::int64_t> parse_byte_size(std::string_view text) {
  text = trim(text);
  if (text.empty()) return std::nullopt;
  int shift = 0;
  if (text.back() == 'K') shift = 10;
  if (text.back() == 'M') shift = 20;
  if (text.back() == 'G') shift = 30;
  if (shift) text.remove_suffix(1);
  const auto value = parse_int(text);
  if (!value || *value < 0 || *value > (kNoLimit >> shift)) return std::nullopt;
  return *value << shift;
}

std::vector<int> allowed_cpus() {
  for (int most = 1024; most <= (1 << 20); most *= 4) {
    cpu_set_t* const set = CPU_ALLOC(static_cast<std::size_t>(most));
    if (!set) break;
    const std::size_t bytes = CPU_ALLOC_SIZE(static_cast<std::size_t>(most));
    std::vector<int> cpus;
    if (sched_getaffinity(0, bytes, set) == 0) {
      for (int cpu = 0; cpu < most; ++cpu) {
        if (CPU_ISSET_S(static_cast<std::size_t>(cpu), bytes, set)) cpus.push_back(cpu);
      }
    }
    CPU_FREE(set);
    if (!cpus.empty()) return cpus;  // else the kernel's mask is larger
  }
  return {0};
}

std::optional<double> cpu_quota(const ReadText& read) {
  std::optional<double> least;
  const auto take = [&](std::int64_t quota, std::int64_t period) {
    if (quota <= 0 || period <= 0) return;
    const double cpus = static_cast<double>(quota) / static_cast<double>(period);
    if (!least || cpus < *least) least = cpus;
  };
  for (const std::string& level : cgroup_levels(read, "cpu")) {
    if (const auto text = read(level + "/cpu.max")) {  // "max 100000" or "150000 100000"
      const std::string_view line = trim(*text);
      const auto space = line.find(' ');
      const auto quota = parse_int(line.substr(0, space));
      if (quota && space != std::string_view::npos) take(*quota, parse_int(line.substr(space)).value_or(0));
    } else if (const auto quota = read_int(read, level + "/cpu.cfs_quota_us")) {  // -1: unlimited
      take(*quota, read_int(read, level + "/cpu.cfs_period_us").value_or(0));
    }
  }
  return least;
}

std::int64_t available_memory(const ReadText& read) {
  const std::int64_t machine = meminfo_bytes(read, "MemAvailable");
  const std::int64_t granted = cgroup_memory(read).available;
  if (machine == 0) return granted == kNoLimit ? 0 : granted;
  return std::min(machine, granted);
}

HostTopology probe_host(const std::vector<int>& affinity, const ReadText& read) {
  HostTopology host;
  host.cpus = one_cpu_a_core(affinity, read);
  if (host.cpus.empty()) host.cpus = {0};
  if (const auto quota = cpu_quota(read)) {
    // Compared as double first: a quota may exceed what an integer of CPUs can hold.
    const std::size_t granted =
        *quota >= static_cast<double>(host.cpus.size()) ? host.cpus.size() : static_cast<std::size_t>(*quota);
    host.cpus.resize(std::max<std::size_t>(1, granted));
  }
  set_caches(host, read);
  host.memory_bytes = meminfo_bytes(read, "MemTotal");
  const std::int64_t limit = cgroup_memory(read).total;
  if (host.memory_bytes == 0 || limit < host.memory_bytes) host.memory_bytes = limit == kNoLimit ? 0 : limit;
  host.memory_available_bytes = available_memory(read);
  host.cpu_name = cpu_name(read);
  return host;
}

HostTopology probe_host() {
  return probe_host(allowed_cpus(), read_text_file);
}

}  // namespace fdbench
