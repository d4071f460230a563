// Inside io only: the parts of a record that results and worker messages share, as JSON and back.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/device_info.h"
#include "core/launch_plan.h"
#include "core/measurement.h"
#include "core/problem.h"
#include "core/tuning_point.h"
#include "io/json_reader.h"

namespace fdbench::io {

nlohmann::ordered_json json_of(const Problem& problem);
nlohmann::ordered_json json_of(const TuningPoint& tuning);
nlohmann::ordered_json json_of(const LaunchPlan& plan);
nlohmann::ordered_json json_of(const DeviceInfo& device);

// Throw Error as Cursor does. The problem makes sense (invalid_reason finds nothing).
Problem read_problem(const Cursor& from);
TuningPoint read_tuning(const Cursor& from);
LaunchPlan read_plan(const Cursor& from);
DeviceInfo read_device(const Cursor& from);

CacheMode read_cache_mode(const Cursor& from);
TimerMode read_timer_mode(const Cursor& from);
Status read_status(const Cursor& from);
Dtype read_dtype(const Cursor& from);

// The value at `key`, or `otherwise` where it is absent or null.
std::string text_or(const Cursor& from, const char* key, const std::string& otherwise = {});
std::string word_or(const Cursor& from, const char* key, const std::string& otherwise = {});  // Cursor::word
bool boolean_or(const Cursor& from, const char* key, bool otherwise);
double number_or(const Cursor& from, const char* key, double otherwise);
std::optional<double> optional_number(const Cursor& from, const char* key);
std::int64_t count_or(const Cursor& from, const char* key, std::int64_t otherwise);  // at least 0
int small_count_or(const Cursor& from, const char* key, int otherwise);              // at least 0
std::vector<std::string> texts(const Cursor& from);                                  // an array of strings

}  // namespace fdbench::io
