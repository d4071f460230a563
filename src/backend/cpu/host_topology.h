// What this machine leaves us: cores by affinity and cgroup quota, caches, memory. Linux; every file is read
// through a function, so that tests describe machines in text.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fdbench {

// A small text file whole; nothing when it can't be read.
using ReadText = std::function<std::optional<std::string>(const std::string& path)>;

std::optional<std::string> read_text_file(const std::string& path);

struct HostTopology {
  // Logical CPUs to pin to, one a physical core (its first allowed hardware thread), at most as many as the
  // cgroup's CPU quota pays for (rounded down, at least one: half a core would only be throttled). Never
  // empty.
  std::vector<int> cpus;
  // Bytes. Caches of one core; llc_bytes sums the distinct last-level caches of `cpus`. Where sysfs says
  // nothing: 32 KiB, 1 MiB, 32 MiB.
  std::int64_t l1d_bytes = 0;
  std::int64_t core_l2_bytes = 0;
  std::int64_t llc_bytes = 0;
  std::int64_t memory_bytes = 0;            // of the machine, or the cgroup's limit where that is less
  std::int64_t memory_available_bytes = 0;  // see available_memory
  std::string cpu_name;
};

// `affinity`: the logical CPUs this process may run on.
HostTopology probe_host(const std::vector<int>& affinity, const ReadText& read);
HostTopology probe_host();

// sched_getaffinity of the calling thread.
std::vector<int> allowed_cpus();

// CPUs' worth of time that the cgroups (v1 and v2, every level that is visible) grant; nothing when
// unlimited.
std::optional<double> cpu_quota(const ReadText& read);

// Bytes: the least of MemAvailable and each visible cgroup level's limit minus its usage, page cache that can
// be dropped not counted as used. 0 when nothing can be read.
std::int64_t available_memory(const ReadText& read);

// "0-3,8" -> 0 1 2 3 8. Stops at the first thing it does not understand.
std::vector<int> parse_cpu_list(std::string_view text);
// "48K", "2M", "1G", "512" -> bytes.
std::optional<std::int64_t> parse_byte_size(std::string_view text);

}  // namespace fdbench
