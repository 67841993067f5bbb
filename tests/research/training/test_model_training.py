"""The table's training: bags, loss, batches, runs. Needs PyTorch."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import research.training  # noqa: F401  # before PyTorch, whose threads it tells how to wait

torch = pytest.importorskip("torch")

from research.training.batches import Mixing, gather, order_rows  # noqa: E402
from research.training.features import Features  # noqa: E402
from research.training.held_out import TableSides, held_out_ranks, interval  # noqa: E402
from research.training.model import TableModel, TokenBags, info_nce, unit  # noqa: E402
from research.training.train import Recipe, Trainer  # noqa: E402
from tests.research.training.training_samples import write_features  # noqa: E402

SMALL = Mixing(batch=64, group=16)
RECIPE = Recipe(dimension=32, epochs=2, warm_up=2, mixing=SMALL)


@pytest.fixture
def features(tmp_path: Path) -> Features:
    return Features(write_features(tmp_path / "features"))


def plain_vectors(model: TableModel, bags: TokenBags) -> torch.Tensor:
    """What `TableModel.vectors` is, the long way, so that PyTorch derives the gradients."""
    weights = model.log_weights.exp()[bags.sides.long(), bags.ids.long()] * bags.coefficients
    owner = torch.repeat_interleave(bags.lengths)
    rows = model.table[bags.ids.long()] * weights[:, None]
    return torch.zeros(len(bags.lengths), model.table.shape[1]).index_add(0, owner, rows)


def test_the_gradients_of_bags_are_those_that_pytorch_derives(features: Features) -> None:
    torch.manual_seed(0)
    model = TableModel(len(features.pieces), 16)
    bags = gather(features, np.arange(40))
    direction = torch.randn(len(bags.lengths), 16)
    found = []
    for vectors in (model.vectors(bags), plain_vectors(model, bags)):
        model.zero_grad()
        (vectors * direction).sum().backward()
        found.append((vectors.detach(), model.table.grad, model.log_weights.grad))
    for ours, derived in zip(*found, strict=True):
        assert derived.abs().max() > 0
        torch.testing.assert_close(ours, derived, rtol=0.03, atol=0.02 * float(derived.abs().max()))


def test_the_loss_is_symmetric_cross_entropy_with_its_gradients() -> None:
    torch.manual_seed(0)
    query, document = (unit(torch.randn(50, 24)).requires_grad_() for _ in range(2))
    scale = torch.tensor(12.0, requires_grad=True)
    target = torch.arange(50)
    logits = scale * query @ document.T
    cross = torch.nn.functional.cross_entropy
    expected = (cross(logits, target) + cross(logits.T, target)) / 2
    wanted = torch.autograd.grad(expected, (query, document, scale))
    loss = info_nce(query, document, scale)
    torch.testing.assert_close(loss, expected, rtol=0.01, atol=0.01)
    found = torch.autograd.grad(loss, (query, document, scale))
    for ours, derived in zip(found, wanted, strict=True):
        torch.testing.assert_close(ours, derived, rtol=0.05, atol=0.03 * float(derived.abs().max()))


def test_rows_of_one_repository_stand_side_by_side_and_none_is_lost() -> None:
    owners = np.sort(np.arange(1_000) % 7).astype(np.int32)
    rows = np.arange(0, 1_000, 2)
    ordered = order_rows(rows, owners, 16, np.random.default_rng(0))
    assert sorted(ordered.tolist()) == rows.tolist()
    runs = np.diff(np.r_[0, np.flatnonzero(np.diff(owners[ordered])) + 1, len(ordered)])
    assert (runs >= 16).mean() >= 0.8
    assert ordered.tolist() != rows.tolist()


def test_training_finds_what_a_random_table_does_not(features: Features, tmp_path: Path) -> None:
    recipe = Recipe(dimension=32, epochs=6, warm_up=5, mixing=SMALL)
    trainer = Trainer(features, recipe, tmp_path / "run", "cpu")
    before = held_out_ranks(TableSides(trainer.model, features), features).figures
    after = trainer.run(quiet=True)
    assert after["mrr"] > before["mrr"] + 0.15
    assert after["mrr_without_name"] > before["mrr_without_name"] + 0.15
    lines = (tmp_path / "run" / "figures.jsonl").read_text().splitlines()
    assert [json.loads(line)["epoch"] for line in lines] == [1, 2, 3, 4, 5, 6]


def test_an_interrupted_run_ends_with_the_same_table(features: Features, tmp_path: Path) -> None:
    whole = Trainer(features, RECIPE, tmp_path / "whole", "cpu")
    whole.run(quiet=True)
    broken = Trainer(features, RECIPE, tmp_path / "broken", "cpu")
    batches = broken.batches.epoch

    def only_three(epoch: int, start: int = 0):  # type: ignore[no-untyped-def]
        for step, batch in enumerate(batches(epoch, start)):
            if step == 3:
                broken.save()
                raise KeyboardInterrupt
            yield batch

    broken.batches.epoch = only_three  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        broken.run(quiet=True)
    again = Trainer(features, RECIPE, tmp_path / "broken", "cpu")
    again.run(quiet=True)
    torch.testing.assert_close(again.model.table, whole.model.table, rtol=1e-3, atol=1e-4)
    torch.testing.assert_close(again.model.log_weights, whole.model.log_weights, rtol=0, atol=1e-3)


def test_a_run_of_another_recipe_is_not_gone_on_with(features: Features, tmp_path: Path) -> None:
    Trainer(features, RECIPE, tmp_path / "run", "cpu").run(quiet=True)
    other = Recipe(dimension=32, epochs=3, warm_up=2, mixing=SMALL)
    with pytest.raises(ValueError, match="another recipe"):
        Trainer(features, other, tmp_path / "run", "cpu").run(quiet=True)


def test_documents_of_equal_score_share_their_ranks(features: Features) -> None:
    model = TableModel(len(features.pieces), 8)
    with torch.no_grad():
        model.table.fill_(1.0)  # everything is alike: a rank in the middle, not the first
    ranks = held_out_ranks(TableSides(model, features), features)
    assert ranks.with_name.max() == pytest.approx(1 / 50.5)


def test_the_interval_of_a_difference_is_drawn_by_repository() -> None:
    owners = np.repeat(np.arange(20), 50)
    steady = np.full(1_000, 0.02)
    assert interval(steady, owners) == pytest.approx((0.02, 0.02, 0.02))
    by_owner = np.repeat(np.random.default_rng(0).normal(0.02, 0.2, 20), 50)
    _, low, high = interval(by_owner, owners)
    spread = 1.96 * by_owner.std() / 20**0.5
    assert high - low == pytest.approx(2 * spread, rel=0.25)
