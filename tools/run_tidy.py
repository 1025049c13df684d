#!/usr/bin/env python3
"""clang-tidy-19 over src/ and apps/, one job per core, each source once.

    tools/run_tidy.py --build build/clang [--jobs N] [FILE...]

The build folder holds compile_commands.json of a clang build. A source that is compiled once per ISA level is checked
under its last command, the widest level. Sources of one folder are checked together, as one translation unit that
includes them: most of clang-tidy's time goes into the headers they share. Where two of them define the same name, that
unit does not compile and its sources are checked one by one. Prints what clang-tidy finds as it goes, then the slowest
units; exit status 1 on findings.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time


# A precompiled header brings all of itself before the checks: twice as slow as the few headers that a source names.
PRECOMPILED = re.compile(r" -Xclang -include-pch -Xclang \S+| -Xclang -include -Xclang \S+| -Winvalid-pch")
TOGETHER = 8


class Unit:
    """Sources that are checked as one, and the compile command that they share but for the source's name."""

    def __init__(self, sources, command):
        self.sources = sources
        self.command = command

    def alone(self):
        return [Unit([source], self.command) for source in self.sources]

    def database_entry(self, folder):
        """The entry of compile_commands.json, and the file to check."""
        path = self.sources[0]
        if len(self.sources) > 1:
            # Configurations are looked for beside the file and above it: those of the sources' folders, in the same order.
            place = pathlib.Path(folder)
            for above in [above for above in reversed(path.parents) if (above / ".clang-tidy").exists()]:
                place /= above.name
                place.mkdir()
                shutil.copy(above / ".clang-tidy", place)
            path = place / "unit.cc"
            # Including a source is what bugprone-suspicious-include is against.
            lines = (f'#include "{source}"  // NOLINT(bugprone-suspicious-include)\n' for source in self.sources)
            path.write_text("".join(lines), encoding="utf-8")
        return {"directory": str(folder), "file": str(path), "command": f"{self.command} -c {path}"}, path


def select(build, root, names):
    """The units of all sources in src/ and apps/, or of those that end in one of `names`."""
    commands = {}
    for entry in json.loads((build / "compile_commands.json").read_text(encoding="utf-8")):
        path = pathlib.Path(entry["directory"], entry["file"]).resolve()
        if not path.is_relative_to(root) or path.relative_to(root).parts[0] not in ("src", "apps"):
            continue
        if not names or any(str(path).endswith(name) for name in names):
            commands[path] = PRECOMPILED.sub("", entry["command"][:entry["command"].rindex(" -o ")])
    groups = {}
    for path, command in commands.items():
        groups.setdefault((path.parent, command), []).append(path)
    return [Unit(sources[at:at + TOGETHER], command) for (_, command), sources in groups.items()
            for at in range(0, len(sources), TOGETHER)]


def tidy(unit):
    """(unit, seconds, passed, output)"""
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        entry, path = unit.database_entry(folder)
        pathlib.Path(folder, "compile_commands.json").write_text(json.dumps([entry]), encoding="utf-8")
        done = subprocess.run(["clang-tidy-19", "--quiet", "-p", folder, str(path)], capture_output=True, text=True, check=False)
    errors = [line for line in done.stderr.splitlines() if not line.endswith(("warnings generated.", "warning generated."))]
    # On a failure stderr says why where stdout is empty: a broken configuration, a missing file.
    output = done.stdout or "\n".join(errors)
    return unit, time.monotonic() - started, done.returncode == 0, output.strip()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("files", nargs="*")
    arguments = parser.parse_args()
    root = pathlib.Path(__file__).resolve().parent.parent
    units = select(arguments.build, root, arguments.files)
    if not units:
        print(f"no source to check in {arguments.build}/compile_commands.json")
        return 1
    results = []
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        running = {pool.submit(tidy, unit) for unit in units}
        while running:
            done, running = concurrent.futures.wait(running, return_when=concurrent.futures.FIRST_COMPLETED)
            for unit, seconds, passed, output in (future.result() for future in done):
                if len(unit.sources) > 1 and "clang-diagnostic-error" in output:
                    running |= {pool.submit(tidy, each) for each in unit.alone()}
                    continue
                results.append((unit, seconds, passed))
                if not passed:
                    print(output, flush=True)
    slowest = sorted(results, key=lambda result: -result[1])[:3]
    sources = sum(len(unit.sources) for unit, _, _ in results)
    findings = sum(not passed for _, _, passed in results)
    print(f"clang-tidy: {sources} sources in {len(results)} units, {findings} units with findings; slowest: "
          + ", ".join(f"{unit.sources[0].relative_to(root)}+{len(unit.sources) - 1} {seconds:.0f} s" for unit, seconds, _ in slowest))
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
