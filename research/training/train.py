"""Step 5: train the table.

Reads OUT/features and writes OUT/runs/<name>: `recipe.json` (everything besides the features
that decides the outcome), `figures.jsonl` (one line per epoch: loss, time, figures on the
held-out repositories) and `checkpoint.pt`. Started again with the same recipe, it goes on where
it stopped. The same features, recipe and number of threads give the same table up to the order
in which floating-point sums are taken.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import math
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from research.training.batches import Batches, Mixing
from research.training.console import parser, say
from research.training.features import BAGS, SOURCES, Features
from research.training.held_out import TableSides, held_out_ranks
from research.training.model import TableModel

CHECKPOINT_SECONDS = 300.0

EXAMPLES = """\
  python -m research.training.train --out ~/training
  python -m research.training.train --out ~/training --name plain --epochs 2 --group 64 \\
      --body-dropped 0 --token-dropped 0.1 --named 0 --placed 0 --sources doc name
"""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Recipe:
    """Everything besides the features that decides what comes out."""

    dimension: int = 512
    epochs: int = 3
    sources: tuple[str, ...] = ("doc", "name", "class", "test", "section")
    table_rate: float = 2e-3
    weight_rate: float = 1e-2
    warm_up: int = 100
    seed: int = 1
    mixing: Mixing = field(default_factory=Mixing)


class Trainer:
    """One run: the model, its optimiser, and where in the epochs it stands."""

    def __init__(self, features: Features, recipe: Recipe, out: Path, device: str = "") -> None:
        self.features = features
        self.recipe = recipe
        self.out = out
        self.device = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
        rows = features.where("train", recipe.sources)
        if len(rows) < recipe.mixing.batch:
            raise ValueError(
                f"{len(rows):,} rows do not fill one batch of {recipe.mixing.batch:,}: "
                "mine more, or make --batch smaller"
            )
        self.batches = Batches(features, rows, recipe.mixing, recipe.seed)
        torch.manual_seed(recipe.seed)
        self.model = TableModel(len(features.pieces), recipe.dimension)
        self.model.start_weights(torch.from_numpy(document_counts(features, rows)), len(rows))
        self.model.to(self.device)
        others = [p for name, p in self.model.named_parameters() if name != "table"]
        self.optimiser = torch.optim.Adam(
            [
                {"params": [self.model.table], "lr": recipe.table_rate},
                {"params": others, "lr": recipe.weight_rate},
            ],
            fused=True,
        )
        total = recipe.epochs * self.batches.steps
        self.schedule = torch.optim.lr_scheduler.LambdaLR(
            self.optimiser, lambda step: rate(step, total, recipe.warm_up)
        )
        self.epoch = 0
        self.step = 0
        self.seconds = 0.0

    def run(self, *, quiet: bool = False) -> dict[str, Any]:
        """Train to the end. Returns the last epoch's figures."""
        self.out.mkdir(parents=True, exist_ok=True)
        self._resume()
        figures: dict[str, Any] = {}
        while self.epoch < self.recipe.epochs:
            loss = self._epoch(quiet)
            self.epoch, self.step = self.epoch + 1, 0
            started = time.perf_counter()
            ranks = held_out_ranks(TableSides(self.model, self.features), self.features)
            figures = {
                "epoch": self.epoch,
                "loss": round(loss, 4),
                **ranks.figures,
                "temperature": round(1 / self.model.scale().item(), 4),
                "seconds": round(self.seconds, 1),
                "seconds_asking": round(time.perf_counter() - started, 1),
            }
            with (self.out / "figures.jsonl").open("a", encoding="utf-8") as lines:
                lines.write(json.dumps(figures) + "\n")
            say(f"train: {json.dumps(figures)}")
            self.save()
        return figures

    def _epoch(self, quiet: bool) -> float:
        from tqdm import tqdm

        self.model.train()
        total, steps = torch.zeros((), device=self.device), 0
        started = saved = time.perf_counter()
        bar = tqdm(
            ahead(self.batches.epoch(self.epoch, self.step)),
            desc=f"epoch {self.epoch + 1}/{self.recipe.epochs}",
            total=self.batches.steps,
            initial=self.step,
            disable=quiet,
            mininterval=2.0,
        )
        for batch in bar:
            self.optimiser.zero_grad(set_to_none=True)
            loss = self.model.loss(batch.to(self.device))
            loss.backward()
            self.optimiser.step()
            self.schedule.step()
            self.step += 1
            steps += 1
            total += loss.detach()
            if steps % 50 == 0:
                bar.set_postfix(loss=f"{total.item() / steps:.3f}")
            now = time.perf_counter()
            if now - saved > CHECKPOINT_SECONDS:
                saved = now
                self.seconds += now - started
                started = now
                self.save()
        self.seconds += time.perf_counter() - started
        return total.item() / max(1, steps)

    def save(self) -> None:
        """Write the checkpoint; a run that dies while it does keeps the one before."""
        content = {
            "model": self.model.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "schedule": self.schedule.state_dict(),
            "epoch": self.epoch,
            "step": self.step,
            "seconds": self.seconds,
        }
        half = self.out / "checkpoint.part"
        torch.save(content, half)
        half.replace(self.out / "checkpoint.pt")
        write_recipe(self.out, self.recipe)

    def _resume(self) -> None:
        checkpoint = self.out / "checkpoint.pt"
        if not checkpoint.exists():
            (self.out / "figures.jsonl").unlink(missing_ok=True)
            write_recipe(self.out, self.recipe)
            return
        if read_recipe(self.out) != self.recipe:
            raise ValueError(f"{self.out} was trained by another recipe: name another folder")
        content = torch.load(checkpoint, map_location=self.device, weights_only=True)
        self.model.load_state_dict(content["model"])
        self.optimiser.load_state_dict(content["optimiser"])
        self.schedule.load_state_dict(content["schedule"])
        self.epoch, self.step = content["epoch"], content["step"]
        self.seconds = content["seconds"]


def rate(step: int, total: int, warm_up: int) -> float:
    """Share of the learning rate at `step`: up over the first steps, then down to nothing."""
    rise = min(1.0, (step + 1) / max(1, warm_up))
    return rise * max(0.0, 1.0 - step / max(1, total))


def document_counts(features: Features, rows: NDArray[np.int64]) -> NDArray[np.float32]:
    """(pieces): in how many of `rows` each token stands, in any field but the query."""
    counts = np.zeros(len(features.pieces), np.float32)
    for part in np.array_split(rows, max(1, len(rows) // 50_000)):
        keys = []
        for bag in BAGS[:-1]:
            starts, ids, _ = features.bags[bag].take(part)
            owner = np.repeat(np.arange(len(part)), np.diff(starts))
            keys.append(owner * len(counts) + ids)
        tokens = np.unique(np.concatenate(keys)) % len(counts)
        counts += np.bincount(tokens, minlength=len(counts)).astype(np.float32)
    return counts


def ahead(items: Iterable[T], depth: int = 3) -> Iterator[T]:
    """`items`, the next few made in a thread while the present one is used."""
    iterator = iter(items)
    with ThreadPoolExecutor(1) as thread:
        pending = [thread.submit(next, iterator, None) for _ in range(depth)]
        while (item := pending.pop(0).result()) is not None:
            pending.append(thread.submit(next, iterator, None))
            yield item


def write_recipe(folder: Path, recipe: Recipe) -> None:
    """Write `recipe.json`."""
    (folder / "recipe.json").write_text(json.dumps(asdict(recipe), indent=1) + "\n", "utf-8")


def read_recipe(folder: Path) -> Recipe:
    """The recipe of a run."""
    content = json.loads((folder / "recipe.json").read_text("utf-8"))
    content["sources"] = tuple(content["sources"])
    return Recipe(**{**content, "mixing": Mixing(**content["mixing"])})


def load_model(run: Path) -> TableModel:
    """The model of a run's checkpoint, on the CPU. Raises FileNotFoundError."""
    content = torch.load(run / "checkpoint.pt", map_location="cpu", weights_only=True)
    state = content["model"]
    model = TableModel(*state["table"].shape)
    model.load_state_dict(state)
    return model.eval()


def keep_memory() -> None:
    """Have the C library keep what it was given: each step needs the same blocks again.

    Handing 150 MB back to the system and fetching them again, page by page, was a third of a
    step's time. Does nothing where the C library has no such setting.
    """
    most_mappings, trim_threshold = -4, -1
    try:
        library = ctypes.CDLL(None)
        library.mallopt(most_mappings, 0)
        library.mallopt(trim_threshold, 2**31 - 1)
    except (OSError, AttributeError, TypeError):
        return


def options() -> argparse.ArgumentParser:
    """The step's command line."""
    standard, mixing = Recipe(), Mixing()
    made = parser("train", __doc__, EXAMPLES)
    add = made.add_argument
    add("--name", default="table", help="name of the run (default: %(default)s)")
    add("--dimension", type=int, default=standard.dimension)
    add("--epochs", type=int, default=standard.epochs)
    add("--sources", nargs="+", choices=SOURCES, default=list(standard.sources))
    add("--table-rate", type=float, default=standard.table_rate, help="Adam's, for vectors")
    add("--weight-rate", type=float, default=standard.weight_rate, help="Adam's, for weights")
    add("--warm-up", type=int, default=standard.warm_up, help="steps")
    add("--seed", type=int, default=standard.seed)
    for name, value in asdict(mixing).items():
        add(f"--{name.replace('_', '-')}", type=type(value), default=value)
    add("--device", default="", help="cpu or cuda; without it, a GPU if there is one")
    add("--threads", type=int, default=0, help="threads on the CPU; 0: all cores")
    return made


def recipe_of(given: argparse.Namespace) -> Recipe:
    """The recipe that the command line asks for."""
    return Recipe(
        dimension=given.dimension,
        epochs=given.epochs,
        sources=tuple(given.sources),
        table_rate=given.table_rate,
        weight_rate=given.weight_rate,
        warm_up=given.warm_up,
        seed=given.seed,
        mixing=Mixing(**{name: getattr(given, name) for name in asdict(Mixing())}),
    )


def train(out: Path, name: str, recipe: Recipe, device: str = "") -> dict[str, Any]:
    """Train the run `name`. Returns the last epoch's figures; none when it was finished before."""
    keep_memory()
    features = Features(out / "features")
    trainer = Trainer(features, recipe, out / "runs" / name, device)
    owners = len(np.unique(features.repository[trainer.batches.rows]))
    say(
        f"train: {len(trainer.batches.rows):,} rows of {owners:,} repositories, "
        f"{trainer.batches.steps:,} steps an epoch, {len(features.pieces):,} pieces × "
        f"{recipe.dimension} on {trainer.device}"
    )
    figures = trainer.run()
    say(f"train: {trainer.out / 'checkpoint.pt'} after {math.ceil(trainer.seconds)} s of training")
    return figures


def main(arguments: Sequence[str] | None = None) -> int:
    """The step's command line."""
    given = options().parse_args(arguments)
    if given.threads:
        torch.set_num_threads(given.threads)
    try:
        train(given.out, given.name, recipe_of(given), given.device)
    except (FileNotFoundError, ValueError) as error:
        say(f"train: {error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
