// `fdbench rules`: every split rule against the best plan measured.
#include <fmt/core.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <utility>

#include "backend/fake/fake_backend.h"
#include "cli/build_info.h"
#include "cli/commands.h"
#include "cli/measure_command.h"
#include "cli/measure_options.h"
#include "cli/rules_header.h"
#include "cli/rules_table.h"
#include "cli/say.h"
#include "cli/shape_options.h"
#include "cli/sweep_files.h"
#include "cli/variant_table.h"
#include "io/file.h"
#include "tune/cost_model.h"
#include "tune/regret.h"

namespace fdbench::cli {

namespace {

struct RulesFlags {
  ShapeOptions shapes;
  MeasureOptions measure;
  OutputOptions output;
  std::string variant;
  std::vector<std::string> rules, from;
  std::string header;
  bool summary = false, fit = false;
  CLI::App* app = nullptr;
};

std::vector<rules::NamedSplitRule> asked_rules(const std::vector<std::string>& specs) {
  if (specs.empty()) return tune::standard_rules();
  std::vector<rules::NamedSplitRule> asked;
  for (const std::string& spec : specs) {
    asked.push_back(rules::find_split_rule(spec));
    for (std::size_t i = 0; i + 1 < asked.size(); ++i) {
      if (asked[i].name() == asked.back().name()) throw usage_error("--rule " + spec + ": is given twice");
    }
    if (!asked.back().ok()) throw usage_error("--rule " + spec + ": " + asked.back().error);
  }
  return asked;
}

bool use_color(const OutputOptions& output, std::FILE* out) {
  const char* none = std::getenv("NO_COLOR");
  return !output.no_color && (!none || !*none) && isatty(fileno(out));
}

std::vector<tune::ShapeScore> scored(const std::vector<tune::SplitSweep>& sweeps,
                                     const std::vector<tune::Chooser>& choosers) {
  std::vector<tune::ShapeScore> scores;
  for (const tune::SplitSweep& sweep : sweeps) {
    if (auto shape = tune::score(sweep, choosers)) {
      scores.push_back(*std::move(shape));
    } else {
      say(stderr, fmt::format("fdbench: {}: its points share fewer than 3 rounds, and are not scored\n",
                              short_shape(sweep.site.problem)));
    }
  }
  return scores;
}

std::string range_text(const tune::Span& span) {
  return span.least == span.most ? std::to_string(span.least)
                                 : fmt::format("{} to {}", span.least, span.most);
}

std::string model_text(const tune::CostModel& model, const tune::Halves& halves) {
  std::string out = fmt::format(
      "the model (src/tune/cost_model.h), for seq {}, KV heads {}, query heads a KV head {}, dim {}\n",
      range_text(model.seq), range_text(model.kv_heads), range_text(model.group), range_text(model.dim));
  for (std::size_t i = 0; i < tune::kCostTerms; ++i)
    out += fmt::format("  {:<18} {:.4g} ns\n", tune::kCostTermNames[i], model.terms[i]);
  return out + fmt::format("  error of its times: {:.1f} % (shapes fitted to), {:.1f} % (others)\n",
                           100.0 * tune::log_error(model, halves.fit),
                           100.0 * tune::log_error(model, halves.test));
}

// What a command has scored.
struct Report {
  std::vector<tune::SplitSweep> sweeps;
  RunInfo run;
  std::FILE* out = stdout;
};

void write_file(const std::string& path, const std::string& text, const RulesFlags& flags, std::FILE* out) {
  if (path == "-") {
    say(stdout, text);
    return;
  }
  io::write_atomically(path, text);
  if (!flags.output.quiet) say(out, fmt::format("\nwrote {}\n", path));
}

void report_fit(const RulesFlags& flags, const Report& report, const std::vector<tune::Chooser>& named,
                bool color) {
  const tune::Halves halves = tune::halves(report.sweeps);
  tune::CostModel model;
  try {
    model = tune::fit_cost_model(halves.fit);
  } catch (const std::invalid_argument& why) {
    throw usage_error(fmt::format("{}: of {} shapes half are fitted to: {}",
                                  flags.fit ? "--fit" : "--emit-header", report.sweeps.size(), why.what()));
  }
  std::vector<tune::Chooser> choosers{tune::fitted_chooser(model)};
  choosers.insert(choosers.end(), named.begin(), named.end());
  const auto unseen = scored(halves.test, choosers);
  const auto seen = scored(halves.fit, {choosers[0], choosers[1]});
  const auto unseen_summary = tune::summarise(unseen), seen_summary = tune::summarise(seen);
  if (!flags.output.quiet) {
    say(report.out,
        "\n" + regret_summary(fmt::format("regret on the {} shapes that the fit has not seen (mean: "
                                          "geometric)",
                                          unseen.size()),
                              unseen_summary, unseen.size(), color));
    say(report.out,
        "\n" + regret_summary(fmt::format("regret on the {} shapes that it was fitted to", seen.size()),
                              seen_summary, seen.size(), color));
    say(report.out, "\n" + model_text(model, halves));
  }
  if (flags.header.empty()) return;
  HeaderEvidence evidence;
  evidence.run = report.run;
  const ToolInfo tool = build_info();
  evidence.tool = fmt::format("{} ({})", tool.version, commit_text(tool));
  evidence.fit_shapes = halves.fit.size();
  evidence.test_shapes = unseen.size();
  evidence.test = unseen_summary;
  for (const tune::SplitSweep& sweep : report.sweeps) evidence.shapes.push_back(sweep.site.problem);
  write_file(flags.header, rule_header(model, evidence), flags, report.out);
}

// Scores the sweeps and prints what there is to see. False, which is said, where there is nothing to score.
bool give_report(const RulesFlags& flags, const Report& report) {
  std::vector<tune::Chooser> choosers{tune::own_chooser()};
  for (const rules::NamedSplitRule& rule : asked_rules(flags.rules))
    choosers.push_back(tune::rule_chooser(rule));
  const bool color = use_color(flags.output, report.out), table = !flags.output.quiet;
  const auto scores = scored(report.sweeps, choosers);
  if (scores.empty()) {
    say(stderr,
        "fdbench: no shape can be scored: that takes a sweep whose points share rounds to choose by and "
        "rounds to "
        "score by (--rounds 4 or more); nothing is written\n");
    return false;
  }
  const auto summary = tune::summarise(scores);
  if (table && !flags.summary) {
    for (const tune::ShapeScore& shape : scores) say(report.out, "\n" + regret_block(shape, color));
  }
  if (table) {
    say(report.out,
        "\n" +
            regret_summary(fmt::format("regret against the best plan measured, {} shape{} (mean: geometric)",
                                       scores.size(), scores.size() == 1 ? "" : "s"),
                           summary, scores.size(), color));
  }
  if (!flags.output.md.empty())
    write_file(flags.output.md, regret_markdown(scores, summary), flags, report.out);
  if (flags.fit || !flags.header.empty()) report_fit(flags, report, choosers, color);
  return true;
}

using Locks = std::vector<std::unique_ptr<io::OutputLock>>;

// What can be known to be wrong before anything is read or measured; holds the files that are going to be
// written.
Locks check(const RulesFlags& flags) {
  Locks locks;
  asked_rules(flags.rules);
  if (flags.header == "-" && flags.output.stdout_taken())
    throw usage_error("--emit-header -: stdout is already taken");
  for (const auto& [flag, path] : {std::pair<const char*, const std::string&>{"--md", flags.output.md},
                                   {"--emit-header", flags.header}}) {
    if (path.empty() || path == "-") continue;
    io::probe_writable(path, flag);
    io::refuse_overwriting(path, flag, flags.from, "--from");
    locks.push_back(io::lock_output(path, flag));
  }
  return locks;
}

std::FILE* report_stream(const RulesFlags& flags) {
  return flags.output.stdout_taken() || flags.header == "-" ? stderr : stdout;
}

Exit from_files(const RulesFlags& flags) {
  for (const CLI::Option* option : flags.app->get_options()) {
    const std::string group = option->get_group();
    if (was_typed(*option) && (group == "Shapes" || group == "Measuring"))
      throw usage_error(option->get_name() + ": nothing is measured with --from; leave it out");
  }
  for (const auto& [flag, value] : {std::pair<const char*, const std::string&>{"--json", flags.output.json},
                                    {"--csv", flags.output.csv},
                                    {"--out", flags.output.directory}}) {
    if (!value.empty())
      throw usage_error(fmt::format(
          "{} {}: with --from there are no new results to write; --md has the table", flag, value));
  }
  const Locks locks = check(flags);
  const SweepFiles files = read_sweeps(flags.from, flags.variant);
  const Report report{files.sweeps, files.files.front().run, report_stream(flags)};
  if (!flags.output.quiet) {
    say(report.out,
        fmt::format("fdbench rules: {} on {}, {} shape{} from {}\n", files.variant, files.device.name,
                    files.sweeps.size(), files.sweeps.size() == 1 ? "" : "s", files.names));
  }
  return give_report(flags, report) ? Exit::good : Exit::failed;
}

Exit by_measuring(const RulesFlags& flags, const std::vector<std::string>& argv) {
  const Locks locks = check(flags);
  if (flags.variant.empty())
    throw usage_error("--variant is missing: whose splits are to be measured? (or --from RESULT.json)");
  const VariantTable table = flags.measure.script.empty() ? variant_table() : fake_variant_table();
  const Variant* variant = find_variant(table, flags.variant);
  if (!variant || variant->role != Role::candidate) {
    throw usage_error(
        fmt::format("--variant {}: no such candidate to measure (fdbench list variants)", flags.variant));
  }
  if (!tune::split_axis(variant->axes)) {
    throw usage_error(
        fmt::format("--variant {}: it has no axis 'splits' or 'chunk' for a rule to set", flags.variant));
  }
  MeasureCommand command;
  command.name = "rules";
  command.argv = argv;
  command.shapes = flags.shapes.problems();
  command.variants = {flags.variant};
  command.settings = flags.measure.settings();
  command.output = flags.output;
  command.output.md.clear();  // the regrets, not the rows
  command.fail_noisy = flags.measure.fail_noisy;
  command.shape_tables = false;
  const std::vector<rules::NamedSplitRule> rules = asked_rules(flags.rules);
  command.rows_for = [rules](const Variant& one, const Problem& problem, const DeviceInfo& device) {
    std::vector<bench::RowRequest> rows;
    for (tune::PlannedPoint& point : tune::points_to_measure(one, problem, device, rules))
      rows.push_back({&one, std::move(point.tuning), std::move(point.source)});
    return rows;
  };
  bool is_scored = true;
  command.finish = [&](const ResultFile& file, std::FILE*) {
    is_scored = give_report(flags, {tune::split_sweeps(file.results, file.run.device, flags.variant),
                                    file.run, report_stream(flags)});
  };
  const Exit measured = measure(command);
  return measured == Exit::good && !is_scored ? Exit::failed : measured;
}

}  // namespace

Command add_rules(CLI::App& parent, const std::vector<std::string>& argv) {
  CLI::App* app = parent.add_subcommand("rules", "scores every split rule against the best plan measured");
  auto flags = std::make_shared<RulesFlags>();
  flags->app = app;
  app->add_option("--from", flags->from,
                  "score what this result file holds (of rules, or of a sweep over splits or chunk alone); "
                  "may be repeated")
      ->group("Rules");
  app->add_option("--variant", flags->variant, "whose splits; needed where nothing is said by --from")
      ->group("Rules");
  app->add_option("--rule", flags->rules, "score this rule only: fa3, sm_multiple:2, ...; may be repeated")
      ->group("Rules");
  app->add_flag("--summary", flags->summary, "print the summary only, not every shape")->group("Rules");
  app->add_flag("--fit", flags->fit,
                "fit a cost model to every other shape, and score its choices on the rest")
      ->group("Rules");
  app->add_option("--emit-header", flags->header,
                  "fit, and write the rule as a C++17 header without dependencies to this file, - for stdout")
      ->group("Rules");
  flags->shapes.add_to(*app);
  flags->measure.add_to(*app, true);
  flags->output.add_to(*app);
  app->footer(
      "Examples:\n"
      "  fdbench rules --variant cpu_split_kv --seq 1024:16384*2 --heads 32 --kv-heads 8\n"
      "  fdbench rules --variant split_kv_tma --suite rules --rounds 40 --json rules.json\n"
      "  fdbench rules --from rules.json --md regret.md\n"
      "  fdbench rules --from rules.json --fit --summary --emit-header split_rule.h\n"
      "The rules: fdbench list rules, docs/rules.md. Regret: the time of the rule's plan over that of the "
      "best plan\n"
      "measured, which is chosen on one half of the rounds and scored on the other.");
  return {app,
          [flags, argv] { return flags->from.empty() ? by_measuring(*flags, argv) : from_files(*flags); }};
}

}  // namespace fdbench::cli
