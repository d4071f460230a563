#include "io/work_codec.h"

#include <cmath>
#include <limits>
#include <utility>

#include "io/json_reader.h"
#include "io/json_text.h"
#include "io/record_json.h"

namespace fdbench::io {

namespace {

using Json = nlohmann::ordered_json;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

Json number_json(double value) {
  if (std::isfinite(value)) return value;
  return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

double read_number(const Cursor& from) {
  if (!from.is_string()) return from.number();
  if (from.text() == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (from.text() == "inf") return kInfinity;
  if (from.text() == "-inf") return -kInfinity;
  from.must_be("a number, \"nan\", \"inf\" or \"-inf\"");
}

template <class Item, class Read>
std::vector<Item> read_list(const Cursor& from, Read read) {
  std::vector<Item> out;
  out.reserve(from.size());
  for (std::size_t i = 0; i < from.size(); ++i) {
    const Cursor item = from.item(i);
    out.push_back(read(item));
  }
  return out;
}

Json numbers_json(const std::vector<double>& values) {
  Json out = Json::array();
  for (const double value : values) out.push_back(number_json(value));
  return out;
}

int read_index(const Cursor& from) {
  return from.small_integer(0);
}

Phase read_phase(const Cursor& from) {
  const auto phase = parse_phase(from.text());
  if (!phase) from.must_be("a phase");
  return *phase;
}

Json json_of(const MeasureSettings& settings) {
  Json out;
  out["cache"] = std::string(to_string(settings.cache));
  out["timer"] = std::string(to_string(settings.timer));
  out["max_noise"] = number_json(settings.max_noise);
  out["max_time_s"] = number_json(settings.max_time_s);
  out["rounds"] = settings.rounds ? Json(*settings.rounds) : Json(nullptr);
  out["seed"] = settings.seed;
  out["measure"] = settings.measure;
  return out;
}

MeasureSettings read_settings(const Cursor& from) {
  MeasureSettings settings;
  settings.cache = read_cache_mode(from.at("cache"));
  settings.timer = read_timer_mode(from.at("timer"));
  settings.max_noise = read_number(from.at("max_noise"));
  settings.max_time_s = read_number(from.at("max_time_s"));
  if (const auto rounds = from.find("rounds")) settings.rounds = rounds->small_integer(0);
  settings.seed = from.at("seed").unsigned_integer();
  settings.measure = from.at("measure").boolean();
  return settings;
}

// Unlike read_problem, takes a default Problem: a survey has none.
Problem read_extents(const Cursor& from) {
  Problem problem;
  problem.seq = from.at("seq").integer();
  problem.heads = from.at("heads").integer();
  problem.kv_heads = from.at("kv_heads").integer();
  problem.dim = from.at("dim").integer();
  problem.dtype = read_dtype(from.at("dtype"));
  if (const auto scale = from.find("scale")) problem.scale = static_cast<float>(scale->number());
  return problem;
}

// The event as JSON; "event" says which.
struct EventWriter {
  Json operator()(const DeviceFound& event) const {
    return {{"event", "device"}, {"device", io::json_of(event.device)}, {"why", event.why}};
  }
  Json operator()(const MemoryCounted& event) const {
    return {{"event", "memory"},
            {"shape", event.shape},
            {"needed", event.needed},
            {"available", event.available}};
  }
  Json operator()(const StepBegins& event) const {
    return {{"event", "step"}, {"item", event.item}, {"phase", std::string(to_string(event.phase))}};
  }
  Json operator()(const ItemPlanned& event) const {
    return {{"event", "planned"},
            {"item", event.item},
            {"plan", io::json_of(event.plan)},
            {"prepare_ns", number_json(event.prepare_ns)}};
  }
  Json operator()(const ItemEnded& event) const {
    return {{"event", "ended"},
            {"item", event.item},
            {"status", std::string(to_string(event.status))},
            {"reason", event.reason}};
  }
  Json operator()(const ItemChecked& event) const {
    const Accuracy& accuracy = event.accuracy;
    return {{"event", "checked"},
            {"item", event.item},
            {"rel_l2", number_json(accuracy.rel_l2)},
            {"max_abs", number_json(accuracy.max_abs)},
            {"lse_max_abs", accuracy.lse_max_abs ? number_json(*accuracy.lse_max_abs) : Json(nullptr)},
            {"oracle", accuracy.oracle}};
  }
  Json operator()(const RoundDone& event) const {
    return {{"event", "round"},
            {"round", event.round},
            {"items", event.items},
            {"ns", numbers_json(event.ns)},
            {"sm_mhz", numbers_json(event.sm_mhz)},
            {"void_samples", event.void_samples}};
  }
  Json operator()(const RoundsTaken& event) const {
    return {{"event", "rounds_taken"}, {"elapsed_s", number_json(event.elapsed_s)}};
  }
  Json operator()(const WorkDone& event) const {
    return {{"event", "done"},
            {"stop", event.stop},
            {"timer_step_ns", number_json(event.timer_step_ns)},
            {"flags", event.flags}};
  }
};

DeviceFound read_device_found(const Cursor& from) {
  const Cursor device = from.at("device");
  return {read_device(device), from.at("why").text()};
}

ItemPlanned read_planned(const Cursor& from) {
  const Cursor plan = from.at("plan");
  return {read_index(from.at("item")), read_plan(plan), read_number(from.at("prepare_ns"))};
}

ItemChecked read_checked(const Cursor& from) {
  ItemChecked event;
  event.item = read_index(from.at("item"));
  event.accuracy.rel_l2 = read_number(from.at("rel_l2"));
  event.accuracy.max_abs = read_number(from.at("max_abs"));
  if (const auto lse = from.find("lse_max_abs")) event.accuracy.lse_max_abs = read_number(*lse);
  event.accuracy.oracle = from.at("oracle").text();
  return event;
}

RoundDone read_round(const Cursor& from) {
  RoundDone event;
  event.round = from.at("round").small_integer();
  const Cursor items = from.at("items"), ns = from.at("ns");
  const Cursor sm_mhz = from.at("sm_mhz"), voids = from.at("void_samples");
  event.items = read_list<int>(items, read_index);
  event.ns = read_list<double>(ns, read_number);
  event.sm_mhz = read_list<double>(sm_mhz, read_number);
  event.void_samples = read_list<int>(voids, read_index);
  const std::size_t n = event.items.size();
  if (event.ns.size() != n || event.sm_mhz.size() != n || event.void_samples.size() != n) {
    from.fail("must have lists of one length");
  }
  return event;
}

}  // namespace

std::string encode(const WorkRequest& request) {
  Json out;
  out["device"] = request.device;
  out["script"] = request.script;
  out["dirty_flush"] = request.dirty_flush;
  if (request.plant) {
    out["plant"] = {{"variant", request.plant->variant}, {"share", number_json(request.plant->share)}};
  } else {
    out["plant"] = nullptr;
  }
  out["survey"] = request.survey;
  Json shapes = Json::array();
  for (const Problem& shape : request.shapes) shapes.push_back(io::json_of(shape));
  out["shapes"] = std::move(shapes);
  out["problem"] = io::json_of(request.problem);
  Json items = Json::array();
  for (const WorkItem& item : request.items) {
    items.push_back({{"variant", item.variant}, {"tuning", io::json_of(item.tuning)}});
  }
  out["items"] = std::move(items);
  out["steered"] = request.steered;
  out["settings"] = json_of(request.settings);
  return line_text(out);
}

std::string encode(const RoundsAsked& asked) {
  return line_text(Json{{"items", asked.items}, {"rounds", asked.rounds}});
}

RoundsAsked decode_rounds_asked(std::string_view line) {
  const Source source{"rounds asked for", "a message of the same build", Exit::failed};
  const nlohmann::json value = parse_json(line, source);
  const Cursor root(value, source);
  const Cursor items = root.at("items");
  return {read_list<int>(items, read_index), root.at("rounds").small_integer(0)};
}

std::string encode(const WorkEvent& event) {
  return line_text(std::visit(EventWriter{}, event));
}

WorkRequest decode_request(std::string_view line) {
  const Source source{"worker request", "a request of the same build", Exit::failed};
  const nlohmann::json value = parse_json(line, source);
  const Cursor root(value, source);
  WorkRequest request;
  request.device = root.at("device").text();
  request.script = root.at("script").text();
  request.dirty_flush = root.at("dirty_flush").boolean();
  if (const auto plant = root.find("plant")) {
    request.plant = Plant{plant->at("variant").text(), read_number(plant->at("share"))};
  }
  request.survey = root.at("survey").boolean();
  const Cursor shapes = root.at("shapes");
  request.shapes = read_list<Problem>(shapes, read_extents);
  const Cursor problem = root.at("problem");
  request.problem = read_extents(problem);
  const Cursor items = root.at("items");
  request.items = read_list<WorkItem>(items, [](const Cursor& item) {
    const Cursor tuning = item.at("tuning");
    return WorkItem{item.at("variant").text(), read_tuning(tuning)};
  });
  request.steered = root.at("steered").boolean();
  const Cursor settings = root.at("settings");
  request.settings = read_settings(settings);
  return request;
}

WorkEvent decode_event(std::string_view line) {
  const Source source{"worker event", "an event of the same build", Exit::failed};
  const nlohmann::json value = parse_json(line, source);
  const Cursor root(value, source);
  const Cursor kind = root.at("event");
  const std::string event = kind.text();
  if (event == "device") return read_device_found(root);
  if (event == "memory") {
    return MemoryCounted{read_index(root.at("shape")), root.at("needed").integer(),
                         root.at("available").integer()};
  }
  if (event == "step") return StepBegins{root.at("item").small_integer(-1), read_phase(root.at("phase"))};
  if (event == "planned") return read_planned(root);
  if (event == "ended") {
    return ItemEnded{read_index(root.at("item")), read_status(root.at("status")), root.at("reason").text()};
  }
  if (event == "checked") return read_checked(root);
  if (event == "round") return read_round(root);
  if (event == "rounds_taken") return RoundsTaken{read_number(root.at("elapsed_s"))};
  if (event == "done") {
    const Cursor flags = root.at("flags");
    return WorkDone{root.at("stop").text(), read_number(root.at("timer_step_ns")), texts(flags)};
  }
  kind.must_be("the name of an event");
}

}  // namespace fdbench::io
