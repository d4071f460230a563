// GPUs that need not be here: files of schema fdbench.gpu/1.x (configs/gpus/*.json), every figure with its
// source:
//
//   {"schema": "fdbench.gpu/1.0",
//    "name": "NVIDIA H200 SXM 141GB",
//    "sms": {"value": 132, "source": "..."},
//    ...}
//
// Figures: cc (compute capability x10), sms, l2_bytes, memory_bytes, bandwidth (bytes/s), smem_per_sm,
// smem_per_block (opt-in maximum), regs_per_sm, threads_per_sm, ctas_per_sm. All must be there.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/device_info.h"

namespace fdbench::io {

struct GpuDescription {
  DeviceInfo device;  // kind cuda
  std::vector<std::pair<std::string, std::string>>
      sources;  // figure and where it is from, in the order above
};

// Throw Error (usage), one line, as Cursor does; an unknown key, too.
GpuDescription parse_gpu(std::string_view text, const std::string& name);
GpuDescription read_gpu(const std::string& path);

// A file where `name_or_path` has a slash or ends in ".json", else NAME.json in the first of `directories`
// that has it. Throws Error (usage), beginning with `--gpu`, that lists the GPUs there are.
GpuDescription find_gpu(const std::string& name_or_path, const std::vector<std::string>& directories);

// Names that find_gpu takes, sorted.
std::vector<std::string> gpu_names(const std::vector<std::string>& directories);

}  // namespace fdbench::io
