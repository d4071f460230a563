// `fdbench explain`: why a plan is what it is, and takes the time it does.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "backend/cpu/cpu_backend.h"
#include "cli/commands.h"
#include "cli/extents.h"
#include "cli/numbers.h"
#include "cli/say.h"
#include "cli/shape_options.h"
#include "cli/sweep_files.h"
#include "cli/variant_table.h"
#include "io/gpu_description.h"
#include "io/result_json.h"
#include "rules/split_rule_table.h"
#include "tune/cost_model.h"
#include "tune/explanation.h"

#ifdef FDBENCH_HAVE_CUDA
#include "cuda/device_query.h"
#endif

namespace fdbench::cli {

namespace {

struct ExplainFlags {
  ShapeOptions shapes;
  std::string variant, gpu, rule, latency = "1000";
  std::vector<std::string> axes, from;
};

// What is explained: a plan, made here or recorded.
struct Subject {
  Problem problem;
  DeviceInfo device;
  const Variant* variant = nullptr;  // null: not of this build, the plan is a recorded one
  std::string name;
  TuningPoint tuning;
  LaunchPlan plan;
  std::string why_device, why_plan;
};

std::string bytes_text(double bytes) {
  if (bytes >= 1e9) return fmt::format("{:.2f} GB", bytes / 1e9);
  if (bytes >= 1e6) return fmt::format("{:.1f} MB", bytes / 1e6);
  if (bytes >= 1e3) return fmt::format("{:.1f} kB", bytes / 1e3);
  return fmt::format("{:.0f} B", bytes);
}

TuningPoint point_of(const ExplainFlags& flags) {
  TuningPoint point;
  for (const std::string& text : flags.axes) {
    const AxisValues axis = parse_axis("-a", text);
    if (axis.values.size() != 1 || point.get(axis.name))
      throw usage_error("-a " + text + ": one plan is explained at a time: one value an axis");
    point.set(axis.name, axis.values.front());
  }
  return point;
}

DeviceInfo local_device(const Variant& variant) {
  if (variant.backend == BackendKind::cpu) return cpu_device_info(cpu_isas());
#ifdef FDBENCH_HAVE_CUDA
  if (cuda_device_count().count > 0) return query_cuda_device(0);
#endif
  throw usage_error(
      "--gpu is missing: there is no CUDA device here, so say for which GPU (fdbench schedule lists them)");
}

LaunchPlan planned(const Variant& variant, const Problem& problem, const DeviceInfo& device,
                   const TuningPoint& point) {
  const PlanResult made = make_plan(variant, problem, device, point);
  if (const auto* no = std::get_if<Unsupported>(&made))
    throw usage_error(fmt::format("{} cannot run this{}: {}", variant.name,
                                  point.empty() ? "" : " with " + point.id(), no->reason));
  return std::get<LaunchPlan>(made);
}

// The rule's point, the first that the variant takes.
TuningPoint rule_point(const ExplainFlags& flags, const Variant& variant, const Problem& problem,
                       const DeviceInfo& device) {
  const rules::NamedSplitRule rule = rules::find_split_rule(flags.rule);
  if (!rule.ok()) throw usage_error("--rule " + flags.rule + ": " + rule.error);
  const auto axis = tune::split_axis(variant.axes);
  if (!axis)
    throw usage_error(fmt::format("--rule {}: {} has no axis 'splits' or 'chunk'", flags.rule, variant.name));
  const tune::Site site =
      tune::site_of(variant, problem, device, *axis, planned(variant, problem, device, {}));
  const rules::Split answer = rule(tune::rule_input(site, rule));
  if (!answer.ok()) throw usage_error("--rule " + flags.rule + ": it has no answer here: " + answer.error);
  for (const TuningPoint& point : tune::rule_points(site, answer)) {
    if (std::holds_alternative<LaunchPlan>(make_plan(variant, problem, device, point))) return point;
  }
  throw usage_error(fmt::format("--rule {}: {} does not take its {} splits of {} tokens", flags.rule,
                                variant.name, answer.splits, answer.chunk));
}

const ResultRecord* recorded(const SweepFiles& files, const Problem& problem, const TuningPoint& tuning) {
  for (const ResultFile& file : files.files) {
    for (const ResultRecord& row : file.results) {
      if (row.variant == files.variant && row.problem == problem && row.tuning == tuning && row.plan &&
          row.time)
        return &row;
    }
  }
  return nullptr;
}

Subject subject_of(const ExplainFlags& flags, const std::optional<SweepFiles>& files) {
  Subject s;
  const auto problems = flags.shapes.problems();
  if (flags.shapes.seq.empty() && flags.shapes.suite.empty())
    throw usage_error("--seq is missing: which shape's plan?");
  if (problems.size() != 1)
    throw usage_error(std::string(flags.shapes.suite.empty() ? "--seq" : "--suite") +
                      ": one shape is explained at a time, and this is " + std::to_string(problems.size()));
  s.problem = problems.front();
  s.name = files ? files->variant : flags.variant;
  if (s.name.empty()) throw usage_error("--variant is missing: whose plan? (fdbench list variants)");
  s.tuning = point_of(flags);
  s.variant = find_variant(variant_table(), s.name);
  if (!s.variant) {
    const ResultRecord* row = files ? recorded(*files, s.problem, s.tuning) : nullptr;
    if (row && !(flags.gpu.empty() && flags.rule.empty()))
      throw usage_error(fmt::format(
          "{}: this build has no variant {} to plan with; without it, the recorded plan is explained",
          flags.gpu.empty() ? "--rule" : "--gpu", s.name));
    if (!row)
      throw usage_error(fmt::format(
          "--variant {}: this build has no such variant{}", s.name,
          files ? ", and the file no plan of it for this shape and tuning" : " (fdbench list variants)"));
    s.device = files->device;
    s.why_device = "as recorded";
    s.plan = *row->plan;
    s.why_plan = "as recorded";
    return s;
  }
  if (!flags.gpu.empty()) {
    if (s.variant->backend != BackendKind::cuda)
      throw usage_error(
          fmt::format("--gpu {}: {} runs on {}", flags.gpu, s.name, to_string(s.variant->backend)));
    s.device = io::find_gpu(flags.gpu, config_directories("gpus")).device;
    s.why_device = "described";
  } else if (files) {
    s.device = files->device;
    s.why_device = "as recorded";
  } else {
    s.device = local_device(*s.variant);
    s.why_device = "this machine";
  }
  if (!flags.rule.empty()) {
    if (!s.tuning.empty()) throw usage_error("--rule " + flags.rule + ": it sets the splits; leave out -a");
    s.tuning = rule_point(flags, *s.variant, s.problem, s.device);
    s.why_plan = "rule " + flags.rule;
  }
  s.plan = planned(*s.variant, s.problem, s.device, s.tuning);
  if (s.why_plan.empty())
    s.why_plan = s.plan.rule.empty() ? (s.tuning.empty() ? "the variant's own" : s.tuning.id())
                                     : "rule " + s.plan.rule;
  return s;
}

std::string occupancy_text(const Subject& s, const tune::Explanation& e) {
  const rules::Occupancy& o = *e.occupancy;
  if (o.ctas_per_sm == 0) return "none: " + o.reason;
  std::string text =
      fmt::format("{} CTA{} a multiprocessor ({:.0f} % of its warps), limited by {}", o.ctas_per_sm,
                  o.ctas_per_sm == 1 ? "" : "s", 100.0 * o.warp_share, to_string(o.limit));
  text += fmt::format(" (registers would hold {}, shared memory {}, threads {}, CTAs {})",
                      e.registers_known ? std::to_string(o.by_registers) : "?", o.by_shared_memory,
                      o.by_threads, o.by_ctas);
  if (s.plan.dynamic_smem > 0)
    text += fmt::format("; {} bytes of dynamic shared memory", s.plan.dynamic_smem);
  return text;
}

std::string cut_text(const Subject& s, const tune::Explanation& e) {
  const LaunchPlan& p = s.plan;
  const char* const plural = p.splits == 1 ? "" : "s";
  if (s.device.kind == BackendKind::cuda)
    return fmt::format("{} split{} of {} tokens (the last {}), tile {}, {} stage{}, merge '{}': {}", p.splits,
                       plural, p.chunk, e.last_chunk, p.tile, p.stages, p.stages == 1 ? "" : "s",
                       p.merge.empty() ? "none" : p.merge, s.why_plan);
  std::string text = fmt::format("{} chunk{} of {} tokens (the last {}) for all heads", p.splits, plural,
                                 p.chunk, e.last_chunk);
  if (p.tile > 0) text += fmt::format(", scores kept of {} tokens", p.tile);
  if (!p.isa.empty()) text += fmt::format(", {}", p.isa == "plain" ? "plain loops" : p.isa);
  if (p.splits > 1 && p.merge == "team") text += ", merged by all threads when the last is done";
  text += ": " + s.why_plan;
  if (p.rule == "cpu_balanced")
    text += " (some 16 chunks a thread, none too short to be worth its partial result)";
  return text;
}

std::string plan_text(const Subject& s, const tune::Explanation& e, double latency_ns) {
  const bool gpu = s.device.kind == BackendKind::cuda;
  const LaunchPlan& p = s.plan;
  std::string out;
  const auto line = [&](const char* name, const std::string& text) {
    out += fmt::format("{:<12} {}\n", name, text);
  };
  line("plan", cut_text(s, e));
  line("grid",
       gpu ? fmt::format("{} x {} x {} = {} CTAs of {} threads{}{}", p.grid.x, p.grid.y, p.grid.z, e.ctas,
                         p.block.total(),
                         p.cluster.total() > 1 ? fmt::format(", clusters of {}", p.cluster.total()) : "",
                         p.cooperative ? ", all resident (cooperative)" : "")
           : fmt::format("{} work items for {} threads", e.ctas, p.block.total()));
  if (e.occupancy) line("occupancy", occupancy_text(s, e));
  line("waves", fmt::format("{:.2f} of {} at once; the last leaves {:.0f} % of all slots' time idle", e.waves,
                            e.slots, 100.0 * e.tail_idle));
  line(gpu ? "a CTA reads" : "chunk reads",
       fmt::format("{} of K and V", bytes_text(static_cast<double>(e.kv_bytes_per_cta))));
  if (e.in_flight && e.needed) {
    line("in flight", fmt::format("{} a multiprocessor at most, {} needed for {:.0f} GB/s at {:.0f} ns: {}",
                                  bytes_text(static_cast<double>(*e.in_flight)), bytes_text(*e.needed),
                                  s.device.bandwidth_datasheet.value_or(0.0) / 1e9, latency_ns,
                                  static_cast<double>(*e.in_flight) >= *e.needed
                                      ? "enough"
                                      : fmt::format("{:.0f} % of it",
                                                    100.0 * static_cast<double>(*e.in_flight) / *e.needed)));
    const std::int64_t busy = std::min<std::int64_t>(e.ctas, s.device.sms);
    if (busy < s.device.sms)
      line("", fmt::format("and {} of {} multiprocessors have no CTA", s.device.sms - busy, s.device.sms));
  }
  line("merging", p.splits > 1
                      ? fmt::format("{} of partial results out and in again, {:.1f} % of K and V{}",
                                    bytes_text(static_cast<double>(e.partial_bytes)), 100.0 * e.partial_share,
                                    p.merge == "cluster" ? " (within the cluster's shared memory)" : "")
                      : "none, there is one split");
  line("workspace", fmt::format("{} ({} scratch, {} zeroed)", bytes_text(static_cast<double>(e.workspace)),
                                bytes_text(static_cast<double>(p.scratch_bytes)),
                                bytes_text(static_cast<double>(p.zeroed_bytes))));
  return out;
}

std::string microseconds(double ns) {
  return fmt::format("{:.4g} us", ns / 1e3);
}

// What the sweeps say: the model's time, and the measured one.
std::string time_text(const Subject& s, const SweepFiles& files) {
  std::string out;
  const bool same = files.device.name == s.device.name && files.device.sms == s.device.sms;
  if (!same)
    return fmt::format("predicted    nothing: {} is not {}, on which was measured\n", s.device.name,
                       files.device.name);
  try {
    const tune::CostModel model = tune::fit_cost_model(files.sweeps);
    if (const auto why = tune::outside(model, s.problem)) {
      out += "predicted    nothing: " + *why + "\n";
    } else {
      const double ns = tune::predicted_ns(model, s.problem, s.plan.splits);
      const std::int64_t best = tune::fitted_splits(model, s.problem);
      out += fmt::format("predicted    {} by the model fitted to {} sweeps (its error: {:.1f} %)\n",
                         microseconds(ns), files.sweeps.size(), 100.0 * tune::log_error(model, files.sweeps));
      if (best != s.plan.splits)
        out +=
            fmt::format("             {} with {} split{}, its choice\n",
                        microseconds(tune::predicted_ns(model, s.problem, best)), best, best == 1 ? "" : "s");
    }
  } catch (const std::invalid_argument& why) {
    out += std::string("predicted    nothing: ") + why.what() + "\n";
  }
  const ResultRecord* row = recorded(files, s.problem, s.tuning);
  if (!row) return out + "measured     this plan is not among the results\n";
  if (row->plan->splits != s.plan.splits || row->plan->chunk != s.plan.chunk)
    return out + fmt::format("measured     not so: the results have {} splits of {} tokens for this\n",
                             row->plan->splits, row->plan->chunk);
  out += fmt::format("measured     {}", microseconds(row->time->median));
  if (row->time->ci95)
    out += fmt::format(" ({} to {})", microseconds(row->time->ci95->lo), microseconds(row->time->ci95->hi));
  if (row->roof_share) out += fmt::format(", {:.1f} % of the roof", 100.0 * *row->roof_share);
  return out + "\n";
}

Exit explain_plan(const ExplainFlags& flags) {
  const double latency_ns = parse_positive("--latency", flags.latency);
  std::optional<SweepFiles> files;
  if (!flags.from.empty()) files = read_sweeps(flags.from, flags.variant);
  const Subject s = subject_of(flags, files);
  const KernelResources* resources = s.variant ? tune::resources_for(*s.variant, s.device.cc) : nullptr;
  const tune::Explanation e = tune::explain(s.problem, s.device, s.plan, resources, latency_ns);
  const DeviceInfo& d = s.device;
  std::string out = fmt::format(
      "{} at seq {}, heads {}/{}, dim {}, {}: {} of K and V\non {} ({}, {} {}): {}\n\n", s.name,
      s.problem.seq, s.problem.heads, s.problem.kv_heads, s.problem.dim, to_string(s.problem.dtype),
      bytes_text(2.0 * static_cast<double>(s.problem.kv_bytes())), d.name,
      d.kind == BackendKind::cuda ? fmt::format("sm_{}", d.cc) : std::string(to_string(d.kind)), d.sms,
      d.kind == BackendKind::cuda ? "multiprocessors" : "cores", s.why_device);
  out += plan_text(s, e, latency_ns);
  out += files ? time_text(s, *files)
               : "predicted    nothing without sweeps: --from RESULT.json of fdbench rules\n";
  say(stdout, out);
  return Exit::good;
}

}  // namespace

Command add_explain(CLI::App& parent) {
  CLI::App* app = parent.add_subcommand(
      "explain", "says why a plan is what it is: waves, occupancy, bytes in flight, merging");
  auto flags = std::make_shared<ExplainFlags>();
  flags->shapes.add_to(*app);
  app->add_option("--variant", flags->variant, "whose plan")->group("Plan");
  app->add_option("-a,--axis", flags->axes, "NAME=VALUE, one for each axis (the variant's own plan)")
      ->group("Plan");
  app->add_option("--rule", flags->rule, "the plan of this split rule: fa3, sm_multiple:2, ...")
      ->group("Plan");
  app->add_option("--gpu", flags->gpu,
                  "plan for this GPU instead: h200, rtx5090, ... (configs/gpus), or a file")
      ->group("Plan");
  app->add_option("--from", flags->from,
                  "result file of fdbench rules or of a sweep: its device, the time that a model fitted to "
                  "it predicts, "
                  "and the one measured; may be repeated")
      ->group("Plan");
  app->add_option("--latency", flags->latency,
                  "nanoseconds that a load takes when memory is busy, assumed (1000)")
      ->group("Plan");
  app->footer(
      "Examples:\n"
      "  fdbench explain --variant cpu_split_kv --seq 8192 --heads 32 --kv-heads 8\n"
      "  fdbench explain --variant split_kv_tma --seq 8192 --heads 32 --kv-heads 8 --gpu rtx5090\n"
      "  fdbench explain --seq 8192 --heads 32 --kv-heads 8 -a splits=16 --from rules.json");
  return {app, [flags] { return explain_plan(*flags); }};
}

}  // namespace fdbench::cli
