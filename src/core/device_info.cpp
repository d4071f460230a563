#include "core/device_info.h"

namespace fdbench {

std::string_view to_string(BackendKind kind) {
  switch (kind) {
    case BackendKind::cpu:
      return "cpu";
    case BackendKind::cuda:
      return "cuda";
    case BackendKind::fake:
      return "fake";
  }
  return "?";
}

std::string isas_text(const DeviceInfo& device) {
  std::string text;
  for (const std::string& isa : device.isas) text += (text.empty() ? "" : ", ") + isa;
  return text.empty() ? "unknown" : text;
}

bool isas_differ(const DeviceInfo& a, const DeviceInfo& b) {
  return !a.isas.empty() && !b.isas.empty() && a.isas != b.isas;
}

}  // namespace fdbench
