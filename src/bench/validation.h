// Is a variant's output right? Against a float64 oracle, on poisoned memory.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "bench/buffers.h"
#include "core/measurement.h"
#include "core/variant.h"

namespace fdbench::bench {

// What is true for one problem on the standard inputs.
struct Truth {
  std::vector<double> o;    // [heads, dim]
  std::vector<double> lse;  // [heads], natural log
  std::string oracle;       // the variant that said so
};

// Runs `oracle` on the inputs. Throws Error where it can't.
Truth compute_truth(Backend& backend, const Variant& oracle, const Problem& problem, const Inputs& inputs);

// Bytes compute_truth takes beside the inputs; nothing where the oracle can't run.
std::optional<std::int64_t> truth_footprint(const Variant& oracle, const Problem& problem,
                                            const DeviceInfo& device);

// ||o - truth|| / ||truth|| and the largest difference, and the same of lse where `lse` is not empty. o is
// [heads, dim] in `dtype`. Any NaN makes the errors infinite. An all-zero truth is compared absolutely.
Accuracy compare(const std::vector<std::uint16_t>& o, const std::vector<float>& lse, const Truth& truth,
                 Dtype dtype);

// One variant with memory of its own on a problem's inputs: output, and workspace of exactly the planned
// size.
class Subject {
 public:
  Subject(Backend& backend, const Variant& variant, const Problem& problem, const Inputs& inputs,
          LaunchPlan plan);

  const Variant& variant() const { return *variant_; }
  const LaunchPlan& plan() const { return plan_; }
  double prepare_ns() const { return prepare_ns_; }

  // What is timed: no lse asked for.
  Prepared& prepared() { return *prepared_; }
  // The same operation on another copy of the inputs, with this subject's output and workspace.
  std::unique_ptr<Prepared> prepare_on(const Inputs& inputs) const;

  struct Check {
    std::optional<Accuracy> accuracy;  // none for a roof
    std::string wrong;                 // a sentence; empty when all holds
  };
  // Poisons output and scratch, launches once and compares; `with_lse` asks for lse too. The roof only runs.
  Check check(const Truth& truth, bool with_lse);

  static std::int64_t footprint(const Variant& variant, const Problem& problem, const LaunchPlan& plan);

 private:
  DecodeArgs args_on(const Inputs& inputs, bool with_lse) const;

  Backend* backend_;
  const Variant* variant_;
  Problem problem_;
  const Inputs* inputs_;
  LaunchPlan plan_;
  GuardedBuffer o_, lse_, scratch_, zeroed_;
  std::unique_ptr<Prepared> prepared_;
  double prepare_ns_ = 0.0;
};

}  // namespace fdbench::bench
