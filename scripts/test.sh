#!/usr/bin/env bash
# Installs what is missing, builds fdbench with its tests and runs every one.
#   scripts/test.sh [CMAKE ARGUMENTS...]                 in build/
#   scripts/test.sh --preset NAME [CMAKE ARGUMENTS...]   in build-NAME/, as CMakePresets.json says (dev, asan, tsan, ci, ...)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/lib/packages.sh
. scripts/lib/build.sh

preset=
case ${1:-} in
  -h | --help)
    sed -n '2,4s/^# //p' scripts/test.sh
    exit 0
    ;;
  --preset)
    preset=${2:?--preset takes a name: cpu, cuda, dev, asan, tsan or ci}
    shift 2
    ;;
esac

[ "$(uname -s)" = Linux ] || die "fdbench measures on Linux; this is $(uname -s)"
need "$FDBENCH_NEEDS_BUILD$FDBENCH_NEEDS_TEST"
check_versions
if [ -n "$preset" ]; then
  dir=build-$preset
  cmake --preset "$preset" "$@"
  cmake --build --preset "$preset" --parallel "$(build_jobs)"
  how=(--preset "$preset")
else
  dir=build
  # quickstart.sh may have left CUDA out of this folder; its tests need no device.
  configure_and_build "$dir" -DCMAKE_BUILD_TYPE=Release -DFDBENCH_TESTS=ON -DFDBENCH_CUDA=AUTO "$@"
  how=(--test-dir "$dir")
fi
exec ctest "${how[@]}" --output-on-failure --no-tests=error -j2 --output-junit "$PWD/$dir/tests.xml"
