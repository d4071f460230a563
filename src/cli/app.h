// The command line: parse, dispatch, and turn whatever is thrown into one line and an exit code.
#pragma once

#include "core/error.h"

namespace fdbench::cli {

Exit run_app(int argc, char** argv);

}  // namespace fdbench::cli
