#include "bench/session.h"

#include <algorithm>
#include <exception>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "bench/buffers.h"
#include "bench/rotation.h"
#include "bench/rounds.h"
#include "bench/slowed.h"
#include "bench/validation.h"
#include "core/byte_sum.h"
#include "core/error.h"

namespace fdbench::bench {

namespace {

class Session {
 public:
  Session(Backend& backend, VariantTable table, const WorkRequest& request, const EventSink& emit,
          const std::atomic<bool>& interrupted)
      : backend_(backend), table_(table), request_(request), interrupted_(interrupted) {
    emit_ = [this, &emit](const WorkEvent& event) {
      if (const auto* ended = std::get_if<ItemEnded>(&event)) ended_.insert(ended->item);
      emit(event);
    };
  }

  void run() {
    if (const auto reason = invalid_reason(request_.problem))
      throw usage_error("this is no problem: " + *reason);
    make_plans();
    if (plans_.empty()) {
      emit_(WorkDone{});
      return;
    }
    emit_(StepBegins{-1, Phase::prepare});
    const Inputs inputs(backend_, request_.problem, request_.settings.seed);
    validate(inputs);
    std::string stop;
    if (request_.settings.measure && !subjects_.empty() && !interrupted_) {
      stop = measure();
      recheck();
    } else if (interrupted_) {
      stop = "interrupted";
    }
    std::vector<std::string> flags = backend_.row_flags();
    flags.insert(flags.end(), extra_flags_.begin(), extra_flags_.end());
    emit_(WorkDone{stop, backend_.timer_step_ns(), flags});
  }

  void run_steered(const NextRounds& next) {
    if (const auto reason = invalid_reason(request_.problem))
      throw usage_error("this is no problem: " + *reason);
    if (request_.settings.timer != TimerMode::events)
      throw usage_error("--timer graph: points are searched with the events timer");
    emit_(StepBegins{-1, Phase::prepare});
    const Inputs inputs(backend_, request_.problem, request_.settings.seed);
    find_truth(inputs);
    bool measuring = false;
    while (!interrupted_) {
      const auto asked = next();
      if (!asked) break;
      for (const int item : asked->items) {
        if (asked_.insert(item).second && !interrupted_) make_ready(item, inputs);
      }
      if (!measuring && !subjects_.empty()) {
        emit_(StepBegins{-1, Phase::warm_up});
        backend_.start_measuring(request_.settings.cache);
        measuring = true;
      }
      const double begin = backend_.now_s();
      take_rounds(*asked);
      emit_(RoundsTaken{backend_.now_s() - begin});
    }
    if (!interrupted_) recheck();
    emit_(WorkDone{interrupted_ ? "interrupted" : "", backend_.timer_step_ns(), backend_.row_flags()});
  }

 private:
  struct Planned {
    int item;
    const Variant* variant;
    LaunchPlan plan;
  };

  // One item of a steered request: planned, checked, launched once as it will be timed.
  void make_ready(int item, const Inputs& inputs) {
    const std::size_t planned_before = plans_.size();
    make_plan_of(item);
    if (plans_.size() == planned_before) return;
    const std::size_t subjects_before = subjects_.size();
    make_subject(plans_.back(), inputs);
    if (subjects_.size() == subjects_before) return;
    attempt(item, Phase::warm_up, [this] {
      subjects_.back().second->prepared().launch(backend_.context());
      backend_.synchronize();
    });
    drop_ended();
  }

  void take_rounds(const RoundsAsked& asked) {
    std::vector<Contestant> contestants;
    for (const int item : asked.items) {
      for (auto& [of, subject] : subjects_) {
        if (of != item || ended_.count(item) != 0) continue;
        Prepared* prepared = &subject->prepared();
        contestants.push_back({item, [this, prepared, first = steered_rounds_](int round) {
                                 return backend_.sample(*prepared, first + round);
                               }});
      }
    }
    if (contestants.empty()) return;
    steered_rounds_ += asked.rounds;
    MeasureSettings settings = request_.settings;
    settings.rounds = asked.rounds;
    run_rounds(
        std::move(contestants), settings, backend_.timer_step_ns(), [this] { return backend_.now_s(); },
        [this] { return usable(); }, emit_, interrupted_);
    drop_ended();
  }

  // Runs a step of one item. False when it threw: the item has ended. Rethrows when the backend is lost.
  template <class Step>
  bool attempt(int item, Phase phase, const Step& step) {
    emit_(StepBegins{item, phase});
    try {
      step();
      return true;
    } catch (const std::exception& failure) {
      emit_(ItemEnded{item, Status::failed, failure.what()});
      if (!usable()) throw;
      return false;
    }
  }

  bool usable() {
    try {
      backend_.synchronize();
      return true;
    } catch (const std::exception&) {
      return false;
    }
  }

  void make_plans() {
    for (std::size_t i = 0; i < request_.items.size(); ++i) make_plan_of(static_cast<int>(i));
  }

  void make_plan_of(int item) {
    const WorkItem& asked = request_.items.at(static_cast<std::size_t>(item));
    const Variant* variant = find_variant(table_, asked.variant);
    if (!variant) throw usage_error("this build has no variant " + asked.variant);
    emit_(StepBegins{item, Phase::prepare});
    PlanResult planned = make_plan(*variant, request_.problem, backend_.device(), asked.tuning);
    if (const auto* no = std::get_if<Unsupported>(&planned)) {
      emit_(ItemEnded{item, Status::unsupported, no->reason});
    } else {
      plans_.push_back({item, variant, std::get<LaunchPlan>(std::move(planned))});
    }
  }

  void find_truth(const Inputs& inputs) {
    const Variant* oracle = find_role(table_, backend_.device().kind, Role::oracle);
    if (!oracle) throw Error(Exit::failed, "this build has no oracle for this device");
    emit_(StepBegins{-1, Phase::validate});
    truth_ = compute_truth(backend_, *oracle, request_.problem, inputs);
  }

  void validate(const Inputs& inputs) {
    find_truth(inputs);
    for (const Planned& planned : plans_) {
      if (interrupted_) return;
      make_subject(planned, inputs);
    }
  }

  bool check(int item, Subject& subject, Phase phase, bool first) {
    Subject::Check result;
    // lse is asked for the first time only: what is timed does not write it.
    if (!attempt(item, phase, [&] { result = subject.check(truth_, first); })) return false;
    if (result.accuracy && (first || !result.wrong.empty())) emit_(ItemChecked{item, *result.accuracy});
    if (result.wrong.empty()) return true;
    emit_(ItemEnded{item, Status::incorrect, (first ? "" : "after measuring: ") + result.wrong});
    return false;
  }

  void make_subject(const Planned& planned, const Inputs& inputs) {
    const auto& [item, variant, plan] = planned;
    std::unique_ptr<Subject> subject;
    const bool ready = attempt(item, Phase::prepare, [&, v = variant, &p = plan] {
      subject = std::make_unique<Subject>(backend_, *v, request_.problem, inputs, p);
    });
    if (!ready) return;
    emit_(ItemPlanned{item, plan, subject->prepare_ns()});
    if (check(item, *subject, Phase::validate, true)) subjects_.emplace_back(item, std::move(subject));
  }

  std::string measure() {
    const MeasureSettings& settings = request_.settings;
    emit_(StepBegins{-1, Phase::warm_up});
    // What is timed is launched once before: lazy loading must not happen behind a running kernel.
    for (auto& [item, subject] : subjects_) {
      attempt(item, Phase::warm_up, [&, s = subject.get()] {
        s->prepared().launch(backend_.context());
        backend_.synchronize();
      });
    }
    drop_ended();
    if (subjects_.empty()) return {};
    emit_(StepBegins{-1, Phase::warm_up});
    backend_.start_measuring(settings.cache);

    std::vector<std::unique_ptr<Slowed>> slowed;  // where a slowdown is planted, what is sampled instead
    const auto to_sample = [&](int item, Prepared& prepared) -> Prepared& {
      const auto& plant = request_.plant;
      if (!plant || plant->variant != request_.items[static_cast<std::size_t>(item)].variant) return prepared;
      slowed.push_back(std::make_unique<Slowed>(backend_, prepared, plant->share));
      extra_flags_.push_back(slowed.back()->flag(plant->variant));
      return *slowed.back();
    };
    std::optional<Rotation> rotation;
    if (settings.timer == TimerMode::graph) {
      std::vector<Subject*> all;
      for (const auto& [item, subject] : subjects_) all.push_back(subject.get());
      rotation.emplace(backend_, request_.problem, settings.seed, std::move(all));
      if (!rotation->grow_to_plateau()) extra_flags_.push_back("rotation_below_plateau");
    }
    std::vector<Contestant> contestants;
    for (std::size_t s = 0; s < subjects_.size(); ++s) {
      Subject* subject = subjects_[s].second.get();
      Contestant contestant{subjects_[s].first, {}};
      if (settings.timer == TimerMode::graph) {
        std::vector<Prepared*> turn = rotation->turn(s);
        for (Prepared*& prepared : turn) prepared = &to_sample(subjects_[s].first, *prepared);
        contestant.sample = [this, turn](int) { return backend_.graph_sample(turn); };
      } else {
        Prepared* prepared = &to_sample(subjects_[s].first, subject->prepared());
        contestant.sample = [this, prepared](int round) { return backend_.sample(*prepared, round); };
      }
      contestants.push_back(std::move(contestant));
    }
    return run_rounds(
        std::move(contestants), settings, backend_.timer_step_ns(), [this] { return backend_.now_s(); },
        [this] { return usable(); }, emit_, interrupted_);
  }

  void drop_ended() {
    std::erase_if(subjects_, [this](const auto& subject) { return ended_.count(subject.first) != 0; });
  }

  void recheck() {
    drop_ended();
    for (auto& [item, subject] : subjects_) check(item, *subject, Phase::recheck, false);
  }

  Backend& backend_;
  VariantTable table_;
  const WorkRequest& request_;
  const std::atomic<bool>& interrupted_;
  EventSink emit_;
  std::vector<std::string> extra_flags_;  // beside the backend's
  std::set<int> ended_;                   // items that take no further part
  std::set<int> asked_;                   // items that a steered request has been asked for
  int steered_rounds_ = 0;                // of all requests so far
  std::vector<Planned> plans_;
  Truth truth_;
  std::vector<std::pair<int, std::unique_ptr<Subject>>> subjects_;
};

}  // namespace

void run_session(Backend& backend, VariantTable table, const WorkRequest& request, const EventSink& emit,
                 const std::atomic<bool>& interrupted) {
  Session(backend, table, request, emit, interrupted).run();
}

void run_steered_session(Backend& backend, VariantTable table, const WorkRequest& request,
                         const NextRounds& next, const EventSink& emit,
                         const std::atomic<bool>& interrupted) {
  Session(backend, table, request, emit, interrupted).run_steered(next);
}

std::int64_t memory_needed(const Backend& backend, VariantTable table, const Problem& problem,
                           const std::vector<WorkItem>& items, const MeasureSettings& settings) {
  const DeviceInfo& device = backend.device();
  const bool graph = settings.measure && settings.timer == TimerMode::graph;
  const std::int64_t copies = graph ? std::int64_t{kMostGrowth} * rotation_copies(backend, problem) : 1;
  // The rest need not be counted, and could not be in 64 bits.
  const double rough = static_cast<double>(kPoisonRows + problem.seq) *
                       static_cast<double>(problem.kv_heads) * static_cast<double>(problem.dim) *
                       static_cast<double>(2 * element_bytes(problem.dtype) * copies);
  if (rough > kBeyondMemory) return static_cast<std::int64_t>(std::min(rough, 0x1p62));
  if (!has_countable_plans(problem)) return kMostBytes;
  std::int64_t subjects = 0;
  for (const WorkItem& item : items) {
    const Variant* variant = find_variant(table, item.variant);
    if (!variant) continue;
    const PlanResult planned = make_plan(*variant, problem, device, item.tuning);
    if (const auto* plan = std::get_if<LaunchPlan>(&planned))
      subjects = add_bytes(subjects, Subject::footprint(*variant, problem, *plan));
  }
  const Variant* oracle = find_role(table, device.kind, Role::oracle);
  const std::int64_t checking = oracle ? truth_footprint(*oracle, problem, device).value_or(0) : 0;
  const std::int64_t measuring = settings.measure ? backend.measuring_bytes(settings.cache) : 0;
  // The oracle's memory is given back before the subjects take theirs.
  return add_bytes(copies * Inputs::footprint(problem), std::max(checking, add_bytes(subjects, measuring)));
}

}  // namespace fdbench::bench
