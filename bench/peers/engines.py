"""How each engine is asked for one reading, and how its answer is read."""

import json
import pathlib
import shlex
import subprocess

HERE = pathlib.Path(__file__).resolve().parent


class Failed(Exception):
    """An engine gave no reading; the text says what it said."""


def _json(stdout, name):
    """The JSON document in `stdout`; some engines print lines of their own before it."""
    begin = min((at for at in (stdout.find("["), stdout.find("{")) if at >= 0), default=-1)
    if begin < 0:
        raise Failed(f"{name} printed no JSON: {stdout[:200]!r}")
    try:
        return json.JSONDecoder().raw_decode(stdout[begin:])[0]
    except json.JSONDecodeError as error:
        raise Failed(f"{name} printed no JSON ({error}): {stdout[:200]!r}") from error


class Engine:
    """name; the commands of one reading; what is read from their answers, in tokens/s: {"prefill", "decode"}."""

    def __init__(self, name, command):
        self.name = name
        self.command = command

    def commands(self, model, threads, prompt, generate):
        raise NotImplementedError

    def read(self, answers):
        raise NotImplementedError


class Hone(Engine):
    def commands(self, model, threads, prompt, generate):
        return [[*self.command, "bench", str(model), "-p", str(prompt), "-n", str(generate), "-r", "1", "--threads",
                 str(threads), "--json"]]

    def read(self, answers):
        answer = _json(answers[0], self.name)
        reading = {"prefill": answer["prefill_tokens_per_s"], "decode": answer["decode_tokens_per_s"]}
        reading["prefill_of_peak"] = answer["prefill_of_peak"]
        reading["decode_of_bandwidth"] = answer["decode_of_bandwidth"]
        reading["peaks"] = answer["peaks"]
        return reading


class LlamaBench(Engine):
    """llama-bench of llama.cpp, or of ik_llama.cpp. Both decode behind the prompt, as a user does: the first by its option -d
    (in a run of its own, for -d would hold for the prompt too), the second by -gp."""

    def __init__(self, name, command):
        super().__init__(name, command)
        try:
            text = subprocess.run([command[0], "--help"], capture_output=True, text=True, timeout=60, check=False).stdout
        except OSError as error:
            raise Failed(f"{command[0]}: {error}") from error
        self.has_depth = "--n-depth" in text

    def commands(self, model, threads, prompt, generate):
        start = [*self.command, "-m", str(model), "-t", str(threads), "-r", "1", "-o", "json", "-n"]
        if self.has_depth:
            return [[*start, "0", "-p", str(prompt)], [*start, str(generate), "-p", "0", "-d", str(prompt)]]
        return [[*start, "0", "-p", str(prompt), "-gp", f"{prompt},{generate}"]]

    def read(self, answers):
        reading = {}
        for answer in answers:
            for test in _json(answer, self.name):
                reading["decode" if test["n_gen"] > 0 else "prefill"] = max(test["samples_ts"])
                reading["version"] = test.get("build_commit", "")
        missing = {"prefill", "decode"} - reading.keys()
        if missing:
            raise Failed(f"{self.name} did not measure {', '.join(sorted(missing))}")
        return reading


class OpenVino(Engine):
    def commands(self, model, threads, prompt, generate):
        return [[*self.command, str(HERE / "openvino_reading.py"), str(model), str(threads), str(prompt), str(generate)]]

    def read(self, answers):
        return _json(answers[0], self.name)


def named(kind, text, default):
    """Engine of "NAME=COMMAND FLAGS" or "COMMAND FLAGS"."""
    words = shlex.split(text)
    name, equals, path = words[0].partition("=")
    if not equals or "/" in name:
        name, path = default, words[0]
    return kind(name, [path, *words[1:]])
