#!/usr/bin/env python3
"""Hold every CUDA kernel to what its variant declares.

Compiles kernels/cuda/*.cu and src/**/cuda/*.cu to machine code only, reads registers, spills and static shared
memory from ptxas's report, and compares them with what `fdbench list variants --json` says of each
architecture. Fails on a spill, on more than is declared, on a declared occupancy that the declared resources
do not give, and on more than the architecture has. Needs nvcc, no GPU.

Reports are kept by the content of a source and of all that it includes, so that a rerun compiles only what
changed. With --build, those that a build with FDBENCH_PTXAS_REPORTS left beside its objects are taken, where
they are newer than all that and name every architecture.
"""

import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

REPO = pathlib.Path(__file__).resolve().parent.parent
MARKER = "// fdbench: sm_80+"  # on a line of its own: the source is built for sm_80 to sm_89 as well
NEW_ARCHS = [90, 100, 120]
OLD_ARCHS = [80, 86, 89]

# threads a multiprocessor, CTAs a multiprocessor, shared memory a multiprocessor, a CTA's limit (bytes).
# Source: the programming guide's table of compute capabilities, the toolkit's cuda_occupancy.h.
LIMITS = {
    80: (2048, 32, 164 * 1024, 163 * 1024),
    86: (1536, 16, 100 * 1024, 99 * 1024),
    89: (1536, 24, 100 * 1024, 99 * 1024),
    90: (2048, 32, 228 * 1024, 227 * 1024),
    100: (2048, 32, 228 * 1024, 227 * 1024),
    120: (1536, 24, 100 * 1024, 99 * 1024),
}
RESERVED_SMEM = 1024  # a CTA, the system's own


def round_up(value, unit):
    return (value + unit - 1) // unit * unit


def occupancy(cc, registers, threads, smem):
    """CTAs a multiprocessor. Registers are given out by 256 a warp over 4 quarters of 16,384, shared memory
    by 128 bytes."""
    max_threads, max_ctas, sm_smem, cta_smem = LIMITS[cc]
    if smem > cta_smem or registers > 255 or threads < 1:
        return 0
    warps = round_up(threads, 32) // 32
    by_registers = 4 * (16384 // round_up(32 * max(registers, 1), 256)) // warps
    by_smem = sm_smem // round_up(smem + RESERVED_SMEM, 128)
    return min(max_threads // 32 // warps, max_ctas, by_registers, by_smem)


def kernel_name(mangled):
    """The function's own name out of an Itanium-mangled one, without namespaces and template arguments."""
    if not mangled.startswith("_Z"):
        return mangled
    at = 2
    while at < len(mangled) and mangled[at] in "NKL":
        at += 1
    name = mangled
    while at < len(mangled) and mangled[at].isdigit():
        digits = re.match(r"\d+", mangled[at:]).group()
        at += len(digits)
        name = mangled[at : at + int(digits)]
        at += int(digits)
    return name


def parse_report(text):
    """[{kernel, cc, registers, static_smem, stack, spill}] of ptxas's verbose output."""
    found = []
    for line in text.splitlines():
        if match := re.search(r"Compiling entry function '(\S+)' for 'sm_(\d+)", line):
            found.append({"kernel": kernel_name(match[1]), "cc": int(match[2]), "registers": None,
                          "static_smem": 0, "stack": 0, "spill": 0})
        elif not found:
            continue
        elif match := re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads",
                                line):
            # A function that an entry calls reports under it.
            found[-1]["stack"] += int(match[1])
            found[-1]["spill"] += int(match[2]) + int(match[3])
        elif match := re.search(r"Used (\d+) registers", line):
            found[-1]["registers"] = int(match[1])
            if smem := re.search(r"(\d+) bytes smem", line):
                found[-1]["static_smem"] = int(smem[1])
    return found


def included_files(source):
    """`source` and what it includes in quotes, transitively, as far as it is in the tree."""
    seen, todo = [], [source]
    while todo:
        path = todo.pop()
        if path in seen:
            continue
        seen.append(path)
        for name in re.findall(r'^\s*#\s*include\s+"([^"]+)"', path.read_text(), re.M):
            for root in (path.parent, REPO / "src", REPO / "kernels"):
                if (root / name).is_file():
                    todo.append((root / name).resolve())
                    break
    return sorted(seen)


def built_report(build, source, archs):
    """The report that the build left of `source`, or None where it left none that holds."""
    newest = max(path.stat().st_mtime for path in included_files(source))
    for path in build.glob(f"CMakeFiles/*.dir/{source.relative_to(REPO).as_posix()}.o.ptxas"):
        if path.stat().st_mtime < newest or not path.with_suffix("").is_file():
            continue
        text = path.read_text()
        report = parse_report(text)
        # A source without kernels has this line alone, once for each architecture.
        complete = text.count("bytes gmem") == len(archs) and {e["cc"] for e in report} in (set(archs), set())
        if complete and all(e["registers"] for e in report):
            return report
    return None


def compile_report(nvcc, nvcc_version, cache, build, source, archs):
    gencode = [f"-gencode=arch=compute_{cc},code=sm_{cc}" for cc in archs]
    flags = ["-std=c++20", "-I", str(REPO / "src"), "-I", str(REPO / "kernels"), "-Xptxas", "-v", *gencode]
    key = hashlib.sha256(" ".join([nvcc_version, "-std=c++20", *gencode]).encode())
    for path in included_files(source):
        key.update(str(path.relative_to(REPO)).encode() + b"\0" + path.read_bytes() + b"\0")
    kept = cache / f"{source.stem}-{key.hexdigest()[:24]}.json"
    if kept.is_file():
        return json.loads(kept.read_text())
    report = built_report(build, source, archs) if build else None
    if report is None:
        report = fresh_report(nvcc, flags, source)
    cache.mkdir(parents=True, exist_ok=True)
    for old in cache.glob(f"{source.stem}-*.json"):
        old.unlink()
    unfinished = kept.with_suffix(f".{os.getpid()}")
    unfinished.write_text(json.dumps(report))
    unfinished.replace(kept)
    return report


def fresh_report(nvcc, flags, source):
    with tempfile.TemporaryDirectory() as scratch:
        done = subprocess.run([nvcc, *flags, "-fatbin", "-o", f"{scratch}/out.fatbin", str(source)],
                              capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{source.relative_to(REPO)} does not compile:\n{done.stderr}{done.stdout}")
    return parse_report(done.stderr + done.stdout)


def check_source(source, report, archs, declared):
    """(table rows, complaints). `declared`: the variant's resources, or None where the source is no variant."""
    rows, complaints = [], []
    where = source.relative_to(REPO)

    def complain(text):
        complaints.append(f"{where}: {text}")

    for entry in report:
        kernel, cc = entry["kernel"], entry["cc"]
        label = f"{kernel} on sm_{cc}"
        if entry["spill"]:
            complain(f"{label} spills {entry['spill']} bytes")
        own = [r for r in declared or [] if r["kernel"] == kernel and r["cc"] == cc]
        limit = {what: max((r[what] for r in own), default=None) for what in ("registers", "static_smem")}
        for what, most in limit.items():
            if most is not None and entry[what] > most:
                complain(f"{label} takes {entry[what]} {what}, the variant declares {most}")
        if declared is not None and not any(r["kernel"] == kernel for r in declared):
            complain(f"{label} is not among the resources that the variant declares")
        rows.append((str(where), kernel, f"sm_{cc}", entry["registers"], limit["registers"] or "-",
                     entry["static_smem"], "-" if limit["static_smem"] is None else limit["static_smem"],
                     entry["spill"], max((r["dynamic_smem"] for r in own), default="-"),
                     min((r["ctas_per_sm"] for r in own), default="-")))

    for r in declared or []:
        cc = r["cc"]
        if cc not in archs:
            if cc in LIMITS and cc in OLD_ARCHS and MARKER not in source.read_text().splitlines():
                complain(f"{r['kernel']} is declared for sm_{cc}, for which the source is not built")
            continue
        label = f"{r['kernel']} on sm_{cc}"
        if not any(e["kernel"] == r["kernel"] and e["cc"] == cc for e in report):
            complain(f"{label} is declared and was not compiled")
        smem = r["static_smem"] + r["dynamic_smem"]
        _, _, sm_smem, cta_smem = LIMITS[cc]
        if smem > cta_smem:
            complain(f"{label} declares {smem} bytes of shared memory a CTA, the limit is {cta_smem}")
        if r["ctas_per_sm"] * (smem + RESERVED_SMEM) > sm_smem:
            complain(f"{label} declares {r['ctas_per_sm']} CTAs of {smem} + {RESERVED_SMEM} bytes of shared "
                     f"memory, a multiprocessor has {sm_smem}")
        gives = occupancy(cc, r["registers"], r["threads"], smem)
        if gives < r["ctas_per_sm"] or gives == 0:
            complain(f"{label} promises {r['ctas_per_sm']} CTAs a multiprocessor, what it declares gives {gives}")
    return rows, complaints


def print_table(rows):
    head = ("source", "kernel", "arch", "regs", "<=", "static", "<=", "spill", "dynamic", "CTAs/SM")
    widths = [max(len(str(row[i])) for row in [head, *rows]) for i in range(len(head))]
    for row in [head, *rows]:
        print("  ".join(str(cell).ljust(w) if i < 3 else str(cell).rjust(w)
                        for i, (cell, w) in enumerate(zip(row, widths))).rstrip())


def declared_resources(arguments):
    """{variant name: resources} of the CUDA variants."""
    if arguments.declared:
        listing = json.loads(pathlib.Path(arguments.declared).read_text())
    else:
        listing = json.loads(subprocess.run([arguments.binary, "list", "variants", "--json"], check=True,
                                            capture_output=True, text=True).stdout)
    return {v["name"]: v.get("resources", []) for v in listing["variants"] if v.get("backend", "cuda") == "cuda"}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default=os.environ.get("FDBENCH_BIN"), help="fdbench, built with CUDA")
    parser.add_argument("--declared", help="a file with its `list variants --json`, in its place")
    parser.add_argument("--archs", default=",".join(map(str, NEW_ARCHS)), help="of the sources that need sm_90")
    parser.add_argument("--old-archs", default=",".join(map(str, OLD_ARCHS)),
                        help=f"beside those, of the sources that say '{MARKER}'; may be empty")
    parser.add_argument("--nvcc", default=os.environ.get("CUDACXX"))
    parser.add_argument("--cache", default=str(REPO / ".cache" / "resources"))
    parser.add_argument("--build", type=pathlib.Path, help="a build folder with reports to take")
    parser.add_argument("--jobs", type=int, default=2, help="compilers at a time, 2 at most")
    parser.add_argument("--only", default="", help="sources whose name contains this")
    arguments = parser.parse_args()

    nvcc = arguments.nvcc or shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    if not shutil.which(nvcc):
        print("skipped: nvcc was not found (looked in CUDACXX, PATH and /usr/local/cuda/bin)")
        return 0
    if not arguments.binary and not arguments.declared:
        print("check_resources.py: give --binary (or FDBENCH_BIN), or --declared", file=sys.stderr)
        return 2
    declared = declared_resources(arguments)
    if not declared:
        print("skipped: the binary has no CUDA variants (it was built without CUDA)")
        return 0
    archs = [int(a) for a in arguments.archs.split(",") if a]
    old_archs = [int(a) for a in arguments.old_archs.split(",") if a]
    for cc in archs + old_archs:
        if cc not in LIMITS:
            print(f"check_resources.py: sm_{cc} is not one of {sorted(LIMITS)}", file=sys.stderr)
            return 2

    variants = sorted((REPO / "kernels/cuda").glob("*.cu"))
    others = sorted((REPO / "src").glob("**/*.cu")) + sorted((REPO / "kernels/cuda/detail").glob("*.cu"))
    sources = [s for s in variants + others if arguments.only in s.name]
    nvcc_version = subprocess.run([nvcc, "--version"], check=True, capture_output=True, text=True).stdout
    cache = pathlib.Path(arguments.cache)
    rows, complaints = [], []
    with concurrent.futures.ThreadPoolExecutor(max_workers=max(1, min(arguments.jobs, 2))) as pool:
        pending = []
        for source in sources:
            built_for = (old_archs if MARKER in source.read_text().splitlines() else []) + archs
            pending.append((source, built_for,
                            pool.submit(compile_report, nvcc, nvcc_version, cache, arguments.build, source, built_for)))
        for source, built_for, future in pending:
            try:
                report = future.result()
            except RuntimeError as error:
                complaints.append(str(error))
                continue
            own = None
            if source in variants:
                own = declared.get(source.stem)
                if own is None:
                    complaints.append(f"{source.relative_to(REPO)}: the binary has no variant of that name")
            new_rows, new_complaints = check_source(source, report, built_for, own)
            rows += new_rows
            complaints += new_complaints
    for name in declared:
        if not (REPO / f"kernels/cuda/{name}.cu").is_file():
            complaints.append(f"variant {name} has no kernels/cuda/{name}.cu")

    print_table(rows)
    print()
    for complaint in complaints:
        print(f"FAIL {complaint}")
    print(f"{len(rows)} kernels of {len(sources)} sources, {len(complaints)} complaints")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
