#!/usr/bin/env python3
"""GGUF files that end early or lie: the rule, the byte offset, the number; nothing is allocated on their word."""
import os
import struct
import unittest

import command
from command import LLAMA, CommandTest
from gguf_bytes import ARRAY, KEY_COUNT_AT, STRING, TENSOR_COUNT_AT, U32, Gguf

HUGE = 1 << 63


class LyingTest(CommandTest):
    @classmethod
    def setUpClass(cls):
        cls.base = Gguf(LLAMA)

    def refused(self, data, *says):
        """By a verb that runs the model and by one that reads the header. Returns the error."""
        path = self.write("model.gguf", data)
        seen = self.fails_both(3, "inspect", path, says=says, fault="file", cheap=True)
        self.assertEqual(self.fails_both(3, "run", path, "-p", "x", says=says, fault="file", cheap=True), seen)
        self.assertEqual(seen["code"], "bad_file")
        self.assertIn(path, seen["where"])
        self.assertRegex(seen["where"], r"byte \d+")
        self.assertTrue(seen["message"] and seen["actual"], seen)
        return seen

    def test_ends_early(self):
        for size in (4, 5, 8, 12, 23, 24, 31, self.base.keys_end - 1, self.base.keys_end + 3, self.base.header_end - 1):
            with self.subTest(size=size):
                self.refused(self.base.data[:size])

    def test_data_ends_early(self):
        for size in (self.base.header_end, self.base.header_end + 100, len(self.base.data) // 2, len(self.base.data) - 33):
            with self.subTest(size=size):
                self.refused(self.base.data[:size])

    def test_counts(self):
        for at in (TENSOR_COUNT_AT, KEY_COUNT_AT):
            for count in (HUGE, HUGE - 1, 2**64 - 1, 1 << 40):
                with self.subTest(at=at, count=count):
                    self.refused(self.base.patched(at, "<Q", count), str(count))

    def test_one_more_of_each(self):
        self.refused(self.base.patched(TENSOR_COUNT_AT, "<Q", self.base.tensor_count + 1))
        self.refused(self.base.patched(KEY_COUNT_AT, "<Q", self.base.key_count + 1))

    def test_version(self):
        for version in (0, 99, 2**32 - 1):
            self.refused(self.base.patched(4, "<I", version), str(version))

    def test_other_byte_order(self):
        self.refused(b"FUGG" + self.base.data[4:])
        self.refused(self.base.patched(4, ">I", 3))

    def test_string_longer_than_the_file(self):
        key = self.base.keys["general.name"]
        tensor = self.base.tensors["blk.0.attn_q.weight"]
        for at in (key.at, key.value_at, tensor.at):
            for length in (len(self.base.data) + 1, HUGE, 2**64 - 1):
                with self.subTest(at=at, length=length):
                    self.refused(self.base.patched(at, "<Q", length), str(length))

    def test_array_longer_than_the_file(self):
        key = self.base.keys["tokenizer.ggml.tokens"]
        for count in (HUGE, 2**64 - 1, 1 << 50):
            self.refused(self.base.patched(key.value_at + 4, "<Q", count), str(count))
        # Arrays in arrays, deeper than a stack.
        deep = struct.pack("<IQ", ARRAY, 1) * 100000 + struct.pack("<IQ", U32, 0)
        self.refused(self.base.with_key("deep", ARRAY, deep))

    def test_unknown_value_type(self):
        key = self.base.keys["general.name"]
        for kind in (13, 255, 2**32 - 1):
            error = self.refused(self.base.patched(key.type_at, "<I", kind), str(kind))
            self.assertIn(str(key.type_at), error["where"])
        array = self.base.keys["tokenizer.ggml.tokens"]
        self.refused(self.base.patched(array.value_at, "<I", 77), "77")

    def test_alignment(self):
        self.ok("inspect", self.write("fine.gguf", self.base.with_key("general.alignment", U32, struct.pack("<I", 32))))
        for alignment in (0, 3, 2**32 - 1):
            self.refused(self.base.with_key("general.alignment", U32, struct.pack("<I", alignment)), "alignment", str(alignment))
        self.refused(self.base.with_key("general.alignment", STRING, struct.pack("<Q2s", 2, b"32")), "alignment")

    def test_key_twice(self):
        self.refused(self.base.with_key("general.name", U32, struct.pack("<I", 1)), "general.name")

    def test_dimensions(self):
        tensor = self.base.tensors["blk.0.attn_q.weight"]
        for count in (9, 5, 2**32 - 1):
            error = self.refused(self.base.patched(tensor.dimensions_at, "<I", count), str(count))
            self.assertIn(str(tensor.dimensions_at), error["where"])

    def test_sizes(self):
        tensor = self.base.tensors["blk.0.attn_q.weight"]
        for size in (HUGE, 2**64 - 1, 2**63 - 32, 1 << 40, 33):
            with self.subTest(size=size):
                self.refused(self.base.patched(tensor.dimensions_at + 4, "<Q", size))
        self.refused(self.base.patched(tensor.dimensions_at + 4, "<QQ", 1 << 32, 1 << 32))

    def test_tensor_type(self):
        tensor = self.base.tensors["blk.0.attn_q.weight"]
        for kind in (4, 5, 200, 2**32 - 1):
            self.refused(self.base.patched(tensor.type_at, "<I", kind), str(kind))

    def test_offset(self):
        tensor = self.base.tensors["blk.0.attn_q.weight"]
        for offset in (len(self.base.data), HUGE, 2**64 - 32, 2**64 - 1, 1):
            with self.subTest(offset=offset):
                self.refused(self.base.patched(tensor.offset_at, "<Q", offset), str(offset))

    def test_tensors_that_overlap(self):
        first, second = self.base.tensors["blk.0.attn_q.weight"], self.base.tensors["blk.0.attn_k.weight"]
        (offset,) = struct.unpack_from("<Q", self.base.data, first.offset_at)
        self.refused(self.base.patched(second.offset_at, "<Q", offset), "blk.0.attn_")

    def test_tensor_twice(self):
        tensor = self.base.tensors["blk.1.attn_k.weight"]
        self.refused(self.base.patched(tensor.at + 8, "19s", b"blk.0.attn_k.weight"), "blk.0.attn_k.weight")

    def test_a_hole_of_a_terabyte(self):
        """The lies above in a file that is long enough for some of them."""
        key = self.base.keys["general.name"]
        path = self.write("hole.gguf", self.base.patched(key.value_at, "<Q", 1 << 39))
        os.truncate(path, 1 << 40)
        self.fails_both(3, "inspect", path, fault="file", cheap=True)
        path = self.write("hole.gguf", self.base.patched(KEY_COUNT_AT, "<Q", 1 << 36))
        os.truncate(path, 1 << 40)
        self.fails_both(3, "inspect", path, fault="file", cheap=True)
        array = self.base.keys["tokenizer.ggml.tokens"]
        path = self.write("hole.gguf", self.base.patched(array.value_at + 4, "<Q", 1 << 36))
        os.truncate(path, 1 << 40)
        self.fails_both(3, "inspect", path, fault="file", cheap=True)


class NonsenseModelTest(CommandTest):
    """Well-formed files whose numbers make no model."""

    @classmethod
    def setUpClass(cls):
        cls.base = Gguf(LLAMA)

    def refused(self, key, value, *says):
        entry = self.base.keys[key]
        path = self.write("model.gguf", self.base.patched(entry.value_at, "<I", value))
        error = self.fails_both(3, "run", path, "--ids", "1", "-n", "1", says=says, cheap=True)
        self.assertEqual(error["fault"], "file", error)
        self.fails_both(3, "plan", path, says=says, cheap=True)

    def test_sizes_of_zero_and_of_billions(self):
        for key in ("block_count", "embedding_length", "feed_forward_length", "attention.head_count", "attention.head_count_kv",
                    "context_length"):
            for value in (0, 2**32 - 1):
                if (key, value) == ("context_length", 2**32 - 1):
                    continue  # a model may say so; --ctx has a default of its own
                with self.subTest(key=key, value=value):
                    self.refused("llama." + key, value)

    def test_heads_that_do_not_divide(self):
        self.refused("llama.attention.head_count", 3)
        self.refused("llama.attention.head_count_kv", 3)

    def test_one_layer_more_than_there_is(self):
        self.refused("llama.block_count", 3, "blk.2.")


if __name__ == "__main__":
    command.main()
