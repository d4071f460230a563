#!/usr/bin/env python3
"""`fdbench schedule`: goldens of what it prints, and what it refuses."""

import unittest

import harness

CASES = {
    "decode": ["--batch", "1", "--heads", "32", "--kv-heads", "8", "--seq-q", "1", "--seq", "65536", "--gpu", "h200"],
    "causal": ["--heads", "16", "--seq-q", "4096", "--seq", "4096", "--causal", "--gpu", "h200", "--no-bars"],
    "window": ["--heads", "8", "--kv-heads", "2", "--seq-q", "2048", "--seq", "8192", "--window", "1024,0", "--gpu", "a100",
               "--no-bars"],
    "lens": ["--heads", "32", "--kv-heads", "8", "--lens", "100,8192,30000", "--gpu", "rtx5060"],
    "other_scheduler": ["--heads", "4", "--seq-q", "1000", "--seq", "1000", "--causal", "--gpu", "rtx5060", "--scheduler",
                        "static_persistent"],
    "splits": ["--heads", "4", "--kv-heads", "1", "--seq", "5000", "--splits", "3", "--gpu", "rtx4090", "--no-bars"],
}


class Golden(harness.TestCase):
    """One test a case, added below."""


def add_case(name, args):
    def test(self):
        result = harness.fdbench("schedule", *args)
        self.assert_exit(result, 0)
        self.assertEqual(result.err, "")
        self.assert_golden(f"../golden_plans/schedule_{name}.txt", result.out)

    setattr(Golden, f"test_{name}", test)


for case, arguments in CASES.items():
    add_case(case, arguments)


class Facts(harness.TestCase):
    def test_the_causal_square(self):
        out = harness.fdbench("schedule", *CASES["causal"]).out
        self.assertIn("128 queries x 128 keys", out)
        self.assertIn("528 of 1024 a head are computed (51.6 %), 496 skipped", out)

    def test_a_bar_a_multiprocessor(self):
        out = harness.fdbench("schedule", *CASES["decode"]).out
        bars = [word for word in out.split() if len(word) == 20 and not word.strip("#+.")]
        self.assertEqual(len(bars), 132)

    def test_every_gpu(self):
        names = sorted(path.stem for path in (harness.REPO / "configs" / "gpus").glob("*.json"))
        self.assertGreaterEqual(len(names), 12)
        for name in names:
            with self.subTest(gpu=name):
                result = harness.fdbench("schedule", "--seq", "10000", "--kv-heads", "4", "--gpu", name, "--no-bars")
                self.assert_exit(result, 0)

    def test_huge_extents(self):
        self.assert_exit(harness.fdbench("schedule", "--seq", "4294967296", "--kv-heads", "1", "--gpu", "b200"), 0)


class BadInput(harness.TestCase):
    def test_refused_in_one_line(self):
        for args, parts in ((["--seq", "8192"], ["--gpu", "h200"]),
                            (["--seq", "8192", "--gpu", "h9"], ["--gpu h9", "h200"]),
                            (["--gpu", "h200"], ["--seq is missing"]),
                            (["--seq", "1", "--lens", "2", "--gpu", "h200"], ["--lens", "--seq"]),
                            (["--lens", "2,3", "--batch", "2", "--gpu", "h200"], ["--batch", "--lens"]),
                            (["--seq", "1", "--heads", "6", "--kv-heads", "4", "--gpu", "h200"], ["--kv-heads 4"]),
                            (["--seq", "1", "--window", "5", "--gpu", "h200"], ["--window 5", "LEFT,RIGHT"]),
                            (["--seq", "1", "--window", "5,0", "--causal", "--gpu", "h200"], ["--window", "--causal"]),
                            (["--seq", "1", "--dim", "300", "--gpu", "h200"], ["--dim 300"]),
                            (["--seq", "1", "--scheduler", "magic", "--gpu", "h200"], ["--scheduler magic", "single_tile"]),
                            (["--seq", "100000", "--seq-q", "100000", "--batch", "1000", "--gpu", "h200"], ["tiles"])):
            with self.subTest(args=args):
                self.assert_one_line(harness.fdbench("schedule", *args), 2, *parts)


if __name__ == "__main__":
    harness.main()
