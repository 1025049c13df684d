"""tools/check_sizes.py: the limits, the exceptions, and the exceptions that are no longer needed."""

import pathlib
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import check_sizes  # noqa: E402


def function(name, lines):
    return f"void {name}() {{\n" + "  work();\n" * (lines - 2) + "}\n"


class Sizes(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)

    def write(self, path, text):
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text, encoding="utf-8")

    def test_what_is_just_small_enough_is_fine(self):
        self.write("src/a/a.cc", "// line\n" * 599)
        self.write("tests/a/b.cc", function("f", 79))
        self.assertEqual(check_sizes.check(self.root), [])

    def test_a_long_file_and_a_long_function(self):
        self.write("src/a/a.cc", "// line\n" * 600)
        self.write("bench/b.cc", "\n" + function("f", 80))
        self.assertEqual(check_sizes.check(self.root), ["bench/b.cc:2: f has 80 lines; a function stays under 80",
                                                        "src/a/a.cc:1: 600 lines; a file stays under 600"])

    def test_exceptions_are_named_with_a_reason(self):
        self.write("src/a/a.cc", function("f", 80) + function("g", 80))
        self.write("tools/size_exceptions.txt", "# comment\nsrc/a/a.cc:f: one table\nsrc/a/a.cc:g:\n")
        found = check_sizes.check(self.root)
        self.assertEqual(len(found), 2, found)
        self.assertIn("size_exceptions.txt:3: an exception needs a reason", found[0])
        self.assertIn("g has 80 lines", found[1])

    def test_an_exception_that_is_no_longer_needed(self):
        self.write("src/a/a.cc", function("f", 20))
        self.write("tools/size_exceptions.txt", "src/a/a.cc:f: one table\n")
        self.assertEqual(check_sizes.check(self.root),
                         ["size_exceptions.txt:1: src/a/a.cc:f is no longer too large; remove the exception"])

    def test_the_size_of_the_repository(self):
        subprocess.run(["git", "init", "-q", self.root], check=True)
        self.write("tests/data/a.bin", "x" * 1000)
        self.write("build/b.bin", "x" * 5000)
        self.write(".gitignore", "/build/\n")
        with mock.patch.object(check_sizes, "REPOSITORY_BYTES", 1008):
            self.assertEqual(check_sizes.check(self.root), ["the repository has 1008 bytes; it stays under 1008"])
        with mock.patch.object(check_sizes, "REPOSITORY_BYTES", 1009):
            self.assertEqual(check_sizes.check(self.root), [])


if __name__ == "__main__":
    unittest.main()
