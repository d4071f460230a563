// What a backend knows of the machine it measures; also what a plan is made from, so tests build it by hand.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fdbench {

enum class BackendKind { cpu, cuda, fake };

std::string_view to_string(BackendKind kind);

struct DeviceInfo {
  BackendKind kind = BackendKind::cpu;
  int index = 0;
  std::string name;
  std::string uuid;           // empty where the device has none
  int cc = 0;                 // compute capability x10: 90, 100, 120; 0 on a CPU
  int sms = 0;                // multiprocessors; on a CPU, the cores that affinity and cgroup quota leave us
  std::int64_t l2_bytes = 0;  // last-level cache: L2 of a GPU, LLC of a CPU
  std::int64_t memory_bytes = 0;
  std::int64_t memory_available_bytes = 0;    // when asked; on a CPU, within the cgroup's limit
  std::optional<double> bandwidth_datasheet;  // bytes/s, from the device's own clock and bus width

  // Limits that plans obey (zero on a CPU). Bytes.
  std::int64_t smem_per_sm = 0;
  std::int64_t smem_per_block = 0;  // the opt-in maximum
  int regs_per_sm = 0;
  int threads_per_sm = 0;
  int ctas_per_sm = 0;
  bool cooperative_launch = false;

  // CPU only. Bytes.
  std::int64_t l1d_bytes = 0;
  std::int64_t core_l2_bytes = 0;
  // Instruction sets that the CPU kernels have code for and the machine runs, best first; empty where not
  // known.
  std::vector<std::string> isas;

  std::string driver;  // empty where there is none
  std::string cublas;
  std::optional<double> power_limit_w;
  std::optional<bool> mig;
};

// "AMX, AVX3, plain"; "unknown" where they are.
std::string isas_text(const DeviceInfo& device);

// Whether both say which instruction sets they have, and not the same.
bool isas_differ(const DeviceInfo& a, const DeviceInfo& b);

}  // namespace fdbench
