// `fdbench tune` on a device.
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <memory>
#include <optional>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "cli/build_info.h"
#include "cli/interrupt.h"
#include "cli/measure_command.h"
#include "cli/profile_store.h"
#include "cli/result_writer.h"
#include "cli/resume.h"
#include "cli/rules_table.h"
#include "cli/run_info.h"
#include "cli/say.h"
#include "cli/tune_estimate.h"
#include "cli/tune_flags.h"
#include "cli/tune_table.h"
#include "core/seconds_since.h"
#include "io/file.h"
#include "io/profile_file.h"
#include "io/result_json.h"
#include "report/table.h"
#include "tune/cost_model.h"
#include "tune/live_measurer.h"
#include "tune/profile_entry.h"
#include "tune/profile_lookup.h"
#include "tune/replay.h"
#include "tune/rule_plans.h"
#include "tune/split_sweep.h"

namespace fdbench::cli {

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kMostSearches = 3;

class Tuner {
 public:
  explicit Tuner(const TuneFlags& flags)
      : flags_(flags), settings_(flags.measure.settings()), search_(search_settings(flags)) {
    if (settings_.processes > 1)
      throw usage_error(
          fmt::format("--processes {}: a shape is tuned in one process; leave it out", settings_.processes));
    if (settings_.measure.timer != TimerMode::events)
      throw usage_error("--timer graph: points are searched with the events timer; leave it out");
    settings_.measure.rounds.reset();
    settings_.measure.max_time_s = 1e9;  // rounds are counted, not timed
    shapes_ = flags.shapes.problems();
    check_outputs();
  }

  Exit run() {
    watch_for_interrupts();
    const VariantTable table = table_for(settings_);
    std::vector<WorkItem> items;
    for (const Variant* variant : table) {
      if (variant->role == Role::candidate) items.push_back({std::string(variant->name), {}});
    }
    const bench::Survey survey = bench::survey(worker_protocol(), settings_, shapes_, items, interrupted());
    device_ = survey.device;
    variants_ = tuned_variants(flags_, table, device_.kind);
    axes_ = chosen_axes(flags_, variants_);
    std::vector<bench::ShapeWork> work;
    for (const Problem& shape : shapes_) work.push_back({shape, {}});
    check_memory(survey, work);
    for (const std::string& path : flags_.models) fit_models(path);
    out_ = flags_.output.stdout_taken() ? stderr : stdout;
    run_info_ = make_run_info("tune", flags_.argv, device_, settings_.measure, 1);
    tell(report::device_line(run_info_, survey.why) + "\n");
    if (flags_.dry_run) return dry_run();
    return measure(table);
  }

 private:
  void check_outputs() const {
    const OutputOptions& output = flags_.output;
    if (flags_.profile == "-")
      throw usage_error("--profile -: a profile is a file, which run reads; tune --export json prints one");
    if ((output.json == "-") + (output.csv == "-") + (output.md == "-") > 1)
      throw usage_error("--json, --csv and --md: only one of them can go to stdout (-)");
    for (const auto& [flag, path] : {std::pair<const char*, const std::string&>{"--profile", flags_.profile},
                                     {"--json", output.json},
                                     {"--csv", output.csv},
                                     {"--md", output.md}})
      io::refuse_overwriting(path, flag, flags_.models, "--model");
  }

  // One for each variant to tune that was swept there.
  void fit_models(const std::string& path) {
    const ResultFile file = io::read_result_file(path);
    const auto swept = tune::swept_variants(file.results);
    bool any = false;
    for (const Variant* variant : variants_) {
      if (std::find(swept.begin(), swept.end(), variant->name) == swept.end()) continue;
      any = true;
      try {
        models_.push_back(tune::fit_cost_model(
            tune::split_sweeps(file.results, file.run.device, std::string(variant->name))));
      } catch (const std::invalid_argument& why) {
        throw usage_error(fmt::format("--model {}: {}", path, why.what()));
      }
    }
    if (!any)
      throw usage_error(
          fmt::format("--model {}: holds no sweep over splits or chunk alone of a variant to tune; fdbench "
                      "rules measures one",
                      path));
  }

  void tell(const std::string& text) {
    if (flags_.output.quiet) return;
    clear();
    say(out_, text);
    std::fflush(out_);
  }

  void clear() {
    if (shown_) say(stderr, "\r\x1b[K");
    shown_ = false;
  }

  tune::SearchSpace space_of(const Problem& problem) const {
    tune::SearchSpace space;
    try {
      space = tune::search_space(variants_, problem, device_, tune::standard_rules(), axes_);
    } catch (const std::invalid_argument& why) {
      throw usage_error(fmt::format("{}: {}; narrow it with -a", short_shape(problem), why.what()));
    }
    for (const tune::CostModel& model : models_) {
      if (!tune::add_model_start(space, model))
        say(stderr, fmt::format("fdbench: {}: --model has no plan of {} here\n", short_shape(problem),
                                model.variant));
    }
    // What was best for the nearest length of the same heads.
    const ProfileEntry* near = nullptr;
    const auto apart = [&](const ProfileEntry& entry) {
      return std::abs(std::log(static_cast<double>(entry.seq) / static_cast<double>(problem.seq)));
    };
    for (const ProfileEntry& entry : found_) {
      if (entry.key.heads == problem.heads && entry.key.kv_heads == problem.kv_heads &&
          entry.key.dim == problem.dim && entry.key.dtype == problem.dtype &&
          (!near || apart(entry) < apart(*near)))
        near = &entry;
    }
    if (near) tune::add_start(space, near->key.variant, near->tuning, "near");
    for (const auto& [name, values] : axes_) {
      const auto has_one = [&, &name = name, &values = values](const TuningPoint& tuning) {
        const auto value = tuning.get(name);
        return value && std::find(values.begin(), values.end(), *value) != values.end();
      };
      const bool taken = std::any_of(space.points.begin(), space.points.end(), [&](const auto& point) {
        return has_one(point.tuning) || std::any_of(point.others.begin(), point.others.end(), has_one);
      });
      if (!taken)
        say(stderr, fmt::format("fdbench: {}: -a {}: no variant takes any of these values here\n",
                                short_shape(problem), name));
    }
    return space;
  }

  Exit dry_run() {
    double total = 0.0;
    for (const Problem& problem : shapes_) {
      const tune::SearchSpace space = space_of(problem);
      const TuneEstimate estimate = estimate_tuning(space, device_, settings_.measure.cache, search_);
      total += estimate.seconds;
      tell(fmt::format("\n{}: {} points, {} of them starts, about {:.0f} samples and {:.1f} s\n",
                       short_shape(problem), space.points.size(), space.starts.size(), estimate.samples,
                       estimate.seconds));
      for (const tune::SpacePoint& point : space.points) {
        std::string origins;
        for (const std::string& origin : point.origins) origins += (origins.empty() ? "" : ", ") + origin;
        tell(fmt::format("  {:<44} {} x {}{}\n", point.name(), point.plan.splits, point.plan.chunk,
                         origins.empty() ? "" : "  " + origins));
      }
    }
    tell(fmt::format("\n{} shape{}, about {:.0f} s; nothing was measured\n", shapes_.size(),
                     shapes_.size() == 1 ? "" : "s", total));
    return Exit::good;
  }

  Exit measure(VariantTable table) {
    const std::string path = flags_.profile.empty() ? user_profile_path(device_) : flags_.profile;
    if (path.empty())
      throw usage_error("--profile is missing, and neither XDG_CONFIG_HOME nor HOME says where");
    if (flags_.profile.empty())
      io::make_directories(std::filesystem::path(path).parent_path().string(), "--profile");
    io::probe_writable(path, "--profile");
    std::error_code none;
    if (std::filesystem::exists(path, none) && !std::filesystem::is_regular_file(path, none))
      throw usage_error("--profile " + path + ": is a device or a pipe, which keeps no plans; name a file");
    // Held to the end: a second tuner would disturb what this one measures, too.
    const auto lock = io::lock_output(path, "--profile");
    profile_ = io::read_profile(path).value_or(TuningProfile{});
    profile_.path = path;
    if (profile_.minor > 0)
      throw usage_error(
          fmt::format("--profile {}: of schema fdbench.profile/1.{}, and this build writes 1.0, which "
                      "would lose what is new in it; name another file",
                      path, profile_.minor));

    OutputOptions output = flags_.output;
    output.md.clear();  // the plans, not the rows
    if (output.json.empty() || output.json == "-") {
      points_path_ = tuning_points_path(device_);
      if (points_path_.empty())
        throw usage_error("--json is missing, and neither XDG_STATE_HOME nor HOME says where");
      io::make_directories(std::filesystem::path(points_path_).parent_path().string(), "--json");
      // Also where stdout gets them in the end.
      output.json = points_path_;
    } else {
      points_path_ = output.json;
    }
    std::unique_ptr<io::OutputLock> md_lock;
    if (!flags_.output.md.empty() && flags_.output.md != "-") {
      io::probe_writable(flags_.output.md, "--md");
      md_lock = io::lock_output(flags_.output.md, "--md");
    }
    if (flags_.resume) pending_ = earlier_rows();
    file_.run = run_info_;
    ResultWriter writer(output, file_.run);
    writer_ = &writer;

    const Clock::time_point begin = Clock::now();
    std::optional<Clock::time_point> deadline;
    if (settings_.budget_s)
      deadline = begin + std::chrono::duration_cast<Clock::duration>(
                             std::chrono::duration<double>(*settings_.budget_s));
    std::size_t left_out = 0;
    begin_ = begin;
    for (std::size_t s = 0; s < shapes_.size() && !interrupted(); ++s) {
      if (deadline && Clock::now() >= *deadline) {
        ++left_out;
        continue;
      }
      shape_ = s;
      shape_begin_ = Clock::now();
      if (!tune_shape(table, deadline) && !interrupted() && deadline && Clock::now() >= *deadline) ++left_out;
    }
    put_rows({});
    file_.run.interrupted = interrupted();
    writer.write(file_);
    writer.write_stdout(file_);
    if (flags_.output.json == "-") say(stdout, io::to_json(file_));
    clear();
    report(path, writer);
    if (left_out > 0)
      say(stderr,
          fmt::format("fdbench: --budget was spent; shapes left out: {}; --resume goes on from here\n",
                      left_out));
    if (interrupted()) {
      say(stderr,
          fmt::format("fdbench: interrupted; {} plans and {} rows were kept; --resume goes on from them\n",
                      found_.size(), file_.results.size()));
      return Exit::interrupted;
    }
    if (writer.failed()) return Exit::not_written;
    if (wrong_) return Exit::wrong_result;
    return found_.empty() || without_plan_ > 0 ? Exit::failed : Exit::good;
  }

  std::vector<ResultRecord> earlier_rows() {
    if (!std::filesystem::exists(points_path_)) return {};
    ResultFile file = io::read_result_file(points_path_);
    refuse_foreign(points_path_, file.run, run_info_);
    std::erase_if(file.results, [this](const ResultRecord& row) {
      return std::find(shapes_.begin(), shapes_.end(), row.problem) == shapes_.end();
    });
    return std::move(file.results);
  }

  // What the points file holds: shapes that are done, this one's rows, and what an earlier run had of the
  // rest.
  void put_rows(const std::vector<ResultRecord>& of_shape) {
    file_.results = done_;
    file_.results.insert(file_.results.end(), of_shape.begin(), of_shape.end());
    file_.results.insert(file_.results.end(), pending_.begin(), pending_.end());
  }

  // False where the shape has no plan.
  bool tune_shape(VariantTable table, const std::optional<Clock::time_point>& deadline) {
    const Problem& problem = shapes_[shape_];
    const tune::SearchSpace space = space_of(problem);
    tune::LiveSetup setup{worker_protocol(), settings_, table, deadline, {}};
    std::vector<ResultRecord> earlier;
    for (const ResultRecord& row : pending_) {
      if (row.problem == problem) earlier.push_back(row);
    }
    std::erase_if(pending_, [&](const ResultRecord& row) { return row.problem == problem; });
    setup.earlier = earlier;
    tune::LiveMeasurer measurer(space, std::move(setup), interrupted());
    // Until a round is taken, what was there is more than what has been asked for of it.
    const auto rows = [&] { return measurer.taken_live() || earlier.empty() ? measurer.rows() : earlier; };
    Clock::time_point written = Clock::now();
    const auto keep = [&](bool now) {
      if (!now && seconds_since(written) < 1.0) return;
      put_rows(rows());
      writer_->write(file_);
      written = Clock::now();
    };
    tune::SearchOutcome outcome;
    std::optional<ProfileEntry> entry;
    tune::Gains gains;
    const auto has_failed = [&] { return entry && !measurer.failed(gains.plan).empty(); };
    // Who fails its last check was the fastest until then: once more, without it.
    for (int n = 0; n == 0 || (n < kMostSearches && has_failed() && !interrupted()); ++n) {
      outcome =
          tune::search(tune::landscape_of(space), measurer, search_, [&](const tune::SearchState& state) {
            progress(space, state);
            keep(false);
          });
      entry.reset();
      gains = {};
      if (outcome.winner && !outcome.stopped) {
        entry = tune::entry_of(space, outcome, entry_base(space.points[outcome.winner->point].variant));
        gains = tune::add_gains(space, outcome, measurer, *entry);
      }
      // A plan that was not held against the known ones in the end is none: --resume goes on from its rounds.
      if (gains.stopped) entry.reset();
      measurer.finish();
      keep(true);
    }
    const bool stopped = outcome.stopped || gains.stopped;
    if (entry) leave_out_failed(space, measurer, *entry);
    for (ResultRecord& row : rows()) done_.push_back(std::move(row));
    std::size_t failed = 0;
    for (std::size_t i = 0; i < space.points.size(); ++i) {
      failed += measurer.failed(i).empty() ? 0u : 1u;
      if (!measurer.wrong(i)) continue;
      wrong_ = true;
      say(stderr, fmt::format("fdbench: {} {}: a wrong result: {}\n", short_shape(problem),
                              space.points[i].name(), measurer.failed(i)));
    }
    clear();
    if (failed > 0)
      say(stderr, fmt::format("fdbench: {}: {} of {} points failed; {} says why\n", short_shape(problem),
                              failed, space.points.size(), points_path_));
    if (!entry || has_failed()) {
      if (!stopped) {
        ++without_plan_;
        say(stderr,
            fmt::format("fdbench: {}: no plan: {}\n", short_shape(problem),
                        has_failed() ? space.points[gains.plan].name() + ", the fastest, failed in the end"
                        : space.points.empty()          ? "no variant takes this shape"
                        : failed == space.points.size() ? "every point failed"
                                                        : "every point that was tried failed"));
      }
      return false;
    }
    for (const ProfileEntry& known : profile_.entries) {
      if (known.key == entry->key && known.seq != entry->seq)
        say(stderr,
            fmt::format("fdbench: {}: its plan takes the place of that for {} tokens: both are of the "
                        "bucket {} to {}\n",
                        short_shape(problem), known.seq, known.key.bucket.least, known.key.bucket.most));
    }
    // First kept, then told: stdout may be closed.
    found_.push_back(*entry);
    tune::put_entry(profile_, *entry);
    io::write_atomically(profile_.path, io::to_json(profile_));
    tell(fmt::format("[{}/{}] {}: {} {:.2f} us, {} of {} points, {} samples in {:.3f} s{}\n", shape_ + 1,
                     shapes_.size(), short_shape(problem), space.points[gains.plan].name(), entry->ns / 1e3,
                     outcome.measured, space.points.size(), entry->samples, outcome.cost_s + gains.cost_s,
                     measurer.resumed_samples() > 0
                         ? fmt::format(" ({} samples as resumed)", measurer.resumed_samples())
                         : fmt::format(" (and {:.1f} s of checking)", measurer.checking_s())));
    return true;
  }

  // Of a point that failed its last check no figure is believed.
  static void leave_out_failed(const tune::SearchSpace& space, const tune::LiveMeasurer& measurer,
                               ProfileEntry& entry) {
    const auto failed = [&](const TuningPoint& tuning) {
      const auto at = space.find(entry.key.variant, tuning);
      return at && !measurer.failed(*at).empty();
    };
    std::erase_if(entry.ties, failed);
    std::erase_if(entry.gains, [&](const ProfileGain& gain) { return failed(gain.tuning); });
  }

  // What an entry has of this machine and this run.
  ProfileEntry entry_base(const std::string& variant) const {
    ProfileEntry entry;
    entry.key.environment = profile_environment(device_, run_info_.tool.cuda);
    for (const Variant* one : variants_) {
      if (one->name == variant) entry.key.tuning_version = one->tuning_version;
    }
    entry.source_hash = kernels_hash();
    entry.tool = fmt::format("{} ({})", run_info_.tool.version, commit_text(run_info_.tool));
    entry.when = run_info_.started;
    entry.strategy = to_string(search_.strategy);
    return entry;
  }

  // As the shapes that are done went, by what each was expected to take.
  double seconds_left() const {
    double done = 0.0, rest = 0.0;
    for (std::size_t s = 0; s < shapes_.size(); ++s)
      (s < shape_ ? done : rest) += expected_seconds(shapes_[s], device_, settings_.measure.cache, search_);
    const double before = std::chrono::duration<double>(shape_begin_ - begin_).count();
    const double scale = done > 0.0 ? before / done : 1.0;
    return std::max(0.0, scale * rest - seconds_since(shape_begin_));
  }

  void progress(const tune::SearchSpace& space, const tune::SearchState& state) {
    if (flags_.output.quiet || !isatty(fileno(stderr))) return;
    const std::string left = fmt::format(", about {:.0f} s left", seconds_left());
    say(stderr,
        fmt::format("\r\x1b[K[{}/{}] {}: {}, {} of {} points{}{}", shape_ + 1, shapes_.size(),
                    short_shape(space.problem), to_string(state.phase), state.measured, space.points.size(),
                    state.leader ? fmt::format(", leader {} {:.2f} us", space.points[*state.leader].name(),
                                               state.leader_ns / 1e3)
                                 : "",
                    left));
    std::fflush(stderr);
    shown_ = true;
  }

  void report(const std::string& path, const ResultWriter& writer) {
    if (!found_.empty()) {
      tell("\n" + profile_table(found_) + "\n" + gain_summary(found_, false));
      tell(fmt::format("\nwrote {}\n", path));
    }
    if (!writer.failed() && !flags_.output.quiet) {
      for (const std::string& file : writer.paths()) tell(fmt::format("wrote {}\n", file));
    }
    if (flags_.output.md.empty() || found_.empty()) return;
    const std::string text = profile_markdown(found_) + "\n" + gain_summary(found_, true);
    if (flags_.output.md == "-") {
      say(stdout, text);
    } else {
      io::write_atomically(flags_.output.md, text);
      tell(fmt::format("wrote {}\n", flags_.output.md));
    }
  }

  const TuneFlags& flags_;
  bench::RunSettings settings_;
  tune::SearchSettings search_;
  std::vector<Problem> shapes_;
  DeviceInfo device_;
  std::vector<const Variant*> variants_;
  tune::AxisChoice axes_;
  std::vector<tune::CostModel> models_;
  std::FILE* out_ = stdout;
  RunInfo run_info_;
  TuningProfile profile_;
  ResultFile file_;
  std::vector<ResultRecord> done_, pending_;  // rows of shapes tuned; of an earlier run, for shapes to come
  ResultWriter* writer_ = nullptr;
  std::string points_path_;
  std::vector<ProfileEntry> found_;
  Clock::time_point begin_, shape_begin_;
  std::size_t shape_ = 0, without_plan_ = 0;
  bool wrong_ = false, shown_ = false;
};

}  // namespace

Exit tune_live(const TuneFlags& flags) {
  return Tuner(flags).run();
}

}  // namespace fdbench::cli
