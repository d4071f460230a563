#!/usr/bin/env python3
"""Hold the tree's includes to the directions of the house: see RULES. Prints one line a breach, exits 1 if any.

    scripts/check_includes.py [ROOT]
"""

import argparse
import pathlib
import re
import sys

# Module: the modules of ours that it may include beside itself.
RULES = {
    "core": set(),
    "stats": set(),
    "rules": {"core"},
    "io": {"core"},
    "cuda": {"core"},
    "backend": {"core", "cuda"},
    "bench": {"backend", "stats", "core"},
    "tune": {"bench", "rules", "stats", "core"},
    "compare": {"stats", "core"},
    "report": {"io", "core"},
    "cli": {"core", "stats", "rules", "io", "cuda", "backend", "bench", "tune", "compare", "report"},
    "kernels": {"core", "rules", "cuda"},
}

STANDARD = set("""
algorithm any array atomic barrier bit bitset cassert cctype cerrno cfenv cfloat charconv chrono cinttypes climits
clocale cmath compare complex concepts condition_variable coroutine csetjmp csignal cstdarg cstddef cstdint cstdio
cstdlib cstring ctime cuchar cwchar cwctype deque exception execution filesystem format forward_list fstream
functional future initializer_list iomanip ios iosfwd iostream istream iterator latch limits list locale map memory
memory_resource mutex new numbers numeric optional ostream queue random ranges ratio regex scoped_allocator
semaphore set shared_mutex source_location span sstream stack stdexcept stop_token streambuf string string_view
syncstream system_error thread tuple type_traits typeindex typeinfo unordered_map unordered_set utility valarray
variant vector version
""".split())

# What else comes from outside: kind, a pattern of the header's name, and which modules may include it.
EXTERNAL = [
    ("JSON", r"nlohmann/", {"io"}),
    ("CLI11", r"CLI/", {"cli"}),
    ("fmt", r"fmt/", {"cli", "io", "report"}),
    ("Highway", r"hwy/", {"kernels"}),
    ("CUDA", r"cuda|cublas|nvml|curand|cub/|cute/|nv/|cooperative_groups|mma\.h|vector_types|device_launch|"
             r"driver_types|sm_\d+", None),  # by place: may_include_cuda
    ("the system", r"(sys|linux|netinet|arpa|net)/|(unistd|fcntl|sched|pthread|signal|dlfcn|poll|termios|dirent|"
                   r"spawn|pwd|time|errno|stdlib|stdint|stdio|string|math|features|limits|malloc|numa)\.h|"
                   r"(cpuid|immintrin|x86intrin|arm_neon|arm_acle)\.h", {"io", "backend", "bench", "cuda", "cli", "kernels"}),
]

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?:<([^>\n]+)>|"([^"\n]+)")', re.M)
SUFFIXES = {".h", ".hpp", ".cpp", ".cuh", ".cu", ".inc"}
# An apostrophe after a digit separates digits.
COMMENT_OR_STRING = re.compile(r"""//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])*'""", re.S)


def module_of(path):
    """The module of a path relative to the root: the folder under src/, or "kernels"."""
    if path.parts[0] == "kernels":
        return "kernels"
    return path.parts[1] if path.parts[0] == "src" and len(path.parts) > 2 else None


def may_include_cuda(path):
    inside = path.as_posix()
    return inside.startswith(("kernels/cuda/", "src/cuda/")) or (
        inside.startswith("src/backend/") and path.suffix == ".cu")


def blank_comments(text, strings):
    """`text` without comments, and without the contents of strings if asked, lines where they were."""
    def blank(match):
        found = match.group()
        if found[0] != "/" and not strings:
            return found
        return re.sub(r"[^\n]", " ", found)

    return COMMENT_OR_STRING.sub(blank, text)


def resolve(root, path, name):
    """The file of ours, relative to the root, that `name` in `path` means; None where it is not ours."""
    for folder in (root / path.parent, root / "src", root / "kernels"):
        if (folder / name).is_file():
            return (folder / name).resolve().relative_to(root.resolve())
    return None


def breach(root, path, name, quoted):
    """Why `path` may not include `name`, or None."""
    module = module_of(path)
    # <cuda/ptx> is the toolkit's, "cuda/check.h" is ours: the brackets tell.
    target = resolve(root, path, name) if quoted else None
    if target is not None:
        to = module_of(target)
        if to is None:
            return "is in no module"
        if to == module or to in RULES[module]:
            return None
        if to == "kernels":
            return "nobody includes kernels: their table reaches bench as a span"
        return f"{module} may include {', '.join(sorted(RULES[module])) or 'nothing of ours'}, not {to}"
    if name in STANDARD:
        return None
    for kind, pattern, modules in EXTERNAL:
        if re.match(pattern, name):
            allowed = may_include_cuda(path) if modules is None else module in modules
            if allowed:
                return None
            where = ("only under kernels/cuda, src/cuda and in .cu files of src/backend" if modules is None
                     else "only in " + ", ".join(sorted(modules)))
            return f"{kind} is included {where}"
    if quoted:
        return "is no file of ours relative to the includer, src/ or kernels/"
    return "is known neither as the standard library's nor as an allowed package's (scripts/check_includes.py)"


def check(root):
    """One line a breach, sorted."""
    root = pathlib.Path(root)
    found = []
    files = sorted(p for top in ("src", "kernels") for p in (root / top).rglob("*") if p.suffix in SUFFIXES)
    for file in files:
        path = file.relative_to(root)
        module = module_of(path)
        if module not in RULES:
            found.append(f"{path}: not in a module that scripts/check_includes.py knows ({', '.join(sorted(RULES))})")
            continue
        text = file.read_text()
        for match in INCLUDE.finditer(blank_comments(text, strings=False)):
            why = breach(root, path, match[1] or match[2], match[2] is not None)
            if why:
                line = text.count("\n", 0, match.start()) + 1
                found.append(f"{path}:{line}: includes {match[1] or match[2]}: {why}")
        # A .cpp never reaches the CUDA compiler: what assembly it has is the host's.
        if path.suffix != ".cpp" and not path.as_posix().startswith("kernels/cuda/detail/"):
            for match in re.finditer(r"\b(asm|__asm__|__asm)\b", blank_comments(text, strings=True)):
                line = text.count("\n", 0, match.start()) + 1
                found.append(f"{path}:{line}: inline assembly lives only in kernels/cuda/detail/")
    if not files:
        found.append(f"{root}: no sources under src/ and kernels/")
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root", nargs="?", default=pathlib.Path(__file__).resolve().parent.parent)
    found = check(parser.parse_args().root)
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
