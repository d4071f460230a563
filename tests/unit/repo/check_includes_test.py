#!/usr/bin/env python3
"""The tree keeps to the house's include directions, and the check sees each kind of breach."""

import os
import pathlib
import sys
import tempfile
import unittest

REPO = pathlib.Path(os.environ.get("FDBENCH_REPO") or pathlib.Path(__file__).resolve().parents[3])
sys.path.insert(0, str(REPO / "scripts"))
import check_includes  # noqa: E402


class Tree(unittest.TestCase):
    def test_the_tree_has_no_breach(self):
        self.assertEqual(check_includes.check(REPO), [])


class Planted(unittest.TestCase):
    """Each test plants files in an empty tree, all others being in order."""

    def check(self, files):
        with tempfile.TemporaryDirectory() as root:
            base = {
                "src/core/problem.h": "#pragma once\n#include <string>\n",
                "src/stats/summary.h": "#pragma once\n",
                "src/io/file.h": '#include "core/problem.h"\n#include <nlohmann/json.hpp>\n',
                "src/bench/runner.h": '#include "backend/backend.h"\n#include "stats/summary.h"\n',
                "src/backend/backend.h": '#include "core/problem.h"\n',
                "src/backend/cuda/cuda_backend.cu": '#include <cuda_runtime.h>\n#include "cuda/check.h"\n',
                "src/cuda/check.h": "#include <cuda_runtime_api.h>\n",
                "src/rules/int_math.h": "",
                "src/report/table.h": '#include "io/file.h"\n',
                "src/cli/app.cpp": '#include <CLI/CLI.hpp>\n#include "bench/runner.h"\n#include <fmt/core.h>\n',
                "kernels/cpu/detail/rows.h": '#include "core/problem.h"\n#include "rules/int_math.h"\n',
                "kernels/cuda/detail/copy.cuh": 'asm volatile("");\n#include <cuda/ptx>\n',
                "kernels/cuda/one.cu": '#include "cuda/check.h"\n#include "detail/copy.cuh"\n',
            }
            for name, text in {**base, **files}.items():
                path = pathlib.Path(root, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            return check_includes.check(root)

    def assert_one(self, files, start, reason):
        found = self.check(files)
        self.assertEqual(len(found), 1, found)
        self.assertTrue(found[0].startswith(start), found)
        self.assertIn(reason, found[0])

    def test_a_tree_in_order(self):
        self.assertEqual(self.check({}), [])

    def test_every_pair_of_modules(self):
        # The design's own list, written out here a second time on purpose.
        allowed = {
            "core": "", "stats": "", "rules": "core", "io": "core", "cuda": "core", "backend": "core cuda",
            "bench": "backend stats core", "tune": "bench rules stats core", "compare": "stats core",
            "report": "io core", "kernels": "core rules cuda",
            "cli": "core stats rules io cuda backend bench tune compare report",
        }
        for source, targets in allowed.items():
            for target in allowed:
                folder = {"kernels": "kernels/cuda"}.get
                files = {
                    f"{folder(target) or 'src/' + target}/planted_target.h": "",
                    f"{folder(source) or 'src/' + source}/planted.h":
                        f'#include "{target if target != "kernels" else "cuda"}/planted_target.h"\n',
                }
                fine = target == source or target in targets.split()
                with self.subTest(source=source, target=target):
                    self.assertEqual(len(self.check(files)), 0 if fine else 1)

    def test_line_and_reason_are_named(self):
        self.assert_one({"src/compare/verdict.cpp": '#include <cmath>\n\n#include "backend/backend.h"\n'},
                        "src/compare/verdict.cpp:3: includes backend/backend.h",
                        "compare may include core, stats, not backend")

    def test_a_way_round_through_a_relative_path(self):
        self.assert_one({"src/core/sly.h": '#include "../io/file.h"\n'}, "src/core/sly.h:1:", "nothing of ours, not io")

    def test_kernels_are_included_by_nobody(self):
        self.assert_one({"src/cli/run.cpp": '#include "../../kernels/cpu/detail/rows.h"\n'}, "src/cli/run.cpp:1:",
                        "nobody includes kernels")

    def test_json_only_in_io(self):
        self.assert_one({"src/cli/run.cpp": "#include <nlohmann/json.hpp>\n"}, "src/cli/run.cpp:1:", "JSON")

    def test_cli11_only_in_cli(self):
        self.assert_one({"src/bench/run.cpp": "#include <CLI/CLI.hpp>\n"}, "src/bench/run.cpp:1:", "CLI11")

    def test_fmt_not_in_bench(self):
        self.assert_one({"src/bench/run.cpp": "#include <fmt/core.h>\n"}, "src/bench/run.cpp:1:", "fmt")

    def test_cuda_headers_by_place(self):
        for name in ("src/core/half.h", "src/cli/a.cpp", "src/backend/cuda/resources.h", "src/backend/a.cpp", "kernels/cpu/a.cpp"):
            for header in ("cuda_bf16.h", "cuda.h", "cublas_v2.h", "cuda/ptx", "cooperative_groups.h"):
                with self.subTest(name=name, header=header):
                    self.assert_one({name: f"#include <{header}>\n"}, f"{name}:1:", "CUDA")

    def test_core_takes_the_standard_library_alone(self):
        self.assert_one({"src/core/a.cpp": "#include <unistd.h>\n"}, "src/core/a.cpp:1:", "the system")

    def test_an_unknown_package(self):
        self.assert_one({"src/io/a.cpp": "#include <boost/any.hpp>\n"}, "src/io/a.cpp:1:", "neither")

    def test_a_file_that_is_not_there(self):
        self.assert_one({"src/io/a.cpp": '#include "core/nowhere.h"\n'}, "src/io/a.cpp:1:", "no file of ours")

    def test_a_folder_that_is_no_module(self):
        self.assert_one({"src/util/a.h": ""}, "src/util/a.h:", "not in a module")

    def test_comments_do_not_count(self):
        self.assertEqual(self.check({"src/core/a.h": '// #include "io/file.h"\n/*\n#include "io/file.h"\nasm("")\n*/\n'}), [])

    def test_assembly_outside_detail(self):
        for name in ("kernels/cuda/two.cu", "src/cuda/check.cuh", "src/backend/cuda/b.cu", "src/core/half.h"):
            with self.subTest(name=name):
                self.assert_one({name: 'constexpr int k = 1\'000;  // asm\nconst char* s = "asm";\n  asm volatile("nop;");\n'},
                                f"{name}:3:", "kernels/cuda/detail")


if __name__ == "__main__":
    unittest.main()
