#!/usr/bin/env python3
"""A budget for size, kept: C++ files under 600 lines, functions under 80, the repository under 60 MB.

    tools/check_sizes.py [--root DIR]

An exception is a line of tools/size_exceptions.txt, `file: reason` or `file:function: reason`; one that is no longer
needed is an error too. Prints `file:line: what`; exit status 1 if there is anything to print.
"""

import argparse
import pathlib
import subprocess
import sys

import cpp_functions

FILE_LINES = 600
FUNCTION_LINES = 80
REPOSITORY_BYTES = 60_000_000
FOLDERS = ("src", "include", "apps", "tests", "bench", "examples")
SUFFIXES = {".h", ".cc", ".inc"}


def read_exceptions(path):
    """({file or file:function: line number}, findings) of an exceptions file, which may be absent."""
    exceptions, findings = {}, []
    if not path.exists():
        return exceptions, findings
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        name, separator, reason = line.partition(": ")
        if not separator or not reason.strip():
            findings.append(f"{path.name}:{number}: an exception needs a reason: `file:function: reason`")
            continue
        exceptions[name] = number
    return exceptions, findings


def measure(path, relative):
    """(key, line, text) for everything too large in one file."""
    text = path.read_text(encoding="utf-8")
    lines = text.count("\n") + (not text.endswith("\n"))
    if lines >= FILE_LINES:
        yield str(relative), 1, f"{lines} lines; a file stays under {FILE_LINES}"
    for name, first, last in cpp_functions.functions(text):
        if last - first + 1 >= FUNCTION_LINES:
            yield f"{relative}:{name}", first, f"{name} has {last - first + 1} lines; a function stays under {FUNCTION_LINES}"


def repository_bytes(root):
    """The size of what git tracks or would track below `root`, or None outside a repository."""
    listed = subprocess.run(["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                            capture_output=True, check=False)
    if listed.returncode:
        return None
    paths = {root / name.decode() for name in listed.stdout.split(b"\0") if name}
    return sum(path.stat().st_size for path in paths if path.is_file())


def check(root):
    """All findings below `root`, as lines of text."""
    exceptions, findings = read_exceptions(root / "tools" / "size_exceptions.txt")
    unused = dict(exceptions)
    for path in sorted(p for top in FOLDERS for p in (root / top).rglob("*") if p.suffix in SUFFIXES):
        relative = path.relative_to(root)
        try:
            for key, line, text in measure(path, relative):
                if key in exceptions:
                    unused.pop(key, None)
                else:
                    findings.append(f"{relative}:{line}: {text}")
        except ValueError as error:
            findings.append(f"{relative}: {error}")
    findings += [f"size_exceptions.txt:{line}: {name} is no longer too large; remove the exception"
                 for name, line in unused.items()]
    total = repository_bytes(root)
    if total is not None and total >= REPOSITORY_BYTES:
        findings.append(f"the repository has {total} bytes; it stays under {REPOSITORY_BYTES}")
    return findings


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent)
    findings = check(parser.parse_args().root)
    print("\n".join(findings), end="\n" if findings else "")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
