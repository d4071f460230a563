#include "bench/rounds.h"

#include <algorithm>
#include <map>
#include <utility>

#include "stats/stop_rule.h"
#include "stats/throttle.h"

namespace fdbench::bench {

namespace {

// The kept samples of each item so far, as the stop rule looks at them.
class Kept {
 public:
  void add(const RoundDone& round) {
    double lowest = 0.0;
    for (const double mhz : round.sm_mhz) {
      if (mhz > 0.0) lowest = lowest > 0.0 ? std::min(lowest, mhz) : mhz;
    }
    round_mhz_.push_back(lowest);
    for (std::size_t i = 0; i < round.items.size(); ++i) times_[round.items[i]].push_back(round.ns[i]);
  }
  void remove(int item) { times_.erase(item); }

  std::vector<std::vector<double>> series() const {
    const stats::SetAside aside = stats::set_aside_rounds(round_mhz_, 0);
    std::vector<std::vector<double>> kept;
    for (const auto& [item, times] : times_) {
      auto& series = kept.emplace_back();
      for (std::size_t r = 0; r < times.size(); ++r) {
        if (!aside.set_aside[r]) series.push_back(times[r]);
      }
    }
    return kept;
  }

 private:
  std::vector<double> round_mhz_;
  std::map<int, std::vector<double>> times_;
};

}  // namespace

std::string run_rounds(std::vector<Contestant> contestants, const MeasureSettings& settings,
                       double timer_step_ns, const std::function<double()>& now_s,
                       const std::function<bool()>& usable, const EventSink& emit,
                       const std::atomic<bool>& interrupted) {
  stats::StopSettings stop;
  stop.max_noise = settings.max_noise;
  stop.max_time_s = settings.max_time_s * static_cast<double>(contestants.size());
  stop.max_rounds = kMaxRounds;

  Kept kept;
  const double start = now_s();
  int round = 0;
  while (!contestants.empty()) {
    // ABBA: whatever drifts linearly within two rounds weighs on all alike.
    std::vector<std::size_t> order(contestants.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = round % 2 == 0 ? i : order.size() - 1 - i;

    RoundDone done;
    done.round = round;
    std::vector<std::size_t> ended;
    for (const std::size_t at : order) {
      const Contestant& contestant = contestants[at];
      emit(StepBegins{contestant.item, Phase::sample});
      try {
        int voids = 0;
        Reading reading;
        do {
          if (interrupted) return "interrupted";
          reading = contestant.sample(round);
          if (!reading.valid) ++voids;
        } while (!reading.valid && voids < kMaxVoidSamples);
        if (!reading.valid) {
          emit(ItemEnded{contestant.item, Status::failed,
                         "no valid sample in " + std::to_string(kMaxVoidSamples) +
                             " tries: the host was late each time"});
          ended.push_back(at);
          continue;
        }
        done.items.push_back(contestant.item);
        done.ns.push_back(reading.ns);
        done.sm_mhz.push_back(reading.sm_mhz);
        done.void_samples.push_back(voids);
      } catch (const std::exception& failure) {
        emit(ItemEnded{contestant.item, Status::failed, failure.what()});
        if (!usable()) throw;
        ended.push_back(at);
      }
    }
    if (!ended.empty()) {
      // A round is whole or it is nothing.
      std::sort(ended.rbegin(), ended.rend());
      for (const std::size_t at : ended) {
        kept.remove(contestants[at].item);
        contestants.erase(contestants.begin() + static_cast<std::ptrdiff_t>(at));
      }
      continue;
    }
    emit(done);
    kept.add(done);
    ++round;
    if (settings.rounds) {
      // Rounds taken, not kept: a clock that stays low would never make up for those set aside.
      if (round >= *settings.rounds) return std::string(stats::to_string(stats::StopReason::fixed_rounds));
      continue;
    }
    const stats::StopReason reason = stats::evaluate(stop, kept.series(), timer_step_ns, now_s() - start);
    if (reason != stats::StopReason::none) return std::string(stats::to_string(reason));
  }
  return "nothing left to measure";
}

}  // namespace fdbench::bench
