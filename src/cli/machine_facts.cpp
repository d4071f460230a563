#include "cli/machine_facts.h"

#include <fmt/core.h>

#include <cstdlib>
#include <optional>
#include <string>

#ifdef FDBENCH_HAVE_CUDA
#include "cuda/nvml.h"
#endif

namespace fdbench::cli {

namespace {

const char* const kUnknown = "not known";

std::string first_line(const std::optional<std::string>& text) {
  if (!text) return kUnknown;
  const std::string line = text->substr(0, text->find('\n'));
  return line.empty() ? kUnknown : line;
}

MachineFact load_fact(const ReadText& read, int cores) {
  const std::string line = first_line(read("/proc/loadavg"));
  MachineFact fact{"load", line.substr(0, line.find(' ')), {}};
  if (line == kUnknown) return {"load", line, {}};
  const double load = std::strtod(fact.value.c_str(), nullptr);
  // The average over a minute: half a core of others' work is seen in the figures.
  if (load > 0.5)
    fact.worry =
        fmt::format("others keep {:.1f} of {} cores busy: figures of the CPU will scatter", load, cores);
  return fact;
}

std::string number_or_unknown(const std::optional<double>& value, const char* unit) {
  return value ? fmt::format("{:.0f} {}", *value, unit) : kUnknown;
}

}  // namespace

std::vector<MachineFact> host_facts(const ReadText& read) {
  const HostTopology host = probe_host(allowed_cpus(), read);
  const int cores = static_cast<int>(host.cpus.size());
  std::vector<MachineFact> facts;
  facts.push_back({"CPU", host.cpu_name, {}});
  facts.push_back({"cores we may use", std::to_string(cores), {}});
  const std::string governor = first_line(read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"));
  facts.push_back({"CPU governor", governor,
                   governor == "performance" || governor == kUnknown
                       ? ""
                       : "clocks follow the load; performance keeps them up"});
  const std::string no_turbo = first_line(read("/sys/devices/system/cpu/intel_pstate/no_turbo"));
  if (no_turbo != kUnknown) facts.push_back({"turbo", no_turbo == "0" ? "on" : "off", {}});
  const auto throttled = read("/sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count");
  if (throttled) {
    const std::string times = first_line(throttled);
    facts.push_back(
        {"CPU throttled since boot", times + " times", times == "0" ? "" : "it has run too hot before"});
  }
  facts.push_back(load_fact(read, cores));
  const std::optional<double> quota = cpu_quota(read);
  MachineFact limit{"CPU quota", quota ? fmt::format("{:.2f} cores", *quota) : "none", {}};
  if (quota && *quota < static_cast<double>(allowed_cpus().size()))
    limit.worry = "a quota takes the cores away in slices; give this job whole cores";
  facts.push_back(limit);
  facts.push_back({"huge pages", first_line(read("/sys/kernel/mm/transparent_hugepage/enabled")), {}});
  return facts;
}

std::vector<MachineFact> device_facts(const DeviceInfo& device) {
  std::vector<MachineFact> facts;
  facts.push_back({"device", fmt::format("{} ({})", device.name, to_string(device.kind)), {}});
  if (device.kind != BackendKind::cuda) return facts;
  facts.push_back({"serial", device.uuid.empty() ? kUnknown : device.uuid, {}});
  facts.push_back({"driver", device.driver.empty() ? kUnknown : device.driver, {}});
  facts.push_back({"power limit", number_or_unknown(device.power_limit_w, "W"), {}});
#ifdef FDBENCH_HAVE_CUDA
  if (const auto nvml = cuda::read_nvml(device.uuid)) {
    facts.push_back({"power drawn", number_or_unknown(nvml->power_w, "W"), {}});
    facts.push_back({"SM clock", number_or_unknown(nvml->sm_mhz, "MHz"), {}});
    facts.push_back({"SM clock, most", number_or_unknown(nvml->sm_max_mhz, "MHz"), {}});
    facts.push_back({"memory clock", number_or_unknown(nvml->memory_mhz, "MHz"), {}});
    facts.push_back({"temperature", number_or_unknown(nvml->temperature_c, "C"), {}});
    std::string reasons;
    if (nvml->throttle) {
      for (const std::string& reason : cuda::throttle_reasons(*nvml->throttle))
        reasons += (reasons.empty() ? "" : ", ") + reason;
    }
    facts.push_back({"clocks held back by",
                     !nvml->throttle   ? kUnknown
                     : reasons.empty() ? "nothing"
                                       : reasons,
                     reasons.empty() ? "" : "figures are of a slower device"});
    MachineFact others{"processes on the device", kUnknown, {}};
    if (nvml->processes) {
      others.value = std::to_string(*nvml->processes);
      if (*nvml->processes > 0) others.worry = "whatever they do is in the figures";
    }
    facts.push_back(others);
    facts.push_back({"ECC", nvml->ecc ? *nvml->ecc ? "on" : "off" : kUnknown, {}});
  } else {
    facts.push_back(
        {"management library", "not found", "clocks, throttling and other processes are not known"});
  }
#endif
  MachineFact mig{"MIG", device.mig ? *device.mig ? "on" : "off" : kUnknown, {}};
  if (device.mig && *device.mig)
    mig.worry = "neighbours share the memory; results compare with the same slice only";
  facts.push_back(mig);
  return facts;
}

}  // namespace fdbench::cli
