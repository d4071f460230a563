// Machines described in text: what the topology makes of sysfs, procfs and cgroups.
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "backend/cpu/host_topology.h"

namespace fdbench {
namespace {

class Files {
 public:
  Files(std::initializer_list<std::pair<const std::string, std::string>> files) : files_(files) {}
  std::string& operator[](const std::string& path) { return files_[path]; }
  ReadText reader() const {
    return [files = files_](const std::string& path) -> std::optional<std::string> {
      const auto at = files.find(path);
      if (at == files.end()) return std::nullopt;
      return at->second;
    };
  }

 private:
  std::map<std::string, std::string> files_;
};

void add_cache(Files& files, int cpu, int index, int level, const char* type, const char* size,
               const char* shared) {
  const std::string dir =
      "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/cache/index" + std::to_string(index);
  files[dir + "/level"] = std::to_string(level) + "\n";
  files[dir + "/type"] = std::string(type) + "\n";
  files[dir + "/size"] = std::string(size) + "\n";
  files[dir + "/shared_cpu_list"] = std::string(shared) + "\n";
}

// Two cores of two hardware threads each (0,2 and 1,3), a last-level cache for each core.
Files small_machine() {
  Files files = {
      {"/proc/meminfo", "MemTotal:       16000000 kB\nMemFree: 1 kB\nMemAvailable:    8000000 kB\n"},
      {"/proc/cpuinfo", "processor\t: 0\nmodel name\t: Model X @ 3 GHz\nflags\t: fpu\n"}};
  for (int cpu = 0; cpu < 4; ++cpu) {
    const char* const pair = cpu % 2 == 0 ? "0,2" : "1,3";
    files["/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/thread_siblings_list"] = pair;
    add_cache(files, cpu, 0, 1, "Data", "48K", pair);
    add_cache(files, cpu, 1, 1, "Instruction", "64K", pair);
    add_cache(files, cpu, 2, 2, "Unified", "2048K", pair);
    add_cache(files, cpu, 3, 3, "Unified", "16M", pair);
  }
  return files;
}

TEST(HostTopology, OneCpuACoreAndEveryCacheOnce) {
  const HostTopology host = probe_host({0, 1, 2, 3}, small_machine().reader());
  EXPECT_EQ(host.cpus, (std::vector<int>{0, 1}));
  EXPECT_EQ(host.l1d_bytes, 48 << 10);
  EXPECT_EQ(host.core_l2_bytes, 2 << 20);
  EXPECT_EQ(host.llc_bytes, 32 << 20);
  EXPECT_EQ(host.memory_bytes, 16000000ll * 1024);
  EXPECT_EQ(host.memory_available_bytes, 8000000ll * 1024);
  EXPECT_EQ(host.cpu_name, "Model X @ 3 GHz");
}

TEST(HostTopology, AffinityDecidesWhichThreadOfACore) {
  const HostTopology host = probe_host({2, 3}, small_machine().reader());
  EXPECT_EQ(host.cpus, (std::vector<int>{2, 3}));
  EXPECT_EQ(probe_host({1, 3}, small_machine().reader()).cpus, (std::vector<int>{1}));
}

TEST(HostTopology, NothingReadableStillMakesAMachine) {
  const HostTopology host = probe_host({}, [](const std::string&) { return std::nullopt; });
  EXPECT_EQ(host.cpus, (std::vector<int>{0}));
  EXPECT_EQ(host.l1d_bytes, 32 << 10);
  EXPECT_EQ(host.core_l2_bytes, 1 << 20);
  EXPECT_EQ(host.llc_bytes, 32 << 20);
  EXPECT_EQ(host.memory_available_bytes, 0);
  EXPECT_FALSE(host.cpu_name.empty());
}

TEST(HostTopology, WithoutAThirdLevelTheSecondIsTheLast) {
  Files files = {};
  add_cache(files, 0, 0, 1, "Data", "64K", "0");
  add_cache(files, 0, 1, 2, "Unified", "1024K", "0-1");
  add_cache(files, 1, 0, 1, "Data", "64K", "1");
  add_cache(files, 1, 1, 2, "Unified", "1024K", "0-1");
  EXPECT_EQ(probe_host({0, 1}, files.reader()).llc_bytes, 1 << 20);
}

TEST(CpuQuota, SecondVersionTakesTheTightestLevel) {
  Files files = {{"/proc/self/cgroup", "0::/a/b\n"},
                 {"/sys/fs/cgroup/a/b/cpu.max", "max 100000\n"},
                 {"/sys/fs/cgroup/a/cpu.max", "150000 100000\n"}};
  EXPECT_DOUBLE_EQ(cpu_quota(files.reader()).value(), 1.5);
  files["/sys/fs/cgroup/a/b/cpu.max"] = "50000 100000\n";
  EXPECT_DOUBLE_EQ(cpu_quota(files.reader()).value(), 0.5);
  files["/sys/fs/cgroup/a/b/cpu.max"] = "max 100000";
  files["/sys/fs/cgroup/a/cpu.max"] = "max 100000";
  EXPECT_FALSE(cpu_quota(files.reader()));
}

TEST(CpuQuota, FirstVersionWithJointControllersInAContainer) {
  // The path is the host's; the mount shows only our part.
  Files files = {{"/proc/self/cgroup", "4:cpu,cpuacct:/docker/123\n3:memory:/docker/123\n"},
                 {"/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "300000\n"},
                 {"/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n"}};
  EXPECT_DOUBLE_EQ(cpu_quota(files.reader()).value(), 3.0);
  files["/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us"] = "-1\n";
  EXPECT_FALSE(cpu_quota(files.reader()));
}

TEST(CpuQuota, RoundsDownToWholeCoresButLeavesOne) {
  Files files = small_machine();
  files["/sys/fs/cgroup/cpu.max"] = "190000 100000";
  EXPECT_EQ(probe_host({0, 1, 2, 3}, files.reader()).cpus, (std::vector<int>{0}));
  files["/sys/fs/cgroup/cpu.max"] = "20000 100000";
  EXPECT_EQ(probe_host({0, 1, 2, 3}, files.reader()).cpus.size(), 1u);
  files["/sys/fs/cgroup/cpu.max"] = "900000 100000";
  EXPECT_EQ(probe_host({0, 1, 2, 3}, files.reader()).cpus.size(), 2u);
}

TEST(AvailableMemory, TheTightestOfMachineAndCgroups) {
  Files files = {{"/proc/meminfo", "MemAvailable: 1000 kB\n"}, {"/proc/self/cgroup", "0::/job\n"}};
  EXPECT_EQ(available_memory(files.reader()), 1024000);
  files["/sys/fs/cgroup/job/memory.max"] = "500000\n";
  files["/sys/fs/cgroup/job/memory.current"] = "200000\n";
  EXPECT_EQ(available_memory(files.reader()), 300000);
  // Page cache that can be dropped is not in the way.
  files["/sys/fs/cgroup/job/memory.stat"] = "anon 1\ninactive_file 50000\nactive_file 7\n";
  EXPECT_EQ(available_memory(files.reader()), 350000);
  files["/sys/fs/cgroup/job/memory.current"] = "900000\n";
  EXPECT_EQ(available_memory(files.reader()), 0);
  files["/sys/fs/cgroup/job/memory.max"] = "max\n";
  EXPECT_EQ(available_memory(files.reader()), 1024000);
}

TEST(AvailableMemory, FirstVersionAndItsWayOfSayingUnlimited) {
  Files files = {{"/proc/meminfo", "MemTotal: 2000 kB\nMemAvailable: 1000 kB\n"},
                 {"/proc/self/cgroup", "4:memory:/x\n"},
                 {"/sys/fs/cgroup/memory/x/memory.limit_in_bytes", "9223372036854771712\n"},
                 {"/sys/fs/cgroup/memory/x/memory.usage_in_bytes", "1\n"}};
  EXPECT_EQ(available_memory(files.reader()), 1024000);
  EXPECT_EQ(probe_host({0}, files.reader()).memory_bytes, 2048000);
  files["/sys/fs/cgroup/memory/x/memory.limit_in_bytes"] = "600000\n";
  files["/sys/fs/cgroup/memory/x/memory.usage_in_bytes"] = "100000\n";
  files["/sys/fs/cgroup/memory/x/memory.stat"] = "total_inactive_file 40000\n";
  EXPECT_EQ(available_memory(files.reader()), 540000);
  EXPECT_EQ(probe_host({0}, files.reader()).memory_bytes, 600000);
}

TEST(Parsing, CpuLists) {
  EXPECT_EQ(parse_cpu_list("0-3,8\n"), (std::vector<int>{0, 1, 2, 3, 8}));
  EXPECT_EQ(parse_cpu_list("5"), (std::vector<int>{5}));
  EXPECT_TRUE(parse_cpu_list("").empty());
  EXPECT_EQ(parse_cpu_list("1,x,3"), (std::vector<int>{1}));
  EXPECT_TRUE(parse_cpu_list("3-1").empty());
  EXPECT_TRUE(parse_cpu_list("0-99999999").empty());
}

TEST(Parsing, ByteSizes) {
  EXPECT_EQ(parse_byte_size("48K\n"), 48 << 10);
  EXPECT_EQ(parse_byte_size("307200K"), 300ll << 20);
  EXPECT_EQ(parse_byte_size("2M"), 2 << 20);
  EXPECT_EQ(parse_byte_size("512"), 512);
  EXPECT_FALSE(parse_byte_size(""));
  EXPECT_FALSE(parse_byte_size("K"));
  EXPECT_FALSE(parse_byte_size("-4K"));
  EXPECT_FALSE(parse_byte_size("9223372036854775807G"));
}

}  // namespace
}  // namespace fdbench
