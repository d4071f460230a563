// The messages between runner and worker (core/work_message.h) as lines of JSON. Private to one build: both
// ends are the same binary, so there is no version. Numbers that are not finite travel as the strings "inf",
// "-inf" and "nan".
#pragma once

#include <string>
#include <string_view>

#include "core/work_message.h"

namespace fdbench::io {

// One line, without its line feed.
std::string encode(const WorkRequest& request);
std::string encode(const WorkEvent& event);

// Throw Error (failed) where the line is not such a message.
WorkRequest decode_request(std::string_view line);
WorkEvent decode_event(std::string_view line);

std::string encode(const RoundsAsked& asked);
RoundsAsked decode_rounds_asked(std::string_view line);

}  // namespace fdbench::io
