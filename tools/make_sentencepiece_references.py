#!/usr/bin/env python3
"""Small SentencePiece models of every kind, and what the sentencepiece library makes of texts with them.

    make_sentencepiece_references.py OUT      # sentencepiece, protobuf and gguf must be installed

Trains on tests/data/smollm2/essay.txt and tests/data/tokenizer/corpus.jsonl. Writes for each model OUT/NAME.model,
OUT/NAME.jsonl with {"ids", "text"} for each text of the corpus and then of EXTRA below ("text" is what the ids decode
to), and OUT/NAME.gguf, a vocabulary without tensors as convert_hf_to_gguf.py writes it, for the kinds that GGUF has.
"""
import json
import sys
from pathlib import Path

import gguf
import sentencepiece as spm
from sentencepiece import sentencepiece_model_pb2 as pb

DATA = Path(__file__).resolve().parent.parent / "tests" / "data"
SPACE = "\u2581"

EXTRA = [
    "  two  blanks   three ", "\n\n\nlines\n", "a\tb", " ", "    ", "", "\u2581", "a\u2581b", "\u2581\u2581 \u2581",
    "x\u3000y\u00a0z", "  \u3000 ", "\uff21\uff22\uff23 \uff11\uff12\uff13 \u2460\u2461", "\ufb01\ufb02 \u01c4 \u1e9b\u0323",
    "e\u0301e\u0300 A\u030a \u0041\u0301", "\u30ab\u3099\u30d5\u309a \uff76\uff9e", "\uac00\u1100\u1161", "\u200bzero\u200dwidth\ufeff",
    "STRASSE Stra\u00dfe \u0130I\u0131i", "<turn>user<end>\n<turn>", "a<turn>b<turn> c <turn>", "<s>x</s><unk><pad>", "<0x41><0xFF>",
    "1234567890 12.5e-3 007", "\U0001f600\U0001f468\u200d\U0001f469\u200d\U0001f467 \U0001f1e9\U0001f1ea", "\u5de5\u4f5c\u5f88\u6109\u5feb\u3002",
    "the the the the", "thethethethe", "qqqqqqqqqqqqqqqq", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "\ufffd\ufffe", "\u0000\u0001\u001f\u007f",
    "caf\u00e9 cafe\u0301", " leading", "trailing ", "in\u00a0between", "a  b", "a   b", "\n  x\n\n  y\n\n\n  z", "\u2122\u00bd\u00b2\u338f",
    "end of a sentence. Start of the next one, which is longer.", "river mill water wheel " * 20,
]

# Options of SentencePieceTrainer beside the input.
BASE = {"hard_vocab_limit": False, "num_threads": 1, "minloglevel": 2, "input_sentence_size": 0,
        "character_coverage": 0.98}
MODELS = {
    "bpe-llama": {"model_type": "bpe", "vocab_size": 700, "byte_fallback": True, "split_digits": True,
                  "normalization_rule_name": "identity", "remove_extra_whitespaces": False,
                  "allow_whitespace_only_pieces": True},
    "bpe-gemma": {"model_type": "bpe", "vocab_size": 800, "byte_fallback": True, "split_digits": True,
                  "normalization_rule_name": "identity", "remove_extra_whitespaces": False, "add_dummy_prefix": False,
                  "user_defined_symbols": ["<turn>", "<end>", "\n\n", "\n", SPACE * 2, SPACE * 3, "\t"],
                  "control_symbols": ["<image>"], "pad_id": 3},
    "bpe-nmt": {"model_type": "bpe", "vocab_size": 500, "normalization_rule_name": "nmt_nfkc",
                },
    "bpe-unused": {"model_type": "bpe", "vocab_size": 600, "byte_fallback": True, "normalization_rule_name": "nfkc"},
    "unigram-nmt": {"model_type": "unigram", "vocab_size": 600, "normalization_rule_name": "nmt_nfkc",
                    },
    "unigram-cf": {"model_type": "unigram", "vocab_size": 500, "normalization_rule_name": "nmt_nfkc_cf",
                   "user_defined_symbols": ["<turn>", "Stra\u00dfe"], "split_digits": True},
    "unigram-bytes": {"model_type": "unigram", "vocab_size": 900, "byte_fallback": True,
                      "normalization_rule_name": "nfkc_cf", "remove_extra_whitespaces": False, "add_dummy_prefix": False},
    "unigram-suffix": {"model_type": "unigram", "vocab_size": 450, "treat_whitespace_as_suffix": True,
                       "normalization_rule_name": "identity", "unk_surface": "<?>"},
    "unigram-unused": {"model_type": "unigram", "vocab_size": 550, "normalization_rule_name": "nfkc",
                       },
    "char": {"model_type": "char", "vocab_size": 120, "normalization_rule_name": "nmt_nfkc"},
    "word": {"model_type": "word", "vocab_size": 300, "normalization_rule_name": "nmt_nfkc"},
}


def corpus():
    with open(DATA / "tokenizer" / "corpus.jsonl", encoding="utf-8") as file:
        return [json.loads(line)["text"] for line in file if line.strip("\n")]


def train(out, name, options, sentences):
    prefix = out / name
    spm.SentencePieceTrainer.train(sentence_iterator=iter(sentences), model_prefix=str(prefix), **BASE, **options)
    (out / f"{name}.vocab").unlink()
    path = out / f"{name}.model"
    model = pb.ModelProto()
    model.ParseFromString(path.read_bytes())
    # Paths of this machine.
    del model.trainer_spec.input[:]
    model.trainer_spec.model_prefix = name
    if name.endswith("unused"):
        # Every third piece of more than one character serves merges only.
        normal = [p for p in model.pieces if p.type == 1 and len(p.piece) > 1]
        for piece in normal[1::3]:
            piece.type = 5
    path.write_bytes(model.SerializeToString())
    return model


def write_gguf(path, model):
    kinds = {1: "t5", 2: "llama"}
    kind = kinds.get(model.trainer_spec.model_type)
    if kind is None:
        return
    writer = gguf.GGUFWriter(str(path), "llama")
    writer.add_tokenizer_model(kind)
    writer.add_tokenizer_pre("default")
    tokens = [p.piece.encode() for p in model.pieces]
    # The converter writes blanks into user-defined pieces.
    tokens = [t.replace(SPACE.encode(), b" ") if p.type == 4 else t for t, p in zip(tokens, model.pieces)]
    writer.add_token_list(tokens)
    writer.add_token_scores([p.score for p in model.pieces])
    writer.add_token_types([p.type for p in model.pieces])
    normalizer = model.normalizer_spec
    writer.add_add_space_prefix(normalizer.add_dummy_prefix)
    writer.add_remove_extra_whitespaces(normalizer.remove_extra_whitespaces)
    if normalizer.precompiled_charsmap:
        writer.add_precompiled_charsmap(normalizer.precompiled_charsmap)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    writer.add_add_bos_token(False)
    writer.add_add_eos_token(False)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()


def main(out):
    out.mkdir(parents=True, exist_ok=True)
    essay = (DATA / "smollm2" / "essay.txt").read_text(encoding="utf-8")
    texts = corpus()
    sentences = [s for text in [essay] + texts for s in text.split("\n") if s.strip() and "\0" not in s]
    # Few alphabets, or characters alone fill the vocabulary.
    rich = [s for s in sentences if max(map(ord, s)) >= 0x250]
    sentences = [s for s in sentences if s not in rich] + rich[::12]
    for name, options in MODELS.items():
        model = train(out, name, options, sentences)
        processor = spm.SentencePieceProcessor(model_file=str(out / f"{name}.model"))
        with open(out / f"{name}.jsonl", "w", encoding="utf-8") as file:
            for text in texts + EXTRA:
                ids = processor.encode(text)
                file.write(json.dumps({"ids": ids, "text": processor.decode(ids)}) + "\n")
        write_gguf(out / f"{name}.gguf", model)
        print(name, len(model.pieces))
    with open(out / "extra.jsonl", "w", encoding="utf-8") as file:
        for text in EXTRA:
            file.write(json.dumps({"text": text}) + "\n")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]))
