#!/usr/bin/env python3
"""hone run on a terminal: a conversation, its commands, line editing, Ctrl-C and Ctrl-D."""
import fcntl
import json
import os
import re
import select
import shutil
import signal
import subprocess
import termios
import time
import unittest

import command
from command import DATA, LLAMA, CommandTest
from gguf_bytes import write_sparse_llama

UP = "\x1b[A"
MARKS = re.compile("\x1b\\[\\?2004[hl]")
# At the beginning of a line: editing may show the two characters again.
PROMPT = "\n> "


class Terminal:
    """hone with a pseudo terminal as stdin and stderr, and a pipe as stdout."""

    def __init__(self, *arguments, term="xterm"):
        self.master, self.slave = os.openpty()
        environment = {k: v for k, v in os.environ.items() if not k.startswith("HONE_")}
        environment.pop("TERM", None)
        if term:
            environment["TERM"] = term

        def own_terminal():
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)

        self.process = subprocess.Popen([command.programs["hone"], "run", *arguments], stdin=self.slave, stderr=self.slave,
                                        stdout=subprocess.PIPE, env=environment, start_new_session=True,
                                        preexec_fn=own_terminal)
        self.state = termios.tcgetattr(self.slave)
        self.shown = ""
        self.raw = b""
        self.answers = b""

    def show(self, data):
        """What asks for marks around pastes is nothing that a person sees."""
        self.raw += data
        self.shown = MARKS.sub("", self.shown + data.decode(errors="replace"))

    def wait_for(self, text, times=1, seconds=100):
        """Until the terminal has shown `text` so often since the last call."""
        deadline = time.monotonic() + seconds
        while self.shown.count(text) < times:
            # A stdout at its end is always ready.
            if time.monotonic() > deadline:
                raise AssertionError(f"no {text!r} in {self.shown!r}, answers {self.answers!r}")
            ready, _, _ = select.select([self.master, self.process.stdout], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                raise AssertionError(f"no {text!r} in {self.shown!r}, answers {self.answers!r}")
            if self.master in ready:
                self.show(os.read(self.master, 65536))
            if self.process.stdout in ready:
                self.answers += os.read(self.process.stdout.fileno(), 65536)
        # An answer is written before the prompt behind it is shown.
        while select.select([self.process.stdout], [], [], 0)[0]:
            piece = os.read(self.process.stdout.fileno(), 65536)
            if not piece:
                break
            self.answers += piece
        # The editor shows its prompt before it takes the terminal over: a key in between would be the terminal's.
        while text == PROMPT and termios.tcgetattr(self.slave)[3] & termios.ICANON:
            if time.monotonic() > deadline:
                raise AssertionError("the line editor does not take the terminal over")
            time.sleep(0.001)
        out, self.shown = self.shown, ""
        return out

    def say(self, line, wait=PROMPT):
        """A line, and what the terminal shows until the next prompt. The line is echoed before it."""
        os.write(self.master, line.encode() + b"\r")
        return self.wait_for(wait)

    def rest(self):
        """What the terminal has shown since the last wait and shows now."""
        while select.select([self.master], [], [], 0.1)[0]:
            self.show(os.read(self.master, 65536))
        return self.shown

    def end(self):
        """The exit code. All of stdout is in `answers` then."""
        deadline = time.monotonic() + 60
        while True:
            if not select.select([self.process.stdout], [], [], max(0.0, deadline - time.monotonic()))[0]:
                raise AssertionError(f"still running; shown since the last prompt: {self.shown!r}")
            piece = os.read(self.process.stdout.fileno(), 65536)
            if not piece:
                break
            self.answers += piece
        self.process.stdout.close()
        code = self.process.wait(timeout=60)
        os.close(self.master)
        os.close(self.slave)
        return code

    def key(self, text):
        os.write(self.master, text.encode())


class ChatTest(CommandTest):
    def start(self, *arguments):
        terminal = Terminal(*arguments)
        self.addCleanup(terminal.process.kill)
        terminal.wait_for(PROMPT)
        return terminal

    def taken(self, terminal):
        """Tokens that the conversation takes, as /stats says."""
        shown = terminal.say("/stats")
        self.assertIn("tokens/s decode", shown)
        return int(shown.split(" tokens of ")[0].split()[-1])

    def test_conversation(self):
        terminal = self.start(LLAMA, "-n", "6", "--ignore-end")
        self.assertIn("/reset", terminal.say("/help"))
        self.assertIn("no answer yet", terminal.say("/stats"))
        terminal.say("a river")
        first = terminal.answers
        before = self.taken(terminal)
        terminal.say("a mill")
        self.assertGreater(self.taken(terminal), before)
        terminal.say("/reset")
        # Edited and recalled lines are the lines they end as: the same answer, word for word.
        mark = len(terminal.answers)
        terminal.say("a rivxx\x7f\x7fer")
        again = terminal.answers[mark:]
        self.assertEqual(again, first)
        self.assertEqual(self.taken(terminal), before)
        terminal.say("/reset")
        mark = len(terminal.answers)
        terminal.say(UP + UP + UP)
        self.assertEqual(terminal.answers[mark:], first)
        self.assertIn("no such command", terminal.say("/nothing"))
        terminal.say("   ")
        terminal.key("\x04")
        self.assertEqual(terminal.end(), 0)
        self.assertNotIn(b"\x1b", terminal.answers)

    def of_the_whole(self, model, messages, *flags):
        """What the model answers to these messages if nothing of them is held."""
        path = self.write("messages.json", json.dumps({"messages": messages}))
        text = self.answer("render", model, "--messages", path, "--add-generation-prompt")["text"]
        ids = self.answer("tokenize", model, "-f", self.write("prompt", text), "--no-special")["ids"]
        return self.answer("run", model, "--ids", ",".join(map(str, ids)), *flags)["text"]

    def expect_answers_of_the_whole(self, model, lines, *flags):
        terminal = self.start(model, *flags)
        messages = []
        for line in lines:
            mark = len(terminal.answers)
            terminal.say(line)
            text = terminal.answers[mark:-1].decode()
            messages.append({"role": "user", "content": line})
            self.assertEqual(text, self.of_the_whole(model, messages, *flags), line)
            messages.append({"role": "assistant", "content": text})
        terminal.key("\x04")
        self.assertEqual(terminal.end(), 0)

    def with_letters(self, name):
        """A model of 320 tokens with a letter for each, so that an answer has the ids it was made of."""
        model = self.path(name)
        shutil.copytree(os.path.join(DATA, "models", name), model)
        letters = "abcdefghijklmnopqrstuvwxyz" + "".join(chr(0x4E00 + i) for i in range(294))
        self.write(f"{name}/tokenizer.json", json.dumps({
            "model": {"type": "BPE", "vocab": {letter: i for i, letter in enumerate(letters)}, "merges": []}}))
        self.write(f"{name}/tokenizer_config.json", json.dumps({
            "chat_template": "{% for message in messages %}{{ message.content }}{% endfor %}"}))
        return model

    def test_what_is_held_does_not_change_an_answer(self):
        self.expect_answers_of_the_whole(self.with_letters("llama-gqa"), ("ariver", "amill", "thesea", "aboat", "river"),
                                         "-n", "3", "--ctx", "48", "--ignore-end")

    def test_nothing_is_held_if_keys_depend_on_the_length(self):
        # Beyond 12 tokens each length has its own rotary table.
        self.expect_answers_of_the_whole(self.with_letters("llama-rope-dynamic"), ("abcdefgh", "river", "thesea", "aboat"),
                                         "-n", "8", "--ctx", "64", "--ignore-end")

    def test_system_prompt_comes_first(self):
        plain = self.start(LLAMA, "-n", "2", "--ignore-end")
        plain.say("a")
        system = self.start(LLAMA, "-n", "2", "--ignore-end", "--system", "be brief")
        system.say("a")
        self.assertGreater(self.taken(system), self.taken(plain))
        for terminal in (plain, system):
            terminal.say("/quit", wait="/quit")
            self.assertEqual(terminal.end(), 0)

    def test_reset_keeps_the_system_prompt(self):
        terminal = self.start(LLAMA, "-n", "6", "--ignore-end", "--system", "be brief")
        terminal.say("a river")
        first = terminal.answers
        terminal.say("/reset")
        terminal.say("a river")
        self.assertEqual(terminal.answers, first + first)
        terminal.key("\x04")
        self.assertEqual(terminal.end(), 0)

    def test_a_second_interrupt_does_not_wait_for_the_answer(self):
        model = self.path("slow.gguf")
        write_sparse_llama(LLAMA, model, layers=12, dim=1024, feed_forward=2816)
        terminal = self.start(model, "-n", "400", "--ignore-end")
        os.write(terminal.master, b"word " * 90 + b"\r")
        while not termios.tcgetattr(terminal.slave)[3] & termios.ICANON:
            time.sleep(0.001)
        for _ in range(2):
            time.sleep(0.02)
            terminal.key("\x03")
        self.assertEqual(terminal.end(), 130)

    def test_words_that_leave(self):
        for word in ("/quit", "/exit", "/bye"):
            terminal = self.start(LLAMA)
            terminal.say(word, wait=word)
            self.assertEqual(terminal.end(), 0)

    def test_keys_leave_nothing_behind(self):
        """Each of these is the line "a river" at the end: the same answer."""
        keys = {"F5": "a\x1b[15~ river", "F1": "a\x1bOP river", "console F1": "a\x1b[[A river", "Page Up": "a river\x1b[5~",
                "Shift-Tab": "a river\x1b[Z", "focus": "a\x1b[I\x1b[O river", "Insert": "\x1b[2~a river",
                "Ctrl-Left": "river\x1b[1;5Da ", "Ctrl-Right": "a riv\x1b[1;5D\x1b[1;5Cer", "Home": "river\x1b[Ha ", "End": " river\x1b[1~a\x1b[F",
                "Delete": "xa river\x1b[H\x1b[3~", "Left": "a rver\x1b[D\x1b[D\x1b[Di", "Ctrl-Delete": "xy a river\x1b[H\x1b[3;5~\x1b[3~",
                "a paste": "a \x1b[200~river\x1b[201~", "a key in a paste": "a \x1b[200~ri\x1b[Aver\x1b[201~", "mouse": "a\x1b[<0;3;4M river"}
        terminal = self.start(LLAMA, "-n", "6", "--raw", "--ignore-end")
        terminal.say("a river")
        expected = terminal.answers
        for name, typed in keys.items():
            with self.subTest(key=name):
                mark = len(terminal.answers)
                terminal.say(typed)
                self.assertEqual(terminal.answers[mark:], expected)
        # On an empty line Delete is no Ctrl-D.
        terminal.key("\x1b[3~")
        mark = len(terminal.answers)
        terminal.say("a river")
        self.assertEqual(terminal.answers[mark:], expected)
        terminal.key("\x04")
        self.assertEqual(terminal.end(), 0)

    def test_pasted_lines_are_one_prompt(self):
        terminal = self.start(LLAMA, "-n", "6", "--raw", "--ignore-end")
        terminal.say("\x1b[200~a river\rof the mill\ründ\x1b[201~")
        self.assertEqual(terminal.answers, self.ok("run", LLAMA, "-p", "a river\nof the mill\nünd", "--raw", "-n", "6", "--ignore-end").out)
        terminal.key("\x04")
        terminal.process.wait(timeout=60)
        terminal.rest()
        # Marks are asked for at each prompt, and no longer when it is left.
        self.assertEqual(re.findall(rb"2004[hl]", terminal.raw), [b"2004h", b"2004l"] * 2)
        self.assertEqual(terminal.end(), 0)

    def test_terminal_without_escape_sequences(self):
        for term in ("dumb", None):
            terminal = Terminal(LLAMA, "-n", "2", "--ignore-end", term=term)
            self.addCleanup(terminal.process.kill)
            terminal.wait_for("> ")
            terminal.say("a", wait="\n> ")
            terminal.key("\x04")
            terminal.process.wait(timeout=60)
            terminal.rest()
            self.assertNotIn(b"\x1b", terminal.raw)
            self.assertEqual(terminal.end(), 0)

    def test_interrupt_at_the_prompt_leaves(self):
        terminal = self.start(LLAMA)
        terminal.key("half a li")
        terminal.wait_for("half a li")
        terminal.key("\x03")
        terminal.process.wait(timeout=60)
        self.assertEqual(termios.tcgetattr(terminal.slave), terminal.state)
        shown = terminal.rest()
        self.assertTrue(terminal.raw.rstrip().endswith(b"\x1b[?2004l"), terminal.raw)
        self.assertNotIn("error", shown)
        self.assertNotIn("interrupted", shown)
        self.assertTrue(shown.endswith("\n"), shown)
        self.assertEqual(terminal.end(), 130)

    def test_interrupt_stops_the_answer_alone(self):
        model = self.path("slow.gguf")
        write_sparse_llama(LLAMA, model, layers=4, dim=1024, feed_forward=2816)
        terminal = self.start(model, "-n", "400", "--ignore-end")
        os.write(terminal.master, b"a\r")
        self.assertTrue(select.select([terminal.process.stdout], [], [], 60)[0])
        terminal.answers += os.read(terminal.process.stdout.fileno(), 1)
        terminal.key("\x03")
        self.assertIn("(stopped)", terminal.wait_for(PROMPT))
        self.assertIn("tokens/s decode", terminal.say("/stats"))
        terminal.key("\x04")
        self.assertEqual(terminal.end(), 0)

    def test_too_long_a_message_is_refused_and_forgotten(self):
        terminal = self.start(LLAMA, "-n", "2", "--ctx", "40", "--ignore-end")
        terminal.say("a")
        before = self.taken(terminal)
        refused = terminal.say("word " * 60)
        for part in ("longer than the context", "/reset", "--ctx"):
            self.assertIn(part, refused)
        self.assertEqual(self.taken(terminal), before)
        mark = len(terminal.answers)
        terminal.say("b")
        self.assertEqual(terminal.answers[mark:].count(b"\n"), 1)
        terminal.key("\x04")
        self.assertEqual(terminal.end(), 0)

    def test_an_answer_that_fills_the_context_names_reset(self):
        terminal = self.start(LLAMA, "-n", "100", "--ctx", "40", "--ignore-end")
        shown = terminal.say("a")
        for part in ("context of 40 tokens is full", "/reset", "--ctx"):
            self.assertIn(part, shown)
        terminal.key("\x04")
        self.assertEqual(terminal.end(), 0)

    def test_raw_lines_stand_alone(self):
        terminal = self.start(LLAMA, "-n", "4", "--raw", "--ignore-end")
        terminal.say("a river")
        expected = self.ok("run", LLAMA, "-p", "a river", "--raw", "-n", "4", "--ignore-end").out
        self.assertEqual(terminal.answers, expected)
        mark = len(terminal.answers)
        terminal.say("a river")
        self.assertEqual(terminal.answers[mark:], expected)
        terminal.key("\x04")
        self.assertEqual(terminal.end(), 0)


if __name__ == "__main__":
    command.main()
