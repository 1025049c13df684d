#!/usr/bin/env python3
"""Tokenizers made to hurt, as files of a folder: one error with its place, within the time and memory that bad input may cost."""
import json
import os
import shutil
import struct
import unittest

import command
from command import DATA, CommandTest

LETTERS = {chr(code): place for place, code in enumerate(range(97, 123))}


def tokenizer(**changes):
    model = {"type": "BPE", "vocab": dict(LETTERS), "merges": []}
    model.update(changes.pop("model", {}))
    out = {"added_tokens": [], "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False},
           "decoder": {"type": "ByteLevel"}, "model": model}
    out.update(changes)
    return out


def split(expression):
    return {"type": "Sequence", "pretokenizers": [
        {"type": "Split", "pattern": {"Regex": expression}, "behavior": "Isolated", "invert": False},
        {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False}]}


class HostileTokenizerTest(CommandTest):
    def setUp(self):
        super().setUp()
        for name in ("config.json", "model.safetensors"):
            shutil.copy(os.path.join(DATA, "models", "llama-gqa", name), self.path(name))

    def refused(self, content, *says, text="abc"):
        self.write("tokenizer.json", content if isinstance(content, (str, bytes)) else json.dumps(content))
        self.fails(3, "tokenize", self.folder, "-p", text, says=says, cheap=True)

    def test_a_plain_one_works(self):
        self.write("tokenizer.json", json.dumps(tokenizer()))
        self.assertEqual(self.answer("tokenize", self.folder, "-p", "abc")["ids"], [0, 1, 2])

    def test_vocabularies(self):
        text = json.dumps(tokenizer())
        self.refused(text.replace('"b": 1', '"a": 1'), "tokenizer.json", "a")
        self.refused(text.replace('"b": 1', '"b": 0'), "model.vocab[0]", "once")
        self.refused(text.replace('"b": 1', '"b": 2000000000'), "tokenizer.json, line 1", "2000000000")
        self.refused(text.replace('"b": 1', '"b": 1e99'), "tokenizer.json, line")
        self.refused(text.replace('"b": 1', '"b": -1'), "tokenizer.json, line")
        self.refused(tokenizer(added_tokens=[{"id": 2 ** 31, "content": "x"}]), "tokenizer.json, line")

    def test_merges(self):
        for merge in ("a z", "ab c"):
            self.refused(tokenizer(model={"merges": [merge]}), "model.merges[0]")
        self.refused(tokenizer(model={"merges": ["a b c"]}), "model.merges[0]", "two tokens")
        self.refused(tokenizer(model={"merges": [["a"]]}), "model.merges[0]")

    def test_an_expression_that_backtracks_for_ever(self):
        self.refused(tokenizer(pre_tokenizer=split("(a+)+$")), "match", text="a" * 40 + "b")
        self.refused(tokenizer(pre_tokenizer=split("(a|aa)+\\d")), "match", text="a" * 400)

    def test_expressions(self):
        self.refused(tokenizer(pre_tokenizer=split("(")), "pre_tokenizer")
        self.refused(tokenizer(pre_tokenizer=split("(" * 100_000 + ")" * 100_000)), "pre_tokenizer")
        # Large and harmless: it must be as cheap.
        self.write("tokenizer.json", json.dumps(tokenizer(pre_tokenizer=split("(a{1000}){1000}"))))
        done = self.ok("tokenize", self.folder, "-p", "abc")
        if command.limits:
            self.assertLess(done.seconds, command.MOST_SECONDS)
            self.assertLess(done.peak_bytes, command.MOST_BYTES)

    def test_shapes(self):
        self.refused("[" * 1_000_000, "tokenizer.json, line 1")
        self.refused('{"model":' * 5000, "tokenizer.json, line 1")
        self.refused(b'{"model": {"type": "BPE", "vocab": {"\xff": 0}}}', "tokenizer.json, line 1")
        self.refused(tokenizer(model={"type": "Sorcery"}), "Sorcery", "BPE")
        nested = {"type": "Sequence", "normalizers": []}
        for _ in range(60):
            nested = {"type": "Sequence", "normalizers": [nested]}
        self.refused(tokenizer(normalizer=nested), "tokenizer.json")

    def test_sentencepiece(self):
        def refused(content, *says):
            self.write("tokenizer.model", content)
            self.fails(3, "tokenize", self.folder, "-p", "abc", says=("tokenizer.model", *says), cheap=True)

        def piece(text, score=0.0, kind=1):
            body = b"\n" + bytes([len(text)]) + text + b"\x15" + struct.pack("<f", score) + b"\x18" + bytes([kind])
            return b"\n" + bytes([len(body)]) + body

        unknown = piece(b"<unk>", kind=2)
        refused(b"\x00")
        refused(b"\n\xff\xff\xff\xff\xff\xff\xff\xff\x7f", "byte")
        refused(unknown + piece(b"a") + piece(b"a"))
        refused(unknown + piece(b"a", float("nan")))
        refused(piece(b"a"))
        refused(unknown + b"\x12\x02\x18\x63")
        refused(b"\n\x80" * 100_000)


if __name__ == "__main__":
    command.main()
