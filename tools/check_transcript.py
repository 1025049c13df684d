#!/usr/bin/env python3
"""Runs the commands of a document's ```console blocks and compares what they print with what the document says.

    tools/check_transcript.py DOCUMENT [--root DIR] [--bin DIR]

In a block, a line `$ COMMAND` is run by bash in a folder that looks like the repository root, with --bin first in PATH; the
lines behind it are its output, stderr included. There, `...` on a line of its own stands for any number of lines, and `<time>`
for any number. Runs of spaces count as one.

Prints each command; exit status 1 with both texts where one differs, or where the document has no command.
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

BLOCK = re.compile(r"^```console[ \t]*\n(.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL)


def transcripts(text):
    """[(line number, command, expected lines)] of all blocks."""
    found = []
    for block in BLOCK.finditer(text):
        first = text.count("\n", 0, block.start(1)) + 1
        for offset, line in enumerate(block[1].splitlines()):
            if line.startswith("$ "):
                found.append((first + offset, line[2:], []))
            elif found:
                found[-1][2].append(line)
    return found


def squeezed(line):
    return re.sub(r"\s+", " ", line).strip()


def pattern_of(expected):
    """A regular expression over squeezed lines joined by newlines, each ended by one."""
    parts = []
    for line in expected:
        if line.strip() == "...":
            parts.append(r"(?:[^\n]*\n)*?")
        else:
            parts.append(re.escape(squeezed(line)).replace(re.escape("<time>"), r"[0-9.]+") + "\n")
    return re.compile("".join(parts))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("document", type=pathlib.Path)
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent)
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    arguments = parser.parse_args()
    found = transcripts(arguments.document.read_text(encoding="utf-8"))
    if not found:
        print(f"{arguments.document}: has no command in a block marked console")
        return 1
    environment = dict(os.environ, PATH=f"{arguments.bin.resolve()}:{os.environ['PATH']}", LC_ALL="C.UTF-8")
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for entry in arguments.root.iterdir():
            os.symlink(entry.resolve(), pathlib.Path(folder) / entry.name)
        for line, command, expected in found:
            print(f"{arguments.document.name}:{line}: {command}")
            done = subprocess.run(["bash", "-euo", "pipefail", "-c", command], cwd=folder, env=environment, check=False,
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120)
            printed = done.stdout.decode(errors="replace")
            actual = "".join(squeezed(text) + "\n" for text in printed.splitlines())
            if done.returncode == 0 and pattern_of(expected).fullmatch(actual):
                continue
            failed += 1
            print(f"  exit {done.returncode}; the document says\n" + "\n".join(f"    {text}" for text in expected))
            print("  it printed\n" + "\n".join(f"    {text}" for text in printed.splitlines()))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
