#include "cli/app.h"

int main(int argc, char** argv) {
  return static_cast<int>(fdbench::cli::run_app(argc, argv));
}
