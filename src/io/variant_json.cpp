#include "io/variant_json.h"

#include <nlohmann/json.hpp>

#include "io/json_text.h"

namespace fdbench::io {

using Json = nlohmann::ordered_json;

std::string variants_json(VariantTable table) {
  Json variants = Json::array();
  for (const Variant* variant : table) {
    Json axes = Json::array();
    for (const Axis& axis : variant->axes) {
      axes.push_back({{"name", axis.name},
                      {"help", axis.help},
                      {"min", axis.min},
                      {"max", axis.max > 0 ? Json(axis.max) : Json(nullptr)}});
    }
    Json resources = Json::array();
    for (const KernelResources& use : variant->resources) {
      resources.push_back({{"kernel", use.kernel},
                           {"cc", use.cc},
                           {"registers", use.registers},
                           {"static_smem", use.static_smem},
                           {"dynamic_smem", use.dynamic_smem},
                           {"threads", use.threads},
                           {"ctas_per_sm", use.ctas_per_sm}});
    }
    variants.push_back({{"name", variant->name},
                        {"backend", to_string(variant->backend)},
                        {"role", to_string(variant->role)},
                        {"summary", variant->summary},
                        {"tuning_version", variant->tuning_version},
                        {"tolerance", variant->tolerance},
                        {"writes_lse", variant->writes_lse},
                        {"deterministic", variant->deterministic},
                        {"axes", std::move(axes)},
                        {"resources", std::move(resources)}});
  }
  return pretty_text(Json{{"variants", std::move(variants)}});
}

}  // namespace fdbench::io
