#!/usr/bin/env bash
# Installs what is missing, builds fdbench in build/ and measures one shape on this machine.
# CUDA is used where its compiler is found, and not asked for where it is not. Arguments go to CMake: scripts/quickstart.sh -DFDBENCH_CUDA=OFF
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/lib/packages.sh
. scripts/lib/build.sh

case ${1:-} in
  -h | --help)
    sed -n '2,3s/^# //p' scripts/quickstart.sh
    exit 0
    ;;
esac

[ "$(uname -s)" = Linux ] || die "fdbench measures on Linux; this is $(uname -s)"
need "$FDBENCH_NEEDS_BUILD"
check_versions
configure_and_build build -DCMAKE_BUILD_TYPE=Release -DFDBENCH_TESTS=OFF "$@"
exec build/fdbench run --seq 8192 --heads 32 --out results/local
