"""What the tests of the command line share: the built program, scripts of the fake device, golden files.

FDBENCH_BIN names the program, FDBENCH_TEST_DATA the folder tests/data; CTest sets both. Golden files are rewritten from
what the program says with FDBENCH_UPDATE_GOLDEN=1; read the difference before committing it.
"""

import csv
import difflib
import io
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

REPO = pathlib.Path(os.environ.get("FDBENCH_REPO", pathlib.Path(__file__).resolve().parents[2]))
DATA = pathlib.Path(os.environ.get("FDBENCH_TEST_DATA", REPO / "tests" / "data"))
BIN = os.environ.get("FDBENCH_BIN", str(REPO / "build" / "fdbench"))
UPDATE = os.environ.get("FDBENCH_UPDATE_GOLDEN") == "1"



def sanitized():
    """Whether the program was built with a sanitizer, whose shadow memory no limit on addresses leaves room for."""
    cache = pathlib.Path(os.environ.get("FDBENCH_BUILD", pathlib.Path(BIN).parent)) / "CMakeCache.txt"
    return cache.exists() and re.search(r"^FDBENCH_SANITIZE:\w+=.+$", cache.read_text(), re.M) is not None


# The smallest shape that is still a shape.
SHAPE = ["--seq", "16", "--heads", "2", "--dim", "64"]


class Result:
    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err

    def __repr__(self):
        return f"exit {self.code}\nstdout: {self.out}\nstderr: {self.err}"


def environment(**extra):
    """This process' environment without what would steer the program; then `extra`."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("FDBENCH_") and k != "NO_COLOR"}
    # Nobody's own tuned plans.
    kept["XDG_CONFIG_HOME"] = kept["XDG_STATE_HOME"] = "/nonexistent"
    kept.update(extra)
    return kept


def fdbench(*args, env=None, timeout=120, cwd=None, **popen):
    popen.setdefault("stdout", subprocess.PIPE)
    popen.setdefault("stderr", subprocess.PIPE)
    done = subprocess.run([BIN, *args], env=environment(**(env or {})), timeout=timeout, cwd=cwd,
                          stdin=subprocess.DEVNULL, **popen)
    text = lambda raw: raw.decode() if raw is not None else ""
    return Result(done.returncode, text(done.stdout), text(done.stderr))


def fake(name):
    """The path of a script in tests/data/fake."""
    return str(DATA / "fake" / f"{name}.json")


class TestCase(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="fdbench-test-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def path(self, name):
        return str(self.folder / name)

    def script(self, name="script", **content):
        """Writes a script of the fake device and returns its path."""
        path = self.folder / f"{name}.json"
        path.write_text(json.dumps({"schema": "fdbench.fake/1.0", **content}))
        return str(path)

    def assert_exit(self, result, code):
        self.assertEqual(result.code, code, result)

    def assert_one_line(self, result, code, *parts):
        """That exit code, nothing on stdout, and one line on stderr that holds every one of `parts`."""
        self.assert_exit(result, code)
        self.assertEqual(result.out, "", result)
        self.assertRegex(result.err, r"\Afdbench: [^\n]+\n\Z")
        self.assertNotIn("fdbench: fdbench", result.err)
        for part in parts:
            self.assertIn(part, result.err)

    def assert_golden(self, name, text):
        path = DATA / "golden" / name
        if UPDATE:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            return
        self.assertTrue(path.exists(), f"{path} is missing; FDBENCH_UPDATE_GOLDEN=1 writes it")
        expected = path.read_text()
        if expected != text:
            self.fail("".join(difflib.unified_diff(expected.splitlines(True), text.splitlines(True), name, "now")))


# What differs from run to run, machine to machine and build to build, replaced; the errors to three digits, since the last
# ones are the C library's.


def three_digits(value):
    return float(f"{float(value):.2e}")


def normal_table(text):
    return re.sub(r"^fdbench \S+:", "fdbench VERSION:", text)


def normal_json(text):
    """The document with a line for each field of the run and of each result."""
    document = json.loads(text)
    run = document["run"]
    for key in ("id", "started"):
        run[key] = key.upper()
    for part in ("tool", "host"):
        run[part] = {key: type(value).__name__ for key, value in run[part].items()}
    run["tool"]["cuda"] = "str or null"  # a build may have no CUDA
    run["argv"] = [os.path.basename(word) for word in run["argv"]]
    for row in document["results"]:
        if row["prepare_ns"] is not None:
            assert row["prepare_ns"] >= 0
            row["prepare_ns"] = 0
        for key in ("rel_l2", "max_abs", "lse_max_abs"):
            if row["accuracy"] and row["accuracy"][key] is not None:
                row["accuracy"][key] = three_digits(row["accuracy"][key])
    lines = ["run"]
    lines += [f"  {key}: {json.dumps(value)}" for key, value in run.items()]
    for row in document["results"]:
        lines.append(row["id"])
        lines += [f"  {key}: {json.dumps(value)}" for key, value in row.items()]
    return "\n".join([document["schema"], *lines]) + "\n"


VOLATILE_COLUMNS = ("prepare_ns", "host_cpu", "run_id", "started", "version", "commit", "dirty")


def normal_csv(text):
    header, *rows = csv.reader(io.StringIO(text, newline=""))
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(header)
    for row in rows:
        assert len(row) == len(header), row
        cells = dict(zip(header, row))
        for column in VOLATILE_COLUMNS:
            cells[column] = column.upper() if cells[column] else ""
        for column in ("rel_l2", "max_abs", "lse_max_abs"):
            if cells[column]:
                cells[column] = str(three_digits(cells[column]))
        writer.writerow(cells[column] for column in header)
    return out.getvalue()


def read_json(path):
    return json.loads(pathlib.Path(path).read_text())


def rows_of(path):
    """variant -> row of a result file, where each variant has one."""
    rows = {}
    for row in read_json(path)["results"]:
        assert row["variant"] not in rows, row["variant"]
        rows[row["variant"]] = row
    return rows


main = unittest.main
