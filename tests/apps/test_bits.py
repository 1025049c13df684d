#!/usr/bin/env python3
"""The bits of one request from several processes: on a loaded machine, with other threads, on each instruction set."""
import subprocess
import sys
import unittest

import command
from command import IDS, LLAMA, QWEN, CommandTest

ISAS = ("portable", "avx2", "avx512", "amx")


class BitsTest(CommandTest):
    def bits(self, model, *flags):
        path = self.path("logits")
        self.ok("logits", model, "--ids", IDS, "--out", path, *flags)
        with open(path, "rb") as file:
            return file.read()

    def test_processes_threads_and_load(self):
        for model in (LLAMA, QWEN):
            calm = self.bits(model, "--threads", 1)
            self.assertEqual(self.bits(model, "--threads", 1), calm)
            busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(4)]
            try:
                for threads in (1, 2, 5):
                    self.assertEqual(self.bits(model, "--threads", threads, "--chunk", threads + 1), calm)
            finally:
                for process in busy:
                    process.kill()
                    process.wait()

    def test_portable_bits_are_those_of_every_instruction_set(self):
        best = self.answer("run", LLAMA, "--ids", "1", "-n", 1)["isa"]
        for model in (LLAMA, QWEN):
            portable = self.bits(model, "--isa", "portable", "--bits", "portable")
            for isa in ISAS[:ISAS.index(best) + 1]:
                self.assertEqual(self.bits(model, "--isa", isa, "--bits", "portable"), portable)

    def test_the_flag_is_named_in_answers(self):
        for bits in ("isa", "portable"):
            self.assertEqual(self.answer("run", LLAMA, "--ids", "1", "-n", 1, "--bits", bits)["bits"], bits)
            done = self.ok("run", LLAMA, "--ids", "1", "-n", 1, "--stats", "--bits", bits)
            self.assertEqual("the bits of every instruction set" in done.err, bits == "portable")

    def test_bench_prints_their_price(self):
        short = ("-p", 8, "-n", 2, "-r", 1)
        made = self.answer("bench", LLAMA, *short)
        self.assertEqual(set(made["portable_bits_price"]), {"prefill", "decode"})
        for price in made["portable_bits_price"].values():
            self.assertGreater(price, 0)
        self.assertIn("--bits portable", self.ok("bench", LLAMA, *short).out.decode())
        self.assertIn("bits of every instruction set", self.ok("bench", LLAMA, *short, "--bits", "portable").out.decode())


if __name__ == "__main__":
    command.main()
