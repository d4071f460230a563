"""compare --bin: two builds in turn, what fires is measured again, a planted slowdown is found; on the fake device."""

import json
import signal
import stat
import subprocess
import time
import unittest

import harness
from compare_test import CompareCase
from harness import BIN, SHAPE, fdbench

ROUNDS = ["--rounds", "6"]


class Builds(CompareCase):
    def compare(self, *args, base=BIN, new=BIN, code=0):
        result = fdbench("compare", "--bin", base, new, *SHAPE, *ROUNDS, "--format", "json", *args)
        self.assertEqual(result.code, code, result)
        return {row["variant"]: row for row in json.loads(result.out)["rows"]}

    def wrapper(self, name, text):
        """A program that stands for another build."""
        path = self.folder / name
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return str(path)

    def test_a_build_against_itself(self):
        rows = self.compare("--fake", self.script("ok"))
        self.assertEqual({row["verdict"] for row in rows.values()}, {"SAME"})

    def test_a_planted_slowdown_is_measured_again_and_found(self):
        keep = self.folder / "kept"
        rows = self.compare("--fake", self.script("ok"), "--plant-slowdown", "fake_candidate=5%", "--keep", str(keep), code=1)
        row = rows["fake_candidate"]
        self.assertEqual(row["verdict"], "SLOWER")
        self.assertIn("measured again", row["why"])
        self.assertAlmostEqual(row["effect"]["percent"], 5.0, delta=0.2)
        self.assertEqual(row["effect"]["new_processes"], 10)
        self.assertEqual(rows["fake_other"]["verdict"], "SAME")
        # Only the suspect was measured again, beside roof and reference; and only the new side was slowed.
        again = json.loads((keep / "again-new-0.json").read_text())
        self.assertEqual({r["variant"] for r in again["results"]}, {"fake_roof", "fake_reference", "fake_candidate"})
        self.assertIn("planted:fake_candidate+5.0%", again["results"][0]["flags"])
        base = json.loads((keep / "again-base-0.json").read_text())
        self.assertEqual(base["results"][0]["flags"], [])

    def test_what_does_not_hold_is_not_believed(self):
        slow, ok = self.script("slow", fake_candidate={"ns": [2200]}), self.script("ok")
        # Slower in the first stage only.
        new = self.wrapper("new", f'case "$*" in *first-*) s={slow};; *) s={ok};; esac\nexec {BIN} "$@" --fake $s')
        base = self.wrapper("base", f'exec {BIN} "$@" --fake {ok}')
        row = self.compare(base=base, new=new)["fake_candidate"]
        self.assertEqual(row["verdict"], "SAME", row)
        self.assertAlmostEqual(row["first_effect"]["percent"], 10.0, delta=0.2)

    def test_builds_that_break(self):
        script = self.script("ok")
        silent = self.wrapper("silent", "exit 0")
        self.assert_one_line(fdbench("compare", "--bin", BIN, silent, *SHAPE, "--fake", script), 2, "silent: wrote no results")
        crash = self.wrapper("crash", "kill -SEGV $$")
        self.assert_one_line(fdbench("compare", "--bin", crash, BIN, *SHAPE, "--fake", script), 2, "crash", "signal 11")
        old = self.wrapper("old", "echo 'unknown flag --fake' >&2; exit 2")
        self.assert_one_line(fdbench("compare", "--bin", old, BIN, *SHAPE, "--fake", script), 2, "unknown flag --fake")
        self.assert_one_line(fdbench("compare", "--bin", BIN, BIN, "--plant-slowdown", "x"), 2, "--plant-slowdown x")

    def test_interrupted(self):
        slow = self.wrapper("slow", "exec sleep 60")
        running = subprocess.Popen([BIN, "compare", "--bin", slow, slow, *SHAPE], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, env=harness.environment())
        time.sleep(1.0)
        running.send_signal(signal.SIGTERM)
        _, err = running.communicate(timeout=30)
        self.assertEqual(running.returncode, 130, err)


if __name__ == "__main__":
    unittest.main()
