// Tuning profiles on disk (schema fdbench.profile/1.0, docs/tuning.md).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/tuning_profile.h"

namespace fdbench::io {

// Throws Error (usage), one line: "name:line:column: ..." for what is no JSON, else the path of the field.
TuningProfile parse_profile(std::string_view text, const std::string& name);
std::string to_json(const TuningProfile& profile);

// Nothing where the file does not exist. Throws Error (usage) for one that can't be read or is broken.
std::optional<TuningProfile> read_profile(const std::string& path);

// One line an entry, RFC 4180 like result files; the header has the columns.
std::string profile_csv(const TuningProfile& profile);

// A C++17 header without dependencies: the table and a lookup of it by shape, sequence length and machine,
// that fits splits and chunk to the length. The profile has an entry: C++ has no array of none.
std::string profile_header(const TuningProfile& profile);

}  // namespace fdbench::io
