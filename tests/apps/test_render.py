#!/usr/bin/env python3
"""hone render and hone template: on folders that hold just a tokenizer's files, and on templates of the user's own."""
import json
import os
import unittest

import command
from command import LLAMA, CommandTest

MESSAGES = {"messages": [{"role": "user", "content": "hi"}]}
SHOW = "{{ bos_token }}{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}{% if add_generation_prompt %}<bot>{% endif %}"


class RenderTest(CommandTest):
    def folder_of(self, **files):
        for name, content in files.items():
            self.write(name.replace("__", "."), content if isinstance(content, str) else json.dumps(content))
        return self.folder

    def render(self, *arguments, messages=MESSAGES):
        return self.ok("render", self.folder, "--messages", self.write("messages.json", json.dumps(messages)), *arguments).out.decode()

    def test_template_as_a_string(self):
        self.folder_of(tokenizer_config__json={"chat_template": SHOW, "bos_token": "<s>"})
        self.assertEqual(self.render(), "<s><user>hi")
        self.assertEqual(self.render("--add-generation-prompt"), "<s><user>hi<bot>")

    def test_named_templates_and_tokens_as_objects(self):
        self.folder_of(tokenizer_config__json={
            "bos_token": {"content": "<b>", "special": True},
            "chat_template": [{"name": "default", "template": "D{{ bos_token }}"}, {"name": "tool_use", "template": "T{{ tools | length }}"}]})
        self.assertEqual(self.render(), "D<b>")
        self.assertEqual(self.render(messages={**MESSAGES, "tools": [{"a": 1}, {}]}), "T2")

    def test_template_in_a_file_of_its_own(self):
        self.folder_of(chat_template__jinja="J{{ eos_token }}", tokenizer_config__json={"chat_template": "no", "eos_token": "</s>"})
        self.assertEqual(self.render(), "J</s>")
        os.remove(self.path("tokenizer_config.json"))
        self.folder_of(special_tokens_map__json={"eos_token": "<e>"})
        self.assertEqual(self.render(), "J<e>")

    def test_variables(self):
        self.folder_of(tokenizer_config__json={"chat_template": "{{ x }} {{ messages[0].big }}"})
        messages = {"messages": [{"role": "user", "big": 0}]}
        self.write("messages.json", json.dumps(messages).replace(": 0", ": 123456789012345678901234567890"))
        done = self.ok("render", self.folder, "--messages", self.path("messages.json"), "--set", 'x={"a": 18446744073709551616}')
        self.assertEqual(done.out, b"{'a': 18446744073709551616} 123456789012345678901234567890")
        self.fails(2, "render", self.folder, "--messages", self.path("messages.json"), "--set", "x={", says=["--set"])

    def test_errors(self):
        self.write("messages.json", json.dumps(MESSAGES))
        render = ("render", self.folder, "--messages", self.path("messages.json"))
        self.fails(3, *render, says=["no chat template"])
        self.folder_of(tokenizer_config__json={"bos_token": "<s>"})
        self.fails(3, *render, says=["no chat template", "--raw"])
        self.folder_of(tokenizer_config__json={"chat_template": 3})
        self.fails(3, *render, says=["chat_template"])
        self.folder_of(tokenizer_config__json='{"chat_template": "\\ud')
        self.fails(3, *render, says=["tokenizer_config.json, byte"])
        self.folder_of(tokenizer_config__json={"chat_template": "\n {{ raise_exception('roles must alternate') }}"})
        self.fails(3, *render, says=["roles must alternate", "line 2 column 5"])
        self.folder_of(tokenizer_config__json={"chat_template": "{{ x | xmlattr }}"})
        self.fails(3, *render, says=["filter 'xmlattr' is not supported, line 1 column 8"])

    def test_file_of_one_model(self):
        self.write("messages.json", json.dumps(MESSAGES))
        done = self.answer("render", LLAMA, "--messages", self.path("messages.json"), "--add-generation-prompt")
        self.assertEqual(done["text"], "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n")

    def test_template_over_a_context(self):
        template = self.write("t.jinja", "{% for k, v in d | dictsort %}{{ k }}={{ v | tojson }};{% endfor %}")
        context = self.write("c.json", '{"d": {"b": [1.0, null], "a": 9223372036854775808}}')
        self.assertEqual(self.ok("template", template, "--context", context).out, b"a=9223372036854775808;b=[1.0, null];")

    def test_hostile_templates(self):
        context = self.write("c.json", "{}")
        for source, says in (("{{ range(10**9) }}", "Range too big"),
                             ("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "nested too deeply"),
                             ("{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}", "nested too deeply"),
                             ("{{ 'x'" + "|e" * 100000 + " }}", "nested too deeply"),
                             ("{{ 'x' * 10**9 }}", "too large"), ("{{ 10**(10**9) }}", "more than 65536 bits")):
            self.fails(3, "template", self.write("t.jinja", source), "--context", context, says=[says, "line 1 column"], cheap=True)


if __name__ == "__main__":
    command.main()
