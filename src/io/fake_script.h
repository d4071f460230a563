// The script of the fake backend (core/fake_script.h), a JSON file, schema fdbench.fake/1.x:
//
//   {"schema": "fdbench.fake/1.0",
//    "device": {"name": "Tiny", "sms": 26, "smem_per_block": 49152},   any field of a result's device
//    "timer_step_ns": 1,
//    "sample_s": 0.01,                what one sample advances the clock of --max-time by
//    "clock_mhz": [1980, 1980, 900],  one a sample, cycled
//    "variants": {"fake_candidate": {
//        "ns": [100, 101],            or one number; one a sample, cycled
//        "chunk_ns": {"256": 90},     of launches with this chunk, in place of ns
//        "bad_chunk": 0,              the behaviour is of launches with this chunk only; 0: of all
//        "error": 0.0,                relative error put on the output
//        "behaviour": "ok",           unsupported, throw, lost_device, crash, hang, nan, writes_guard,
//                                     dirty_zeroed
//        "at": "launch",              or prepare
//        "after": 0,                  launches that go well first
//        "void_every": 0,             every so-manieth sample is void; 0: none
//        "reason": "text"}}}
//
// Everything but the schema may be left out: variants are then as core/fake_script.h has them, and the device
// has 16 multiprocessors, 32 MiB of cache, 16 GiB of memory and the limits of compute capability 9.0.
#pragma once

#include <string>
#include <string_view>

#include "core/fake_script.h"

namespace fdbench::io {

// Throws Error (usage), one line with line and column or the path. Unknown keys are errors.
FakeScript parse_fake_script(std::string_view text, const std::string& name);
FakeScript read_fake_script(const std::string& path);

}  // namespace fdbench::io
