// `fdbench list`: what this build has and this machine offers.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "backend/cpu/cpu_backend.h"
#include "cli/commands.h"
#include "cli/shape_options.h"
#include "cli/variant_table.h"
#include "io/suite.h"
#include "io/variant_json.h"
#include "rules/split_rule_table.h"

#ifdef FDBENCH_HAVE_CUDA
#include "cuda/device_query.h"
#endif

namespace fdbench::cli {

namespace {

void list_variants() {
  for (const Variant* variant : variant_table()) {
    fmt::print("{:<24} {:<5} {:<10} {}\n", variant->name, to_string(variant->backend),
               to_string(variant->role), variant->summary);
    for (const Axis& axis : variant->axes) fmt::print("{:<24}   -a {}: {}\n", "", axis.name, axis.help);
  }
}

void list_suites() {
  for (const io::SuiteListing& listing : io::list_suites(config_directories("suites"))) {
    if (listing.error.empty()) {
      fmt::print("{:<12} {:>3} shapes  {}\n", listing.name, listing.suite.problems.size(),
                 listing.suite.description);
    } else {
      fmt::print("{:<12} unusable: {}\n", listing.name, listing.error);
    }
  }
}

void list_rules() {
  for (const rules::SplitRule& rule : rules::split_rules())
    fmt::print("{:<16} {}\n", rule.name, rule.summary);
}

void list_devices() {
  const DeviceInfo cpu = cpu_device_info(cpu_isas());
  fmt::print("cpu      {} ({} cores; {})\n", cpu.name, cpu.sms, isas_text(cpu));
#ifdef FDBENCH_HAVE_CUDA
  const CudaDeviceCount found = cuda_device_count();
  if (found.count == 0) fmt::print("cuda     none: {}\n", found.why_none);
  for (int i = 0; i < found.count; ++i) {
    const DeviceInfo gpu = query_cuda_device(i);
    fmt::print("cuda:{:<3} {} (sm_{}, {} multiprocessors, {:.1f} GB)\n", i, gpu.name, gpu.cc, gpu.sms,
               static_cast<double>(gpu.memory_bytes) / 1e9);
  }
#else
  fmt::print("cuda     none: this build has no CUDA backend\n");
#endif
}

struct ListFlags {
  std::string what;
  bool json = false;
};

}  // namespace

Command add_list(CLI::App& parent) {
  CLI::App* app = parent.add_subcommand("list", "lists variants, rules, suites and devices");
  auto flags = std::make_shared<ListFlags>();
  app->add_option("what", flags->what, "variants, rules, suites or devices; all of them when left out");
  app->add_flag("--json", flags->json, "variants as JSON: axes, tolerances, declared resources");
  app->footer("Examples:\n  fdbench list\n  fdbench list variants --json\n  fdbench list suites");
  return {
      app, [flags] {
        const std::string& what = flags->what;
        if (!what.empty() && what != "variants" && what != "rules" && what != "suites" && what != "devices") {
          throw usage_error("list " + what + ": must be variants, rules, suites or devices");
        }
        if (flags->json) {
          if (what != "variants") throw usage_error("--json lists variants: fdbench list variants --json");
          fmt::print("{}", io::variants_json(variant_table()));
          return Exit::good;
        }
        const auto section = [&](const char* name, void (*print)()) {
          if (!what.empty() && what != name) return;
          if (what.empty()) fmt::print("{}{}\n", std::string(name) == "variants" ? "" : "\n", name);
          print();
        };
        section("variants", list_variants);
        section("rules", list_rules);
        section("suites", list_suites);
        section("devices", list_devices);
        return Exit::good;
      }};
}

}  // namespace fdbench::cli
