#!/usr/bin/env python3
"""A file of 100 GB, whose data is one hole: verbs that read headers answer in seconds and touch no data.

The seconds are of the CPU and far above what is needed (inspect 0.1, plan 1), for machines differ by several times;
reading the data takes 15 s and more on any of them.
"""
import os
import unittest

import command
from command import CommandTest, LLAMA
from gguf_bytes import write_sparse_llama

LARGE = 100_000_000_000


class LargeFileTest(CommandTest):
    def setUp(self):
        super().setUp()
        self.model = self.path("large.gguf")
        size = write_sparse_llama(LLAMA, self.model, layers=100, dim=8192, feed_forward=28672)
        self.assertGreater(size, LARGE * 0.99)
        self.assertLess(os.stat(self.model).st_blocks * 512, 1 << 20, "the file is not sparse here")

    def within(self, done, seconds):
        if command.limits:
            self.assertLess(done.seconds, seconds)
            self.assertLess(done.peak_bytes, 256 << 20)

    def test_inspect(self):
        done = self.ok("inspect", self.model, "--json")
        self.assertGreater(done.json["parameters"], 90_000_000_000)
        self.within(done, 5.0)

    def test_plan(self):
        done = self.ok("plan", self.model, "--ctx", "128", "--json")
        self.assertGreater(done.json["total_bytes"], LARGE * 0.99)
        self.within(done, 5.0)

    def test_it_does_not_fit(self):
        if not command.limits:
            self.skipTest("the search for the context that fits takes minutes under sanitizers")
        done = self.fails(4, "run", self.model, "-p", "x", "-n", "1", "--memory", "1G", "--ctx", "128", says=("need",))
        self.within(done, 20.0)


class LoadingTest(CommandTest):
    """Weights go into their packed layout in pieces: at no time are there two copies of them."""

    def test_peak_while_loading(self):
        model = self.path("model.gguf")
        size = write_sparse_llama(LLAMA, model, layers=4, dim=2048, feed_forward=5632)
        stays = self.answer("plan", model, "--ctx", "16", "--chunk", "16")["static_bytes"]
        self.assertGreater(stays, size * 0.95)
        done = self.ok("run", model, "--ids", "1,2", "-n", "1", "--ctx", "16", "--chunk", "16", "--json")
        if command.limits:
            self.assertLess(done.json["peak_bytes"], 1.1 * stays)
            # The whole process, with its program and the pages of the file that are mapped.
            self.assertLess(done.peak_bytes, 1.1 * stays + (24 << 20))


if __name__ == "__main__":
    command.main()
