#include "compare/compare.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "compare/comparable.h"
#include "compare/words.h"

namespace fdbench::compare {

namespace {

// A row that both sides have times of, on its way to a verdict.
struct Pair {
  std::size_t row = 0;  // in Comparison::rows
  Estimate estimate;
  bool raw_rose = false, raw_fell = false;
  std::string objection;  // against SLOWER and FASTER; empty: none
};

std::string processes_text(std::size_t base, std::size_t now) {
  return std::to_string(base) + " + " + std::to_string(now) + (base + now == 1 ? " process" : " processes");
}

bool lacks_processes(const RowEvidence& base, const RowEvidence& now, const Gate& gate) {
  return std::min(base.processes(), now.processes()) < static_cast<std::size_t>(gate.processes);
}

// What speaks against evidence from these two, a sentence; nothing when nothing does.
std::string objection(const RowEvidence& base, const RowEvidence& now, const Gate& gate) {
  if (base.log_ratio.empty() || now.log_ratio.empty()) return "no roof was measured in the same rounds";
  if (lacks_processes(base, now, gate)) {
    return processes_text(base.processes(), now.processes()) + "; evidence takes " +
           std::to_string(gate.processes) + " a side (--processes " + std::to_string(gate.processes) + ")";
  }
  if (base.throttled || now.throttled) return "measured while the clock was throttled";
  if (base.mhz > 0.0 && now.mhz > 0.0 && std::abs(base.mhz / now.mhz - 1.0) > kClockTolerance) {
    return "clocks differ: " + std::to_string(std::lround(base.mhz)) + " and " +
           std::to_string(std::lround(now.mhz)) + " MHz";
  }
  if (base.roof != now.roof) return "the roof was run another way (" + base.roof + ", now " + now.roof + ")";
  return {};
}

double mean_of_means(const std::vector<std::vector<double>>& sessions) {
  double sum = 0.0;
  for (const auto& session : sessions) {
    double mean = 0.0;
    for (const double value : session) mean += value / static_cast<double>(session.size());
    sum += mean / static_cast<double>(sessions.size());
  }
  return sum;
}

std::vector<double> pooled(const std::vector<std::vector<double>>& sessions) {
  std::vector<double> all;
  for (const auto& session : sessions) all.insert(all.end(), session.begin(), session.end());
  return all;
}

double percent(double log_effect) {
  return std::expm1(log_effect) * 100.0;
}

class Comparing {
 public:
  Comparing(const Side& base, const Side& now, const CompareSettings& settings)
      : settings_(settings),
        pairing_{settings.allow.count("dtype") != 0, settings.allow.count("cache") != 0,
                 settings.allow.count("timer") != 0},
        base_(collect(base, pairing_)),
        now_(collect(now, pairing_)),
        in_turn_(base.one_session && now.one_session) {}

  std::vector<RowComparison> rows() {
    for (const std::string& key : base_.order) add(key);
    for (const std::string& key : now_.order) {
      if (!base_.rows.count(key)) add(key);
    }
    judge();
    return std::move(rows_);
  }

  // Rows of both sides whose plans differ since a profile chose one of them.
  std::size_t other_plans() const {
    std::size_t count = 0;
    for (const auto& [key, base] : base_.rows) {
      const auto now = now_.rows.find(key);
      if (now != now_.rows.end() && !(base.record->tuning == now->second.record->tuning)) ++count;
    }
    return count;
  }

  // Rows that more processes could decide, and nothing else.
  std::size_t lack_processes() const { return lack_processes_; }

 private:
  void add(const std::string& key) {
    if (!settings_.only.empty() && !settings_.only.count(key)) return;
    const auto found_base = base_.rows.find(key), found_now = now_.rows.find(key);
    const RowEvidence* base = found_base == base_.rows.end() ? nullptr : &found_base->second;
    const RowEvidence* now = found_now == now_.rows.end() ? nullptr : &found_now->second;
    const ResultRecord& record = *(now ? now : base)->record;
    RowComparison row;
    row.id = key;
    row.variant = record.variant;
    row.problem = record.problem;
    row.role = record.role;
    row.threshold_percent = threshold_percent(settings_.gate, key);
    if (const auto noise = settings_.noise.find(key); noise != settings_.noise.end())
      row.smallest_effect_percent = noise->second.smallest_effect_percent;
    if (base && base->ok > 0) row.base_ns = stats::median(base->medians_ns);
    if (now && now->ok > 0) {
      row.new_ns = stats::median(now->medians_ns);
      row.new_ci95_ns = record.time->ci95;
    }
    row.failed = now && now->failed > 0;

    if (now && now->incorrect > 0) {
      row.verdict = Verdict::wrong;
      row.why = now->reason;
    } else if (row.failed && !row.base_ns) {
      row.verdict = Verdict::unsure;
      row.why = "failed: " + now->reason;
    } else if (!row.base_ns && !row.new_ns) {
      return;  // neither side has it: nothing to say
    } else if (!row.base_ns) {
      row.verdict = Verdict::fresh;
      row.why = base ? "the base could not measure it: " + base->reason : "not in the base";
    } else if (!row.new_ns || row.failed) {
      row.verdict = Verdict::gone;
      row.why =
          now ? (now->failed > 0 ? "failed: " : "unsupported: ") + now->reason : "not in the new results";
    } else {
      pair(*base, *now, row);
    }
    rows_.push_back(std::move(row));
  }

  void pair(const RowEvidence& base, const RowEvidence& now, RowComparison& row) {
    Pair pair;
    pair.row = rows_.size();
    pair.objection = objection(base, now, settings_.gate);
    const bool by_roof = !base.log_ratio.empty() && !now.log_ratio.empty();
    const bool is_roof = row.role == Role::roof && now.record->tuning.empty();
    const bool use_ratio = by_roof && !is_roof;
    RowFigures figures;
    figures.base = use_ratio ? base.log_ratio : base.log_time;
    figures.now = pooled(use_ratio ? now.log_ratio : now.log_time);
    figures.floor_sd = settings_.gate.noise_floor_percent / 100.0;
    if (const auto noise = settings_.noise.find(row.id); noise != settings_.noise.end())
      figures.floor_sd = std::max(figures.floor_sd, noise->second.between_percent / 100.0);
    // A history shows by itself what sessions differ by; sides measured in turn are one session.
    if (!in_turn_ && figures.base.size() == 1)
      figures.allowance = kSessionShare * std::log1p(row.threshold_percent / 100.0);
    if (row.role != Role::roof && by_roof && lacks_processes(base, now, settings_.gate)) ++lack_processes_;
    if (is_roof) pair.objection = "a roof is what rows are measured against; it is not gated";
    const double raw = mean_of_means(now.log_time) - mean_of_means(base.log_time);
    pair.raw_rose = raw > 0.0;
    pair.raw_fell = raw < 0.0;
    if (base.processes() + now.processes() < 3) {
      row.verdict = Verdict::unsure;
      row.why = pair.objection;
      return;
    }
    pair.estimate = estimate(figures);
    const Estimate& e = pair.estimate;
    Effect effect;
    effect.percent = percent(e.effect);
    effect.ci95 = {percent(e.ci95.lo), percent(e.ci95.hi)};
    effect.p = e.effect >= 0.0 ? e.p_slower : e.p_faster;
    effect.sd_percent = e.sd * 100.0;
    effect.sd_is_floor = e.sd_is_floor;
    effect.base_processes = static_cast<int>(base.processes());
    effect.new_processes = static_cast<int>(now.processes());
    row.effect = effect;
    pairs_.push_back(std::move(pair));
  }

  void judge() {
    std::vector<double> slower, faster;
    std::vector<std::size_t> gated;  // in pairs_
    for (std::size_t i = 0; i < pairs_.size(); ++i) {
      if (rows_[pairs_[i].row].role == Role::roof) continue;
      gated.push_back(i);
      slower.push_back(pairs_[i].estimate.p_slower);
      faster.push_back(pairs_[i].estimate.p_faster);
    }
    const std::vector<double> slower_holm = holm(slower), faster_holm = holm(faster);
    for (std::size_t g = 0; g < gated.size(); ++g) {
      Effect& effect = *rows_[pairs_[gated[g]].row].effect;
      effect.p_holm = effect.percent >= 0.0 ? slower_holm[g] : faster_holm[g];
    }
    for (const Pair& pair : pairs_) decide(pair, gated.size());
  }

  void decide(const Pair& pair, std::size_t gated) {
    RowComparison& row = rows_[pair.row];
    const Effect& effect = *row.effect;
    // A change of the threshold one way is as far, in logarithms, as it is the other.
    const double limit = std::log1p(row.threshold_percent / 100.0);
    const double change = pair.estimate.effect;
    const bool large = std::abs(change) >= limit;
    const bool proven = effect.p_holm <= settings_.gate.alpha_percent / 100.0;
    const bool slower = change > 0.0;
    const bool raw_agrees = slower ? pair.raw_rose : pair.raw_fell;
    std::string because;
    if (!pair.objection.empty() && row.role == Role::roof) {
      const bool within = pair.estimate.ci95.lo > -limit && pair.estimate.ci95.hi < limit;
      row.verdict = within ? Verdict::same : Verdict::unsure;
      because = pair.objection;
    } else if (!pair.objection.empty()) {
      row.verdict = Verdict::unsure;
      because = pair.objection;
    } else if (large && proven && raw_agrees) {
      row.verdict = slower ? Verdict::slower : Verdict::faster;
    } else if (large && proven) {
      row.verdict = Verdict::unsure;
      because = std::string("the time itself did not ") + (slower ? "rise" : "fall") + ": the roof moved";
    } else if (pair.estimate.ci95.lo > -limit && pair.estimate.ci95.hi < limit) {
      row.verdict = Verdict::same;
    } else {
      row.verdict = Verdict::unsure;
      because = large ? "no evidence of it" : "the interval reaches over the threshold";
    }
    row.why = evidence_text(effect, row.threshold_percent, gated, row.role == Role::roof);
    if (!because.empty()) row.why += "; " + because;
  }

  const CompareSettings& settings_;
  Pairing pairing_;
  Evidence base_, now_;
  bool in_turn_;
  std::size_t lack_processes_ = 0;
  std::vector<RowComparison> rows_;
  std::vector<Pair> pairs_;
};

std::string commit_of(const Side& side) {
  return commit_text(side.files.back()->run.tool);
}

}  // namespace

Comparison compare_sides(const Side& base, const Side& now, const CompareSettings& settings) {
  Comparison out;
  out.gate = settings.gate.name;
  out.device = now.files.back()->run.device;
  out.base_commit = commit_of(base);
  out.new_commit = commit_of(now);
  Comparability comparability = check_comparable(base, now, settings.allow);
  out.warnings = std::move(comparability.warnings);
  out.not_comparable = std::move(comparability.differences);
  if (!out.not_comparable.empty()) return out;
  Comparing comparing(base, now, settings);
  out.rows = comparing.rows();
  if (const std::size_t lack = comparing.lack_processes(); lack > 0) {
    const std::string enough = "--processes " + std::to_string(settings.gate.processes);
    out.warnings.push_back(std::to_string(lack) + (lack == 1 ? " row" : " rows") +
                           " can only be UNSURE, for want of processes: " +
                           (base.one_session && now.one_session
                                ? "give " + enough
                                : "measure both sides with fdbench run " + enough +
                                      ", or two builds with fdbench compare --bin OLD NEW"));
  }
  if (const std::size_t other = comparing.other_plans(); other > 0)
    out.warnings.push_back(
        std::to_string(other) + (other == 1 ? " row has" : " rows have") +
        " another plan by a tuning profile than in the base: a change of plans, perhaps not "
        "of kernels (fdbench run --no-profile has the variants' own)");
  std::size_t below = 0;
  const RowComparison* example = nullptr;
  for (const RowComparison& row : out.rows) {
    if (!row.smallest_effect_percent || *row.smallest_effect_percent <= row.threshold_percent) continue;
    if (row.role == Role::roof) continue;
    ++below;
    if (!example || *row.smallest_effect_percent > *example->smallest_effect_percent) example = &row;
  }
  if (example) {
    out.warnings.push_back("thresholds of " + std::to_string(below) +
                           " rows lie below what this machine can resolve; the worst: " + example->id + ", " +
                           short_number(example->threshold_percent) + " % where " +
                           short_number(*example->smallest_effect_percent) + " % can be seen");
  }
  return out;
}

std::vector<std::size_t> suspects(const Comparison& comparison) {
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < comparison.rows.size(); ++i) {
    const RowComparison& row = comparison.rows[i];
    if (!row.effect || row.role == Role::roof) continue;
    const double change = std::log1p(row.effect->percent / 100.0);
    if (std::abs(change) >= std::log1p(row.threshold_percent / 100.0) && row.effect->p <= kSuspectP)
      out.push_back(i);
  }
  return out;
}

void confirm(Comparison& comparison, const std::vector<std::size_t>& suspects, const Comparison& again) {
  for (const std::size_t at : suspects) {
    RowComparison& row = comparison.rows[at];
    const auto found = std::find_if(again.rows.begin(), again.rows.end(),
                                    [&](const RowComparison& other) { return other.id == row.id; });
    const std::optional<Effect> first = row.effect;
    if (found == again.rows.end()) {
      row.verdict = Verdict::unsure;
      row.why += "; it could not be measured again";
      continue;
    }
    const std::optional<double> smallest = row.smallest_effect_percent;
    row = *found;
    row.smallest_effect_percent = smallest;
    row.first_effect = first;
    if (first) row.why = "measured again: " + row.why + " (at first " + signed_percent(first->percent) + ")";
  }
}

Exit exit_for(const Comparison& comparison, bool allow_missing, bool fail_unsure) {
  const auto any = [&](const auto& holds) {
    return std::any_of(comparison.rows.begin(), comparison.rows.end(), holds);
  };
  const auto any_is = [&](Verdict verdict) {
    return any([&](const RowComparison& row) { return row.verdict == verdict; });
  };
  if (!comparison.not_comparable.empty()) return Exit::not_comparable;
  if (!allow_missing && any_is(Verdict::gone)) return Exit::not_comparable;
  if (any_is(Verdict::wrong)) return Exit::wrong_result;
  if (any_is(Verdict::slower)) return Exit::regression;
  if (fail_unsure && any_is(Verdict::unsure)) return Exit::too_noisy;
  if (any([](const RowComparison& row) { return row.failed; })) return Exit::failed;
  if (!any([](const RowComparison& row) { return row.base_ns && row.new_ns; })) return Exit::failed;
  return Exit::good;
}

}  // namespace fdbench::compare
