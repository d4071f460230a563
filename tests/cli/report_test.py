"""`fdbench report` and --plot: the page's text, and the page in a real browser.

The browser's tests need playwright and a Chromium (FDBENCH_CHROMIUM, or one in PATH); without them they skip and say so.
"""

import base64
import hashlib
import json
import os
import pathlib
import re
import shutil
import unittest

import harness
from harness import SHAPE, fake

try:
    from playwright.sync_api import sync_playwright
except ImportError:
    sync_playwright = None
CHROMIUM = os.environ.get("FDBENCH_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser") or \
    shutil.which("google-chrome")
EVIL = "<script>document.title='run'</script>"


class Report(harness.TestCase):
    def measured(self, name, *args, script="ok"):
        path = self.path(name)
        harness.fdbench(*args, *SHAPE[2:], "--fake", fake(script), "--json", path, "--quiet")
        return path

    def page(self, *files, name="report.html"):
        out = self.path(name)
        result = harness.fdbench("report", *files, "-o", out)
        self.assert_exit(result, 0)
        self.assertEqual(result.out, f"wrote {out}\n")
        return pathlib.Path(out).read_text(encoding="utf-8")

    def run_file(self, name="run.json"):
        return self.measured(name, "run", "--seq", "16,32,64", "--rounds", "8")

    def sweep_file(self):
        return self.measured("sweep.json", "sweep", "--variant", "fake_other", "--seq", "64", "-a", "chunk=4:16*2",
                             "--rounds", "8")

    def changed(self, path, change):
        document = harness.read_json(path)
        change(document)
        pathlib.Path(path).write_text(json.dumps(document))
        return path


class Text(Report):
    def test_the_policy_knows_the_script(self):
        page = self.page(self.run_file())
        script = re.search(r"<script>(.*)</script>", page, re.S).group(1)
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        self.assertIn(f"'sha256-{digest}'", page, "kPageScriptSha256 must be this")

    def test_nothing_is_loaded(self):
        page = self.page(self.run_file())
        self.assertNotRegex(page, r"(src|href)=[\"'](?!#|data:)")
        self.assertNotRegex(page.replace("http://www.w3.org/2000/svg", ""), r"https?://")

    def test_failed_rows_an_older_minor_and_no_row(self):
        failed = self.measured("failed.json", "run", "--seq", "16", "--rounds", "6", script="throws")
        self.assertIn('class="bad"', self.page(failed))

        def other_minor(document):
            document["schema"] = "fdbench.result/1.9"
            document["later"] = 1
        self.assertIn("fake", self.page(self.changed(self.run_file(), other_minor)))
        empty = self.changed(self.run_file("empty.json"), lambda d: d.update(results=[]))
        self.assertIn("The files hold no row", self.page(empty))
        verify = self.path("verify.json")
        harness.fdbench("verify", *SHAPE, "--fake", fake("ok"), "--json", verify, "--quiet")
        self.assertIn("No row was timed", self.page(verify))

    def test_what_is_missing_is_said(self):
        self.assert_one_line(harness.fdbench("report", "-o", self.path("x.html")), 2, "result file")
        self.assert_one_line(harness.fdbench("report", self.run_file()), 2, "-o")
        self.assert_one_line(harness.fdbench("report", self.path("none.json"), "-o", "-"), 2, "none.json")

    def test_the_doctor_is_among_the_facts(self):
        doctor = self.path("doctor.json")
        harness.fdbench("doctor", *SHAPE, "--fake", fake("ok"), "--processes", "3", "--rounds", "6", "--json", doctor)
        self.assert_exit(harness.fdbench("report", self.run_file(), "--doctor", doctor, "-o", self.path("d.html")), 0)
        self.assertIn("noise floor", pathlib.Path(self.path("d.html")).read_text(encoding="utf-8").lower())

    def test_plot(self):
        result = harness.fdbench("run", "--seq", "16,32,64", *SHAPE[2:], "--rounds", "6", "--fake", fake("ok"), "--plot")
        self.assert_exit(result, 0)
        self.assertIn("GB/s against sequence length", result.out)
        result = harness.fdbench("sweep", "--variant", "fake_other", "-a", "chunk=4:16*2", *SHAPE, "--rounds", "6",
                                 "--fake", fake("ok"), "--plot")
        self.assertIn("GB/s against chunk", result.out)


@unittest.skipUnless(sync_playwright and CHROMIUM, "skipped: playwright or Chromium is not installed")
class Browser(Report):
    def opened(self, *files, width=1280):
        self.page(*files)
        playwright = sync_playwright().start()
        self.addCleanup(playwright.stop)
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        self.addCleanup(browser.close)
        page = browser.new_page(viewport={"width": width, "height": 900})
        self.errors, self.requests = [], []
        page.on("console", lambda message: self.errors.append(message.text))
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("request", lambda request: self.requests.append(request.url))
        page.goto("file://" + self.path("report.html"))
        return page

    def tearDown(self):
        self.assertEqual(self.errors, [])
        self.assertEqual(self.requests, ["file://" + self.path("report.html")])

    def test_marks_hover_filter_sort(self):
        path = self.run_file()
        rows = [r for r in harness.read_json(path)["results"] if r["time_ns"]]
        page = self.opened(path)
        self.assertEqual(page.locator(".lines .pt").count(), len(rows))
        self.assertEqual(page.locator("figure.share .bar").count(), sum(r["role"] != "roof" for r in rows))
        self.assertEqual(page.locator("figure.speedup .bar").count(), sum(r["role"] != "reference" for r in rows))
        page.locator(".lines .pt").last.hover()
        self.assertIn("GB/s", page.locator("#tip").inner_text())
        # Every point can be reached, also where others lie close by.
        for mark in page.locator(".lines .pt").all():
            box = mark.locator(".hit").bounding_box()
            page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
            self.assertIn(" on", mark.get_attribute("class"))
        page.fill("#find", "fake_candidate 32")
        shown = page.locator("#rows-table tbody tr:visible")
        self.assertEqual(shown.count(), 1)
        page.fill("#find", "")
        page.locator("th[data-k=median_us] button").click()
        times = [float(t) for t in page.locator("#rows-table tbody tr td:nth-child(11)").all_inner_texts()]
        self.assertEqual(times, sorted(times))
        # Keys: the first mark of a chart, and its samples.
        page.locator("svg.lines").first.focus()
        page.keyboard.press("ArrowRight")
        self.assertTrue(page.locator("#tip").is_visible())
        page.keyboard.press("Enter")
        self.assertEqual(page.locator(".dist .smp").count(), 8)

    def test_set_aside_samples_are_shown(self):
        path = self.measured("drops.json", "run", "--seq", "16", script="clock_drops")
        aside = max(r["time_ns"]["set_aside"] for r in harness.read_json(path)["results"] if r["time_ns"])
        self.assertGreater(aside, 0)
        self.assertEqual(self.opened(path).locator(".dist .smp.aside").count(), aside)

    def test_sweep_and_change(self):
        page = self.opened(self.sweep_file(), self.run_file("a.json"), self.run_file("b.json"))
        self.assertEqual(page.locator(".heat .cell").count(), 3)
        self.assertEqual(page.locator(".heat .cell.best").count(), 1)
        self.assertGreater(page.locator("figure.change .bar").count(), 0)

    def test_a_variant_named_script_is_shown_not_run(self):
        def rename(document):
            for row in document["results"]:
                row["variant"] = EVIL
        page = self.opened(self.changed(self.run_file(), rename))
        self.assertNotEqual(page.title(), "run")
        page.locator(".lines .pt").last.hover()
        self.assertIn(EVIL, page.locator("#tip").inner_text())

    def test_one_row(self):
        def first_only(document):
            document["results"] = document["results"][:1]
        page = self.opened(self.changed(self.run_file(), first_only))
        self.assertEqual(page.locator("#rows-table tbody tr").count(), 1)

    def test_rows_shown_are_copied_as_csv(self):
        page = self.opened(self.run_file())
        page.evaluate("navigator.clipboard.writeText = async (text) => { window.copied = text; }")
        page.fill("#find", "fake_candidate")
        page.locator("#copy").click()
        lines = page.evaluate("window.copied").strip().splitlines()
        self.assertEqual(len(lines), 1 + 3)
        self.assertTrue(all("fake_candidate" in line for line in lines[1:]))

    def test_print(self):
        page = self.opened(self.run_file())
        page.emulate_media(media="print")
        self.assertFalse(page.locator("#find").is_visible())
        self.assertTrue(page.locator("#rows-table tbody tr").last.is_visible())
        self.assertGreater(len(page.pdf()), 10000)

    def test_three_widths(self):
        page = self.opened(self.run_file())
        for width in (390, 800, 1280):
            page.set_viewport_size({"width": width, "height": 900})
            self.assertLessEqual(page.evaluate("document.documentElement.scrollWidth"), width)


if __name__ == "__main__":
    harness.main()
