#!/usr/bin/env python3
"""hone's tokenizer beside the `tokenizers` package (PyPI), one thread each, in turn in one run.

    python3 bench/tokenizer/compare.py BENCH FOLDER FILE...

BENCH is the built tokenizer_bench, FOLDER holds tokenizer.json, each FILE is UTF-8 text. Needs `pip install tokenizers`
in a virtual environment. Prints MB/s of both and the ratio, by processor time, the median of three rounds; and says
where the ids differ in number.
"""

import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["RAYON_NUM_THREADS"] = "1"

import tokenizers  # noqa: E402

ROUNDS = 3


def peer(tokenizer, texts):
    """MB/s for each text, best of five, and the number of ids."""
    out = []
    for text in texts:
        size, best, count = len(text.encode()), float("inf"), 0
        for _ in range(5):
            begin = time.thread_time()
            count = len(tokenizer.encode(text, add_special_tokens=False).ids)
            best = min(best, time.thread_time() - begin)
        out.append((size / best * 1e-6, count))
    return out


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    bench, folder, files = sys.argv[1], sys.argv[2], sys.argv[3:]
    texts = [pathlib.Path(name).read_text(encoding="utf-8") for name in files]
    begin = time.thread_time()
    tokenizer = tokenizers.Tokenizer.from_file(str(pathlib.Path(folder) / "tokenizer.json"))
    load = (time.thread_time() - begin) * 1e3
    rounds = []
    for _ in range(ROUNDS):
        ours = json.loads(subprocess.run([bench, folder, *files], check=True, capture_output=True, text=True).stdout)
        rounds.append((ours, peer(tokenizer, texts)))
    print(f"load: hone {statistics.median(r[0]['load_ms'] for r in rounds):.0f} ms, tokenizers {tokenizers.__version__} {load:.0f} ms")
    for i, name in enumerate(files):
        ours = statistics.median(r[0]["files"][i]["mb_per_s"] for r in rounds)
        theirs = statistics.median(r[1][i][0] for r in rounds)
        same = "" if rounds[0][0]["files"][i]["ids"] == rounds[0][1][i][1] else "  ids differ in number"
        print(f"{name}: hone {ours:.2f} MB/s, tokenizers {theirs:.2f} MB/s, ratio {ours / theirs:.2f}{same}")


if __name__ == "__main__":
    main()
