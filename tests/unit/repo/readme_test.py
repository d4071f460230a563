#!/usr/bin/env python3
"""The README's first commands are the two scripts, and they are there to be run."""

import os
import pathlib
import re
import unittest

REPO = pathlib.Path(os.environ.get("FDBENCH_REPO") or pathlib.Path(__file__).resolve().parents[3])


def first_block(text):
    """The lines of the first fenced code block, without comments and blank lines."""
    block = re.search(r"^```[^\n]*\n(.*?)^```", text, re.M | re.S)
    lines = [re.sub(r"\s+#.*", "", line).strip() for line in block[1].splitlines()] if block else []
    return [line for line in lines if line and not line.startswith("#")]


class Readme(unittest.TestCase):
    def test_first_commands(self):
        commands = first_block((REPO / "README.md").read_text())
        self.assertEqual(commands, ["scripts/quickstart.sh", "scripts/test.sh"])
        for command in commands:
            self.assertTrue(os.access(REPO / command, os.X_OK), f"{command} is not executable")

    def test_quickstart_runs_what_the_readme_is_about(self):
        script = (REPO / "scripts/quickstart.sh").read_text()
        self.assertIn("\nexec build/fdbench run --seq 8192 --heads 32 --out results/local\n", script)

    def test_relative_links_lead_somewhere(self):
        for page in [REPO / "README.md", REPO / "CONTRIBUTING.md", REPO / "CHANGELOG.md", *(REPO / "docs").glob("*.md")]:
            for target in re.findall(r"\]\(([^)#\s]+)", page.read_text()):
                if not re.match(r"[a-z]+:", target):
                    self.assertTrue((page.parent / target).exists(), f"{page.relative_to(REPO)}: {target}")

    def test_paths_in_backticks_of_contributing_exist(self):
        for path in re.findall(r"`((?:scripts|\.ci)/[\w./]+)", (REPO / "CONTRIBUTING.md").read_text()):
            self.assertTrue((REPO / path).exists(), path)


if __name__ == "__main__":
    unittest.main()
