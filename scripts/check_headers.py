#!/usr/bin/env python3
"""Compile every header alone: what it needs, it includes. Needs the packages that the build needs.

C++ headers go to the C++ compiler with the build's warnings as errors; those under kernels/cuda, src/cuda and
every .cuh to nvcc, or are left out with a line saying so where there is none.

With --built, for use beside a build with warnings as errors, a header that the .cpp beside it includes before
anything else is left to that build, which compiles it first on the same terms.
"""

import argparse
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

REPO = pathlib.Path(__file__).resolve().parent.parent
TOPS = ("src", "kernels", "tests")
SUFFIXES = {".h", ".hpp", ".cuh"}


def needs_cuda(path):
    return path.suffix == ".cuh" or path.as_posix().startswith(("kernels/cuda/", "src/cuda/", "src/backend/cuda/"))


def opens_its_source(root, path):
    """Whether the first directive of the .cpp beside the header includes it."""
    source = (root / path).with_suffix(".cpp")
    if path.suffix == ".cuh" or not source.is_file():
        return False
    first = re.search(r"^[ \t]*#[^\n]*", source.read_text(), re.M)
    included = first and re.match(r'[ \t]*#[ \t]*include[ \t]*"([^"]+)"', first.group())
    return bool(included) and path.relative_to(path.parts[0]).as_posix() == included[1]


def compile_alone(command, path, root, scratch):
    """What the compiler said against it, or ''."""
    source = pathlib.Path(scratch) / (path.as_posix().replace("/", "-") + (".cu" if needs_cuda(path) else ".cpp"))
    source.write_text(f'#include "{(root / path).as_posix()}"\n')
    done = subprocess.run([*command, str(source)], capture_output=True, text=True)
    return "" if done.returncode == 0 else (done.stderr + done.stdout or f"exit {done.returncode}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root", nargs="?", default=REPO, type=pathlib.Path)
    parser.add_argument("--cxx", default=os.environ.get("CXX") or "c++")
    parser.add_argument("--nvcc", default=os.environ.get("CUDACXX") or shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc")
    parser.add_argument("--built", action="store_true", help="leave to the build what it compiles first in a .cpp")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    arguments = parser.parse_args()
    root = arguments.root.resolve()

    roots = [flag for top in ("src", "kernels", "tests") for flag in ("-I", str(root / top))]
    cxx = [arguments.cxx, "-std=c++20", *roots, "-Wall", "-Wextra", "-Wshadow", "-Wconversion", "-Werror", "-fsyntax-only"]
    # What the build defines for the tests.
    cxx += [f'-D{name}=""' for name in ("FDBENCH_TEST_DATA", "FDBENCH_REPO", "FDBENCH_BINARY")]
    nvcc = [arguments.nvcc, "-std=c++20", *roots, "-Xcompiler=-Wall,-Wextra", "-arch=sm_90", "-ptx", "-o", os.devnull]

    headers = sorted(p.relative_to(root) for top in TOPS for p in (root / top).rglob("*") if p.suffix in SUFFIXES)
    for_cuda = [p for p in headers if needs_cuda(p)]
    if for_cuda and not shutil.which(arguments.nvcc):
        print(f"skipped {len(for_cuda)} CUDA headers: nvcc was not found")
        headers = [p for p in headers if not needs_cuda(p)]
    left = [p for p in headers if arguments.built and opens_its_source(root, p)]
    headers = [p for p in headers if p not in left]
    failed = 0
    with tempfile.TemporaryDirectory() as scratch, concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        said = pool.map(lambda p: compile_alone(nvcc if needs_cuda(p) else cxx, p, root, scratch), headers)
        for path, text in zip(headers, said):
            if text:
                failed += 1
                print(f"{path} does not compile alone:\n{text}")
    print(f"{len(headers)} headers, {failed} do not compile alone"
          + (f"; {len(left)} more open a .cpp of the build" if arguments.built else ""))
    return 1 if failed or not headers else 0


if __name__ == "__main__":
    sys.exit(main())
