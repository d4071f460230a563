#include "io/variant_json.h"

#include <gtest/gtest.h>

#include <array>

namespace fdbench {
namespace {

TEST(VariantJson, HoldsWhatAVariantDeclares) {
  static constexpr std::array<Axis, 2> axes = {
      {{"chunk", "KV tokens, \"any\"", 16, 4096}, {"threads", "of the team"}}};
  static constexpr std::array<KernelResources, 1> resources = {{{"decode", 90, 168, 576, 65600, 160, 2}}};
  Variant full;
  full.name = "full";
  full.backend = BackendKind::cuda;
  full.summary = "all of it";
  full.tuning_version = 3;
  full.tolerance = 0.0025;
  full.writes_lse = true;
  full.axes = axes;
  full.resources = resources;
  Variant plain;
  plain.name = "plain";
  plain.role = Role::roof;
  plain.deterministic = false;
  const Variant* const table[] = {&full, &plain};
  EXPECT_EQ(io::variants_json(table), R"({
  "variants": [
    {
      "name": "full",
      "backend": "cuda",
      "role": "candidate",
      "summary": "all of it",
      "tuning_version": 3,
      "tolerance": 0.0025,
      "writes_lse": true,
      "deterministic": true,
      "axes": [
        {"name": "chunk", "help": "KV tokens, \"any\"", "min": 16, "max": 4096},
        {"name": "threads", "help": "of the team", "min": 1, "max": null}
      ],
      "resources": [
        {
          "kernel": "decode",
          "cc": 90,
          "registers": 168,
          "static_smem": 576,
          "dynamic_smem": 65600,
          "threads": 160,
          "ctas_per_sm": 2
        }
      ]
    },
    {
      "name": "plain",
      "backend": "cpu",
      "role": "roof",
      "summary": "",
      "tuning_version": 1,
      "tolerance": 0,
      "writes_lse": false,
      "deterministic": false,
      "axes": [],
      "resources": []
    }
  ]
}
)");
  EXPECT_EQ(io::variants_json({}), "{\"variants\": []}\n");
}

}  // namespace
}  // namespace fdbench
