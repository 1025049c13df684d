"""bench/peers/compare.py: what it reads, keeps, throws away and prints, with made-up engines. Measures no time."""

import contextlib
import io
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench" / "peers"))
import compare  # noqa: E402
import engines  # noqa: E402
import machine  # noqa: E402
import tables  # noqa: E402

# Each prints what the engine prints for the arguments it was given, at the rates that the test has chosen.
HONE = """import json, sys
assert sys.argv[1] == "bench" and "--json" in sys.argv, sys.argv
print(json.dumps({"prefill_tokens_per_s": 200.0, "decode_tokens_per_s": 30.0, "prefill_of_peak": 0.5, "decode_of_bandwidth": 0.9,
                  "peaks": {"read_bytes_per_s": 33.7e9, "int8_ops_per_s": 849e9, "amx_int8_ops_per_s": None}}))
"""
LLAMA = """import json, sys
a = sys.argv[1:]
if "--help" in a:
    sys.exit(print("  -d, --n-depth <n>"))
value = lambda flag: int(a[a.index(flag) + 1]) if flag in a else 0
assert value("-p") == 0 or value("-d") == 0, "the prompt is read at depth 0"
tests = []
if value("-p"):
    tests.append({"n_prompt": value("-p"), "n_gen": 0, "samples_ts": [100.0], "build_commit": "0123456"})
if value("-n"):
    assert value("-d") == 512, a
    tests.append({"n_prompt": 0, "n_gen": value("-n"), "samples_ts": [20.0], "build_commit": "0123456"})
print("a line of a backend")
print(json.dumps(tests))
"""
IK = """import json, sys
a = sys.argv[1:]
if "--help" in a:
    sys.exit(print("  -gp <pp,tg>"))
p, n = map(int, a[a.index("-gp") + 1].split(","))
print(json.dumps([{"n_prompt": int(a[a.index("-p") + 1]), "n_gen": 0, "samples_ts": [160.0]},
                  {"n_prompt": p, "n_gen": n, "samples_ts": [15.0]}]))
"""


class Compare(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.model = self.folder / "model.gguf"
        self.model.write_bytes(b"GGUF")

    def engine(self, name, source):
        path = self.folder / name
        path.write_text(f"#!{sys.executable}\n{source}", encoding="utf-8")
        path.chmod(0o755)
        return str(path)

    def run_compare(self, *arguments, others=(), idle=True):
        """compare.main() with the machine's readings made up: `others` are the CPUs that others use in each command, then none."""
        used = iter(others)
        real = machine.run_alone

        def run_alone(argv, timeout_s):
            run = real(argv, timeout_s)
            run.others_cpus = next(used, 0.0)
            return run

        out, err = io.StringIO(), io.StringIO()
        with (mock.patch.object(machine, "wait_for_idle", return_value=idle), mock.patch.object(machine, "run_alone", run_alone),
              contextlib.redirect_stdout(out), contextlib.redirect_stderr(err)):
            status = compare.main([*arguments, str(self.model)])
        return status, out.getvalue(), err.getvalue()

    def peers(self):
        return ["--hone", self.engine("hone", HONE), "--llama-bench", self.engine("llama-bench", LLAMA) + " -lm none",
                "--llama-bench", "ik=" + self.engine("ik-bench", IK)]

    def test_ratios_are_to_each_peer_and_to_the_best_of_a_round(self):
        status, out, _ = self.run_compare(*self.peers(), "--json", "-r", "2")
        self.assertEqual(status, 0)
        report = json.loads(out)
        ratios = report["cases"][0]["summary"]["ratios"]
        self.assertEqual(ratios["llama.cpp"]["prefill"], {"min": 2.0, "median": 2.0, "max": 2.0, "count": 2})
        self.assertEqual(ratios["ik"]["decode"]["median"], 2.0)
        self.assertEqual(ratios["best peer"]["prefill"]["median"], 1.25)
        self.assertEqual(ratios["best peer"]["decode"]["median"], 1.5)
        self.assertEqual(report["peaks"], {"read_bytes_per_s": 33.7e9, "int8_ops_per_s": 849e9})
        self.assertEqual(report["engines"][1], {"name": "llama.cpp", "command": "llama-bench -lm none", "version": "0123456"})

    def test_the_second_round_goes_the_other_way_round(self):
        _, _, err = self.run_compare(*self.peers(), "-r", "2")
        order = [line.split()[1].rstrip(":") for line in err.splitlines()]
        self.assertEqual(order, ["hone", "llama.cpp", "ik", "ik", "llama.cpp", "hone"])

    def test_a_reading_that_others_disturbed_is_taken_again(self):
        # Commands in order: hone, hone again, llama.cpp's two, of which the second is disturbed, and those two again.
        status, out, _ = self.run_compare("--hone", self.engine("hone", HONE), "--llama-bench", self.engine("llama-bench", LLAMA), "--json",
                                          "-r", "1", others=[0.5, 0.0, 0.0, 0.06, 0.0, 0.0])
        self.assertEqual(status, 0)
        case = json.loads(out)["cases"][0]
        self.assertEqual(case["thrown_away"], {"hone": 1, "llama.cpp": 1})
        self.assertEqual(case["summary"]["engines"]["llama.cpp"]["prefill"]["count"], 1)

    def test_a_round_that_stays_disturbed_has_no_reading_and_no_ratio(self):
        _, out, _ = self.run_compare("--hone", self.engine("hone", HONE), "--llama-bench", self.engine("llama-bench", LLAMA), "--attempts", "2",
                                     "-r", "1", others=[0.5, 0.5])
        row = next(line.split() for line in out.splitlines() if line.startswith("hone ") and "over" not in line)
        self.assertEqual(row[1:], ["-"] * 6 + ["0", "2"])

    def test_an_engine_that_fails_is_named_and_the_others_go_on(self):
        broken = self.engine("broken", "import sys\nif '--help' not in sys.argv: sys.exit('unknown architecture')")
        status, out, err = self.run_compare("--hone", self.engine("hone", HONE), "--llama-bench", broken, "--json")
        self.assertEqual(status, 1)
        case = json.loads(out)["cases"][0]
        self.assertEqual(case["failed"], {"llama.cpp": "exit status 1: unknown architecture"})
        self.assertEqual(case["summary"]["engines"]["hone"]["decode"]["count"], 3)
        self.assertEqual(err.count("unknown architecture"), 1)

    def test_a_page_has_the_machine_the_peaks_and_the_medians(self):
        with mock.patch.object(machine, "describe", return_value={"kind": "amd-avx512", "cpu": "EPYC", "cpus": 2}):
            self.run_compare(*self.peers(), "--results", str(self.folder))
        page = (self.folder / "amd-avx512.md").read_text(encoding="utf-8")
        self.assertIn("read 33.7 GB/s, int8 849 GOP/s", page)
        self.assertIn("| model.gguf | 512 | prefill | 200 | 100 | 160 | **1.25** (1.25-1.25) | 50 % of peak |", page)
        self.assertIn("| model.gguf | 512 | decode | 30.0 | 20.0 | 15.0 | **1.50** (1.50-1.50) | 90 % of bandwidth |", page)

    def test_wrong_use_is_said(self):
        status, _, err = self.run_compare("--hone", self.engine("hone", HONE), str(self.folder / "absent.gguf"))
        self.assertEqual((status, err.strip()), (3, f"no such file: {self.folder / 'absent.gguf'}"))
        llama = self.engine("llama-bench", LLAMA)
        status, _, err = self.run_compare("--hone", self.engine("hone", HONE), "--llama-bench", llama, "--llama-bench", llama)
        self.assertEqual(status, 2)
        self.assertIn("two engines have one name", err)


class Parts(unittest.TestCase):
    def test_busy_time_counts_all_but_idle_and_waiting_for_disks(self):
        with tempfile.NamedTemporaryFile("w", suffix="stat") as file:
            file.write("cpu  100 10 20 9999 8888 5 6 7 50 0\ncpu0 1 1 1 1 1 1 1 1 0 0\n")
            file.flush()
            self.assertEqual(machine.busy_seconds(file.name) * machine.TICK, 148)

    def test_others_are_what_is_busy_beside_the_own_run(self):
        busy = iter([100.0, 103.0])
        with mock.patch.object(machine, "busy_seconds", lambda: next(busy)):
            run = machine.run_alone([sys.executable, "-c", "print(1)"], 60)
        self.assertEqual(run.stdout, "1\n")
        self.assertAlmostEqual(run.others_cpus * run.wall_s + run.own_cpu_s, 3.0, places=6)

    def test_a_command_that_hangs_is_ended_with_its_children(self):
        command = ["/bin/sh", "-c", "sleep 600 & echo $!; wait"]
        run = machine.run_alone(command, 0.3)
        self.assertNotEqual(run.status, 0)
        self.assertIn("ended after 0.3 s", run.stderr)
        state = subprocess.run(["ps", "-o", "stat=", "-p", run.stdout.strip()], capture_output=True, text=True, check=False).stdout
        self.assertIn(state.strip()[:1], ("", "Z"))

    def test_idle_is_waited_for_within_bounds(self):
        clock = iter(range(1000))
        with mock.patch.object(machine.time, "monotonic", lambda: next(clock)), mock.patch.object(machine.time, "sleep"):
            busy = iter([0.0, 1.0, 1.0, 1.01])
            with mock.patch.object(machine, "busy_seconds", lambda: next(busy)):
                self.assertTrue(machine.wait_for_idle(60))
            seconds = iter(range(1000))
            with mock.patch.object(machine, "busy_seconds", lambda: next(seconds)):
                self.assertFalse(machine.wait_for_idle(60))

    def test_the_kind_of_machine(self):
        with tempfile.NamedTemporaryFile("w", suffix="cpuinfo") as file:
            file.write("vendor_id\t: GenuineIntel\nmodel name\t: Xeon\nflags\t\t: fpu avx2 avx512f amx_tile\n")
            file.flush()
            self.assertEqual(machine.describe(file.name)["kind"], "intel-amx")

    def test_spread(self):
        self.assertEqual(tables.spread([3.0, 1.0, 2.0, 10.0]), {"min": 1.0, "median": 2.5, "max": 10.0, "count": 4})
        self.assertIsNone(tables.spread([]))

    def test_columns_are_aligned(self):
        self.assertEqual(tables.aligned([["a", "bb"], ["long", "1"]]), ["a     bb", "long   1"])

    def test_an_answer_without_json_is_a_failure(self):
        with self.assertRaisesRegex(engines.Failed, "printed no JSON"):
            engines.Hone("hone", ["hone"]).read(["Segmentation fault"])

    def test_a_name_is_what_stands_before_the_path(self):
        made = engines.named(engines.Hone, "fast=/bin/hone --isa avx2", "hone")
        self.assertEqual((made.name, made.command), ("fast", ["/bin/hone", "--isa", "avx2"]))
        self.assertEqual(engines.named(engines.Hone, "/a=b/hone", "hone").command, ["/a=b/hone"])


if __name__ == "__main__":
    unittest.main()
