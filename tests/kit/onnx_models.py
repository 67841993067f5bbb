"""Models of random weights, as ONNX files with their tokenizer: what the tests read.

Weights decide what a model says, not how long it takes. They are drawn so that each token keeps
a direction of its own: a text that holds the words of the question gets the higher score.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

SPECIAL = ["[PAD]", "[unused0]", "[unused1]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789_.,:()[]{}'\"=/-#"
WORDS = ("session", "cookie", "expire", "basket", "total", "price", "return", "self", "the", "of")
VOCABULARY = list(
    dict.fromkeys([*SPECIAL, *LETTERS, *(f"##{letter}" for letter in LETTERS), *WORDS])
)

Head = Literal["tokens", "score", "hidden"]
"""What the model gives: a vector per token (ColBERT), numbers for a pair (cross-encoder), or the
last layer (an embedding, pooled by the reader)."""

HIDDEN = 32
POSITIONS = 512


def make_model(
    folder: Path, head: Head, outputs: int = 96, *, file: str = "model.onnx", seed: int = 7
) -> Path:
    """Write a model and its tokenizer to `folder` and give the folder.

    `outputs` is how many numbers it gives for a token or a pair; unused by the head `hidden`.
    """
    (folder / file).parent.mkdir(parents=True, exist_ok=True)
    onnx.save(_Graph(np.random.default_rng(seed)).model(head, outputs), folder / file)
    write_tokenizer(folder, POSITIONS)
    return folder


def write_tokenizer(folder: Path, positions: int) -> None:
    """A BERT's tokenizer over VOCABULARY, in the files that fastembed reads."""
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

    ids = {piece: number for number, piece in enumerate(VOCABULARY)}
    tokenizer = Tokenizer(models.WordPiece(ids, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.post_processor = processors.BertProcessing(
        ("[SEP]", ids["[SEP]"]), ("[CLS]", ids["[CLS]"])
    )
    tokenizer.add_special_tokens(SPECIAL)
    tokenizer.save(str(folder / "tokenizer.json"))
    names = {f"{name}_token": f"[{name.upper()}]" for name in ("pad", "unk", "cls", "sep", "mask")}
    for file, values in {
        "config.json": {"model_type": "bert", "pad_token_id": 0},
        "tokenizer_config.json": {"model_max_length": positions, "pad_token": "[PAD]"},
        "special_tokens_map.json": names,
    }.items():
        (folder / file).write_text(json.dumps(values))


class _Graph:
    """An encoder that looks each token up; of a pair the mean of its tokens is judged."""

    def __init__(self, random: np.random.Generator) -> None:
        self._random = random
        self._nodes: list[Any] = []
        self._values: list[Any] = []

    def model(self, head: Head, outputs: int) -> Any:
        words = self._random.standard_normal((len(VOCABULARY), HIDDEN)).astype(np.float32)
        # The masks that fill a question up are near what stands in every text.
        words[SPECIAL.index("[MASK]")] = words[SPECIAL.index("[CLS]")]
        last = self._add("Gather", self._value(words), "input_ids", axis=0)
        mask = self._add("Cast", "attention_mask", to=TensorProto.FLOAT)
        mask = self._add("Unsqueeze", mask, self._value([2]))
        if head == "tokens":
            last = self._add("MatMul", last, self._weight(outputs))
            length = self._add("ReduceL2", last, self._value([-1]), keepdims=1)
            last = self._add("Div", last, length)
        elif head == "score":
            total = self._add("ReduceSum", mask, self._value([1]), keepdims=0)
            last = self._add("Mul", last, mask)
            last = self._add("ReduceSum", last, self._value([1]), keepdims=0)
            last = self._add("MatMul", self._add("Div", last, total), self._weight(outputs))
        names = ["input_ids", "attention_mask", *(["token_type_ids"] if head == "score" else [])]
        self._nodes.append(helper.make_node("Identity", [last], ["output"]))
        make, shape = helper.make_tensor_value_info, ["batch", "length"]
        inputs = [make(name, TensorProto.INT64, shape) for name in names]
        output = [make("output", TensorProto.FLOAT, None)]
        graph = helper.make_graph(self._nodes, "encoder", inputs, output, self._values)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)

    def _weight(self, columns: int) -> str:
        drawn = self._random.standard_normal((HIDDEN, columns)) * 0.3
        return self._value(drawn.astype(np.float32))

    def _value(self, array: Any) -> str:
        name = f"value{len(self._values)}"
        self._values.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def _add(self, operation: str, *inputs: str, **attributes: Any) -> str:
        name = f"node{len(self._nodes)}"
        self._nodes.append(helper.make_node(operation, inputs, [name], name, **attributes))
        return name
