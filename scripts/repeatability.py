#!/usr/bin/env python3
"""How well do runs repeat? From a result file of several processes (fdbench run --processes 10 --json A.json): the standard
deviation of the processes' medians, for each row. Further files are held against it, in those standard deviations.

    scripts/repeatability.py A.json [FURTHER.json ...]
"""

import json
import statistics
import sys


def process_medians(row):
    """Medians of the kept samples, one a process, in nanoseconds."""
    by_process = {}
    for sample in row["time_ns"]["samples"]:
        if not sample.get("set_aside"):
            by_process.setdefault(sample["process"], []).append(sample["t"])
    return [statistics.median(times) for times in by_process.values()]


def measured_rows(path):
    with open(path, encoding="utf-8") as file:
        return {row["id"]: row for row in json.load(file)["results"] if row.get("time_ns")}


def main(paths):
    if not paths:
        sys.exit(__doc__.strip())
    base = measured_rows(paths[0])
    further = [measured_rows(path) for path in paths[1:]]
    worst = 0.0
    print("| variant | seq | heads | processes | median us | sd of medians | " + "".join(f"{p} | " for p in paths[1:]))
    print("| --- | ---: | ---: | ---: | ---: | ---: | " + "---: | " * len(further))
    for key, row in base.items():
        medians = process_medians(row)
        if len(medians) < 2:
            sys.exit(f"{paths[0]}: {key} has one process; measure with --processes 10")
        deviation = statistics.stdev(medians)
        centre = statistics.mean(medians)
        cells = []
        for other in further:
            if key not in other:
                cells.append("-")
                continue
            difference = other[key]["time_ns"]["median"] - centre
            in_deviations = difference / deviation if deviation > 0 else float("inf") if difference else 0.0
            worst = max(worst, abs(in_deviations))
            cells.append(f"{difference / centre:+.2%} ({in_deviations:+.1f} sd)")
        problem = row["problem"]
        print(f"| {row['variant']} | {problem['seq']} | {problem['heads']}/{problem['kv_heads']} | {len(medians)} | "
              f"{centre / 1e3:.2f} | {deviation / centre:.2%} | " + "".join(f"{cell} | " for cell in cells))
    if further:
        print(f"\nlargest difference: {worst:.1f} standard deviations")


if __name__ == "__main__":
    main(sys.argv[1:])
