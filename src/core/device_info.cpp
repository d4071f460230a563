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

}  // namespace fdbench
