#!/usr/bin/env python3
"""stdin, stdout and signals: a truncated answer is no success, and Ctrl-C ends a command in any phase."""
import json
import os
import signal
import subprocess
import time
import unittest

import command
from command import IDS, LLAMA, CommandTest
from gguf_bytes import write_sparse_llama

LONG = ("run", LLAMA, "-p", "a river", "--raw", "-n", "500", "--ignore-end")


class StdoutTest(CommandTest):
    def test_full_device(self):
        for arguments in (("run", LLAMA, "-p", "a", "--raw", "-n", "3"), ("run", LLAMA, "-p", "a", "-n", "3", "--json"),
                          ("inspect", LLAMA), ("plan", LLAMA, "--json"), ("explain", LLAMA), ("--help",), ("run", "--help"),
                          ("tokenize", LLAMA, "-p", "a"), ("logits", LLAMA, "--ids", "1", "--out", self.path("o"))):
            with open("/dev/full", "wb") as full:
                process = command.launch("hone", arguments, stdin=subprocess.DEVNULL, stdout=full, stderr=subprocess.PIPE)
                err = process.communicate(timeout=60)[1].decode()
            self.assertEqual(process.returncode, 3, (arguments, err))
            self.assertIn("stdout", err)
            self.assertIn("No space left", err)

    def test_closed(self):
        """What is opened later must not become stdout: the answer would end in a file."""
        out = self.path("o")
        script = f'exec "$@" >&-'
        process = subprocess.run(["sh", "-c", script, "sh", command.programs["hone"], "logits", LLAMA, "--ids", "1,2", "--out", out],
                                 stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=60, check=False)
        self.assertEqual(process.returncode, 3)
        self.assertIn(b"stdout", process.stderr)
        self.assertEqual(command.safetensors(out)["logits"][0], [2, 512])
        with open(out, "rb") as file:
            self.assertNotIn(b"tokens in", file.read())

    def test_everything_closed(self):
        process = subprocess.run(["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", command.programs["hone"], "run", LLAMA, "--raw"],
                                 timeout=60, check=False)
        self.assertEqual(process.returncode, 3)

    def test_reader_that_leaves(self):
        """As `hone run .. | head -c 1`: the command ends soon, by SIGPIPE or an error, never well."""
        process = command.launch("hone", LONG, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        process.stdout.read(1)
        process.stdout.close()
        process.stderr.read()
        process.stderr.close()
        self.assertIn(process.wait(timeout=60), (-signal.SIGPIPE, 3))

    def test_no_colour_in_a_pipe(self):
        for arguments in (("explain", LLAMA), ("run", LLAMA, "-p", "a", "-n", "2", "--raw", "--stats"), ("--help",)):
            done = self.ok(*arguments)
            self.assertNotIn(b"\x1b[", done.out)
            self.assertNotIn("\x1b[", done.err)
            self.assertNotIn("\r", done.err)


class StdinTest(CommandTest):
    def test_closed(self):
        process = subprocess.run(["sh", "-c", 'exec "$@" <&-', "sh", command.programs["hone"], "run", LLAMA, "--raw"],
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60, check=False)
        self.assertEqual(process.returncode, 3)
        self.assertIn(b"the prompt is empty", process.stderr)
        self.assertEqual(process.stdout, b"")

    def test_endless(self):
        with open("/dev/zero", "rb") as zero:
            process = command.launch("hone", ("run", LLAMA), stdin=zero, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            err = process.communicate(timeout=60)[1]
        self.assertEqual(process.returncode, 3)
        self.assertIn(b"too long", err)

    def test_pipe_as_file(self):
        reader, writer = os.pipe()
        os.write(writer, b"of the mill")
        os.close(writer)
        process = command.launch("hone", ("run", LLAMA, "-f", f"/dev/fd/{reader}", "--raw", "-n", "1", "--json"), pass_fds=(reader,),
                                 stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        out, err = process.communicate(timeout=60)
        os.close(reader)
        self.assertEqual(process.returncode, 0, err)
        self.assertEqual(json.loads(out)["prompt_ids"], self.answer("tokenize", LLAMA, "-p", "of the mill")["ids"])


class InterruptTest(CommandTest):
    def interrupted(self, arguments, wait):
        """Starts, waits, interrupts. Returns (stdout, stderr); it must end at once with 130."""
        process = command.launch("hone", arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        wait(process)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)
        self.assertEqual(process.returncode, 130, err)
        self.assertEqual(err.decode().count("error (user): interrupted"), 1, err)
        return out, err.decode()

    def waiting_for_a_prompt(self, process):
        """Until it sleeps in a read of stdin: nothing else tells that its handler is set."""
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            with open(f"/proc/{process.pid}/syscall", "rb") as file:
                if file.read().split()[:2] == [b"0", b"0x0"]:
                    return
            time.sleep(0.01)
        self.fail("the command never read stdin")

    def test_while_waiting_for_a_prompt(self):
        out, _ = self.interrupted(("run", LLAMA), self.waiting_for_a_prompt)
        self.assertEqual(out, b"")
        out, _ = self.interrupted(("run", LLAMA, "--json"), self.waiting_for_a_prompt)
        self.assertEqual(json.loads(out)["error"]["code"], "interrupted")

    def test_one_that_was_ignored_stays_ignored(self):
        """As of a command that a shell runs in the background."""
        process = subprocess.Popen([command.programs["hone"], "run", LLAMA, "-n", "2", "--ignore-end"], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))
        self.waiting_for_a_prompt(process)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(b"a river", timeout=20)
        self.assertEqual(process.returncode, 0, err)
        self.assertNotEqual(out, b"")

    def test_while_streaming(self):
        """What was streamed stays, the rest never comes, and one error follows."""
        first = []
        model = self.path("slow.gguf")
        # Large enough that 400 tokens take longer than a signal.
        write_sparse_llama(LLAMA, model, layers=4, dim=1024, feed_forward=2816)
        out, _ = self.interrupted(("run", model, "-p", "a", "--raw", "-n", "500", "--ignore-end"),
                                  lambda process: first.append(process.stdout.read(1)))
        self.assertEqual(len(first[0]), 1)

    def test_with_json_there_is_one_document(self):
        model = self.path("slow.gguf")
        write_sparse_llama(LLAMA, model, layers=8, dim=2048, feed_forward=5632)
        out, _ = self.interrupted(("run", model, "-p", "a", "--raw", "-n", "500", "--ignore-end", "--json"),
                                  lambda process: time.sleep(0.5))
        self.assertEqual(json.loads(out)["error"]["code"], "interrupted")

    def test_the_document_keeps_what_was_made(self):
        model = self.path("slow.gguf")
        write_sparse_llama(LLAMA, model, layers=8, dim=2048, feed_forward=5632)
        # How long the first token takes is known to nobody; after it, 500 take longer than any of these waits.
        for wait in (0.5, 1, 2, 4, 8, 16):
            out, _ = self.interrupted(("run", model, "-p", "a", "--raw", "-n", "500", "--ignore-end", "--json"),
                                      lambda process, wait=wait: time.sleep(wait))
            document = json.loads(out)
            if "ids" in document:
                break
        self.assertEqual((document["error"]["code"], document["finish"]), ("interrupted", "interrupted"))
        self.assertTrue(0 < len(document["ids"]) < 500, document)
        self.assertTrue(document["text"])


class TwoAtOnceTest(CommandTest):
    def test_same_answer(self):
        arguments = ("run", LLAMA, "--ids", IDS, "-n", "40", "--ignore-end", "--json")
        both = [command.launch("hone", arguments, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) for _ in range(2)]
        answers = [json.loads(process.communicate(timeout=60)[0])["ids"] for process in both]
        self.assertEqual(answers[0], answers[1])
        self.assertEqual(answers[0], self.answer(*arguments[:-1])["ids"])


if __name__ == "__main__":
    command.main()
