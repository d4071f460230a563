#!/usr/bin/env python3
"""Python's own json and csv modules load what fdbench writes, and find the same numbers in both.

The files are those that the C++ golden tests hold the writers to.
"""

import csv
import json
import math
import os
import unittest

DATA = os.path.join(
    os.environ.get("FDBENCH_TEST_DATA") or os.path.join(os.path.dirname(__file__), "..", "..", "data"), "io")

# CSV column: where the JSON has the same.
NUMBERS = {
    "seq": ("problem", "seq"),
    "heads": ("problem", "heads"),
    "kv_heads": ("problem", "kv_heads"),
    "dim": ("problem", "dim"),
    "scale": ("problem", "scale"),
    "tuning_version": ("tuning_version",),
    "n": ("time_ns", "n"),
    "median_ns": ("time_ns", "median"),
    "median_ci95_lo_ns": ("time_ns", "ci95", 0),
    "median_ci95_hi_ns": ("time_ns", "ci95", 1),
    "min_ns": ("time_ns", "min"),
    "q1_ns": ("time_ns", "q1"),
    "q3_ns": ("time_ns", "q3"),
    "max_ns": ("time_ns", "max"),
    "void_samples": ("time_ns", "void"),
    "set_aside_samples": ("time_ns", "set_aside"),
    "prepare_ns": ("prepare_ns",),
    "bytes": ("bytes",),
    "roof_share": ("roof_share",),
    "roof_share_ci95_lo": ("roof_share_ci95", 0),
    "roof_share_ci95_hi": ("roof_share_ci95", 1),
    "speedup": ("speedup",),
    "speedup_ci95_lo": ("speedup_ci95", 0),
    "speedup_ci95_hi": ("speedup_ci95", 1),
    "rel_l2": ("accuracy", "rel_l2"),
    "max_abs": ("accuracy", "max_abs"),
    "lse_max_abs": ("accuracy", "lse_max_abs"),
    "grid_x": ("plan", "grid", 0),
    "grid_y": ("plan", "grid", 1),
    "grid_z": ("plan", "grid", 2),
    "block_x": ("plan", "block", 0),
    "block_y": ("plan", "block", 1),
    "block_z": ("plan", "block", 2),
    "cluster_x": ("plan", "cluster", 0),
    "cluster_y": ("plan", "cluster", 1),
    "cluster_z": ("plan", "cluster", 2),
    "chunk_tokens": ("plan", "chunk"),
    "splits": ("plan", "splits"),
    "tile_tokens": ("plan", "tile"),
    "stages": ("plan", "stages"),
    "dynamic_smem_bytes": ("plan", "dynamic_smem"),
    "scratch_bytes": ("plan", "scratch_bytes"),
    "zeroed_bytes": ("plan", "zeroed_bytes"),
}
TEXTS = {
    "id": ("id",),
    "variant": ("variant",),
    "role": ("role",),
    "status": ("status",),
    "reason": ("reason",),
    "dtype": ("problem", "dtype"),
    "source": ("source",),
    "stop": ("time_ns", "stop"),
    "oracle": ("accuracy", "oracle"),
    "merge": ("plan", "merge"),
    "isa": ("plan", "isa"),
    "rule": ("plan", "rule"),
}
# Absent where there is nothing to say.
OPTIONAL = {"isa"}
RUN_NUMBERS = {"seed": ("seed",), "processes": ("processes",)}
RUN_TEXTS = {
    "cache": ("cache",),
    "timer": ("timer",),
    "inputs": ("inputs",),
    "device_kind": ("device", "kind"),
    "device_name": ("device", "name"),
    "device_uuid": ("device", "uuid"),
    "driver": ("device", "driver"),
    "host_cpu": ("host", "cpu"),
    "run_id": ("id",),
    "started": ("started",),
    "version": ("tool", "version"),
    "commit": ("tool", "commit"),
}
# Held to the JSON one by one, below.
OTHERS = {"flags", "tuning", "bandwidth_GBps", "cooperative", "interrupted", "dirty"}


def no_constant(name):
    raise ValueError(f"{name} is not JSON")


def at(value, path):
    for step in path:
        if value is None:
            return None
        value = value.get(step) if step in OPTIONAL else value[step]
    return value


class PythonLoads(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with open(os.path.join(DATA, "results.json"), encoding="utf-8") as file:
            cls.file = json.load(file, parse_constant=no_constant)
        with open(os.path.join(DATA, "results.csv"), encoding="utf-8", newline="") as file:
            reader = csv.DictReader(file, strict=True)
            cls.rows = list(reader)
            cls.columns = reader.fieldnames

    def test_every_column_is_compared(self):
        compared = set(NUMBERS) | set(TEXTS) | set(RUN_NUMBERS) | set(RUN_TEXTS) | OTHERS
        self.assertEqual(compared, set(self.columns))
        self.assertEqual(len(self.columns), len(set(self.columns)))

    def test_the_numbers_are_the_same(self):
        self.assertEqual(len(self.rows), len(self.file["results"]))
        for row, result in zip(self.rows, self.file["results"]):
            pairs = [(column, at(result, path)) for column, path in NUMBERS.items()]
            pairs += [(column, at(self.file["run"], path)) for column, path in RUN_NUMBERS.items()]
            for column, expected in pairs:
                if expected is None:
                    self.assertEqual(row[column], "", column)
                else:
                    self.assertNotIsInstance(expected, (str, bool), column)
                    self.assertEqual(float(row[column]), expected, column)
            if result["bytes_per_s"] is None:
                self.assertEqual(row["bandwidth_GBps"], "")
            else:
                self.assertEqual(float(row["bandwidth_GBps"]), result["bytes_per_s"] / 1e9)
                self.assertTrue(math.isfinite(result["bytes_per_s"]))

    def test_the_texts_are_the_same(self):
        for row, result in zip(self.rows, self.file["results"]):
            for column, path in TEXTS.items():
                self.assertEqual(row[column], at(result, path) or "", column)
            for column, path in RUN_TEXTS.items():
                self.assertEqual(row[column], at(self.file["run"], path) or "", column)
            self.assertEqual(row["flags"], ";".join(result["flags"]))
            tuning = ",".join(f"{axis}={value}" for axis, value in sorted(result["tuning"].items()))
            self.assertEqual(row["tuning"], tuning or "default")
            cooperative = at(result, ("plan", "cooperative"))
            self.assertEqual(row["cooperative"], "" if cooperative is None else str(cooperative).lower())
            self.assertEqual(row["interrupted"], str(self.file["run"]["interrupted"]).lower())
            self.assertEqual(row["dirty"], str(self.file["run"]["tool"]["dirty"]).lower())

    def test_samples_are_numbers(self):
        samples = self.file["results"][0]["time_ns"]["samples"]
        self.assertGreater(len(samples), 0)
        for sample in samples:
            self.assertIsInstance(sample["t"], (int, float))
        self.assertEqual(samples[4]["t"], 100000.0 / 3.0)


if __name__ == "__main__":
    unittest.main()
