#include "cuda/nvml.h"

#include <dlfcn.h>

namespace fdbench::cuda {
namespace {

// The library's C interface as its reference manual gives it; every call returns 0 on success.
using Device = void*;
enum ClockType : int { kClockSm = 1, kClockMemory = 2 };
enum TemperatureSensor : int { kTemperatureGpu = 0 };

struct Library {
  int (*init)() = nullptr;
  int (*driver_version)(char*, unsigned) = nullptr;
  int (*device_by_uuid)(const char*, Device*) = nullptr;
  int (*enforced_power_limit)(Device, unsigned*) = nullptr;  // mW
  int (*power_usage)(Device, unsigned*) = nullptr;           // mW
  int (*clock)(Device, int, unsigned*) = nullptr;            // MHz
  int (*max_clock)(Device, int, unsigned*) = nullptr;        // MHz
  int (*temperature)(Device, int, unsigned*) = nullptr;      // degrees Celsius
  int (*throttle)(Device, unsigned long long*) = nullptr;
  int (*mig_mode)(Device, unsigned*, unsigned*) = nullptr;  // current, pending
  int (*ecc_mode)(Device, unsigned*, unsigned*) = nullptr;  // current, pending
  int (*compute_processes)(Device, unsigned*, void*) = nullptr;
  bool ready = false;
};

template <class Function>
void find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
}

// Loaded once and kept: its shutdown would race with other users of the process.
const Library& library() {
  static const Library kLibrary = [] {
    Library found;
    void* handle = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!handle) return found;
    find(handle, "nvmlInit_v2", found.init);
    find(handle, "nvmlSystemGetDriverVersion", found.driver_version);
    find(handle, "nvmlDeviceGetHandleByUUID", found.device_by_uuid);
    find(handle, "nvmlDeviceGetEnforcedPowerLimit", found.enforced_power_limit);
    find(handle, "nvmlDeviceGetPowerUsage", found.power_usage);
    find(handle, "nvmlDeviceGetClockInfo", found.clock);
    find(handle, "nvmlDeviceGetMaxClockInfo", found.max_clock);
    find(handle, "nvmlDeviceGetTemperature", found.temperature);
    find(handle, "nvmlDeviceGetCurrentClocksEventReasons", found.throttle);
    if (!found.throttle) find(handle, "nvmlDeviceGetCurrentClocksThrottleReasons", found.throttle);
    find(handle, "nvmlDeviceGetMigMode", found.mig_mode);
    find(handle, "nvmlDeviceGetEccMode", found.ecc_mode);
    find(handle, "nvmlDeviceGetComputeRunningProcesses_v3", found.compute_processes);
    found.ready = found.init && found.device_by_uuid && found.init() == 0;
    return found;
  }();
  return kLibrary;
}

template <class Function, class... Args>
std::optional<double> number(double unit, Function function, Args... args) {
  unsigned value = 0;
  if (!function || function(args..., &value) != 0) return std::nullopt;
  return static_cast<double>(value) * unit;
}

}  // namespace

std::optional<NvmlReading> read_nvml(const std::string& uuid) {
  const Library& nvml = library();
  if (!nvml.ready) return std::nullopt;
  Device device = nullptr;
  if (nvml.device_by_uuid(uuid.c_str(), &device) != 0) return std::nullopt;

  NvmlReading reading;
  char version[96] = {};
  if (nvml.driver_version && nvml.driver_version(version, sizeof version) == 0) reading.driver = version;
  reading.power_limit_w = number(1e-3, nvml.enforced_power_limit, device);
  reading.power_w = number(1e-3, nvml.power_usage, device);
  reading.sm_mhz = number(1.0, nvml.clock, device, static_cast<int>(kClockSm));
  reading.sm_max_mhz = number(1.0, nvml.max_clock, device, static_cast<int>(kClockSm));
  reading.memory_mhz = number(1.0, nvml.clock, device, static_cast<int>(kClockMemory));
  reading.temperature_c = number(1.0, nvml.temperature, device, static_cast<int>(kTemperatureGpu));
  unsigned long long bits = 0;
  if (nvml.throttle && nvml.throttle(device, &bits) == 0) reading.throttle = bits;
  unsigned current = 0;
  unsigned pending = 0;
  if (nvml.mig_mode && nvml.mig_mode(device, &current, &pending) == 0) reading.mig = current != 0;
  if (nvml.ecc_mode && nvml.ecc_mode(device, &current, &pending) == 0) reading.ecc = current != 0;
  // Asked with no room for them, it says how many there are.
  constexpr int kInsufficientSize = 7;
  unsigned count = 0;
  if (nvml.compute_processes) {
    const int answer = nvml.compute_processes(device, &count, nullptr);
    if (answer == 0 || answer == kInsufficientSize) reading.processes = static_cast<int>(count);
  }
  return reading;
}

std::vector<std::string> throttle_reasons(std::uint64_t bits) {
  // nvmlClocksEventReasons; bit 0, an idle GPU, is none.
  static constexpr struct {
    std::uint64_t bit;
    const char* words;
  } kReasons[] = {
      {0x02, "clocks set by the user"},
      {0x04, "power cap"},
      {0x08, "hardware slowdown"},
      {0x10, "sync boost"},
      {0x20, "thermal, software"},
      {0x40, "thermal, hardware"},
      {0x80, "power brake"},
      {0x100, "display clocks"},
  };
  std::vector<std::string> words;
  for (const auto& reason : kReasons) {
    if (bits & reason.bit) words.emplace_back(reason.words);
  }
  return words;
}

}  // namespace fdbench::cuda
