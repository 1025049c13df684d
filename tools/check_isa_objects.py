#!/usr/bin/env python3
"""Objects compiled for an ISA level may share no inline function with the rest of the program.

    tools/check_isa_objects.py --build build/release

The linker keeps one copy of each weak symbol. If an AVX-512 object carries a copy of std::vector<int>::push_back, it may
be the one that a portable caller gets, and a machine without AVX-512 stops with an illegal instruction. So an object that
is compiled with -mavx... may define weak symbols only inside its own namespace hone::kernels::LEVEL, where LEVEL is the
end of its CMake target's name, as in hone_kernels_avx2.

Prints `object: symbol` for each that breaks the rule. Exit status 1 if there is one,
or if the build has no object with ISA flags at all: then this check looks at the wrong place.
"""

import argparse
import json
import pathlib
import re
import subprocess
import sys

ISA_FLAG = re.compile(r"\s-m(?:avx|fma|amx|f16c|sse4|arch=)")
TARGET = re.compile(r"_(avx2|avx512|amx)\.dir/")
# Weak (functions, objects, vague linkage) and unique symbols, as nm marks them.
WEAK = {"W", "V", "u"}
# Data with the same content in every object: a pointer to the personality routine.
HARMLESS = re.compile(r"^DW\.ref\.")


def isa_objects(build):
    """[(object path, command)] of every source that is compiled with ISA flags, from build/compile_commands.json."""
    objects = []
    for entry in json.loads((build / "compile_commands.json").read_text(encoding="utf-8")):
        command = entry.get("command") or " ".join(entry["arguments"])
        output = re.search(r"\s-o\s+(\S+)", command)
        if output and ISA_FLAG.search(command):
            objects.append((pathlib.Path(entry["directory"], output[1]), command))
    return objects


def weak_symbols(path):
    """Demangled names of the weak symbols that `path` defines."""
    lines = subprocess.run(["nm", "-C", "--defined-only", str(path)], capture_output=True, text=True, check=True).stdout
    for line in lines.splitlines():
        _, kind, name = line.split(" ", 2)
        if kind in WEAK and not HARMLESS.match(name):
            yield name


def check(build):
    """All findings in `build`, as lines of text, and the number of objects looked at."""
    findings, count = [], 0
    for path, _ in isa_objects(build):
        level = TARGET.search(str(path))
        shown = path.relative_to(build.resolve()) if path.is_relative_to(build.resolve()) else path
        if not level:
            findings.append(f"{shown}: has ISA flags, and the name of its target does not end in a level (_avx2, _avx512, _amx)")
            continue
        if not path.exists():
            findings.append(f"{shown}: is in compile_commands.json and was not built")
            continue
        count += 1
        own = f"hone::kernels::{level[1]}::"
        findings += [f"{shown}: {name}" for name in weak_symbols(path) if own not in name]
    return findings, count


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, required=True)
    build = parser.parse_args().build.resolve()
    findings, count = check(build)
    print("\n".join(findings), end="\n" if findings else "")
    if findings:
        print("these symbols are shared with the rest of the program: make them static, always inlined, or members of the "
              "level's namespace")
        return 1
    if count == 0:
        print(f"no object in {build} is compiled for an ISA level; have flags or target names changed?")
        return 1
    print(f"{count} objects, no shared symbol")
    return 0


if __name__ == "__main__":
    sys.exit(main())
