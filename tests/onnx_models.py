"""Models of random weights, as ONNX files with their tokenizer: what the tests read.

Weights decide what a model says, not how long it takes. They are drawn so that each token keeps
a direction of its own: a text that holds the words of the question gets the higher score.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class Shape:
    """The size of a BERT."""

    layers: int = 1
    hidden: int = 32
    heads: int = 2
    positions: int = 512
    vocabulary: int = len(VOCABULARY)
    outputs: int = 96
    """Numbers for a token or a pair; unused by the head `hidden`."""


def make_model(
    folder: Path, head: Head, shape: Shape = Shape(), *, file: str = "model.onnx", seed: int = 7
) -> Path:
    """Write a model and its tokenizer to `folder` and give the folder."""
    (folder / file).parent.mkdir(parents=True, exist_ok=True)
    onnx.save(_Graph(shape, np.random.default_rng(seed)).model(head), folder / file)
    write_tokenizer(folder, shape.positions)
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
    """BERT in the operations that exporters write, which ONNX Runtime fuses again."""

    def __init__(self, shape: Shape, random: np.random.Generator) -> None:
        self._shape = shape
        self._random = random
        self._nodes: list[Any] = []
        self._values: list[Any] = []

    def model(self, head: Head) -> Any:
        shape = self._shape
        last = self._encoder()
        if head == "tokens":
            last = self._add("MatMul", last, self._weight(shape.hidden, shape.outputs, scale=1.0))
            length = self._add("ReduceL2", last, self._value([-1]), keepdims=1)
            last = self._add("Div", last, length)
        elif head == "score":
            first = self._add("Gather", last, self._value(0), axis=1)
            last = self._dense(first, shape.hidden, shape.hidden, scale=0.3)
            last = self._dense(self._add("Tanh", last), shape.hidden, shape.outputs, scale=0.3)
        inputs = ["input_ids", "attention_mask", *(["token_type_ids"] if head == "score" else [])]
        self._nodes.append(helper.make_node("Identity", [last], ["output"]))
        graph = helper.make_graph(
            self._nodes,
            "bert",
            [
                helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "length"])
                for name in inputs
            ],
            [helper.make_tensor_value_info("output", TensorProto.FLOAT, None)],
            self._values,
        )
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)

    def _encoder(self) -> str:
        shape = self._shape
        words = self._draw(shape.vocabulary, shape.hidden, scale=1.0)
        # The masks that fill a question up are near what stands in every text.
        words[SPECIAL.index("[MASK]")] = words[SPECIAL.index("[CLS]")]
        state = self._add("Gather", self._value(words), "input_ids", axis=0)
        length = self._add("Gather", self._add("Shape", "input_ids"), self._value([1]), axis=0)
        places = self._value(np.zeros((shape.positions, shape.hidden), np.float32))
        places = self._add("Slice", places, self._value([0]), length, self._value([0]))
        state = self._norm(self._add("Add", state, places))
        mask = self._add("Cast", "attention_mask", to=TensorProto.FLOAT)
        mask = self._add("Unsqueeze", mask, self._value([1, 2]))
        mask = self._add("Sub", self._value(np.float32(1)), mask)
        mask = self._add("Mul", mask, self._value(np.float32(-10_000)))
        for _ in range(shape.layers):
            state = self._norm(self._add("Add", self._attention(state, mask), state))
            inner = self._dense(state, shape.hidden, 4 * shape.hidden)
            inner = self._dense(self._gelu(inner), 4 * shape.hidden, shape.hidden)
            state = self._norm(self._add("Add", inner, state))
        return state

    def _attention(self, state: str, mask: str) -> str:
        hidden, heads = self._shape.hidden, self._shape.heads
        split = self._value([0, 0, heads, hidden // heads])

        def part(order: tuple[int, ...]) -> str:
            wide = self._add("Reshape", self._dense(state, hidden, hidden), split)
            return self._add("Transpose", wide, perm=order)

        query, key, value = part((0, 2, 1, 3)), part((0, 2, 3, 1)), part((0, 2, 1, 3))
        scores = self._add("MatMul", query, key)
        scores = self._add("Div", scores, self._value(np.float32((hidden / heads) ** 0.5)))
        shares = self._add("Softmax", self._add("Add", scores, mask), axis=-1)
        read = self._add("Transpose", self._add("MatMul", shares, value), perm=(0, 2, 1, 3))
        read = self._add("Reshape", read, self._value([0, 0, hidden]))
        return self._dense(read, hidden, hidden)

    def _gelu(self, value: str) -> str:
        inner = self._add("Erf", self._add("Div", value, self._value(np.float32(2**0.5))))
        inner = self._add("Mul", value, self._add("Add", inner, self._value(np.float32(1))))
        return self._add("Mul", inner, self._value(np.float32(0.5)))

    def _dense(self, value: str, rows: int, columns: int, scale: float = 0.02) -> str:
        bias = self._value(np.zeros(columns, np.float32))
        product = self._add("MatMul", value, self._weight(rows, columns, scale=scale))
        return self._add("Add", bias, product)

    def _norm(self, value: str) -> str:
        hidden = self._shape.hidden
        weight, bias = np.ones(hidden, np.float32), np.zeros(hidden, np.float32)
        return self._add("LayerNormalization", value, self._value(weight), self._value(bias))

    def _weight(self, rows: int, columns: int, *, scale: float) -> str:
        return self._value(self._draw(rows, columns, scale=scale))

    def _draw(self, rows: int, columns: int, *, scale: float) -> Any:
        return (self._random.standard_normal((rows, columns)) * scale).astype(np.float32)

    def _value(self, array: Any) -> str:
        name = f"value{len(self._values)}"
        array = np.asarray(array)
        self._values.append(numpy_helper.from_array(array, name))
        return name

    def _add(self, operation: str, *inputs: str, **attributes: Any) -> str:
        name = f"node{len(self._nodes)}"
        self._nodes.append(helper.make_node(operation, inputs, [name], name, **attributes))
        return name
