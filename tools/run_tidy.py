#!/usr/bin/env python3
"""clang-tidy-19 over src/ and apps/, one job per core, each source once.

    tools/run_tidy.py --build build/asan [--jobs N] [FILE...]

The build folder holds compile_commands.json of a clang build. A source that is compiled once per ISA level is checked
under its last command, the widest level. Prints what clang-tidy finds, then the slowest files; exit status 1 on findings.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time


def select(build, root, names):
    """{source path: compile command}: those of src/ and apps/, or those that end in one of `names`."""
    commands = {}
    for command in json.loads((build / "compile_commands.json").read_text(encoding="utf-8")):
        path = pathlib.Path(command["directory"], command["file"]).resolve()
        if not path.is_relative_to(root) or path.relative_to(root).parts[0] not in ("src", "apps"):
            continue
        if not names or any(str(path).endswith(name) for name in names):
            commands[path] = command
    return commands


def tidy(path, database):
    """(path, seconds, passed, output) of one file."""
    started = time.monotonic()
    done = subprocess.run(["clang-tidy-19", "--quiet", "-p", database, str(path)], capture_output=True, text=True, check=False)
    errors = [line for line in done.stderr.splitlines() if not line.endswith(("warnings generated.", "warning generated."))]
    # On a failure stderr says why where stdout is empty: a broken configuration, a missing file.
    output = done.stdout or "\n".join(errors)
    return path, time.monotonic() - started, done.returncode == 0, output.strip()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("files", nargs="*")
    arguments = parser.parse_args()
    root = pathlib.Path(__file__).resolve().parent.parent
    commands = select(arguments.build, root, arguments.files)
    if not commands:
        print(f"no source to check in {arguments.build}/compile_commands.json")
        return 1
    with tempfile.TemporaryDirectory() as database:
        pathlib.Path(database, "compile_commands.json").write_text(json.dumps(list(commands.values())), encoding="utf-8")
        with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
            running = [pool.submit(tidy, path, database) for path in commands]
            results = []
            for done in concurrent.futures.as_completed(running):
                results.append(done.result())
                path, _, passed, output = results[-1]
                if not passed:
                    print(f"[{len(results)}/{len(running)}] {path.relative_to(root)}\n{output}", flush=True)
    slowest = sorted(results, key=lambda result: -result[1])[:3]
    print(f"clang-tidy: {len(results)} files, {sum(not result[2] for result in results)} with findings; slowest: "
          + ", ".join(f"{path.relative_to(root)} {seconds:.0f} s" for path, seconds, _, _ in slowest))
    return 0 if all(result[2] for result in results) else 1


if __name__ == "__main__":
    sys.exit(main())
