#!/usr/bin/env python3
"""Runs every code block of a document that is marked ```sh, in order, as a reader would.

    tools/run_readme.py README.md [--root DIR] [--skip COMMAND]... [--seconds N]

The blocks run in one folder that looks like the repository root (each entry is a link to the real one), so that files
they write do not land in it. Each block is one bash script under `set -euo pipefail`. --skip takes a line out, exactly as
written; a --skip that no block has is an error. Blocks with another mark (```text, ```console) are not run.

Prints each block and its seconds; exit status 1 with the block's output where one fails or takes over N seconds,
or where the document has no block at all.
"""

import argparse
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

BLOCK = re.compile(r"^```sh[ \t]*\n(.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL)


def blocks(text, skip):
    """[(line number, script)] of `text` without the lines in `skip`, and the lines of `skip` that were not found."""
    found, left = [], set(skip)
    for match in BLOCK.finditer(text):
        lines = match[1].splitlines()
        # A comment after the command is no part of it.
        bare = [re.sub(r"\s+#.*$", "", line).strip() for line in lines]
        left -= set(bare)
        script = "\n".join(line for line, command in zip(lines, bare) if command not in skip)
        if script.strip():
            found.append((text.count("\n", 0, match.start(1)) + 1, script))
    return found, sorted(left)


def run(script, folder, seconds):
    """(exit status, output) of one block; 124 where it took too long. What it leaves running is ended with it."""
    with tempfile.TemporaryFile("w+", errors="replace") as output:  # a pipe would wait for what runs on in the background
        process = subprocess.Popen(["bash", "-euo", "pipefail", "-c", script], cwd=folder, stdin=subprocess.DEVNULL,
                                   stdout=output, stderr=subprocess.STDOUT, start_new_session=True)
        try:
            status = process.wait(seconds)
        except subprocess.TimeoutExpired:
            status = 124
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()
        output.seek(0)
        return status, output.read() + (f"\n(ended after {seconds} s)" if status == 124 else "")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("document", type=pathlib.Path)
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent)
    parser.add_argument("--skip", action="append", default=[])
    parser.add_argument("--seconds", type=float, default=120)
    arguments = parser.parse_args()
    found, missing = blocks(arguments.document.read_text(encoding="utf-8"), arguments.skip)
    for command in missing:
        print(f"{arguments.document}: has no line `{command}`, which --skip names")
    if not found and not missing:
        print(f"{arguments.document}: has no block marked sh that could be run")
    if missing or not found:
        return 1
    with tempfile.TemporaryDirectory() as folder:
        for entry in arguments.root.resolve().iterdir():
            if entry.name != ".git":
                pathlib.Path(folder, entry.name).symlink_to(entry)
        for number, script in found:
            started = time.monotonic()
            status, output = run(script, folder, arguments.seconds)
            print(f"{arguments.document}:{number}: exit {status} after {time.monotonic() - started:.1f} s\n{script}")
            if status:
                print(f"--- its output\n{output}")
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
