"""tools/run_readme.py runs what it must, and fails when a block does."""

import pathlib
import subprocess
import sys
import tempfile
import time
import unittest

TOOL = pathlib.Path(__file__).resolve().parents[2] / "tools/run_readme.py"


class Readme(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        (self.root / "data").mkdir()
        (self.root / "data/word").write_text("hello\n", encoding="utf-8")

    def run_tool(self, text, *flags):
        document = self.root / "README.md"
        document.write_text(text, encoding="utf-8")
        done = subprocess.run([sys.executable, TOOL, document, "--root", self.root, *flags], capture_output=True, text=True,
                              check=False)
        return done.returncode, done.stdout

    def test_blocks_run_in_order_in_a_folder_like_the_root(self):
        status, output = self.run_tool("```sh\ncp data/word copy\n```\ntext\n```sh\ngrep -q hello copy\n```\n")
        self.assertEqual(status, 0, output)
        self.assertFalse((self.root / "copy").exists())

    def test_a_block_that_fails(self):
        for block in ("false\ntrue", "false | true", "echo $unset_variable"):
            status, output = self.run_tool(f"one\n```sh\n{block}\n```\n")
            self.assertEqual(status, 1, output)
            self.assertIn("README.md:3: exit ", output)

    def test_other_blocks_are_not_run(self):
        status, output = self.run_tool("```text\nfalse\n```\n```sh\ntrue\n```\n```\nfalse\n```\n")
        self.assertEqual(status, 0, output)

    def test_skipped_lines(self):
        text = "```sh\nfalse one   # the first\ntrue\n```\n"
        self.assertEqual(self.run_tool(text, "--skip", "false one")[0], 0)
        status, output = self.run_tool(text, "--skip", "false one", "--skip", "scripts/gone")
        self.assertEqual(status, 1)
        self.assertIn("has no line `scripts/gone`", output)

    def test_a_document_without_blocks(self):
        self.assertEqual(self.run_tool("text\n")[0], 1)

    def test_time_runs_out_and_background_work_is_ended(self):
        self.assertEqual(self.run_tool("```sh\nsleep 60\n```\n", "--seconds", "0.3")[0], 1)
        started = time.monotonic()
        self.assertEqual(self.run_tool("```sh\nsleep 60 &\n```\n")[0], 0)
        self.assertLess(time.monotonic() - started, 30)


if __name__ == "__main__":
    unittest.main()
