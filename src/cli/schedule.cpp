// `fdbench schedule`: tiles, blocks, splits and tile schedulers of a forward call on a GPU that need not be
// here.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "cli/commands.h"
#include "cli/extents.h"
#include "cli/numbers.h"
#include "cli/say.h"
#include "cli/shape_options.h"
#include "io/gpu_description.h"
#include "rules/int_math.h"
#include "rules/schedule_model.h"

namespace fdbench::cli {

namespace {

constexpr std::int64_t kMostTokens = std::int64_t{1} << 32;
constexpr std::int64_t kMostHeads = 1 << 16;
constexpr int kBarWidth = 20;
constexpr int kBarColumns = 4;

struct ScheduleFlags {
  std::string batch = "1", heads = "32", kv_heads, seq_q = "1", seq, lens, dim = "128", window, gpu, splits,
              scheduler;
  bool causal = false, no_bars = false;
};

// "1024,0": keys to the left and right of a query; -1 for no bound.
std::pair<std::int64_t, std::int64_t> parse_window(const std::string& text) {
  const std::size_t comma = text.find(',');
  if (comma == std::string::npos)
    throw usage_error("--window " + text +
                      ": must be LEFT,RIGHT, keys to either side: 1024,0 say, -1 for no bound");
  return {parse_whole("--window", text.substr(0, comma), -1, kMostTokens),
          parse_whole("--window", text.substr(comma + 1), -1, kMostTokens)};
}

rules::ScheduleCall call_of(const ScheduleFlags& flags, const DeviceInfo& device) {
  rules::ScheduleCall call;
  call.batch = parse_whole("--batch", flags.batch, 1, 1 << 20);
  call.heads = parse_whole("--heads", flags.heads, 1, kMostHeads);
  call.kv_heads =
      flags.kv_heads.empty() ? call.heads : parse_whole("--kv-heads", flags.kv_heads, 1, kMostHeads);
  if (call.heads % call.kv_heads != 0)
    throw usage_error(fmt::format("--heads {} --kv-heads {}: the KV heads must divide the query heads",
                                  call.heads, call.kv_heads));
  call.seq_q = parse_whole("--seq-q", flags.seq_q, 1, kMostTokens);
  call.dim = parse_whole("--dim", flags.dim, 8, 256);
  if (call.dim % 8 != 0)
    throw usage_error("--dim " + flags.dim + ": FlashAttention-3 takes multiples of 8 only");
  call.causal = flags.causal;
  if (!flags.window.empty()) {
    if (flags.causal)
      throw usage_error("--window " + flags.window +
                        ": with --causal, give the window alone: LEFT,0 is causal");
    std::tie(call.window_left, call.window_right) = parse_window(flags.window);
  }
  if (!flags.splits.empty()) call.splits = parse_whole("--splits", flags.splits, 1, 256);
  if (flags.seq.empty() == flags.lens.empty())
    throw usage_error(flags.seq.empty()
                          ? "--seq is missing: how many keys? (--seq 65536, or --lens 100,8192,30000)"
                          : std::string("--lens: the lengths are given; leave out --seq"));
  if (flags.lens.empty()) {
    call.seq_k = parse_whole("--seq", flags.seq, 1, kMostTokens);
  } else {
    if (call.batch != 1)
      throw usage_error("--batch " + flags.batch +
                        ": --lens says how many sequences there are; leave it out");
    call.lengths = parse_extents("--lens", flags.lens);
  }
  call.num_sms = device.sms;
  call.cc = device.cc;
  return call;
}

std::string shape_text(const rules::ScheduleCall& call) {
  std::string keys;
  if (call.lengths.empty()) {
    keys = fmt::format("batch {}, {} keys", call.batch, call.seq_k);
  } else {
    keys = fmt::format("{} sequences of {} to {} keys", call.lengths.size(),
                       *std::min_element(call.lengths.begin(), call.lengths.end()),
                       *std::max_element(call.lengths.begin(), call.lengths.end()));
  }
  std::string mask = "no mask";
  if (call.causal) mask = "causal";
  if (call.window_left >= 0 || call.window_right >= 0)
    mask = fmt::format("window {},{}", call.window_left, call.window_right);
  return fmt::format("{}, {} quer{} each, heads {}/{}, dim {}, {}", keys, call.seq_q,
                     call.seq_q == 1 ? "y" : "ies", call.heads, call.kv_heads, call.dim, mask);
}

std::string tile_text(const rules::ScheduleCall& call, const rules::ScheduleModel& model) {
  const std::int64_t dim = rules::fa3_rounded_dim(call.dim).value_or(call.dim);
  const bool causal = model.plan.causal, local = model.plan.local;
  std::string why = fmt::format("kernels for head dimension {}, {}", dim,
                                causal ? "causal" : (local ? "windowed" : "without a mask"));
  if (call.causal && !causal && !local) why += " (a single query sees every key)";
  if (call.cc >= 90) {
    const rules::Fa3Sm90Tile tile =
        rules::fa3_sm90_tile({.dim = dim, .dim_v = dim, .causal = causal, .local = local});
    why += fmt::format(
        ", P from {}, softmax {}", tile.p_from_registers ? "registers" : "shared memory",
        tile.overlap_in_warpgroup ? "beside the next block's products" : "after each block's products");
    if (call.cc != 90)
      why += "; FlashAttention-3 has no kernels for this capability, and these are sm_90's tiles";
  } else {
    const rules::Fa3Sm8xTile tile = rules::fa3_sm8x_tile({.sm86_or_89 = call.cc == 86 || call.cc == 89,
                                                          .dim = dim,
                                                          .dim_v = dim,
                                                          .causal = causal,
                                                          .local = local,
                                                          .varlen_and_split = !call.lengths.empty()});
    why += fmt::format(", {} warps, {} stage{}", tile.warps, tile.stages, tile.stages == 1 ? "" : "s");
    if (call.cc == 86 || call.cc == 89) why += ", 100 KB of shared memory";
  }
  return fmt::format("{} queries x {} keys: {}", model.plan.block_m, model.plan.block_n, why);
}

std::string packing_text(const rules::ScheduleCall& call, const rules::ScheduleModel& model) {
  const std::int64_t group = call.heads / call.kv_heads;
  if (group == 1) return "nothing to pack: every query head has its own KV head";
  const char* why = "the tiles' rows are filled enough better";
  if (call.cc < 90) {
    why = "below sm_90 only such kernels are built";
  } else if (model.splits > 1) {
    why = "split kernels are only built so";
  } else if (!model.packed) {
    why = "the tiles' rows would not be filled much better";
  }
  return fmt::format("{} query heads of a KV head {}: {}", group,
                     model.packed ? "share a tile" : "have their own tiles", why);
}

std::string splits_text(const rules::ScheduleCall& call, const rules::ScheduleModel& model) {
  const std::int64_t sequences = call.lengths.empty() ? call.batch : 1;
  // As the rule counts them, always packed.
  const std::int64_t unsplit = sequences * call.kv_heads *
                               rules::ceil_div(call.seq_q * (call.heads / call.kv_heads), model.plan.block_m);
  std::string text = fmt::format("{}{}", call.lengths.empty() ? "" : "at most ", model.splits);
  if (call.splits) return text + ", as asked for";
  return text +
         fmt::format(", FlashAttention-3's rule: {} tile{} unsplit on {} multiprocessors, {} KV blocks",
                     unsplit, unsplit == 1 ? "" : "s", call.num_sms, model.plan.n_blocks);
}

std::string bars(const rules::ScheduleRun& run, std::int64_t num_sms) {
  std::vector<std::vector<double>> busy(static_cast<std::size_t>(num_sms),
                                        std::vector<double>(kBarWidth, 0.0));
  const double cell = run.makespan / kBarWidth;
  for (const rules::TileRun& one : run.runs) {
    if (one.end <= one.start) continue;
    auto& row = busy[static_cast<std::size_t>(one.worker)];
    const int first = std::clamp(static_cast<int>(one.start / cell), 0, kBarWidth - 1);
    const int last = std::clamp(static_cast<int>(one.end / cell), 0, kBarWidth - 1);
    for (int c = first; c <= last; ++c) {
      const double overlap = std::min(one.end, (c + 1) * cell) - std::max(one.start, c * cell);
      row[static_cast<std::size_t>(c)] += std::max(0.0, overlap) / cell;
    }
  }
  // Down the columns, so that neighbours stand below each other.
  const std::int64_t lines = rules::ceil_div(num_sms, kBarColumns);
  std::string out;
  for (std::int64_t line = 0; line < lines; ++line) {
    std::string text;
    for (std::int64_t sm = line; sm < num_sms; sm += lines) {
      text += fmt::format("{}{:>4} ", sm == line ? "" : " ", sm);
      for (const double share : busy[static_cast<std::size_t>(sm)])
        text += share > 0.75 ? '#' : share > 0.25 ? '+' : '.';
    }
    out += text + "\n";
  }
  return out;
}

std::string scheduler_table(const rules::ScheduleCall& call, const rules::ScheduleModel& model) {
  const double sms = static_cast<double>(call.num_sms);
  const double bound = std::max(std::ceil(model.work / sms), model.longest_tile);
  std::string out = fmt::format(
      "scheduler               makespan  utilisation  tail   (KV blocks; at least {:.0f})\n", bound);
  for (const rules::ScheduleRun& run : model.schedulers) {
    out += fmt::format("  {:<20} {:>9.0f} {:>10.1f} % {:>4.0f} %{}\n", to_string(run.scheduler), run.makespan,
                       run.utilisation * 100.0, run.tail * 100.0,
                       run.scheduler == model.chosen ? "   <- what it launches" : "");
  }
  return out;
}

std::string entries_text(const rules::ScheduleCall& call, const rules::ScheduleModel& model) {
  std::string out = "sequence       keys  KV blocks  splits\n";
  for (const rules::VarlenEntry& entry : model.entries) {
    out += fmt::format("  {:>6} {:>10} {:>10} {:>7}\n", entry.batch,
                       call.lengths[static_cast<std::size_t>(entry.batch)], entry.n_blocks, entry.splits);
  }
  return out;
}

const rules::ScheduleRun& run_to_draw(const ScheduleFlags& flags, const rules::ScheduleModel& model) {
  std::string names;
  for (const rules::ScheduleRun& run : model.schedulers) {
    if (flags.scheduler.empty() ? run.scheduler == model.chosen : flags.scheduler == to_string(run.scheduler))
      return run;
    names += (names.empty() ? "" : ", ") + std::string(to_string(run.scheduler));
  }
  throw usage_error("--scheduler " + flags.scheduler + ": not one for this call; there are " + names);
}

Exit schedule(const ScheduleFlags& flags) {
  const auto directories = config_directories("gpus");
  if (flags.gpu.empty()) {
    std::string names;
    for (const std::string& name : io::gpu_names(directories)) names += (names.empty() ? "" : ", ") + name;
    throw usage_error("--gpu is missing: on which GPU? " + names + "; or a FILE.json");
  }
  const io::GpuDescription gpu = io::find_gpu(flags.gpu, directories);
  const rules::ScheduleCall call = call_of(flags, gpu.device);
  const rules::ScheduleModel model = rules::schedule_model(call);
  if (!model.ok())
    throw usage_error(fmt::format("--seq-q {}, --batch {}, --gpu {}: no schedule for this call: {}",
                                  flags.seq_q, flags.batch, flags.gpu, model.error));
  const rules::ScheduleRun& drawn = run_to_draw(flags, model);

  const DeviceInfo& d = gpu.device;
  std::string out =
      fmt::format("{} (sm_{}, {} multiprocessors, {:.0f} MB L2), as FlashAttention-3 would launch it\n{}\n\n",
                  d.name, d.cc, d.sms, static_cast<double>(d.l2_bytes) / (1 << 20), shape_text(call));
  out += "tile      " + tile_text(call, model) + "\n";
  out += "packing   " + packing_text(call, model) + "\n";
  out += fmt::format("KV blocks {} of {} a head are computed ({:.1f} %), {} skipped\n", model.blocks_visited,
                     model.blocks_all,
                     model.blocks_all > 0 ? 100.0 * static_cast<double>(model.blocks_visited) /
                                                static_cast<double>(model.blocks_all)
                                          : 0.0,
                     model.blocks_all - model.blocks_visited);
  out += "splits    " + splits_text(call, model) + "\n";
  out += fmt::format(
      "tiles     {}: {} query block{} x {} head{}{}, {:.2f} waves\n", model.tiles, model.m_blocks,
      model.m_blocks == 1 ? "" : "s", model.scheduled_heads, model.scheduled_heads == 1 ? "" : "s",
      call.lengths.empty()
          ? fmt::format(" x {} split{} x batch {}", model.splits, model.splits == 1 ? "" : "s", call.batch)
          : " x splits of each sequence",
      static_cast<double>(model.tiles) / static_cast<double>(call.num_sms));
  if (!model.entries.empty()) out += "\n" + entries_text(call, model);
  out += "\n" + scheduler_table(call, model);
  if (!flags.no_bars) {
    out += fmt::format("\n{}, a bar a multiprocessor, 0 to {:.0f} KV blocks (# busy, + partly, . idle)\n",
                       to_string(drawn.scheduler), drawn.makespan);
    out += bars(drawn, call.num_sms);
  }
  say(stdout, out);
  return Exit::good;
}

}  // namespace

Command add_schedule(CLI::App& parent) {
  CLI::App* app = parent.add_subcommand(
      "schedule", "models tiles, splits and tile schedulers of a call on a GPU that need not be here");
  auto flags = std::make_shared<ScheduleFlags>();
  const char* group = "Call";
  app->add_option("--batch", flags->batch, "sequences (1)")->group(group);
  app->add_option("--heads", flags->heads, "query heads (32)")->group(group);
  app->add_option("--kv-heads", flags->kv_heads, "KV heads; divides the query heads (as many as --heads)")
      ->group(group);
  app->add_option("--seq-q", flags->seq_q, "queries a sequence (1)")->group(group);
  app->add_option("--seq", flags->seq, "keys a sequence")->group(group);
  app->add_option("--lens", flags->lens, "keys of each sequence where they differ: 100,8192,30000")
      ->group(group);
  app->add_option("--dim", flags->dim, "head dimension, at most 256 (128)")->group(group);
  app->add_flag("--causal", flags->causal, "a query sees the keys up to its own")->group(group);
  app->add_option("--window", flags->window,
                  "LEFT,RIGHT: keys to either side that a query sees, -1 for no bound")
      ->group(group);
  app->add_option("--splits", flags->splits, "so many splits instead of the rule's")->group(group);
  app->add_option("--gpu", flags->gpu, "h200, rtx5090, ... (configs/gpus), or a file")->group("Device");
  app->add_option("--scheduler", flags->scheduler, "whose bars are drawn (that which would be launched)")
      ->group("Output");
  app->add_flag("--no-bars", flags->no_bars, "no bars")->group("Output");
  app->footer(
      "Examples:\n"
      "  fdbench schedule --batch 1 --heads 32 --kv-heads 8 --seq-q 1 --seq 65536 --gpu h200\n"
      "  fdbench schedule --heads 16 --seq-q 4096 --seq 4096 --causal --gpu h100\n"
      "  fdbench schedule --heads 32 --kv-heads 8 --lens 100,8192,30000 --gpu rtx5090\n"
      "A tile's cost is its KV blocks, nothing else; every multiprocessor runs one CTA at a time.");
  return {app, [flags] { return schedule(*flags); }};
}

}  // namespace fdbench::cli
