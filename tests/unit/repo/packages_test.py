#!/usr/bin/env python3
"""scripts/lib/packages.sh with stand-ins for the package managers: what they are asked, and what the user is told."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

REPO = pathlib.Path(os.environ.get("FDBENCH_REPO") or pathlib.Path(__file__).resolve().parents[3])

# A package appears as its stand-in in $HERE/have when apt-get installs it; apt-get itself only writes down its calls.
APT_GET = """#!/bin/sh
words=
for word; do
  case $word in
    update | install | --simulate | *-dev | cmake | ninja-build | nowhere) words="$words $word" ;;
  esac
done
case $words in
  *--simulate*) [ -f "$HERE/lists" ]; exit ;;
esac
echo "apt-get$words frontend=$DEBIAN_FRONTEND" >>"$HERE/calls"
case $words in
  *update*) touch "$HERE/lists" ;;
  *install*) [ -f "$HERE/broken" ] && exit 100
             [ -f "$HERE/stale" ] && rm "$HERE/stale" && exit 100
             for word in $words; do touch "$HERE/have/$word"; done ;;
esac
exit 0
"""
# Every need is there when its package is in $HERE/have.
STAND_INS = """
has_command() { case $1 in cmake | ninja) [ -f "$HERE/have/$1" ] ;; *) command -v "$1" >/dev/null 2>&1 ;; esac; }
has_header() { [ -f "$HERE/have/$1" ]; }
NEEDS='
cmake|has_command cmake|cmake|cmake-dnf|cmake-pacman|cmake-zypper|cmake-brew
fmt|has_header libfmt-dev|libfmt-dev|fmt-devel|fmt-pacman|fmt-zypper|fmt-brew
'
"""


class Packages(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.here = pathlib.Path(self.folder.name)
        (self.here / "bin").mkdir()
        (self.here / "have").mkdir()
        for tool in ("bash", "sh", "cat", "env", "head", "sed", "sort", "touch", "tr", "rm", "uname"):
            os.symlink(shutil.which(tool), self.here / "bin" / tool)
        self.command("id", "#!/bin/sh\necho 0\n")

    def command(self, name, text):
        path = self.here / "bin" / name
        path.write_text(text)
        path.chmod(0o755)

    def touch(self, *names):
        for name in names:
            (self.here / name).touch()

    def need(self, needs="$NEEDS"):
        script = f'. "{REPO}/scripts/lib/packages.sh"; {STAND_INS}\nneed "{needs}"; echo went on'
        return subprocess.run(["bash", "-euo", "pipefail", "-c", script], capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, env={"PATH": str(self.here / "bin"), "HERE": str(self.here)})

    def calls(self):
        path = self.here / "calls"
        return path.read_text().splitlines() if path.exists() else []

    def assert_went_on(self, done):
        self.assertEqual((done.returncode, done.stdout), (0, "went on\n"), done.stderr)

    def assert_ended(self, done, text):
        self.assertEqual((done.returncode, done.stdout), (1, ""), done.stderr)
        self.assertIn(text, done.stderr)

    def test_nothing_missing_calls_nothing(self):
        self.command("apt-get", APT_GET)
        self.touch("have/cmake", "have/libfmt-dev")
        self.assert_went_on(self.need())
        self.assertEqual(self.calls(), [])

    def test_nothing_missing_needs_no_package_manager(self):
        self.touch("have/cmake", "have/libfmt-dev")
        self.assert_went_on(self.need())

    def test_only_what_is_missing_and_lists_only_when_absent(self):
        self.command("apt-get", APT_GET)
        self.touch("have/cmake")
        self.assert_went_on(self.need())
        self.assertEqual(self.calls(), ["apt-get update frontend=noninteractive",
                                        "apt-get install libfmt-dev frontend=noninteractive"])
        self.assert_went_on(self.need())
        self.assertEqual(len(self.calls()), 2)

    def test_lists_that_are_there_are_not_fetched(self):
        self.command("apt-get", APT_GET)
        self.touch("lists")
        self.assert_went_on(self.need())
        self.assertEqual(self.calls(), ["apt-get install cmake libfmt-dev frontend=noninteractive"])

    def test_stale_lists_are_fetched_once(self):
        self.command("apt-get", APT_GET)
        self.touch("lists", "stale")
        self.assert_went_on(self.need())
        self.assertEqual([call.split()[1] for call in self.calls()], ["install", "update", "install"])

    def test_apt_failing_is_said(self):
        self.command("apt-get", APT_GET)
        self.touch("broken")
        self.assert_ended(self.need(), "apt-get could not install: cmake libfmt-dev")

    def test_installed_and_still_not_there_is_said(self):
        self.command("apt-get", APT_GET)
        self.assert_ended(self.need("lost|has_header elsewhere|nowhere|a|b|c|d\n"),
                          "still not found after installing nowhere: lost")

    def test_neither_root_nor_sudo(self):
        self.command("apt-get", APT_GET)
        self.command("id", "#!/bin/sh\necho 1000\n")
        self.assert_ended(self.need(), "apt-get update && apt-get install -y cmake libfmt-dev")
        self.assertEqual(self.calls(), [])

    def test_sudo_must_not_ask_without_a_terminal(self):
        self.command("apt-get", APT_GET)
        self.command("id", "#!/bin/sh\necho 1000\n")
        self.command("sudo", '#!/bin/sh\n[ "$1" = -n ] || exit 9\nshift\nexec "$@"\n')
        self.touch("lists")
        self.assert_went_on(self.need())
        self.assertEqual(self.calls(), ["apt-get install cmake libfmt-dev frontend=noninteractive"])

    def test_other_managers_are_told_not_run(self):
        for manager, line in {"dnf": "sudo dnf install cmake-dnf fmt-devel",
                              "pacman": "sudo pacman -S --needed cmake-pacman fmt-pacman",
                              "zypper": "sudo zypper install cmake-zypper fmt-zypper",
                              "brew": "brew install cmake-brew fmt-brew"}.items():
            with self.subTest(manager=manager):
                self.command(manager, '#!/bin/sh\ntouch "$HERE/ran"\n')
                self.assert_ended(self.need(), line)
                self.assertFalse((self.here / "ran").exists())
                (self.here / "bin" / manager).unlink()

    def test_highway_is_optional_where_it_would_not_be_installed(self):
        needs = "highway|has_header hwy|libhwy-dev|highway-devel|b|c|d\n"
        self.command("dnf", "#!/bin/sh\nexit 1\n")
        done = self.need(needs)
        self.assert_went_on(done)
        self.assertIn("going on without Highway", done.stderr)
        self.assert_ended(self.need("${NEEDS}" + needs), "sudo dnf install cmake-dnf fmt-devel highway-devel")

    def test_no_manager_at_all(self):
        self.assert_ended(self.need(), "Install the development files of: cmake fmt")


class QuickstartWithoutApt(unittest.TestCase):
    def test_prints_what_to_install(self):
        with tempfile.TemporaryDirectory() as folder:
            here = pathlib.Path(folder)
            for tool in ("bash", "env", "dirname", "uname", "tr", "cat", "sed", "head"):
                os.symlink(shutil.which(tool), here / tool)
            (here / "dnf").write_text("#!/bin/sh\nexit 1\n")
            (here / "dnf").chmod(0o755)
            done = subprocess.run([REPO / "scripts/quickstart.sh"], capture_output=True, text=True, env={"PATH": folder})
        self.assertEqual(done.returncode, 1)
        self.assertIn("sudo dnf install gcc-c++ cmake ninja-build git python3 cli11-devel json-devel fmt-devel highway-devel\n",
                      done.stderr)


if __name__ == "__main__":
    unittest.main()
