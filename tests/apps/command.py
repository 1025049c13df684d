"""Runs hone and hone-opt for the tests beside this file: command.main() takes their paths from the command line."""
import json
import os
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import unittest

DATA = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "data")
LLAMA = os.path.join(DATA, "gguf", "llama-256-Q8_0.gguf")
LLAMA_Q4 = os.path.join(DATA, "gguf", "llama-256-Q4_1.gguf")
QWEN = os.path.join(DATA, "gguf", "qwen3-256-Q4_0.gguf")
VOCABULARY = 512  # of each of these
CONTEXT = 512
IDS = "1,17,300,42,7,99,256,3,200,11,64"

programs = {}
limits = True

# What bad input may cost. CPU time, for the machine may be busy with other tests.
MOST_SECONDS = 1.0
MOST_BYTES = 64 << 20


class Done:
    """A command that has ended."""

    def __init__(self, code, out, err, seconds, peak_bytes):
        self.code, self.out, self.err = code, out, err
        self.seconds, self.peak_bytes = seconds, peak_bytes

    @property
    def json(self):
        return json.loads(self.out)


def launch(program, arguments, **options):
    """Popen with no HONE_ variables of the caller's and SIGINT as a terminal would have it."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("HONE_")}
    environment.update(options.pop("environment", {}))
    return subprocess.Popen([programs[program], *arguments], env=environment,
                            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL), **options)


def run(program, *arguments, stdin=b"", timeout=120, environment=None):
    """Runs to the end. The resources are the child's own, from wait4."""
    with tempfile.TemporaryFile() as feed, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        feed.write(stdin)
        feed.seek(0)
        process = launch(program, [str(a) if not isinstance(a, bytes) else a for a in arguments], stdin=feed, stdout=out,
                         stderr=err, environment=environment or {})
        guard = threading.Timer(timeout, process.kill)
        guard.start()
        _, status, usage = os.wait4(process.pid, 0)
        guard.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        return Done(process.returncode, out.read(), err.read().decode(errors="replace"),
                    usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024)


def safetensors(path):
    """{name: (shape, numbers)} of a file."""
    with open(path, "rb") as file:
        data = file.read()
    (length,) = struct.unpack_from("<Q", data)
    tensors = {}
    for name, entry in json.loads(data[8:8 + length]).items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        letter, size = {"F32": ("f", 4), "F64": ("d", 8), "I64": ("q", 8)}[entry["dtype"]]
        tensors[name] = (entry["shape"], struct.unpack_from(f"<{(end - begin) // size}{letter}", data, 8 + length + begin))
    return tensors


class CommandTest(unittest.TestCase):
    """A folder for each test, and what every command promises as assertions."""

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="hone-test-")
        self.addCleanup(shutil.rmtree, self.folder)

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, content):
        with open(self.path(name), "wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
        return self.path(name)

    def hone(self, *arguments, **options):
        done = run("hone", *arguments, **options)
        if "--json" in arguments:
            done.json  # one document and nothing else, whatever the exit code
        return done

    def ok(self, *arguments, **options):
        """Runs hone, which must succeed."""
        done = self.hone(*arguments, **options)
        self.assertEqual(done.code, 0, f"{arguments}: {done.err}")
        return done

    def answer(self, *arguments, **options):
        """The document of a command with --json that must succeed."""
        return self.ok(*arguments, "--json", **options).json

    def fails(self, code, *arguments, says=(), fault=None, cheap=False, program="hone", **options):
        """Runs a command that must fail with one error block on stderr, and nothing on stdout.

        Each text of `says` stands in the block; `cheap`: within the time and memory that bad input may cost.
        """
        done = run(program, *arguments, **options)
        text = f"{program} {arguments}: exit {done.code}\n{done.err}"
        self.assertEqual(done.code, code, text)
        self.assertEqual(done.err.count(": error ("), 1, text)
        self.assertRegex(done.err.splitlines()[0], rf"^{program}: error \((user|file|hone)\): \S", text)
        for part in says:
            self.assertIn(part, done.err, text)
        if fault is not None:
            self.assertIn(f"error ({fault})", done.err, text)
        if cheap and limits:
            self.assertLess(done.seconds, MOST_SECONDS, text)
            self.assertLess(done.peak_bytes, MOST_BYTES, text)
        if "--json" in arguments:
            error = done.json["error"]
            self.assertEqual(set(error), {"code", "fault", "where", "message", "expected", "actual", "try"})
            self.assertIn(error["message"].splitlines()[0], done.err)
            self.assertIn(f"error ({error['fault']})", done.err)
        else:
            self.assertEqual(done.out, b"", text)
        return done

    def fails_both(self, code, *arguments, **options):
        """The same without and with --json. Returns the error of the document."""
        self.fails(code, *arguments, **options)
        return self.fails(code, *arguments, "--json", **options).json["error"]


def main():
    global limits
    limits = "--no-limits" not in sys.argv
    paths = [a for a in sys.argv[1:] if not a.startswith("-")]
    if len(paths) < 2:
        sys.exit("usage: test_NAME.py HONE HONE-OPT [--no-limits]")
    programs["hone"], programs["hone-opt"] = os.path.abspath(paths[0]), os.path.abspath(paths[1])
    unittest.main(argv=[sys.argv[0]])
