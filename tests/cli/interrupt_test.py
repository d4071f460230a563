"""Ctrl-C and worse: what was measured is kept, the exit code is 130, and no worker stays behind."""

import os
import pathlib
import signal
import subprocess
import time

import harness
from harness import SHAPE, fake


def children(pid):
    """Living children of a process: for the program, its worker."""
    found = []
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = stat.read_text().rsplit(")", 1)[1].split()[:2]
        except OSError:
            continue
        if int(parent) == pid and state != "Z":
            found.append(int(stat.parent.name))
    return found


def is_alive(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


class Interrupts(harness.TestCase):
    def wait_for(self, condition, what, seconds=60):
        end = time.monotonic() + seconds
        while not condition():
            self.assertLess(time.monotonic(), end, f"waited in vain for {what}")
            time.sleep(0.02)

    def start(self, *args, **popen):
        process = subprocess.Popen([harness.BIN, *args], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, env=harness.environment(), **popen)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def worker_of(self, process, seconds=60):
        """The worker that measures: the survey's ends before the first line is said."""
        process.stdout.readline()
        self.wait_for(lambda: children(process.pid), "a worker", seconds)
        return children(process.pid)[0]

    def finish(self, process, timeout=60):
        out, err = process.communicate(timeout=timeout)
        return harness.Result(process.returncode, out.decode(), err.decode())

    def long_fake(self):
        """A shape that never converges, on a clock that hardly moves: 2000 rounds of some work each."""
        return self.script(sample_s=0, variants={"fake_candidate": {"ns": [1000, 2000, 3000, 1500]}})

    def check_kept(self, path, least):
        document = harness.read_json(path)
        self.assertIs(document["run"]["interrupted"], True)
        self.assertGreaterEqual(len(document["results"]), least)
        return document["results"]

    def interrupt_in_rounds(self, signum):
        path = self.path("out.json")
        process = self.start("run", "--fake", self.long_fake(), "--seq", "16,4096", "--heads", "32", "--rounds", "20000",
                             "--json", path, "--csv", self.path("out.csv"))
        worker = self.worker_of(process)
        time.sleep(1.0)
        process.send_signal(signum)
        result = self.finish(process)
        self.assert_exit(result, 130)
        self.assertFalse(is_alive(worker))
        return path, result

    def test_ctrl_c_in_the_rounds(self):
        path, result = self.interrupt_in_rounds(signal.SIGINT)
        rows = self.check_kept(path, 4)
        self.assertRegex(result.err, r"\Afdbench: interrupted; \d+ rows were kept\n\Z")
        self.assertIn("fake_candidate", result.out)
        first = [row for row in rows if row["problem"]["seq"] == 16]
        self.assertEqual([row["variant"] for row in first], ["fake_roof", "fake_reference", "fake_candidate", "fake_other"])
        for row in first:
            self.assertEqual(row["status"], "ok")
            self.assertEqual(row["time_ns"]["stop"], "interrupted")
            self.assertGreaterEqual(row["time_ns"]["n"], 1)
        # The same rounds of all: a round is whole or it is nothing.
        self.assertEqual(len({row["time_ns"]["n"] for row in first}), 1)
        self.assertEqual(sorted(p.name for p in self.folder.iterdir()), ["out.csv", "out.json", "script.json"])

    def test_terminate_in_the_rounds(self):
        path, _ = self.interrupt_in_rounds(signal.SIGTERM)
        self.check_kept(path, 4)

    def test_finished_shapes_are_whole(self):
        path = self.path("out.json")
        slow = self.script(variants={})
        process = self.start("run", "--fake", slow, "--seq", "16,65536", "--heads", "32", "--rounds", "3", "--json", path)
        process.stdout.readline()
        # What has finished is on disk before the next shape starts.
        self.wait_for(lambda: os.path.exists(path), "the first shape's results")
        self.assertEqual(len(harness.read_json(path)["results"]), 4)
        process.send_signal(signal.SIGINT)
        result = self.finish(process)
        self.assert_exit(result, 130)
        rows = self.check_kept(path, 4)
        self.assertEqual([row["time_ns"]["stop"] for row in rows[:4]], ["fixed_rounds"] * 4)
        self.assertEqual(result.out.count("seq 16, heads"), 1, result)

    def test_a_worker_that_hangs_is_not_waited_for_long(self):
        path = self.path("out.json")
        process = self.start("run", "--fake", fake("hang"), *SHAPE, "--json", path)
        worker = self.worker_of(process)
        begin = time.monotonic()
        process.send_signal(signal.SIGINT)
        self.assert_exit(self.finish(process), 130)
        self.assertLess(time.monotonic() - begin, 20)
        self.assertFalse(is_alive(worker))
        self.check_kept(path, 0)

    def test_a_later_ctrl_c_ends_it_at_once(self):
        process = self.start("run", "--fake", fake("hang"), *SHAPE)
        worker = self.worker_of(process)
        time.sleep(1.0)  # a worker that has only just begun dies of the first
        process.send_signal(signal.SIGINT)
        time.sleep(3)  # within the worker's grace, and long enough to be another request
        begin = time.monotonic()
        process.send_signal(signal.SIGINT)
        self.assertEqual(self.finish(process).code, -signal.SIGINT)
        self.assertLess(time.monotonic() - begin, 3)
        self.wait_for(lambda: not is_alive(worker), "the worker's end", 5)

    def test_killed(self):
        process = self.start("run", "--fake", fake("hang"), *SHAPE)
        worker = self.worker_of(process)
        process.kill()
        process.wait()
        self.wait_for(lambda: not is_alive(worker), "the worker's end", 5)

    def test_ctrl_c_of_a_terminal(self):
        """A terminal sends the signal to the whole foreground group: the worker is not in it, and the runner asks it to stop."""
        path = self.path("out.json")
        process = self.start("run", "--fake", self.long_fake(), *SHAPE, "--rounds", "100000", "--json", path,
                             start_new_session=True)
        worker = self.worker_of(process)
        self.assertNotEqual(os.getpgid(worker), os.getpgid(process.pid))
        time.sleep(0.5)
        os.killpg(os.getpgid(process.pid), signal.SIGINT)
        self.assert_exit(self.finish(process), 130)
        self.assertFalse(is_alive(worker))
        self.check_kept(path, 4)

    def test_a_worker_killed_by_hand_is_a_failed_row(self):
        path = self.path("out.json")
        process = self.start("run", "--fake", fake("hang"), *SHAPE, "--rounds", "2", "--json", path)
        worker = self.worker_of(process)
        time.sleep(0.5)  # until it hangs
        os.kill(worker, signal.SIGKILL)
        self.assert_exit(self.finish(process), 6)
        rows = harness.rows_of(path)
        self.assertEqual(rows["fake_candidate"]["status"], "failed")
        self.assertIn("signal 9", rows["fake_candidate"]["reason"])
        self.assertEqual(rows["fake_other"]["status"], "ok")

    def test_ctrl_c_beats_a_wrong_result(self):
        script = self.script(sample_s=0, variants={"fake_candidate": {"error": 0.5}, "fake_other": {"ns": [1000, 2000]}})
        path = self.path("out.json")
        process = self.start("run", "--fake", script, *SHAPE, "--rounds", "100000", "--json", path)
        self.worker_of(process)
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        self.assert_exit(self.finish(process), 130)
        self.assertEqual(harness.rows_of(path)["fake_candidate"]["status"], "incorrect")

    def test_on_the_cpu(self):
        path = self.path("out.json")
        process = self.start("run", "--device", "cpu", "--seq", "512", "--heads", "4", "--rounds", "100000", "--json", path)
        worker = self.worker_of(process)
        time.sleep(2.0)
        process.send_signal(signal.SIGINT)
        result = self.finish(process)
        self.assert_exit(result, 130)
        self.assertFalse(is_alive(worker))
        self.check_kept(path, 0)


if __name__ == "__main__":
    harness.main()
