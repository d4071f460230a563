#include "io/profile_file.h"

#include <sys/stat.h>

#include <cerrno>
#include <utility>

#include "core/error.h"
#include "io/file.h"
#include "io/json_reader.h"
#include "io/json_text.h"
#include "io/record_json.h"

namespace fdbench::io {

namespace {

using Json = nlohmann::ordered_json;

Json bounds_json(const std::optional<Bounds>& bounds) {
  if (!bounds) return nullptr;
  return Json::array({number_or_null(bounds->lo), number_or_null(bounds->hi)});
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
  e.device = from.at("device").text();
  e.sms = from.at("sms").small_integer(0);
  e.cc = from.at("cc").small_integer(0);
  e.driver_major = from.at("driver_major").small_integer(0);
  e.toolkit_major = from.at("toolkit_major").small_integer(0);
  key.variant = from.at("variant").text();
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
  out["median_ns"] = number_or_null(entry.ns);
  Json ties = Json::array();
  for (const TuningPoint& tie : entry.ties) ties.push_back(io::json_of(tie));
  out["ties"] = std::move(ties);
  out["runner_up"] = entry.runner_up ? io::json_of(*entry.runner_up) : Json(nullptr);
  out["margin"] = number_or_null(entry.margin);
  out["margin_ci95"] = bounds_json(entry.margin_ci95);
  out["won"] = number_or_null(entry.won);
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

ProfileEntry read_entry(const Cursor& from) {
  from.object();
  ProfileEntry entry;
  const Cursor key = from.at("key"), tuning = from.at("tuning");
  entry.key = read_key(key);
  const Cursor seq = from.at("seq");
  entry.seq = seq.integer(1);
  if (!entry.key.bucket.holds(entry.seq)) seq.must_be("within its key's seq_bucket");
  entry.tuning = read_tuning(tuning);
  if (const auto plan = from.find("plan")) {
    entry.splits = count_or(*plan, "splits", 0);
    entry.chunk = count_or(*plan, "chunk", 0);
    entry.workspace_bytes = count_or(*plan, "workspace_bytes", 0);
  }
  entry.ns = number_or(from, "median_ns", 0.0);
  if (const auto ties = from.find("ties")) {
    for (std::size_t i = 0; i < ties->size(); ++i) {
      const Cursor tie = ties->item(i);
      entry.ties.push_back(read_tuning(tie));
    }
  }
  if (const auto runner_up = from.find("runner_up")) entry.runner_up = read_tuning(*runner_up);
  entry.margin = number_or(from, "margin", 0.0);
  entry.margin_ci95 = read_bounds(from, "margin_ci95");
  entry.won = number_or(from, "won", 1.0);
  if (const auto rounds = from.find("rounds")) {
    entry.choosing_rounds = count_or(*rounds, "choosing", 0);
    entry.scoring_rounds = count_or(*rounds, "scoring", 0);
  }
  if (const auto gains = from.find("gains")) {
    for (std::size_t i = 0; i < gains->size(); ++i) {
      const Cursor gain = gains->item(i), over = gain.at("over"), at = gain.at("tuning");
      entry.gains.push_back({over.text(), read_tuning(at), number_or(gain, "median_ns", 0.0),
                             number_or(gain, "gain", 0.0), read_bounds(gain, "ci95")});
    }
  }
  if (const auto search = from.find("search")) {
    entry.strategy = text_or(*search, "strategy");
    entry.points = count_or(*search, "points", 0);
    entry.points_measured = count_or(*search, "measured", 0);
    entry.samples = count_or(*search, "samples", 0);
  }
  entry.source_hash = text_or(from, "source_hash");
  entry.tool = text_or(from, "tool");
  entry.when = text_or(from, "when");
  return entry;
}

}  // namespace

TuningProfile parse_profile(std::string_view text, const std::string& name) {
  const Source source{name, "a tuning profile of schema fdbench.profile/1.x"};
  const nlohmann::json value = parse_json(text, source);
  const Cursor root(value, source);
  check_schema(root, "fdbench.profile");
  TuningProfile profile;
  profile.path = name;
  const Cursor entries = root.at("entries");
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const Cursor entry = entries.item(i);
    profile.entries.push_back(read_entry(entry));
    for (std::size_t j = 0; j < i; ++j) {
      if (profile.entries[j].key == profile.entries[i].key)
        entry.fail("repeats the key of entry " + std::to_string(j) + "; keep one of them");
    }
  }
  return profile;
}

std::string to_json(const TuningProfile& profile) {
  Json entries = Json::array();
  for (const ProfileEntry& entry : profile.entries) entries.push_back(entry_json(entry));
  Json out;
  out["schema"] = "fdbench.profile/1.0";
  out["entries"] = std::move(entries);
  return pretty_text(out);
}

std::optional<TuningProfile> read_profile(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0 && (errno == ENOENT || errno == ENOTDIR)) return std::nullopt;
  return parse_profile(read_file(path), path);
}

}  // namespace fdbench::io
