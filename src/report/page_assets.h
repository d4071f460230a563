// The style sheet and the script of the HTML report, as they stand in the page.
#pragma once

#include <string_view>

namespace fdbench::report {

extern const std::string_view kPageStyle;
extern const std::string_view kPageScript;
// Of the script, base64: the page's policy lets this script run and no other. tests/cli/report_test.py says
// what it has to be after a change.
extern const std::string_view kPageScriptSha256;

}  // namespace fdbench::report
