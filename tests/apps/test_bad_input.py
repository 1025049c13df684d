#!/usr/bin/env python3
"""Bad files, prompts and messages: one clear error, the right exit code, little time and memory."""
import os
import struct
import unittest

import command
from command import CONTEXT, LLAMA, VOCABULARY, CommandTest
from gguf_bytes import Gguf

READERS = (("run", "-p", "x"), ("inspect",), ("plan",), ("explain",), ("tokenize", "-p", "x"))


class ModelPathTest(CommandTest):
    def everywhere(self, path, *says):
        for verb, *flags in READERS:
            error = self.fails_both(3, verb, path, *flags, says=says, cheap=True)
            self.assertIn(error["fault"], ("user", "file"))

    def test_missing(self):
        self.everywhere(self.path("no.gguf"), "no.gguf", "No such file")
        self.everywhere("", "No such file")

    def test_folder_without_a_config(self):
        self.everywhere(self.folder, "config.json")

    def test_not_regular(self):
        os.mkfifo(self.path("fifo"))
        os.symlink("b", self.path("a"))
        os.symlink("a", self.path("b"))
        self.everywhere(self.path("fifo"), "regular file", "FIFO")
        self.everywhere("/dev/null", "regular file", "device")
        self.everywhere("/dev/zero", "regular file", "device")
        self.everywhere(self.path("a"), "symbolic links")

    def test_no_model(self):
        self.everywhere(self.write("empty.gguf", ""), "0 bytes")
        self.everywhere(self.write("text.gguf", "once upon a time"), "byte 0")

    def test_link_to_a_model_is_a_model(self):
        os.symlink(LLAMA, self.path("link.gguf"))
        self.ok("inspect", self.path("link.gguf"))

    def test_unreadable(self):
        path = self.write("closed.gguf", b"GGUF")
        os.chmod(path, 0)
        if os.access(path, os.R_OK):
            self.skipTest("this user may read everything")
        self.everywhere(path, "Permission denied")

    def test_unknown_architecture(self):
        base = Gguf(LLAMA)
        value = base.keys["general.architecture"].value_at
        path = self.write("llamo.gguf", base.patched(value + 8, "5s", b"llamo"))
        for verb, *flags in (("run", "-p", "x"), ("plan",), ("explain",)):
            error = self.fails_both(3, verb, path, *flags, says=("llamo",), cheap=True)
            self.assertEqual((error["code"], error["fault"]), ("bad_model", "file"))

    def test_no_architecture(self):
        base = Gguf(LLAMA)
        path = self.write("none.gguf", base.patched(base.keys["general.architecture"].at + 8, "7s", b"nothing"))
        self.fails_both(3, "run", path, "-p", "x", says=("general.architecture",), cheap=True)

    def test_missing_tensor(self):
        base = Gguf(LLAMA)
        path = self.write("gone.gguf", base.patched(base.tensors["blk.1.attn_q.weight"].at + 8, "19s", b"blk.1.attn_z.weight"))
        for verb, *flags in (("run", "-p", "x"), ("plan",)):
            self.fails_both(3, verb, path, *flags, says=("blk.1.attn_q.weight",), fault="file", cheap=True)


class PromptTest(CommandTest):
    def test_longer_than_the_context(self):
        """The whole length is named, and nothing of it is computed before."""
        text = self.write("long.txt", "river mill " * 100000)
        count = len(self.answer("tokenize", LLAMA, "-f", text)["ids"])
        self.fails_both(3, "run", LLAMA, "-f", text, "--raw", says=("context", f"{CONTEXT} tokens", f"{count} tokens"))
        ids = ",".join(["5"] * (CONTEXT + 1))
        self.fails_both(3, "run", LLAMA, "--ids", ids, says=(f"{CONTEXT} tokens", f"{CONTEXT + 1} tokens"), cheap=True)
        self.fails_both(3, "run", LLAMA, "--ids", "1,2,3,4", "--ctx", 3, says=("3 tokens", "4 tokens", "--ctx"), cheap=True)
        self.fails_both(3, "logits", LLAMA, "--ids", "1,2,3,4", "--ctx", 3, "--out", self.path("o"), says=("3 tokens", "4 tokens"))
        self.fails_both(3, "logits", LLAMA, "--ids", "1", "--ctx", 3, "--out", self.path("o"), "--batch-with", "1,2,3,4",
                        says=("3 tokens", "4 tokens"))
        self.assertFalse(os.path.exists(self.path("o")))

    def test_a_full_context_is_not_too_long(self):
        self.ok("run", LLAMA, "--ids", "1,2,3", "--ctx", 3, "-n", 1)
        self.assertEqual(self.answer("perplexity", LLAMA, "--ids", "1,2,3,4", "--ctx", 3)["windows"], 1)
        self.assertEqual(self.answer("perplexity", LLAMA, "--ids", "1,2,3,4,5", "--ctx", 3)["windows"], 2)

    def test_empty(self):
        for flags in (("-p", ""), ("-f", "/dev/null"), ()):
            self.fails_both(3, "run", LLAMA, *flags, says=("prompt is empty",), cheap=True)

    def test_id_outside_the_vocabulary(self):
        out = ("--out", self.path("o"))
        for bad in ("512", "2147483647", "-1", "-2147483648"):
            says = (f"0 to {VOCABULARY - 1}", bad)
            self.fails_both(3, "run", LLAMA, "--ids", f"1,{bad}", says=says, cheap=True)
            self.fails_both(3, "logits", LLAMA, "--ids", f"1,{bad}", *out, says=says)
            self.fails_both(3, "logits", LLAMA, "--ids", "1,2", "--batch-with", f"7;{bad}", *out, says=says)
            # The last id of a text is only predicted, and must be known all the same.
            self.fails_both(3, "perplexity", LLAMA, "--ids", f"1,{bad}", says=says)
            self.fails_both(3, "tokenize", LLAMA, "--decode", "--ids", f"1,{bad}", says=says)

    def test_bytes_that_are_no_utf8(self):
        made = command.run("hone", "run", LLAMA, "-p", b"\xff\xfe abc", "-n", "3", "--raw", "--json")
        self.assertEqual(made.code, 0, made.err)
        self.assertEqual(made.json["prompt_ids"][:2], [255, 254])

    def test_files_that_are_no_text(self):
        for verb, *flags in (("run", LLAMA, "-f"), ("perplexity", LLAMA, "-f"), ("tokenize", LLAMA, "-f"),
                             ("tokenize", LLAMA, "--jsonl"), ("render", LLAMA, "--messages")):
            self.fails_both(3, verb, *flags, self.folder, says=("a directory",), cheap=True)
            self.fails_both(3, verb, *flags, self.path("no"), says=("No such file",), cheap=True)
            self.fails_both(3, verb, *flags, "/dev/zero", says=("too long", "/dev/zero"), cheap=True)

    def test_huge_file_is_refused_by_its_size(self):
        path = self.write("huge.txt", "")
        os.truncate(path, 1 << 40)
        self.fails_both(3, "run", LLAMA, "-f", path, says=("too long", str(1 << 40)), cheap=True)

    def test_text_without_a_token_to_predict(self):
        self.fails_both(3, "perplexity", LLAMA, "--ids", "1", says=("2 tokens",))
        self.fails_both(2, "perplexity", LLAMA, "--ids", "1,2,3", "--limit", -1, says=("--limit",))


class JsonTest(CommandTest):
    def test_messages_that_are_no_json(self):
        for content, byte in (("{bad", "byte 2"), ("", "byte 1"), ('{"messages": [', "byte 15"),
                              (b'{"messages": "\xff"}', "byte 15"), ('{"a": 1} x', "byte 10")):
            path = self.write("m.json", content)
            error = self.fails_both(3, "render", LLAMA, "--messages", path, says=("not JSON", "m.json", byte), cheap=True)
            self.assertEqual((error["code"], error["fault"]), ("bad_input", "user"))
            template = self.write("t.jinja", "x")
            self.fails_both(3, "template", template, "--context", path, says=("not JSON", byte), cheap=True)

    def test_messages_of_another_form(self):
        for content in ("{}", "[]", "3", '{"messages": 3}', '{"messages": [1]}', '{"messages": ' + "[" * 100000 + "]" * 100000 + "}"):
            self.fails_both(3, "render", LLAMA, "--messages", self.write("m.json", content), says=("messages",), cheap=True)

    def test_templates(self):
        context = self.write("c.json", "{}")
        for content, says in (("{{ foo", "line 1 column 1"), ("\n  {% for %}", "line 2"), ("{{ 'x' * 1000000000 }}", "line 1"),
                              ("{% for i in range(1000000000) %}{% endfor %}", "line 1"),
                              ("{{ raise_exception('no tools here') }}", "no tools here")):
            self.fails_both(3, "template", self.write("t.jinja", content), "--context", context, says=(says,), cheap=True)

    def test_lines(self):
        for line, says in (('{"text": "a"}\nnope\n', "line 2"), ('{"ids": [1, 2.5]}', "line 1"), ('{"ids": [1, 99999999999]}', "line 1"),
                           ('{"ids": [-1]}', "line 1"), ('{"ids": [18446744073709551615]}', "line 1"), ('{"txt": "a"}', "line 1"), ("[]", "line 1")):
            self.fails(3, "tokenize", LLAMA, "--jsonl", self.write("l.jsonl", line), says=(says,), cheap=True)

    def test_model_without_a_chat_template(self):
        base = Gguf(LLAMA)
        path = self.write("m.gguf", base.patched(base.keys["tokenizer.chat_template"].at + 8, "23s", b"tokenizer.chat_templatX"))
        self.fails_both(3, "run", path, "-p", "x", says=("chat template", "--raw"), cheap=True)
        self.fails_both(3, "render", path, "--messages", self.write("m.json", '{"messages": []}'), says=("chat template",), cheap=True)
        self.ok("run", path, "-p", "x", "--raw", "-n", 1)

    def test_template_of_a_file_that_never_ends(self):
        """Endless recursion and loops in a checkpoint's own template run out of fuel."""
        base = Gguf(LLAMA)
        key = base.keys["tokenizer.chat_template"]
        endless = "{% macro f(x) %}{{ f(x) }}{% endmacro %}{{ f(1) }}"
        data = bytearray(base.data)
        length = key.end - key.value_at - 8
        self.assertGreater(length, len(endless))
        struct.pack_into(f"{length}s", data, key.value_at + 8, endless.ljust(length).encode())
        path = self.write("loop.gguf", bytes(data))
        self.fails_both(3, "run", path, "-p", "x", says=("line 1",), cheap=True)


if __name__ == "__main__":
    command.main()
