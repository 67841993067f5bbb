"""The table as it is trained: token vectors, token weights, field weights, and the loss.

A bag is a set of token ids with coefficients 1 + ln(count). Its vector is the sum of
coefficient × token weight × token vector. A document is the sum of its four fields' bags, each
made 1 long and multiplied by softplus(field weight), made 1 long again; a query is one bag made
1 long. Everything is as `codeqa.embeddings` computes it at run time.

Bags and loss bring their own gradients: on two cores they are several times as fast as what
PyTorch derives, because a token is touched once per step however often it occurs, and because
products of matrices run in bfloat16.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as functional
from torch import Tensor, nn

from research.training.features import BAGS, FIELDS

SIDES = DOCUMENT, QUERY = 0, 1
"""Rows of the token weights: a piece counts differently in a document and in a question."""

START_TEMPERATURE = 0.07
LOWEST_TEMPERATURE = 0.02
"""Keeps exp(cosine / temperature) within float32; trained tables stay above it by themselves."""
SHORT_DIMENSIONS = 128
SHORT_WEIGHT = 0.3
"""The same loss on the first dimensions alone, so that a table cut short is still a table."""
START_DEVIATION = 0.05
EPSILON = 1e-6


@dataclass(frozen=True, slots=True)
class TokenBags:
    """Bags of several fields in compressed rows, field after field, `rows` bags each.

    `ids` (n) int32 · `sides` (n) int32: DOCUMENT or QUERY · `coefficients` (n) float32 ·
    `starts` (bags) int32 · `lengths` (bags) int64.
    """

    ids: Tensor
    sides: Tensor
    coefficients: Tensor
    starts: Tensor
    lengths: Tensor
    rows: int

    def to(self, device: torch.device) -> TokenBags:
        """The same on another device."""
        moved = (
            part.to(device, non_blocking=True)
            for part in (self.ids, self.sides, self.coefficients, self.starts, self.lengths)
        )
        return TokenBags(*moved, self.rows)


class TableModel(nn.Module):
    """Parameters of the table: token vectors, token weights of either side, field weights."""

    order: Tensor

    def __init__(self, pieces: int, dimension: int) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.randn(pieces, dimension) * START_DEVIATION)
        self.log_weights = nn.Parameter(torch.zeros(len(SIDES), pieces))
        self.field_weights = nn.Parameter(torch.full((len(FIELDS),), math.log(math.e - 1)))
        self.log_scale = nn.Parameter(torch.tensor(-math.log(START_TEMPERATURE)))
        # Frequent tokens come first in a vocabulary; mixed, every core gets its share of them.
        mixed = torch.randperm(pieces, generator=torch.Generator().manual_seed(0))
        self.register_buffer("order", mixed.to(torch.int32), persistent=False)

    def start_weights(self, documents: Tensor, rows: int) -> None:
        """Begin with log(rows / documents that hold the token), for both sides."""
        rarity = torch.log((rows + 1.0) / (documents + 1.0)).clamp(min=0.1)
        with torch.no_grad():
            self.log_weights.copy_(rarity.log().expand_as(self.log_weights))

    def vectors(self, bags: TokenBags) -> Tensor:
        """(bags, dimension): the plain bags, not yet made 1 long."""
        out: Tensor = WeightedBags.apply(self.table, self.log_weights.exp(), bags, self.order)
        return out

    def document(self, fields: Tensor) -> Tensor:
        """(rows, dimension) from the bags of the four fields, (4, rows, dimension)."""
        weights = functional.softplus(self.field_weights)
        return unit((unit(fields) * weights[:, None, None]).sum(0))

    def forward(self, bags: TokenBags) -> tuple[Tensor, Tensor]:
        """Query and document vectors, each (rows, dimension), of bags in the order of BAGS."""
        found = self.vectors(bags).view(len(BAGS), bags.rows, -1)
        return unit(found[-1]), self.document(found[:-1])

    def scale(self) -> Tensor:
        """1 / temperature."""
        return self.log_scale.clamp(max=-math.log(LOWEST_TEMPERATURE)).exp()

    def loss(self, bags: TokenBags) -> Tensor:
        """Symmetric InfoNCE over the batch, on all dimensions and on the first few."""
        query, document = self(bags)
        scale = self.scale()
        total = info_nce(query, document, scale)
        if query.shape[1] > SHORT_DIMENSIONS:
            short = (unit(side[:, :SHORT_DIMENSIONS]) for side in (query, document))
            total = total + SHORT_WEIGHT * info_nce(*short, scale)
        return total


def unit(vectors: Tensor) -> Tensor:
    """`vectors` made 1 long; a zero vector stays zero."""
    return functional.normalize(vectors, dim=-1, eps=EPSILON)


def info_nce(query: Tensor, document: Tensor, scale: Tensor) -> Tensor:
    """Mean of both directions' cross-entropy, row i belonging to column i."""
    loss: Tensor = InfoNCE.apply(query, document, scale)
    return loss


class WeightedBags(torch.autograd.Function):
    """Sums of coefficient × weight × token vector, with gradients for table and weights."""

    @staticmethod
    def forward(ctx: Any, table: Tensor, weights: Tensor, bags: TokenBags, order: Tensor) -> Tensor:
        ctx.save_for_backward(table, weights, order)
        ctx.bags = bags
        entry_weights = weights[bags.sides, bags.ids] * bags.coefficients
        return _sums(table, bags.ids, bags.starts, entry_weights)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None, None]:  # type: ignore[override]
        """Sum the gradient per side and token first: a token recurs in thousands of bags."""
        table, weights, order = ctx.saved_tensors
        bags: TokenBags = ctx.bags
        keys, places = torch.sort(order[bags.ids] * len(SIDES) + bags.sides)
        pairs, counts = torch.unique_consecutive(keys, return_counts=True)
        starts = (torch.cumsum(counts, 0) - counts).to(torch.int32)
        owner = torch.repeat_interleave(bags.lengths).to(torch.int32)
        sums = _sums(gradient, owner[places], starts, bags.coefficients[places])
        side = pairs % len(SIDES)
        inverse = torch.empty_like(order)
        inverse[order] = torch.arange(len(order), device=order.device, dtype=order.dtype)
        token = inverse[torch.div(pairs, len(SIDES), rounding_mode="floor")]
        weight_gradient = torch.zeros_like(weights)
        weight_gradient[side, token] = torch.einsum("nd,nd->n", sums, table[token])
        table_gradient = torch.zeros_like(table)
        table_gradient.index_add_(0, token, sums.mul_(weights[side, token][:, None]))
        return table_gradient, weight_gradient, None, None


class InfoNCE(torch.autograd.Function):
    """Symmetric InfoNCE of vectors of length 1; one exponential serves both directions."""

    @staticmethod
    def forward(ctx: Any, query: Tensor, document: Tensor, scale: Tensor) -> Tensor:
        half_query, half_document = query.bfloat16(), document.bfloat16()
        cosines = (half_query @ half_document.T).float()
        diagonal = cosines.diagonal().clone()
        shares = torch.exp((cosines - 1.0) * scale)
        by_query, by_document = shares.sum(1), shares.sum(0)
        own = (diagonal - 1.0) * scale
        count = len(query)
        loss = (by_query.log() + by_document.log() - 2 * own).sum() / (2 * count)
        shares.mul_(by_query.reciprocal()[:, None] + by_document.reciprocal()[None, :])
        shares.div_(2 * count)
        shares.diagonal().sub_(1.0 / count)
        ctx.scale_gradient = (shares * cosines).sum()
        ctx.save_for_backward(half_query, half_document, shares.bfloat16(), scale)
        return loss

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, Tensor]:  # type: ignore[override]
        half_query, half_document, shares, scale = ctx.saved_tensors
        factor = gradient * scale
        query = (shares @ half_document).float() * factor
        document = (shares.T @ half_query).float() * factor
        return query, document, gradient * ctx.scale_gradient


def _sums(vectors: Tensor, ids: Tensor, starts: Tensor, coefficients: Tensor) -> Tensor:
    """Weighted sums of rows of `vectors`; read in bfloat16, which halves what is moved."""
    return functional.embedding_bag(
        ids,
        vectors.bfloat16(),
        starts,
        mode="sum",
        per_sample_weights=coefficients.bfloat16(),
    ).float()
