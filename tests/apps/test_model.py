#!/usr/bin/env python3
"""The commands on a real model, SmolLM2-135M-Instruct: the text and likelihood of the reference, and memory as predicted."""
import json
import os
import signal
import subprocess
import time
import unittest

import command
from command import DATA, CommandTest

MODEL = os.environ.get("HONE_TEST_MODEL", "")


@unittest.skipUnless(MODEL and os.path.exists(MODEL), "HONE_TEST_MODEL names no model")
class ModelTest(CommandTest):
    @classmethod
    def setUpClass(cls):
        with open(os.path.join(DATA, "smollm2", "expected.json"), "rb") as file:
            cls.expected = json.load(file)

    def test_prompt_ids_of_the_reference(self):
        for prompt in self.expected["prompts"]:
            ids = self.answer("tokenize", MODEL, "-f", self.write("p.txt", prompt["text"]), "--no-special")["ids"]
            self.assertEqual(ids, prompt["ids"], prompt["name"])

    def test_chat_template_of_the_reference(self):
        seen = 0
        for prompt in self.expected["prompts"]:
            if "messages" in prompt:
                messages = self.write("m.json", json.dumps({"messages": prompt["messages"]}))
                text = self.answer("render", MODEL, "--messages", messages, "--add-generation-prompt")["text"]
                self.assertEqual(text, prompt["text"], prompt["name"])
                seen += 1
        self.assertGreater(seen, 0)

    def test_greedy_tokens_while_the_margin_decides(self):
        """int8 activations move logits by up to 0.25, so a margin below 0.5 may go either way."""
        margins = command.safetensors(os.path.join(DATA, "smollm2", "expected.safetensors"))
        seen = 0
        for prompt in self.expected["prompts"][:6]:
            steps = margins[prompt["name"] + ".margins"][1]
            sure = next((i for i, margin in enumerate(steps) if margin < 0.5), len(steps))
            if sure == 0:
                continue
            made = self.answer("run", MODEL, "--ids", ",".join(map(str, prompt["ids"])), "-n", sure, "--ignore-end")
            self.assertEqual(made["ids"], prompt["greedy"][:sure], prompt["name"])
            seen += sure
        self.assertGreater(seen, 5)

    def test_streamed_text_is_the_text_of_the_document(self):
        prompt = ("run", MODEL, "-p", "Name three rivers.", "-n", "24")
        self.assertEqual(self.ok(*prompt).out.decode(), self.answer(*prompt)["text"] + "\n")

    def test_likelihood_of_the_essay(self):
        essay = os.path.join(DATA, "smollm2", "essay.txt")
        seen = self.answer("perplexity", MODEL, "-f", essay, "--limit", 200)
        self.assertEqual(seen["tokens"], 199)
        self.assertTrue(2.5 < seen["nll_mean"] < 4.5, seen)

    def test_memory_is_what_plan_says(self):
        flags = ("--ctx", "1024", "--chunk", "128")
        plan = self.answer("plan", MODEL, *flags)
        made = self.answer("run", MODEL, "-p", "Name three rivers.", "-n", "8", *flags)
        self.assertEqual(made["predicted_bytes"], plan["total_bytes"])
        if command.limits:
            self.assertLessEqual(made["peak_bytes"], made["predicted_bytes"])
            self.assertGreaterEqual(made["peak_bytes"], 0.95 * made["predicted_bytes"])

    def test_stop(self):
        made = self.answer("run", MODEL, "-p", "Count from one to ten in digits.", "-n", "40", "--stop", "3")
        self.assertNotIn("3", made["text"])

    def test_interrupt_while_streaming(self):
        arguments = ("run", MODEL, "-p", "Tell a long story.", "-n", "2000", "--ignore-end")
        process = command.launch("hone", arguments, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual(len(process.stdout.read(1)), 1)
        begin = time.monotonic()
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
        self.assertEqual(process.returncode, 130, err)
        self.assertLess(time.monotonic() - begin, 10)

    def test_too_long_prompt_is_refused_before_it_is_computed(self):
        text = self.write("long.txt", "river mill " * 20000)
        done = self.fails(3, "run", MODEL, "-f", text, "--raw", says=("context", "4096 tokens", "--ctx up to 8192"))
        if command.limits:
            self.assertLess(done.seconds, 4.0)


if __name__ == "__main__":
    command.main()
