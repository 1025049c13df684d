#!/usr/bin/env python3
"""hone-opt: passes over text IR, where to stop, and how it answers what it cannot use."""
import os
import subprocess
import unittest

import command
from command import QWEN, CommandTest

NORM = """graph "g" symbols(T) {
  input %x "x": f32[T,64]
  weight %w "w": f32[64]
  %eps: f32[] = constant() {dtype = "f32", shape = dims[], values = reals[1e-05]}
  %s: f32[T,64] = mul(%x, %x)
  %m: f32[T,1] = reduce_mean(%s) {axis = -1, keep_dims = 1}
  %a: f32[T,1] = add(%m, %eps)
  %r: f32[T,1] = rsqrt(%a)
  %n: f32[T,64] = mul(%x, %r)
  %y: f32[T,64] = mul(%n, %w) @"norm"
  output "y" %y
}
"""
# %b repeats %a, and nobody reads %dead.
TWICE = """graph "g" symbols(T) {
  input %x "x": f32[T,64]
  %a: f32[T,64] = exp(%x)
  %b: f32[T,64] = exp(%x)
  %dead: f32[T,64] = sqrt(%x)
  %y: f32[T,64] = add(%a, %b)
  output "y" %y
}
"""


class PassTest(CommandTest):
    def opt(self, text, *flags):
        done = command.run("hone-opt", self.write("in.ir", text), *flags)
        self.assertEqual(done.code, 0, done.err)
        self.assertEqual(done.err, "")
        return done.out.decode()

    def test_without_a_pass_the_text_comes_back(self):
        once = self.opt(NORM)
        self.assertEqual(self.opt(once), once)
        self.assertIn("reduce_mean", once)

    def test_one_pass(self):
        fused = self.opt(NORM, "--passes", "fuse-norm")
        self.assertIn("= rms_norm(%x, %w)", fused)
        self.assertNotIn("rms_norm", self.opt(NORM, "--passes", "fuse-rope"))

    def test_passes_run_in_the_order_given(self):
        both = self.opt(TWICE, "--passes", "cse,dce")
        self.assertEqual((both.count("exp("), both.count("sqrt(")), (1, 0))
        only = self.opt(TWICE, "--passes", "dce")
        self.assertEqual((only.count("exp("), only.count("sqrt(")), (2, 0))

    def test_stop_after(self):
        self.assertEqual(self.opt(TWICE, "--passes", "cse,dce", "--stop-after", "cse"), self.opt(TWICE, "--passes", "cse"))
        self.assertNotIn("rms_norm", self.opt(NORM, "--level", "O2", "--stop-after", "cse"))
        self.assertIn("rms_norm", self.opt(NORM, "--level", "O2", "--stop-after", "fuse-norm"))

    def test_level_is_the_pipeline_that_explain_shows(self):
        """From the built graph of a model to its final one."""
        folder = self.path("dump")
        os.mkdir(folder)
        self.ok("explain", QWEN, "--level", "O2", "--dump", folder, "--graph", self.path("final.ir"))
        built = os.path.join(folder, sorted(os.listdir(folder))[0])
        done = command.run("hone-opt", built, "--level", "O2")
        self.assertEqual(done.code, 0, done.err)
        with open(self.path("final.ir"), "rb") as file:
            final = file.read()
        self.assertEqual(done.out.count(b" = "), final.count(b" = "))

    def test_stdin(self):
        done = command.run("hone-opt", "-", "--passes", "fuse-norm", stdin=NORM.encode())
        self.assertEqual(done.code, 0, done.err)
        self.assertEqual(done.out.decode(), self.opt(NORM, "--passes", "fuse-norm"))


class ErrorTest(CommandTest):
    def refused(self, code, *arguments, says, **options):
        self.fails(code, *arguments, says=says, fault="user", cheap=True, program="hone-opt", **options)

    def test_usage(self):
        file = self.write("in.ir", NORM)
        self.refused(2, says=("file",))
        self.refused(2, file, "--nope", says=("--nope",))
        self.refused(2, file, "--passes", "fuse-nrom", says=("fuse-nrom", "fuse-norm", "did you mean"))
        self.refused(2, file, "--passes", "dce", "--stop-after", "fuse-nrom", says=("fuse-nrom",))
        self.refused(2, file, "--level", "O7", says=("--level", "O7"))
        self.refused(2, file, "--level", "O2", "--passes", "dce", says=("--passes",))
        self.refused(2, file, "--kv", "f12", says=("--kv", "f12"))

    def test_files(self):
        self.refused(3, self.path("no.ir"), says=("no.ir", "No such file"))
        self.refused(3, self.folder, says=("a directory",))
        self.refused(3, "/dev/zero", says=("too long",))
        self.refused(3, self.write("empty.ir", ""), says=("empty.ir", "line 1 column 1"))

    def test_text_has_line_and_column(self):
        for bad, place in ((NORM.replace("rsqrt(%a)", "rsqrt(%aa)"), "line 8 column"), (NORM.replace("f32[T,1] = add", "f33[T,1] = add"), "line 7 column"),
                           (NORM[:200], "line 6 column"), (NORM[:-2], "line 12 column"), ("\0" * 100, "line 1 column 1")):
            self.refused(3, self.write("bad.ir", bad), says=("bad.ir", place))

    def test_graph_that_breaks_a_rule(self):
        wrong = self.write("bad.ir", NORM.replace("%y: f32[T,64]", "%y: f32[T,65]"))
        self.refused(3, wrong, says=("bad.ir",))
        unknown = self.write("bad.ir", NORM.replace("rsqrt(", "rsqurt("))
        self.refused(3, unknown, says=("rsqurt",))

    def test_deep_and_long_text(self):
        self.refused(3, self.write("deep.ir", NORM.replace("f32[T,64]", "f32[" + "(" * 100000 + "T" + ")" * 100000 + ",64]", 1)), says=("line 2 column",))

    def test_stdout_full(self):
        file = self.write("in.ir", NORM)
        with open("/dev/full", "wb") as full:
            process = command.launch("hone-opt", (file,), stdin=subprocess.DEVNULL, stdout=full, stderr=subprocess.PIPE)
            err = process.communicate(timeout=60)[1]
        self.assertEqual(process.returncode, 3)
        self.assertIn(b"stdout", err)

    def test_help(self):
        done = command.run("hone-opt", "--help")
        self.assertEqual(done.code, 0)
        self.assertIn(b"--stop-after", done.out)


if __name__ == "__main__":
    command.main()
