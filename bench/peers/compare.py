#!/usr/bin/env python3
"""hone beside its peers, in turn, on the same files with the same threads.

    bench/peers/compare.py --hone build/release/hone --llama-bench PATH --openvino-python PYTHON MODEL.gguf ...

A round takes one reading of each engine, in turn; the next round goes the other way round. Before a reading it waits for an idle
machine; a reading during which others used the CPU is thrown away and taken again. Prints hone's rates over each peer's in the
same round (min, median, max), then the rates. docs/benchmarks.md says where the peers come from. Standard library only.
"""

import argparse
import datetime
import json
import pathlib
import sys

import engines
import machine
import tables


def parse_arguments(argv):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", type=pathlib.Path, metavar="MODEL", help="GGUF files")
    parser.add_argument("--hone", default="build/release/hone", help="'PATH FLAGS'; default %(default)s")
    parser.add_argument("--llama-bench", action="append", default=[], metavar="[NAME=]PATH FLAGS",
                        help="llama-bench of llama.cpp or ik_llama.cpp; may be given again, each with a NAME")
    parser.add_argument("--openvino-python", metavar="PYTHON", help="a Python that has openvino-genai")
    parser.add_argument("-t", "--threads", type=int, default=2)
    parser.add_argument("-p", "--prompt", type=int, default=512, help="tokens; default %(default)s")
    parser.add_argument("-n", "--generate", type=int, default=64, help="tokens behind the prompt; default %(default)s")
    parser.add_argument("-r", "--repetitions", type=int, default=3, help="rounds; default %(default)s")
    parser.add_argument("--attempts", type=int, default=3, help="at one reading, when others disturb it; default %(default)s")
    parser.add_argument("--max-others", type=float, metavar="CPUS",
                        help="others' use of the CPU, on average, that a reading survives; default 0.05, with --priority 1")
    parser.add_argument("--idle-wait", type=float, default=120, metavar="S",
                        help="longest wait for an idle machine before a reading; default %(default)s")
    parser.add_argument("--timeout", type=float, default=600, metavar="S", help="of one command; default %(default)s")
    parser.add_argument("--priority", action="store_true",
                        help="run in a scheduling group of the largest weight and do not wait (root): for a machine that others use; "
                        "they get what an engine leaves idle, as while it loads")
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout instead of tables")
    parser.add_argument("--results", type=pathlib.Path, metavar="FOLDER", help="write FOLDER/KIND.md, KIND being the kind of machine")
    arguments = parser.parse_args(argv)
    if arguments.max_others is None:
        arguments.max_others = 1.0 if arguments.priority else 0.05
    return arguments


def make_engines(arguments):
    made = [engines.named(engines.Hone, "hone=" + arguments.hone, "hone")]
    made += [engines.named(engines.LlamaBench, text, "llama.cpp") for text in arguments.llama_bench]
    if arguments.openvino_python:
        made.append(engines.OpenVino("OpenVINO", [arguments.openvino_python]))
    names = [engine.name for engine in made]
    if len(set(names)) < len(names):
        raise engines.Failed(f"two engines have one name: {', '.join(names)}; give NAME=PATH")
    return made


def note(text):
    print(text, file=sys.stderr, flush=True)


def take_reading(engine, model, arguments):
    """(reading or None, readings thrown away). Raises Failed when the engine gives no answer."""
    thrown = 0
    for _ in range(arguments.attempts):
        if not arguments.priority and not machine.wait_for_idle(arguments.idle_wait):
            note(f"{engine.name}: the machine was not idle within {arguments.idle_wait:.0f} s")
        answers = []
        others = 0.0
        for command in engine.commands(model, arguments.threads, arguments.prompt, arguments.generate):
            run = machine.run_alone(command, arguments.timeout)
            if run.status != 0:
                lines = (run.stderr.strip() or run.stdout.strip() or "nothing").splitlines()
                raise engines.Failed(f"exit status {run.status}: {lines[-1][:200]}")
            answers.append(run.stdout)
            others = max(others, run.others_cpus)
        reading = engine.read(answers)
        note(f"{model.name} {engine.name}: prefill {reading['prefill']:.1f}, decode {reading['decode']:.1f} tokens/s; others used "
             f"{others:.2f} CPUs{'' if others <= arguments.max_others else ', thrown away'}")
        if others <= arguments.max_others:
            return reading, thrown
        thrown += 1
    return None, thrown


def measure(model, made, arguments):
    """One model: its rounds, what was thrown away, and which engine failed, which is then left out."""
    rounds, thrown, failed = [], {engine.name: 0 for engine in made}, {}
    for number in range(arguments.repetitions):
        readings = {}
        for engine in made if number % 2 == 0 else reversed(made):
            if engine.name in failed:
                continue
            try:
                reading, count = take_reading(engine, model, arguments)
            except (engines.Failed, OSError, KeyError, TypeError) as error:
                failed[engine.name] = str(error)
                note(f"{model.name} {engine.name}: no reading: {error}")
                continue
            thrown[engine.name] += count
            if reading is not None:
                readings[engine.name] = reading
        rounds.append(readings)
    names = [engine.name for engine in made]
    return {"model": model.name, "bytes": model.stat().st_size, "prompt": arguments.prompt, "generate": arguments.generate,
            "rounds": rounds, "summary": tables.summarise(rounds, names, "hone"), "thrown_away": thrown, "failed": failed}


def main(argv=None):
    arguments = parse_arguments(argv)
    missing = [str(model) for model in arguments.models if not model.is_file()]
    if missing:
        note(f"no such file: {', '.join(missing)}")
        return 3
    try:
        made = make_engines(arguments)
        if arguments.priority:
            machine.take_priority()
    except (engines.Failed, OSError) as error:
        note(str(error))
        return 2
    report = {"date": datetime.date.today().isoformat(), "machine": machine.describe(), "threads": arguments.threads,
              "repetitions": arguments.repetitions, "priority": arguments.priority,
              "engines": [{"name": engine.name, "command": " ".join([pathlib.Path(engine.command[0]).name, *engine.command[1:]])}
                          for engine in made],
              "peaks": {}, "cases": []}
    for model in arguments.models:
        case = measure(model, made, arguments)
        report["cases"].append(case)
        for engine in report["engines"]:
            versions = [r[engine["name"]].get("version") for r in case["rounds"] if engine["name"] in r]
            engine["version"] = next(filter(None, versions), engine.get("version", ""))
        for found in (r["hone"]["peaks"] for r in case["rounds"] if "hone" in r):
            for key, value in found.items():  # the best of all rounds: what the machine can do at most
                if value is not None and "working_set" not in key:
                    report["peaks"][key] = max(report["peaks"].get(key, 0), value)
        if arguments.results:  # after each model, so that what was measured is kept when a later one is interrupted
            arguments.results.mkdir(parents=True, exist_ok=True)
            path = arguments.results / f"{report['machine']['kind']}.md"
            path.write_text("\n".join(tables.markdown(report)) + "\n", encoding="utf-8")
            note(f"wrote {path}")
        if not arguments.json:
            title = (f"{model.name}, {arguments.threads} threads, prompt of {arguments.prompt}, {arguments.generate} tokens behind it, "
                     f"{arguments.repetitions} rounds")
            print("\n".join(tables.text(title, case["summary"], case["thrown_away"])), end="\n\n", flush=True)
    if arguments.json:
        print(json.dumps(report, indent=2))
    return 1 if any(case["failed"] for case in report["cases"]) else 0


if __name__ == "__main__":
    sys.exit(main())
