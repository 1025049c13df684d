#!/usr/bin/env python3
"""What each verb answers: the fields of its document, its exit code, and which stream has what."""
import json
import os
import re
import shutil
import struct
import unittest

import command
from command import CONTEXT, DATA, IDS, LLAMA, LLAMA_Q4, QWEN, VOCABULARY, CommandTest
from gguf_bytes import Gguf, write_sparse_llama

RUN_FIELDS = {"prompt_ids", "ids", "text", "finish", "load_s", "first_token_s", "prefill_tokens_per_s", "decode_tokens_per_s",
              "predicted_bytes", "peak_bytes", "threads", "isa", "launches_per_token", "compiles"}
PLAN_FIELDS = {"total_bytes", "static_bytes", "dynamic_bytes", "workspace_bytes", "kv_bytes", "activation_bytes",
               "activation_lower_bound_bytes", "layers", "launches"}
PASS_FIELDS = {"name", "nodes_before", "nodes_after", "launches_before", "launches_after", "bytes_before", "bytes_after",
               "memory_before_bytes", "memory_after_bytes", "ms", "contract"}
CHAIN = ("nodes", "launches", "bytes")


class RunTest(CommandTest):
    def test_document(self):
        made = self.answer("run", LLAMA, "--ids", IDS, "-n", 6)
        self.assertLessEqual(RUN_FIELDS, set(made))
        self.assertEqual(made["prompt_ids"], [int(i) for i in IDS.split(",")])
        self.assertIn(made["finish"], ("stop", "length", "context"))
        self.assertLessEqual(len(made["ids"]), 6)
        self.assertEqual(made["compiles"], 1)
        self.assertGreater(made["predicted_bytes"], 0)

    def test_finish_tells_a_full_budget_from_a_full_context(self):
        made = self.answer("run", LLAMA, "--ids", IDS, "-n", 5, "--ignore-end")
        self.assertEqual((made["finish"], len(made["ids"])), ("length", 5))
        made = self.answer("run", LLAMA, "--ids", "1,2,3", "-n", 100, "--ignore-end", "--ctx", 8)
        self.assertEqual(made["finish"], "context")
        # Five places are left, and the last token made needs none.
        self.assertEqual(len(made["ids"]), 6)

    def test_streamed_text_is_the_text_of_the_document(self):
        prompt = ("run", LLAMA, "-p", "a river", "--raw", "-n", 24, "--ignore-end")
        streamed = self.ok(*prompt)
        self.assertEqual(streamed.out.decode(), self.answer(*prompt)["text"] + "\n")
        self.assertEqual(streamed.err, "")

    def test_stats_go_to_stderr(self):
        done = self.ok("run", LLAMA, "--ids", IDS, "-n", 3, "--stats", "--json")
        self.assertEqual(done.json["prompt_ids"][0], 1)
        self.assertIn("tokens/s decode", done.err)

    def test_prompt_from_file_stdin_and_flag_is_the_same(self):
        wanted = self.answer("run", LLAMA, "-p", "of the mill", "--raw", "-n", 1)["prompt_ids"]
        file = self.write("prompt.txt", "of the mill")
        self.assertEqual(self.answer("run", LLAMA, "-f", file, "--raw", "-n", 1)["prompt_ids"], wanted)
        self.assertEqual(self.answer("run", LLAMA, "--raw", "-n", 1, stdin=b"of the mill")["prompt_ids"], wanted)

    def test_stop_text_ends_the_answer_and_is_not_part_of_it(self):
        prompt = ("run", LLAMA, "-p", "a river", "--raw", "-n", 24, "--ignore-end")
        text = self.answer(*prompt)["text"]
        clean = re.search(r"[A-Za-z]{2,}", text[4:])
        self.assertIsNotNone(clean, text)
        stop = clean.group()
        made = self.answer(*prompt, "--stop", stop)
        self.assertEqual((made["text"], made["finish"]), (text[:text.index(stop)], "stop"))

    def test_seed_repeats_and_another_seed_differs(self):
        hot = ("run", LLAMA, "--ids", IDS, "-n", 16, "--temperature", 1.5, "--ignore-end", "--seed")
        first = self.answer(*hot, 7)["ids"]
        self.assertEqual(self.answer(*hot, 7)["ids"], first)
        self.assertNotEqual(self.answer(*hot, 8)["ids"], first)

    def model_folder(self, **generation):
        folder = self.path("model")
        shutil.copytree(os.path.join(DATA, "models", "llama-gqa"), folder)
        self.write("model/generation_config.json", json.dumps(generation))
        return folder

    def test_the_checkpoints_recommendations_count_unless_a_flag_does(self):
        folder = self.model_folder(do_sample=True, temperature=0.7, top_k=20, eos_token_id=[3, 4], max_new_tokens=9)
        made = self.answer("run", folder, "--ids", "1,2,3", "--ignore-end")
        self.assertEqual(len(made["ids"]), 9)
        sampling = made["sampling"]
        self.assertEqual((sampling["temperature"], sampling["top_k"], sampling["end_ids"]), (0.7, 20, [3, 4]))
        self.assertEqual(sampling["from"]["top_k"], "generation_config.json: top_k")
        flags = ("--top-k", 7, "--temperature", 0, "-n", 5, "--ignore-end")
        made = self.answer("run", folder, "--ids", "1,2,3", *flags)
        sampling = made["sampling"]
        self.assertEqual((sampling["temperature"], sampling["top_k"], sampling["max_tokens"]), (0, 7, 5))
        self.assertEqual(sampling["from"]["top_k"], "--top-k")
        done = self.ok("run", folder, "--ids", "1,2,3", "--stats", *flags)
        self.assertIn("sampling: greedy (--temperature), top-k 7 (--top-k), at most 5 tokens (--max-tokens)", done.err)

    def test_an_end_id_of_the_checkpoint_ends(self):
        free = self.answer("run", self.model_folder(), "--ids", "1,2,3", "-n", 8, "--ignore-end")["ids"]
        self.write("model/generation_config.json", json.dumps({"eos_token_id": [511, free[3]]}))
        made = self.answer("run", self.path("model"), "--ids", "1,2,3", "-n", 8)
        self.assertEqual((made["ids"], made["finish"]), (free[:free.index(free[3])], "stop"))

    def test_a_recommendation_that_cannot_be_followed_is_named(self):
        folder = self.model_folder(num_beams=4)
        self.assertIn("num_beams = 4", self.ok("run", folder, "--ids", "1", "-n", 1).err)
        self.fails(5, "run", folder, "--ids", "1", "-n", 1, "--strict", says=("num_beams = 4",))
        self.write("model/generation_config.json", '{"top_p": 7}')
        self.fails_both(3, "run", folder, "--ids", "1", says=("generation_config.json: top_p", "7"), fault="file")

    def test_what_is_left_out_on_purpose_is_one_note(self):
        """Gemma 3 with images: its text model runs, also under --strict."""
        gemma = os.path.join(DATA, "models", "gemma3")
        with open(os.path.join(gemma, "config.json")) as file:
            config = {"model_type": "gemma3", "text_config": json.load(file), "vision_config": {}}
        self.write("config.json", json.dumps(config))
        with open(os.path.join(gemma, "model.safetensors"), "rb") as file:
            data = file.read()
        end = 8 + int.from_bytes(data[:8], "little")
        header = json.loads(data[8:end])
        size = len(data) - end
        wrapped = {name.replace("model.", "language_model.model."): entry for name, entry in header.items()}
        wrapped["vision_tower.weight"] = {"dtype": "BF16", "shape": [4], "data_offsets": [size, size + 8]}
        text = json.dumps(wrapped).encode()
        self.write("model.safetensors", len(text).to_bytes(8, "little") + text + data[end:] + bytes(8))
        done = self.ok("run", self.folder, "--ids", "1,2,3", "-n", "4", "--strict", "--json")
        self.assertEqual(done.json["ids"], self.answer("run", gemma, "--ids", "1,2,3", "-n", "4")["ids"])
        note = "note: 1 tensors that read images were left out"
        self.assertEqual(done.err.count(note), 1, done.err)
        self.assertNotIn("warning", done.err)
        self.assertIn(note, self.ok("plan", self.folder).out.decode())

    def test_raw_leaves_the_chat_template_out(self):
        plain = self.answer("run", LLAMA, "-p", "x", "-n", 1)["prompt_ids"]
        raw = self.answer("run", LLAMA, "-p", "x", "-n", 1, "--raw")["prompt_ids"]
        self.assertGreater(len(plain), len(raw))
        more = self.answer("run", LLAMA, "-p", "x", "-n", 1, "--system", "be brief")["prompt_ids"]
        self.assertGreater(len(more), len(plain))


class PlanTest(CommandTest):
    def test_document(self):
        plan = self.answer("plan", LLAMA)
        self.assertLessEqual(PLAN_FIELDS, set(plan))
        self.assertEqual(plan["static_bytes"] + plan["dynamic_bytes"] + plan["workspace_bytes"], plan["total_bytes"])
        self.assertLessEqual(plan["activation_lower_bound_bytes"], plan["activation_bytes"])

    def test_total_is_what_run_predicts(self):
        for flags in ((), ("--ctx", 64), ("--ctx", 100, "--chunk", 7), ("--threads", 2), ("--level", "O1"), ("--kv", "f32"),
                      ("--threads", 1, "--ctx", 33, "--chunk", 33, "--isa", "portable")):
            for model in (LLAMA, QWEN):
                with self.subTest(flags=flags, model=os.path.basename(model)):
                    plan = self.answer("plan", model, *flags)
                    made = self.answer("run", model, "--ids", IDS, "-n", 2, *flags)
                    self.assertEqual(plan["total_bytes"], made["predicted_bytes"])

    def test_budget_adds_what_fits(self):
        plan = self.answer("plan", LLAMA, "--memory", "16M", "--ctx", 64)
        largest = ("plan", LLAMA, "--ctx", 64, "--batch")
        self.assertLessEqual(self.answer(*largest, plan["max_batch"])["total_bytes"], 16 << 20)
        self.assertGreater(self.answer(*largest, plan["max_batch"] + 1)["total_bytes"], 16 << 20)
        self.assertEqual(plan["max_ctx"], CONTEXT)

    def test_memory_grows_with_batch_and_context(self):
        total = {(b, c): self.answer("plan", LLAMA, "--batch", b, "--ctx", c)["total_bytes"] for b in (1, 4) for c in (64, 256)}
        self.assertLess(total[1, 64], total[4, 64])
        self.assertLess(total[1, 64], total[1, 256])

    def test_headers_are_enough(self):
        """A model of 8 GB whose data is a hole: what read its weights would take seconds."""
        big = self.path("big.gguf")
        size = write_sparse_llama(LLAMA, big)
        self.assertGreater(size, 8 << 30)
        for verb in ("plan", "inspect"):
            done = self.ok(verb, big, "--json")
            if command.limits:
                self.assertLess(done.seconds, 1.0, verb)
                self.assertLess(done.peak_bytes, 256 << 20, verb)
        self.assertGreater(self.answer("plan", big)["static_bytes"], 8 << 30)


class InspectTest(CommandTest):
    def test_document(self):
        seen = self.answer("inspect", LLAMA)
        self.assertEqual(seen["architecture"], "llama")
        self.assertEqual(len(seen["tensors"]), 21)
        for tensor in seen["tensors"]:
            self.assertLessEqual({"name", "dtype", "shape", "bytes"}, set(tensor))
        by_name = {tensor["name"]: tensor for tensor in seen["tensors"]}
        self.assertEqual(sorted(by_name["token_embd.weight"]["shape"]), [256, 512])
        self.assertEqual(by_name["token_embd.weight"]["bytes"], 256 * 512 // 32 * 34)
        self.assertEqual(seen["metadata"]["llama.context_length"], CONTEXT)
        self.assertGreater(seen["parameters"], 1_000_000)
        self.assertIn("token_embd.weight", self.ok("inspect", LLAMA).out.decode())


class ExplainTest(CommandTest):
    def test_document(self):
        seen = self.answer("explain", LLAMA)
        self.assertEqual(set(seen["levels"]), {"O0", "O1", "O2", "O3"})
        for level in seen["levels"].values():
            self.assertLessEqual({"nodes", "launches", "bytes", "activation_bytes"}, set(level))
        self.assertIn("symbols", seen)
        self.assertLess(seen["levels"]["O3"]["launches"], seen["levels"]["O1"]["launches"])
        for row in seen["passes"]:
            self.assertLessEqual(PASS_FIELDS, set(row))

    def test_chain_has_no_gap(self):
        rows = self.answer("explain", LLAMA)["passes"]
        self.assertGreater(len(rows), 5)
        for before, after in zip(rows, rows[1:]):
            for field in CHAIN:
                self.assertEqual(before[f"{field}_after"], after[f"{field}_before"], (before["name"], after["name"], field))

    def test_level_and_context_change_the_numbers(self):
        self.assertLess(len(self.answer("explain", LLAMA, "--level", "O1")["passes"]), len(self.answer("explain", LLAMA)["passes"]))
        small = self.answer("explain", LLAMA, "--tokens", 16, "--ctx", 16)["levels"]["O3"]
        self.assertLess(small["bytes"], self.answer("explain", LLAMA)["levels"]["O3"]["bytes"])

    def test_graph_and_dump_are_text_that_hone_opt_reads(self):
        graph = self.path("graph.ir")
        folder = self.path("dump")
        os.mkdir(folder)
        self.ok("explain", QWEN, "--graph", graph, "--dump", folder)
        files = sorted(os.listdir(folder))
        self.assertGreater(len(files), 5)
        for file in (graph, os.path.join(folder, files[0])):
            done = command.run("hone-opt", file)
            self.assertEqual(done.code, 0, done.err)
            with open(file, "rb") as text:
                self.assertEqual(done.out, text.read())


class TextTest(CommandTest):
    def test_tokenize_there_and_back(self):
        text = "the river\nruns 12 miles, ünïcödé"
        ids = self.answer("tokenize", LLAMA, "-p", text, "--no-special")["ids"]
        self.assertEqual(json.loads(self.ok("tokenize", LLAMA, "-p", text, "--no-special").out), ids)
        back = self.answer("tokenize", LLAMA, "--decode", "--ids", ",".join(map(str, ids)))
        self.assertEqual(back["text"], text)
        self.assertEqual(self.answer("tokenize", LLAMA, "-f", self.write("t", text), "--no-special")["ids"], ids)

    def test_tokenize_lines(self):
        lines = self.write("lines.jsonl", '{"text": "a river"}\n\n{"text": ""}\n{"ids": [72, 105]}\n')
        out = self.ok("tokenize", LLAMA, "--jsonl", lines, "--no-special").out.decode().splitlines()
        self.assertEqual([list(json.loads(line)) for line in out], [["ids"], ["ids"], ["text"]])
        self.assertEqual(json.loads(out[0])["ids"], self.answer("tokenize", LLAMA, "-p", "a river", "--no-special")["ids"])

    def test_special_tokens_are_added_unless_told(self):
        base = Gguf(LLAMA)
        model = self.write("bos.gguf", base.patched(base.keys["tokenizer.ggml.add_bos_token"].value_at, "?", True))
        bare = self.answer("tokenize", model, "-p", "a", "--no-special")["ids"]
        (begin,) = struct.unpack_from("<I", base.data, base.keys["tokenizer.ggml.bos_token_id"].value_at)
        self.assertEqual(self.answer("tokenize", model, "-p", "a")["ids"], [begin, *bare])

    def test_render(self):
        messages = self.write("m.json", json.dumps({"messages": [{"role": "user", "content": "hi <b>"}]}))
        text = self.answer("render", LLAMA, "--messages", messages)["text"]
        self.assertIn("<|im_start|>user\nhi <b><|im_end|>", text)
        self.assertEqual(self.ok("render", LLAMA, "--messages", messages).out.decode(), text)
        longer = self.answer("render", LLAMA, "--messages", messages, "--add-generation-prompt")["text"]
        self.assertEqual(longer, text + "<|im_start|>assistant\n")

    def test_template(self):
        template = self.write("t.jinja", "{% for x in xs %}[{{ x }}]{% endfor %}{{ name | upper }}")
        context = self.write("c.json", '{"xs": [1, "zwei"], "name": "eve"}')
        self.assertEqual(self.answer("template", template, "--context", context)["text"], "[1][zwei]EVE")

    def test_render_set(self):
        messages = self.write("m.json", '{"messages": [{"role": "user", "content": "x"}]}')
        self.ok("render", LLAMA, "--messages", messages, "--set", "enable_thinking=false", "--set", 'a={"b": [1]}')


class PerplexityTest(CommandTest):
    def test_document(self):
        seen = self.answer("perplexity", LLAMA, "--ids", IDS)
        self.assertEqual(seen["tokens"], len(IDS.split(",")) - 1)
        self.assertAlmostEqual(seen["nll_sum"] / seen["tokens"], seen["nll_mean"], places=9)
        self.assertGreater(seen["nll_sum"], 0)

    def test_chunks_change_nothing(self):
        values = {self.answer("perplexity", LLAMA_Q4, "--ids", IDS, "--chunk", chunk)["nll_sum"] for chunk in (1, 3, 512)}
        self.assertEqual(len(values), 1)

    def test_text_of_a_file(self):
        text = self.write("text.txt", "the river runs to the mill, and the mill to the river")
        count = len(self.answer("tokenize", LLAMA, "-f", text)["ids"])
        self.assertEqual(self.answer("perplexity", LLAMA, "-f", text)["tokens"], count - 1)


class BenchTest(CommandTest):
    def test_document(self):
        seen = self.answer("bench", LLAMA, "-p", 16, "-n", 4, "-r", 1)
        self.assertLessEqual({"prefill_tokens_per_s", "decode_tokens_per_s", "prefill_of_peak", "decode_of_bandwidth", "peaks"},
                             set(seen))
        self.assertGreater(seen["decode_tokens_per_s"], 0)
        peaks = seen["peaks"]
        self.assertLessEqual({"read_bytes_per_s", "read_working_set_bytes_per_s", "working_set_bytes", "fma_flops_per_s",
                              "bf16_flops_per_s", "int8_ops_per_s", "amx_bf16_flops_per_s", "amx_int8_ops_per_s"}, set(peaks))
        self.assertEqual(peaks["bf16_flops_per_s"] is None, seen["isa"] not in ("avx512", "amx"))
        self.tiles_are_measured(seen["isa"], peaks)
        # What a step reads is what the rate was measured over, in whole pieces of 1 MiB.
        self.assertAlmostEqual(peaks["working_set_bytes"], seen["decode_bytes"], delta=1 << 20)
        text = self.ok("bench", LLAMA, "-p", 16, "-n", 4, "-r", 1).out.decode()
        self.assertIn("peak of this machine", text)
        self.assertRegex(text, r"\nAMX bf16 +(\d+ GFLOP/s|refused|not on this (machine|level))")
        self.assertRegex(text, r"\nAMX int8 +(\d+ GOP/s|refused|not on this (machine|level))")

    def tiles_are_measured(self, isa, peaks):
        doctor = self.answer("doctor", "--no-peaks")
        both = {"amx_bf16", "amx_int8"} <= set(doctor["features"])
        measured = both and doctor["amx"] == "granted" and isa not in ("portable", "avx2")
        for key in ("amx_bf16_flops_per_s", "amx_int8_ops_per_s"):
            self.assertEqual(peaks[key] is not None, measured, key)
        if measured:
            # A tile's product is 16 x 16 x 64 in 16 cycles, eight times two VPDPBUSD of 64 in a cycle, at a clock that may be lower;
            # in virtual machines it was half of that for seconds at a time.
            self.assertGreater(peaks["amx_int8_ops_per_s"], 2 * peaks["int8_ops_per_s"])
            self.assertGreater(peaks["amx_bf16_flops_per_s"], 2 * peaks["bf16_flops_per_s"])

    def test_steps_of_several_sequences_at_once(self):
        flags = ("-p", 16, "-n", 2, "-r", 1)
        seen = self.answer("bench", LLAMA, "--batch", "1,3", *flags)["batch"]
        self.assertEqual([row["sequences"] for row in seen], [1, 3])
        self.assertEqual(seen[0]["of_first"], 1)
        self.assertAlmostEqual(seen[1]["tokens_per_s"] * seen[1]["step_s"], 3, places=6)
        for text in ("0", "1,", "1,,2", "two", "-1", "1;2", str(2**64)):
            self.assertEqual(self.fails_both(2, "bench", LLAMA, "--batch", text)["where"], "--batch")

    def test_a_random_model_has_a_vocabulary_and_the_types_asked_for(self):
        path = self.path("random.gguf")
        self.ok("bench", "--shape", "tiny", "--type", "q4_0", "--output-type", "q8_0", "--save", path, "-p", 4, "-n", 1, "-r", 1)
        types = {tensor["name"]: tensor["dtype"] for tensor in self.answer("inspect", path)["tensors"]}
        self.assertEqual((types["output.weight"], types["blk.0.ffn_up.weight"]), ("q8_0", "q4_0"))
        self.assertEqual(len(self.answer("run", path, "-p", "any text", "-n", 3, "--raw")["ids"]), 3)


class LogitsTest(CommandTest):
    def logits(self, *flags, model=LLAMA, ids=IDS):
        out = self.path("out.safetensors")
        answer = self.answer("logits", model, "--ids", ids, "--out", out, *flags)
        self.assertEqual(answer["tokens"], len(ids.split(",")))
        self.assertGreaterEqual(answer["seconds"], 0)
        return command.safetensors(out)

    def test_shapes(self):
        count = len(IDS.split(","))
        self.assertEqual(self.logits()["logits"][0], [count, VOCABULARY])
        self.assertEqual(self.logits("--last")["logits"][0], [1, VOCABULARY])
        hidden = self.logits("--hidden", "--chunk", 4)
        self.assertEqual(set(hidden), {"logits", "hidden_embed", "hidden_0", "hidden_1", "hidden_norm"})
        for name, (shape, _) in hidden.items():
            self.assertEqual(shape, [count, VOCABULARY if name == "logits" else 256], name)

    def test_last_is_the_last_row(self):
        self.assertEqual(self.logits("--last")["logits"][1], self.logits()["logits"][1][-VOCABULARY:])

    def test_hidden_states_beside_the_last_logits_alone(self):
        rows = {name: shape[0] for name, (shape, _) in self.logits("--hidden", "--last", "--chunk", 4).items()}
        count = len(IDS.split(","))
        self.assertEqual(rows, {"logits": 1, "hidden_norm": 1, "hidden_embed": count, "hidden_0": count, "hidden_1": count})

    def test_all_ids_are_one_text_where_keys_depend_on_its_length(self):
        model = os.path.join(command.DATA, "models", "llama-rope-dynamic")
        ids = ",".join(str(7 * i) for i in range(18))
        whole = self.logits("--ctx", 24, model=model, ids=ids)["logits"][1]
        for a, b in zip(self.logits("--ctx", 24, "--chunk", 5, model=model, ids=ids)["logits"][1], whole):
            self.assertAlmostEqual(a, b, places=4)

    def test_same_bits_whatever_shares_the_step(self):
        for model in (LLAMA, LLAMA_Q4, QWEN):
            alone = self.logits(model=model)["logits"][1]
            for flags in (("--chunk", 1), ("--chunk", 4), ("--threads", 1), ("--batch-with", "4,5;6,7,8,9,10"),
                          ("--batch-with", ",".join(["3"] * 40), "--chunk", 5), ("--ctx", 64)):
                with self.subTest(model=os.path.basename(model), flags=flags):
                    self.assertEqual(self.logits(*flags, model=model)["logits"][1], alone)


if __name__ == "__main__":
    command.main()
