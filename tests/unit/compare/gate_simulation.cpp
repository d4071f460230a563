#include "unit/compare/gate_simulation.h"

#include <cmath>
#include <string>

#include "compare/compare.h"

namespace fdbench::test {

namespace {

// SplitMix64; own distributions, so that every standard library simulates the same machines.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  double uniform() {  // within (0, 1)
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (static_cast<double>((z ^ (z >> 31)) >> 11) + 0.5) * 0x1p-53;
  }
  double normal() {
    constexpr double kPi = 3.14159265358979323846;
    return std::sqrt(-2.0 * std::log(uniform())) * std::cos(2.0 * kPi * uniform());
  }
  double exponential() { return -std::log(uniform()); }
  // Unit variance.
  double student3() {
    double square = 0.0;
    for (int i = 0; i < 3; ++i) {
      const double z = normal();
      square += z * z;
    }
    return normal() / std::sqrt(square / 3.0) / std::sqrt(3.0);
  }

 private:
  std::uint64_t state_;
};

constexpr int kRounds = 2;  // a process's median of two is all that the figure needs
constexpr int kRowsInGroup = 4;
constexpr double kBurstChance = 0.1, kBurstMean = 0.05;
constexpr double kRoofNs = 30'000.0, kRatio = 1.2;

// Two sides of `rows` rows, a shape each with a roof of its own, as result files: the whole path from records
// to verdicts is under test.
struct Sides {
  std::vector<ResultFile> base, now;
};

ResultRecord row_of(const std::string& variant, Role role, int shape) {
  ResultRecord record;
  record.variant = variant;
  record.role = role;
  record.problem = Problem{1024 + shape, 32, 8, 128, Dtype::bf16, {}};
  record.id = result_id(variant, record.problem, {}, CacheMode::cold, TimerMode::events);
  record.bytes = record.problem.logical_bytes();
  record.time = TimeSummary{};
  return record;
}

void add_sample(ResultRecord& record, int process, double ns) {
  for (int round = 0; round < kRounds; ++round)
    record.time->samples.push_back({process, round, ns, 0.0, false});
  record.time->median = ns;
}

class Machine {
 public:
  Machine(const Scenario& scenario, std::uint64_t seed) : scenario_(scenario), random_(seed) {}

  Sides measure(int processes, int rows) {
    Sides sides;
    sides.base.push_back(empty_file(rows));
    sides.now.push_back(empty_file(rows));
    const int all = 2 * processes;
    for (int at = 0; at < all; ++at) {
      // Files: base, base, ..., new, new. Builds in turn: base, new, new, base, base, ...
      const bool in_turn = scenario_.mode == Mode::bin;
      const bool is_new = in_turn ? (at % 4 == 1 || at % 4 == 2) : at >= processes;
      const int process = in_turn ? at / 2 : at % processes;
      measure_process(is_new ? sides.now.front() : sides.base.front(), is_new, process, rows,
                      static_cast<double>(at) / (all - 1));
    }
    return sides;
  }

 private:
  static ResultFile empty_file(int rows) {
    ResultFile file;
    for (int row = 0; row < rows; ++row) {
      file.results.push_back(row_of("roof", Role::roof, row));
      file.results.push_back(row_of("kernel", Role::candidate, row));
    }
    return file;
  }

  void measure_process(ResultFile& file, bool is_new, int process, int rows, double when) {
    // The machine as a whole wanders by 2 %: time and roof alike.
    const double common = 0.02 * random_.normal() + 0.02 * when;
    const bool burst = scenario_.noise == Noise::bursts && random_.uniform() < kBurstChance;
    double slowed = 0.0;
    for (int row = 0; row < rows; ++row) {
      if (row % kRowsInGroup == 0)
        slowed = burst && random_.uniform() < 0.5 ? kBurstMean * random_.exponential() : 0.0;
      double ratio = std::log(kRatio) + slowed;
      ratio += scenario_.sd * (scenario_.noise == Noise::heavy_tails ? random_.student3() : random_.normal());
      if (scenario_.noise == Noise::drift) ratio += scenario_.sd * when;
      if (is_new && row == 0) ratio += std::log1p(scenario_.planted);
      const double roof = kRoofNs * std::exp(common);
      add_sample(file.results[static_cast<std::size_t>(2 * row)], process, roof);
      add_sample(file.results[static_cast<std::size_t>(2 * row + 1)], process, roof * std::exp(ratio));
    }
  }

  const Scenario& scenario_;
  Random random_;
};

Comparison compare_them(const Sides& sides, bool in_turn, const compare::CompareSettings& settings) {
  const compare::Side base{{&sides.base.front()}, {"base"}, in_turn},
      now{{&sides.now.front()}, {"new"}, in_turn};
  return compare::compare_sides(base, now, settings);
}

}  // namespace

Outcome simulate(const Scenario& scenario, int reports, std::uint64_t seed) {
  Outcome outcome;
  const bool in_turn = scenario.mode == Mode::bin;
  for (int report = 0; report < reports; ++report) {
    Machine machine(scenario, seed * 1'000'003 + static_cast<std::uint64_t>(report));
    const compare::CompareSettings settings;
    Comparison comparison =
        compare_them(machine.measure(scenario.processes, scenario.rows), in_turn, settings);
    if (in_turn) {
      const std::vector<std::size_t> suspects = compare::suspects(comparison);
      if (!suspects.empty()) {
        compare::CompareSettings again = settings;
        for (const std::size_t at : suspects) again.only.insert(comparison.rows[at].id);
        compare::confirm(
            comparison, suspects,
            compare_them(machine.measure(2 * scenario.processes, scenario.rows), in_turn, again));
      }
    }
    bool alarm = false, caught = false;
    for (const RowComparison& row : comparison.rows) {
      if (row.verdict != Verdict::slower) continue;
      const bool planted = scenario.planted > 0.0 && row.problem.seq == 1024;
      (planted ? caught : alarm) = true;
    }
    ++outcome.reports;
    outcome.false_alarms += alarm ? 1 : 0;
    outcome.caught += caught ? 1 : 0;
  }
  return outcome;
}

}  // namespace fdbench::test
