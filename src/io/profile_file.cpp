#include "io/profile_file.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <map>
#include <utility>

#include "core/error.h"
#include "core/problem.h"
#include "io/file.h"
#include "io/json_reader.h"
#include "io/json_text.h"
#include "io/record_json.h"

namespace fdbench::io {

namespace {

using Json = nlohmann::ordered_json;

constexpr double kMost = std::numeric_limits<double>::max();

Json bounds_json(const std::optional<Bounds>& bounds) {
  if (!bounds) return nullptr;
  return Json::array({number_or_null(bounds->lo), number_or_null(bounds->hi)});
}

double number_within(const Cursor& from, const char* key, double otherwise, double lo, double hi,
                     const char* what) {
  const auto found = from.find(key);
  if (!found) return otherwise;
  const double value = found->number();
  if (!(value >= lo && value <= hi)) found->must_be(what);
  return value;
}

std::optional<Bounds> read_bounds(const Cursor& from, const char* key) {
  const auto found = from.find(key);
  if (!found) return std::nullopt;
  if (found->size() != 2) found->must_be("[lo, hi]");
  const Cursor lo = found->item(0), hi = found->item(1);
  const Bounds bounds{lo.number(), hi.number()};
  if (bounds.lo > bounds.hi) found->must_be("[lo, hi] with lo not above hi");
  return bounds;
}

Json key_json(const ProfileKey& key) {
  const ProfileEnvironment& e = key.environment;
  return {{"device", e.device},
          {"sms", e.sms},
          {"cc", e.cc},
          {"driver_major", e.driver_major},
          {"toolkit_major", e.toolkit_major},
          {"variant", key.variant},
          {"tuning_version", key.tuning_version},
          {"dtype", std::string(to_string(key.dtype))},
          {"dim", key.dim},
          {"heads", key.heads},
          {"kv_heads", key.kv_heads},
          {"seq_bucket", Json::array({key.bucket.least, key.bucket.most})}};
}

ProfileKey read_key(const Cursor& from) {
  from.object();
  ProfileKey key;
  ProfileEnvironment& e = key.environment;
  const Cursor device = from.at("device"), variant = from.at("variant");
  e.device = device.word();
  e.sms = from.at("sms").small_integer(0);
  e.cc = from.at("cc").small_integer(0);
  e.driver_major = from.at("driver_major").small_integer(0);
  e.toolkit_major = from.at("toolkit_major").small_integer(0);
  key.variant = variant.word();
  key.tuning_version = from.at("tuning_version").small_integer(0);
  const Cursor dtype = from.at("dtype");
  key.dtype = read_dtype(dtype);
  key.dim = from.at("dim").integer(1);
  key.heads = from.at("heads").integer(1);
  key.kv_heads = from.at("kv_heads").integer(1);
  const Cursor bucket = from.at("seq_bucket");
  if (bucket.size() != 2) bucket.must_be("[least, most]");
  const Cursor least = bucket.item(0), most = bucket.item(1);
  key.bucket = {least.integer(1), most.integer(1)};
  if (key.bucket.least > key.bucket.most) bucket.must_be("[least, most] with least not above most");
  return key;
}

Json entry_json(const ProfileEntry& entry) {
  Json out;
  out["key"] = key_json(entry.key);
  out["seq"] = entry.seq;
  out["tuning"] = io::json_of(entry.tuning);
  out["plan"] = {
      {"splits", entry.splits}, {"chunk", entry.chunk}, {"workspace_bytes", entry.workspace_bytes}};
  if (!entry.isa.empty()) out["plan"]["isa"] = entry.isa;
  out["median_ns"] = number_or_null(entry.ns);
  Json ties = Json::array();
  for (const TuningPoint& tie : entry.ties) ties.push_back(io::json_of(tie));
  out["ties"] = std::move(ties);
  out["runner_up"] = entry.runner_up ? io::json_of(*entry.runner_up) : Json(nullptr);
  out["margin"] = number_or_null(entry.margin);
  out["margin_ci95"] = bounds_json(entry.margin_ci95);
  out["won"] = entry.won ? Json(*entry.won) : Json(nullptr);
  out["rounds"] = {{"choosing", entry.choosing_rounds}, {"scoring", entry.scoring_rounds}};
  Json gains = Json::array();
  for (const ProfileGain& gain : entry.gains) {
    gains.push_back({{"over", gain.over},
                     {"tuning", io::json_of(gain.tuning)},
                     {"median_ns", number_or_null(gain.ns)},
                     {"gain", number_or_null(gain.gain)},
                     {"ci95", bounds_json(gain.ci95)}});
  }
  out["gains"] = std::move(gains);
  out["search"] = {{"strategy", entry.strategy},
                   {"points", entry.points},
                   {"measured", entry.points_measured},
                   {"samples", entry.samples}};
  out["source_hash"] = text_or_null(entry.source_hash);
  out["tool"] = text_or_null(entry.tool);
  out["when"] = text_or_null(entry.when);
  return out;
}

// `out` with what only `read` has, objects within it too; true where there was something.
bool keep_unknown(Json& out, const Json& read) {
  bool kept = false;
  if (out.is_object() && read.is_object()) {
    for (const auto& [key, value] : read.items()) {
      if (out.contains(key)) {
        kept = keep_unknown(out[key], value) || kept;
      } else {
        out[key] = value;
        kept = true;
      }
    }
  } else if (out.is_array() && read.is_array() && out.size() == read.size()) {
    for (std::size_t i = 0; i < out.size(); ++i) kept = keep_unknown(out[i], read[i]) || kept;
  }
  return kept;
}

// The text to keep of `read`; empty where `known`, which is what is written of it, has all its fields.
std::string unknown_text(Json known, const Json& read) {
  return keep_unknown(known, read) ? line_text(read) : std::string();
}

Json with_unknown(Json known, const std::string& as_read) {
  if (!as_read.empty()) keep_unknown(known, Json::parse(as_read));
  return known;
}

ProfileEntry read_entry(const Cursor& from) {
  from.object();
  ProfileEntry entry;
  const Cursor key = from.at("key"), tuning = from.at("tuning");
  entry.key = read_key(key);
  const Cursor seq = from.at("seq");
  entry.seq = seq.integer(1);
  if (!entry.key.bucket.holds(entry.seq)) seq.must_be("within its key's seq_bucket");
  const ProfileKey& k = entry.key;
  if (const auto reason = invalid_reason({entry.seq, k.heads, k.kv_heads, k.dim, k.dtype, {}}))
    from.fail("is of no problem: " + *reason);
  entry.tuning = read_tuning(tuning);
  if (const auto plan = from.find("plan")) {
    entry.splits = count_or(*plan, "splits", 0);
    entry.chunk = count_or(*plan, "chunk", 0);
    entry.workspace_bytes = count_or(*plan, "workspace_bytes", 0);
    entry.isa = word_or(*plan, "isa");
  }
  entry.ns = number_within(from, "median_ns", 0.0, 0.0, kMost, "at least 0");
  if (const auto ties = from.find("ties")) {
    for (std::size_t i = 0; i < ties->size(); ++i) {
      const Cursor tie = ties->item(i);
      entry.ties.push_back(read_tuning(tie));
    }
  }
  if (const auto runner_up = from.find("runner_up")) entry.runner_up = read_tuning(*runner_up);
  entry.margin = number_within(from, "margin", 0.0, -1.0, kMost, "at least -1");
  entry.margin_ci95 = read_bounds(from, "margin_ci95");
  if (from.find("won")) entry.won = number_within(from, "won", 1.0, 0.0, 1.0, "a share, 0 ... 1");
  if (const auto rounds = from.find("rounds")) {
    entry.choosing_rounds = count_or(*rounds, "choosing", 0);
    entry.scoring_rounds = count_or(*rounds, "scoring", 0);
  }
  if (const auto gains = from.find("gains")) {
    for (std::size_t i = 0; i < gains->size(); ++i) {
      const Cursor gain = gains->item(i), over = gain.at("over"), at = gain.at("tuning");
      ProfileGain read{over.word(), read_tuning(at), 0.0, 0.0, read_bounds(gain, "ci95")};
      read.ns = number_within(gain, "median_ns", 0.0, 0.0, kMost, "at least 0");
      read.gain = number_within(gain, "gain", 0.0, -1.0, kMost, "above -1");
      // A ratio of times, less 1.
      if (read.gain == -1.0) gain.at("gain").must_be("above -1");
      entry.gains.push_back(std::move(read));
    }
  }
  if (const auto search = from.find("search")) {
    entry.strategy = word_or(*search, "strategy");
    entry.points = count_or(*search, "points", 0);
    entry.points_measured = count_or(*search, "measured", 0);
    entry.samples = count_or(*search, "samples", 0);
  }
  entry.source_hash = word_or(from, "source_hash");
  entry.tool = word_or(from, "tool");
  entry.when = word_or(from, "when");
  entry.as_read = unknown_text(entry_json(entry), Json(from.node()));
  return entry;
}

}  // namespace

TuningProfile parse_profile(std::string_view text, const std::string& name) {
  const Source source{name, "a tuning profile of schema fdbench.profile/1.x"};
  const nlohmann::json value = parse_json(text, source);
  const Cursor root(value, source);
  check_schema(root, "fdbench.profile");
  const Cursor schema = root.at("schema");
  TuningProfile profile;
  profile.minor = std::stoi(schema.text().substr(schema.text().rfind('.') + 1));
  profile.path = name;
  std::map<std::string, std::size_t> keys;
  const Cursor entries = root.at("entries");
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const Cursor entry = entries.item(i);
    profile.entries.push_back(read_entry(entry));
    const auto [at, is_new] = keys.emplace(line_text(key_json(profile.entries[i].key)), i);
    if (!is_new) entry.fail("repeats the key of entry " + std::to_string(at->second) + "; keep one of them");
  }
  Json beside(value);
  beside.erase("entries");
  profile.as_read = unknown_text({{"schema", nullptr}}, beside);
  return profile;
}

std::string to_json(const TuningProfile& profile) {
  Json entries = Json::array();
  for (const ProfileEntry& entry : profile.entries)
    entries.push_back(with_unknown(entry_json(entry), entry.as_read));
  Json out;
  out["schema"] = "fdbench.profile/1.0";
  out["entries"] = std::move(entries);
  return pretty_text(with_unknown(std::move(out), profile.as_read));
}

std::optional<TuningProfile> read_profile(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0 && (errno == ENOENT || errno == ENOTDIR)) return std::nullopt;
  return parse_profile(read_file(path), path);
}

}  // namespace fdbench::io
