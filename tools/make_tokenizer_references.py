#!/usr/bin/env python3
"""Small reference cases for the steps of tokenizer.json, made with the `tokenizers` library (PyPI, 0.23).

    tools/make_tokenizer_references.py OUT

OUT becomes one JSON object: `models` has two small vocabularies, `cases` has for each tokenizer.json without its
model (`config`, `model` names the vocabulary) the texts with `ids` (no special tokens added), `ids_special`,
`decoded` and `decoded_skip`; the last three are absent when equal to the one before (`decoded`: to the text).
"""

import json
import random
import sys

import tokenizers

GPT4O = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
         r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
         r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|"
          r"\s+(?!\S)|\s+")

TEXTS = [
    "", " ", "  ", "a", " a", "a ", "Hello, World! It's 2024; that'll be 12345 kg.", "  two  blanks\n\n\tand tabs \n",
    "don't DON'T it's IT'S we'LL", "CamelCase HTTPServer fooBar XMLHttpRequest", "1 22 333 4444 55555 x1y22z333",
    "naïve café CAFÉ e\u0301 A\u030a \u212b ﬁ ½ ① Ⅷ", "ǅ ß ẞ İ ı Σας", "中文字符，测试。 日本語のテキスト 한국어 텍스트",
    "<s>begin</s> <mask> x<mask>y  <mask>  z", "a<mask>b <word> word <word>x x<word> <word>.", "<sp>  <sp>\n<sp>x",
    "low lower lowest newer new", "moon Moon MOON honeymoon", "▁low ▁ x", " ▁x▁ y", "price: $5.00 (50%) [a-b] {c}_d __x__ @home #tag",
    "😀 👨‍👩‍👧 🇩🇪 a\u200db \u00a0x\u3000y\u2003z", "a\u0300\u0316b\u0316\u0300c", "\r\n\r\n x\r\ny \r\n", "٣٤٥ ௧௨ ২০ x²y³",
    "the The THE the", "tab\tseparated\tvalues", "!!! ... ???!?!", "e\u0301" * 3 + " " * 5 + "end", "user: <|x|> ok",
]


def byte_letters():
    own = list(range(0x21, 0x7F)) + list(range(0xA1, 0xAD)) + list(range(0xAE, 0x100))
    letters, other = {}, 0x100
    for byte in range(256):
        if byte in own:
            letters[byte] = chr(byte)
        else:
            letters[byte] = chr(other)
            other += 1
    return letters


WORDS = ["low", "lower", "new", "newer", "the", "Hello", "World", "that", "text", "blank", "it", "and", "begin", "word", "12", "22",
         "ll", "it's", "Server", "中文", "日本"]


def train(pieces):
    """Merges for every prefix of each word, as pairs, and the vocabulary they need."""
    vocab, merges = list(dict.fromkeys(piece for word in pieces for piece in word)), []
    for word in pieces:
        left = word[0]
        for right in word[1:]:
            if (left, right) not in merges:
                merges.append((left, right))
            left += right
            if left not in vocab:
                vocab.append(left)
    return vocab, merges


def byte_model():
    letters = byte_letters()
    pieces = [[letters[b] for b in text.encode()] for word in WORDS for text in (word, " " + word)] + [[letters[32]] * 4]
    learned, merges = train(pieces)
    vocab = list(letters.values()) + [token for token in learned if token not in letters.values()]
    random.Random(1).shuffle(merges)
    return {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None,
            "fuse_unk": False, "byte_fallback": False, "ignore_merges": False,
            "vocab": {token: i for i, token in enumerate(vocab)}, "merges": [list(m) for m in merges]}


def character_model():
    pieces = [list(text) for word in WORDS for text in (word, "▁" + word)] + [["▁"] * 4, list(" abcdefghijklmnopqrstuvwxyz.,!")]
    learned, merges = train(pieces[:-1])
    vocab = ["<unk>"] + [f"<0x{b:02X}>" for b in range(256)] + list(dict.fromkeys(learned + pieces[-1]))
    return {"type": "BPE", "dropout": None, "unk_token": "<unk>", "continuing_subword_prefix": None, "end_of_word_suffix": None,
            "fuse_unk": True, "byte_fallback": True, "ignore_merges": False,
            "vocab": {token: i for i, token in enumerate(vocab)}, "merges": [list(m) for m in merges]}


def added(content, position, **flags):
    return {"id": position, "content": content, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
            "special": False, **flags}


def split(expression, behavior="Isolated", invert=False, kind="Regex"):
    return {"type": "Split", "pattern": {kind: expression}, "behavior": behavior, "invert": invert}


def byte_level(**flags):
    return {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False, **flags}


def sequence(name, *steps):
    return {"type": "Sequence", name: list(steps)}


def pre(*steps):
    return sequence("pretokenizers", *steps)


def metaspace(scheme, with_split=True):
    return {"type": "Metaspace", "replacement": "▁", "prepend_scheme": scheme, "split": with_split}


def configs():
    bytes_, chars = "bytes", "characters"
    decoder = byte_level(add_prefix_space=True, use_regex=True)
    yield "gpt2", bytes_, {"pre_tokenizer": byte_level(use_regex=True), "decoder": decoder}
    yield "prefix space", bytes_, {"pre_tokenizer": byte_level(use_regex=True, add_prefix_space=True), "decoder": decoder}
    yield "llama3", bytes_, {"pre_tokenizer": pre(split(LLAMA3), byte_level()), "decoder": decoder}
    yield "gpt4o", bytes_, {"pre_tokenizer": pre(split(GPT4O), byte_level()), "decoder": decoder}
    for each in (True, False):
        yield f"digits {each}", bytes_, {
            "pre_tokenizer": pre({"type": "Digits", "individual_digits": each}, byte_level(use_regex=True)), "decoder": decoder}
    for behavior in ("Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"):
        for invert in (False, True):
            yield f"split {behavior} {invert}", bytes_, {
                "pre_tokenizer": pre(split(r"[aeiou ]", behavior, invert), byte_level()), "decoder": decoder}
    yield "split text", bytes_, {"pre_tokenizer": pre(split("we", kind="String"), byte_level()), "decoder": decoder}
    yield "split empty matches", bytes_, {"pre_tokenizer": pre(split(r"(?=[A-Z])|x*"), byte_level()), "decoder": decoder}
    yield "falcon", bytes_, {
        "pre_tokenizer": pre({"type": "Punctuation", "behavior": "Contiguous"}, byte_level(use_regex=True),
                             {"type": "Digits", "individual_digits": False}, split("[0-9][0-9][0-9]")), "decoder": decoder}
    yield "whitespace", bytes_, {"pre_tokenizer": pre({"type": "Whitespace"}, byte_level()), "decoder": decoder}
    yield "whitespace split", bytes_, {"pre_tokenizer": pre({"type": "WhitespaceSplit"}, byte_level()), "decoder": decoder}
    yield "no pre-tokenizer", chars, {"pre_tokenizer": None, "decoder": sequence("decoders", {"type": "Fuse"})}
    for kind in ("NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents"):
        yield kind, bytes_, {"normalizer": {"type": kind}, "pre_tokenizer": byte_level(use_regex=True), "decoder": decoder}
    for left, right in ((True, False), (False, True), (True, True)):
        yield f"strip {left} {right}", bytes_, {
            "normalizer": {"type": "Strip", "strip_left": left, "strip_right": right},
            "pre_tokenizer": byte_level(use_regex=True), "decoder": decoder}
    yield "normalizers", bytes_, {
        "normalizer": sequence("normalizers", {"type": "NFD"}, {"type": "StripAccents"}, {"type": "Lowercase"},
                               {"type": "Replace", "pattern": {"Regex": r"\s{2,}"}, "content": " "},
                               {"type": "Replace", "pattern": {"String": "ss"}, "content": "ß"},
                               {"type": "Prepend", "prepend": "x "}),
        "pre_tokenizer": byte_level(use_regex=True), "decoder": decoder}
    for scheme in ("always", "first", "never"):
        for with_split in (True, False):
            yield f"metaspace {scheme} {with_split}", chars, {
                "pre_tokenizer": metaspace(scheme, with_split), "decoder": metaspace(scheme, with_split)}
    yield "llama", chars, {
        "normalizer": sequence("normalizers", {"type": "Prepend", "prepend": "▁"},
                               {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}),
        "decoder": sequence("decoders", {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, {"type": "ByteFallback"},
                            {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}),
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
                       {"SpecialToken": {"id": "</s>", "type_id": 0}}],
            "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 0}}],
            "special_tokens": {"<s>": {"id": "<s>", "ids": ["<s>"], "tokens": ["<s>"]},
                               "</s>": {"id": "</s>", "ids": ["</s>"], "tokens": ["</s>"]}}}}
    # The library decodes such a token to its normalised content, hone to the content.
    yield "added in lower case", bytes_, {
        "normalizer": {"type": "Lowercase"}, "pre_tokenizer": byte_level(use_regex=True), "decoder": decoder,
        "ids_only": True, "more_added": [("THE", {"normalized": True}), ("Moon", {"normalized": True, "single_word": True}), ("LOW", {})]}
    yield "ignore merges", bytes_, {"pre_tokenizer": byte_level(use_regex=True), "decoder": decoder, "ignore_merges": True}


def build(models, model_name, config):
    config = dict(config)
    model = dict(models[model_name])
    count = len(model["vocab"])
    tokens = [("<s>", {"special": True}), ("</s>", {"special": True}), ("<mask>", {"special": True, "lstrip": True}),
              ("<sp>", {"rstrip": True}), ("<word>", {"single_word": True}), ("<|x|>", {}), ("<|x", {})]
    tokens += config.pop("more_added", [])
    whole = {"version": "1.0", "truncation": None, "padding": None,
             "added_tokens": [added(text, count + i, **flags) for i, (text, flags) in enumerate(tokens)],
             "normalizer": None, "pre_tokenizer": None, "post_processor": None, "decoder": None}
    if "ignore_merges" in config:
        model["ignore_merges"] = config.pop("ignore_merges")
        whole["ignore_merges"] = True
    whole["ids_only"] = config.pop("ids_only", False)
    whole.update(config)
    ids = {token["content"]: token["id"] for token in whole["added_tokens"]}
    if whole["post_processor"]:
        for token in whole["post_processor"]["special_tokens"].values():
            token["ids"] = [ids[name] for name in token["ids"]]
    return whole, model


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    models = {"bytes": byte_model(), "characters": character_model()}
    cases = []
    for name, model_name, config in configs():
        whole, model = build(models, model_name, config)
        tokenizer = tokenizers.Tokenizer.from_str(json.dumps({k: v for k, v in whole.items() if k not in ("ignore_merges", "ids_only")} | {"model": model}))
        texts = []
        for text in TEXTS:
            case = {"text": text, "ids": tokenizer.encode(text, add_special_tokens=False).ids}
            special = tokenizer.encode(text, add_special_tokens=True).ids
            decoded = tokenizer.decode(case["ids"], skip_special_tokens=False)
            skipped = tokenizer.decode(case["ids"], skip_special_tokens=True)
            if special != case["ids"]:
                case["ids_special"] = special
            if decoded != text:
                case["decoded"] = decoded
            if skipped != decoded:
                case["decoded_skip"] = skipped
            texts.append(case)
        cases.append({"name": name, "model": model_name, "ids_only": whole.pop("ids_only"), "config": whole, "texts": texts})
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        json.dump({"tokenizers": tokenizers.__version__, "models": models, "cases": cases}, file, ensure_ascii=False,
                  separators=(",", ":"))
        file.write("\n")
    print(f"{len(cases)} tokenizers, {len(TEXTS)} texts each")


if __name__ == "__main__":
    main()
