#include "tune/search.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "core/philox.h"
#include "stats/summary.h"

namespace fdbench::tune {

namespace {

constexpr double kHopeless = 1.25;
constexpr int kFirstRounds = 2;  // forwards and backwards
// Halving ends with so many.
constexpr std::size_t kFewLeft = 4;
// A neighbour further off than this after its first rounds is not looked at again.
constexpr double kNear = 1.03;
// Nor is a move worth it for less.
constexpr double kBetter = 0.998;
constexpr double kSecondValley = 1.1;
constexpr int kMaxMoves = 24;
constexpr double kFinalRange = 1.02;
// Final rounds go on while a rival is neither shown to be slower nor known to be as close as this.
constexpr double kResolved = 0.005;
constexpr std::size_t kMaxFinalists = 3;
constexpr int kFirstFinals = 16, kMoreFinals = 4, kUnrivalled = 12;
// So that whoever watches can keep what there is between batches.
constexpr int kExhaustiveAtOnce = 8;
constexpr std::size_t kMaxAfterFirst = 2;
// Starts taken at random: one for so many points, and at most so many.
constexpr std::size_t kPointsPerRandom = 12, kMostRandom = 6;
// And so many where these and all the others fail.
constexpr std::size_t kInstead = 8;

// The first `count` of a seeded permutation.
std::vector<std::size_t> sample_of(std::vector<std::size_t> from, std::size_t count, std::uint64_t seed) {
  count = std::min(count, from.size());
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t word =
        philox4x32(static_cast<std::uint32_t>(i), 0, 7, 1, static_cast<std::uint32_t>(seed),
                   static_cast<std::uint32_t>(seed >> 32))
            .w[0];
    std::swap(from[i], from[i + word % (from.size() - i)]);
  }
  from.resize(count);
  return from;
}

class Search {
 public:
  Search(const Landscape& landscape, Measurer& measurer, const SearchSettings& settings,
         const SearchWatcher& watch)
      : landscape_(landscape), measurer_(measurer), settings_(settings), watch_(watch) {
    const std::size_t n = landscape.size();
    out_.median_ns.assign(n, 0.0);
    out_.failed.assign(n, {});
    out_.samples_by_point.assign(n, 0);
    times_.resize(n);
  }

  SearchOutcome run() {
    switch (settings_.strategy) {
      case Strategy::exhaustive: {
        std::vector<std::size_t> all(landscape_.size());
        for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
        finals(all, false);
        break;
      }
      case Strategy::random:
        halve(sample_of(others({}), std::max<std::size_t>(8, landscape_.size() / 10), settings_.seed));
        finals(finalists(), true);
        break;
      case Strategy::halving: {
        auto starts = landscape_.starts;
        const std::size_t at_random = std::min(landscape_.size() / kPointsPerRandom, kMostRandom);
        for (const std::size_t i : sample_of(others(starts), at_random, settings_.seed)) starts.push_back(i);
        halve(starts);
        // No start, or none that works: elsewhere there may be one.
        if (!leader_) halve(sample_of(others(starts), kInstead, settings_.seed));
        climb();
        climb_elsewhere();
        finals(finalists(), true);
        break;
      }
    }
    out_.winner = choose_winner(out_.finals, tie_break());
    return std::move(out_);
  }

 private:
  // All points but `these`.
  std::vector<std::size_t> others(const std::vector<std::size_t>& these) const {
    std::vector<std::size_t> rest;
    for (std::size_t i = 0; i < landscape_.size(); ++i) {
      if (std::find(these.begin(), these.end(), i) == these.end()) rest.push_back(i);
    }
    return rest;
  }

  bool usable(std::size_t i) const { return out_.failed[i].empty(); }
  bool measured(std::size_t i) const { return !times_[i].empty(); }

  Batch measure(SearchPhase phase, std::vector<std::size_t>& points, int rounds) {
    std::erase_if(points, [this](std::size_t i) { return !usable(i); });
    Batch batch;
    if (points.empty() || out_.stopped || rounds < 1) return batch;
    batch = measurer_.measure(points, rounds);
    out_.stopped = out_.stopped || batch.stop;
    out_.cost_s += batch.cost_s;
    for (std::size_t p = 0; p < points.size(); ++p) {
      const std::size_t i = points[p];
      if (!batch.failed[p].empty()) {
        // What it gave before it failed is not believed.
        out_.failed[i] = batch.failed[p];
        times_[i].clear();
        out_.median_ns[i] = 0.0;
        continue;
      }
      for (std::size_t k = 0; k < batch.ns[p].size(); ++k) times_[i][batch.rounds[k]] = batch.ns[p][k];
      out_.samples += static_cast<std::int64_t>(batch.ns[p].size());
      out_.samples_by_point[i] += static_cast<int>(batch.ns[p].size());
      std::vector<double> values;
      for (const auto& [round, ns] : times_[i]) values.push_back(ns);
      if (!values.empty()) out_.median_ns[i] = stats::median(values);
    }
    out_.measured = 0;
    for (std::size_t i = 0; i < times_.size(); ++i) out_.measured += measured(i) ? 1u : 0u;
    if (!leader_ || !usable(*leader_)) leader_ = fastest();
    if (watch_) {
      watch_({phase, out_.measured, out_.samples, leader_, leader_ ? out_.median_ns[*leader_] : 0.0});
    }
    return batch;
  }

  std::optional<std::size_t> fastest() const {
    std::optional<std::size_t> best;
    for (std::size_t i = 0; i < times_.size(); ++i) {
      if (measured(i) && (!best || out_.median_ns[i] < out_.median_ns[*best])) best = i;
    }
    return best;
  }

  // Time of i over j: paired over the rounds that both have, else of their medians.
  double ratio(std::size_t i, std::size_t j) const {
    std::vector<double> ratios;
    for (const auto& [round, ns] : times_[i]) {
      if (const auto other = times_[j].find(round); other != times_[j].end())
        ratios.push_back(ns / other->second);
    }
    return ratios.empty() ? out_.median_ns[i] / out_.median_ns[j] : stats::median(ratios);
  }

  void halve(std::vector<std::size_t> alive) {
    SearchPhase phase = SearchPhase::starts;
    // One round tells who is hopeless.
    measure(phase, alive, 1);
    const auto first = fastest();
    std::erase_if(alive, [&](std::size_t i) {
      return !measured(i) || (first && out_.median_ns[i] > kHopeless * out_.median_ns[*first]);
    });
    for (int rounds = kFirstRounds; !alive.empty() && !out_.stopped; rounds *= 2) {
      measure(phase, alive, rounds);
      phase = SearchPhase::halving;
      std::erase_if(alive, [this](std::size_t i) { return !usable(i) || !measured(i); });
      std::stable_sort(alive.begin(), alive.end(), [this](std::size_t a, std::size_t b) {
        return out_.median_ns[a] < out_.median_ns[b];
      });
      if (alive.size() <= kFewLeft) break;
      alive.resize(std::max(kFewLeft, (alive.size() + 1) / 2));
    }
    leader_ = fastest_of(alive);
  }

  std::optional<std::size_t> fastest_of(const std::vector<std::size_t>& points) const {
    std::optional<std::size_t> best;
    for (const std::size_t i : points) {
      if (measured(i) && (!best || ratio(i, *best) < 1.0)) best = i;
    }
    return best ? best : fastest();
  }

  void climb() {
    for (int move = 0; move < kMaxMoves && leader_ && !out_.stopped; ++move) {
      const std::size_t leader = *leader_;
      std::vector<std::size_t> fresh{leader};
      for (const std::size_t i : landscape_.neighbours[leader]) {
        if (!measured(i) && usable(i)) fresh.push_back(i);
      }
      if (fresh.size() > 1) measure(SearchPhase::neighbourhood, fresh, kFirstRounds);
      if (!usable(leader)) continue;  // measure() has found another
      std::vector<std::size_t> near{leader};
      for (const std::size_t i : landscape_.neighbours[leader]) {
        if (measured(i) && out_.samples_by_point[i] < 2 * kFirstRounds + 1 && ratio(i, leader) < kNear)
          near.push_back(i);
      }
      if (near.size() > 1) measure(SearchPhase::neighbourhood, near, kFirstRounds);
      if (!usable(leader)) continue;
      std::size_t best = leader;
      double best_ratio = kBetter;
      for (const std::size_t i : landscape_.neighbours[leader]) {
        if (!measured(i)) continue;
        if (const double r = ratio(i, leader); r < best_ratio) {
          best = i;
          best_ratio = r;
        }
      }
      if (best == leader) return;
      leader_ = best;
    }
  }

  // Once more, from the fastest that the leader's neighbourhood has not seen: a second valley, if there is
  // one.
  void climb_elsewhere() {
    if (!leader_) return;
    const std::size_t leader = *leader_;
    const auto& seen = landscape_.neighbours[leader];
    std::optional<std::size_t> other;
    for (std::size_t i = 0; i < times_.size(); ++i) {
      if (!measured(i) || i == leader || std::find(seen.begin(), seen.end(), i) != seen.end()) continue;
      if (ratio(i, leader) < kSecondValley && (!other || ratio(i, *other) < 1.0)) other = i;
    }
    if (!other) return;
    leader_ = other;
    climb();
    if (!leader_ || (usable(leader) && measured(leader) && ratio(leader, *leader_) <= 1.0)) leader_ = leader;
  }

  std::vector<std::size_t> finalists() const {
    std::vector<std::pair<double, std::size_t>> near;
    if (!leader_) return {};
    for (std::size_t i = 0; i < times_.size(); ++i) {
      if (!measured(i) || i == *leader_) continue;
      near.emplace_back(ratio(i, *leader_), i);
    }
    std::sort(near.begin(), near.end());
    std::vector<std::size_t> chosen{*leader_};
    for (const auto& [r, i] : near) {
      // One rival at least, however far: a margin says more than a time.
      if (chosen.size() < 2 || (r < kFinalRange && chosen.size() < kMaxFinalists)) chosen.push_back(i);
    }
    return chosen;
  }

  // `adaptive`: rivals are left behind and rounds end early; else every point has all of them.
  void finals(std::vector<std::size_t> points, bool adaptive) {
    FinalRounds& finals = out_.finals;
    finals.points = points;
    finals.ns.assign(points.size(), {});
    const auto place = [&](std::size_t point) {
      return static_cast<std::size_t>(std::find(finals.points.begin(), finals.points.end(), point) -
                                      finals.points.begin());
    };
    int taken = 0;
    while (taken < settings_.rounds && !points.empty() && !out_.stopped) {
      const int next = std::min(settings_.rounds - taken, taken > 0            ? kMoreFinals
                                                          : points.size() == 1 ? kUnrivalled
                                                                               : kFirstFinals);
      const int at_once = std::min(settings_.rounds - taken, kExhaustiveAtOnce);
      const Batch batch = measure(SearchPhase::finals, points, adaptive ? next : at_once);
      if (batch.rounds.empty()) break;
      taken += static_cast<int>(batch.rounds.size());
      for (std::size_t p = 0; p < points.size(); ++p) {
        auto& ns = finals.ns[place(points[p])];
        if (usable(points[p])) {
          ns.insert(ns.end(), batch.ns[p].begin(), batch.ns[p].end());
        } else {
          ns.clear();
        }
      }
      std::erase_if(points, [this](std::size_t i) { return !usable(i); });
      if (!adaptive) continue;
      if (points.empty()) {  // all finalists failed: the rest has to do
        points = finalists();
        finals.points = points;
        finals.ns.assign(points.size(), {});
        taken = 0;
        continue;
      }
      if (drop_slower(points, place)) break;
      keep_fastest(points, place, kMaxAfterFirst);
    }
    if (auto best = choose_winner(finals, {})) leader_ = best->point;
  }

  // Takes out whom the choosing half shows to be slower; true where the rest needs no more rounds.
  template <class Place>
  bool drop_slower(std::vector<std::size_t>& points, const Place& place) {
    const auto best = choose_winner(out_.finals, {});
    if (!best) return true;
    const auto& leader = out_.finals.ns[place(best->ties.front())];
    bool resolved = true;
    std::erase_if(points, [&](std::size_t i) {
      if (i == best->point) return false;
      const auto r = paired(out_.finals.ns[place(i)], leader, false);
      if (!r || !r->ci) {
        resolved = false;
        return false;
      }
      if (r->ci->lo > 1.0) return true;
      if (std::abs(r->ratio - 1.0) > kResolved) resolved = false;
      return false;
    });
    return resolved;
  }

  template <class Place>
  void keep_fastest(std::vector<std::size_t>& points, const Place& place, std::size_t count) {
    if (points.size() <= count) return;
    std::vector<std::pair<double, std::size_t>> order;
    for (const std::size_t i : points) {
      const auto& leader = out_.finals.ns[place(points.front())];
      const auto r = paired(out_.finals.ns[place(i)], leader, false);
      order.emplace_back(r ? r->ratio : INFINITY, i);
    }
    std::sort(order.begin(), order.end());
    order.resize(count);
    std::erase_if(points, [&](std::size_t i) {
      return std::none_of(order.begin(), order.end(), [i](const auto& kept) { return kept.second == i; });
    });
  }

  TieBreak tie_break() const {
    TieBreak out;
    out.workspace = landscape_.workspace;
    out.steepness.assign(landscape_.size(), INFINITY);
    for (std::size_t i = 0; i < landscape_.size(); ++i) {
      double sum = 0.0;
      int count = 0;
      for (const std::size_t j : landscape_.neighbours[i]) {
        if (!measured(i) || !measured(j)) continue;
        sum += std::max(0.0, ratio(j, i) - 1.0);
        ++count;
      }
      if (count > 0) out.steepness[i] = sum / count;
    }
    return out;
  }

  const Landscape& landscape_;
  Measurer& measurer_;
  const SearchSettings& settings_;
  const SearchWatcher& watch_;
  SearchOutcome out_;
  std::vector<std::map<int, double>> times_;  // of every point, by round
  std::optional<std::size_t> leader_;
};

constexpr std::string_view kStrategies[] = {"halving", "random", "exhaustive"};
constexpr std::string_view kPhases[] = {"starts", "halving", "neighbourhood", "finals"};

}  // namespace

std::string_view to_string(Strategy strategy) {
  return kStrategies[static_cast<int>(strategy)];
}

std::optional<Strategy> parse_strategy(std::string_view text) {
  for (int i = 0; i < 3; ++i) {
    if (kStrategies[i] == text) return static_cast<Strategy>(i);
  }
  return std::nullopt;
}

std::string_view to_string(SearchPhase phase) {
  return kPhases[static_cast<int>(phase)];
}

SearchOutcome search(const Landscape& landscape, Measurer& measurer, const SearchSettings& settings,
                     const SearchWatcher& watch) {
  return Search(landscape, measurer, settings, watch).run();
}

}  // namespace fdbench::tune
