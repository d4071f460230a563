"""scripts/check_resources.py: that it reads the compiler's report and complains; then, on every CUDA kernel of
the build, that there is nothing to complain about."""

import importlib.util
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

REPO = pathlib.Path(os.environ.get("FDBENCH_REPO", pathlib.Path(__file__).resolve().parents[3]))
SCRIPT = REPO / "scripts" / "check_resources.py"

spec = importlib.util.spec_from_file_location("check_resources", SCRIPT)
check = importlib.util.module_from_spec(spec)
spec.loader.exec_module(check)

REPORT = """
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function '_ZN7fdbench34_GLOBAL__N__70e8f03f_4_x_cu_1b2c3d10row_kernelILi128EEEvNS0_6ParamsE' for 'sm_90'
ptxas info    : Function properties for _ZN7fdbench52_GLOBAL__N__x11row_kernelILi128EEEvNS0_6ParamsE
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 56 registers, used 1 barriers, 64 bytes smem
ptxas info    : Compile time = 1.0 ms
ptxas info    : Compiling entry function '_ZN3one9my_kernelEPf' for 'sm_120'
ptxas info    : Function properties for _ZN3one9my_kernelEPf
    16 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads
ptxas info    : Used 40 registers, used 0 barriers, 368 bytes cmem[0]
"""
SOURCE = REPO / "kernels" / "cuda" / "cuda_oracle.cu"


def entry(**changes):
    return {"kernel": "k", "cc": 90, "registers": 40, "static_smem": 0, "stack": 0, "spill": 0} | changes


def resource(**changes):
    return {"kernel": "k", "cc": 90, "registers": 40, "static_smem": 0, "dynamic_smem": 0, "threads": 256,
            "ctas_per_sm": 5} | changes


def complaints(entries, resources, archs=(90,)):
    return check.check_source(SOURCE, entries, list(archs), resources)[1]


class Parsing(unittest.TestCase):
    def test_report(self):
        first, second = check.parse_report(REPORT)
        self.assertEqual((first["cc"], first["registers"], first["static_smem"], first["spill"]), (90, 56, 64, 0))
        self.assertEqual((second["kernel"], second["cc"], second["registers"]), ("my_kernel", 120, 40))
        self.assertEqual((second["static_smem"], second["stack"], second["spill"]), (0, 16, 20))

    def test_kernel_names(self):
        self.assertEqual(check.kernel_name("_ZN7fdbench3abc12row_kernel_2ILi128ELb1EEEvNS_1PE"), "row_kernel_2")
        self.assertEqual(check.kernel_name("_Z6kernelPf"), "kernel")
        self.assertEqual(check.kernel_name("_ZN7fdbench12_GLOBAL__N_16kernelILi1EEEvPf"), "kernel")
        self.assertEqual(check.kernel_name("plain_c"), "plain_c")


class ReportsOfABuild(unittest.TestCase):
    """What keep_ptxas_report.sh leaves beside an object is taken where it is complete and newer than the source."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.build = pathlib.Path(folder.name)
        self.object = self.build / "CMakeFiles/fdbench_kernels.dir/kernels/cuda/cuda_oracle.cu.o"
        self.object.parent.mkdir(parents=True)
        self.object.touch()
        self.report = self.object.with_name(self.object.name + ".ptxas")
        self.report.write_text(REPORT.replace("ptxas info    : Compiling entry function '_ZN3one",
                                              "ptxas info    : 0 bytes gmem\nptxas info    : Compiling entry function '_ZN3one"))

    def test_taken(self):
        self.assertEqual([e["cc"] for e in check.built_report(self.build, SOURCE, [90, 120])], [90, 120])

    def test_left_where_an_architecture_is_missing(self):
        self.assertIsNone(check.built_report(self.build, SOURCE, [90, 100, 120]))

    def test_left_where_the_source_is_newer(self):
        os.utime(self.report, (1, 1))
        self.assertIsNone(check.built_report(self.build, SOURCE, [90, 120]))

    def test_left_where_the_object_is_gone(self):
        self.object.unlink()
        self.assertIsNone(check.built_report(self.build, SOURCE, [90, 120]))

    def test_launcher_keeps_what_ptxas_says_and_passes_on_the_rest(self):
        compiler = self.build / "compiler"
        compiler.write_text("#!/bin/sh\necho 'ptxas info    : 0 bytes gmem' >&2\necho 'a warning' >&2\nexit $STATUS\n")
        compiler.chmod(0o755)
        for status, kept in ((0, True), (3, False)):
            done = subprocess.run([REPO / "scripts/lib/keep_ptxas_report.sh", compiler, "-c", "x.cu", "-o", self.object],
                                  env={**os.environ, "STATUS": str(status)}, capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stderr), (status, "a warning\n"))
            self.assertEqual(self.report.exists(), kept)


class Occupancy(unittest.TestCase):
    def test_each_limit(self):
        self.assertEqual(check.occupancy(90, 32, 256, 0), 8)  # threads
        self.assertEqual(check.occupancy(90, 255, 256, 0), 1)  # registers: 8 warps of 8,192
        self.assertEqual(check.occupancy(90, 40, 128, 49176), 4)  # shared memory: 228 KB / 50,304
        self.assertEqual(check.occupancy(90, 16, 32, 0), 32)  # CTAs
        self.assertEqual(check.occupancy(120, 40, 128, 99 * 1024), 1)
        self.assertEqual(check.occupancy(120, 40, 128, 99 * 1024 + 1), 0)


class Complaints(unittest.TestCase):
    def test_all_is_well(self):
        self.assertEqual(complaints([entry()], [resource()]), [])

    def test_spill(self):
        self.assertIn("spills 8", complaints([entry(spill=8)], [resource()])[0])
        self.assertIn("spills 8", complaints([entry(spill=8)], None)[0])

    def test_more_than_declared(self):
        self.assertIn("41 registers", complaints([entry(registers=41)], [resource()])[0])
        self.assertIn("4 static_smem", complaints([entry(static_smem=4)], [resource()])[0])

    def test_undeclared_and_uncompiled(self):
        self.assertIn("not among", complaints([entry(), entry(kernel="other")], [resource()])[0])
        self.assertIn("was not compiled", complaints([], [resource()])[0])

    def test_occupancy_promised(self):
        self.assertIn("gives 6", complaints([entry()], [resource(ctas_per_sm=7)])[0])

    def test_limits_of_sm_120(self):
        over = complaints([entry(cc=120)], [resource(cc=120, dynamic_smem=99 * 1024 + 16, ctas_per_sm=1)], [120])
        self.assertIn("the limit is 101376", over[0])
        both = complaints([entry(cc=120)], [resource(cc=120, dynamic_smem=60 * 1024, ctas_per_sm=2)], [120])
        self.assertIn("a multiprocessor has 102400", both[0])


class EveryKernel(unittest.TestCase):
    @unittest.skipUnless(os.environ.get("FDBENCH_BIN"), "FDBENCH_BIN names no program")
    def test_holds_to_what_it_declares(self):
        done = subprocess.run([sys.executable, str(SCRIPT)], capture_output=True, text=True, check=False)
        if done.stdout.startswith("skipped"):
            self.skipTest(done.stdout.strip())
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
