#include "cli/rules_header.h"

#include <fmt/core.h>

#include <algorithm>

#include "cli/rules_table.h"
#include "core/measurement.h"
#include "io/comment_text.h"

namespace fdbench::cli {

namespace {

// As a C++ literal that reads back as the same double.
std::string literal(double value) {
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

std::string evidence_text(const tune::CostModel& model, const HeaderEvidence& evidence) {
  std::string out = fmt::format(
      "// How many chunks to cut the KV sequence into for decode attention by {} on {}\n"
      "// ({} {}): a cost model's choice. C++17, needs nothing else.\n"
      "//\n"
      "// Written by fdbench {}. Evidence: {} shapes measured {}, fdbench {} ({}), {} cache, timer {}.\n"
      "// Fitted to {} of them; on the {} others, regret against the best plan measured:\n"
      "//\n"
      "//   {:<16}{:>8}{:>14}{:>12}\n",
      io::comment_text(model.variant), io::comment_text(model.device), model.num_sms,
      model.gpu ? "multiprocessors" : "cores", io::comment_text(evidence.tool),
      evidence.fit_shapes + evidence.test_shapes, io::comment_text(evidence.run.started),
      io::comment_text(evidence.run.tool.version), io::comment_text(evidence.run.tool.commit),
      to_string(evidence.run.cache), to_string(evidence.run.timer), evidence.fit_shapes, evidence.test_shapes,
      "rule", "shapes", "geom. mean", "worst");
  for (const tune::RuleSummary& rule : evidence.test) {
    if (rule.shapes == 0) continue;
    out += fmt::format("//   {:<16}{:>8}{:>14}{:>12}\n", rule.rule, rule.shapes, regret_text(rule.geomean),
                       regret_text(rule.worst));
  }
  return out +
         "//\n"
         "// (\"own\" is the kernel's own choice, \"fitted\" this rule.) It holds for that kernel and "
         "device, and for\n"
         "// shapes within what it has seen: outside, splits() is 0 and another rule must be asked.\n";
}

std::string constants_text(const tune::CostModel& model) {
  std::string out = fmt::format(
      "inline constexpr std::int64_t kProcessors = {};\n"
      "inline constexpr double kClusterSlots = {};\n"
      "inline constexpr std::int64_t kGrain = {};       // tokens\n"
      "inline constexpr std::int64_t kChunkGrain = {};  // tokens\n"
      "inline constexpr std::int64_t kMostPerProcessor = {};\n"
      "inline constexpr int kDoublings = {};\n"
      "// Nanoseconds.\n",
      model.num_sms, literal(model.cluster_slots), model.grain, model.chunk_grain, model.gpu ? 4 : 16,
      model.doublings);
  for (std::size_t i = 0; i < tune::kCostTerms; ++i)
    out +=
        fmt::format("inline constexpr double {} = {};\n", tune::kCostTermNames[i], literal(model.terms[i]));
  const auto holds = [](const char* value, const tune::Span& span) {
    return fmt::format("{} >= {} && {} <= {}", value, span.least, value, span.most);
  };
  return out + fmt::format(
                   "\n// Whether the fit has seen the like.\n"
                   "inline bool inside(const Shape& s) {{\n"
                   "  if (s.kv_heads < 1 || s.heads < 1 || s.heads % s.kv_heads != 0) return false;\n"
                   "  const std::int64_t group = s.heads / s.kv_heads;\n"
                   "  return {} && {} &&\n         {} && {};\n"
                   "}}\n\n"
                   "// CTAs that one split has.\n"
                   "inline std::int64_t ctas_per_split([[maybe_unused]] const Shape& s) {{\n"
                   "  return {};\n"
                   "}}\n",
                   holds("s.seq", model.seq), holds("s.kv_heads", model.kv_heads),
                   holds("group", model.group), holds("s.dim", model.dim),
                   model.ctas_per_split == tune::CtasPerSplit::one
                       ? "1"
                       : "s." + std::string(to_string(model.ctas_per_split)));
}

constexpr const char* kBody = R"cpp(
  inline std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
    return a / b + (a % b != 0 ? 1 : 0);
  }

  // Time of `splits` >= 1 equal splits. The larger of what the processors and what the memory takes (the more
  // doublings, the sharper), and what launching and merging cost. 16-bit K and V.
  inline double predicted_ns(const Shape& s, std::int64_t splits) {
    const std::int64_t ctas = ctas_per_split(s);
    const bool cluster = splits > 1 && splits <= 16 && (splits & (splits - 1)) == 0;
    std::int64_t slots =
        cluster ? static_cast<std::int64_t>(kClusterSlots * static_cast<double>(kProcessors)) : kProcessors;
    if (slots < 1) slots = 1;
    const double tokens = static_cast<double>(ceil_div(ceil_div(s.seq, splits), kGrain) * kGrain);
    const double heads = static_cast<double>(s.heads), kv_heads = static_cast<double>(s.kv_heads);
    const double ctas_d = static_cast<double>(ctas), splits_d = static_cast<double>(splits);
    const double rows = heads / (heads < ctas_d ? heads : ctas_d);
    const double waves = static_cast<double>(ceil_div(splits * ctas, slots));
    const double cta_bytes =
        tokens * 2.0 * static_cast<double>(s.dim * 2) * kv_heads / (kv_heads < ctas_d ? kv_heads : ctas_d);
    double core = waves * (per_wave + per_byte * cta_bytes + per_row_token * (tokens * rows));
    if (cluster && core < per_cluster_byte * (cta_bytes * splits_d))
      core = per_cluster_byte * (cta_bytes * splits_d);
    const double memory = per_memory_byte * (2.0 * static_cast<double>(s.seq * s.kv_heads * s.dim * 2));
    const double large = core > memory ? core : memory, small = core > memory ? memory : core;
    double load = large;
    if (kDoublings < 4 && large > 0.0) {
      double ratio = small / large;
      for (int i = 0; i < kDoublings; ++i) ratio *= ratio;
      double root = 1.0 + ratio;
      for (int i = 0; i < kDoublings; ++i) root = std::sqrt(root);
      load = large * root;
    }
    const double ns = fixed + load;
    if (splits <= 1) return ns;
    if (cluster) return ns + cluster_fixed + cluster_per_split * splits_d;
    return ns + merge_fixed + merge_per_split * splits_d + merge_per_row * splits_d * rows;
  }

  // Chunks a head; 0 outside what was fitted.
  inline std::int64_t splits(const Shape& s) {
    if (!inside(s)) return 0;
    const std::int64_t ctas = ctas_per_split(s);
    std::int64_t most = kProcessors * kMostPerProcessor / ctas;
    if (most > ceil_div(s.seq, 32)) most = ceil_div(s.seq, 32);
    if (most < 1) most = 1;
    std::int64_t best = 1;
    double best_ns = predicted_ns(s, 1);
    // 2, 3, 4, 6, 8, 12, ... and what fills the device once, twice and four times, ascending.
    std::int64_t power = 2, half = 3;
    std::int64_t fills[3] = {kProcessors / ctas, 2 * kProcessors / ctas, 4 * kProcessors / ctas};
    int filled = 0;
    while (true) {
      while (filled < 3 && fills[filled] < 2) ++filled;
      const std::int64_t regular = power < half ? power : half;
      const std::int64_t next = filled < 3 && fills[filled] < regular ? fills[filled] : regular;
      if (next > most) break;
      const double ns = predicted_ns(s, next);
      if (ns < best_ns * (1.0 - 1e-9)) {
        best = next;
        best_ns = ns;
      }
      if (next == power) power *= 2;
      if (next == half) half *= 2;
      while (filled < 3 && fills[filled] <= next) ++filled;
    }
    return best;
  }

  // Tokens a chunk; 0 outside what was fitted.
  inline std::int64_t chunk(const Shape& s) {
    const std::int64_t n = splits(s);
    return n == 0 ? 0 : ceil_div(ceil_div(s.seq, n), kChunkGrain) * kChunkGrain;
  }
)cpp";

std::string self_test_text(const tune::CostModel& model, const std::vector<Problem>& shapes) {
  std::vector<Problem> asked = shapes;
  for (const Problem& problem : shapes) {
    // Neighbours that were not measured, too.
    Problem near = problem;
    near.seq = problem.seq * 3 / 4 + 1;
    if (std::find(asked.begin(), asked.end(), near) == asked.end()) asked.push_back(near);
  }
  Problem beyond = shapes.front();
  beyond.seq = model.seq.most + 1;
  asked.push_back(beyond);
  std::string out =
      "\n// The shapes measured, their neighbours and one outside: on how many of them this header does not "
      "answer as\n"
      "// fdbench did. 0 is right.\n"
      "inline int self_test() {\n"
      "  struct Case {\n"
      "    Shape shape;\n"
      "    std::int64_t splits;\n"
      "    double ns;  // predicted; 0 outside\n"
      "  };\n"
      "  static constexpr Case kCases[] = {\n";
  for (const Problem& p : asked) {
    const std::int64_t splits = tune::fitted_splits(model, p);
    out += fmt::format("      {{{{{}, {}, {}, {}}}, {}, {}}},\n", p.seq, p.heads, p.kv_heads, p.dim, splits,
                       literal(splits == 0 ? 0.0 : tune::predicted_ns(model, p, splits)));
  }
  return out +
         "  };\n"
         "  int wrong = 0;\n"
         "  for (const Case& c : kCases) {\n"
         "    const std::int64_t n = splits(c.shape);\n"
         "    const double ns = n == 0 ? 0.0 : predicted_ns(c.shape, n);\n"
         "    const double off = ns < c.ns ? c.ns - ns : ns - c.ns;\n"
         "    if (n != c.splits || off > 1e-9 * c.ns) ++wrong;\n"
         "  }\n"
         "  return wrong;\n"
         "}\n";
}

}  // namespace

std::string rule_header(const tune::CostModel& model, const HeaderEvidence& evidence) {
  return evidence_text(model, evidence) +
         "#ifndef FDBENCH_SPLIT_RULE_H\n"
         "#define FDBENCH_SPLIT_RULE_H\n\n"
         "#include <cmath>\n"
         "#include <cstdint>\n\n"
         "namespace fdbench_rule {\n\n"
         "struct Shape {\n"
         "  std::int64_t seq;       // KV tokens\n"
         "  std::int64_t heads;     // query heads\n"
         "  std::int64_t kv_heads;  // divides heads\n"
         "  std::int64_t dim;       // of a head\n"
         "};\n\n" +
         constants_text(model) + kBody + self_test_text(model, evidence.shapes) +
         "\n}  // namespace fdbench_rule\n\n"
         "#ifdef FDBENCH_RULE_SELF_TEST\n"
         "int main() {\n"
         "  return fdbench_rule::self_test() == 0 ? 0 : 1;\n"
         "}\n"
         "#endif\n\n"
         "#endif\n";
}

}  // namespace fdbench::cli
