#!/usr/bin/env python3
"""How commands end before their work is done: signals, memory that the system refuses, work that cannot succeed."""
import os
import resource
import signal
import time
import unittest

import command
from command import IDS, LLAMA, CommandTest


class SignalTest(CommandTest):
    def ended(self, number, *arguments, **options):
        """Sends the signal once a file appears in the test's folder; the exit code."""
        process = command.launch("hone", arguments, stdout=command.subprocess.DEVNULL, stderr=command.subprocess.DEVNULL,
                                 **options)
        until = time.monotonic() + 60
        while not os.listdir(self.folder) and time.monotonic() < until and process.poll() is None:
            time.sleep(0.005)
        self.assertIsNone(process.poll(), "it ended by itself")
        self.assertTrue(os.listdir(self.folder), "no file was begun")
        process.send_signal(number)
        return process.wait(60)

    def test_an_unfinished_file_goes_away(self):
        for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, -signal.SIGTERM)):
            out = self.path("model.gguf")
            self.assertEqual(self.ended(number, "bench", "--shape", "smollm2-135m", "--type", "f32", "--save", out), code)
            self.assertEqual(os.listdir(self.folder), [])
            self.assertEqual(self.ended(number, "bench", "--shape", "smollm2-135m", "--type", "f32",
                                        environment={"TMPDIR": self.folder}), code)
            self.assertEqual(os.listdir(self.folder), [])


class RefusedMemoryTest(CommandTest):
    @staticmethod
    def under(mebibytes, *arguments):
        """Exit code and stderr of hone with so much address space."""
        def limit():
            resource.setrlimit(resource.RLIMIT_AS, (mebibytes << 20, mebibytes << 20))
        done = command.subprocess.run([command.programs["hone"], *arguments], stdout=command.subprocess.DEVNULL,
                                      stderr=command.subprocess.PIPE, preexec_fn=limit, timeout=60, check=False)
        return done.returncode, done.stderr.decode(errors="replace")

    def test_every_limit_ends_in_an_error_or_an_answer(self):
        """From no room for the program to room for the run: never a signal."""
        if not command.limits:
            self.skipTest("sanitizers need more address space than any limit leaves")
        codes = set()
        for mebibytes in range(16, 64, 2):
            if self.under(mebibytes, "--version")[0] != 0:
                continue  # no room for the program itself
            code, err = self.under(mebibytes, "run", LLAMA, "--ids", IDS, "-n", "2")
            codes.add(code)
            self.assertIn(code, (0, 3, 4), f"{mebibytes} MiB: {err}")
        self.assertIn(4, codes, "no limit was too small")


class BeforeTheWorkTest(CommandTest):
    def test_a_comparison_that_cannot_be_made_writes_nothing(self):
        out = self.path("out.gguf")
        self.fails(3, "quantize", LLAMA, "--to", "q4_k", "--ids", "1", "-o", out, says=("--ids", "at least 2 tokens"))
        self.fails(3, "quantize", LLAMA, "--to", "q4_k", "--text", self.path("none"), "-o", out, says=("none",))
        self.assertEqual(os.listdir(self.folder), [])

    def test_a_budget_that_nothing_fits_is_refused_with_the_need(self):
        done = self.fails_both(4, "plan", LLAMA, "--memory", "1000", says=("need ", "have 1000 bytes"))
        need = int(done["expected"].split()[1])
        self.answer("plan", LLAMA, "--memory", str(need))
        self.fails(4, "plan", LLAMA, "--memory", str(need - 1), says=("need ",))

    def test_a_folder_for_passing_files_must_exist(self):
        self.fails(3, "bench", "--shape", "tiny", environment={"TMPDIR": self.path("none")}, says=("TMPDIR", "--save"))


if __name__ == "__main__":
    command.main()
