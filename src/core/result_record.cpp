#include "core/result_record.h"

namespace fdbench {

TuningPoint asked_tuning(const TuningPoint& tuning, std::string_view source) {
  return source.rfind("profile:", 0) == 0 ? TuningPoint{} : tuning;
}

std::string result_id(std::string_view variant, const Problem& problem, const TuningPoint& tuning,
                      CacheMode cache, TimerMode timer) {
  std::string id(variant);
  id += '/';
  id += shape_id(problem);
  id += '/';
  id += tuning.id();
  id += '/';
  id += to_string(cache);
  id += '/';
  id += to_string(timer);
  return id;
}

std::string commit_text(const ToolInfo& tool) {
  return tool.commit + (tool.dirty ? "+changes" : "");
}

}  // namespace fdbench
