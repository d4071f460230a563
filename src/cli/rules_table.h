// What `fdbench rules` prints: a block a shape, and the rules' summary.
#pragma once

#include <span>
#include <string>

#include "tune/regret.h"

namespace fdbench::cli {

// The shape's best plan, then a line a rule: plan, median us, regret with its interval, and whether it ties
// with the best: its interval reaches down to no regret.
std::string regret_block(const tune::ShapeScore& shape, bool color);

// A line a rule under `title`: geometric mean and worst regret, over how many of `shapes`, ties on how many.
std::string regret_summary(const std::string& title, std::span<const tune::RuleSummary> rules,
                           std::size_t shapes, bool color);

// Both as Markdown: the summary, then a table with a line a shape and a column a rule.
std::string regret_markdown(std::span<const tune::ShapeScore> shapes,
                            std::span<const tune::RuleSummary> rules);

// "+4.2 %" of a ratio of 1.042.
std::string regret_text(double ratio);

// "8192 x 32/8 x 128 bf16": tokens, query and KV heads, head dimension.
std::string short_shape(const Problem& problem);

}  // namespace fdbench::cli
