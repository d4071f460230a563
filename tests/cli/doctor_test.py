"""doctor: what it says, the file it writes, and what compare makes of that."""

import json
import os
import pathlib
import unittest

from compare_test import CompareCase
from harness import SHAPE, fdbench


class Doctor(CompareCase):
    def doctor(self, *args, script=None):
        return fdbench("doctor", *SHAPE, "--rounds", "6", "--fake", script or self.script("ok"), *args)

    def test_says_what_the_machine_is(self):
        result = fdbench("doctor", "--rounds", "6", "--fake", self.script("ok"), "--no-noise")
        self.assertEqual(result.code, 0, result)
        for fact in ("device", "CPU governor", "load", "CPU quota", "roof: what reading alone gives"):
            self.assertIn(fact, result.out)
        self.assertNotIn("noise floor", result.out)

    def test_writes_a_file_that_compare_reads(self):
        path = str(self.folder / "doctor.json")
        # Processes of the fake device are alike: the gate's own floor is what is left.
        result = self.doctor("--json", path)
        self.assertEqual(result.code, 0, result)
        self.assertIn("noise floor", result.out)
        report = json.loads(pathlib.Path(path).read_text())
        self.assertEqual(report["schema"], "fdbench.doctor/1.0")
        self.assertEqual({row["processes"] for row in report["noise"]}, {10})
        sizes = [point["bytes"] for point in report["roof"]]
        self.assertEqual(sizes, sorted(sizes))
        self.assertGreaterEqual(len(sizes), 3)
        base, new = self.results("base"), self.results("new", fake_candidate={"ns": [2100]})
        self.assertEqual(fdbench("compare", base, new, "--doctor", path).code, 1)
        # A machine that cannot see 5 %.
        for row in report["noise"]:
            row.update(between_percent=5.0, smallest_effect_percent=25.0)
        pathlib.Path(path).write_text(json.dumps(report))
        result = fdbench("compare", base, new, "--doctor", path)
        self.assertEqual(result.code, 0, result)
        self.assertIn("below what this machine can resolve", result.out)
        self.assertIn("(the floor)", result.out)

    def test_a_file_of_another_machine_is_refused(self):
        path = str(self.folder / "doctor.json")
        self.assertEqual(self.doctor("--processes", "2", "--json", path).code, 0)
        other = self.results("other", device={"name": "Another"})
        again = self.results("again", device={"name": "Another"})
        self.assert_one_line(fdbench("compare", other, again, "--doctor", path), 2, "--doctor", "Another")
        self.assert_one_line(fdbench("report", other, "--doctor", path, "-o", "-"), 2, "--doctor", "Another")

    def test_usage(self):
        self.assert_one_line(self.doctor("--processes", "1"), 2, "--processes 1")
        self.assert_one_line(self.doctor("--json", "/nosuch/x"), 2, "/nosuch")
        self.assert_one_line(self.doctor("--no-noise"), 2, "--seq", "--no-noise")
        for flag in (["--processes", "3"], ["--gate", "default"], ["--variant", "fake_candidate"]):
            with self.subTest(flag):
                self.assert_one_line(fdbench("doctor", *flag, "--no-noise"), 2, flag[0], "--no-noise")
        os.environ["FDBENCH_PROCESSES"] = "3"
        self.addCleanup(os.environ.pop, "FDBENCH_PROCESSES")
        result = fdbench("doctor", "--rounds", "6", "--fake", self.script("ok"), "--no-noise")
        self.assertEqual(result.code, 0, result)


if __name__ == "__main__":
    unittest.main()
