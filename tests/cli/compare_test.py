"""compare: verdicts, exit codes, formats and exports, on results of the fake device; and files that lie."""

import json
import os
import pathlib
import random
import unittest
import xml.etree.ElementTree

import harness
from harness import SHAPE, fake, fdbench

VARIANTS = {"fake_roof": {"ns": [1000, 1004, 1002]}, "fake_reference": {"ns": [4000, 4010, 3990]},
            "fake_candidate": {"ns": [2000, 2002, 1998]}, "fake_other": {"ns": [2500, 2504]}}


class CompareCase(harness.TestCase):
    def script(self, name, device=None, **changes):
        """A script of the fake device; `changes` are by variant."""
        variants = {variant: dict(play, **changes.get(variant, {})) for variant, play in VARIANTS.items()}
        path = self.folder / f"{name}.script.json"
        path.write_text(json.dumps({"schema": "fdbench.fake/1.0", "device": device or {}, "variants": variants}))
        return str(path)

    def results(self, name, *args, device=None, processes=5, **changes):
        path = str(self.folder / f"{name}.json")
        result = fdbench("run", *SHAPE, "--fake", self.script(name, device, **changes), "--rounds", "6", "--quiet",
                         "--processes", str(processes), "--json", path, *args)
        self.assertIn(result.code, (0, 3, 6), result)
        return path

    def rows(self, *args, code=0):
        result = fdbench("compare", "--format", "json", *args)
        self.assertEqual(result.code, code, result)
        return {row["variant"]: row for row in json.loads(result.out)["rows"]}


class Verdicts(CompareCase):
    def test_the_same_build(self):
        base = self.results("base")
        rows = self.rows(base, self.results("new"))
        self.assertEqual({row["verdict"] for row in rows.values()}, {"SAME"})

    def test_slower_fails_and_says_why(self):
        base, new = self.results("base"), self.results("new", fake_candidate={"ns": [2100, 2102, 2098]})
        result = fdbench("compare", base, new)
        self.assertEqual(result.code, 1, result)
        line = next(line for line in result.out.splitlines() if line.startswith("SLOWER"))
        for part in ("fake_candidate", "+5.0 %", "threshold 3 %", "p = ", "5 + 5 processes"):
            self.assertIn(part, line)
        self.assertIn("1 SLOWER, 3 SAME", result.out)

    def test_faster_does_not_fail(self):
        base, new = self.results("base"), self.results("new", fake_candidate={"ns": [1800, 1802, 1798]})
        self.assertEqual(self.rows(base, new)["fake_candidate"]["verdict"], "FASTER")

    def test_few_processes_are_unsure_and_fail_only_if_asked(self):
        base = self.results("base", processes=2)
        new = self.results("new", processes=2, fake_candidate={"ns": [4000]})
        row = self.rows(base, new)["fake_candidate"]
        self.assertEqual(row["verdict"], "UNSURE")
        self.assertIn("2 + 2 processes", row["why"])
        told = fdbench("compare", base, new)
        self.assertIn("warning: 3 rows can only be UNSURE, for want of processes: measure both sides with "
                      "fdbench run --processes 5, or two builds with fdbench compare --bin OLD NEW\n", told.out)
        enough = self.results("enough")
        self.assertNotIn("for want of processes", fdbench("compare", enough, self.results("new")).out)
        self.rows("--fail-noisy", base, new, code=4)

    def test_gone_new_and_wrong(self):
        base = self.results("base")
        some = self.results("some", "--variant", "fake_candidate")
        self.assertEqual(self.rows(base, some, code=5)["fake_other"]["verdict"], "GONE")
        self.rows("--allow-missing", base, some, code=0)
        self.assertEqual(self.rows(some, base)["fake_other"]["verdict"], "NEW")
        wrong = self.results("wrong", fake_candidate={"error": 0.5}, fake_other={"ns": [5000]})
        # Wrong comes before slower.
        rows = self.rows(base, wrong, code=3)
        self.assertEqual(rows["fake_candidate"]["verdict"], "WRONG")
        self.assertEqual(rows["fake_other"]["verdict"], "SLOWER")

    def test_failed_rows_are_gone_and_still_failures(self):
        base, new = self.results("base"), self.results("new", fake_candidate={"behaviour": "throw"})
        self.rows(base, new, code=5)
        self.rows("--allow-missing", base, new, code=6)

    def test_history(self):
        files = [self.results(name) for name in ("a", "b", "c")]
        rows = self.rows(*files, self.results("new", fake_candidate={"ns": [2200]}), code=1)
        self.assertEqual(rows["fake_candidate"]["effect"]["base_processes"], 15)

    def test_a_gate_of_ones_own(self):
        base, new = self.results("base"), self.results("new", fake_candidate={"ns": [2100]})
        gate = self.folder / "gate.json"
        gate.write_text(json.dumps({"schema": "fdbench.gate/1.0", "name": "ours",
                                    "rules": [{"pattern": "fake_cand*", "threshold_percent": 10}]}))
        self.assertEqual(self.rows("--gate", str(gate), base, new)["fake_candidate"]["verdict"], "SAME")
        self.assert_one_line(fdbench("compare", "--gate", "nosuch", base, new), 2, "--gate nosuch", "default")
        gate.write_text('{"schema": "fdbench.gate/1.0", "name": "x", "treshold_percent": 1}')
        self.assert_one_line(fdbench("compare", "--gate", str(gate), base, new), 2, "treshold_percent")


class Comparable(CompareCase):
    def test_another_device_stops_it(self):
        base, new = self.results("base"), self.results("new", device={"name": "Another"})
        result = fdbench("compare", base, new)
        self.assertEqual(result.code, 5, result)
        self.assertIn("--allow device", result.err)
        self.assertEqual(self.rows("--allow", "device", base, new)["fake_candidate"]["verdict"], "SAME")

    def test_another_cache_mode_or_power_limit_stops_it(self):
        base, hot = self.results("base"), self.results("hot", "--cache", "hot")
        self.assertEqual(fdbench("compare", base, hot).code, 5)
        self.assertEqual(self.rows("--allow", "cache", base, hot)["fake_candidate"]["verdict"], "SAME")
        capped = self.results("capped", device={"power_limit_w": 300})
        self.assertEqual(fdbench("compare", base, capped).code, 5)
        self.assert_one_line(fdbench("compare", "--allow", "colour", base, hot), 2, "--allow colour", "power")

    def test_another_serial_is_a_warning(self):
        base, new = self.results("base", device={"uuid": "A"}), self.results("new", device={"uuid": "B"})
        result = fdbench("compare", base, new)
        self.assertEqual(result.code, 0, result)
        self.assertIn("warning: another serial", result.out)


class Formats(CompareCase):
    def test_every_format_and_export(self):
        base, new = self.results("base"), self.results("new", fake_candidate={"ns": [2100, 2102, 2098]})
        exports = {name: self.folder / f"out.{name}" for name in ("junit", "github-action-benchmark", "bmf", "md", "json")}
        args = [word for name, path in exports.items() for word in ("--export", f"{name}={path}")]
        result = fdbench("compare", base, new, *args)
        self.assertEqual(result.code, 1, result)
        for name, path in exports.items():
            alone = fdbench("compare", base, new, "--format", name)
            self.assertEqual(alone.out, path.read_text(), name)
        suite = xml.etree.ElementTree.parse(exports["junit"]).getroot().find("testsuite")
        self.assertEqual((suite.get("tests"), suite.get("failures"), suite.get("errors")), ("4", "1", "0"))
        failed = [case for case in suite if case.find("failure") is not None]
        self.assertIn("fake_candidate", failed[0].get("name"))
        for entry in json.loads(exports["github-action-benchmark"].read_text()):
            self.assertEqual(set(entry), {"name", "unit", "value", "range", "extra"})
        bmf = json.loads(exports["bmf"].read_text())
        measure = next(value for name, value in bmf.items() if name.startswith("fake_candidate/"))["latency"]
        self.assertEqual(measure["value"], 2100)
        self.assertLessEqual(measure["lower_value"], measure["value"])
        self.assertIn("| SLOWER | `fake_candidate/", exports["md"].read_text())

    def test_exports_that_cannot_be(self):
        base = self.results("base")
        self.assert_one_line(fdbench("compare", base, base, "--export", "junit"), 2, "--export junit")
        self.assert_one_line(fdbench("compare", base, base, "--export", "pdf=x"), 2, "pdf")
        self.assert_one_line(fdbench("compare", base, base, "--export", "md=/nosuch/x"), 2, "/nosuch")
        self.assertEqual(fdbench("compare", base, self.results("new"), "--export", "md=/dev/full").code, 8)
        # A baseline is not written over.
        before = pathlib.Path(base).read_text()
        self.assert_one_line(fdbench("compare", base, self.results("new"), "--export", "json=" + base), 2, "--export", "reads")
        self.assertEqual(pathlib.Path(base).read_text(), before)
        self.assert_one_line(fdbench("compare", base, base, "--format", "pdf"), 2, "--format pdf")


class Usage(CompareCase):
    def test_a_run_is_no_evidence_twice(self):
        base, new = self.results("base"), self.results("new")
        for files in ((base, base), (base, base, new), (base, new, new)):
            self.assert_one_line(fdbench("compare", *files), 2, "the same run")

    def test_nothing_compared_is_no_success(self):
        base, new = self.results("base"), self.results("new")
        document = json.loads(pathlib.Path(base).read_text())
        document["results"] = []
        pathlib.Path(base).write_text(json.dumps(document))
        self.assertEqual(fdbench("compare", base, new).code, 6)

    def test_what_does_not_go_together(self):
        base = self.results("base")
        self.assert_one_line(fdbench("compare", base), 2, "two result files")
        self.assert_one_line(fdbench("compare", base, base, "--rounds", "3"), 2, "--rounds", "--bin")
        self.assert_one_line(fdbench("compare", "--bin", base), 2, "--bin OLD NEW")
        self.assert_one_line(fdbench("compare", "--bin", harness.BIN, "/nosuch/b"), 2, "--bin /nosuch/b")
        self.assert_one_line(fdbench("compare", base, self.results("new"), "--keep", "k"), 2, "--keep")
        self.assert_one_line(fdbench("compare", "--bin", "/nosuch/a", "/nosuch/b"), 2, "/nosuch/a")
        self.assert_one_line(fdbench("compare", "--bin", "/bin/false", "/bin/false"), 2, "/bin/false", "exit code 1")


class Lies(CompareCase):
    def test_files_that_lie(self):
        good = self.results("good")
        text = pathlib.Path(good).read_text()
        number = '"median": 2000' if '"median": 2000' in text else None
        lies = {"truncated": text[: len(text) // 2], "empty": "", "not json": "hello", "array": "[]",
                "schema": text.replace("fdbench.result/1.0", "fdbench.result/2.0"),
                "strings": text.replace('"seed": 1', '"seed": "1"'), "nan": text.replace('"seed": 1', '"seed": NaN')}
        if number:
            lies["negative"] = text.replace(number, '"median": -2000')
        for name, lie in lies.items():
            path = self.folder / "lie.json"
            path.write_text(lie)
            for args in ((good, str(path)), (str(path), good)):
                with self.subTest(name):
                    self.assert_one_line(fdbench("compare", *args), 2, "lie.json")
        self.assert_one_line(fdbench("compare", good, str(self.folder)), 2, "directory")
        self.assert_one_line(fdbench("compare", good, "/nosuch.json"), 2, "/nosuch.json")
        self.assert_one_line(fdbench("compare", good, self.results("other"), "--doctor", good), 2, "fdbench.doctor")
        zero = self.folder / "zero.json"
        document = json.loads(text)
        document["results"][0]["time_ns"]["samples"][0]["t"] = 0
        zero.write_text(json.dumps(document))
        self.assert_one_line(fdbench("compare", good, str(zero)), 2, "samples[0].t")
        document["results"][0]["time_ns"]["samples"][0] = document["results"][0]["time_ns"]["samples"][1]
        zero.write_text(json.dumps(document))
        self.assert_one_line(fdbench("compare", good, str(zero)), 2, "samples[1]", "no other sample")

    def test_two_hundred_megabytes(self):
        path = self.folder / "large.json"
        with open(path, "wb") as large:
            large.write(b'{"schema": "fdbench.result/1.0", "x": "')
            large.truncate(200 << 20)
        self.assert_one_line(fdbench("compare", str(path), str(path)), 2, "large.json")

    def test_mutations_are_read_or_refused(self):
        """Whatever is done to its bytes, a file is compared or refused in a line: never a crash."""
        good = self.results("good", processes=2)
        data = pathlib.Path(good).read_bytes()
        choose = random.Random(7)
        path = self.folder / "mutant.json"
        for _ in range(int(os.environ.get("FDBENCH_FUZZ_RUNS", "150"))):
            mutant = bytearray(data)
            for _ in range(choose.choice((1, 1, 2, 8))):
                at = choose.randrange(len(mutant))
                kind = choose.randrange(4)
                if kind == 0:
                    mutant[at] = choose.randrange(256)
                elif kind == 1:
                    del mutant[at : at + choose.randrange(1, 200)]
                elif kind == 2:
                    mutant[at:at] = mutant[at : at + choose.randrange(1, 200)]
                else:
                    mutant[at:at] = choose.choice((b"-", b"1e999", b"null", b"[", b'"', b"9" * 25, b"\\ud800"))
                if not mutant:
                    break
            path.write_bytes(bytes(mutant))
            result = fdbench("compare", good, str(path))
            self.assertIn(result.code, (0, 1, 2, 3, 5, 6), result)
            if result.code == 2:
                self.assertEqual(len(result.err.splitlines()), 1, result)


if __name__ == "__main__":
    unittest.main()
