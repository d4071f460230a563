#!/usr/bin/env python3
"""Tuning profiles: their files, what of them `run` uses, `tune --show` and `tune --export header`."""

import fcntl
import json
import re
import shutil
import signal
import subprocess
import time

import harness
from tune_case import SHAPE, TuneCase


class Profiles(TuneCase):
    def exported_header(self, entries):
        self.profile.write_text(json.dumps({"schema": "fdbench.profile/1.0", "entries": entries}))
        result = self.fdbench("tune", "--export", "header", "--profile", str(self.profile))
        self.assert_exit(result, 0)
        self.folder.joinpath("plans.h").write_text(result.out)
        return result.out

    def compile_with_header(self, text, *flags):
        compiler = shutil.which("c++") or self.skipTest("no compiler")
        self.folder.joinpath("main.cpp").write_text('#include "plans.h"\nusing namespace fdbench_profile;\n' + text)
        subprocess.run([compiler, "-std=c++17", "-Wall", "-Wextra", "-pedantic", "-Werror", *flags, "main.cpp"],
                       cwd=self.folder, check=True)

    # A copy of a profile's entry with other values, "key.device" and the like.
    @staticmethod
    def entry_with(entry, **values):
        entry = json.loads(json.dumps(entry))
        for path, value in values.items():
            *folders, name = path.split("__")
            at = entry
            for folder in folders:
                at = at[folder]
            at[name] = value
        return entry

    def test_a_header_compiles_and_finds_the_plan(self):
        self.assert_exit(self.tune(), 0)
        first, = self.entries()
        self.exported_header([first])
        self.compile_with_header(
            'static_assert(find("fake_other", "bf16", 64, 2, 2, 1000)->chunk == 128);\n'
            'static_assert(find("fake_other", "bf16", 64, 2, 2, 1000)->seq == 1024);\n'
            'static_assert(find("fake_other", "bf16", 64, 2, 2, 1000, "Scripted")->chunk == 128);\n'
            'static_assert(!find("fake_other", "bf16", 64, 2, 2, 1000, "Third"));\n'
            'static_assert(!find("fake_other", "bf16", 64, 2, 2, 100) && !find("fake", "bf16", 64, 2, 2, 1000));\n', "-fsyntax-only")
        self.profile.write_text('{"schema": "fdbench.profile/1.0", "entries": []}')
        self.assert_one_line(self.fdbench("tune", "--export", "header", "--profile", str(self.profile)), 2, "holds no plan")

    def test_a_header_never_gives_another_machines_plan(self):
        self.assert_exit(self.tune(), 0)
        first, = self.entries()
        sms, cc = first["key"]["sms"], first["key"]["cc"]
        of = self.entry_with
        text = self.exported_header([
            first, of(first, key__device='Other "GPU" ??/', plan__chunk=64), of(first, key__sms=78, plan__chunk=32),
            of(first, key__driver_major=590, plan__chunk=256), of(first, key__heads=4, key__driver_major=590),
            of(first, key__heads=4), of(first, key__heads=4, key__tuning_version=9, plan__chunk=512)])
        self.assertEqual(text.count("// Measured on Scripted"), 3)
        found = f'find("fake_other", "bf16", 64, 2, 2, 1000, "Scripted", {sms}, {cc}'
        self.compile_with_header(
            'static_assert(!find("fake_other", "bf16", 64, 2, 2, 1000));\n'
            'static_assert(!find("fake_other", "bf16", 64, 4, 2, 1000));\n'  # only one machine has it
            'static_assert(!find("fake_other", "bf16", 64, 2, 2, 1000, "Scripted"));\n'
            'static_assert(find("fake_other", "bf16", 64, 2, 2, 1000, "Other \\"GPU\\" ?\\?/")->chunk == 64);\n'
            'static_assert(find("fake_other", "bf16", 64, 2, 2, 1000, "Scripted", 78)->chunk == 32);\n'
            # The newest of one machine's, unless another is asked for.
            f'static_assert({found})->chunk == 256);\n'
            f'static_assert({found}, 580)->chunk == 128);\n'
            f'static_assert(!{found}, 570));\n'
            f'static_assert(find("fake_other", "bf16", 64, 4, 2, 1000, "Scripted", {sms}, {cc})->tuning_version == 9);\n',
            "-fsyntax-only")

    def test_a_headers_plans_cover_their_buckets(self):
        self.assert_exit(self.tune(), 0)
        first, = self.entries()
        self.assertEqual((first["tuning"], first["plan"]["splits"]), ({"chunk": 128}, 8))
        of, least, most = self.entry_with, *first["key"]["seq_bucket"]
        self.exported_header([
            first, of(first, key__variant="by_splits", tuning={"splits": 8}),
            of(first, key__variant="own", tuning={"stages": 1}),
            # In steps of 32 tokens: 1000 / 7 is 142.9.
            of(first, key__variant="rounded", tuning={"splits": 7}, seq=1000, plan__splits=7, plan__chunk=160)])
        self.compile_with_header(f"""
#include <cstdio>
int main() {{
  int bad = 0;
  for (const char* variant : {{"fake_other", "by_splits", "own", "rounded"}}) {{
    for (long long seq = {least}; seq <= {most}; ++seq) {{
      const auto plan = find(variant, "bf16", 64, 2, 2, seq);
      if (!plan || plan->splits * plan->chunk < seq || (plan->splits - 1) * plan->chunk >= seq + 7 * plan->granularity) ++bad;
    }}
    for (long long seq : {{{least}LL, 1024LL, {most}LL}}) {{
      const auto plan = find(variant, "bf16", 64, 2, 2, seq);
      std::printf("%s %lld: %lld x %lld\\n", variant, seq, plan->splits, plan->chunk);
    }}
    if (find(variant, "bf16", 64, 2, 2, {least} - 1) || find(variant, "bf16", 64, 2, 2, {most} + 1)) ++bad;
  }}
  return bad;
}}
""", "-o", "main")
        result = subprocess.run([self.path("main")], capture_output=True, text=True, check=True)
        self.assertEqual(result.stdout.splitlines(), [
            "fake_other 725: 6 x 128", "fake_other 1024: 8 x 128", "fake_other 1448: 12 x 128",
            "by_splits 725: 8 x 91", "by_splits 1024: 8 x 128", "by_splits 1448: 8 x 181",
            "own 725: 8 x 91", "own 1024: 8 x 128", "own 1448: 8 x 181",
            "rounded 725: 7 x 128", "rounded 1024: 7 x 160", "rounded 1448: 7 x 224"])

    def shown(self, entries):
        self.profile.write_text(json.dumps({"schema": "fdbench.profile/1.0", "entries": entries}))
        result = self.fdbench("tune", "--show", "--profile", str(self.profile))
        self.assert_exit(result, 0)
        return result.out

    def test_show_has_a_table_an_environment(self):
        self.assert_exit(self.tune(), 0)
        first, = self.entries()
        # As tune sorts them: by shape, the driver last.
        entries = [self.entry_with(first, key__heads=heads, key__driver_major=driver) for heads in (2, 4, 8) for driver in (580, 590)]
        out = self.shown(entries)
        headings = re.findall(r"^Scripted, .*driver (\d+)", out, re.M)
        self.assertEqual(headings, ["580", "590"])
        self.assertEqual((out.count("over best rule"), out.count("gain over")), (2, 2))
        for part in out.split("Scripted, ")[1:]:
            self.assertEqual(len(re.findall(r"^  1024 x \d", part, re.M)), 3)
        # Versions are told apart only where there are several.
        self.assertNotRegex(out, r"fake_other v")
        out = self.shown([*entries, self.entry_with(first, key__tuning_version=2)])
        tables = out.split("Scripted, ")[1:]
        self.assertEqual(re.findall(r"fake_other (v\d)", tables[0]), ["v1", "v1", "v1", "v2"])
        self.assertNotRegex(tables[1], r"fake_other v")

    def test_another_environment(self):
        self.assert_exit(self.tune(), 0)
        # Soft: used, and said.
        newer = self.landscape("newer", device={"driver": "590.2"})
        result, rows = self.run_rows(script=newer)
        self.assertEqual(rows["fake_other"]["source"], "profile:exact")
        self.assertIn("driver 580, and here it is 590: used all the same", result.err)
        # Its own entry stands beside the other's.
        self.assert_exit(self.tune(script=newer), 0)
        self.assertEqual([entry["key"]["driver_major"] for entry in self.entries()], [580, 590])
        # Hard: not used, and said.
        result, rows = self.run_rows(script=self.landscape("other", device={"sms": 78}))
        self.assertEqual(rows["fake_other"]["source"], "default")
        self.assertIn("and this is Scripted (78 ", result.err)

    def test_a_broken_profile_is_left_as_it_is(self):
        self.profile.parent.mkdir(parents=True)
        self.profile.write_text('{"schema": "fdbench.profile/1.0",\n "entries": [}')
        result = self.tune()
        self.assert_exit(result, 2)
        self.assertIn("scripted.json:2:14: ", result.err)
        self.assertEqual(self.profile.read_text(), '{"schema": "fdbench.profile/1.0",\n "entries": [}')
        result, rows = self.run_rows()
        self.assertIn("scripted.json:2:14: ", result.err)
        self.assertEqual(rows["fake_other"]["source"], "default")
        self.assert_one_line(self.fdbench("run", "--fake", self.landscape(), *SHAPE, "--profile", str(self.profile)), 2,
                             "scripted.json:2:14: ")

    def test_a_newer_profile_is_used_and_left_as_it_is(self):
        self.assert_exit(self.tune(), 0)
        newer = self.profile.read_text().replace("fdbench.profile/1.0", "fdbench.profile/1.12")
        self.profile.write_text(newer)
        self.assertEqual(self.run_rows()[1]["fake_other"]["source"], "profile:exact")
        result = self.tune()
        self.assert_exit(result, 2)
        self.assertIn("of schema fdbench.profile/1.12", result.err)
        self.assertEqual(self.profile.read_text(), newer)

    def test_fields_of_ones_own_are_kept(self):
        self.assert_exit(self.tune(), 0)
        profile = json.loads(self.profile.read_text())
        profile["note"] = "the box under the desk"
        profile["entries"].append(json.loads(json.dumps(profile["entries"][0])))
        for entry in profile["entries"]:
            entry["owner"] = {"name": "me"}
        profile["entries"][1]["key"]["dim"] = 128
        self.profile.write_text(json.dumps(profile))
        self.assert_exit(self.tune(), 0)
        tuned = json.loads(self.profile.read_text())
        self.assertEqual(tuned["note"], profile["note"])
        owners = {entry["key"]["dim"]: entry.get("owner") for entry in tuned["entries"]}
        self.assertEqual(owners, {profile["entries"][0]["key"]["dim"]: None, 128: {"name": "me"}})

    def test_a_second_tuner_is_refused(self):
        self.profile.parent.mkdir(parents=True)
        with open(self.profile.parent / ".scripted.json.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            result = self.tune()
            self.assert_exit(result, 2)
            self.assertIn("is writing it", result.err)

    def test_concurrent_writers_and_a_killed_one(self):
        slow = ["--seq", "512:16384*2", "--heads", "2", "--dim", "64", "--rounds", "400", "--strategy", "exhaustive"]
        first = subprocess.Popen([harness.BIN, "tune", "--fake", self.landscape(), *slow], stdin=subprocess.DEVNULL,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=harness.environment(**self.env))
        self.addCleanup(first.communicate)
        self.addCleanup(first.kill)
        lock = self.profile.parent / ".scripted.json.lock"
        end = time.monotonic() + 60
        while not lock.exists() and time.monotonic() < end:
            time.sleep(0.02)
        second = self.tune()
        self.assert_exit(second, 2)
        self.assertIn("another fdbench", second.err)
        lines = iter(first.stdout.readline, b"")
        self.assertTrue(any(line.startswith(b"[1/6]") for line in lines), "the first shape is done")
        time.sleep(0.2)
        first.send_signal(signal.SIGKILL)
        first.wait()
        # What is there is whole, and the lock went with its holder.
        kept = [entry["seq"] for entry in self.entries()]
        self.assertIn(512, kept)
        self.assertLess(len(kept), 6)
        harness.read_json(self.points)
        self.assert_exit(self.tune(), 0)
        self.assertTrue(any(entry["seq"] == 1024 for entry in self.entries()))


if __name__ == "__main__":
    harness.main()
