"""The main job on the fake device, whose clock plays a script: every table, CSV and JSON, and every exit code, exactly.

tests/data/fake has the scripts, tests/data/golden what is to be said of each. After a change that is meant to show, rewrite the
golden files with FDBENCH_UPDATE_GOLDEN=1 and read the difference.
"""

import pathlib
import unittest

import harness
from harness import SHAPE, fake

# name -> script, exit code, arguments beside the shape. Every case is run once, and its table, Markdown, CSV and JSON are
# compared.
CASES = {
    "all_ok": ("ok", 0, ["run"]),
    "hot_cache": ("ok", 0, ["run", "--cache", "hot"]),
    "graph_timer": ("ok", 0, ["run", "--timer", "graph"]),
    "fixed_rounds": ("noisy", 0, ["run", "--rounds", "8"]),
    "few_rounds": ("ok", 0, ["run", "--rounds", "3"]),
    "one_candidate": ("ok", 0, ["run", "--variant", "fake_candidate", "--rounds", "6"]),
    "only_the_reference": ("ok", 0, ["run", "--variant", "fake_reference", "--rounds", "6"]),
    "max_time": ("noisy", 0, ["run", "--max-time", "1"]),
    "max_time_overrun": ("slow", 0, ["run", "--max-time", "1"]),
    "fail_noisy": ("noisy", 4, ["run", "--max-time", "1", "--fail-noisy"]),
    "coarse_timer": ("coarse_timer", 0, ["run"]),
    "incorrect": ("incorrect", 3, ["run", "--rounds", "6"]),
    "nan": ("nan", 3, ["run", "--rounds", "6"]),
    "nan_after_measuring": ("nan_after_measuring", 3, ["run", "--rounds", "6"]),
    "writes_guard": ("writes_guard", 3, ["run", "--rounds", "6"]),
    "dirty_zeroed": ("dirty_zeroed", 3, ["run", "--rounds", "6"]),
    "unsupported": ("unsupported", 0, ["run", "--rounds", "6"]),
    "all_unsupported": ("all_unsupported", 6, ["run", "--rounds", "6"]),
    "throws": ("throws", 6, ["run", "--rounds", "6"]),
    "throws_at_prepare": ("throws_at_prepare", 6, ["run", "--rounds", "6"]),
    "throws_at_warm_up": ("throws_at_warm_up", 6, ["run", "--rounds", "6"]),
    "throws_in_rounds": ("throws_in_rounds", 6, ["run", "--rounds", "6"]),
    "lost_device": ("lost_device", 6, ["run", "--rounds", "6"]),
    "lost_device_in_rounds": ("lost_device_in_rounds", 6, ["run", "--rounds", "6"]),
    "crash": ("crash", 6, ["run", "--rounds", "6"]),
    "crash_in_rounds": ("crash_in_rounds", 6, ["run", "--rounds", "6"]),
    "crash_of_both": ("crash_of_both", 6, ["run", "--rounds", "6"]),
    "crash_of_oracle": ("crash_of_oracle", 6, ["run", "--rounds", "6"]),
    "crash_of_roof": ("crash_of_roof", 6, ["run", "--rounds", "6"]),
    "no_reference": ("no_reference", 6, ["run", "--rounds", "6"]),
    "hang": ("hang", 6, ["run", "--rounds", "6", "--timeout", "1"]),
    "void_samples": ("void_samples", 0, ["run", "--rounds", "6"]),
    "never_valid": ("never_valid", 6, ["run", "--rounds", "6"]),
    "clock_drops": ("clock_drops", 0, ["run"]),
    "throttled": ("throttled", 0, ["run", "--rounds", "8"]),
    "above_roof": ("above_roof", 0, ["run", "--rounds", "8"]),
    "processes": ("ok", 0, ["run", "--processes", "3", "--rounds", "2"]),
    "crash_in_one_process": ("crash_in_rounds", 6, ["run", "--processes", "2", "--rounds", "3"]),
    "budget": ("hang", 6, ["run", "--rounds", "2", "--timeout", "1", "--budget", "0.5", "--seq", "16,32,48"]),
    "budget_of_processes": ("hang", 6, ["run", "--rounds", "2", "--timeout", "1", "--budget", "0.5", "--processes", "2"]),
    "sweep": ("ok", 0, ["sweep", "--variant", "fake_other", "-a", "chunk=4:16*2", "--rounds", "6"]),
    "verify": ("ok", 0, ["verify"]),
    "verify_incorrect": ("incorrect", 3, ["verify"]),
    "shapes": ("ok", 0, ["run", "--seq", "16,32", "--heads", "2,4", "--kv-heads", "1,2", "--rounds", "2"]),
    "fp16": ("ok", 0, ["run", "--dtype", "fp16", "--rounds", "6"]),
    "throws_beside_nan": ("throws_beside_nan", 3, ["run", "--rounds", "6"]),
}


class Golden(harness.TestCase):
    """One test a case, added below."""


def add_case(name, script, code, args):
    def test(self):
        shape = list(SHAPE)
        for flag in ("--seq", "--heads"):
            if flag in args:
                at = shape.index(flag)
                del shape[at:at + 2]
        files = {kind: self.path(f"out.{kind}") for kind in ("json", "csv", "md")}
        outputs = [word for kind, path in files.items() for word in (f"--{kind}", path)]
        result = harness.fdbench(*args, *shape, "--fake", fake(script), *outputs)
        self.assert_exit(result, code)
        out = result.out
        for path in files.values():
            self.assertIn(f"wrote {path}\n", out)
            out = out.replace(path, path.rsplit("/", 1)[1])
        # Nothing but the results is left behind.
        self.assertEqual(sorted(p.name for p in self.folder.iterdir()), ["out.csv", "out.json", "out.md"])
        text = harness.normal_table(out)
        if result.err:
            text += "\nstderr:\n" + result.err
        self.assert_golden(f"{name}.txt", text)
        read = lambda kind: pathlib.Path(files[kind]).read_bytes().decode()
        self.assert_golden(f"{name}.md", read("md"))
        self.assert_golden(f"{name}.csv", harness.normal_csv(read("csv")))
        self.assert_golden(f"{name}.json.txt",
                           harness.normal_json(read("json")).replace(self.path("out"), "out"))

    setattr(Golden, f"test_{name}", test)


for case, (script_name, exit_code, arguments) in CASES.items():
    add_case(case, script_name, exit_code, arguments)


class GoldenFolder(unittest.TestCase):
    def test_every_file_belongs_to_a_case(self):
        found = {path.name.split(".")[0] for path in (harness.DATA / "golden").iterdir()}
        self.assertEqual(found, set(CASES))

    def test_every_script_is_played(self):
        found = {path.stem for path in (harness.DATA / "fake").iterdir()}
        self.assertEqual(found, {script for script, _, _ in CASES.values()})


if __name__ == "__main__":
    harness.main()
