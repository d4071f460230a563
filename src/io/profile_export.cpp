#include <fmt/core.h>

#include <set>
#include <vector>

#include "io/comment_text.h"
#include "io/json_text.h"
#include "io/profile_file.h"
#include "io/result_csv.h"

namespace fdbench::io {

namespace {

// As a literal; \? begins no trigraph.
std::string literal(std::string_view text) {
  std::string out;
  for (const char c : json_string(text)) out += c == '?' ? std::string("\\?") : std::string(1, c);
  return out;
}

const char* tuned_axis(const ProfileEntry& entry) {
  if (entry.tuning.get("chunk")) return "chunk";
  return entry.tuning.get("splits") ? "splits" : "own";
}

// What a variant rounds chunks up to, as far as its entries tell: the largest power of two that all are
// multiples of, if it makes each of them from its length and splits. 1 where no chunk is rounded, or one of
// two such steps at most, which many steps would explain.
std::int64_t granularity(const TuningProfile& profile, const ProfileKey& key) {
  const auto tells = [&](const ProfileEntry& entry) {
    return entry.key.variant == key.variant && entry.key.tuning_version == key.tuning_version &&
           !entry.tuning.get("chunk") && entry.splits > 0 && entry.chunk > 0;
  };
  std::int64_t bits = 0;
  for (const ProfileEntry& entry : profile.entries) bits |= tells(entry) ? entry.chunk : 0;
  const std::int64_t step = bits & -bits;
  bool rounds = false;
  for (const ProfileEntry& entry : profile.entries) {
    if (!tells(entry)) continue;
    const std::int64_t least = (entry.seq - 1) / entry.splits + 1;
    if ((least - 1) / step + 1 != entry.chunk / step) return 1;
    rounds = rounds || (entry.chunk != least && entry.chunk / step > 2);
  }
  return rounds ? step : 1;
}

}  // namespace

std::string profile_csv(const TuningProfile& profile) {
  std::string out =
      "device,sms,cc,driver_major,toolkit_major,variant,tuning_version,dtype,dim,heads,kv_heads,seq_least,"
      "seq_most,seq,tuning,splits,chunk_tokens,workspace_bytes,median_ns,default_median_ns,gain_over_default,"
      "margin,won,ties,strategy,points,measured,samples,source_hash,tool,when,isa\r\n";
  for (const ProfileEntry& entry : profile.entries) {
    const ProfileKey& k = entry.key;
    const ProfileEnvironment& e = k.environment;
    const ProfileGain* gain = gain_over(entry, "default");
    std::string ties;
    for (const TuningPoint& tie : entry.ties) ties += (ties.empty() ? "" : ";") + tie.id();
    out += fmt::format(
        "{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}\r\n",
        csv_field(e.device), e.sms, e.cc, e.driver_major, e.toolkit_major, csv_field(k.variant),
        k.tuning_version, to_string(k.dtype), k.dim, k.heads, k.kv_heads, k.bucket.least, k.bucket.most,
        entry.seq, csv_field(entry.tuning.id()), entry.splits, entry.chunk, entry.workspace_bytes,
        number_text(entry.ns), gain ? number_text(gain->ns) : "", gain ? number_text(gain->gain) : "",
        number_text(entry.margin), entry.won ? number_text(*entry.won) : "", csv_field(ties),
        csv_field(entry.strategy), entry.points, entry.points_measured, entry.samples,
        csv_field(entry.source_hash), csv_field(entry.tool), csv_field(entry.when), csv_field(entry.isa));
  }
  return out;
}

std::string profile_header(const TuningProfile& profile) {
  const std::vector<std::vector<ProfileEntry>> groups = by_environment(profile);
  std::string out =
      R"(// Tuned plans for decode attention. C++17, the standard library alone. Written by fdbench tune --export header.
//
//   const auto plan = fdbench_profile::find("split_kv_tma", "bf16", 128, 32, 8, 9000);
//   if (plan) launch(plan->splits, plan->chunk);
//
// An entry of kPlans was measured at one length, seq, and holds for seq_least ... seq_most, on the machine and
// for the tuning_version that it was measured with. find() gives it with splits and chunk for the length asked
// for: splits * chunk >= seq, the last of the splits shorter or empty. What was tuned stays, the other follows.
//
)";
  for (const std::vector<ProfileEntry>& group : groups) {
    out +=
        "// Measured on " + comment_text(environment_text(group.front().key.environment)) + ", by fdbench ";
    std::set<std::string> tools;
    for (const ProfileEntry& entry : group) {
      if (tools.insert(entry.tool).second) out += (tools.size() > 1 ? ", " : "") + comment_text(entry.tool);
    }
    out += ".\n";
  }
  out += R"(#pragma once

#include <optional>

namespace fdbench_profile {

// Which of splits and chunk was tuned: it is kept for the whole bucket. own: neither, as the variant's own
// choice was the best; its splits are kept.
enum class Tuned { splits, chunk, own };

struct Plan {
  const char* device;
  int sms, cc;  // multiprocessors and 10 x compute capability; of a CPU cores and 0
  int driver_major, toolkit_major;
  const char* variant;
  int tuning_version;
  const char* dtype;
  long long dim, heads, kv_heads;
  long long seq_least, seq_most;  // tokens: the bucket
  long long seq;                  // tokens: what was measured
  const char* tuning;             // the point asked for
  Tuned tuned;
  long long splits;       // chunks a head
  long long chunk;        // tokens
  long long granularity;  // tokens: chunks are multiples of it; 1 where the measured ones don't tell
  double median_ns;       // at the length measured
};

// splits and chunk as measured.
inline constexpr Plan kPlans[] = {
)";
  for (const std::vector<ProfileEntry>& group : groups) {
    for (const ProfileEntry& entry : group) {
      const ProfileKey& k = entry.key;
      const ProfileEnvironment& e = k.environment;
      out += fmt::format(
          "    {{{}, {}, {}, {}, {}, {}, {}, \"{}\", {}, {}, {}, {}, {}, {}, {}, Tuned::{}, {}, {}, {}, "
          "{:.1f}}},\n",
          literal(e.device), e.sms, e.cc, e.driver_major, e.toolkit_major, literal(k.variant),
          k.tuning_version, to_string(k.dtype), k.dim, k.heads, k.kv_heads, k.bucket.least, k.bucket.most,
          entry.seq, literal(entry.tuning.id()), tuned_axis(entry), entry.splits, entry.chunk,
          granularity(profile, k), entry.ns);
    }
  }
  out += R"(};

constexpr bool same(const char* a, const char* b) {
  while (*a && *a == *b) ++a, ++b;
  return *a == *b;
}

constexpr bool same_machine(const Plan& a, const Plan& b) {
  return same(a.device, b.device) && a.sms == b.sms && a.cc == b.cc;
}

// Of a newer build of one machine's.
constexpr bool newer(const Plan& a, const Plan& b) {
  if (a.tuning_version != b.tuning_version) return a.tuning_version > b.tuning_version;
  if (a.driver_major != b.driver_major) return a.driver_major > b.driver_major;
  return a.toolkit_major > b.toolkit_major;
}

// The plan for another length of its bucket.
constexpr Plan for_length(Plan plan, long long seq) {
  if (seq == plan.seq && plan.splits * plan.chunk >= seq) return plan;
  if (plan.tuned == Tuned::chunk) {
    if (plan.chunk > 0) plan.splits = (seq + plan.chunk - 1) / plan.chunk;
  } else if (plan.splits > 0) {
    const long long least = (seq + plan.splits - 1) / plan.splits;
    plan.chunk = (least + plan.granularity - 1) / plan.granularity * plan.granularity;
  }
  return plan;
}

// Nothing where nothing was tuned for it, and where kPlans is of several machines and the last arguments leave
// more than one: another machine's plan is none. Those left at null or 0 are not compared. Of one machine's
// plans for a length the one of the highest tuning_version, then driver and toolkit, is given.
constexpr std::optional<Plan> find(const char* variant, const char* dtype, long long dim, long long heads,
                                   long long kv_heads, long long seq, const char* device = nullptr,
                                   int sms = 0, int cc = 0, int driver_major = 0, int toolkit_major = 0) {
  const Plan* machine = nullptr;
  const Plan* best = nullptr;
  for (const Plan& plan : kPlans) {
    if ((device && !same(plan.device, device)) || (sms && plan.sms != sms) || (cc && plan.cc != cc)) continue;
    if (machine && !same_machine(plan, *machine)) return std::nullopt;
    machine = &plan;
    if ((driver_major && plan.driver_major != driver_major) ||
        (toolkit_major && plan.toolkit_major != toolkit_major))
      continue;
    if (same(plan.variant, variant) && same(plan.dtype, dtype) && plan.dim == dim && plan.heads == heads &&
        plan.kv_heads == kv_heads && seq >= plan.seq_least && seq <= plan.seq_most &&
        (!best || newer(plan, *best)))
      best = &plan;
  }
  if (!best) return std::nullopt;
  return for_length(*best, seq);
}

}  // namespace fdbench_profile
)";
  return out;
}

}  // namespace fdbench::io
