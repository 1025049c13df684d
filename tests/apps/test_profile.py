#!/usr/bin/env python3
"""hone profile: its document, that its breakdowns add up, its trace against the format, and two runs side by side."""
import collections
import json
import os
import shutil
import subprocess
import unittest

import command
from command import IDS, LLAMA, LLAMA_Q4, CommandTest

MOE = os.path.join(command.DATA, "gguf", "qwen3moe-Q8_0.gguf")
PROMPT = len(IDS.split(","))
STEPS = 5
RUN = ("profile", LLAMA, "--ids", IDS, "-n", STEPS, "--chunk", 4, "--threads", 2)
FIELDS = {"wall_s", "launches", "bytes_read", "average_kernel_s", "utilisation", "ops", "memory"}
SUM_FIELDS = {"phase", "launches", "total_s", "share", "average_s", "bytes_read", "bytes_written", "operations", "waiting"}
BOUNDS = {"bandwidth", "compute", "waiting", "launch", "shape"}


def of_phase(rows, phase):
    return [row for row in rows if row["phase"] == phase]


def total(rows, key):
    return sum(row[key] for row in rows)


def only(rows, **values):
    (row,) = [row for row in rows if all(row[k] == v for k, v in values.items())]
    return row


class DocumentTest(CommandTest):
    @classmethod
    def setUpClass(cls):
        cls.made = command.run("hone", *RUN, "--json", "--no-peaks").json

    def test_fields(self):
        self.assertLessEqual(FIELDS, set(self.made))
        for rows, key in (("ops", "op"), ("layers", "layer"), ("kernels", "kernel")):
            for row in self.made[rows]:
                self.assertEqual(set(row), SUM_FIELDS | {key})
        self.assertEqual([use["region"] for use in self.made["memory"]], ["static", "dynamic", "workspace"])
        self.assertEqual(self.made["prompt_tokens"], PROMPT)
        self.assertEqual(self.made["thread_count"], 2)

    def test_phases_are_the_wall_and_apart(self):
        phases = self.made["phases"]
        self.assertEqual([p["phase"] for p in phases], ["start", "prefill", "decode"])
        self.assertAlmostEqual(total(phases, "wall_s"), self.made["wall_s"], places=6)
        prefill, decode = phases[1:]
        self.assertEqual((prefill["steps"], prefill["tokens"]), (-(-PROMPT // 4), PROMPT))
        self.assertEqual((decode["steps"], decode["tokens"]), (STEPS, STEPS))
        launches = self.answer("plan", LLAMA)["launches"]
        self.assertEqual(prefill["launches"], launches * prefill["steps"])
        self.assertEqual(decode["launches"], launches * decode["steps"])
        self.assertEqual(self.made["launches"], prefill["launches"] + decode["launches"])

    def test_named_parts_cover_the_wall(self):
        parts = self.made["parts"]
        self.assertNotIn("other", [part["name"] for part in parts])
        named = total(parts, "total_s")
        # Two clock readings apart, and a machine that may stop us between them: the claim is 0.95, on a model of some size.
        self.assertLessEqual(named, 1.02 * self.made["wall_s"])
        self.assertGreaterEqual(named, 0.8 * self.made["wall_s"])
        self.assertAlmostEqual(self.made["covered"], named / self.made["wall_s"], places=6)
        for part in parts:
            self.assertAlmostEqual(part["total_s"], part["start_s"] + part["prefill_s"] + part["decode_s"], places=9)
        for name in ("open file", "compile", "build tokenizer", "load weights", "tokenize", "bind sizes", "kernels",
                     "barrier wait", "sampling", "detokenize"):
            self.assertIn(name, [part["name"] for part in parts])

    def test_breakdowns_add_up(self):
        for phase in ("prefill", "decode"):
            whole = only(self.made["phases"], phase=phase)
            for rows in ("ops", "layers", "kernels"):
                rows = of_phase(self.made[rows], phase)
                for key in ("launches", "bytes_read", "bytes_written"):
                    self.assertEqual(total(rows, key), whole[key])
                self.assertAlmostEqual(total(rows, "total_s"), whole["average_kernel_s"] * whole["launches"], places=6)
            # Each thread is somewhere all the time.
            for thread in of_phase(self.made["threads"], phase):
                self.assertAlmostEqual(thread["busy_s"] + thread["waiting_s"] + thread["outside_s"], whole["wall_s"], places=6)
        self.assertEqual({t["thread"] for t in self.made["threads"]}, {0, 1})

    def test_memory_grows_while_loading_and_stays_within_what_is_reserved(self):
        samples = self.made["memory_samples"]
        self.assertEqual([s["at_s"] for s in samples], sorted(s["at_s"] for s in samples))
        static = [s["static_bytes"] for s in samples]
        self.assertEqual(static, sorted(static))
        self.assertLess(static[0], static[-1])
        for use in self.made["memory"]:
            self.assertLessEqual(use["peak_bytes"], use["reserved_bytes"])
            self.assertLessEqual(use["current_bytes"], use["peak_bytes"])
            key = use["region"] + "_bytes"
            self.assertEqual(max(s[key] for s in samples), use["peak_bytes"])
        plan = self.answer("plan", LLAMA, "--chunk", 4, "--threads", 2)
        self.assertEqual(only(self.made["memory"], region="dynamic")["reserved_bytes"],
                         plan["kv_bytes"] + plan["activation_bytes"])

    def test_without_peaks_there_is_no_diagnosis(self):
        self.assertIsNone(self.made["utilisation"])
        self.assertIsNone(self.made["peaks"])
        self.assertEqual(self.made["diagnosis"], [])
        self.assertIn("no diagnosis: --no-peaks", self.ok(*RUN, "--no-peaks").out.decode())


class PeaksTest(CommandTest):
    def test_diagnosis_and_report(self):
        made = self.answer("profile", MOE, "--ids", IDS, "-n", STEPS)
        if made["peaks"] is None:
            self.skipTest("less than the memory that the measurement of the peaks takes is free")
        self.assertEqual(len(made["diagnosis"]), 5)
        times = [row["total_s"] for row in made["diagnosis"]]
        self.assertEqual(times, sorted(times, reverse=True))
        for row in made["diagnosis"]:
            self.assertIn(row["bound"], BOUNDS)
            self.assertTrue(row["reason"] and row["next"])
        self.assertGreater(made["peaks"]["read_bytes_per_s"], 0)
        self.assertLessEqual({"amx_bf16_flops_per_s", "amx_int8_ops_per_s"}, set(made["peaks"]))
        if made["isa"] != "portable":
            self.assertGreater(made["utilisation"], 0)
            self.assertIn("measured peak", made["utilisation_definition"])


class ReportTest(CommandTest):
    def test_wall_time_comes_first_and_every_table_is_there(self):
        out = self.ok(*RUN, "--no-peaks").out.decode()
        self.assertRegex(out, r"^\d+\.\d{3} s wall: ")
        for head in ("\npart ", "\nop ", "\nlayer ", "\nkernel ", "\nthread ", "\nmemory ", "\nat "):
            self.assertIn(head, out)
        self.assertIn("of the wall time", out)
        self.assertIn("average kernel", out)

    def test_prompts_of_every_kind(self):
        wanted = self.answer("run", LLAMA, "-p", "of the mill", "-n", 1)["prompt_ids"]
        file = self.write("prompt.txt", "of the mill")
        for prompt in (("-p", "of the mill"), ("-f", file)):
            made = self.answer("profile", LLAMA, *prompt, "-n", 1, "--no-peaks")
            self.assertEqual(made["prompt_tokens"], len(wanted))
        made = self.answer("profile", LLAMA, "-n", 1, "--no-peaks", stdin=b"of the mill")
        self.assertEqual(made["prompt_tokens"], len(wanted))
        raw = self.answer("profile", LLAMA, "-p", "of the mill", "--raw", "-n", 1, "--no-peaks")
        self.assertLess(raw["prompt_tokens"], len(wanted))

    def test_a_full_context_ends_the_run_and_says_so(self):
        done = self.ok("profile", LLAMA, "--ids", "1,2,3", "-n", 50, "--ctx", 8, "--no-peaks", "--json")
        self.assertEqual(only(done.json["phases"], phase="decode")["steps"], 5)
        self.assertIn("context of 8 tokens is full after 5 decode steps", done.err)

    def test_an_end_token_does_not_end_it(self):
        folder = self.path("model")
        shutil.copytree(os.path.join(command.DATA, "models", "llama-gqa"), folder)
        self.write("model/generation_config.json", json.dumps({"eos_token_id": list(range(512)), "max_new_tokens": 2}))
        made = self.answer("profile", folder, "--ids", "1,2,3", "-n", 7, "--no-peaks")
        self.assertEqual(only(made["phases"], phase="decode")["steps"], 7)

    def test_help_names_it(self):
        self.assertIn("profile", self.ok("--help").out.decode())


class TraceTest(CommandTest):
    """The rules of https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU that Perfetto needs."""

    def setUp(self):
        super().setUp()
        self.file = self.path("trace.json")
        self.made = self.answer(*RUN, "--no-peaks", "--trace", self.file)
        with open(self.file, encoding="utf-8") as file:
            self.events = json.load(file)["traceEvents"]

    def kind(self, letter):
        return [event for event in self.events if event["ph"] == letter]

    def test_every_event_is_of_a_known_kind_and_complete(self):
        self.assertEqual({event["ph"] for event in self.events}, {"M", "X", "C"})
        for event in self.kind("X"):
            self.assertLessEqual({"pid", "tid", "ts", "dur", "name", "cat"}, set(event))
            self.assertGreaterEqual(event["ts"], 0)
            self.assertGreaterEqual(event["dur"], 0)

    def test_process_and_threads_have_names(self):
        names = {(e["name"], e["tid"]): e["args"]["name"] for e in self.kind("M")}
        self.assertEqual(names[("process_name", 1)], "hone")
        used = {e["tid"] for e in self.kind("X")}
        self.assertEqual({tid for name, tid in names if name == "thread_name"}, {1, 2})
        self.assertLessEqual(used, {1, 2})

    def test_time_never_goes_back(self):
        times = [e["ts"] for e in self.events if e["ph"] != "M"]
        self.assertEqual(times, sorted(times))

    def test_events_of_a_thread_nest(self):
        around = collections.defaultdict(list)
        for event in self.kind("X"):
            # Whole nanoseconds: the file has microseconds with three digits.
            begin = round(event["ts"] * 1000)
            end = begin + round(event["dur"] * 1000)
            stack = around[event["tid"]]
            while stack and stack[-1] <= begin:
                stack.pop()
            if stack:
                self.assertLessEqual(end, stack[-1], event)
            stack.append(end)

    def test_launches_and_steps_are_those_of_the_document(self):
        caller = [e for e in self.kind("X") if e["tid"] == 1]
        count = collections.Counter(e["cat"] for e in caller)
        self.assertEqual(count["launch"], self.made["launches"])
        self.assertEqual(count["step"], sum(p.get("steps", 0) for p in self.made["phases"]))
        self.assertEqual(count["phase"], 3)
        wall = sum(e["dur"] for e in caller if e["cat"] == "phase") / 1e6
        self.assertAlmostEqual(wall, self.made["wall_s"], places=6)
        self.assertEqual(self.made["dropped_zones"], 0)

    def test_memory_is_counted_by_region(self):
        counters = self.kind("C")
        for event in counters:
            self.assertEqual(event["name"], "memory")
            self.assertEqual(set(event["args"]), {"static", "dynamic", "workspace"})
        for use in self.made["memory"]:
            self.assertEqual(max(e["args"][use["region"]] for e in counters), use["peak_bytes"])

    def test_a_trace_that_cannot_be_written_is_refused_before_the_run(self):
        error = self.fails_both(3, *RUN, "--trace", self.path("no/folder/trace.json"), says=("no/folder",))
        self.assertEqual(error["fault"], "user")


class AgainstTest(CommandTest):
    def earlier(self, *flags):
        done = self.ok(*RUN, "--no-peaks", "--json", *flags)
        return self.write("earlier.json", done.out), done.json

    def test_levels_stand_side_by_side(self):
        file, other = self.earlier("--level", "O1")
        now = self.answer(*RUN, "--no-peaks", "--against", file)
        rows = {row["name"]: row for row in now["against"]}
        launches = rows["decode: launches"]
        self.assertEqual(launches["other"], only(other["phases"], phase="decode")["launches"])
        self.assertEqual(launches["now"], only(now["phases"], phase="decode")["launches"])
        self.assertAlmostEqual(launches["ratio"], launches["now"] / launches["other"])
        self.assertLess(launches["ratio"], 1)
        self.assertEqual(rows["wall time"]["other"], other["wall_s"])
        self.assertEqual(rows["memory: static reserved"]["unit"], "bytes")
        # An op that only one of them has.
        one_sided = [row for row in now["against"] if row["other"] is None or row["now"] is None]
        self.assertTrue(one_sided)
        for row in one_sided:
            self.assertIsNone(row["ratio"])

    def test_the_table_for_people(self):
        file, _ = self.earlier("--level", "O1")
        out = self.ok(*RUN, "--no-peaks", "--against", file).out.decode()
        table = out[out.index("\nother: "):]
        self.assertIn("level O1", table.splitlines()[1])
        self.assertIn("level O3", table.splitlines()[2])
        self.assertIn("this / other", table)
        self.assertRegex(table, r"\ndecode: launches +\d+ +\d+ +0\.\d{3}\n")
        self.assertIn("left out", table.splitlines()[-1])
        widths = {len(line) for line in table.splitlines()[3:-1]}
        self.assertEqual(len(widths), 1, table)

    def test_small_ops_are_left_out_of_the_table_alone(self):
        _, other = self.earlier()
        for row in other["ops"]:
            row["share"] = 0.5 if row["op"] == "attention" else 0
        names = {row["op"] for row in other["ops"]}
        other["ops"].append({"op": "gone", "phase": "decode", "total_s": 1e-9, "launches": 1, "share": 0.009})
        other["ops"].append({"op": "kept", "phase": "decode", "total_s": 1e-9, "launches": 1, "share": 0.011})
        file = self.write("earlier.json", json.dumps(other))
        self.assertIn("attention", names)
        done = self.ok(*RUN, "--no-peaks", "--against", file).out.decode()
        table = done[done.index("\nother: "):]
        for name in ("decode: attention ", "decode: kept "):
            self.assertIn(name, table)
        self.assertNotIn("decode: gone", table)
        rows = self.answer(*RUN, "--no-peaks", "--against", file)["against"]
        self.assertIn("decode: gone", [row["name"] for row in rows])

    def test_a_file_that_is_no_profile(self):
        for text, actual in (("hello", "no JSON"), ("[1]", "no object"), ("{}", "wall_s"),
                             ('{"wall_s": 1, "phases": [], "ops": [3], "memory": []}', "element of `ops`"),
                             ('{"wall_s": 1, "phases": [], "ops": [{"op": 3}], "memory": []}', "`op` in `ops`"),
                             ('{"wall_s": 1, "phases": 3, "ops": [], "memory": []}', "no array `phases`")):
            file = self.write("other.json", text)
            self.fails(3, *RUN, "--against", file, says=("no profile", actual), fault="user", cheap=True)
        self.fails_both(3, *RUN, "--against", self.path("missing.json"), says=("missing.json",))


class MisuseTest(CommandTest):
    def test_wrong_flags_and_prompts(self):
        self.fails_both(3, "profile", LLAMA, "--ids", "1,600", says=("600",))
        self.fails_both(3, "profile", LLAMA, "-p", "", says=("empty",))
        self.fails_both(2, "profile", LLAMA, "--ids", "1", "-n", 0, says=("-n",))
        self.fails_both(2, "profile", LLAMA, "--ids", "1", "-p", "x")
        self.fails_both(2, "profile", LLAMA, "--ids", "1", "--stop", "x", says=("--stop",))
        self.fails_both(3, "profile", LLAMA, "--ids", "1,2,3", "--ctx", 2, says=("context",))

    def test_without_a_prompt_on_a_terminal(self):
        leader, follower = os.openpty()
        self.addCleanup(os.close, leader)
        process = command.launch("hone", ["profile", LLAMA_Q4], stdin=follower, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE)
        os.close(follower)
        out, err = process.communicate(timeout=60)
        self.assertEqual((process.returncode, out), (2, b""))
        self.assertIn(b"no prompt given", err)


if __name__ == "__main__":
    command.main()
