#!/usr/bin/env python3
"""Writes tests/data/jinja/references.tar.xz: templates with what Jinja 3.1.6 on Python makes of them.

The environment is the one that transformers gives chat templates: an immutable sandbox, trim_blocks, lstrip_blocks, loop
controls, the `generation` tag, raise_exception, tojson without HTML escapes. There are two kinds of templates: the written
ones of tests/data/jinja/templates.json, and random ones made here, of which the file keeps a part.

    pip install jinja2==3.1.6
    python3 tools/make_jinja_references.py                       # writes the file
    python3 tools/make_jinja_references.py --compare PROGRAM N   # N random templates of another seed, beside PROGRAM's

PROGRAM reads lines {"template", "context"} and answers lines {"ok": text} or {"error": message}.
"""
import argparse
import collections
import io
import json
import os
import random
import subprocess
import sys
import tarfile

import jinja2
import jinja2.ext
import jinja2.nodes
import jinja2.sandbox
import jinja2.utils

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
DATA = os.path.join(ROOT, "tests", "data", "jinja")


class Generation(jinja2.ext.Extension):
    """{% generation %}..{% endgeneration %}: its body."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("body"), [], [], body).set_lineno(line)

    @staticmethod
    def body(caller):
        return caller()


class Namespace(jinja2.utils.Namespace):
    """Refuses names that begin with an underscore."""

    def __init__(*args, **kwargs):
        self, args = args[0], args[1:]
        for name in dict(*args, **kwargs):
            if name.startswith("_"):
                raise jinja2.exceptions.SecurityError(name)
        jinja2.utils.Namespace.__init__(self, *args, **kwargs)

    def __setitem__(self, name, value):
        if name.startswith("_"):
            raise jinja2.exceptions.SecurityError(name)
        super().__setitem__(name, value)


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def environment():
    env = jinja2.sandbox.ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True,
                                                       extensions=[Generation, jinja2.ext.loopcontrols])
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["namespace"] = Namespace
    return env


ENV = environment()
CONTEXT = {
    "n": 3, "z": 0, "big": 123456789012345678901234567890, "f": 2.5, "neg": -7, "s": "Hello wOrld", "u": "  straße Ümlaut ΣΑΣ\n",
    "e": "", "t": True, "no": None, "xs": [3, 1, 2], "ws": ["b", "A", "c", "a"], "ys": [], "nested": [[1, 2], [3], []],
    "d": {"b": 1, "a": {"x": [1, None, "é"]}, "items": "shadow"},
    "rows": [{"k": "x", "v": 1, "ok": True}, {"k": "y", "v": 2, "ok": False}, {"k": "X", "v": 3, "ok": True}],
    "messages": [{"role": "system", "content": "be good"}, {"role": "user", "content": [{"type": "text", "text": "hi"}]},
                 {"role": "assistant", "content": None, "tool_calls": [{"function": {"name": "f", "arguments": {"a": 1}}}]},
                 {"role": "tool", "content": "4 < 5 & \"x\""}],
}


class Writer:
    """Random templates over CONTEXT: more often right than wrong."""

    def __init__(self, seed):
        self.r = random.Random(seed)
        self.names = list(CONTEXT) + ["missing"]
        self.depth = 0

    def pick(self, *options):
        return self.r.choice(options)

    def number(self):
        return self.pick("0", "1", "2", "3", "-1", "10", "2.5", "0.1", "-0.0", "1e3", "7", "100", "0x1f", "1_000",
                         "12345678901234567890")

    def text(self):
        return self.pick("'a'", "'a,b,,c'", "''", "' x '", "'Hello wOrld'", "'é漢🙂'", "'%s-%d'", "'l1\\nl2\\n\\nl3'", "'{}|{x}'",
                         "'abcabc'", "'12'", "'-3.7'", "'<a&b>'", "'straße'", '"it\'s"', "'ok'", "'v'", "'k'")

    def sequence(self):
        return self.pick("xs", "ws", "ys", "rows", "nested", "messages", "[1, 2, 3]", "['b', 'a', 'B']", "(1, 'x')", "range(5)",
                         "range(6, 0, -2)", "d", "d.items()", "d | items", "'héllo'", "[1, 1.0, true, 2]", "[none, 1]",
                         "missing", "[[2, 'b'], [1, 'a']]", "[3.5, 1, -2]", "rows | map(attribute='v')", "d.keys()")

    def atom(self):
        return self.pick(self.number(), self.text(), self.r.choice(self.names), self.sequence(), "true", "none", "false",
                         "rows[0]", "d.a.x", "messages[1].content", "s[0]", "{'a': 1, 'b': [2]}", "[]", "loop.index", "xs[9]")

    def text_filter(self):
        return self.pick("upper", "lower", "title", "capitalize", "trim", "length", "string", "reverse", "list", "first", "last",
                         "replace('l', 'L')", "replace('', '-')", "replace('a', 'bb', 1)", "indent", "indent(2, true)",
                         "indent(width='> ', blank=true)", "center(9)", "truncate(6)", "truncate(5, true, '')", "wordcount",
                         "escape", "safe", "tojson", "int", "float", "default('D')", "default('D', true)", "d(1)", "trim('a ')",
                         "format(1, 2)", "format('q')", "urlencode", "striptags", "int(-1, 16)", "int(base=0)", "e | string")

    def sequence_filter(self):
        return self.pick("list", "length", "first", "last", "join", "join(', ')", "join('-', attribute='k')", "sort",
                         "sort(reverse=true)", "sort(attribute='k')", "sort(attribute='ok,v')", "sort(case_sensitive=true)",
                         "unique | list", "reverse | list", "batch(2) | list", "batch(2, 'F') | list", "slice(2) | list",
                         "slice(3, 0) | list", "map(attribute='v') | list", "map('upper') | list", "map('string') | join('+')",
                         "map(attribute='k', default='?') | list", "select | list", "reject | list", "select('odd') | list",
                         "selectattr('ok') | list", "rejectattr('v', 'gt', 1) | list", "selectattr('k', 'equalto', 'x') | list",
                         "selectattr('zz', 'defined') | list", "groupby('ok')", "groupby('k') | map('last') | list", "sum",
                         "sum(attribute='v')", "max", "min", "max(attribute='v')", "dictsort", "dictsort(reverse=true)",
                         "dictsort(false, 'value')", "items | list", "tojson", "tojson(indent=2)", "tojson(sort_keys=true)",
                         "tojson(separators=(',', ':'))", "tojson(ensure_ascii=true)", "string", "map('first') | list", "count",
                         "map(attribute=0) | list", "map('length') | list", "select('string') | list", "select('in', [1, 2]) | list",
                         "map('int') | sum", "map('default', 'x', true) | list", "select('number') | map('abs') | list")

    def number_filter(self):
        return self.pick("abs", "round", "round(1)", "round(2, 'floor')", "round(method='ceil')", "int", "float", "string", "tojson",
                         "default(1)", "format", "round | int")

    def method(self):
        return self.pick(".strip()", ".upper()", ".lower()", ".title()", ".capitalize()", ".split()", ".split(',')",
                         ".split('l', 1)", ".rsplit(' ', 1)", ".splitlines()", ".partition(' ')", ".rpartition('l')",
                         ".startswith('H')", ".endswith(('d', 'x'))", ".find('o')", ".rfind('o')", ".count('l')", ".index('l')",
                         ".replace('l', '1')", ".replace('l', '', 1)", ".lstrip('Hel')", ".rstrip()", ".join(ws)", ".zfill(6)",
                         ".ljust(7, '.')", ".rjust(7)", ".center(8, '*')", ".isdigit()", ".isalpha()", ".isupper()", ".islower()",
                         ".isspace()", ".isalnum()", ".swapcase()", ".removeprefix('He')", ".removesuffix('ld')", ".format(1, x=2)",
                         ".get('a')", ".get('q', 5)", ".items()", ".keys() | list", ".values() | list", ".items() | list",
                         ".index(1)", ".count(1)", ".append(1)", ".update({})", ".pop()", ".a", ".k", ".v", ".zz", "[0]", "[-1]",
                         "[1:]", "[:-1]", "[::2]", "[::-1]", "[5:1:-1]", "['a']", "['zz']", ".__class__", ".is_integer()")

    def test(self):
        return self.pick("defined", "undefined", "none", "string", "number", "integer", "float", "boolean", "mapping", "sequence",
                         "iterable", "true", "false", "odd", "even", "divisibleby 3", "eq 3", "in [1, 2, 3]", "lt 3", "ge 2", "upper",
                         "lower", "sameas true", "sameas none", "callable", "escaped", "ne 'a'", "not defined", "not none", "in d")

    def expression(self):
        self.depth += 1
        try:
            if self.depth > 4:
                return self.atom()
            kind = self.r.randrange(22)
            sub = self.expression
            if kind < 3:
                return self.atom()
            if kind < 5:
                return f"{self.sequence()} | {self.sequence_filter()}"
            if kind < 7:
                return f"{self.pick(self.text(), 's', 'u', 'e')} | {self.text_filter()}"
            if kind == 7:
                return f"{self.pick(self.number(), 'n', 'f', 'neg', 'big')} | {self.number_filter()}"
            if kind == 8:
                return f"({sub()}) | {self.pick(self.text_filter(), self.sequence_filter(), self.number_filter())}"
            if kind == 9:
                return f"{self.pick(self.text(), 's', 'u', 'd', 'xs', 'rows[0]', 'f', 'ws', 'no')}{self.method()}"
            if kind == 10:
                return f"({sub()}){self.method()}"
            if kind == 11:
                return f"{sub()} {self.pick('+', '-', '*', '/', '//', '%', '~')} {sub()}"
            if kind == 12:
                if self.r.random() < 0.2:
                    return f"{self.pick(self.number(), 'n', 'big', 'f')} ** {self.pick('0', '2', '3', '40', '-1', '0.5')}"
                return f"{self.pick(self.number(), 'n', 'big', 'f')} {self.pick('+', '-', '*', '/', '//', '%')} " \
                       f"{self.pick(self.number(), 'n', 'neg')}"
            if kind == 13:
                return f"{sub()} {self.pick('==', '!=', '<', '<=', '>', '>=', 'in', 'not in')} {sub()}"
            if kind == 14:
                return f"{self.pick('n', 'f', self.number())} < {self.number()} {self.pick('<=', '==', '!=')} {self.number()}"
            if kind == 15:
                return f"{sub()} {self.pick('and', 'or')} {sub()}"
            if kind == 16:
                return f"not {sub()}"
            if kind == 17:
                return f"{sub()} is {self.test()}"
            if kind == 18:
                return f"{sub()} if {sub()}" + (f" else {sub()}" if self.r.random() < 0.7 else "")
            if kind == 19:
                return f"[{sub()}, {sub()}]"
            if kind == 20:
                return f"{{'k': {sub()}, 'v': {sub()}}}"
            return f"{self.pick('-', '+')}{self.pick('n', 'f', 'big', '2', '(n + 1)')} ** 2"
        finally:
            self.depth -= 1

    def name(self):
        return self.pick("a1", "b1", "n", "s", "c1")

    def block(self, level):
        return "".join(self.statement(level + 1) for _ in range(self.r.randrange(1, 4)))

    def statement(self, level):
        r, minus = self.r, lambda: self.pick("", "", "", "-", "+")
        kind = r.randrange(20) if level < 3 else r.randrange(9)
        if kind < 3:
            return self.pick("text ", "\n", "  \n  ", "a\n", " - ")
        if kind < 7:
            return f"{{{{{self.pick('', '-')} {self.expression()} {self.pick('', '', '-')}}}}}"
        if kind == 7:
            return f"{{%{minus()} set {self.name()} = {self.expression()} {minus()}%}}"
        if kind == 8:
            return f"{{{{ {self.name()} }}}}|"
        if kind == 9:
            return f"{{% if {self.expression()} %}}{self.block(level)}{{%{minus()} else %}}{self.block(level)}{{% endif {minus()}%}}"
        if kind == 10:
            return f"{{% if {self.expression()} %}}{self.block(level)}{{% elif {self.expression()} %}}{self.block(level)}{{% endif %}}"
        if kind < 14:
            names = self.pick("i", "i", "i", "i, j", "s")
            condition = self.pick("", "", f" if {self.expression()}", " if i")
            body = self.block(level) + self.pick("", "{{ i }}", "{{ loop.index }},", "{% if loop.last %}.{% endif %}",
                                                 "{% if loop.index > 1 %}{% break %}{% endif %}", "{{ loop.length }}{{ loop.revindex0 }}",
                                                 "{% if loop.first %}{% continue %}{% endif %}x", "{{ loop.nextitem }}<{{ loop.previtem }}",
                                                 "{{ loop.cycle('o', 'e') }}{{ loop.changed(i) }}")
            other = self.pick("", "", "{% else %}none")
            return f"{{%{minus()} for {names} in {self.sequence()}{condition} %}}{body}{other}{{% endfor {minus()}%}}"
        if kind == 14:
            return f"{{% macro m(p, q={self.expression()}) %}}<{{{{ p }}}}{self.block(level)}{{{{ q }}}}>{{% endmacro %}}" \
                   f"{{{{ m({self.expression()}) }}}}{{{{ m(q=1, p={self.expression()}) }}}}"
        if kind == 15:
            return f"{{% set ns = namespace(x={self.expression()}) %}}{{% for i in {self.sequence()} %}}{{% set ns.x = i %}}" \
                   f"{{{{ ns.x }}}}{{% endfor %}}{{{{ ns.x }}}}"
        if kind == 16:
            return f"{{% set {self.name()}{self.pick('', ' | upper', ' | trim | length')} %}}{self.block(level)}{{% endset %}}"
        if kind == 17:
            return f"{{% with {self.name()} = {self.expression()}, w = n %}}{self.block(level)}{{{{ w }}}}{{% endwith %}}"
        if kind == 18:
            return f"{{% filter {self.text_filter()} %}}{self.block(level)}{{% endfilter %}}"
        return f"{{% macro box(t) %}}[{{{{ t }}}}: {{{{ caller({self.expression()}) }}}}]{{% endmacro %}}" \
               f"{{% call(v) box({self.expression()}) %}}{self.block(level)}{{{{ v }}}}{{% endcall %}}"

    def template(self):
        if self.r.random() < 0.5:
            return f"{{{{ {self.expression()} }}}}"
        return "".join(self.statement(0) for _ in range(self.r.randrange(1, 6)))


def expected(template, context):
    """{"expected": text} or {"error": message, "error_kind": class}; None where Python's own addresses show."""
    try:
        text = ENV.from_string(template).render(**context)
    except Exception as error:  # whatever a template may raise
        kind = "raised" if type(error) is jinja2.exceptions.TemplateError else type(error).__name__
        return {"error": str(error), "error_kind": kind}
    if " at 0x" in text or "<class" in text:
        return None
    try:
        text.encode()
    except UnicodeEncodeError:
        return None
    return {"expected": text}


def written():
    with open(os.path.join(DATA, "templates.json"), encoding="utf-8") as file:
        for group in json.load(file):
            for template in group["templates"]:
                yield template, group["context"]


def write_file(count):
    lines = []
    for template, context in written():
        lines.append({"template": template, "context": context, **expected(template, context)})
    lines.append({"random_context": CONTEXT})
    writer = Writer(1)
    kept = 0
    while kept < count:
        template = writer.template()
        outcome = expected(template, CONTEXT)
        # Of the many that fail, a few.
        if outcome is None or (outcome.keys() == {"error", "error_kind"} and writer.r.random() < 0.8):
            continue
        if len(outcome.get("expected", "")) > 2000:
            continue
        lines.append({"template": template, **outcome})
        kept += 1
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines).encode()
    with tarfile.open(os.path.join(DATA, "references.tar.xz"), "w:xz") as archive:
        entry = tarfile.TarInfo("references.jsonl")
        entry.size = len(text)
        archive.addfile(entry, io.BytesIO(text))


def compare(program, count, seed):
    writer = Writer(seed)
    cases = []
    while len(cases) < count:
        template = writer.template()
        outcome = expected(template, CONTEXT)
        if outcome is not None:
            cases.append((template, CONTEXT, outcome))
    cases += [(template, context, expected(template, context)) for template, context in written()]
    feed = "".join(json.dumps({"template": t, "context": c}, ensure_ascii=False) + "\n" for t, c, _ in cases)
    done = subprocess.run([program], input=feed.encode(), stdout=subprocess.PIPE, check=True)
    answers = [json.loads(line) for line in done.stdout.decode().split("\n") if line]
    verdicts, refused = collections.Counter(), collections.Counter()
    for (template, _, outcome), answer in zip(cases, answers, strict=True):
        message = answer.get("error", "")
        if " is not supported, line" in message:
            verdicts["refused"] += 1
            refused[message.split(" is not supported, line")[0]] += 1
        elif "error" in outcome and "error" in answer:
            verdicts["both fail"] += 1
        elif outcome.get("expected") == answer.get("ok") and "ok" in answer:
            verdicts["same"] += 1
        else:
            verdicts["DIFFERENT"] += 1
            print(json.dumps({"template": template, "jinja": outcome, "here": answer}, ensure_ascii=False))
    print(dict(verdicts))
    for what, number in refused.most_common(20):
        print(f"  {number} {what}")
    return 1 if verdicts["DIFFERENT"] else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--compare", nargs=2, metavar=("PROGRAM", "N"))
    parser.add_argument("--seed", type=int, default=2)
    parser.add_argument("--count", type=int, default=1200, help="random templates in the file")
    arguments = parser.parse_args()
    if arguments.compare:
        return compare(arguments.compare[0], int(arguments.compare[1]), arguments.seed)
    write_file(arguments.count)
    return 0


if __name__ == "__main__":
    sys.exit(main())
