#!/usr/bin/env bash
# Formats every C++ and CUDA file with .clang-format; with --check changes nothing and fails where one is not so.
# clang-format 14 is the measure: other versions lay some lines out differently. CLANG_FORMAT names another program.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/lib/packages.sh

case ${1:-} in
  --check) how=(--dry-run -Werror) ;;
  '') how=(-i) ;;
  *)
    sed -n '2,3s/^# //p' scripts/format.sh
    exit 2
    ;;
esac

program=${CLANG_FORMAT:-$(command -v clang-format-14 || command -v clang-format || true)}
[ -n "$program" ] || die "clang-format was not found; install clang-format-14 (or: python3 -m pip install clang-format==14.0.6)"
case $("$program" --version) in
  *'version 14.'*) ;;
  *) say "$("$program" --version): version 14 is the measure, this one may differ" ;;
esac

# Untracked files too, ignored ones not; without git every one that is there.
list_sources() {
  git ls-files -z --cached --others --exclude-standard -- src kernels tests 2>/dev/null || find src kernels tests -type f -print0
}
list_sources | grep -zE '\.(h|hpp|cpp|cuh|cu)$' | while IFS= read -r -d '' file; do
  # Listed by git but deleted in the tree.
  if [ -f "$file" ]; then printf '%s\0' "$file"; fi
done | xargs -0 -r -n 16 -P "$(nproc)" "$program" --style=file "${how[@]}"
