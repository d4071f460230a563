#!/usr/bin/env bash
# Does the gate fire on nothing, and does it see a slowdown? Compares a build with itself N times, then N times with a slowdown planted
# in one variant, and counts. Exits 1 on a false alarm, or where fewer than 95 % of the planted slowdowns were caught.
#   scripts/gate_selftest.sh FDBENCH VARIANT [N [PERCENT]] [-- FLAGS OF COMPARE...]
#   scripts/gate_selftest.sh build/fdbench cpu_split_kv 20 5 -- --suite ci --device cpu
set -euo pipefail

case ${1:-} in
  -h | --help | '')
    sed -n '2,5s/^# //p' "$0"
    exit 0
    ;;
esac
bin=$1 variant=${2:?which variant is to be slowed down?}
shift 2
n=20 percent=5
if [ $# -gt 0 ] && [ "$1" != -- ]; then n=$1 && shift; fi
if [ $# -gt 0 ] && [ "$1" != -- ]; then percent=$1 && shift; fi
if [ $# -gt 0 ]; then shift; fi

out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

# Runs one comparison; prints SLOWER rows as "variant effect", one a line.
slower() {
  local status=0
  "$bin" compare --bin "$bin" "$bin" --format json "$@" > "$out/report.json" || status=$?
  [ "$status" -le 1 ] || { echo "gate_selftest: compare ended with $status" >&2; exit 2; }
  python3 - "$out/report.json" <<'PYTHON'
import json, sys
for row in json.load(open(sys.argv[1]))["rows"]:
    if row["verdict"] == "SLOWER":
        print(row["variant"], f'{row["effect"]["percent"]:+.1f}%')
PYTHON
}

false_alarms=0 caught=0 bystanders=0
for ((i = 1; i <= n; ++i)); do
  found=$(slower "$@")
  [ -z "$found" ] || false_alarms=$((false_alarms + 1))
  echo "same build $i/$n: ${found:-no alarm}" | tr '\n' ' '
  echo
done
for ((i = 1; i <= n; ++i)); do
  found=$(slower --plant-slowdown "$variant=$percent%" "$@")
  if grep -q "^$variant " <<< "$found"; then caught=$((caught + 1)); fi
  if grep -v "^$variant " <<< "$found" | grep -q .; then bystanders=$((bystanders + 1)); fi
  echo "planted +$percent% $i/$n: ${found:-not seen}" | tr '\n' ' '
  echo
done
echo "same build against itself: $false_alarms false alarms in $n comparisons"
echo "+$percent % planted in $variant: caught in $caught of $n; other rows slower in $bystanders"
[ "$false_alarms" -eq 0 ] && [ $((caught * 100)) -ge $((n * 95)) ]
