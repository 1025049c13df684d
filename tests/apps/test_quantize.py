#!/usr/bin/env python3
"""hone quantize and hone doctor: their answers, and what they refuse."""
import os
import unittest

import command
from command import IDS, LLAMA, CommandTest
from gguf_bytes import Gguf


class QuantizeTest(CommandTest):
    def test_answer(self):
        out = self.path("out.gguf")
        seen = self.answer("quantize", LLAMA, "--to", "Q4_K", "--mix", "-o", out, "--ids", IDS, "--window", "4")
        self.assertEqual(seen["bytes_before"], os.path.getsize(LLAMA))
        self.assertEqual(seen["bytes_after"], os.path.getsize(out))
        self.assertEqual({t["to"] for t in seen["tensors"]}, {"f32", "q4_k", "q6_k"})
        self.assertEqual([t["name"] for t in seen["tensors"]], list(Gguf(LLAMA).tensors))
        for tensor in seen["tensors"]:
            self.assertLess(tensor["relative_error"], 0.1)
        self.assertEqual(seen["tokens"], IDS.count(","))
        self.assertGreater(seen["kl_mean"], 0)
        self.assertGreaterEqual(seen["kl_largest"], seen["kl_worst_percent"])
        self.assertGreaterEqual(seen["worst_sample"]["kl_mean"], seen["kl_mean"])
        self.assertLessEqual(seen["same_top_rate"], 1)
        self.answer("run", out, "--ids", IDS, "-n", "4")

    def test_a_text_and_plain_words(self):
        text = self.write("text", "The quick brown fox jumps over the lazy dog.")
        done = self.ok("quantize", LLAMA, "--to", "q5_0", "-o", self.path("out.gguf"), "--text", text, "--window", "16")
        for part in ("blk.1.ffn_down.weight", "q5_0", "KL divergence", "same likeliest token", "worst sample"):
            self.assertIn(part, done.out.decode())

    def test_refusals(self):
        out = self.path("out.gguf")
        self.fails_both(2, "quantize", LLAMA, "--to", "q9_z", "-o", out, says=("--to", "q4_k", "q9_z"))
        self.fails_both(2, "quantize", LLAMA, "--to", "q4_0", says=("--output",))
        self.fails_both(3, "quantize", self.path("none.gguf"), "--to", "q4_0", "-o", out, says=("none.gguf",))
        self.fails_both(3, "quantize", LLAMA, "--to", "q4_0", "-o", self.path("no/such/folder/out.gguf"))
        copy = self.write("copy.gguf", Gguf(LLAMA).data)
        self.fails_both(2, "quantize", copy, "--to", "q4_0", "-o", copy, says=("-o",))
        self.assertFalse(os.path.exists(out))


class DoctorTest(CommandTest):
    def test_answer(self):
        seen = self.answer("doctor", "--no-peaks")
        for field in ("isa", "threads", "threads_source", "memory_bytes", "memory_source", "peaks", "devices", "findings",
                      "governor", "transparent_huge_pages", "amx", "processor", "features"):
            self.assertIn(field, seen)
        self.assertGreater(seen["memory_bytes"], 0)
        for finding in seen["findings"]:
            self.assertTrue(finding["name"] and finding["detail"] and finding["fix"], finding)

    def test_more_threads_than_processors(self):
        names = [f["name"] for f in self.answer("doctor", "--no-peaks", "--threads", "1000")["findings"]]
        self.assertIn("too-many-threads", names)

    def test_a_model(self):
        seen = self.answer("doctor", LLAMA, "--no-peaks")
        self.assertEqual(seen["model"]["file_bytes"], os.path.getsize(LLAMA))
        self.assertEqual(seen["model"]["needs_bytes"], self.answer("plan", LLAMA)["total_bytes"])

    def test_another_copy_in_front(self):
        other = self.write("hone", "#!/bin/sh\n")
        environment = {"PATH": self.folder + ":" + os.environ.get("PATH", "")}
        seen = self.answer("doctor", "--no-peaks", environment=environment)
        copies = [f for f in seen["findings"] if f["name"] == "another-copy"]
        self.assertEqual(len(copies), 1)
        self.assertIn(other, copies[0]["detail"])

    def test_refusals(self):
        self.fails_both(2, "doctor", "--no-peaks", "--threads", "5000", says=("--threads",))
        self.fails_both(3, "doctor", self.path("none"), "--no-peaks")


if __name__ == "__main__":
    command.main()
