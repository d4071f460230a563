"""--resume: what a file finished is not measured again, and what doesn't belong is refused."""

import json
import pathlib
import unittest

from compare_test import CompareCase
from harness import fdbench

TWO = ["--seq", "16,32", "--heads", "2", "--dim", "64", "--rounds", "6", "--quiet"]


class Resume(CompareCase):
    def run_it(self, *args, command="run", code=0):
        result = fdbench(command, *args)
        self.assertEqual(result.code, code, result)
        return result

    def test_goes_on_where_a_run_ended(self):
        script, path = self.script("ok"), self.folder / "all.json"
        self.run_it(*TWO, "--fake", script, "--json", str(path))
        whole = json.loads(path.read_text())
        # As if it had ended after the first shape; its times are marked to be known again.
        kept = [row for row in whole["results"] if row["problem"]["seq"] == 16]
        kept[0]["prepare_ns"] = 12345.0
        path.write_text(json.dumps(dict(whole, results=kept)))
        self.run_it(*TWO, "--fake", script, "--json", str(path), "--resume", str(path))
        resumed = json.loads(path.read_text())
        self.assertEqual([row["id"] for row in resumed["results"]], [row["id"] for row in whole["results"]])
        self.assertEqual(resumed["results"][0]["prepare_ns"], 12345.0)

    def test_a_finished_file_measures_nothing(self):
        script, path = self.script("ok"), str(self.folder / "all.json")
        self.run_it(*TWO, "--fake", script, "--json", path)
        told = self.run_it(*TWO[:-1], "--fake", script, "--resume", path, "--json", path)
        self.assertIn("shapes taken over from", told.out)
        self.assertIn(": 2 of 2", told.out)

    def test_shapes_that_failed_or_lack_processes_are_measured_again(self):
        script, path = self.script("ok"), self.folder / "part.json"
        self.run_it(*TWO, "--fake", script, "--processes", "2", "--json", str(path))
        file = json.loads(path.read_text())
        for row in file["results"]:
            if row["problem"]["seq"] == 16:
                row["time_ns"]["samples"] = [s for s in row["time_ns"]["samples"] if s["process"] == 0]
        path.write_text(json.dumps(file))
        args = [*TWO[:-1], "--fake", script, "--processes", "2", "--resume", str(path), "--json", str(path)]
        self.assertIn(": 1 of 2", self.run_it(*args).out)
        file = json.loads(path.read_text())
        self.assertEqual({s["process"] for s in file["results"][0]["time_ns"]["samples"]}, {0, 1})
        file["results"][-1].update(status="failed", reason="x", time_ns=None)
        path.write_text(json.dumps(file))
        self.assertIn(": 1 of 2", self.run_it(*args).out)

    def test_sweep(self):
        path = str(self.folder / "sweep.json")
        args = ["--variant", "cpu_split_kv", "-a", "chunk=16,32", *TWO[:-1], "--device", "cpu", "--json", path]
        self.run_it(*args, command="sweep")
        self.assertIn(": 2 of 2", self.run_it(*args, "--resume", path, command="sweep").out)
        # A grid with another point is another shape's worth of rounds.
        more = [word.replace("16,32", "16,32,64") for word in args[:4]] + args[4:]
        self.assertIn(": 0 of 2", self.run_it(*more, "--resume", path, command="sweep").out)

    def test_foreign_files_are_refused(self):
        script, path = self.script("ok"), str(self.folder / "file.json")
        self.run_it(*TWO, "--fake", script, "--json", path)
        refuse = lambda *parts, args=(), fake=script, rounds="6": self.assert_one_line(
            fdbench("run", *TWO[:6], "--rounds", rounds, "--quiet", "--fake", fake, "--resume", path, *args), 2, "--resume", *parts)
        refuse("--seed", args=("--seed", "2"))
        refuse("--cache", args=("--cache", "hot"))
        refuse("--processes", args=("--processes", "2"))
        refuse("--rounds", rounds="7")
        refuse("the device", fake=self.script("other", device={"name": "Another"}))
        file = json.loads(pathlib.Path(path).read_text())
        file["run"]["device"]["isas"] = ["AVX2", "plain"]
        pathlib.Path(path).write_text(json.dumps(file))
        refuse("instruction sets", "was AVX2, plain, and is AVX3, plain now", fake=self.script("wider", device={"isas": ["AVX3", "plain"]}))
        # A device that says none is that of an older build: no reason to refuse.
        refuse("--seed", args=("--seed", "2"))
        self.assert_one_line(fdbench("run", *TWO, "--fake", script, "--resume", path, env={"FDBENCH_MAX_NOISE": "3"}), 2,
                             "--max-noise")
        self.assert_one_line(fdbench("run", *TWO, "--fake", script, "--resume", path, "--csv", path), 2, "--csv", "--resume")
        file = json.loads(pathlib.Path(path).read_text())
        twice = str(self.folder / "twice.json")
        pathlib.Path(twice).write_text(json.dumps(dict(file, results=file["results"] + file["results"][:1])))
        self.assert_one_line(fdbench("run", *TWO, "--fake", script, "--resume", twice), 2, "twice")
        # Two builds of one commit with other changes; a file of a build that didn't say is taken.
        sources = file["run"]["tool"]["sources"]
        self.assertRegex(sources, r"^[0-9a-f]{12}$")
        file["run"]["tool"]["sources"] = "0123456789ab"
        pathlib.Path(path).write_text(json.dumps(file))
        refuse("the digest of the build's sources was 0123456789ab", sources)
        del file["run"]["tool"]["sources"]
        pathlib.Path(path).write_text(json.dumps(file))
        self.run_it(*TWO, "--fake", script, "--resume", path)
        file["run"]["tool"]["commit"] = "0123456789ab"
        pathlib.Path(path).write_text(json.dumps(file))
        refuse("the build")
        pathlib.Path(path).write_text("{")
        self.assert_one_line(fdbench("run", *TWO, "--fake", script, "--resume", path), 2, "file.json")


if __name__ == "__main__":
    unittest.main()
