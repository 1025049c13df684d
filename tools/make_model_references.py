#!/usr/bin/env python3
"""Tiny random checkpoints of families for which nobody publishes one, with the numbers that transformers computes for them.

    pip install torch transformers safetensors gguf numpy
    tools/make_model_references.py OUT [NAME ...]

Writes OUT/NAME/{config.json, config_v5.json, model.safetensors, expected.safetensors, meta.json}, and OUT/NAME.gguf where llama.cpp
has the architecture, with its tensor names and conventions. Committed with what it wrote, in tests/data/models; no test runs it.

Everything is computed in float64 throughout. Casting a model is not enough: RMSNorm, softmax, the rotary table and the scale of
embeddings ask for float32 inside. Float64Mode turns every such request into float64, and fails if a float32 value appears all the
same. Weights are rounded to bfloat16 first: config.json's folder stores them so, the GGUF file stores the same numbers as f32.

expected.safetensors holds, as in the other folders of tests/data/models: input_ids i64 [2,17] (the shorter row filled with 0), lengths,
logits_0, logits_1, hidden_embed, hidden_0 .., hidden_norm (row 0), and per row greedy_i and margin_i: 16 tokens by arg max, the whole
sequence computed anew at each step, and the largest logit minus the second. Where the rotary table depends on the length:
greedy_cached_0 and margin_cached_0, with transformers' cache.
"""

import argparse
import json
import pathlib
import zlib

import gguf
import numpy as np
import torch
import transformers
from safetensors.numpy import save_file as save_numpy
from safetensors.torch import save_file as save_torch
from torch.overrides import TorchFunctionMode

LENGTHS = (17, 9)
STEPS = 16


class Float64Mode(TorchFunctionMode):
    """Replaces every request for float32 by float64."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        def widened(value):
            return torch.float64 if value is torch.float32 else value

        if func is torch.Tensor.float:
            func = torch.Tensor.double
        out = func(*map(widened, args), **{key: widened(value) for key, value in (kwargs or {}).items()})
        if isinstance(out, torch.Tensor) and out.dtype in (torch.float32, torch.float16, torch.bfloat16):
            raise AssertionError(f"{func} computed in {out.dtype}")
        return out


COMMON = dict(vocab_size=96, hidden_size=32, intermediate_size=48, num_attention_heads=4, num_key_value_heads=2,
              max_position_embeddings=64, rms_norm_eps=2e-3, attention_dropout=0.0, pad_token_id=0, bos_token_id=1, eos_token_id=2)
DEFAULT_ROPE = {"rope_type": "default", "rope_theta": 10000.0}

# Name: seed, class, configuration, GGUF architecture ("": none).
MODELS = {
    "mistral": (201, "Mistral", dict(num_hidden_layers=2, head_dim=8, sliding_window=5, rope_parameters=DEFAULT_ROPE), ""),
    "qwen2-window": (202, "Qwen2", dict(num_hidden_layers=3, use_sliding_window=True, sliding_window=5, max_window_layers=1,
                                        rope_parameters=DEFAULT_ROPE), ""),
    "glm4": (203, "Glm4", dict(num_hidden_layers=2, head_dim=16, attention_bias=True,
                               rope_parameters=dict(DEFAULT_ROPE, partial_rotary_factor=0.5)), "glm4"),
    "glm": (204, "Glm", dict(num_hidden_layers=2, head_dim=16, attention_bias=True,
                             rope_parameters=dict(DEFAULT_ROPE, partial_rotary_factor=0.5)), ""),
    "phi3": (205, "Phi3", dict(num_hidden_layers=2, sliding_window=6, rope_parameters=DEFAULT_ROPE), ""),
    # Row 0 is past the original context from its first step on, row 1 from its third.
    "phi3-longrope": (206, "Phi3", dict(
        num_hidden_layers=2, hidden_size=32, original_max_position_embeddings=12,
        rope_parameters=dict(rope_type="longrope", rope_theta=10000.0, partial_rotary_factor=0.75,
                             short_factor=[1.0, 1.25, 1.5], long_factor=[1.5, 3.0, 5.0])), "phi3"),
    "gemma2": (207, "Gemma2", dict(num_hidden_layers=3, head_dim=16, query_pre_attn_scalar=16, sliding_window=5, attn_logit_softcapping=2.0,
                                   final_logit_softcapping=6.0, rope_parameters=DEFAULT_ROPE), "gemma2"),
    # GGUF has no key for a scale other than 1/sqrt(head_dim).
    "gemma2-scalar": (210, "Gemma2", dict(num_hidden_layers=2, head_dim=16, query_pre_attn_scalar=24, sliding_window=5,
                                          attn_logit_softcapping=None, final_logit_softcapping=None, rope_parameters=DEFAULT_ROPE), ""),
    "gemma3": (208, "Gemma3Text", dict(
        num_hidden_layers=7, hidden_size=32, intermediate_size=32, head_dim=8, num_key_value_heads=1, query_pre_attn_scalar=8, sliding_window=5,
        rope_parameters={"sliding_attention": {"rope_type": "default", "rope_theta": 100.0},
                         "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 10000.0}}), "gemma3"),
    "olmo2": (209, "Olmo2", dict(num_hidden_layers=2, rope_parameters=DEFAULT_ROPE), "olmo2"),
}


def draw(seed, name, shape):
    """Weights rounded to bfloat16: matrices of deviation 1/sqrt(K) or a little above, norms around 1, biases that matter."""
    rng = np.random.Generator(np.random.PCG64([seed, zlib.crc32(name.encode())]))
    values = rng.standard_normal(shape)
    if name.endswith("bias"):
        values = 0.5 * values
    elif len(shape) == 1:
        values = 0.25 * values + (0.0 if seed in (207, 208, 210) else 1.0)  # Gemma's norms multiply by 1 + w
    elif "embed_tokens" in name or "lm_head" in name:
        values = values * (0.6 if "embed_tokens" in name else 0.45)
    else:
        values = values * 1.4 / np.sqrt(shape[-1])
    return torch.from_numpy(values).to(torch.bfloat16)


def build(seed, kind, config):
    config_class = getattr(transformers, f"{kind}Config")
    model_class = getattr(transformers, f"{kind.removesuffix('Text')}ForCausalLM")
    configuration = config_class(**{**COMMON, **config})
    configuration._attn_implementation = "eager"
    torch.set_default_dtype(torch.float64)
    with Float64Mode(), torch.no_grad():
        model = model_class(configuration).double().eval()
    torch.set_default_dtype(torch.float32)
    weights = {name: draw(seed, name, tuple(parameter.shape)) for name, parameter in model.named_parameters()}
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(weights[name].double())
    return model, configuration, weights


def run(model, ids):
    with Float64Mode(), torch.no_grad():
        out = model(torch.tensor([ids]), output_hidden_states=True, use_cache=False)
    return out.logits[0].numpy(), [h[0].numpy() for h in out.hidden_states]


def greedy(fresh, ids):
    tokens, margins = [], []
    for _ in range(STEPS):
        last = np.sort(run(fresh(), ids + tokens)[0][-1])
        margins.append(last[-1] - last[-2])
        tokens.append(int(np.argmax(run(fresh(), ids + tokens)[0][-1])))
    return np.array(tokens, np.int64), np.array(margins, np.float32)


def greedy_cached(model, ids):
    tokens, margins, past, feed = [], [], None, ids
    for _ in range(STEPS):
        with Float64Mode(), torch.no_grad():
            out = model(torch.tensor([feed]), past_key_values=past, use_cache=True)
        past, last = out.past_key_values, out.logits[0, -1].numpy()
        order = np.sort(last)
        margins.append(order[-1] - order[-2])
        tokens.append(int(np.argmax(last)))
        feed = [tokens[-1]]
    return np.array(tokens, np.int64), np.array(margins, np.float32)


def hidden_after_last_layer(model, ids):
    """The last entry of hidden_states is after the final norm; what the last layer gives is caught where it leaves."""
    caught = []
    handle = model.model.layers[-1].register_forward_hook(lambda _module, _inputs, out: caught.append(out[0] if isinstance(out, tuple) else out))
    run(model, ids)
    handle.remove()
    return caught[0].reshape(len(ids), -1).numpy()


def old_form(config):
    """config.json as transformers 4 wrote it: rope_theta, rope_scaling, torch_dtype."""
    old = {key: value for key, value in config.items() if key not in ("rope_parameters", "dtype", "layer_types")}
    old["torch_dtype"] = config["dtype"]
    rope = config["rope_parameters"]
    if "full_attention" in rope:
        old["rope_theta"] = rope["full_attention"]["rope_theta"]
        old["rope_local_base_freq"] = rope["sliding_attention"]["rope_theta"]
        old["sliding_window_pattern"] = 6
        rope = rope["full_attention"]
    old["rope_theta"] = rope["rope_theta"]
    if "partial_rotary_factor" in rope:
        old["partial_rotary_factor"] = rope["partial_rotary_factor"]
    scaling = {key: value for key, value in rope.items()
               if key not in ("rope_theta", "partial_rotary_factor", "original_max_position_embeddings")}
    old["rope_scaling"] = None if rope["rope_type"] == "default" else scaling
    return old


# Hugging Face's names to llama.cpp's (gguf-py has them per architecture).
def write_gguf(path, architecture, config, weights):
    arch = next(a for a, name in gguf.MODEL_ARCH_NAMES.items() if name == architecture)
    names = gguf.get_tensor_name_map(arch, config["num_hidden_layers"])
    writer = gguf.GGUFWriter(path, architecture)
    head_dim = config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]
    rope = config["rope_parameters"]
    main = rope.get("full_attention", rope)
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_rope_freq_base(main["rope_theta"])
    rotary = int(head_dim * main.get("partial_rotary_factor", 1.0))
    if architecture in ("gemma2", "gemma3"):
        writer.add_key_length(head_dim)
        writer.add_value_length(head_dim)
        writer.add_sliding_window(config["sliding_window"])
    else:
        writer.add_rope_dimension_count(rotary)
    if architecture == "gemma2":
        writer.add_attn_logit_softcapping(config["attn_logit_softcapping"])
        writer.add_final_logit_softcapping(config["final_logit_softcapping"])
    if architecture == "glm4":
        writer.add_key_length(head_dim)
    if main["rope_type"] == "linear":
        writer.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
        writer.add_rope_scaling_factor(main["factor"])
    if "sliding_attention" in rope:
        writer.add_float32(f"{architecture}.rope.freq_base_swa", rope["sliding_attention"]["rope_theta"])
    if main["rope_type"] == "longrope":
        original = main["original_max_position_embeddings"]
        scale = config["max_position_embeddings"] / original
        writer.add_rope_scaling_orig_ctx_len(original)
        writer.add_rope_scaling_attn_factors(float(np.sqrt(1 + np.log(scale) / np.log(original))))
        writer.add_tensor("rope_factors_long.weight", np.array(main["long_factor"], np.float32))
        writer.add_tensor("rope_factors_short.weight", np.array(main["short_factor"], np.float32))
    for name, value in weights.items():
        values = value.float().numpy()
        if architecture.startswith("gemma") and name.endswith("norm.weight"):
            values = values + np.float32(1)
        writer.add_tensor(names.get_name(name, try_suffixes=(".weight", ".bias")), values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def make(out, name):
    seed, kind, config, architecture = MODELS[name]
    model, configuration, weights = build(seed, kind, config)

    def fresh():
        return build(seed, kind, config)[0] if "longrope" in name else model

    rng = np.random.Generator(np.random.PCG64([seed, 1]))
    rows = [rng.integers(3, configuration.vocab_size, length).tolist() for length in LENGTHS]
    tensors = {"input_ids": np.array([row + [0] * (LENGTHS[0] - len(row)) for row in rows], np.int64),
               "lengths": np.array(LENGTHS, np.int64)}
    for i, ids in enumerate(rows):
        logits, hidden = run(fresh(), ids)
        tensors[f"logits_{i}"] = logits.astype(np.float32)
        tensors[f"greedy_{i}"], tensors[f"margin_{i}"] = greedy(fresh, ids)
        if i == 0:
            tensors["hidden_embed"] = hidden[0].astype(np.float32)
            for layer, value in enumerate(hidden[1:-1] + [hidden_after_last_layer(fresh(), ids)]):
                tensors[f"hidden_{layer}"] = value.astype(np.float32)
            tensors["hidden_norm"] = hidden[-1].astype(np.float32)
    if "longrope" in name:
        for i, ids in enumerate(rows):
            tensors[f"greedy_cached_{i}"], tensors[f"margin_cached_{i}"] = greedy_cached(fresh(), ids)
    folder = out / name
    folder.mkdir(parents=True, exist_ok=True)
    save_numpy(tensors, folder / "expected.safetensors")
    tied = configuration.tie_word_embeddings
    save_torch({key: value.contiguous() for key, value in weights.items() if not (tied and key == "lm_head.weight")},
               folder / "model.safetensors")
    configuration.dtype = "bfloat16"
    new = json.loads(configuration.to_json_string(use_diff=True))
    new["architectures"] = [type(model).__name__]
    (folder / "config_v5.json").write_text(json.dumps(new, indent=2, sort_keys=True) + "\n")
    (folder / "config.json").write_text(json.dumps(old_form(new), indent=2, sort_keys=True) + "\n")
    full = json.loads(configuration.to_json_string(use_diff=False))
    if architecture:
        write_gguf(folder / f"{name}.gguf", architecture, full, weights)
    meta = {"name": name, "seed": seed, "reference": f"transformers {transformers.__version__} {type(model).__name__}, float64 throughout",
            "logits_max_abs": round(float(max(np.abs(tensors["logits_0"]).max(), np.abs(tensors["logits_1"]).max())), 4),
            "margin_min": round(float(min(tensors["margin_0"].min(), tensors["margin_1"].min())), 5)}
    (folder / "meta.json").write_text(json.dumps(meta, indent=2) + "\n")
    print(name, meta, sum(f.stat().st_size for f in folder.iterdir()))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    for name in options.names or MODELS:
        make(options.out, name)


if __name__ == "__main__":
    main()
