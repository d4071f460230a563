#!/usr/bin/env python3
"""`fdbench tune`: the whole flow on the fake device and on the CPU, and recorded sweeps."""

import json
import os
import pathlib
import re
import signal
import subprocess
import time
import unittest

import harness
from harness import REPO
from tune_case import CHUNKS, SHAPE, TuneCase


class Tune(TuneCase):
    def test_the_whole_flow(self):
        result = self.tune()
        self.assert_exit(result, 0)
        self.assertIn("fake_other chunk=128 1.00 us", result.out)
        self.assertIn(f"wrote {self.profile}\n", result.out)
        entry, = self.entries()
        self.assertEqual(entry["tuning"], {"chunk": 128})
        self.assertEqual(entry["median_ns"], 1000)
        self.assertEqual(entry["key"]["seq_bucket"], [725, 1448])
        default, = [gain for gain in entry["gains"] if gain["over"] == "default"]
        self.assertAlmostEqual(default["gain"], 2.0)
        self.assertTrue(any(gain["over"].startswith("rule:") for gain in entry["gains"]))
        rows = harness.read_json(self.points)["results"]
        self.assertGreaterEqual(len(rows), 4)
        self.assertTrue(all(row["status"] == "ok" for row in rows))

        result, rows = self.run_rows()
        self.assertRegex(result.out.splitlines()[0], r"; profile \S+scripted.json: 1 exact$")
        row = rows["fake_other"]
        self.assertEqual((row["source"], row["tuning"], row["time_ns"]["median"]), ("profile:exact", {"chunk": 128}, 1000))
        # The id has what was asked for: the row pairs with the one before the tuning.
        self.assertIn("/default/", row["id"])
        self.assertEqual(rows["fake_candidate"]["source"], "default")
        self.assertEqual(self.run_rows(shape=["--seq", "1000", *SHAPE[2:]])[1]["fake_other"]["source"], "profile:bucket")
        far = self.run_rows(shape=["--seq", "64", *SHAPE[2:]])[1]["fake_other"]
        self.assertEqual((far["source"], far["tuning"]), ("profile:fallback", {}))
        # The path once, whatever the answers.
        for lengths, words in (("64,1000,1024,1100", "1 exact, 2 bucket, 1 fallback"), ("64", "1 fallback")):
            result = self.fdbench("run", "--fake", self.landscape(), "--seq", lengths, *SHAPE[2:], "--rounds", "3")
            self.assert_exit(result, 0)
            self.assertRegex(result.out.splitlines()[0], rf"; profile \S+scripted.json: {words}$")
        result, rows = self.run_rows("--no-profile")
        self.assertEqual(rows["fake_other"]["source"], "default")
        self.assertNotIn("profile", result.out)

        shown = self.fdbench("tune", "--show", "--profile", str(self.profile))
        self.assert_exit(shown, 0)
        self.assertIn("chunk=128", shown.out)
        for form, what in (("json", '"fdbench.profile/1.0"'), ("csv", "chunk=128"), ("header", "fdbench_profile")):
            shown = self.fdbench("tune", "--export", form, "--profile", str(self.profile))
            self.assert_exit(shown, 0)
            self.assertIn(what, shown.out)

    def test_strategies_and_seeds(self):
        for strategy in ("exhaustive", "random", "halving"):
            self.assert_exit(self.tune("--strategy", strategy, "--seed", "7"), 0)
            entry, = self.entries()
            self.assertEqual(entry["search"]["strategy"], strategy)
            if strategy != "random":
                self.assertEqual(entry["tuning"], {"chunk": 128})
        first = entry
        self.assert_exit(self.tune("--seed", "7"), 0)
        again, = self.entries()
        for key in ("tuning", "search", "ties", "margin"):
            self.assertEqual(first[key], again[key])

    def test_a_failing_point_is_a_row(self):
        script = self.landscape(behaviour="crash", bad_chunk=128)
        result = self.tune(script=script)
        self.assert_exit(result, 0)
        self.assertIn("1 of 11 points failed", result.err)
        self.assertEqual(self.entries()[0]["tuning"], {"chunk": 171})
        failed, = [row for row in harness.read_json(self.points)["results"] if row["status"] != "ok"]
        self.assertEqual((failed["tuning"], failed["status"]), ({"chunk": 128}, "failed"))
        self.assertIn("killed by signal", failed["reason"])

    def test_a_wrong_point_is_never_the_plan(self):
        result = self.tune(script=self.landscape(behaviour="nan", bad_chunk=128))
        self.assert_exit(result, 3)
        self.assertIn("a wrong result", result.err)
        self.assertEqual(self.entries()[0]["tuning"], {"chunk": 171})

    def test_the_fastest_fails_its_last_check(self):
        # Right when it is checked first, wrong in the end.
        result = self.tune(script=self.landscape(behaviour="nan", bad_chunk=128, after=20))
        self.assert_exit(result, 3)
        self.assertIn("chunk=128: a wrong result", result.err)
        entry, = self.entries()
        self.assertEqual(entry["tuning"], {"chunk": 171})
        self.assertNotIn({"chunk": 128}, [gain["tuning"] for gain in entry["gains"]] + entry["ties"])

    def test_nothing_works(self):
        result = self.tune(script=self.landscape(behaviour="throw"))
        self.assert_exit(result, 6)
        self.assertIn("every point failed", result.err)
        self.assertFalse(self.profile.exists())

    def test_compare_pairs_tuned_with_untuned_rows(self):
        self.run_rows(rounds="8")
        os.rename(self.path("run.json"), self.path("base.json"))
        self.assert_exit(self.tune(), 0)
        self.run_rows(rounds="8")
        result = self.fdbench("compare", self.path("base.json"), self.path("run.json"))
        self.assertNotIn("GONE", result.out)
        self.assertIn("1 row has another plan by a tuning profile", result.out + result.err)
        self.assertIn("fake_other", result.out)

    def test_ctrl_c_keeps_all_and_resume_goes_on(self):
        args = ["--seq", "64,1024", "--heads", "2", "--dim", "64", "--strategy", "exhaustive", "--rounds", "500"]
        script = self.landscape()
        process = subprocess.Popen([harness.BIN, "tune", "--fake", script, *args], stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=harness.environment(**self.env))
        self.addCleanup(process.kill)
        process.stdout.readline()
        line = process.stdout.readline()  # the first shape is done
        self.assertIn(b"[1/2] 64 x 2/2", line)
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130, err)
        self.assertIn(b"1 plans and", err)
        self.assertIs(harness.read_json(self.points)["run"]["interrupted"], True)
        self.assertEqual([entry["seq"] for entry in self.entries()], [64])
        result = self.fdbench("tune", "--fake", script, *args, "--resume")
        self.assert_exit(result, 0)
        self.assertRegex(result.out, r"\[1/2\] 64 x 2/2[^\n]+samples as resumed")
        self.assertEqual([entry["seq"] for entry in self.entries()], [64, 1024])

    def two_shapes(self, *args):
        return self.fdbench("tune", "--fake", self.landscape(), "--seq", "64,1024", "--heads", "2", "--dim", "64",
                            "--strategy", "exhaustive", "--rounds", "40", *args)

    def samples(self, seq):
        return sum(len(row["time_ns"]["samples"]) for row in harness.read_json(self.points)["results"]
                   if row["problem"]["seq"] == seq)

    def test_a_second_interruption_loses_nothing(self):
        self.assert_exit(self.two_shapes(), 0)
        whole = {seq: self.samples(seq) for seq in (64, 1024)}
        self.assertIn("--budget was spent", self.two_shapes("--resume", "--budget", "0.000001").err)
        self.assertEqual({seq: self.samples(seq) for seq in (64, 1024)}, whole)
        # Of another tuning's shapes there is nothing to go on from.
        self.assert_exit(self.tune("--resume"), 0)
        self.assertEqual(self.samples(64), 0)

    def test_resume_takes_half_a_batch(self):
        self.assert_exit(self.two_shapes(), 0)
        content = harness.read_json(self.points)
        content["results"] = [row for row in content["results"] if row["problem"]["seq"] == 1024]
        for row in content["results"]:
            times = row["time_ns"]
            times["samples"] = [sample for sample in times["samples"] if sample["round"] < 21]
            times["n"] = len(times["samples"])
        self.points.write_text(json.dumps(content))
        result = self.two_shapes("--resume")
        self.assert_exit(result, 0)
        # Twenty rounds of eleven points: what is taken anew begins with a pair.
        self.assertRegex(result.out, r"\[2/2\] 1024 x 2/2[^\n]+\(220 samples as resumed\)")
        self.assertEqual(self.entries()[1]["rounds"], {"choosing": 20, "scoring": 20})

    def test_resume_from_points_of_something_else(self):
        self.assert_exit(self.tune(), 0)
        whole = harness.read_json(self.points)
        for change, part in ((lambda run: run["device"].update(uuid="GPU-1"), "the device was"),
                             (lambda run: run["tool"].update(compiler="other"), "the build was"),
                             (lambda run: run.update(inputs="other/1"), "the inputs was"),
                             (lambda run: run.update(cache="hot"), "--cache was hot"),
                             (lambda run: run.update(seed=7), "--seed was 7")):
            content = json.loads(json.dumps(whole))
            change(content["run"])
            self.points.write_text(json.dumps(content))
            result = self.tune("--resume")
            self.assert_exit(result, 2)
            self.assertIn(f"--resume {self.points}: {part}", result.err)
            self.assertEqual(harness.read_json(self.points), content)
        self.points.write_text(json.dumps(whole))
        result = self.fdbench("tune", "--fake", whole["run"]["argv"][3], *SHAPE, "--rounds", "20", "--resume")
        self.assert_exit(result, 0)
        self.assertIn("samples as resumed", result.out)

    def test_a_clock_that_changes(self):
        # Most rounds are at another clock than the first, and some points are in slow ones alone.
        for name, mhz in (("rises", [1200] * 20 + [1980] * 4000), ("falls", [1980] * 20 + [1200] * 4000)):
            with self.subTest(name):
                script = self.landscape(name)
                content = harness.read_json(script)
                pathlib.Path(script).write_text(json.dumps({**content, "clock_mhz": mhz}))
                self.assert_exit(self.tune(script=script), 0)
                entry, = self.entries()
                self.assertEqual(entry["tuning"], {"chunk": 128})
                self.assertGreater(len(entry["gains"]), 1)

    def test_a_sample_without_a_time_is_a_failure(self):
        script = self.script("zero", device={"name": "Scripted"},
                             variants={"fake_other": {"chunk_ns": {**{str(c): ns for c, ns in CHUNKS.items()}, "128": 0}}})
        self.assert_exit(self.tune(script=script), 0)
        self.assertEqual(self.entries()[0]["tuning"], {"chunk": 171})
        failed, = [row for row in harness.read_json(self.points)["results"] if row["status"] != "ok"]
        self.assertIn("took no time", failed["reason"])

    def test_a_plan_is_kept_before_it_is_told(self):
        process = subprocess.Popen([harness.BIN, "tune", "--fake", self.landscape(), *SHAPE, "--strategy", "exhaustive",
                                    "--rounds", "500"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.DEVNULL, env=harness.environment(**self.env))
        self.addCleanup(process.kill)
        process.stdout.readline()
        process.stdout.close()
        process.wait(timeout=60)
        self.assertEqual(self.entries()[0]["tuning"], {"chunk": 128})

    def test_a_budget_and_a_dry_run(self):
        result = self.tune("--dry-run")
        self.assert_exit(result, 0)
        self.assertIn("1024 x 2/2 x 64 bf16: 11 points", result.out)
        self.assertIn("nothing was measured", result.out)
        self.assertRegex(result.out, r"chunk=128 +8 x 128")
        self.assertFalse(self.profile.exists())
        result = self.tune("--budget", "0.000001")
        self.assert_exit(result, 6)
        self.assertIn("--budget was spent; shapes left out: 1", result.err)

    def test_lengths_of_one_bucket(self):
        result = self.fdbench("tune", "--fake", self.landscape(), "--seq", "1000,1024", *SHAPE[2:], "--rounds", "4")
        self.assert_exit(result, 0)
        self.assertIn("1024 x 2/2 x 64 bf16: its plan takes the place of that for 1000 tokens: both are of the bucket 725 to 1448",
                      result.err)
        self.assertEqual([entry["seq"] for entry in self.entries()], [1024])

    def test_axes_narrow_the_space(self):
        result = self.tune("-a", "chunk=256,512", "--strategy", "exhaustive")
        self.assert_exit(result, 0)
        # Rules' plans are points all the same.
        measured = {row["tuning"].get("chunk") for row in harness.read_json(self.points)["results"]}
        self.assertLessEqual({256, 512, 128}, measured)
        self.assertFalse({171, 342, 86, 43} & measured)

    def test_bad_input(self):
        for args, part in ((["--strategy", "magic"], "--strategy magic"), (["--export", "xml"], "--export xml"),
                           (["-a", "warps=4"], "no variant to tune has an axis 'warps'"),
                           (["--variant", "nope"], "--variant nope"), (["--processes", "2"], "--processes"),
                           (["--profile", "-"], "a profile is a file"),
                           (["--profile", "/dev/null"], "is a device or a pipe"), (["--json", "-", "--md", "-"], "only one of them"),
                           (["--max-time", "1"], "--max-time"), (["--fail-noisy"], "--fail-noisy"),
                           (["--profile", self.path("no/such/p.json")], "does not exist"),
                           (["--timer", "graph"], "--timer graph")):
            with self.subTest(args=args):
                result = self.tune(*args)
                self.assert_exit(result, 2)
                self.assertRegex(result.err, r"\Afdbench: [^\n]+\n\Z")
                self.assertIn(part, result.err)
        self.assert_one_line(self.fdbench("tune", "--from", self.path("absent.json")), 2, "absent.json")
        self.assert_exit(self.fdbench("run", "--profile", "p.json", "--no-profile", *SHAPE), 2)
        self.assert_exit(self.fdbench("tune", "--show", "--profile", self.path("absent.json")), 2)

    def test_a_flag_without_effect_is_refused(self):
        sweep = str(next((REPO / "results" / "nvidia-h200").glob("*-sweep-*.json")))
        for flag in (["--json", self.path("o.json")], ["--md", "-"], ["-a", "chunk=256"], ["--seq", "8"], ["--resume"],
                     ["--profile", "p.json"], ["--model", sweep], ["--budget", "9"]):
            self.assert_one_line(self.fdbench("tune", "--from", sweep, *flag), 2, "with --from nothing is measured")
        for flag in (["--resume"], ["--dry-run"], ["--json", "o.json"], ["--from", sweep], ["--rounds", "3"]):
            self.assert_one_line(self.fdbench("tune", "--show", *flag), 2, "--show only prints")
            self.assert_one_line(self.fdbench("tune", "--export", "csv", *flag), 2, "--export only prints")
        # What stands in the environment for other commands is not meant here.
        self.env.update(FDBENCH_PROCESSES="3", FDBENCH_TIMER="graph", FDBENCH_MAX_TIME="7")
        self.assert_exit(self.tune(), 0)

    def test_recorded_sweeps_that_hold_too_little(self):
        sweep = next((REPO / "results" / "nvidia-h200").glob("*-sweep-*.json"))
        self.assert_one_line(self.fdbench("tune", "--from", str(sweep), "--from", str(sweep)), 2, "is the same run as")
        self.assert_one_line(self.fdbench("tune", "--from", str(sweep), "--variant", "nope"), 2, "two measured points of nope")
        content = harness.read_json(sweep)
        for row in content["results"]:
            if row["time_ns"]:
                row["time_ns"]["samples"] = row["time_ns"]["samples"][:1]
                row["time_ns"]["n"] = len(row["time_ns"]["samples"])
        self.folder.joinpath("one.json").write_text(json.dumps(content))
        self.assert_one_line(self.fdbench("tune", "--from", self.path("one.json")), 2, "to search and to score by")

    def test_a_model(self):
        rules = self.path("rules.json")
        self.assert_exit(self.fdbench("rules", "--fake", self.landscape(), "--variant", "fake_other", "--seq", "256:4096*2",
                                      "--heads", "2", "--dim", "64", "--rounds", "4", "--json", rules), 0)
        self.assert_exit(self.tune("--model", rules), 0)
        kept = pathlib.Path(rules).read_bytes()
        for flag in ("--json", "--csv", "--md", "--profile"):
            self.assert_one_line(self.tune("--model", rules, flag, rules), 2, f"{flag} {rules}: is the file that --model reads")
        self.assertEqual(pathlib.Path(rules).read_bytes(), kept)
        self.assert_one_line(self.tune("--model", rules, "--variant", "fake_candidate"), 2, "--model", "of a variant to tune")

    def test_axis_values_that_nothing_takes_are_told(self):
        result = self.fdbench("tune", "--device", "cpu", "--variant", "cpu_split_kv", *SHAPE, "-a", "threads=1000000", "--dry-run")
        self.assert_exit(result, 0)
        self.assertIn("1024 x 2/2 x 64 bf16: -a threads: no variant takes any of these values here", result.err)

    def test_two_outputs_are_two_files(self):
        same = self.path("same")
        for other, flag in (("--json", "--json"), ("--profile", "--md")):
            result = self.tune("--md", same, other, same)
            self.assert_exit(result, 2)
            self.assertEqual(result.err, f"fdbench: {flag} {same}: two outputs name this file; give each its own\n")

    def test_the_cpu(self):
        profile = self.path("cpu.json")
        shape = ["--seq", "512", "--heads", "2", "--dim", "64", "--device", "cpu"]
        result = self.fdbench("tune", *shape, "--rounds", "8", "--profile", profile, "--variant", "cpu_split_kv",
                              "-a", "chunk=64,128,256", "-a", "threads=1,2")
        self.assert_exit(result, 0)
        entry, = harness.read_json(profile)["entries"]
        self.assertEqual(entry["key"]["variant"], "cpu_split_kv")
        path = self.path("run.json")
        self.assert_exit(self.fdbench("run", *shape, "--rounds", "2", "--variant", "cpu_split_kv", "--profile", profile,
                                      "--json", path), 0)
        self.assertEqual(harness.rows_of(path)["cpu_split_kv"]["source"], "profile:exact")
        # Tuned with other instructions: used, and said; an older profile does not say.
        run = ["run", *shape, "--rounds", "2", "--variant", "cpu_split_kv", "--profile", self.path("other.json")]
        self.assertEqual(entry["plan"]["isa"], harness.rows_of(path)["cpu_split_kv"]["plan"]["isa"])
        self.assertIn(entry["plan"]["isa"], harness.read_json(path)["run"]["device"]["isas"])
        for isa, said in (("ABACUS", 1), (None, 0)):
            other = harness.read_json(profile)
            other["entries"][0]["plan"]["isa"] = isa
            self.folder.joinpath("other.json").write_text(json.dumps(other))
            result = self.fdbench(*run, "--json", path)
            self.assert_exit(result, 0)
            self.assertEqual(result.err.count("tuned with instruction set ABACUS, and here it is "), said, result.err)
            self.assertEqual(harness.rows_of(path)["cpu_split_kv"]["source"], "profile:exact")
        # A CPU has no driver and no toolkit to name.
        for form in (["--show"], ["--export", "header"]):
            shown = self.fdbench("tune", *form, "--profile", profile)
            self.assertRegex(shown.out, r"(?m), \d+ cores(, by fdbench .*)?$")
            self.assertNotRegex(shown.out, r"driver \d|toolkit \d")

    def replayed(self, pattern):
        files = sorted(map(str, (REPO / "results" / "nvidia-h200").glob(pattern)))
        self.assertTrue(files, pattern)
        args = [word for file in files for word in ("--from", file)]
        result = self.fdbench("tune", *args)
        self.assert_exit(result, 0)
        within, shapes = map(int, re.search(r"within 1 % of the optimum: +(\d+) of (\d+)", result.out).groups())
        cost = float(re.search(r"device time of the exhaustive one: ([0-9.]+) %", result.out).group(1))
        return within, shapes, cost, result.out, args

    def test_a_replay_repeats_itself(self):
        *_, out, args = self.replayed("*-sweep-32-8.json")
        self.assertEqual(self.fdbench("tune", *args).out, out)

    # Whole spaces, every point in every round: what the search is for.
    @unittest.skipIf(harness.sanitized(), "some 30 MB of JSON take minutes there; the sweep above goes the same way")
    def test_recorded_spaces_of_a_gpu(self):
        within, shapes, cost, out, _ = self.replayed("*-tune-exhaustive.json")
        self.assertGreaterEqual(within, 0.95 * shapes)
        self.assertLessEqual(cost, 10.0)
        # The small ones among them stand at a tenth: two finalists in all final rounds.
        a_tenth = int(re.search(r"at most a tenth on (\d+) of", out).group(1))
        self.assertGreaterEqual(a_tenth, 0.9 * shapes)

    # Sweeps of 8 to 35 points, which the final rounds alone are more than a tenth of.
    @unittest.skipIf(harness.sanitized(), "sixty searches take minutes there")
    def test_recorded_sweeps_of_a_gpu(self):
        within, shapes, cost, _, _ = self.replayed("*-rules.json")
        self.assertGreaterEqual(within, 0.95 * shapes)
        self.assertLess(cost, 50.0)


if __name__ == "__main__":
    harness.main()
