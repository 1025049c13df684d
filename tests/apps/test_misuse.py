#!/usr/bin/env python3
"""What a newcomer types wrong: each is named as it was typed, with what was probably meant and the command that helps."""
import os
import pty
import subprocess
import unittest

import command
from command import IDS, LLAMA, CommandTest

RUN = ("run", LLAMA, "--ids", "1", "-n", "1")


class NameTest(CommandTest):
    def misspelt(self, arguments, where, message, actual, nearest, helps):
        error = self.fails_both(2, *arguments, says=(f"nearest: {nearest}",), fault="user", cheap=True)
        self.assertEqual((error["where"], error["message"], error["actual"], error["try"]), (where, message, actual, helps))

    def test_verb(self):
        self.misspelt(("runn", "M"), "hone", "no verb has this name", "runn", "run", "hone --help")
        self.misspelt(("tokenise", "M"), "hone", "no verb has this name", "tokenise", "tokenize", "hone --help")
        self.misspelt(("help", "pln"), "hone", "no verb has this name", "pln", "plan", "hone --help")
        self.assertNotIn("nearest", self.fails(2, "frobnicate").err)

    def test_flag(self):
        for typed, nearest in (("--temprature", "--temperature"), ("--promt", "--prompt"), ("--max_tokens", "--max-tokens"),
                               ("--temp", "--temperature"), ("-prompt", "--prompt"), ("--promt=hi", "--prompt")):
            self.misspelt(("run", LLAMA, typed, "1"), "hone run", "no flag has this name", typed.split("=")[0], nearest, "hone run --help")
        self.misspelt(("--versoin",), "hone", "no flag has this name", "--versoin", "--version", "hone --help")
        self.assertIn("fuse-rope", self.fails(2, "explain", LLAMA, "--stop-after", "fuse-rop").err.split("try:")[1])
        error = command.run("hone-opt", "x", "--pases", "cse")
        self.assertEqual(error.code, 2)
        self.assertIn("nearest: --passes", error.err)

    def test_the_flag_comes_before_what_it_leaves_out(self):
        self.misspelt(("run", "--promt", "hi"), "hone run", "no flag has this name", "--promt", "--prompt", "hone run --help")

    def test_arguments_too_many_in_their_order(self):
        error = self.fails_both(2, "run", LLAMA, "one", "two", "three")
        self.assertEqual((error["actual"], error["where"]), ("one two three", "hone run"))
        self.assertIn('-p "one two three"', error["try"])
        self.assertNotIn("-p", self.fails_both(2, "bench", LLAMA, "more")["try"])

    def test_path_where_a_verb_should_stand(self):
        error = self.fails(2, LLAMA, "-p", "hi", says=("a verb is missing", f"hone run {LLAMA}"))
        self.assertNotIn("nearest", error.err)

    def test_value_that_is_missing(self):
        error = self.fails(2, "run", LLAMA, "-p")
        self.assertIn("--prompt", error.err)
        self.assertIn("needs a value", error.err)

    def test_word_is_verb(self):
        for arguments in (("--help",), ("run", "--help"), ("help",)):
            self.assertNotIn("ubcommand", self.ok(*arguments).out.decode())
        for arguments in ((), ("--json",), ("-p", "hi")):
            self.assertNotIn("ubcommand", self.fails(2, *arguments, says=("a verb is missing", "tokenize")).err)


class ProgramTest(CommandTest):
    def test_version(self):
        text = self.ok("version").out.decode()
        self.assertRegex(text, r"^hone \d+\.\d+\.\d+\n")
        for part in ("amx", "avx2", "avx512", "portable"):
            self.assertIn(part, text)
        self.assertRegex(text, r"g\+\+|[Cc]lang")
        self.assertEqual(self.ok("--version").out.decode(), text)
        self.assertEqual(set(self.answer("--version")), {"version", "compiler", "isa_levels"})

    def test_help(self):
        self.assertEqual(self.ok("help").out, self.ok("--help").out)
        self.assertEqual(self.ok("help", "run").out, self.ok("run", "--help").out)


class NumberTest(CommandTest):
    def refused(self, *arguments, flag, value):
        error = self.fails_both(2, *arguments, flag, value, fault="user", cheap=True)
        self.assertIn(flag, error["where"].split(", "))
        self.assertEqual(error["actual"], value or "''")
        self.assertEqual(error["try"], f"hone {arguments[0]} --help")
        self.assertTrue(error["expected"])
        return error["expected"]

    def test_every_whole_number(self):
        all_values = ("1e99", "nan", "3.5", "abc", "", "-1", "+1", str(2**64), "9" * 40, " 1", "1 ", "0x10")
        for verb, flags in (("run", ("-n", "--top-k", "--seed", "--ctx", "--chunk", "--threads")), ("plan", ("--batch",)),
                            ("explain", ("--tokens", "--batch", "--ctx")), ("bench", ("-p", "-n", "-r")), ("perplexity", ("--limit",)),
                            ("quantize", ("--window", "--threads")), ("doctor", ("--threads", "--ctx"))):
            for flag in flags:
                for value in all_values if flag == "--top-k" else ("1e99", "", "-1", str(2**64)):
                    with self.subTest(verb=verb, flag=flag, value=value):
                        self.assertIn("a whole number", self.refused(verb, LLAMA, flag=flag, value=value))

    def test_every_real_number(self):
        for flag in ("--temperature", "--top-p", "--min-p", "--typical-p", "--repeat-penalty", "--presence-penalty"):
            for value in ("abc", "", "nan", "inf", "1,5", "1e999", "0.5x"):
                self.assertIn("a number", self.refused("run", LLAMA, flag=flag, value=value))
        error = self.fails_both(2, *RUN, "--temperature", "-1", cheap=True)
        self.assertEqual((error["where"], error["actual"]), ("--temperature", "-1"))

    def test_ranges(self):
        for flag, value, expected in (("--seed", "-1", "0 to 18446744073709551615"), ("--seed", str(2**64), "0 to 18446744073709551615"),
                                      ("--top-k", "-1", "0 or more"), ("--chunk", "0", "1 or more"), ("-n", "0", "1 or more"),
                                      ("--ctx", str(2**63), f"0 to {2**63 - 1}"), ("--threads", "1025", "0 to 1024")):
            self.assertIn(expected, self.refused("run", LLAMA, flag=flag, value=value))
        self.assertIn("1 to 1000000", self.refused("plan", LLAMA, flag="--batch", value="0"))
        self.ok("run", LLAMA, "--ids", "1", "-n", 1, "--seed", 2**64 - 1)

    def test_given_twice(self):
        error = self.fails_both(2, "run", LLAMA, "-n", "3", "-n", "4", says=("given twice",))
        self.assertEqual((error["where"], error["actual"]), ("-n, --max-tokens", "3 and 4"))
        self.ok(*RUN, "--stop", "a", "--stop", "b")

    def test_sizes_of_a_bench(self):
        for prompt in (str(2**63), str(2**63 - 1), "600"):
            error = self.fails_both(2, "bench", LLAMA, "-p", prompt)
            self.assertIn("-p", error["where"])
            self.assertNotIn("--ctx", error["where"])

    def test_bytes(self):
        size = "4400"
        for suffix in ("k", "K", "kb", "KB", "KiB", "kib"):
            self.assertEqual(self.answer("plan", LLAMA, "--memory", size + suffix, "--ctx", 16)["max_ctx"],
                             self.answer("plan", LLAMA, "--memory", str(4400 << 10), "--ctx", 16)["max_ctx"])
        for text in ("8g", "1t", "512mb", "99999999b"):
            self.ok("plan", LLAMA, "--memory", text)
        for text in ("", "8x", "8gg", "8ibb", "8ib", "8 g", "g", "1.5g", "0", "-1"):
            self.fails_both(2, "plan", LLAMA, "--memory", text, says=("--memory",))
        expected = self.fails_both(2, "plan", LLAMA, "--memory", "8x")["expected"]
        self.assertIn(expected, self.ok("plan", "--help").out.decode())
        for text in ("9" * 30, "9999999999g", f"{2**63}"):
            self.fails_both(2, "plan", LLAMA, "--memory", text, says=("too large",))


class NoEffectTest(CommandTest):
    """A flag that would do nothing is refused, with the flag it does not go with."""

    def test_exclusions(self):
        for arguments, says in ((("run", LLAMA, "-p", "x", "--raw", "--system", "X"), ("--raw", "--system")),
                                (("run", LLAMA, "--ids", "1", "--system", "X"), ("--ids", "--system")),
                                (("tokenize", LLAMA, "--ids", "1"), ("--ids", "--decode")),
                                (("tokenize", LLAMA, "-p", "hi", "--ids", "1"), ("--prompt", "--ids")),
                                (("tokenize", LLAMA, "-p", "hi", "-f", "F"), ("--prompt", "--file")),
                                (("tokenize", LLAMA, "--jsonl", "F", "--decode"), ("--jsonl", "--decode")),
                                (("perplexity", LLAMA, "-p", "hi", "-f", "F"), ("--prompt", "--file")),
                                (("quantize", LLAMA, "--to", "q8_0", "-o", self.path("q"), "--window", "5"), ("--window", "--text")),
                                (("doctor", "--ctx", "5"), ("--ctx", "MODEL")),
                                (("bench", LLAMA, "--type", "f16"), ("--type", "--shape")),
                                (("bench", LLAMA, "--output-type", "f16"), ("--output-type", "--shape")),
                                (("bench", LLAMA, "--mix"), ("--mix", "--shape")),
                                (("bench", LLAMA, "--save", self.path("s")), ("--save", "--shape"))):
            with self.subTest(arguments=arguments):
                error = self.fails_both(2, *arguments, says=says, cheap=True)
                self.assertEqual(error["try"], f"hone {arguments[0]} --help")
        self.assertEqual(os.listdir(self.folder), [])

    def test_empty_names(self):
        for verb, flags in (("explain", ("--dump", "--graph", "--stop-after", "--passes", "--level", "--kv", "--weights", "--isa")),
                            ("run", ("-f", "--ids", "--stop")), ("quantize", ("--text", "-o", "--to")), ("logits", ("--out",)),
                            ("bench", ("--save", "--shape")), ("render", ("--messages",)), ("tokenize", ("--jsonl",))):
            for flag in flags:
                error = self.fails_both(2, verb, LLAMA, flag, "")
                self.assertIn(flag, error["where"])
                self.assertEqual(error["actual"], "''")
        self.fails_both(2, "explain", LLAMA, "--dump=", says=("--dump", "empty"))

    def test_steps_are_in_the_document(self):
        plan = self.answer("plan", LLAMA, "--steps")
        self.assertEqual(len(plan["steps"]), len(self.ok("plan", LLAMA, "--steps").out.decode().split("\nstep ")) - 1)
        for step in plan["steps"]:
            self.assertLessEqual({"value", "op", "kernel", "module", "inputs", "outputs"}, set(step))
        self.assertIn("region", plan["steps"][0]["outputs"][0])
        self.assertNotIn("steps", self.answer("plan", LLAMA))


class WordsTest(CommandTest):
    def test_one_is_singular(self):
        self.assertIn(" 1 thread,", self.ok("plan", LLAMA, "--threads", 1).out.decode())
        self.assertIn(" 2 threads,", self.ok("plan", LLAMA, "--threads", 2).out.decode())
        self.assertIn(" 1 token predicted", self.ok("perplexity", LLAMA, "--ids", "1,2").out.decode())
        stats = self.ok(*RUN, "--threads", 1, "--stats").err
        for part in ("\n1 thread (", " 1 token in, 1 out", " 1 compile\n"):
            self.assertIn(part, stats)
        self.assertRegex(self.ok("logits", LLAMA, "--ids", "1", "--out", self.path("o")).out.decode(), r"^1 token in")
        self.assertIn("1 sequence, 1 token,", self.ok("explain", LLAMA, "--tokens", 1).out.decode())


class TextTest(CommandTest):
    def test_perplexity_of_flag_file_and_pipe(self):
        text = "the river runs to the mill"
        wanted = self.answer("perplexity", LLAMA, "-f", self.write("t", text))
        self.assertEqual(self.answer("perplexity", LLAMA, "-p", text), wanted)
        self.assertEqual(self.answer("perplexity", LLAMA, stdin=text.encode()), wanted)
        self.fails_both(3, "perplexity", LLAMA, says=("the text is empty", "-f FILE"), cheap=True)

    def test_perplexity_does_not_wait_for_a_person(self):
        master, slave = pty.openpty()
        process = command.launch("hone", ("perplexity", LLAMA), stdin=slave, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        _, err = process.communicate(timeout=60)
        os.close(master)
        os.close(slave)
        self.assertEqual(process.returncode, 2)
        self.assertIn(b"no text given", err)

    def test_decode_reads_ids_from_file_and_pipe(self):
        wanted = self.ok("tokenize", LLAMA, "--decode", "--ids", "72,105").out
        self.assertEqual(self.ok("tokenize", LLAMA, "--decode", stdin=b"72,105\n").out, wanted)
        self.assertEqual(self.ok("tokenize", LLAMA, "--decode", "-f", self.write("ids", "72,105\n")).out, wanted)


class FullContextTest(CommandTest):
    def test_is_told(self):
        full = ("run", LLAMA, "--ids", "1,2,3", "-n", "500", "--ignore-end", "--ctx", "48")
        done = self.ok(*full, "--json")
        self.assertEqual(done.json["finish"], "context")
        for err in (done.err, self.ok(*full).err):
            self.assertIn("context of 48 tokens is full", err)
            self.assertIn("--ctx", err)
        short = self.ok("run", LLAMA, "--ids", IDS, "-n", "5", "--ignore-end", "--json")
        self.assertEqual((short.json["finish"], short.err), ("length", ""))


if __name__ == "__main__":
    command.main()
