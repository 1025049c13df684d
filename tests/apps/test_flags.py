#!/usr/bin/env python3
"""The flags of every verb: what each changes, and how a wrong one is answered."""
import os
import unittest

import command
from command import DATA, IDS, LLAMA, QWEN, CommandTest

VERBS = ("run", "logits", "perplexity", "tokenize", "render", "template", "inspect", "explain", "plan", "verify", "bench",
         "quantize", "doctor", "version")
ISAS = ("portable", "avx2", "avx512", "amx")


class UsageTest(CommandTest):
    def test_help_names_every_verb_and_only_what_is_built(self):
        text = self.ok("--help").out.decode()
        for verb in VERBS:
            self.assertIn(verb, text)
            self.assertIn("--json", self.ok(verb, "--help").out.decode())

    def test_unknown_verb(self):
        error = self.fails_both(2, "rnu", LLAMA, says=("rnu", "explain"), cheap=True)
        self.assertEqual((error["code"], error["fault"], error["actual"]), ("usage", "user", "rnu"))

    def test_no_verb(self):
        self.fails(2, says=("verb", "inspect"))

    def test_unknown_flag(self):
        for verb in VERBS:
            self.fails(2, verb, LLAMA, "--no-such-flag", cheap=True)
        self.fails_both(2, "run", LLAMA, "--no-such-flag", says=("--no-such-flag",))

    def test_missing_argument(self):
        self.fails_both(2, "run", says=("MODEL",))
        self.fails_both(2, "logits", LLAMA, says=("--ids",))
        self.fails_both(2, "logits", LLAMA, "--ids", "1", says=("--out",))
        self.fails_both(2, "logits", LLAMA, "--ids", "1", "--out", "", says=("--out",))
        self.fails_both(2, "render", LLAMA, says=("--messages",))
        self.fails_both(3, "perplexity", LLAMA, says=("-f FILE",))

    def test_two_prompts(self):
        self.fails_both(2, "run", LLAMA, "-p", "a", "--ids", "1", says=("--ids",))
        self.fails_both(2, "run", LLAMA, "-f", "a", "--ids", "1", says=("--ids",))

    def test_values_that_cannot_be(self):
        run = ("run", LLAMA, "--ids", "1", "-n", "1")
        for flags, says in (
                (("--level", "O9"), ("--level", "O3", "O9")),
                (("--level", ""), ("--level",)),
                (("--kv", "f12"), ("--kv", "bf16", "f12")),
                (("--weights", "q4_0"), ("--weights", "q8_0", "q4_0")),
                (("--isa", "sse"), ("--isa", "portable", "sse")),
                (("--bits", "few"), ("--bits", "portable", "few")),
                (("--threads", "-1"), ("--threads", "-1")),
                (("--threads", "10000"), ("--threads", "1024", "10000")),
                (("--threads", "two"), ("--threads", "two")),
                (("--ctx", "-1"), ("--ctx", "-1")),
                (("--ctx", "513"), ("--ctx", "512", "513")),
                (("--ctx", "99999999999999999999"), ("--ctx", "99999999999999999999", "out of range")),
                (("--chunk", "0"), ("--chunk", "1 or more")),
                (("--chunk", "-1"), ("--chunk", "-1")),
                (("--memory", "plenty"), ("--memory", "plenty")),
                (("--memory", "0"), ("--memory",)),
                (("--memory", "-5G"), ("--memory", "-5G")),
                (("--memory", "8Q"), ("--memory", "8Q")),
                (("--memory", "9999999999G"), ("--memory", "9999999999G")),
                (("--passes=-no-such-pass",), ("no-such-pass", "fuse-rope")),
                (("--passes=fuse-rope",), ("--passes", "fuse-rope")),
                (("--temperature", "-1"), ("temperature", "-1")),
                (("--temperature", "nan"), ("temperature", "nan")),
                (("--top-p", "0"), ("top-p",)),
                (("--top-k", "-2"), ("top-k", "-2")),
                (("--min-p", "2"), ("min-p", "2")),
                (("--typical-p", "0"), ("typical-p",)),
                (("--presence-penalty", "nan"), ("presence-penalty", "nan")),
                (("--frequency-penalty", "inf"), ("frequency-penalty", "inf")),
                (("--repeat-penalty", "0"), ("repeat-penalty",))):
            with self.subTest(flags=flags):
                error = self.fails_both(2, *run, *flags, says=says, fault="user")
                self.assertEqual(error["code"], "usage")

    def test_token_budget(self):
        for count in ("0", "-3"):
            self.fails_both(2, "run", LLAMA, "--ids", "1", "-n", count, says=("--max-tokens", count))

    def test_explain_sizes(self):
        for flag in ("--batch", "--tokens", "--ctx"):
            for size in ("0", "-1", "99999999999999", "9223372036854775807"):
                self.fails_both(2, "explain", LLAMA, flag, size, says=(flag, size), cheap=True)
        self.fails(2, "explain", LLAMA, "--batch", 60000, "--tokens", 8000000, "--ctx", 8000000, says=("--batch",))

    def test_plan_sizes(self):
        for size in ("0", "-1", "99999999999999"):
            self.fails_both(2, "plan", LLAMA, "--batch", size, says=("--batch", size), cheap=True)

    def test_token_id_lists(self):
        for ids in ("", ",", "1,,2", "1,2,", "1;2", "one", "1.5", "99999999999"):
            self.fails(2, "run", LLAMA, "--ids", ids, says=("--ids",))
            self.fails(2, "logits", LLAMA, "--ids", ids, "--out", self.path("o"), says=("--ids",))
        for others in (";;", ";", "4;x", "4,;5"):
            self.fails(2, "logits", LLAMA, "--ids", "1", "--out", self.path("o"), "--batch-with", others, says=("--batch-with",))

    def test_set_wants_name_and_json(self):
        messages = self.write("m.json", '{"messages": []}')
        for value in ("x", "x=", "x={"):
            self.fails(2, "render", LLAMA, "--messages", messages, "--set", value, says=("--set", value))


class EffectTest(CommandTest):
    def made(self, *flags, environment=None):
        return self.answer("run", LLAMA, "--ids", IDS, "-n", 4, *flags, environment=environment or {})

    def test_pass_switched_off_makes_more_launches(self):
        self.assertGreater(self.made("--passes=-fuse-rope")["launches_per_token"], self.made()["launches_per_token"])

    def test_levels(self):
        launches = {level: self.made("--level", level)["launches_per_token"] for level in ("O0", "O1", "O2", "O3")}
        self.assertGreater(launches["O1"], launches["O2"])
        self.assertGreater(launches["O1"], launches["O3"])
        self.assertGreaterEqual(launches["O0"], launches["O1"])

    def test_threads(self):
        for threads in (1, 2, 3):
            self.assertEqual(self.made("--threads", threads)["threads"], threads)

    def test_thread_counts_give_the_same_ids(self):
        self.assertEqual(self.made("--threads", 1)["ids"], self.made("--threads", 2)["ids"])

    def test_isa_by_flag_and_by_environment(self):
        self.assertEqual(self.made("--isa", "portable")["isa"], "portable")
        self.assertEqual(self.made(environment={"HONE_ISA": "portable"})["isa"], "portable")
        best = self.made()["isa"]
        self.assertIn(best, ISAS)
        # The flag wins.
        self.assertEqual(self.made("--isa", best, environment={"HONE_ISA": "portable"})["isa"], best)
        self.fails(2, "run", LLAMA, "--ids", "1", environment={"HONE_ISA": "sse"}, says=("HONE_ISA", "sse"))

    def test_isa_beyond_this_machine(self):
        best = self.made()["isa"]
        if best == ISAS[-1]:
            self.skipTest("this machine has every level")
        self.fails_both(4, "run", LLAMA, "--ids", "1", "--isa", ISAS[-1], says=("--isa", best))

    def test_weights_are_rounded_as_they_are_loaded(self):
        model = os.path.join(DATA, "gguf", "llama-256-F32.gguf")
        plain = self.answer("plan", model)
        rounded = self.answer("plan", model, "--weights", "q8_0")
        self.assertLess(rounded["static_bytes"], 0.5 * plain["static_bytes"])
        passes = {row["name"]: row for row in self.answer("explain", model, "--weights", "q8_0")["passes"]}
        # q, k, v, o, gate, up and down of two layers, and the logits.
        self.assertEqual(passes["quantise-weights"]["rules"], [{"name": "f32", "fired": 15}])
        self.assertIn("rounds to type", passes["quantise-weights"]["contract"])
        self.assertFalse({row["name"]: row for row in self.answer("explain", model)["passes"]}["quantise-weights"]["changed"])
        made = self.answer("run", model, "--ids", IDS, "-n", 2, "--weights", "q8_0")
        self.assertEqual(made["predicted_bytes"], self.answer("plan", model, "--weights", "q8_0")["total_bytes"])

    def test_kv_type_changes_the_memory(self):
        size = {kv: self.answer("plan", LLAMA, "--kv", kv)["kv_bytes"] for kv in ("f32", "f16", "bf16", "q8_0")}
        self.assertEqual(size["f32"], 2 * size["f16"])
        self.assertEqual(size["bf16"], size["f16"])
        self.assertEqual(size["q8_0"] * 32, size["f16"] * 17)
        for kv in size:
            self.made("--kv", kv)
        # Heads of 24.
        error = self.fails_both(2, "plan", os.path.join(DATA, "models", "llama-odd"), "--kv", "q8_0", says=("layers.0.attn", "24", "32"))
        self.assertIn("--kv f16", error["try"])

    def test_budget_is_hard(self):
        need = self.answer("plan", LLAMA)["total_bytes"]
        self.made("--memory", need)
        error = self.fails_both(4, "run", LLAMA, "--ids", "1", "--memory", need - 1, says=(str(need), str(need - 1)))
        self.assertEqual(error["code"], "does_not_fit")

    def test_suffixes_of_bytes(self):
        for text in ("16777216", "16384K", "16M", "16MiB", "1G", "1GiB", "1T"):
            self.made("--memory", text)

    def test_strict_refuses_what_plan_says_of_reference_kernels(self):
        seen = set()
        for model in (LLAMA, QWEN):
            for level in ("O1", "O2", "O3"):
                falls_back = b"the rest on reference kernels" in self.ok("plan", model, "--level", level).out
                seen.add(falls_back)
                run = ("run", model, "--ids", "1", "-n", "1", "--level", level, "--strict")
                if falls_back:
                    error = self.fails_both(5, *run, says=("--strict", "reference kernels"), cheap=True)
                    self.assertEqual(error["code"], "check_failed")
                else:
                    self.ok(*run)
        self.assertIn(False, seen)

    def test_context_and_chunk_of_extreme_size(self):
        self.made("--chunk", 2**63 - 1)
        self.made("--chunk", 1)
        wide = self.answer("run", LLAMA, "--ids", "5", "-n", 99999999999, "--ctx", 16, "--ignore-end")
        self.assertEqual(len(wide["ids"]), 16)


if __name__ == "__main__":
    command.main()
