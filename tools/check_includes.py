#!/usr/bin/env python3
"""The include rule: the data flows through src/ in one direction, and each folder may include only the folders above it.

    tools/check_includes.py [--root DIR]

Prints `file:line: rule` for each include that breaks a rule; exit status 1 if there is one.
"""

import argparse
import pathlib
import re
import sys

# In the order of the data; a folder may include itself and what stands before it.
ORDER = ["base", "profile", "tensor", "file", "graph", "model", "grad", "passes", "kernels", "plan", "exec", "tokens",
         "engine", "train", "server", "apps"]

# Folders above that stay out of reach all the same. Passes and kernels meet only in plan/.
FORBIDDEN = {"kernels": {"graph", "model", "grad", "passes"}}

# Headers of other libraries, by pattern, and the folders that may include them.
EVERYWHERE = set(ORDER)
THIRD_PARTY = [
    (r"fmt/.*", EVERYWHERE),
    (r"nlohmann/.*", {"file", "model", "tokens", "engine", "server", "apps"}),
    (r"pcre2\.h", {"tokens"}),
    (r"utf8proc\.h", {"tokens"}),
    (r"CLI/.*", {"apps"}),
    (r"histedit\.h", {"apps"}),
    (r"(\w*mmintrin|x86intrin|arm_neon|cpuid)\.h", {"base", "kernels"}),
    (r"(sys|linux|asm)/[\w/]+\.h", EVERYWHERE),
    (r"\w+\.h", EVERYWHERE),  # POSIX and C
]
STANDARD = re.compile(r"[a-z_0-9]+")
INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)')
SUFFIXES = {".h", ".cc", ".inc"}


def broken_rule(folder, quoted, angle):
    """The rule that an include breaks in a file of src/FOLDER, apps/ ("apps") or include/hone ("public"), or None."""
    if angle is not None:
        if STANDARD.fullmatch(angle):
            return None
        if folder == "public":
            return f"include/hone includes only standard headers, not <{angle}>"
        if angle.startswith("hone/"):
            return f'own headers are included with quotes: "{angle}"'
        for pattern, folders in THIRD_PARTY:
            if re.fullmatch(pattern, angle):
                if folder in folders:
                    return None
                return f"<{angle}> may be included only in {', '.join(sorted(folders))}, not in {folder}"
        return f"<{angle}> is of no library that tools/check_includes.py knows"
    target, slash, _ = quoted.partition("/")
    if folder == "apps" and target != "bench" and target not in ORDER:
        return None  # apps/ is no folder of src/: its files name each other
    if not slash:
        return f'"{quoted}" must be written "folder/file.h", relative to src/'
    if target == "hone":
        return None
    if folder == "public":
        return f'include/hone includes only standard headers and itself, not "{quoted}"'
    if target not in ORDER:
        return f'"{quoted}" is in no folder that tools/check_includes.py knows'
    if target in FORBIDDEN.get(folder, ()):
        return f"{folder} never includes {target}"
    if ORDER.index(target) > ORDER.index(folder):
        return f"{folder} may include only folders above it, and {target} is below"
    return None


def folder_of(path):
    """Which rules hold for `path` (relative to the root): a folder of src/, "apps", "public", or None for no rules."""
    if path.parts[:2] == ("include", "hone"):
        return "public"
    if path.parts[0] == "apps":
        return "apps"
    if path.parts[0] == "src" and len(path.parts) > 2:
        return path.parts[1]
    return None


def check(root):
    """All findings below `root`, as lines of text."""
    findings = []
    paths = sorted(p for top in ("include", "src", "apps") for p in (root / top).rglob("*") if p.suffix in SUFFIXES)
    for path in paths:
        relative = path.relative_to(root)
        folder = folder_of(relative)
        if folder is None or (folder != "public" and folder not in ORDER):
            findings.append(f"{relative}:1: this folder has no place in the order of tools/check_includes.py")
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            match = INCLUDE.match(line)
            rule = match and broken_rule(folder, match[1], match[2])
            if rule:
                findings.append(f"{relative}:{number}: {rule}")
    return findings


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent)
    findings = check(parser.parse_args().root)
    print("\n".join(findings), end="\n" if findings else "")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
