#!/usr/bin/env python3
"""--precision: fast, balanced, exact and a file of rules; what plan says of each; wrong files."""
import unittest

import command
from command import IDS, LLAMA, QWEN, CommandTest


class PrecisionTest(CommandTest):
    def stages(self, *flags):
        return self.answer("plan", LLAMA, "--threads", "2", *flags)["precision"]

    def test_names(self):
        (fast,) = self.stages()
        self.assertEqual((fast["what"], self.stages("--precision", "fast")), ("fast", [fast]))
        before, balanced = self.stages("--precision", "balanced")
        self.assertEqual((before, balanced["what"]), (fast, "balanced"))
        # Both terms are multiplied; the product of the logits has two at fast too.
        self.assertGreater(balanced["int8_operations"], 1.9 * fast["int8_operations"])
        self.assertEqual(balanced["f32_operations"], fast["f32_operations"])
        before, exact = self.stages("--precision", "exact")
        self.assertEqual((before, exact["what"], exact["int8_operations"]), (fast, "exact", 0))
        text = self.ok("plan", LLAMA, "--precision", "balanced").out.decode()
        self.assertRegex(text, r"\nprecision +launches +prefill +decode +int8 +f32 +memory\nfast +\d+ .*\nbalanced +\+")
        self.assertNotIn("\nprecision", self.ok("plan", LLAMA).out.decode())

    def test_every_verb_that_compiles(self):
        for precision in ("balanced", "exact", self.write("rules", "* kv=f32\nlm_head activations=f32\n")):
            flags = ("--precision", precision)
            self.assertEqual(len(self.answer("run", LLAMA, "--ids", IDS, "-n", "3", "--ignore-end", *flags)["ids"]), 3)
            self.ok("logits", LLAMA, "--ids", "1,2", "--out", self.path("out"), *flags)
            self.ok("explain", LLAMA, "--tokens", "8", "--ctx", "8", *flags)
            self.assertTrue(self.answer("verify", QWEN, "--ids", "1,2,3", *flags)["ok"])

    def test_rules_one_after_the_other(self):
        rules = self.write("rules", "# by hand\nlayers.0 kv=f32\n\nlayers.*.mlp activations=q8a2\n* activations=f32\n")
        fast, kv, two_terms, f32 = self.stages("--precision", rules)
        self.assertEqual([stage["line"] for stage in (fast, kv, two_terms, f32)], [0, 2, 4, 5])
        self.assertEqual(kv["what"], "layers.0 kv=f32")
        self.assertGreater(kv["total_bytes"], fast["total_bytes"])
        self.assertGreater(kv["decode_bytes_moved"], fast["decode_bytes_moved"])
        self.assertGreater(two_terms["int8_operations"], kv["int8_operations"])
        self.assertEqual(f32["int8_operations"], 0)
        plan = self.answer("plan", LLAMA, "--threads", "2", "--precision", rules)
        self.assertEqual(plan["total_bytes"], f32["total_bytes"])
        # The last rule took back what the one before it said.
        run = self.answer("run", LLAMA, "--ids", IDS, "-n", "4", "--threads", "2", "--ctx", 64, "--precision", rules)
        self.assertEqual(run["predicted_bytes"],
                         self.answer("plan", LLAMA, "--threads", "2", "--ctx", 64, "--precision", rules)["total_bytes"])

    def test_no_such_precision(self):
        error = self.fails_both(2, "plan", LLAMA, "--precision", "balance", says=("--precision", "balanced"))
        self.assertEqual(error["try"], "did you mean 'balanced'?")
        self.fails_both(2, "plan", LLAMA, "--precision", "", says=("--precision",))

    def test_wrong_files(self):
        for text, says in (("layers.0 kv=f16\nlayers.7 kv=f16\n", ("line 2", "layers.7")),
                           ("* kv\n", ("line 1", "f16")),
                           ("*\n", ("line 1",)),
                           ("* speed=high\n", ("line 1", "speed=high")),
                           ("\n\n* activations=q4\n", ("line 3", "q8a2")),
                           ("", ("rules",)),
                           (b"\x00\xff\n", ("line 1",)),
                           ("* kv=f16\n" * 300, ("line 257",)),
                           (b"#" * 100000, ("65536",))):
            with self.subTest(text=text[:40]):
                self.fails_both(3, "plan", LLAMA, "--precision", self.write("rules", text), says=says, fault="user")
        self.fails_both(3, "plan", LLAMA, "--precision", self.folder, says=(self.folder,))


class WorkspaceTest(CommandTest):
    """--workspace and --workspace-in: the size and the place of the kernels' scratch."""

    def plan(self, *flags):
        return self.answer("plan", LLAMA, "--threads", "2", *flags)

    def item(self, plan, name):
        return next(item["bytes"] for item in plan["items"] if item["name"] == name)

    def test_among_the_activations(self):
        own, among = self.plan(), self.plan("--workspace-in", "activations")
        self.assertGreater(self.item(own, "kernel workspace"), 0)
        self.assertEqual(self.item(among, "kernel workspace"), 0)
        self.assertGreaterEqual(among["activation_bytes"], own["activation_bytes"])
        # What it buys: nothing where the launch with most scratch runs while most values are alive.
        saved = among["workspace"]["saved_bytes"]
        self.assertEqual(own["total_bytes"] - among["total_bytes"], saved)
        shrinks = {shrink["what"]: shrink["saves_bytes"] for shrink in own["shrink"]}
        self.assertEqual(shrinks.get("--workspace-in activations", 0), max(saved, 0))
        self.assertIn("workspace by hand: among the activations, 2 of 2 threads",
                      self.ok("plan", LLAMA, "--threads", "2", "--workspace-in", "activations").out.decode())
        # The same ids, whatever the length, within the statement.
        for length in (1, 11, 40):
            ids = ",".join(str(3 * i + 1) for i in range(length))
            run = ("run", LLAMA, "--ids", ids, "-n", "8", "--threads", "2", "--ignore-end", "--ctx", 64)
            made = self.answer(*run, "--workspace-in", "activations")
            self.assertEqual(made["ids"], self.answer(*run)["ids"])

    def test_limit(self):
        own = self.plan()
        both = self.item(own, "kernel workspace")
        one = self.plan("--workspace", both - 1)
        self.assertEqual((one["workspace"]["threads"], one["workspace"]["threads_without"]), (1, 2))
        self.assertEqual(self.item(one, "kernel workspace"), both // 2)
        self.assertEqual(self.plan("--workspace", both)["workspace"]["saved_bytes"], 0)
        self.assertEqual(self.answer("run", LLAMA, "--ids", "1", "-n", "1", "--threads", "2", "--workspace", both - 1)["threads"], 1)
        error = self.fails_both(4, "run", LLAMA, "--ids", "1", "--workspace", both // 2 - 1, says=("--workspace", str(both // 2)))
        self.assertEqual(error["try"], f"--workspace {both // 2}")

    def test_wrong_values(self):
        self.fails_both(2, "plan", LLAMA, "--workspace", "0", says=("--workspace",))
        self.fails_both(2, "plan", LLAMA, "--workspace-in", "stack", says=("own or activations",))


if __name__ == "__main__":
    command.main()
