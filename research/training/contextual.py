"""A second tier, trained on the same pairs: a small encoder that reads words in their order.

Two to four layers, 256 to 384 wide, from scratch, with the vocabulary of the table. Reads
OUT/pairs and OUT/features/vocabulary.txt, writes OUT/sequences and OUT/runs/<name>:
`figures.jsonl` with the same figures as the table's, `encoder.pt`, and with --onnx
`encoder.onnx` in int8 for onnxruntime (needs the packages onnx, onnxscript and onnxruntime).

Made for a GPU: on two cores an epoch of half a million pairs takes hours.
"""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from research.training.batches import Mixing, opening_ids, order_rows
from research.training.console import bar, parser, say
from research.training.features import BAGS, FIELDS, Features
from research.training.held_out import held_out_ranks
from research.training.model import LOWEST_TEMPERATURE, START_TEMPERATURE, info_nce, unit
from research.training.sequences import make_sequences
from research.training.train import ahead, rate

MARKS = ("path", "name", "doc", "body", "query")
"""A mark of its own stands before each text, so that the encoder knows what it reads. The body
is last, for it alone is cut when the whole is too long."""
ROWS_AT_ONCE = 512

EXAMPLES = """\
  python -m research.training.contextual --out ~/training --device cuda --onnx
  python -m research.training.contextual --out ~/training --limit 20000 --layers 2 \\
      --width 256 --epochs 1
"""


@dataclass(frozen=True, slots=True)
class Shape:
    """Size of the encoder."""

    layers: int = 3
    width: int = 320
    heads: int = 5
    length: int = 192


@dataclass(frozen=True, slots=True)
class Plan:
    """How it is trained."""

    epochs: int = 5
    rate: float = 5e-4
    warm_up: int = 500
    seed: int = 1
    mixing: Mixing = field(default_factory=lambda: Mixing(batch=1_024))


class Encoder(nn.Module):
    """Transformer with mean pooling: (rows, length) ids, PADDING where there is nothing, to
    (rows, width) vectors of length 1."""

    def __init__(self, pieces: int, shape: Shape) -> None:
        super().__init__()
        self.padding = pieces + len(MARKS)
        self.tokens = nn.Embedding(self.padding + 1, shape.width, padding_idx=self.padding)
        self.places = nn.Parameter(torch.randn(shape.length, shape.width) * 0.02)
        nn.init.normal_(self.tokens.weight, std=0.05)
        layer = nn.TransformerEncoderLayer(
            shape.width, shape.heads, 4 * shape.width, 0.1, "gelu", batch_first=True,
            norm_first=True,
        )  # fmt: skip
        self.layers = nn.TransformerEncoder(layer, shape.layers, enable_nested_tensor=False)
        self.last = nn.LayerNorm(shape.width)
        self.log_scale = nn.Parameter(torch.tensor(-math.log(START_TEMPERATURE)))

    def forward(self, ids: Tensor) -> Tensor:
        held = ids != self.padding
        states = self.tokens(ids) + self.places[: ids.shape[1]]
        states = self.last(self.layers(states, src_key_padding_mask=~held))
        share = held.unsqueeze(-1).to(states.dtype)
        return unit((states * share).sum(1) / share.sum(1).clamp(min=1))

    def scale(self) -> Tensor:
        """1 / temperature."""
        return self.log_scale.clamp(max=-math.log(LOWEST_TEMPERATURE)).exp()


class Texts:
    """Rows of sequences as padded ids: a question, or the fields of a document in one row."""

    def __init__(self, features: Features, shape: Shape) -> None:
        self.features = features
        self.length = shape.length
        self.pieces = len(features.pieces)
        self.openings = opening_ids(features.pieces)

    def padded(
        self,
        rows: NDArray[np.int64],
        fields: Sequence[str],
        dropped: dict[str, NDArray[np.bool_]] | None = None,
        openings: Sequence[Sequence[int]] = (),
    ) -> Tensor:
        """(rows, longest) int64."""
        texts: list[list[int]] = [[] for _ in rows]
        for mark, bag in enumerate(MARKS):
            if bag not in fields:
                continue
            starts, ids, _ = self.features.bags[bag].take(rows)
            for place, text in enumerate(texts):
                text.append(self.pieces + mark)  # also where nothing follows: no text is empty
                if dropped is not None and bag in dropped and dropped[bag][place]:
                    continue
                if bag == "query" and openings:
                    text.extend(openings[place])
                text.extend(ids[starts[place] : starts[place + 1]].tolist())
        longest = min(self.length, max(map(len, texts), default=1))
        found = np.full((len(rows), max(1, longest)), self.pieces + len(MARKS), np.int64)
        for place, text in enumerate(texts):
            found[place, : min(longest, len(text))] = text[:longest]
        return torch.from_numpy(found)

    def batch(
        self, rows: NDArray[np.int64], mixing: Mixing, rng: np.random.Generator
    ) -> tuple[Tensor, Tensor]:
        """Question and document sides of `rows`, with what chance leaves out left out."""
        shares = {
            "path": mixing.path_dropped,
            "name": mixing.name_dropped,
            "doc": mixing.doc_dropped,
        }
        dropped = {bag: rng.random(len(rows)) < share for bag, share in shares.items()}
        openings: list[Sequence[int]] = [()] * len(rows)
        if self.openings:
            chosen = rng.integers(len(self.openings), size=len(rows))
            opened = rng.random(len(rows)) < mixing.opened
            openings = [self.openings[c] if o else () for c, o in zip(chosen, opened, strict=True)]
        return self.padded(rows, ("query",), openings=openings), self.padded(rows, FIELDS, dropped)


class EncoderSides:
    """The encoder's vectors, for `held_out_ranks`."""

    def __init__(self, encoder: Encoder, texts: Texts) -> None:
        self._encoder = encoder
        self._texts = texts

    def queries(self, rows: NDArray[np.int64]) -> Tensor:
        """(rows, width)"""
        return self._vectors(rows, BAGS[-1:])

    def documents(self, rows: NDArray[np.int64], fields: Sequence[str] = FIELDS) -> Tensor:
        """(rows, width), of the given fields only."""
        return self._vectors(rows, fields)

    def _vectors(self, rows: NDArray[np.int64], fields: Sequence[str]) -> Tensor:
        device = self._encoder.places.device
        self._encoder.eval()
        with torch.inference_mode():
            return torch.cat([
                self._encoder(self._texts.padded(rows[at : at + ROWS_AT_ONCE], fields).to(device))
                for at in range(0, len(rows), ROWS_AT_ONCE)
            ])  # fmt: skip


def train(
    features: Features, out: Path, shape: Shape, plan: Plan, device: str = "", limit: int = 0
) -> Encoder:
    """Train from scratch and write `encoder.pt` and `figures.jsonl` into `out`."""
    place = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
    torch.manual_seed(plan.seed)
    texts = Texts(features, shape)
    encoder = Encoder(texts.pieces, shape).to(place)
    rows = features.where("train", ("doc", "name", "class"))
    if limit:
        rows = np.sort(np.random.default_rng(plan.seed).permutation(rows)[:limit])
    mixing = plan.mixing
    steps = len(rows) // mixing.batch
    if not steps:
        raise ValueError(f"{len(rows):,} rows do not fill one batch of {mixing.batch:,}")
    optimiser = torch.optim.AdamW(encoder.parameters(), lr=plan.rate, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimiser, lambda step: rate(step, plan.epochs * steps, plan.warm_up)
    )
    out.mkdir(parents=True, exist_ok=True)
    (out / "figures.jsonl").unlink(missing_ok=True)
    half = place.type == "cuda"
    for epoch in range(plan.epochs):
        started, total = time.perf_counter(), 0.0
        rng = np.random.default_rng((plan.seed, epoch))
        ordered = order_rows(rows, features.repository, mixing.group, rng)
        parts = [ordered[at * mixing.batch : (at + 1) * mixing.batch] for at in range(steps)]
        sides = ahead(texts.batch(part, mixing, rng) for part in parts)
        encoder.train()
        for query, document in bar(sides, f"epoch {epoch + 1}/{plan.epochs}", "step", steps):
            optimiser.zero_grad(set_to_none=True)
            with torch.autocast(place.type, torch.bfloat16, enabled=half):
                vectors = encoder(query.to(place)), encoder(document.to(place))
            loss = info_nce(vectors[0].float(), vectors[1].float(), encoder.scale())
            loss.backward()
            nn.utils.clip_grad_norm_(encoder.parameters(), 1.0)
            optimiser.step()
            schedule.step()
            total += loss.item()
        ranks = held_out_ranks(EncoderSides(encoder, texts), features)
        figures = {
            "epoch": epoch + 1,
            "loss": round(total / steps, 4),
            **ranks.figures,
            "seconds": round(time.perf_counter() - started, 1),
        }
        say(f"contextual: {json.dumps(figures)}")
        with (out / "figures.jsonl").open("a", encoding="utf-8") as lines:
            lines.write(json.dumps(figures) + "\n")
        content: dict[str, Any] = {"shape": asdict(shape), "model": encoder.state_dict()}
        torch.save(content, out / "encoder.pt")
    return encoder


def write_onnx(encoder: Encoder, path: Path) -> None:
    """The encoder in int8 for onnxruntime. Raises ImportError without the packages for it."""
    from onnxruntime.quantization import QuantType, quantize_dynamic

    whole = path.with_suffix(".float.onnx")
    ids = torch.zeros(2, 16, dtype=torch.int64)
    torch.onnx.export(
        encoder.cpu().eval(), (ids,), str(whole), input_names=["ids"], output_names=["vectors"],
        dynamic_axes={"ids": {0: "rows", 1: "length"}}, dynamo=False,
    )  # fmt: skip
    quantize_dynamic(str(whole), str(path), weight_type=QuantType.QInt8)
    whole.unlink()


def main(arguments: Sequence[str] | None = None) -> int:
    """The step's command line."""
    shape, plan = Shape(), Plan()
    options = parser("contextual", __doc__, EXAMPLES)
    add = options.add_argument
    add("--name", default="contextual", help="name of the run (default: %(default)s)")
    for name, value in asdict(shape).items():
        add(f"--{name}", type=int, default=value)
    add("--epochs", type=int, default=plan.epochs)
    add("--rate", type=float, default=plan.rate)
    add("--warm-up", type=int, default=plan.warm_up)
    add("--batch", type=int, default=plan.mixing.batch)
    add("--group", type=int, default=plan.mixing.group)
    add("--seed", type=int, default=plan.seed)
    add("--limit", type=int, default=0, help="train on so many rows alone; 0: all")
    add("--device", default="", help="cpu or cuda; without it, a GPU if there is one")
    add("--onnx", action="store_true", help="write encoder.onnx as well")
    given = options.parse_args(arguments)
    shape = Shape(given.layers, given.width, given.heads, given.length)
    plan = Plan(
        given.epochs,
        given.rate,
        given.warm_up,
        given.seed,
        Mixing(batch=given.batch, group=given.group),
    )
    run = given.out / "runs" / given.name
    try:
        vocabulary = (given.out / "features" / "vocabulary.txt").read_text("utf-8")
        features = make_sequences(given.out, vocabulary.split("\n")[:-1])
        encoder = train(features, run, shape, plan, given.device, given.limit)
        if given.onnx:
            write_onnx(encoder, run / "encoder.onnx")
    except (FileNotFoundError, ValueError, ImportError) as error:
        say(f"contextual: {error}")
        return 1
    size = sum(p.numel() for p in encoder.parameters())
    say(f"contextual: {run / 'encoder.pt'}: {size / 1e6:.1f} million parameters")
    return 0


if __name__ == "__main__":
    sys.exit(main())
