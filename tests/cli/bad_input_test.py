"""What a user gets wrong: exit 2 (or 7, or 8) and one line that names the flag, what was wrong and what would be right."""

import os
import subprocess
import unittest

import harness
from harness import SHAPE, fake

HUGE = "9" * 30


class Usage(harness.TestCase):
    def refused(self, args, *parts, code=2, env=None):
        with self.subTest(args=args, env=env):
            self.assert_one_line(harness.fdbench(*args, env=env), code, *parts)

    def run_refused(self, args, *parts, **more):
        self.refused(["run", "--fake", fake("ok"), *args], *parts, **more)

    def test_commands(self):
        self.refused(["rnu"], "unknown command 'rnu'", "did you mean run?", "fdbench --help")
        self.refused(["frobnicate"], "unknown command 'frobnicate'", "fdbench --help")
        self.refused(["--seq", "8192"], "unknown flag --seq", "fdbench run --seq")
        self.refused(["list", "banana"], "list banana", "variants, rules, suites or devices")
        self.refused(["list", "devices", "rules"], "unexpected argument 'rules'", "fdbench list --help")
        self.refused(["list", "--json"], "--json", "fdbench list variants --json")

    def test_no_command_shows_the_help(self):
        result = harness.fdbench()
        self.assert_exit(result, 2)
        self.assertIn("fdbench run --seq 8192 --heads 32", result.out)
        self.assertEqual(result.err, "")

    def test_flags(self):
        for command in ("run", "sweep", "verify"):
            self.refused([command, "--haeds", "3"], "unknown flag --haeds", "did you mean --heads?",
                         f"fdbench {command} --help")
        self.refused(["run", "--kv-head=4"], "unknown flag --kv-head", "did you mean --kv-heads?")
        self.refused(["run", "--zzzzzzzz"], "unknown flag --zzzzzzzz", "fdbench run --help")
        self.refused(["run", "-x"], "unknown flag -x")
        self.refused(["verify", "--rounds", "3"], "unknown flag --rounds", "fdbench verify --help")
        self.refused(["run", "8192"], "unexpected argument '8192'")

    def test_values_that_are_missing(self):
        for flag in ("--seq", "--heads", "--kv-heads", "--dim", "--dtype", "--suite", "--device", "--rounds", "--max-noise",
                     "--max-time", "--processes", "--budget", "--seed", "--timeout", "--cache", "--timer", "--json", "--csv",
                     "--md", "--out", "--variant"):
            self.run_refused([flag], flag, "value is missing")
            self.run_refused([flag, "--quiet", "--no-color"], flag, "value is missing before --quiet")
            self.run_refused([flag, ""], flag, "is empty")
        self.refused(["sweep", "--variant", "x", "-a"], "--axis", "value is missing")

    def test_values_that_are_too_many(self):
        self.run_refused(["--seq", "16", "--seq", "32"], "--seq", "more than once")
        self.run_refused(["--seq", "16", "32"], "unexpected argument '32'")
        self.run_refused([*SHAPE, "--quiet=3"], "--quiet takes no value")
        self.run_refused([*SHAPE, "--no-color=banana"], "--no-color takes no value")

    def test_extents(self):
        forms = "give 8192, a list 1024,8192, or a range 1024:131072*2 or 4096:16384:4096"
        for flag in ("--seq", "--heads", "--kv-heads", "--dim"):
            start = [] if flag == "--seq" else ["--seq", "16"]
            refuse = lambda text, *parts: self.run_refused([*start, flag, text], f"{flag} {text}: ", *parts)
            refuse("0", "must be at least 1, not 0")
            refuse("-1", "must be at least 1, not -1")
            refuse("abc", "'abc' is not a whole number", forms)
            refuse("8192,", "a number is missing", forms)
            refuse(",8192", "a number is missing", forms)
            refuse(",", "a number is missing")
            refuse("1,,2", "a number is missing")
            refuse("4096:1024", "the range starts above its end: 4096 > 1024")
            refuse("4096:1024*2", "the range starts above its end")
            refuse("1e9x", "'1e9x' is not a whole number")
            refuse("1e9", "'1e9' is not a whole number")
            refuse("8k", "'8k' is not a whole number")
            refuse("1.5", "'1.5' is not a whole number")
            refuse("+5", "'+5' is not a whole number")
            refuse(" 5", "' 5' is not a whole number")
            refuse("0x10", "'0x10' is not a whole number")
            refuse(HUGE, f"'{HUGE}' is too large")
            refuse("9223372036854775808", "is too large")
            refuse("1:10", "the range has no step; write 1:10*2 or 1:10:1")
            refuse("*0", "'*0' is not a whole number")
            refuse("1:8*0", "must be at least 1, not 0")
            refuse("1:8*1", "the factor of a range must be at least 2")
            refuse("1:8:0", "must be at least 1, not 0")
            refuse("1:8:", "a number is missing")
            refuse(":8", "a number is missing")
            refuse("1:", "a number is missing")
            refuse("1:8*2*2", "'2*2' is not a whole number")
            refuse("1:9223372036854775807:1", "more than 4096 values")
            refuse("\u0663", "is not a whole number")

    def test_messages_stay_on_one_line(self):
        self.run_refused(["--seq", "16\n32"], "--seq 16 32: ")
        self.run_refused(["--seq", "\x1b[31m8"], "--seq  [31m8: ")
        self.run_refused(["--suite", "no\nsuch"], "--suite no such")
        self.run_refused(["--json", "no\nsuch/file"], "--json no such/file")
        self.refused(["r\nn"], "unknown command 'r n'")

    def test_shapes(self):
        self.run_refused(["--seq", "16", "--heads", "33", "--kv-heads", "8"], "--heads 33 --kv-heads 8",
                         "the KV heads must divide the query heads")
        self.run_refused(["--seq", "16", "--dim", "100"], "--dim 100", "64, 96, 128, 192 or 256")
        self.run_refused(["--seq", "16", "--dim", "64,100"], "--dim 100")
        self.run_refused(["--seq", "16", "--dtype", "fp8"], "--dtype fp8", "bf16 or fp16")
        self.run_refused(["--heads", "8"], "--seq is missing")
        self.run_refused(["--dtype", "fp16"], "--seq is missing")
        self.run_refused(["--seq", "1:4096:1", "--heads", "1:4"], "--heads")
        self.run_refused(["--seq", "1:4096:1", "--heads", "1,2"], "more than 4096 shapes", "--seq", "--heads")
        self.run_refused(["--seq", "9223372036854775807"], "--seq 9223372036854775807", "2^62 bytes")
        self.run_refused(["--seq", "4611686018427387904", "--heads", "9223372036854775807"], "2^62 bytes")

    def test_suites(self):
        self.run_refused(["--suite", "nonesuch"], "--suite nonesuch", "there are", "default", "FILE.json")
        self.run_refused(["--suite", self.path("none.json")], "none.json", "No such file or directory")
        self.run_refused(["--suite", str(self.folder) + "/"], "is a directory")
        self.run_refused(["--suite", "ci", "--seq", "16"], "--suite ci", "--seq")
        self.run_refused(["--suite", "ci", "--dtype", "fp16"], "--suite ci", "--dtype")

        path = self.path("suite.json")

        def broken(text, *parts):
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            self.run_refused(["--suite", path], path, *parts)

        head = '{"schema": "fdbench.suite/1.0", "name": "x", "description": "y",\n'
        broken("", "empty")
        broken("{\n  nonsense", f"{path}:2:3: ")
        broken(head + ' "problems": [{"seq": 16 "heads": 2}]}', f"{path}:2:26: ")
        broken(head + ' "problems": [{"seq": 0, "heads": 2}]}', "problems[0].seq")
        broken(head + ' "problems": [{"seq": 16, "heads": 33, "kv_heads": 8}]}', "problems[0]")
        broken(head + ' "problems": [{"seq": 16, "haeds": 2}]}', "haeds")
        broken(head + ' "problems": []}', "problems")
        broken('{"schema": "fdbench.result/1.0"}', "fdbench.suite")
        broken("[" * 100000, "suite.json")

    def test_variants(self):
        everyone = "there are fake_candidate, fake_other, fake_reference, fake_roof"
        self.run_refused([*SHAPE, "--variant", "nonesuch"], "--variant nonesuch", everyone)
        self.run_refused([*SHAPE, "--variant", "fake_candidate,nonesuch"], "--variant nonesuch")
        self.run_refused([*SHAPE, "--variant", "fake_oracle"], "--variant fake_oracle", "never measured", everyone)
        self.refused(["run", *SHAPE, "--device", "cpu", "--variant", "nonesuch"], "--variant nonesuch", "cpu_split_kv")
        self.refused(["verify", *SHAPE, "--device", "cpu", "--variant", "nonesuch"], "--variant nonesuch")

    def test_sweeps(self):
        def refused(args, *parts):
            self.refused(["sweep", "--fake", fake("ok"), *SHAPE, *args], *parts)

        refused([], "--variant is missing")
        refused(["--variant", "fake_other"], "-a is missing", "-a chunk=64:4096*2")
        refused(["--variant", "nonesuch", "-a", "chunk=4"], "--variant nonesuch", "fdbench list variants")
        refused(["--variant", "fake_oracle", "-a", "chunk=4"], "--variant fake_oracle")
        refused(["--variant", "fake_other", "-a", "chunk"], "-a chunk", "NAME=VALUES")
        refused(["--variant", "fake_other", "-a", "=4"], "-a =4", "NAME=VALUES")
        refused(["--variant", "fake_other", "-a", "chunk=4,"], "-a chunk=4,: ", "a number is missing")
        refused(["--variant", "fake_other", "-a", "chink=4"], "-a chink=4", "no axis 'chink'", "it has chunk")
        refused(["--variant", "fake_candidate", "-a", "chunk=4"], "-a chunk=4", "it has none")
        refused(["--variant", "fake_other", "-a", "chunk=4", "-a", "chunk=8"], "chunk is given twice")

    def test_numbers(self):
        whole = {"--rounds": "1 ... 100000", "--processes": "1 ... 1000", "--seed": "0 ... 9223372036854775807"}
        for flag, limits in whole.items():
            for text in ("x", "-1", "1.5", "1e3", "3x", "0x3", HUGE, " 3"):
                self.run_refused([*SHAPE, flag, text], f"{flag} {text}: must be a whole number, {limits}")
        for flag, text in (("--rounds", "0"), ("--rounds", "100001"), ("--processes", "0"), ("--processes", "1001")):
            self.run_refused([*SHAPE, flag, text], f"{flag} {text}: ")
        for flag in ("--max-noise", "--max-time", "--budget", "--timeout"):
            for text in ("x", "0", "-1", "nan", "inf", "-inf", "1e999", "1e10", "3s", "1,5"):
                self.run_refused([*SHAPE, flag, text], f"{flag} {text}: must be a number above 0")

    def test_words(self):
        self.run_refused([*SHAPE, "--cache", "warm"], "--cache warm: must be cold or hot")
        self.run_refused([*SHAPE, "--timer", "clock"], "--timer clock: must be events or graph")
        for device in ("banana", "CPU", "cuda:", "cuda:x", "cuda:-1", "cuda:1x", "cuda: 1", f"cuda:{HUGE}"):
            self.refused(["run", *SHAPE, "--device", device], f"--device {device}: must be auto, cpu, cuda or cuda:N")

    def test_graph_timer_on_the_cpu(self):
        self.refused(["run", *SHAPE, "--device", "cpu", "--timer", "graph"], "--timer graph", "no graph timer",
                     "--timer events")

    def test_environment(self):
        bad = {"FDBENCH_ROUNDS": "x", "FDBENCH_PROCESSES": "0", "FDBENCH_MAX_NOISE": "nan", "FDBENCH_MAX_TIME": "-1",
               "FDBENCH_BUDGET": "soon", "FDBENCH_SEED": "-1", "FDBENCH_CACHE": "warm", "FDBENCH_TIMER": "clock",
               "FDBENCH_DEVICE": "banana"}
        good = {"--rounds": "2", "--processes": "1", "--max-noise": "1", "--max-time": "1", "--budget": "60", "--seed": "1",
                "--cache": "cold", "--timer": "events", "--device": "cpu"}
        for variable, value in bad.items():
            # The blame is the variable's: nobody typed the flag.
            self.run_refused(SHAPE, f"{variable}={value}: must be", env={variable: value})
            flag = "--" + variable[len("FDBENCH_"):].lower().replace("_", "-")
            with self.subTest(flag=flag):
                # A flag wins, and then the variable isn't even read.
                result = harness.fdbench("run", "--fake", fake("ok"), *SHAPE, flag, good[flag], env={variable: value})
                self.assert_exit(result, 0)
            self.run_refused([*SHAPE, flag, "?"], f"{flag} ?: must be", env={variable: good[flag]})
        with self.subTest("other commands don't read them"):
            self.assert_exit(harness.fdbench("list", "rules", env={"FDBENCH_ROUNDS": "x"}), 0)

    def test_environment_is_read(self):
        for env, args, expected in (({"FDBENCH_ROUNDS": "3"}, [], 3), ({"FDBENCH_ROUNDS": "3"}, ["--rounds", "4"], 4),
                                    ({"FDBENCH_ROUNDS": "3"}, ["--rounds=5"], 5), ({"FDBENCH_ROUNDS": ""}, [], 6)):
            with self.subTest(env=env, args=args):
                path = self.path("out.json")
                result = harness.fdbench("run", "--fake", fake("ok"), *SHAPE, "--json", path, *args, env=env)
                self.assert_exit(result, 0)
                self.assertEqual(harness.rows_of(path)["fake_roof"]["time_ns"]["n"], expected)

    def test_fake_script(self):
        self.refused(["run", *SHAPE, "--fake", self.path("none.json")], "none.json", "No such file")
        path = self.script(variants={"fake_nobody": {}})
        self.refused(["run", *SHAPE, "--fake", path], path, "fake_nobody")


class Memory(harness.TestCase):
    def test_fake_device(self):
        path = self.script(device={"name": "Small", "memory_bytes": 1 << 20, "memory_available_bytes": 1 << 20})
        result = harness.fdbench("run", "--fake", path, "--seq", "8192", "--heads", "32", "--kv-heads", "8", "--json",
                                 self.path("out.json"))
        # K and V, 128 rows of poison after each, Q; twice the cache of 32 MiB to flush; outputs and guards are less than 1 MB.
        self.assert_one_line(result, 2, "--seq 8192 --heads 32 --kv-heads 8 --dim 128", "needs 0.10 GB of memory",
                             "Small has 0.00 GB available", "smaller shape")
        self.assertEqual(os.listdir(self.folder), ["script.json"])

    def test_one_shape_of_many(self):
        path = self.script(device={"memory_available_bytes": 1 << 28})
        result = harness.fdbench("run", "--fake", path, "--seq", "64:1048576*4", "--heads", "32")
        self.assert_one_line(result, 2, "--seq 16384 ")

    def test_cpu(self):
        for seq in ("100000000000", "10000000000000"):
            result = harness.fdbench("run", "--device", "cpu", "--seq", seq)
            self.assert_one_line(result, 2, f"--seq {seq} --heads 32 --kv-heads 32 --dim 128", "needs", "GB of memory",
                                 "available", "smaller shape")

    def test_counts_that_overflow(self):
        for heads in ("1000000000000", "4503599627370496"):
            for device in (["--device", "cpu"], ["--fake", fake("ok")]):
                result = harness.fdbench("run", *device, "--seq", "1", "--heads", heads, "--dim", "64")
                self.assert_one_line(result, 2, f"--heads {heads} ", "GB of memory")
                self.assertNotIn("needs -", result.err)

    def test_workspaces_that_overflow(self):
        """Few KV heads keep Q, K and V countable, and not what plans take beside them."""
        cut = ["--variant", "cpu_split_kv", "-a", "chunk=1"]
        for heads, seq in ((2**50, 1), (2**50, 64), (2**26, 2**26), (2**22, 2**25)):
            shape = ["--seq", str(seq), "--heads", str(heads), "--kv-heads", "1", "--dim", "64"]
            for words in (["run"], ["verify"], ["tune"], ["sweep", *cut]):
                with self.subTest(words=words, shape=shape):
                    result = harness.fdbench(*words, *shape, "--device", "cpu")
                    self.assert_one_line(result, 2, f"--heads {heads} ", "GB of memory", "choose a smaller shape")
        # K and V past any memory are not made good by a workspace that is larger still.
        result = harness.fdbench("sweep", *cut, "--device", "cpu", "--seq", str(2**48), "--heads", "1", "--dim", "64")
        self.assert_one_line(result, 2, "choose a smaller shape")
        self.assert_one_line(harness.fdbench("explain", *cut, "--seq", "1", "--heads", str(2**50), "--kv-heads", "1"), 2,
                             "its partial results could exceed 2^62 bytes")

    @unittest.skipIf(harness.sanitized(), "needs a limit on addresses")
    def test_address_space(self):
        """Memory that is counted but can't be had is a failed row, not a crash."""
        limit = 'ulimit -v 400000; exec "$0" "$@"'
        done = subprocess.run(["sh", "-c", limit, harness.BIN, "run", "--fake", fake("ok"), "--seq", "2097152", "--heads", "1",
                               "--dim", "64", "--rounds", "1"], capture_output=True, env=harness.environment(), timeout=60)
        result = harness.Result(done.returncode, done.stdout.decode(), done.stderr.decode())
        self.assert_exit(result, 6)
        self.assertIn("failed: no memory for", result.out)


class NoDevice(harness.TestCase):
    """Where there is no GPU, or none so numbered: exit 7, saying what was looked for."""

    def test_cuda(self):
        for spec in ("cuda", "cuda:0", "cuda:99"):
            if spec != "cuda:99" and "none:" not in harness.fdbench("list", "devices").out:
                continue  # there is one
            with self.subTest(spec):
                result = harness.fdbench("run", *SHAPE, "--device", spec, "--json", self.path("out.json"))
                self.assert_one_line(result, 7, f"--device {spec}: ", "CUDA device", "--device cpu measures the CPU")
                self.assertEqual(os.listdir(self.folder), [])

    def test_auto_says_why(self):
        if "none:" not in harness.fdbench("list", "devices").out:
            self.skipTest("there is a CUDA device")
        result = harness.fdbench("verify", *SHAPE)
        self.assert_exit(result, 0)
        self.assertRegex(result.out.splitlines()[0], r"^fdbench \S+: cpu .*: no CUDA device: \S")


class Files(harness.TestCase):
    def refused(self, args, *parts, code=2):
        """Found out before anything is measured: this script would hang."""
        with self.subTest(args=args):
            result = harness.fdbench("run", "--fake", fake("hang"), *SHAPE, *args, timeout=20)
            self.assert_one_line(result, code, *parts)

    def test_not_writable(self):
        for flag in ("--json", "--csv", "--md"):
            missing = self.path("missing/out")
            self.refused([flag, missing], f"{flag} {missing}: ", "does not exist")
            self.refused([flag, str(self.folder)], f"{flag} {self.folder}: ", "is a directory")
            under_file = self.path("file") + "/out"
            open(self.path("file"), "w").close()
            self.refused([flag, under_file], f"{flag} {under_file}: ", "Not a directory")
            self.refused([flag, "/proc/out"], f"{flag} /proc/out: ")
        self.refused(["--out", under_file], f"--out {under_file}: ", "cannot be made")
        self.refused(["--out", self.path("file")], "--out", "cannot be made")

    @unittest.skipIf(os.geteuid() == 0, "root may write everywhere")
    def test_read_only(self):
        path = self.folder / "out"
        path.write_text("old")
        path.chmod(0o444)
        self.refused(["--json", str(path)], f"--json {path}: ", "Permission denied")
        self.folder.chmod(0o555)
        self.addCleanup(self.folder.chmod, 0o755)
        self.refused(["--json", self.path("new")], "--json", "Permission denied")
        self.refused(["--out", self.path("new")], "--out", "Permission denied")
        self.assertEqual(path.read_text(), "old")

    def test_one_stdout(self):
        self.refused(["--json", "-", "--csv", "-"], "--json", "--csv", "only one")
        self.refused(["--csv", "-", "--md", "-"], "--csv", "--md", "only one")

    def test_one_file_for_two(self):
        path = self.path("out")
        self.refused(["--json", path, "--csv", path], f"--csv {path}", "two outputs name this file")
        os.symlink(path, self.path("link"))
        self.refused(["--json", path, "--csv", self.path("link")], "two outputs name this file")
        self.assertEqual(os.listdir(self.folder), ["link"])

    def test_two_runs_of_one_file(self):
        path = self.path("out")
        first = subprocess.Popen([harness.BIN, "run", "--fake", fake("hang"), *SHAPE, "--json", path],
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=harness.environment())
        try:
            first.stdout.readline()  # it has begun
            self.refused(["--json", path], f"--json {path}: ", f"another fdbench (process {first.pid})",
                         "wait for it or name another file")
        finally:
            first.kill()
            first.communicate()
        # Whoever died holds nothing.
        result = harness.fdbench("run", "--fake", fake("ok"), *SHAPE, "--json", path)
        self.assert_exit(result, 0)
        self.assertEqual(len(harness.read_json(path)["results"]), 4)

    def test_old_files_stay_until_there_is_something_new(self):
        path = self.folder / "out"
        path.write_text("old")
        self.refused(["--json", str(path), "--csv", self.path("missing/x")], "--csv")
        self.assertEqual(path.read_text(), "old")


class FullDisk(harness.TestCase):
    """Exit 8: a result that could not be written."""

    RUN = ["run", "--fake", fake("ok"), *SHAPE, "--rounds", "2"]

    def test_file(self):
        for flag in ("--json", "--csv", "--md"):
            with self.subTest(flag):
                result = harness.fdbench(*self.RUN, flag, "/dev/full")
                self.assert_exit(result, 8)
                self.assertEqual(result.err, "fdbench: cannot write /dev/full: No space left on device\n")
                self.assertIn("fake_candidate", result.out)
                self.assertNotIn("wrote", result.out)

    def test_comes_before_a_wrong_result(self):
        result = harness.fdbench("run", "--fake", fake("incorrect"), *SHAPE, "--rounds", "2", "--json", "/dev/full")
        self.assert_exit(result, 8)

    def test_stdout(self):
        told = "fdbench: stdout could not be written: No space left on device\n"
        for args in (self.RUN, [*self.RUN, "--json", "-"], [*self.RUN, "--csv", "-"], ["list"], ["list", "variants", "--json"],
                     ["--help"], ["--version"], ["run", "--help"]):
            with self.subTest(args=args), open("/dev/full", "wb") as full:
                result = harness.fdbench(*args, stdout=full)
                self.assert_exit(result, 8)
                self.assertTrue(result.err.endswith(told), result)

    def test_results_outlive_a_full_stdout(self):
        path = self.path("out.json")
        with open("/dev/full", "wb") as full:
            result = harness.fdbench("run", "--fake", fake("ok"), "--seq", "16,32", "--heads", "2", "--dim", "64", "--rounds",
                                     "2", "--json", path, stdout=full)
        self.assert_exit(result, 8)
        self.assertEqual(len(harness.read_json(path)["results"]), 8)

    def test_stderr_matters_to_nobody(self):
        with open("/dev/full", "wb") as full:
            self.assert_exit(harness.fdbench(*self.RUN, stderr=full), 0)
            self.assert_exit(harness.fdbench("rnu", stderr=full), 2)
            self.assert_exit(harness.fdbench(*self.RUN, "--csv", "-", stderr=full), 0)

    def test_closed_descriptors(self):
        def closed(redirection, args):
            return subprocess.run(["sh", "-c", f'exec "$0" "$@" {redirection}', harness.BIN, *args], capture_output=True,
                                  env=harness.environment(), timeout=60)

        done = closed(">&-", self.RUN)
        self.assertEqual(done.returncode, 8, done)
        self.assertIn(b"stdout could not be written", done.stderr)
        done = closed("<&- 2>&-", self.RUN)
        self.assertEqual((done.returncode, done.stderr), (0, b""), done)
        self.assertEqual(done.stdout.count(b"\n"), 8, done)


if __name__ == "__main__":
    harness.main()
