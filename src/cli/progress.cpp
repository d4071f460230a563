#include "cli/progress.h"

#include <fmt/core.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "cli/say.h"

namespace fdbench::cli {

namespace {
using Clock = std::chrono::steady_clock;
constexpr auto kInterval = std::chrono::milliseconds(100);
double seconds(Clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}
}  // namespace

Progress::Progress(const std::vector<bench::ShapeWork>& shapes, const bench::RunSettings& settings,
                   bool enabled)
    : shapes_(shapes), settings_(settings), enabled_(enabled), start_(Clock::now()) {}

Progress::~Progress() {
  clear();
}

void Progress::clear() {
  if (shown_) say(stderr, "\r\x1b[K");
  shown_ = false;
}

void Progress::show(const std::string& text) {
  std::fflush(stdout);
  // A line that wraps could not be taken away again.
  winsize window = {};
  const bool known = ioctl(STDERR_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col > 1;
  say(stderr, "\r\x1b[K" + text.substr(0, known ? window.ws_col - 1u : std::string::npos));
  std::fflush(stderr);
  shown_ = true;
}

void Progress::shape_begins(int shape, int process) {
  shape_ = shape;
  process_ = process;
  ++steps_begun_;
  best_.clear();
  best_ns_.assign(shapes_[static_cast<std::size_t>(shape)].rows.size(), 0.0);
  last_ = {};
}

std::string Progress::time_left() const {
  const auto steps = static_cast<double>(shapes_.size()) * settings_.processes;
  const double finished = steps_begun_ - 1;
  if (finished < 1.0) return {};
  const double left = seconds(Clock::now() - start_) / finished * (steps - finished);
  return fmt::format(", about {:.0f} s left", left);
}

void Progress::event(const WorkEvent& event) {
  if (!enabled_) return;
  const auto& shape = shapes_[static_cast<std::size_t>(shape_)];
  if (const auto* step = std::get_if<StepBegins>(&event)) {
    if (step->phase == Phase::sample) return;
    phase_ = to_string(step->phase);
    if (step->item >= 0)
      phase_ += fmt::format(" {}", shape.rows[static_cast<std::size_t>(step->item)].variant->name);
  } else if (const auto* round = std::get_if<RoundDone>(&event)) {
    phase_ = fmt::format("round {}", round->round + 1);
    double best = 0.0;
    for (std::size_t i = 0; i < round->items.size(); ++i) {
      const auto item = static_cast<std::size_t>(round->items[i]);
      double& own = best_ns_[item];
      own = own > 0.0 ? std::min(own, round->ns[i]) : round->ns[i];
      if (shape.rows[item].variant->role == Role::candidate && (best == 0.0 || own < best)) {
        best = own;
        best_ = fmt::format(", best so far {} {:.1f} us",
                            name_with(shape.rows[item].variant->name, shape.rows[item].tuning), own / 1e3);
      }
    }
  }
  if (Clock::now() - last_ < kInterval) return;
  last_ = Clock::now();
  std::string process;
  if (settings_.processes > 1) process = fmt::format(" process {}/{}", process_ + 1, settings_.processes);
  show(fmt::format("[{}/{}]{} seq {} heads {}/{}: {}{}{}", shape_ + 1, shapes_.size(), process,
                   shape.problem.seq, shape.problem.heads, shape.problem.kv_heads, phase_, best_,
                   time_left()));
}

}  // namespace fdbench::cli
