"""tools/check_transcript.py accepts what a command prints and nothing else."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

TOOL = pathlib.Path(__file__).resolve().parents[2] / "tools" / "check_transcript.py"


def check(text):
    with tempfile.TemporaryDirectory() as folder:
        document = pathlib.Path(folder) / "document.md"
        document.write_text(text, encoding="utf-8")
        done = subprocess.run([sys.executable, TOOL, document, "--root", folder, "--bin", folder], check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return done.returncode, done.stdout.decode()


def block(*lines):
    return "text\n```console\n" + "\n".join(lines) + "\n```\n"


class CheckTranscript(unittest.TestCase):
    def test_the_same_text_passes_whatever_its_spaces(self):
        self.assertEqual(check(block("$ printf 'a   b\\nc\\n'", "a b", "c"))[0], 0)

    def test_another_text_a_missing_or_a_further_line_fails(self):
        for expected in (("a b", "d"), ("a b",), ("a b", "c", "d"), ()):
            code, printed = check(block("$ printf 'a b\\nc\\n'", *expected))
            self.assertEqual(code, 1, expected)
            self.assertIn("it printed", printed)

    def test_dots_stand_for_lines_and_time_for_a_number(self):
        self.assertEqual(check(block("$ seq 9", "1", "...", "8", "9"))[0], 0)
        self.assertEqual(check(block("$ seq 9", "1", "...", "7", "9"))[0], 1)
        self.assertEqual(check(block("$ echo 1.25 ms", "<time> ms"))[0], 0)
        self.assertEqual(check(block("$ echo fast ms", "<time> ms"))[0], 1)

    def test_a_failing_command_fails_and_each_is_run(self):
        self.assertEqual(check(block("$ echo a; exit 3", "a"))[0], 1)
        self.assertEqual(check(block("$ echo a", "a", "$ echo b", "a"))[0], 1)

    def test_a_document_without_commands_fails(self):
        self.assertEqual(check("```sh\necho a\n```\n")[0], 1)


if __name__ == "__main__":
    unittest.main()
