#include "compare/noise.h"

#include <algorithm>
#include <cmath>

#include "compare/compare.h"
#include "compare/judge.h"

namespace fdbench::compare {

namespace {
constexpr double kPower = 0.95;
}

std::vector<RowNoise> row_noise(const ResultFile& file, const Gate& gate) {
  const Evidence evidence = collect({{&file}, {"the doctor's run"}, true}, {});
  std::vector<RowNoise> rows;
  for (const std::string& id : evidence.order) {
    const RowEvidence& row = evidence.rows.at(id);
    if (row.log_ratio.empty() || (row.record->role == Role::roof && row.record->tuning.empty())) continue;
    const std::vector<double>& figures = row.log_ratio.front();
    if (figures.size() < 2) continue;
    double mean = 0.0, squares = 0.0;
    for (const double figure : figures) mean += figure / static_cast<double>(figures.size());
    for (const double figure : figures) squares += (figure - mean) * (figure - mean);
    RowNoise noise;
    noise.id = id;
    noise.processes = static_cast<int>(figures.size());
    noise.within_percent = 100.0 * within_sd(file, *row.record);
    noise.between_percent = 100.0 * std::sqrt(squares / static_cast<double>(figures.size() - 1));
    rows.push_back(noise);
  }
  for (RowNoise& noise : rows) {
    const double sd = std::max(noise.between_percent, gate.noise_floor_percent) / 100.0;
    const double session = kSessionShare * std::log1p(threshold_percent(gate, noise.id) / 100.0);
    noise.smallest_effect_percent =
        100.0 * std::expm1(session + smallest_effect(sd, gate.processes, rows.size(),
                                                     gate.alpha_percent / 100.0, kPower));
  }
  return rows;
}

}  // namespace fdbench::compare
