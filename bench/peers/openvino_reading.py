"""One reading of OpenVINO GenAI, run by a Python that has its wheel: openvino_reading.py MODEL.gguf THREADS PROMPT GENERATE.

The SDPA pipeline is asked for, since the paged one keeps a prefix cache and answers a second prompt from it. Prefill is the time
of one token, decode the difference to GENERATE more.
"""

import json
import sys
import time

import numpy
import openvino
import openvino_genai


def main():
    model, threads, prompt, generate = sys.argv[1], *map(int, sys.argv[2:5])
    pipeline = openvino_genai.LLMPipeline(model, "CPU", ATTENTION_BACKEND="SDPA", INFERENCE_NUM_THREADS=threads)
    ids = numpy.array([[(i * 7919 + 13) % 30000 for i in range(prompt)]], dtype=numpy.int64)
    inputs = openvino_genai.TokenizedInputs(openvino.Tensor(ids), openvino.Tensor(numpy.ones_like(ids)))

    def seconds(tokens):
        config = openvino_genai.GenerationConfig()
        config.ignore_eos = True
        config.max_new_tokens = config.min_new_tokens = tokens
        begin = time.perf_counter()
        answer = pipeline.generate(inputs, config)
        if len(answer.tokens[0]) != tokens:
            sys.exit(f"{len(answer.tokens[0])} tokens came, {tokens} were asked for")
        return time.perf_counter() - begin

    seconds(2)  # warm-up
    first = seconds(1)
    print(json.dumps({"prefill": prompt / first, "decode": generate / (seconds(generate + 1) - first),
                      "version": openvino_genai.__version__}))


if __name__ == "__main__":
    main()
