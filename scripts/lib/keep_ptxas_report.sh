#!/usr/bin/env bash
# A compiler launcher: keeps what ptxas says of a compilation (-Xptxas -v) beside its object, OBJECT.ptxas, where
# scripts/check_resources.py finds it. The rest of what is said goes on to stderr.
set -uo pipefail
object=
for ((i = 1; i < $#; ++i)); do
  if [ "${!i}" = -o ]; then
    next=$((i + 1))
    object=${!next}
  fi
done
case $object in
  *.cu.o)
    rm -f "$object.ptxas"
    said=$("$@" 2>&1)
    status=$?
    printf '%s\n' "$said" | grep -v '^ptxas info\|bytes stack frame' | grep . >&2
    if [ "$status" -eq 0 ]; then printf '%s\n' "$said" >"$object.ptxas"; fi
    exit "$status"
    ;;
esac
exec "$@"
