#!/usr/bin/env python3
"""`fdbench rules`: measured on the fake device and on the CPU, and from files; the fit, and the header that it writes."""

import json
import pathlib
import re
import shutil
import subprocess
import unittest

import harness
from harness import DATA, fake

SMS = 132


def made_ns(seq, kv_heads, dim, splits):
    """Times of a made device: what a multiprocessor takes against what the memory gives, and a merge."""
    tokens = -(-seq // splits)
    waves = -(-splits * kv_heads // SMS)
    core = waves * (400 + 0.012 * tokens * 4 * dim)
    memory = 2.2e-4 * 4 * seq * kv_heads * dim
    return 3000 + max(core, memory) + (1500 + 20 * splits if splits > 1 else 0)


def made_file(path, rounds=12):
    """A result file of a sweep over splits on a made device of 132 multiprocessors."""
    rows = []
    for heads, kv_heads in ((32, 32), (32, 8), (8, 1)):
        for seq in (512, 1000, 2048, 5000, 8192, 20000, 50000, 131072):
            full = SMS // kv_heads
            own = max(1, min(full, seq // 256))
            counts = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, full, 2 * full, 4 * full}
            counts = sorted(s for s in counts if s * kv_heads <= 4 * SMS and s <= -(-seq // 32))
            for splits in [None, *counts]:
                count = splits or own
                ns = made_ns(seq, kv_heads, 128, count)
                times = [ns * (1 + 0.002 * ((seq + 7 * count + 3 * r) % 5 - 2)) for r in range(rounds)]
                ranked = sorted(times)
                rows.append({
                    "id": f"made/{seq}/{heads}/{kv_heads}/{splits}",
                    "problem": {"seq": seq, "heads": heads, "kv_heads": kv_heads, "dim": 128, "dtype": "bf16"},
                    "variant": "made", "role": "candidate", "tuning": {"splits": splits} if splits else {},
                    "plan": {"grid": [count, kv_heads, 1], "block": [128, 1, 1], "chunk": -(-seq // count),
                             "splits": count, "tile": 64},
                    "status": "ok",
                    "time_ns": {"n": rounds, "min": ranked[0], "q1": ranked[rounds // 4], "median": ranked[rounds // 2],
                                "q3": ranked[3 * rounds // 4], "max": ranked[-1], "stop": "fixed_rounds",
                                "samples": [{"process": 0, "round": r, "t": t, "sm_mhz": None}
                                            for r, t in enumerate(times)]},
                    "bytes": 4 * heads * 128 + 4 * seq * kv_heads * 128})
    device = {"kind": "cuda", "name": "Made GPU", "cc": 90, "sms": SMS, "smem_per_sm": 233472, "smem_per_block": 232448,
              "threads_per_sm": 2048, "ctas_per_sm": 32, "regs_per_sm": 65536}
    # Everything else as a real run writes it.
    document = json.loads((DATA / "io" / "results.json").read_text())
    document["run"]["device"] = device
    document["run"]["started"] = "2026-01-02T03:04:05Z"
    document["results"] = rows
    pathlib.Path(path).write_text(json.dumps(document))
    return path


def summary_of(text, title="regret against"):
    """rule -> (shapes, mean, worst) of a printed summary, in percent."""
    block = text[text.index(title):].split("\n\n")[0].splitlines()
    rules = {}
    for line in block[2:]:
        found = re.match(r"  (\S+) +(\d+)/\d+ +(\S+) %? +(\S+) %", line)
        if found:
            rules[found[1]] = (int(found[2]), float(found[3]), float(found[4]))
    return rules


class FromFiles(harness.TestCase):
    def setUp(self):
        super().setUp()
        self.file = made_file(self.path("made.json"))

    def test_golden(self):
        result = harness.fdbench("rules", "--from", self.file, "--rule", "fa3", "--rule", "sm_multiple:2", "--rule",
                                 "fixed:5", "--rule", "vllm_v1")
        self.assert_exit(result, 0)
        self.assert_golden("../golden_plans/rules_from.txt", result.out.replace(self.file, "made.json"))

    def test_golden_markdown(self):
        result = harness.fdbench("rules", "--from", self.file, "--rule", "fa3", "--rule", "xqa", "--md", "-")
        self.assert_exit(result, 0)
        self.assert_golden("../golden_plans/rules_from.md", result.out)

    def test_regret_is_that_of_the_made_times(self):
        result = harness.fdbench("rules", "--from", self.file, "--summary", "--rule", "fixed:1")
        shapes, mean, worst = summary_of(result.out)["fixed:1"]
        ratios = []
        for kv_heads in (32, 8, 1):
            for seq in (512, 1000, 2048, 5000, 8192, 20000, 50000, 131072):
                times = [made_ns(seq, kv_heads, 128, s) for s in range(1, 4 * SMS // kv_heads + 1) if s <= -(-seq // 32)]
                ratios.append(times[0] / min(times))
        self.assertEqual(shapes, 24)
        self.assertAlmostEqual(worst, 100 * (max(ratios) - 1), delta=0.03 * 100 * max(ratios))

    def test_every_rule_answers_or_says_why(self):
        result = harness.fdbench("rules", "--from", self.file)
        self.assert_exit(result, 0)
        names = harness.fdbench("list", "rules").out
        for line in names.splitlines():
            if line.startswith(" ") or not line.strip() or line == "rules":
                continue
            self.assertIn(line.split()[0], result.out)
        self.assertNotIn("nan", result.out)

    def test_the_fit_is_better_than_the_rules_on_shapes_it_has_not_seen(self):
        result = harness.fdbench("rules", "--from", self.file, "--fit", "--summary")
        self.assert_exit(result, 0)
        unseen = summary_of(result.out, "regret on the 12 shapes that the fit has not seen")
        _, fitted, _ = unseen.pop("fitted")
        self.assertLess(fitted, 2.0)
        for rule, (shapes, mean, _) in unseen.items():
            if rule != "own":
                self.assertLess(fitted, mean, rule)

    def test_the_header_compiles_alone_and_passes_its_own_test(self):
        compiler = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
        if compiler is None:
            self.skipTest("no C++ compiler")
        header = self.path("split_rule.h")
        self.assert_exit(harness.fdbench("rules", "--from", self.file, "--summary", "--emit-header", header), 0)
        text = pathlib.Path(header).read_text()
        self.assertIn("Made GPU", text)
        self.assertNotIn("fdbench/", text)
        self.assertEqual(set(re.findall(r"#include (\S+)", text)), {"<cmath>", "<cstdint>"})
        program = self.path("program")
        source = self.folder / "twice.cpp"
        source.write_text('#include "split_rule.h"\n#include "split_rule.h"\n'
                          "int main() {\n"
                          "  using namespace fdbench_rule;\n"
                          "  const Shape seen{8192, 32, 8, 128}, beyond{1 << 20, 32, 8, 128}, odd{8192, 30, 8, 128};\n"
                          "  if (splits(seen) < 2 || splits(beyond) != 0 || splits(odd) != 0) return 2;\n"
                          "  if (chunk(seen) * splits(seen) < 8192 || chunk(beyond) != 0) return 3;\n"
                          "  return self_test();\n"
                          "}\n")
        for flags in (["-O0", "-Wall", "-Wextra", "-Wshadow", "-Wconversion", "-Werror"], ["-O2"]):
            subprocess.run([compiler, "-std=c++17", *flags, str(source), "-o", program], check=True)
            self.assertEqual(subprocess.run([program]).returncode, 0, flags)
        # And it notices a changed constant.
        broken = re.sub(r"(double fixed = )", r"\g<1>17.0 + ", text)
        self.assertNotEqual(broken, text)
        pathlib.Path(header).write_text(broken)
        subprocess.run([compiler, "-std=c++17", "-DFDBENCH_RULE_SELF_TEST", "-x", "c++", header, "-o", program],
                       check=True)
        self.assertEqual(subprocess.run([program]).returncode, 1)

    def test_header_to_stdout_leaves_the_tables_on_stderr(self):
        result = harness.fdbench("rules", "--from", self.file, "--summary", "--emit-header", "-")
        self.assert_exit(result, 0)
        self.assertTrue(result.out.startswith("// How many chunks"), result.out[:80])
        self.assertIn("regret against", result.err)

    def test_files_that_do_not_go_together(self):
        other = json.loads(pathlib.Path(self.file).read_text())
        other["run"]["device"]["sms"] = 26
        path = self.path("other.json")
        pathlib.Path(path).write_text(json.dumps(other))
        self.assert_one_line(harness.fdbench("rules", "--from", self.file, "--from", path), 5, "multiprocessors", "26")


class BadInput(harness.TestCase):
    def test_what_would_be_lost_or_counted_twice(self):
        path, other = made_file(self.path("made.json")), self.path("x.md")
        before = pathlib.Path(path).read_text()
        self.assert_one_line(harness.fdbench("rules", "--from", path, "--md", path), 2, "--md", "--from")
        self.assertEqual(pathlib.Path(path).read_text(), before)
        self.assert_one_line(harness.fdbench("rules", "--from", path, "--md", other, "--emit-header", other), 2, other)
        self.assert_one_line(harness.fdbench("rules", "--from", path, "--from", path), 2, "--from", "same run")
        self.assert_one_line(harness.fdbench("rules", "--from", path, "--rule", "xqa", "--rule", "xqa"), 2, "--rule xqa")
        document = json.loads(before)
        document["run"]["id"] = "another"
        document["results"][0]["tuning_version"] = 99
        newer = self.path("newer.json")
        pathlib.Path(newer).write_text(json.dumps(document))
        self.assert_one_line(harness.fdbench("rules", "--from", path, "--from", newer), 5, "newer.json", "tuning_version")

    def test_nothing_to_score_is_no_success(self):
        path = made_file(self.path("made.json"), rounds=2)
        result = harness.fdbench("rules", "--from", path, "--fit", "--emit-header", self.path("h.h"))
        self.assertEqual(result.code, 6, result)
        self.assertIn("no shape can be scored", result.err)

    def test_refused_in_one_line(self):
        file = made_file(self.path("made.json"))
        empty = json.loads(pathlib.Path(file).read_text())
        empty["results"] = []
        pathlib.Path(self.path("empty.json")).write_text(json.dumps(empty))
        few = json.loads(pathlib.Path(file).read_text())
        few["results"] = [row for row in few["results"] if row["problem"]["seq"] == 512]
        pathlib.Path(self.path("few.json")).write_text(json.dumps(few))
        for args, parts in ((["--from", "absent.json"], ["absent.json"]),
                            (["--from", self.path("empty.json")], ["no sweep"]),
                            (["--from", file, "--variant", "other"], ["other", "made"]),
                            (["--from", file, "--rule", "fa9"], ["--rule fa9", "fa3"]),
                            (["--from", file, "--rule", "fixed"], ["fixed:N"]),
                            (["--from", file, "--seq", "8"], ["--seq", "--from"]),
                            (["--from", file, "--json", "x.json"], ["--json", "--md"]),
                            (["--from", file, "--md", "/nowhere/x.md"], ["--md", "/nowhere"]),
                            (["--from", file, "--emit-header", "/nowhere/x.h"], ["--emit-header", "/nowhere"]),
                            (["--seq", "64"], ["--variant"]),
                            (["--variant", "cpu_three_pass", "--seq", "64"], ["cpu_three_pass"]),
                            (["--variant", "none", "--seq", "64"], ["none"])):
            with self.subTest(args=args):
                self.assert_one_line(harness.fdbench("rules", *args), 2, *parts)
        few = harness.fdbench("rules", "--from", self.path("few.json"), "--fit", "--summary")
        self.assert_exit(few, 2)
        self.assertIn("--fit", few.err)


class Measured(harness.TestCase):
    def test_on_the_fake_device(self):
        path = self.path("out.json")
        result = harness.fdbench("rules", "--variant", "fake_other", "--fake", fake("ok"), "--seq", "64", "--heads", "2",
                                 "--dim", "64", "--rounds", "12", "--rule", "seed", "--rule", "fixed:4", "--json", path)
        self.assert_exit(result, 0)
        self.assert_golden("../golden_plans/rules_fake.txt", harness.normal_table(result.out).replace(path, "out.json"))
        sources = {row["source"] for row in harness.read_json(path)["results"] if row["variant"] == "fake_other"}
        self.assertEqual(sources, {"default", "rule:seed", "rule:fixed:4", "grid"})

    def test_measured_and_read_back_say_the_same(self):
        path = self.path("out.json")
        measured = harness.fdbench("rules", "--variant", "cpu_split_kv", "--device", "cpu", "--seq", "500", "--heads",
                                   "4", "--kv-heads", "2", "--dim", "64", "--rounds", "8", "--json", path)
        self.assert_exit(measured, 0)
        again = harness.fdbench("rules", "--from", path)
        self.assert_exit(again, 0)
        block = lambda text: text[text.index("\nseq 500"):].split("\n\nwrote")[0].rstrip()
        self.assertEqual(block(measured.out), block(again.out))
        self.assertNotIn("not among the points measured", again.out)

    def test_a_suite_of_many_shapes_for_the_gpu(self):
        problems = json.loads((harness.REPO / "configs" / "suites" / "rules.json").read_text())["problems"]
        shapes = [(seq, p["heads"] // p["kv_heads"], p["kv_heads"]) for p in problems for seq in p["seq"]]
        self.assertGreaterEqual(len(shapes), 48)
        self.assertLessEqual({1, 4, 8}, {group for _, group, _ in shapes})
        self.assertTrue(any(seq & (seq - 1) for seq, _, _ in shapes))
        self.assertIn(1, {kv for _, _, kv in shapes})
        self.assertIn(32, {kv for _, _, kv in shapes})


if __name__ == "__main__":
    harness.main()
