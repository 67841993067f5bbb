"""The card of a table: what it is, what it was trained on, how, how well it does, its limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

FEW = 1_000
"""Pairs of a language below which its own words are hardly learnt."""


def card(
    *,
    name: str,
    recipe: Mapping[str, Any],
    fields: Mapping[str, float],
    factors: Mapping[str, float],
    pieces: int,
    trained_on: Mapping[str, Any],
    figures: Mapping[str, Any],
    when: date,
    known_languages: Sequence[str] = (),
    asked: Mapping[str, Mapping[str, Any]] | None = None,
) -> str:
    """Markdown. `figures` are those of the held-out repositories, `asked` those of written
    questions by the way in which they were asked; both {} when none were taken."""
    mixing = recipe["mixing"]
    pairs = trained_on["languages"]
    missing = [one for one in known_languages if not pairs.get(one)]
    rare = [one for one in known_languages if 0 < pairs.get(one, 0) < FEW]
    scaled = [f"{field} {factor:g} times" for field, factor in factors.items()]
    lines = [
        f"# {name}",
        "",
        "A static embedding of source code: one vector per word piece, trained from scratch by",
        "`research/training/` of CodeQA. It turns a question and a definition into vectors that",
        "lie close together when the definition is what the question describes. No language model,",
        "no text and no vectors of others went into it.",
        "",
        "## Trained on",
        "",
        f"{trained_on['rows']:,} pairs of {trained_on['repositories']} public repositories under "
        "permissive licences,",
        "each at one commit; the list stands in `research/training/repositories.jsonl`. Nothing of",
        "their text is in the table but the vocabulary's word pieces.",
        "",
        *_table("pairs from", trained_on["sources"]),
        *_table("language", trained_on["languages"]),
        *_table("licence", trained_on["licences"], "repositories"),
        *([f"Not trained on: {', '.join(missing)}.", ""] if missing else []),
        *(
            [f"Fewer than {FEW:,} pairs, so hardly trained on: {', '.join(rare)}.", ""]
            if rare
            else []
        ),
        "## How",
        "",
        f"{pieces:,} pieces × {recipe['dimension']} dimensions. A document is the sum of four",
        "fields, each a bag of pieces weighted by 1 + ln(count) and a learned token weight; the",
        "fields weigh "
        + ", ".join(f"{field} {value:.2f}" for field, value in fields.items())
        + (f", of which {' and '.join(scaled)} the learnt one." if scaled else "."),
        f"Symmetric InfoNCE over batches of {mixing['batch']:,} pairs, {mixing['group']} of one",
        f"repository side by side; {recipe['epochs']} epochs of Adam; seed {recipe['seed']}.",
        f"Trained on {when.isoformat()}.",
        "",
        "## Figures",
        "",
    ]
    if figures:
        lines += [
            f"Repositories held out from training, {figures['questions']:,} doc comments asked "
            "each of its own",
            "repository, mean reciprocal rank of the definition:",
            f"{figures['mrr']:.3f} with and {figures['mrr_without_name']:.3f} without its name"
            + (", fields as learnt." if scaled else "."),
        ]
    else:
        lines.append("None were taken.")
    lines += _asked(asked or {})
    lines += [
        "",
        "## Limits",
        "",
        "- A bag of words: the order of words, and who calls whom, is not seen.",
        "- Trained on English comments; words of other languages are known only where code",
        "  uses them, and scripts other than Latin hardly at all.",
        "- Made for finding code in one repository by a question in plain words; similarity of",
        "  two pieces of code, or of texts that are no code, was never trained.",
        "",
    ]
    return "\n".join(lines)


def _asked(asked: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Figures of written questions, a table of the ways in which they were asked."""
    ways = {
        "vectors": "by the vectors alone, tests and the like halved",
        "files": "through the whole search, files",
        "units": "through the whole search, lines",
    }
    rows = [
        f"| {title} | " + ", ".join(f"{key} {value:.3f}" for key, value in figures.items()) + " |"
        for way, title in ways.items()
        if (figures := {k: v for k, v in asked.get(way, {}).items() if k != "versus"})
    ]
    return (
        ["", "Written questions about other repositories:", "", "| | |", "|---|---|", *rows]
        if rows
        else []
    )


def _table(head: str, counts: Mapping[str, int], unit: str = "pairs") -> list[str]:
    if not counts:
        return []
    rows = [f"| {key} | {count:,} |" for key, count in counts.items()]
    return [f"| {head} | {unit} |", "|---|---:|", *rows, ""]
