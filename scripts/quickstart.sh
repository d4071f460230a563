#!/usr/bin/env bash
# Installs what is missing, builds fdbench in build/ and measures one shape on this machine.
# CUDA is used where its compiler and an NVIDIA device are found, and not asked for where they are not. Arguments go to CMake:
# scripts/quickstart.sh -DFDBENCH_CUDA=ON
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/lib/packages.sh
. scripts/lib/build.sh

case ${1:-} in
  -h | --help)
    sed -n '2,4s/^# //p' scripts/quickstart.sh
    exit 0
    ;;
esac

[ "$(uname -s)" = Linux ] || die "fdbench measures on Linux; this is $(uname -s)"
need "$FDBENCH_NEEDS_BUILD"
check_versions
# Device code takes most of the build, and nothing here could run it. /dev/dxg: WSL; /dev/nvhost-gpu: Tegra.
cuda=()
if [[ ! -f build/CMakeCache.txt && "$*" != *FDBENCH_CUDA=* ]] && ! compgen -G '/dev/nvidia[0-9]*' > /dev/null &&
  [[ ! -e /dev/dxg && ! -e /dev/nvhost-gpu ]]; then
  echo "no NVIDIA device: built for the CPU alone (scripts/quickstart.sh -DFDBENCH_CUDA=ON builds the CUDA kernels too)"
  cuda=(-DFDBENCH_CUDA=OFF)
fi
configure_and_build build -DCMAKE_BUILD_TYPE=Release -DFDBENCH_TESTS=OFF "${cuda[@]}" "$@"
exec build/fdbench run --seq 8192 --heads 32 --out results/local
