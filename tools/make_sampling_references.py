#!/usr/bin/env python3
"""Probabilities that the logits processors of transformers leave, for tests/tokens/sampler_test.cc.

    make_sampling_references.py OUT.json          # torch and transformers must be installed

Each case has logits without ties, ids seen so far, options under the names of SamplerOptions, and the probabilities
[V] from which a draw is made, all in float64.
"""
import json
import sys

import numpy as np
import torch
from transformers.generation import logits_process as lp

VOCABULARY = 24
CASES = [
    {"temperature": 1.0},
    {"temperature": 0.7},
    {"temperature": 1.8},
    {"temperature": 1.0, "top_k": 5},
    {"temperature": 1.3, "top_p": 0.8},
    {"temperature": 1.0, "top_p": 0.05},
    {"temperature": 1.5, "min_p": 0.1},
    {"temperature": 1.0, "typical_p": 0.6},
    {"temperature": 1.6, "typical_p": 0.9},
    {"temperature": 0.8, "typical_p": 0.2},
    {"temperature": 1.0, "repeat_penalty": 1.3},
    {"temperature": 1.2, "repeat_penalty": 0.8},
    {"temperature": 1.4, "top_k": 12, "top_p": 0.9},
    {"temperature": 1.4, "top_k": 12, "top_p": 0.9, "min_p": 0.2},
    {"temperature": 1.7, "top_k": 16, "top_p": 0.95, "min_p": 0.03, "typical_p": 0.8, "repeat_penalty": 1.2},
    {"temperature": 2.0, "top_p": 0.9, "typical_p": 0.5, "repeat_penalty": 1.1},
]


def processors(options):
    """In the order of GenerationMixin._get_logits_processor."""
    if "repeat_penalty" in options:
        yield lp.RepetitionPenaltyLogitsProcessor(options["repeat_penalty"])
    if options["temperature"] != 1.0:
        yield lp.TemperatureLogitsWarper(options["temperature"])
    if "top_k" in options:
        yield lp.TopKLogitsWarper(options["top_k"])
    if "top_p" in options:
        yield lp.TopPLogitsWarper(options["top_p"])
    if "min_p" in options:
        yield lp.MinPLogitsWarper(options["min_p"])
    if "typical_p" in options:
        yield lp.TypicalLogitsWarper(options["typical_p"])


def main(path):
    cases = []
    for number, options in enumerate(CASES):
        generator = np.random.Generator(np.random.PCG64([20261130, number]))
        logits = generator.normal(0, 2, VOCABULARY).astype(np.float32)
        seen = [int(i) for i in generator.integers(0, VOCABULARY, 6)]
        scores = torch.tensor(logits, dtype=torch.float64)[None]
        for processor in processors(options):
            scores = processor(torch.tensor([seen]), scores)
        probabilities = torch.softmax(scores, -1)[0]
        cases.append({"options": options, "seen": seen, "logits": [float(x) for x in logits],
                      "probabilities": [float(p) for p in probabilities]})
    with open(path, "w", encoding="utf-8") as out:
        out.write("[\n" + ",\n".join(json.dumps(case) for case in cases) + "\n]\n")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
