#include "cli/open_device.h"

#include <charconv>
#include <optional>
#include <string_view>

#include "backend/cpu/cpu_backend.h"
#include "backend/fake/fake_backend.h"
#include "cli/variant_table.h"
#include "core/error.h"
#include "io/fake_script.h"

#ifdef FDBENCH_HAVE_CUDA
#include "backend/cuda/cuda_backend.h"
#endif

namespace fdbench::cli {

namespace {

struct DeviceSpec {
  enum class Kind { any, cpu, cuda } kind = Kind::any;
  int index = 0;
};

DeviceSpec parse_spec(std::string_view spec) {
  if (spec == "auto") return {DeviceSpec::Kind::any, 0};
  if (spec == "cpu") return {DeviceSpec::Kind::cpu, 0};
  if (spec == "cuda") return {DeviceSpec::Kind::cuda, 0};
  if (spec.rfind("cuda:", 0) == 0) {
    const std::string_view digits = spec.substr(5);
    int index = -1;
    const auto [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
    if (error == std::errc() && stop == digits.data() + digits.size() && index >= 0)
      return {DeviceSpec::Kind::cuda, index};
  }
  throw usage_error("--device " + std::string(spec) + ": must be auto, cpu, cuda or cuda:N");
}

struct CudaDevices {
  int count = 0;
  std::string why_none;
};

CudaDevices cuda_devices() {
#ifdef FDBENCH_HAVE_CUDA
  const CudaDeviceCount found = cuda_device_count();
  return {found.count, found.why_none};
#else
  return {0, "this build has no CUDA backend (see FDBENCH_CUDA in README.md)"};
#endif
}

std::unique_ptr<Backend> make_cuda([[maybe_unused]] int index, [[maybe_unused]] bool dirty_flush) {
#ifdef FDBENCH_HAVE_CUDA
  return make_cuda_backend(index, dirty_flush ? FlushKind::memset : FlushKind::read);
#else
  return nullptr;
#endif
}

}  // namespace

void check_device_spec(const std::string& spec) {
  parse_spec(spec);
}

OpenedDevice open_device(const std::string& spec, const std::string& script, bool dirty_flush) {
  if (!script.empty()) {
    return {make_fake_backend(io::read_fake_script(script)), "scripted", fake_variant_table()};
  }
  const DeviceSpec wanted = parse_spec(spec);
  OpenedDevice opened;
  opened.table = variant_table();
  if (wanted.kind == DeviceSpec::Kind::cpu) {
    opened.backend = make_cpu_backend(cpu_isas());
    opened.why = "asked for";
    return opened;
  }
  const CudaDevices devices = cuda_devices();
  if (wanted.kind == DeviceSpec::Kind::cuda) {
    if (wanted.index >= devices.count) {
      throw Error(Exit::no_device, "--device " + spec + ": " +
                                       (devices.count == 0 ? "no CUDA device: " + devices.why_none
                                                           : "there are " + std::to_string(devices.count) +
                                                                 " CUDA devices, counted from 0") +
                                       "; --device cpu measures the CPU");
    }
    opened.backend = make_cuda(wanted.index, dirty_flush);
    opened.why = "asked for";
  } else if (devices.count > 0) {
    opened.backend = make_cuda(0, dirty_flush);
    opened.why = "the first CUDA device";
  } else {
    opened.backend = make_cpu_backend(cpu_isas());
    opened.why = "no CUDA device: " + devices.why_none;
  }
  return opened;
}

}  // namespace fdbench::cli
