#!/usr/bin/env python3
"""`fdbench explain`: a recorded plan with its predicted and its measured time, the CPU's own plan, and what it refuses."""

import re
import unittest

import harness
from rules_test import made_file


class Recorded(harness.TestCase):
    """Plans of a variant that this build does not have."""

    def setUp(self):
        super().setUp()
        self.file = made_file(self.path("made.json"))

    def explain(self, *args):
        return harness.fdbench("explain", "--from", self.file, *args)

    def test_golden(self):
        result = self.explain("--seq", "8192", "--heads", "32", "--kv-heads", "8", "-a", "splits=12")
        self.assert_exit(result, 0)
        # The fit's last digits are the C library's.
        text = re.sub(r"predicted +\S+ us", "predicted    PREDICTED us", result.out)
        text = re.sub(r"its error: \S+ %", "its error: ERROR %", text)
        text = re.sub(r"(?m)^ +\S+ us with", "             PREDICTED us with", text)
        self.assert_golden("../golden_plans/explain_recorded.txt", text)

    def test_the_prediction_is_near_the_measurement(self):
        out = self.explain("--seq", "50000", "--heads", "32", "--kv-heads", "8", "-a", "splits=16").out
        predicted = float(re.search(r"predicted +(\S+) us", out)[1])
        measured = float(re.search(r"measured +(\S+) us", out)[1])
        self.assertAlmostEqual(predicted / measured, 1.0, delta=0.1)

    def test_the_variants_own_plan(self):
        result = self.explain("--seq", "8192", "--heads", "32", "--kv-heads", "8")
        self.assert_exit(result, 0)
        self.assertIn("16 splits of 512 tokens", result.out)

    def test_not_among_the_results(self):
        self.assert_one_line(self.explain("--seq", "8192", "--heads", "32", "--kv-heads", "8", "-a", "splits=7"), 2, "made")
        self.assert_one_line(self.explain("--seq", "8193", "--heads", "32", "--kv-heads", "8"), 2, "made")


class OnTheCpu(harness.TestCase):
    SHAPE = ["--seq", "4096", "--heads", "8", "--kv-heads", "2"]

    def test_the_own_plan(self):
        result = harness.fdbench("explain", "--variant", "cpu_split_kv", *self.SHAPE)
        self.assert_exit(result, 0)
        for part in ("plan ", "waves", "merging", "workspace", "nothing without sweeps"):
            self.assertIn(part, result.out)
        for part in ("occupancy", "CTA", "stage", "'team'"):
            self.assertNotIn(part, result.out)

    def test_a_point_and_a_rule(self):
        point = harness.fdbench("explain", "--variant", "cpu_split_kv", *self.SHAPE, "-a", "chunk=1000")
        self.assertIn("5 chunks of 1000 tokens (the last 96) for all heads", point.out)
        rule = harness.fdbench("explain", "--variant", "cpu_split_kv", *self.SHAPE, "--rule", "fixed:4")
        self.assertIn("4 chunks of 1024 tokens", rule.out)

    def test_refused_in_one_line(self):
        for args, parts in (([], ["--variant"]),
                            (["--variant", "none"], ["none"]),
                            (["--variant", "cpu_split_kv", "--gpu", "h200"], ["--gpu h200", "cpu"]),
                            (["--variant", "cpu_split_kv", "--rule", "fa9"], ["--rule fa9"]),
                            (["--variant", "cpu_three_pass", "--rule", "fa3"], ["cpu_three_pass", "axis"]),
                            (["--variant", "cpu_split_kv", "--rule", "fa3", "-a", "chunk=64"], ["--rule", "-a"]),
                            (["--variant", "cpu_split_kv", "-a", "chunk=64,128"], ["one value"]),
                            (["--variant", "cpu_split_kv", "-a", "wings=2"], ["wings"]),
                            (["--variant", "cpu_split_kv", "--latency", "-1"], ["--latency"])):
            with self.subTest(args=args):
                self.assert_one_line(harness.fdbench("explain", *self.SHAPE, *args), 2, *parts)
        many = harness.fdbench("explain", "--variant", "cpu_split_kv", "--seq", "64,128", "--heads", "8")
        self.assert_one_line(many, 2, "one shape")


class OnDescribedGpus(harness.TestCase):
    def test_plans_need_no_gpu(self):
        variants = harness.fdbench("list", "variants").out
        if "split_kv_tma" not in variants:
            self.skipTest("built without CUDA")
        for gpu in ("h200", "rtx5090"):
            result = harness.fdbench("explain", "--variant", "split_kv_tma", "--seq", "8192", "--heads", "32", "--kv-heads",
                                     "8", "--gpu", gpu)
            self.assert_exit(result, 0)
            for part in ("occupancy", "limited by", "in flight", "needed for"):
                self.assertIn(part, result.out)


if __name__ == "__main__":
    harness.main()
