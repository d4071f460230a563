#include "report/html.h"

#include <fmt/core.h>

#include <algorithm>

#include "report/charts.h"
#include "report/html_rows.h"
#include "report/markup.h"
#include "report/page_assets.h"

namespace fdbench::report {

namespace {

std::string fact(std::string_view name, const std::string& value) {
  return value.empty() ? "" : fmt::format("<dt>{}</dt><dd>{}</dd>\n", name, escaped(value));
}

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : " ") + word;
  return out;
}

// How well the medians of a file are known.
std::string interval_widths(const std::vector<ResultRecord>& rows) {
  std::vector<double> widths;
  for (const ResultRecord& row : rows) {
    if (row.time && row.time->ci95 && row.time->median > 0.0)
      widths.push_back((row.time->ci95->hi - row.time->ci95->lo) / 2.0 / row.time->median * 100.0);
  }
  if (widths.empty()) return {};
  std::sort(widths.begin(), widths.end());
  return fmt::format("\u00b1{:.2f} % in the middle of {} rows, \u00b1{:.2f} % at most",
                     widths[widths.size() / 2], widths.size(), widths.back());
}

std::string file_facts(const ResultFile& file, const std::string& name, std::size_t number) {
  const RunInfo& run = file.run;
  const DeviceInfo& d = run.device;
  std::string device = d.name;
  if (d.cc > 0) device += fmt::format(", sm_{}", d.cc);
  device += fmt::format(", {} {}, {} last-level cache", d.sms,
                        d.kind == BackendKind::cuda ? "multiprocessors" : "cores", size_text(d.l2_bytes));
  if (d.memory_bytes > 0) device += ", " + size_text(d.memory_bytes) + " memory";
  if (d.bandwidth_datasheet)
    device += ", " + gigabytes_per_s(*d.bandwidth_datasheet) + " GB/s by its data sheet";
  std::string driver = d.driver;
  if (!d.cublas.empty()) driver += (driver.empty() ? "cuBLAS " : ", cuBLAS ") + d.cublas;
  std::string out = fmt::format("<h3>File {}: {}</h3>\n", number, escaped(name));
  if (run.interrupted)
    out += "<p class=\"warn\">The run was interrupted: these are the rows it had finished.</p>\n";
  out += "<dl class=\"facts\">\n" + fact("device", device) + fact("driver", driver);
  out += fact("power limit", d.power_limit_w ? fmt::format("{:g} W", *d.power_limit_w) : "");
  out += fact("host", fmt::format("{}, {} cores, {}, {}", run.host.cpu, run.host.cores, run.host.os,
                                  run.host.kernel));
  out += fact("build", fmt::format("fdbench {} ({}{}), {}, CUDA {}", run.tool.version, run.tool.commit,
                                   run.tool.dirty ? " with changes" : "", run.tool.compiler,
                                   run.tool.cuda.empty() ? "off" : run.tool.cuda));
  out += fact("compiled with", run.tool.flags) + fact("command", joined(run.argv)) +
         fact("started", run.started);
  out += fact("measured", fmt::format("{} cache, timer {}, {} process{}, seed {}, inputs {}",
                                      to_string(run.cache), to_string(run.timer), run.processes,
                                      run.processes == 1 ? "" : "es", run.seed, run.inputs));
  out += fact("rows", std::to_string(file.results.size())) +
         fact("95 % intervals", interval_widths(file.results));
  return out + "</dl>\n";
}

std::string machine_facts(const MachineReport& machine) {
  std::string out = "<h3>The machine, by fdbench doctor</h3>\n";
  for (const MachineFact& f : machine.facts) {
    if (!f.worry.empty())
      out += fmt::format("<p class=\"warn\">{}: {}. {}</p>\n", escaped(f.name), escaped(f.value),
                         escaped(f.worry));
  }
  TextRows facts, noise;
  for (const MachineFact& f : machine.facts) facts.push_back({f.name, f.value, f.worry});
  for (const RowNoise& n : machine.noise)
    noise.push_back({n.id, std::to_string(n.processes), fmt::format("{:.2f}", n.within_percent),
                     fmt::format("{:.2f}", n.between_percent),
                     fmt::format("{:.2f}", n.smallest_effect_percent)});
  if (!facts.empty()) out += "<p class=\"note\">Facts</p>" + details_table({"what", "is", "worry"}, facts);
  if (!noise.empty())
    out += "<p class=\"note\">Noise floor: the same build against itself</p>" +
           details_table({"row", "processes", "within a process, %", "between, %", "smallest effect seen, %"},
                         noise);
  return out;
}

std::string change_section(const Comparison& comparison) {
  std::string out = "<section><h2 id=\"s-change\">Before and after</h2>\n<p>";
  out += escaped(fmt::format("Build {} before, {} after; gate {}.",
                             comparison.base_commit.empty() ? "unknown" : comparison.base_commit,
                             comparison.new_commit.empty() ? "unknown" : comparison.new_commit,
                             comparison.gate));
  out += "</p>\n";
  for (const std::string& text : comparison.not_comparable)
    out += "<p class=\"warn\">Not comparable: " + escaped(text) + "</p>\n";
  for (const std::string& text : comparison.warnings) out += "<p class=\"warn\">" + escaped(text) + "</p>\n";
  if (!comparison.rows.empty()) out += change_figure(comparison);
  return out + "</section>\n";
}

// Figures of all files under one heading, if there are any.
std::string section(std::string_view id, std::string_view title, const std::string& figures) {
  if (figures.empty()) return {};
  return fmt::format("<section><h2 id=\"{}\">{}</h2>\n<div class=\"grid\">\n{}</div></section>\n", id, title,
                     figures);
}

}  // namespace

std::string html_report(const ReportInput& input) {
  const Styles styles(input.files);
  std::string bandwidths, bars, sweeps, facts;
  std::vector<SweepMap> maps;
  const auto file_mark = [&](std::size_t f) {
    return input.files.size() > 1 ? fmt::format("<h3 style=\"grid-column:1/-1\">File {}: {}</h3>\n", f + 1,
                                                escaped(input.names[f]))
                                  : "";
  };
  std::size_t rows = 0, failed = 0;
  for (std::size_t f = 0; f < input.files.size(); ++f) {
    const auto& results = input.files[f].results;
    const auto panels = panels_of(results, f);
    if (!panels.empty()) bandwidths += file_mark(f);
    if (!panels.empty()) bars += file_mark(f);
    for (const Panel& panel : panels) {
      bandwidths += bandwidth_figure(panel, styles);
      bars += share_figure(panel, styles) + speedup_figure(panel, styles);
    }
    const auto found = sweep_maps_of(results, f);
    if (!found.empty()) sweeps += file_mark(f);
    for (const SweepMap& map : found) {
      std::vector<RuleChoice> own;
      for (const RuleChoice& choice : input.rules) {
        if (is_of(choice, map)) own.push_back(choice);
      }
      sweeps += sweep_figure(map, own);
      maps.push_back(map);
    }
    facts += file_facts(input.files[f], input.names[f], f + 1);
    rows += results.size();
    failed +=
        static_cast<std::size_t>(std::count_if(results.begin(), results.end(), [](const ResultRecord& row) {
          return row.status != Status::ok && row.status != Status::unsupported;
        }));
  }
  if (!sweeps.empty()) sweeps += regret_figure(maps, input.rules);
  if (input.machine) facts += machine_facts(*input.machine);

  const std::string device = input.files.empty() ? "no file" : input.files.front().run.device.name;
  std::string body = section("s-bandwidth", "Bandwidth", bandwidths) +
                     section("s-bars", "Roof and reference", bars) +
                     section("s-sweeps", "Sweeps and split rules", sweeps);
  if (bandwidths.empty())
    body = "<p class=\"warn\">No row was timed, so there is nothing to draw.</p>\n" + body;
  if (input.comparison) body += change_section(*input.comparison);
  body += samples_section(input) + "<section><h2 id=\"s-facts\">Facts</h2>\n" + facts + "</section>\n" +
          rows_section(input);

  std::string nav;
  for (const auto& [id, title] :
       std::initializer_list<std::pair<const char*, const char*>>{{"s-bandwidth", "Bandwidth"},
                                                                  {"s-bars", "Roof and reference"},
                                                                  {"s-sweeps", "Sweeps"},
                                                                  {"s-change", "Before and after"},
                                                                  {"s-samples", "Samples"},
                                                                  {"s-facts", "Facts"},
                                                                  {"s-rows", "All rows"}}) {
    if (body.find(fmt::format("id=\"{}\"", id)) != std::string::npos)
      nav += fmt::format("<a href=\"#{}\">{}</a>", id, title);
  }
  std::string page = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
      "script-src "
      "'sha256-{}'; img-src data:; base-uri 'none'; form-action 'none'\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<link rel=\"icon\" "
      "href=\"data:,\">\n"
      "<title>fdbench: {}</title>\n<style>{}</style></head>\n<body>\n<header><h1>{}</h1>\n",
      kPageScriptSha256, escaped(device), kPageStyle, escaped(device));
  page += fmt::format(
      "<p>Flash-decoding kernels: {} row{} of {} file{}{}.</p>\n<nav "
      "aria-label=\"Sections\">{}</nav></header>\n<main>\n",
      rows, rows == 1 ? "" : "s", input.files.size(), input.files.size() == 1 ? "" : "s",
      failed > 0 ? fmt::format(", {} of them <strong>not right</strong>", failed) : "", nav);
  page +=
      "<p class=\"note\">Point at a mark for its row, or give a chart the focus and use the arrow keys; "
      "Enter shows the row's "
      "samples. Bands and bars' whiskers are 95 % intervals of the median.</p>\n";
  page += body +
          "</main>\n<div id=\"tip\" role=\"tooltip\" hidden></div><div id=\"live\" aria-live=\"polite\" "
          "style=\"position:absolute;left:-9999px\"></div>\n<script>";
  page += kPageScript;
  return page + "</script>\n</body></html>\n";
}

}  // namespace fdbench::report
