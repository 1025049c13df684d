#!/usr/bin/env python3
"""Documents that outlive the code are wrong: what they name must exist.

    tools/check_docs.py [--root DIR]

In README.md, CONTRIBUTING.md and docs/**/*.md:
  `src/folder/file.cc:function`   the file exists, and the function is declared or defined there
  `folder/file`                   a path of this repository, in backticks, exists (globs match something)
  [text](path#anchor)             a relative link leads to a file
Code blocks count as text in backticks only for paths in docs/architecture.md, where the steps may stand in a block.
And docs/dependencies.md names every package of scripts/packages.txt in backticks.

Prints `file:line: what`; exit status 1 if there is anything to print.
"""

import argparse
import pathlib
import re
import sys

import cpp_functions

TOP = r"(?:src|apps|include|tests|bench|docs|examples|tools|scripts|cmake|\.ci)"
# A path of the repository: a file or folder below a top folder, perhaps with :function or :line after it.
PATH = re.compile(rf"^(?P<path>{TOP}/[\w./*{{}},+-]*)(?::(?P<name>~?\w[\w:~]*))?(?:\(\))?$")
TOP_FILE = re.compile(r"^[A-Z]\w+\.(?:md|txt|json)$|^LICENSE$|^\.clang-(?:tidy|format)$")
BACKTICKS = re.compile(r"`([^`\n]+)`")
LINK = re.compile(r"\]\(([^)\s]+)\)")
STEP = re.compile(rf"(?<![\w/.-])({TOP}/[\w./-]+\.(?:h|cc|inc|py):\w[\w:]*)")


def has_function(path, name):
    """Whether `path` defines (a header: declares) `name`, the last part of which is a function, type or constant."""
    text, last = path.read_text(encoding="utf-8"), re.escape(name.split("::")[-1])
    if path.suffix not in (".h", ".cc", ".inc"):
        return re.search(rf"^\s*(?:def |class )?{last}\s*[(:=]", text, re.MULTILINE) is not None
    code = cpp_functions.blank(text)
    if any(defined.split("::")[-1] == name.split("::")[-1] for defined, _, _ in cpp_functions.functions(text)):
        return True
    if re.search(rf"\b(?:class|struct|enum|concept|using)\b[^;{{}}=()]*\b{last}\b", code):
        return True
    if re.search(rf"\bconst(?:expr)?\b[^;{{}}=()]*\b{last}\s*(?:\[\w*\])?\s*[={{]", code):
        return True
    return path.suffix == ".h" and re.search(rf"[\w>&*\]]\s+[&*]?{last}\s*\(", code) is not None


def path_findings(root, word):
    """What is wrong with `word` of a document, which may be no path at all."""
    if TOP_FILE.match(word):
        return [] if (root / word).exists() else [f"`{word}` does not exist"]
    match = PATH.match(word)
    if not match:
        return []
    path, name = match["path"].rstrip("/"), match["name"]
    # `src/{base,tensor}` names each of them.
    braces = re.match(r"^(.*)\{([^{}]*)\}(.*)$", path)
    paths = [braces[1] + part + braces[3] for part in braces[2].split(",")] if braces else [path]
    findings = [f"`{path}` does not exist" for path in paths
                if not (any(root.glob(path)) if "*" in path else (root / path).exists())]
    if findings or not name or name.isdigit():
        return findings
    if not (root / path).is_file():
        return [f"`{word}`: {path} is no file"]
    if not has_function(root / path, name):
        return [f"`{word}`: {path} has no {name}"]
    return []


def document_findings(root, path):
    """[(line number, what)] of one document."""
    fenced = False
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
            continue
        words = STEP.findall(line) if fenced else BACKTICKS.findall(line)
        if fenced and path.name != "architecture.md":
            continue
        for word in words:
            for finding in path_findings(root, word.strip()):
                yield number, finding
        for target in () if fenced else LINK.findall(BACKTICKS.sub("", line)):
            file = target.partition("#")[0]
            if file and "://" not in file and not file.startswith("mailto:") and not (path.parent / file).exists():
                yield number, f"the link to {target} leads nowhere"


def package_findings(root):
    """The packages of scripts/packages.txt that docs/dependencies.md does not explain."""
    packages, explained = root / "scripts/packages.txt", root / "docs/dependencies.md"
    if not packages.exists():
        return
    text = explained.read_text(encoding="utf-8") if explained.exists() else ""
    words = set(BACKTICKS.findall(text))
    for number, line in enumerate(packages.read_text(encoding="utf-8").splitlines(), 1):
        name = line.strip()
        if name and name[0] not in "#[" and name not in words:
            yield f"scripts/packages.txt:{number}: docs/dependencies.md does not say why `{name}` is needed"


def check(root):
    """All findings below `root`, as lines of text."""
    documents = [path for path in (root / "README.md", root / "CONTRIBUTING.md") if path.exists()]
    documents += sorted((root / "docs").rglob("*.md"))
    findings = [f"{path.relative_to(root)}:{number}: {text}" for path in documents
                for number, text in document_findings(root, path)]
    return findings + list(package_findings(root))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent)
    findings = check(parser.parse_args().root)
    print("\n".join(findings), end="\n" if findings else "")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
