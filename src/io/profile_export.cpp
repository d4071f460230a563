#include <fmt/core.h>

#include "io/json_text.h"
#include "io/profile_file.h"
#include "io/result_csv.h"

namespace fdbench::io {

namespace {

// On one line, with nothing that ends a comment or begins a trigraph.
std::string in_comment(std::string text) {
  for (char& c : text) {
    if (c < ' ' || c == '\\' || c == '?') c = ' ';
  }
  return text;
}

// As a literal; \? begins no trigraph.
std::string literal(std::string_view text) {
  std::string out;
  for (const char c : json_string(text)) out += c == '?' ? std::string("\\?") : std::string(1, c);
  return out;
}

const ProfileGain* gain_over(const ProfileEntry& entry, std::string_view over) {
  for (const ProfileGain& gain : entry.gains) {
    if (gain.over == over) return &gain;
  }
  return nullptr;
}

}  // namespace

std::string profile_csv(const TuningProfile& profile) {
  std::string out =
      "device,sms,cc,driver_major,toolkit_major,variant,tuning_version,dtype,dim,heads,kv_heads,seq_least,"
      "seq_most,seq,tuning,splits,chunk_tokens,workspace_bytes,median_ns,default_median_ns,gain_over_default,"
      "margin,won,ties,strategy,points,measured,samples,source_hash,tool,when\r\n";
  for (const ProfileEntry& entry : profile.entries) {
    const ProfileKey& k = entry.key;
    const ProfileEnvironment& e = k.environment;
    const ProfileGain* gain = gain_over(entry, "default");
    std::string ties;
    for (const TuningPoint& tie : entry.ties) ties += (ties.empty() ? "" : ";") + tie.id();
    out += fmt::format(
        "{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}\r\n",
        csv_field(e.device), e.sms, e.cc, e.driver_major, e.toolkit_major, csv_field(k.variant),
        k.tuning_version, to_string(k.dtype), k.dim, k.heads, k.kv_heads, k.bucket.least, k.bucket.most,
        entry.seq, csv_field(entry.tuning.id()), entry.splits, entry.chunk, entry.workspace_bytes,
        number_text(entry.ns), gain ? number_text(gain->ns) : "", gain ? number_text(gain->gain) : "",
        number_text(entry.margin), entry.won ? number_text(*entry.won) : "", csv_field(ties),
        csv_field(entry.strategy), entry.points, entry.points_measured, entry.samples,
        csv_field(entry.source_hash), csv_field(entry.tool), csv_field(entry.when));
  }
  return out;
}

std::string profile_header(const TuningProfile& profile) {
  std::string out =
      "// Tuned plans for decode attention. C++17, needs nothing else. Written by fdbench tune --export "
      "header.\n"
      "//\n"
      "//   const auto* plan = fdbench_profile::find(\"split_kv_tma\", \"bf16\", 128, 32, 8, 8192);\n"
      "//\n"
      "// A plan holds for the sequence lengths of its bucket, on the device and for the tuning_version that "
      "it\n"
      "// was measured with; splits and chunk are those of the launch, tuning is the point asked for. Where\n"
      "// there are several devices, find() is told which: its last argument, a name as in kPlans.\n";
  const ProfileEnvironment* last = nullptr;
  for (const ProfileEntry& entry : profile.entries) {
    const ProfileEnvironment& e = entry.key.environment;
    if (last && *last == e) continue;
    last = &e;
    out += fmt::format("// Device: {}, {} {}, driver {}, toolkit {}; by fdbench {}.\n", in_comment(e.device),
                       e.sms, e.cc > 0 ? fmt::format("multiprocessors, sm_{}", e.cc) : "cores",
                       e.driver_major, e.toolkit_major, in_comment(entry.tool));
  }
  out +=
      "#pragma once\n\nnamespace fdbench_profile {\n\n"
      "struct Plan {\n"
      "  const char* device;\n  const char* variant;\n  int tuning_version;\n  const char* dtype;\n"
      "  long long dim, heads, kv_heads;\n  long long seq_least, seq_most;  // tokens\n"
      "  const char* tuning;\n  long long splits;  // chunks a head\n  long long chunk;   // tokens\n"
      "  double median_ns;\n};\n\n"
      "inline constexpr Plan kPlans[] = {\n";
  for (const ProfileEntry& entry : profile.entries) {
    const ProfileKey& k = entry.key;
    out += fmt::format("    {{{}, {}, {}, \"{}\", {}, {}, {}, {}, {}, {}, {}, {}, {:.1f}}},\n",
                       literal(k.environment.device), literal(k.variant), k.tuning_version,
                       to_string(k.dtype), k.dim, k.heads, k.kv_heads, k.bucket.least, k.bucket.most,
                       literal(entry.tuning.id()), entry.splits, entry.chunk, entry.ns);
  }
  out +=
      "};\n\n"
      "constexpr bool same(const char* a, const char* b) {\n"
      "  while (*a && *a == *b) ++a, ++b;\n"
      "  return *a == *b;\n"
      "}\n\n"
      "// Null where nothing was tuned for it; device: null for any.\n"
      "constexpr const Plan* find(const char* variant, const char* dtype, long long dim, long long heads,\n"
      "                           long long kv_heads, long long seq, const char* device = nullptr) {\n"
      "  for (const Plan& plan : kPlans) {\n"
      "    if (device && !same(plan.device, device)) continue;\n"
      "    if (same(plan.variant, variant) && same(plan.dtype, dtype) && plan.dim == dim && plan.heads == "
      "heads &&\n"
      "        plan.kv_heads == kv_heads && seq >= plan.seq_least && seq <= plan.seq_most)\n"
      "      return &plan;\n"
      "  }\n"
      "  return nullptr;\n"
      "}\n\n"
      "}  // namespace fdbench_profile\n";
  return out;
}

}  // namespace fdbench::io
