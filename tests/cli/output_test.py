"""Where what is said goes: table, files, stdout for a machine, progress for a terminal, colours."""

import csv
import io
import json
import math
import os
import pathlib
import pty
import re
import select
import subprocess
import time

import harness
from harness import SHAPE, fake

RUN = ["run", "--fake", fake("ok"), *SHAPE, "--rounds", "6"]
COLOR = "\x1b[1m"
PROGRESS = re.compile(r"\[1/1\] seq 16 heads 2/2: ")


class Streams(harness.TestCase):
    def test_table_on_stdout(self):
        result = harness.fdbench(*RUN)
        self.assert_exit(result, 0)
        self.assertIn("median us", result.out)
        self.assertEqual(result.err, "")
        self.assertNotIn("\x1b", result.out)

    def test_a_machine_takes_stdout(self):
        for flag in ("--json", "--csv", "--md"):
            with self.subTest(flag):
                result = harness.fdbench(*RUN, flag, "-")
                self.assert_exit(result, 0)
                self.assertIn("median us", result.err)
                self.assertIn("fdbench 0.", result.err)
                self.assertNotIn("scripted", result.out.split("median", 1)[0])
                if flag == "--json":
                    self.assertEqual(len(json.loads(result.out)["results"]), 4)
                elif flag == "--csv":
                    rows = list(csv.DictReader(io.StringIO(result.out, newline="")))
                    self.assertEqual([row["variant"] for row in rows],
                                     ["fake_roof", "fake_reference", "fake_candidate", "fake_other"])
                else:
                    self.assertEqual(result.out.count("\n| fake_"), 4)

    def test_files_beside_stdout(self):
        result = harness.fdbench(*RUN, "--json", "-", "--csv", self.path("out.csv"))
        self.assert_exit(result, 0)
        self.assertEqual(len(json.loads(result.out)["results"]), 4)
        self.assertTrue(os.path.exists(self.path("out.csv")))
        self.assertIn(f"wrote {self.path('out.csv')}\n", result.err)

    def test_quiet(self):
        result = harness.fdbench(*RUN, "--quiet")
        self.assertEqual((result.code, result.out, result.err), (0, "", ""), result)
        result = harness.fdbench(*RUN, "--quiet", "--json", self.path("out.json"))
        self.assertEqual((result.code, result.out, result.err), (0, "", ""), result)
        result = harness.fdbench(*RUN, "--quiet", "--json", "-")
        self.assertEqual((result.code, result.err), (0, ""), result)
        self.assertEqual(len(json.loads(result.out)["results"]), 4)
        # What is wrong is said all the same.
        result = harness.fdbench(*RUN, "--quiet", "--rounds=x")
        self.assertEqual(result.code, 2)
        self.assertNotEqual(result.err, "")

    def test_help(self):
        for command in ("run", "sweep", "verify", "list"):
            result = harness.fdbench(command, "--help")
            self.assert_exit(result, 0)
            self.assertEqual(result.err, "")
            self.assertRegex(result.out, rf"Examples:\n  fdbench {command}")
            self.assertNotIn("--fake", result.out)
        self.assertNotIn("worker", harness.fdbench("--help").out)

    def test_help_examples_parse(self):
        """Every example of the help is understood: it fails, if at all, for want of a device or of memory."""
        commands = []
        for command in ("run", "sweep", "verify", "list"):
            text = harness.fdbench(command, "--help").out
            commands += [line.split()[1:] for line in text.splitlines() if line.startswith("  fdbench ")]
        self.assertGreaterEqual(len(commands), 10)
        script = self.script(device={"memory_available_bytes": 1})
        for words in commands:
            if words[0] == "list":
                self.assert_exit(harness.fdbench(*words), 0)
                continue
            with self.subTest(words=words):
                # On a fake device without memory nothing is measured; its variants have other names.
                for name, value in (("--variant", "fake_other"), ("-a", "chunk=4")):
                    words = [value if i and words[i - 1] == name else word for i, word in enumerate(words)]
                first = words.index("-a") if "-a" in words else len(words)
                words = words[:first + 2]
                result = harness.fdbench(*words, "--fake", script, cwd=str(self.folder))
                self.assert_one_line(result, 2, "available; choose a smaller shape")

    def test_a_tuning_that_takes_the_memory_is_named(self):
        words = ["sweep", "--device", "cpu", "--variant", "cpu_split_kv", "--heads", "8", "--dim", "64"]
        over = harness.fdbench(*words, "--seq", str(10**10), "-a", "chunk=4096")
        self.assert_one_line(over, 2, "choose a smaller shape")
        available = float(re.search(r"has ([0-9.]+) GB available", over.err)[1]) * 1e9
        # K and V take 2 kB a token, and so do the partial results of chunks of one: either fits alone.
        seq = int(0.7 * available / 2048)
        both = harness.fdbench(*words, "--seq", str(seq), "-a", "chunk=1,65536")
        self.assert_one_line(both, 2, "cpu_split_kv chunk=1 alone takes ")
        # Neither of two fits, and the shape does.
        two = harness.fdbench(*words, "--seq", str(seq), "-a", "chunk=1,2,65536")
        self.assert_one_line(two, 2, "workspaces take ", "most of all cpu_split_kv chunk=1, ")

    def test_version(self):
        result = harness.fdbench("--version")
        self.assert_exit(result, 0)
        self.assertRegex(result.out, r"\Afdbench \d+\.\d+\.\d+ \(.+, .+, CUDA .+\)\n\Z")


class Out(harness.TestCase):
    def names(self, folder):
        return sorted(path.name for path in pathlib.Path(folder).iterdir())

    def test_dated_names(self):
        folder = self.path("deep/results")
        for runs in (1, 2, 3):
            result = harness.fdbench(*RUN, "--out", folder)
            self.assert_exit(result, 0)
            names = self.names(folder)
            # Also of runs within one second, none writes over another's.
            self.assertEqual(len(names), 2 * runs, names)
            for name in names:
                self.assertRegex(name, r"\A\d{8}T\d{6}Z-run-[^/]+\.(json|csv)\Z")
                self.assertIn(name.rsplit(".", 1)[0], "".join(names))
            written = re.findall(r"^wrote (.+)$", result.out, re.M)
            self.assertEqual(len(written), 2)
            self.assertEqual(len(harness.read_json(written[0])["results"]), 4)

    def test_a_link_is_followed_and_a_mode_kept(self):
        target = self.folder / "target"
        target.write_text("old")
        target.chmod(0o640)
        os.symlink(target, self.path("link"))
        self.assert_exit(harness.fdbench(*RUN, "--json", self.path("link")), 0)
        self.assertTrue(os.path.islink(self.path("link")))
        self.assertEqual(len(harness.read_json(target)["results"]), 4)
        self.assertEqual(target.stat().st_mode & 0o777, 0o640)

    def test_names_with_anything_in_them(self):
        path = self.path("a b;c'd\"e\u00e9")
        self.assert_exit(harness.fdbench(*RUN, "--json", path), 0)
        self.assertEqual(harness.read_json(path)["run"]["argv"][-1], path)

    def test_argv_that_is_not_text(self):
        path = os.fsencode(self.path("bytes-")) + b"\xff"
        done = subprocess.run([harness.BIN.encode(), *[word.encode() for word in RUN], b"--json", path], capture_output=True,
                              env=harness.environment(), timeout=60)
        self.assertEqual(done.returncode, 0, done)
        with open(path, "rb") as file:
            self.assertEqual(len(json.loads(file.read().decode())["results"]), 4)


class Terminal(harness.TestCase):
    def on_terminal(self, args, streams, env=None, columns=None):
        """Runs with `streams` ("out", "err") on a pseudo-terminal; returns the exit code and what that saw."""
        master, slave = pty.openpty()
        try:
            if columns:
                import fcntl
                import struct
                import termios
                fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
            process = subprocess.Popen([harness.BIN, *args], stdin=subprocess.DEVNULL,
                                       stdout=slave if "out" in streams else subprocess.DEVNULL,
                                       stderr=slave if "err" in streams else subprocess.DEVNULL,
                                       env=harness.environment(**(env or {})))
        finally:
            os.close(slave)
        seen = b""
        end = time.monotonic() + 60
        try:
            while time.monotonic() < end:
                if not select.select([master], [], [], 1.0)[0]:
                    continue
                try:
                    chunk = os.read(master, 65536)
                except OSError:  # the other end is closed
                    break
                if not chunk:
                    break
                seen += chunk
        finally:
            process.kill() if time.monotonic() >= end else None
            os.close(master)
        return process.wait(timeout=60), seen.decode()

    def test_progress_on_a_terminal(self):
        code, seen = self.on_terminal(RUN, ["err"])
        self.assertEqual(code, 0)
        self.assertRegex(seen, PROGRESS)
        self.assertTrue(seen.endswith("\r\x1b[K"), "the line is taken away at the end")

    def test_progress_of_the_doctors_noise_floor(self):
        code, seen = self.on_terminal(["doctor", *RUN[1:]], ["err"])
        self.assertEqual(code, 0)
        self.assertIn("[1/1] process 2/10 seq 16 heads 2/2: ", seen)

    def test_progress_names_round_and_best(self):
        script = self.script(sample_s=0, variants={"fake_candidate": {"ns": [1000, 2000, 3000]}})
        code, seen = self.on_terminal(["run", "--fake", script, "--seq", "1024", "--heads", "8", "--rounds", "40"], ["err"])
        self.assertEqual(code, 0)
        self.assertRegex(seen, r"\[1/1\] seq 1024 heads 8/8: round \d+, best so far fake_(candidate|other) 1\.0 us")

    def test_progress_tells_the_time_left(self):
        code, seen = self.on_terminal([*RUN, "--processes", "2"], ["err"])
        self.assertEqual(code, 0)
        self.assertRegex(seen, r"\[1/1\] process 2/2 seq 16 .*, about \d+ s left")

    def test_progress_fits_the_terminal(self):
        script = self.script(sample_s=0, variants={"fake_candidate": {"ns": [1000, 2000, 3000]}})
        args = ["run", "--fake", script, "--seq", "512", "--heads", "8", "--rounds", "40"]
        code, seen = self.on_terminal(args, ["err"], columns=30)
        self.assertEqual(code, 0)
        lines = seen.split("\r\x1b[K")
        self.assertGreater(len(lines), 3)
        for line in lines:
            self.assertLess(len(line), 30)

    def test_no_progress_when_quiet(self):
        self.assertEqual(self.on_terminal([*RUN, "--quiet"], ["out", "err"]), (0, ""))

    def test_no_progress_elsewhere(self):
        code, seen = self.on_terminal(RUN, ["out"])
        self.assertEqual(code, 0)
        self.assertNotRegex(seen, PROGRESS)

    def test_progress_and_table_do_not_mix(self):
        code, seen = self.on_terminal(RUN, ["out", "err"])
        self.assertEqual(code, 0)
        for line in seen.replace("\r\n", "\n").split("\n"):
            if "median us" in line or "fake_other  " in line:
                self.assertNotRegex(line.rsplit("\x1b[K", 1)[-1], PROGRESS)

    def test_colours(self):
        for env, args, streams, coloured in (({}, [], ["out"], True), ({}, ["--no-color"], ["out"], False),
                                             ({"NO_COLOR": "1"}, [], ["out"], False), ({"NO_COLOR": ""}, [], ["out"], True),
                                             ({}, ["--json", "-"], ["err"], True),
                                             ({"NO_COLOR": "x"}, ["--json", "-"], ["err"], False)):
            with self.subTest(env=env, args=args):
                code, seen = self.on_terminal([*RUN, *args], streams, env)
                self.assertEqual(code, 0)
                self.assertIn("median us", seen)
                self.assertEqual(COLOR in seen, coloured)

    def test_failures_are_red(self):
        code, seen = self.on_terminal(["run", "--fake", fake("throws"), *SHAPE, "--rounds", "2"], ["out"])
        self.assertEqual(code, 6)
        self.assertRegex(seen, "\x1b\\[31mfailed: launch failed")
        self.assertRegex(seen, "\x1b\\[33mfew_rounds")


class OnTheCpu(harness.TestCase):
    """A short true run: what Python's own json and csv modules read is the same, and makes sense."""

    # CSV column -> where JSON has it.
    SAME = {"seq": ("problem", "seq"), "heads": ("problem", "heads"), "kv_heads": ("problem", "kv_heads"),
            "dim": ("problem", "dim"), "n": ("time_ns", "n"), "median_ns": ("time_ns", "median"),
            "median_ci95_lo_ns": ("time_ns", "ci95", 0), "median_ci95_hi_ns": ("time_ns", "ci95", 1),
            "min_ns": ("time_ns", "min"), "q1_ns": ("time_ns", "q1"), "q3_ns": ("time_ns", "q3"), "max_ns": ("time_ns", "max"),
            "prepare_ns": ("prepare_ns",), "bytes": ("bytes",), "roof_share": ("roof_share",), "speedup": ("speedup",),
            "speedup_ci95_lo": ("speedup_ci95", 0), "speedup_ci95_hi": ("speedup_ci95", 1), "rel_l2": ("accuracy", "rel_l2")}

    def test_run(self):
        json_path, csv_path = self.path("out.json"), self.path("out.csv")
        result = harness.fdbench("run", "--device", "cpu", "--seq", "256,1000", "--heads", "8", "--kv-heads", "2", "--rounds",
                                 "6", "--json", json_path, "--csv", csv_path, timeout=300)
        self.assert_exit(result, 0)
        document = harness.read_json(json_path)
        with open(csv_path, encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        results = document["results"]
        self.assertEqual(len(rows), len(results))
        self.assertEqual(document["run"]["device"]["kind"], "cpu")
        self.assertEqual(len(set(row["id"] for row in results)), len(results))
        self.assertGreaterEqual(len(results), 6)
        for row, record in zip(rows, results):
            self.assertEqual((row["id"], row["variant"], row["status"]), (record["id"], record["variant"], record["status"]))
            self.assertEqual(record["status"], "ok", record)
            for column, place in self.SAME.items():
                value = record
                for step in place:
                    value = value if value is None else value[step]
                self.assertEqual(None if row[column] == "" else float(row[column]), value, column)
            self.assertTrue(math.isclose(float(row["bandwidth_GBps"]) * 1e9, record["bytes_per_s"], rel_tol=1e-12))
            self.check_figures(record)
            table_line = next(line for line in result.out.splitlines() if line.split()[:1] == [record["variant"]])
            self.assertIn(record["role"], table_line)

    def check_figures(self, record):
        time_ns, problem = record["time_ns"], record["problem"]
        samples = [sample["t"] for sample in time_ns["samples"] if not sample["set_aside"]]
        self.assertEqual((time_ns["n"], time_ns["stop"]), (len(samples), "fixed_rounds"))
        self.assertEqual((time_ns["min"], time_ns["max"]), (min(samples), max(samples)))
        self.assertLessEqual(time_ns["ci95"][0], time_ns["median"])
        self.assertGreaterEqual(time_ns["ci95"][1], time_ns["median"])
        moved = 2 * problem["dim"] * (2 * problem["heads"] + 2 * problem["seq"] * problem["kv_heads"])
        self.assertEqual(record["bytes"], moved)
        self.assertTrue(math.isclose(record["bytes_per_s"], moved / (time_ns["median"] * 1e-9), rel_tol=1e-12))
        if record["role"] == "roof":
            self.assertEqual(record["roof_share"], 1)
            self.assertIsNone(record["accuracy"])
        else:
            self.assertEqual(record["accuracy"]["oracle"], "cpu_oracle")
            self.assertLess(record["accuracy"]["rel_l2"], 1e-2)
        if record["role"] == "reference":
            self.assertEqual(record["speedup"], 1)

    def test_verify(self):
        result = harness.fdbench("verify", "--device", "cpu", "--seq", "1,63,64,65", "--heads", "4", "--kv-heads", "2", "--dim",
                                 "64", "--json", "-", timeout=300)
        self.assert_exit(result, 0)
        results = json.loads(result.out)["results"]
        self.assertEqual({row["status"] for row in results}, {"ok"})
        self.assertEqual({row["time_ns"] is None for row in results}, {True})

    def test_sweep(self):
        result = harness.fdbench("sweep", "--device", "cpu", "--variant", "cpu_split_kv", "--seq", "1024", "--heads", "4", "-a",
                                 "chunk=256,512", "-a", "threads=1", "--rounds", "3", "--json", "-", timeout=300)
        self.assert_exit(result, 0)
        swept = [row for row in json.loads(result.out)["results"] if row["variant"] == "cpu_split_kv"]
        self.assertEqual([row["tuning"] for row in swept], [{"chunk": 256, "threads": 1}, {"chunk": 512, "threads": 1}])
        self.assertEqual([row["plan"]["chunk"] for row in swept], [256, 512])
        self.assertEqual({row["source"] for row in swept}, {"flag"})


if __name__ == "__main__":
    harness.main()
