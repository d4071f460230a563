// Measures one shape in this process: validate, warm up, rounds, check again. Runs in the worker; what it
// finds leaves as events, so that nothing is lost when the process dies.
#pragma once

#include <atomic>
#include <functional>
#include <optional>

#include "backend/backend.h"
#include "core/variant.h"
#include "core/work_message.h"

namespace fdbench::bench {

using EventSink = std::function<void(const WorkEvent&)>;

// Measures request.items on request.problem. An item that fails ends with an ItemEnded and the others go on;
// a device fault that leaves the backend unusable is thrown after the culprit's ItemEnded. `interrupted` is
// looked at between samples.
void run_session(Backend& backend, VariantTable table, const WorkRequest& request, const EventSink& emit,
                 const std::atomic<bool>& interrupted);

// The same on a steered request: measures what `next` asks for until it gives nothing. Items are checked when
// they are first asked for, and once more at the end. Events timer only: throws Error (usage) for another.
using NextRounds = std::function<std::optional<RoundsAsked>()>;
void run_steered_session(Backend& backend, VariantTable table, const WorkRequest& request,
                         const NextRounds& next, const EventSink& emit, const std::atomic<bool>& interrupted);

// Bytes: a thousandth of what overflows, a thousand times what any machine has.
inline constexpr double kBeyondMemory = 0x1p54;

// What measuring `problem` takes of the device's memory: inputs (and their rotation), flush buffer, and for
// each item its output and workspace; or validation with its oracle, if that is more. Items that can't run
// count nothing; where K and V alone are past kBeyondMemory, they are all that is counted. Throws Error
// (usage) where the settings want a graph timer and the backend has none.
std::int64_t memory_needed(const Backend& backend, VariantTable table, const Problem& problem,
                           const std::vector<WorkItem>& items, const MeasureSettings& settings);

}  // namespace fdbench::bench
