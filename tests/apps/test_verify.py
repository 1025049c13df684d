#!/usr/bin/env python3
"""hone verify, and the chain by hand: plugins, passes switched off and moved, where to stop, dumps."""
import json
import os
import re
import shutil
import subprocess
import unittest

import command
from command import IDS, LLAMA, QWEN, CommandTest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# Beside hone in the build folder.
EXAMPLE = "scale_queries_pass.so"
FAULTY = os.path.join("tests", "passes", "faulty_passes.so")


def built(path):
    return os.path.join(os.path.dirname(command.programs["hone"]), path)


class VerifyTest(CommandTest):
    def verify(self, code, *flags):
        done = self.hone("verify", LLAMA, "--json", *flags)
        self.assertEqual(done.code, code, done.err)
        return done

    def test_a_right_chain(self):
        report = self.verify(0).json
        self.assertIs(report["ok"], True)
        self.assertIsNone(report["guilty"])
        names = [row["name"] for row in report["passes"]]
        self.assertEqual(names, [row["name"] for row in self.answer("explain", LLAMA)["passes"]])
        for row in report["passes"]:
            self.assertLessEqual(row["max_error"], row["bound"], row)
            self.assertIs(row["ok"], True)
            if row["changed"]:
                self.assertGreater(row["rewritten"], 0)
                self.assertLessEqual(row["end_to_end_error"], row["end_to_end_bound"], row)
        text = self.ok("verify", LLAMA, "--ids", IDS).out.decode()
        self.assertTrue(text.startswith("every pass keeps its contract"), text)
        self.assertIn("11 tokens", text)

    def test_a_planted_fault_is_named(self):
        for name in ("forget-eps", "swap-inputs", "drop-second-user", "eightfold-error", "narrow-in-secret"):
            flags = ("--plugin", built(FAULTY), f"--passes=+plugin:{name}")
            done = self.verify(5, *flags)
            report = done.json
            self.assertEqual((report["ok"], report["guilty"]), (False, f"plugin:{name}"))
            self.assertLessEqual(report["bisection_runs"], report["most_bisection_runs"])
            for side in ("before", "after"):
                self.assertTrue(report[side].startswith("graph "), report[side])
            self.assertIn(f"pass plugin:{name}", done.err)
            self.assertIn("error (file)", done.err)
            text = self.hone("verify", LLAMA, *flags)
            self.assertEqual(text.code, 5)
            self.assertTrue(text.out.decode().startswith(f"guilty: plugin:{name},"))
            self.assertRegex(text.out.decode(), r"bisection: \d end-to-end runs? of at most \d")

    def test_what_cannot_be_fed(self):
        self.fails(3, "verify", LLAMA, "--ids", "1,512", says=("512", "0 to 511"))
        self.fails(2, "verify", LLAMA, "--ids", "1", "-p", "a", says=("--ids",))
        self.fails(3, "verify", LLAMA, "--ids", ",".join(["1"] * 600), says=("600 tokens",))


class PluginTest(CommandTest):
    def explained(self, *flags):
        return {row["name"]: row for row in self.answer("explain", LLAMA, *flags)["passes"]}

    def test_it_is_shown_moved_and_switched_off(self):
        plugin = ("--plugin", built(EXAMPLE))
        rows = self.explained("--level", "O1", *plugin)
        row = rows["plugin:scale-queries"]
        self.assertTrue(row["changed"])
        self.assertLess(row["bytes_after"], row["bytes_before"])
        self.assertTrue(row["contract"].startswith("reorders, bound"))
        order = list(self.explained(*plugin))
        self.assertEqual(order.index("plugin:scale-queries") + 1, order.index("fuse-softmax"))
        moved = list(self.explained(*plugin, "--passes=+plugin:scale-queries:after:fuse-norm"))
        self.assertEqual(moved.index("plugin:scale-queries") - 1, moved.index("fuse-norm"))
        for off in ("-plugin:scale-queries", "-scale-queries"):
            self.assertNotIn("plugin:scale-queries", self.explained(*plugin, f"--passes={off}"))

    def test_it_runs_over_a_text(self):
        folder = self.path("dump")
        self.ok("explain", LLAMA, "--plugin", built(EXAMPLE), "--dump", folder)
        done = command.run("hone-opt", os.path.join(folder, "05-cse.ir"), "--plugin", built(EXAMPLE), "--passes",
                           "plugin:scale-queries")
        self.assertEqual(done.code, 0, done.err)
        with open(os.path.join(folder, "06-plugin-scale-queries.ir"), "rb") as file:
            self.assertEqual(done.out, file.read())
        self.fails(2, os.path.join(folder, "05-cse.ir"), "--plugin", built(EXAMPLE), "--passes", "plugin:scale",
                   program="hone-opt", says=("plugin:scale-queries",))

    def test_its_answers_are_those_without_it(self):
        flags = ("run", QWEN, "--ids", IDS, "-n", "8", "--temperature", "0")
        self.assertEqual(self.answer(*flags, "--plugin", built(EXAMPLE))["ids"], self.answer(*flags)["ids"])

    def test_only_the_passes_picked_run(self):
        names = set(self.explained("--plugin", built(FAULTY), "--passes=+plugin:swap-inputs"))
        self.assertEqual({name for name in names if name.startswith("plugin:")}, {"plugin:swap-inputs"})

    def test_a_crash_is_the_plugins(self):
        for name, says in (("crash", "signal 11"), ("abort", "signal 6"), ("throw", "seven"), ("break-ir", "rule of the IR")):
            for verb in (("explain", LLAMA), ("plan", LLAMA), ("run", LLAMA, "--ids", "1", "-n", "1"), ("verify", LLAMA)):
                self.fails_both(3, *verb, "--plugin", built(FAULTY), f"--passes=+plugin:{name}", fault="file",
                                says=(f"plugin:{name}", says, f"--passes=-plugin:{name}"))

    def test_fast_math_in_a_plugin_changes_no_bit(self):
        flags = ("logits", LLAMA, "--ids", IDS, "--out")
        self.ok(*flags, self.path("a"))
        # Loaded, and nothing of it runs.
        every = ",".join("-" + name for name in re.findall(r'HONE_PASS_ABI, "([a-z-]+)"', self.faulty_source()))
        self.ok(*flags, self.path("b"), "--plugin", built(FAULTY), f"--passes={every}")
        with open(self.path("a"), "rb") as a, open(self.path("b"), "rb") as b:
            self.assertEqual(a.read(), b.read())

    def faulty_source(self):
        with open(os.path.join(ROOT, "tests", "passes", "faulty_passes.cc"), encoding="utf-8") as file:
            return file.read()

    def test_a_plugin_of_another_compiler(self):
        compiler = shutil.which("clang++-19") or shutil.which("clang++")
        if compiler is None:
            self.skipTest("there is no clang++")
        library = self.path("by_clang.so")
        subprocess.run([compiler, "-std=c++17", "-O1", "-shared", "-fPIC", "-I", os.path.join(ROOT, "include"),
                        os.path.join(ROOT, "examples", "scale_queries_pass.cc"), "-o", library], check=True)
        self.assertEqual(self.explained("--plugin", library)["plugin:scale-queries"]["bytes_after"],
                         self.explained("--plugin", built(EXAMPLE))["plugin:scale-queries"]["bytes_after"])

    def test_a_plugin_in_c(self):
        compiler = shutil.which("cc")
        if compiler is None:
            self.skipTest("there is no C compiler")
        source = self.write("same.c", """
#include "hone/hone_pass.h"
static int same(const char* graph, hone_answer answer, void* hone) { answer(hone, graph); return 0; }
static const struct hone_pass pass = {HONE_PASS_ABI, "same", "same bits", 0, "after dce", 0, "it changes nothing", same};
const struct hone_pass* hone_plugin_pass(int index) { return index == 0 ? &pass : 0; }
""")
        library = self.path("same.so")
        subprocess.run([compiler, "-std=c89", "-pedantic-errors", "-Wall", "-Werror", "-shared", "-fPIC", "-I",
                        os.path.join(ROOT, "include"), source, "-o", library], check=True)
        row = self.explained("--plugin", library)["plugin:same"]
        self.assertFalse(row["changed"])
        self.assertEqual(row["contract"], "same bits")

    def test_what_is_no_plugin(self):
        self.fails_both(3, "plan", LLAMA, "--plugin", self.path("none.so"), fault="file", says=("none.so",))
        self.fails_both(3, "plan", LLAMA, "--plugin", LLAMA, fault="file", says=("invalid ELF header",))
        self.fails_both(2, "plan", LLAMA, "--passes=+plugin:mine", says=("--plugin",))
        self.fails_both(2, "plan", LLAMA, "--plugin", built(EXAMPLE), "--passes=+plugin:scale-querys",
                        says=("plugin:scale-queries", "did you mean"))


class ChainTest(CommandTest):
    def names(self, *flags):
        return [row["name"] for row in self.answer("explain", LLAMA, *flags)["passes"]]

    def test_order(self):
        moved = self.names("--passes=fuse-rope:before:fuse-norm")
        self.assertEqual(moved.index("fuse-rope") + 1, moved.index("fuse-norm"))
        self.fails_both(2, "explain", LLAMA, "--passes=fuse-attention:before:cse",
                        says=("cse before fuse-attention", "computed twice"))
        self.fails_both(2, "explain", LLAMA, "--passes=fuse-rope:before:fuse-nrom", says=("fuse-nrom", "did you mean"))
        for text in ("fuse-rope", ":before:cse", "cse:before:", "-", "+"):
            self.fails_both(2, "explain", LLAMA, f"--passes={text}", says=("--passes",))

    def test_stop_after_and_dump_with_every_verb(self):
        for verb in (("run", LLAMA, "--ids", "1", "-n", "1"), ("logits", LLAMA, "--ids", "1", "--out", self.path("l")),
                     ("explain", LLAMA), ("plan", LLAMA), ("verify", LLAMA)):
            folder = self.path("dump-" + verb[0])
            self.ok(*verb, "--stop-after", "fuse-norm", "--dump", folder)
            files = sorted(os.listdir(folder))
            self.assertEqual((files[0], files[-1], len(files)), ("00-built.ir", "08-fuse-norm.ir", 9), verb)
            self.fails(2, *verb, "--stop-after", "fuse-nrom", says=("--stop-after", "fuse-nrom"))
        with open(os.path.join(folder, "08-fuse-norm.ir"), encoding="utf-8") as file:
            text = file.read()
        self.assertIn("rms_norm", text)
        self.assertNotIn("= rope", text)

    def test_a_dump_that_cannot_be_written(self):
        self.fails(3, "plan", LLAMA, "--dump", self.write("file", ""), says=("file",))


if __name__ == "__main__":
    command.main()
