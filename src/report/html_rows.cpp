#include "report/html_rows.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "report/charts.h"
#include "report/markup.h"

namespace fdbench::report {

namespace {

struct Column {
  const char* key;  // of the CSV
  const char* title;
  bool left;
};
constexpr Column kColumns[] = {
    {"file", "file", false},
    {"variant", "variant", true},
    {"tuning", "tuning", true},
    {"role", "role", true},
    {"status", "status", true},
    {"seq", "seq", false},
    {"heads", "heads", false},
    {"kv_heads", "KV heads", false},
    {"dim", "dim", false},
    {"dtype", "dtype", true},
    {"median_us", "median us", false},
    {"lo_us", "95 % from", false},
    {"hi_us", "to", false},
    {"min_us", "min us", false},
    {"q1_us", "q1 us", false},
    {"q3_us", "q3 us", false},
    {"max_us", "max us", false},
    {"GBps", "GB/s", false},
    {"roof_percent", "roof %", false},
    {"speedup", "speedup", false},
    {"rel_l2", "rel. error", false},
    {"rounds", "rounds", false},
    {"set_aside", "set aside", false},
    {"source", "source", true},
    {"remarks", "remarks", true},
};

std::string remarks(const ResultRecord& row) {
  std::string text = row.reason;
  for (const std::string& flag : row.flags) text += (text.empty() ? "" : ", ") + flag;
  if (row.time && row.time->stop == "max_time") text += text.empty() ? "max_time" : ", max_time";
  return text;
}

std::vector<std::string> cells_of(const ResultRecord& row, std::size_t file) {
  const Problem& p = row.problem;
  std::vector<std::string> out = {std::to_string(file + 1),
                                  row.variant,
                                  row.tuning.id(),
                                  std::string(to_string(row.role)),
                                  std::string(to_string(row.status)),
                                  std::to_string(p.seq),
                                  std::to_string(p.heads),
                                  std::to_string(p.kv_heads),
                                  std::to_string(p.dim),
                                  std::string(to_string(p.dtype))};
  const auto us = [&](bool known, double ns) {
    out.push_back(known && std::isfinite(ns) ? microseconds(ns) : "");
  };
  const TimeSummary time = row.time.value_or(TimeSummary{});
  const bool timed = row.time.has_value(), bounded = timed && time.ci95;
  us(timed, time.median);
  us(bounded, bounded ? time.ci95->lo : 0.0);
  us(bounded, bounded ? time.ci95->hi : 0.0);
  for (const double ns : {time.min, time.q1, time.q3, time.max}) us(timed, ns);
  out.push_back(row.bytes_per_s ? gigabytes_per_s(*row.bytes_per_s) : "");
  out.push_back(row.roof_share ? fmt::format("{:.1f}", *row.roof_share * 100.0) : "");
  out.push_back(row.speedup ? fmt::format("{:.2f}", *row.speedup) : "");
  out.push_back(!row.accuracy                         ? ""
                : std::isfinite(row.accuracy->rel_l2) ? fmt::format("{:.1e}", row.accuracy->rel_l2)
                                                      : "not finite");
  out.push_back(timed ? std::to_string(time.n) : "");
  out.push_back(timed ? std::to_string(time.set_aside) : "");
  out.push_back(row.source);
  out.push_back(remarks(row));
  return out;
}

// "LEAST;GREATEST;SAMPLES;SET ASIDE;STARTS": microseconds; two characters a sample; indices of those set
// aside and of each process' first.
std::string encoded_samples(const TimeSummary& time, std::size_t stride) {
  std::vector<const Sample*> kept;
  for (std::size_t i = 0; i < time.samples.size(); ++i) {
    const Sample& sample = time.samples[i];
    if (std::isfinite(sample.ns) && (sample.set_aside || i % stride == 0)) kept.push_back(&sample);
  }
  if (kept.empty()) return {};
  const auto less = [](const Sample* a, const Sample* b) { return a->ns < b->ns; };
  const double lo = (*std::min_element(kept.begin(), kept.end(), less))->ns;
  const double hi = (*std::max_element(kept.begin(), kept.end(), less))->ns;
  static constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  std::string text, aside, starts;
  for (std::size_t i = 0; i < kept.size(); ++i) {
    const double place = hi > lo ? (kept[i]->ns - lo) / (hi - lo) : 0.0;
    const auto code = static_cast<unsigned>(std::lround(place * 4095.0));
    text += kDigits[code / 64];
    text += kDigits[code % 64];
    if (kept[i]->set_aside) aside += (aside.empty() ? "" : ",") + std::to_string(i);
    if (i == 0 || kept[i]->process != kept[i - 1]->process)
      starts += (starts.empty() ? "" : ",") + std::to_string(i);
  }
  return fmt::format("{};{};{};{};{}", lo / 1e3, hi / 1e3, text, aside, starts);
}

template <class Each>
void for_each_row(const ReportInput& input, const Each& each) {
  for (std::size_t f = 0; f < input.files.size(); ++f) {
    for (std::size_t r = 0; r < input.files[f].results.size(); ++r)
      each(RowRef{f, r, &input.files[f].results[r]});
  }
}

std::string options_of(const std::vector<std::string>& values, const char* every) {
  std::string out = fmt::format("<option value=\"\">{}</option>", every);
  for (const std::string& value : values) out += fmt::format("<option>{}</option>", escaped(value));
  return out;
}

}  // namespace

std::size_t sample_stride(const ReportInput& input) {
  std::size_t total = 0;
  for_each_row(input,
               [&](const RowRef& ref) { total += ref.record->time ? ref.record->time->samples.size() : 0; });
  return total <= kMaxSamples ? 1 : (total + kMaxSamples - 1) / kMaxSamples;
}

std::string samples_section(const ReportInput& input) {
  std::string options;
  // What set samples aside is what one would look at first.
  const RowRef* chosen = nullptr;
  std::vector<RowRef> sampled;
  for_each_row(input, [&](const RowRef& ref) {
    if (ref.record->time && !ref.record->time->samples.empty()) sampled.push_back(ref);
  });
  if (sampled.empty()) return {};
  for (const RowRef& ref : sampled) {
    if (!chosen || ref.record->time->set_aside > chosen->record->time->set_aside) chosen = &ref;
  }
  for (const RowRef& ref : sampled) {
    const Problem& p = ref.record->problem;
    options +=
        fmt::format("<option value=\"{}\"{}>{}</option>\n", row_key(ref), &ref == chosen ? " selected" : "",
                    escaped(fmt::format("{}{}, seq {}, heads {}/{}, dim {}",
                                        input.files.size() > 1 ? fmt::format("file {}: ", ref.file + 1) : "",
                                        name_of(*ref.record), p.seq, p.heads, p.kv_heads, p.dim)));
  }
  const std::size_t stride = sample_stride(input);
  return "<section><h2 id=\"s-samples\">Samples of a row</h2>\n<p><label for=\"pick\">Row:</label> <select "
         "id=\"pick\">" +
         options +
         "</select></p>\n<figure id=\"samples\"><figcaption>Every sample in the order taken, and how often "
         "each time was "
         "seen</figcaption><div class=\"scroll\"></div><p class=\"note\" id=\"samples-note\">Drawn by the "
         "page's "
         "script.</p>" +
         (stride > 1
              ? fmt::format(
                    "<p class=\"note\">There are so many samples that one in {} is shown; all that were set "
                    "aside are.</p>",
                    stride)
              : "") +
         "<p class=\"note\">The median, its interval and the quartiles of every row are in the table of all "
         "rows.</p>"
         "</figure></section>\n";
}

std::string rows_section(const ReportInput& input) {
  const std::size_t stride = sample_stride(input);
  std::vector<std::string> statuses, roles;
  const auto add = [](std::vector<std::string>& to, std::string_view value) {
    if (std::find(to.begin(), to.end(), value) == to.end()) to.emplace_back(value);
  };
  std::string body;
  std::size_t count = 0;
  for_each_row(input, [&](const RowRef& ref) {
    const ResultRecord& row = *ref.record;
    ++count;
    add(statuses, to_string(row.status));
    add(roles, to_string(row.role));
    const bool bad = row.status != Status::ok && row.status != Status::unsupported;
    body += fmt::format("<tr id=\"r{}\"{}", row_key(ref), bad ? " class=\"bad\"" : "");
    if (row.time) {
      const std::string samples = encoded_samples(*row.time, stride);
      if (!samples.empty()) body += " data-s=\"" + samples + "\"";
    }
    body += ">";
    const auto cells = cells_of(row, ref.file);
    for (std::size_t c = 0; c < cells.size(); ++c) {
      const std::string_view key = kColumns[c].key;
      const char* looks = key == "status"    ? " class=\"l st\""
                          : key == "remarks" ? " class=\"w\""
                          : kColumns[c].left ? " class=\"l\""
                                             : "";
      body += fmt::format("<td{}>{}</td>", looks, escaped(cells[c]));
    }
    body += "</tr>\n";
  });
  std::string out = "<section class=\"all\"><h2 id=\"s-rows\">All rows</h2>\n";
  if (count == 0) return out + "<p>The files hold no row.</p></section>\n";
  out += fmt::format(
      "<div class=\"tools\"><input id=\"find\" type=\"search\" placeholder=\"Filter: words that a row must "
      "hold\" "
      "aria-label=\"Filter rows\"><select id=\"status\" aria-label=\"Status\">{}</select>"
      "<select id=\"role\" aria-label=\"Role\">{}</select><button id=\"copy\" type=\"button\">Copy as "
      "CSV</button>"
      "<span id=\"count\" aria-live=\"polite\">{} of {} rows</span></div>\n",
      options_of(statuses, "any status"), options_of(roles, "any role"), count, count);
  out +=
      "<div id=\"rows\" tabindex=\"0\" role=\"region\" aria-label=\"All rows\"><table "
      "id=\"rows-table\"><thead><tr>";
  for (const Column& column : kColumns)
    out += fmt::format("<th scope=\"col\" data-k=\"{}\"><button type=\"button\">{}</button></th>", column.key,
                       column.title);
  return out + "</tr></thead><tbody>\n" + body + "</tbody></table></div></section>\n";
}

}  // namespace fdbench::report
