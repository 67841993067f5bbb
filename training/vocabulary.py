"""The table's vocabulary: WordPiece, learnt on the words of the rows that train.

A word counts once for each repository that uses it, however often it does. What one project
made up would otherwise fill the vocabulary, be learnt by heart, and never be met again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from codeqa.embeddings.table.fields import BODY_CHARACTERS, DOC_CHARACTERS
from codeqa.embeddings.table.wordpiece import CONTINUES, UNKNOWN, split
from codeqa.text.unit_text import decode

PIECES = 32_000
MIN_REPOSITORIES = 3
"""Repositories below which a pair of pieces is not joined."""
ALPHABET = 256
"""Letters that have a piece of their own, the most frequent ones; the rest are unknown."""
LONGEST_WORD = 30
"""Letters; hashes and encoded data teach nothing."""


def words_of_row(row: dict[str, Any]) -> list[str]:
    """The words of a row that a table may see, in any field."""
    unit = decode(row["unit"])
    texts = (row["query"], unit.path, unit.owner, unit.name,
             unit.doc_comment[:DOC_CHARACTERS], unit.body[:BODY_CHARACTERS])  # fmt: skip
    return [word for text in texts for word in split(text) if len(word) <= LONGEST_WORD]


def learn(repositories: Iterable[set[str]], size: int = PIECES) -> list[str]:
    """At most `size` pieces, the unknown one first, from each repository's lower-case words."""
    from tokenizers import Tokenizer
    from tokenizers.models import WordPiece
    from tokenizers.pre_tokenizers import WhitespaceSplit
    from tokenizers.trainers import WordPieceTrainer

    tokenizer = Tokenizer(WordPiece(unk_token=UNKNOWN))
    tokenizer.pre_tokenizer = WhitespaceSplit()
    trainer = WordPieceTrainer(
        vocab_size=size,
        min_frequency=MIN_REPOSITORIES,
        limit_alphabet=ALPHABET,
        special_tokens=[UNKNOWN],
        continuing_subword_prefix=CONTINUES,
        show_progress=False,
    )
    tokenizer.train_from_iterator(_lines(repositories), trainer)
    # In an order of its own: the trainer's depends on the run.
    return [UNKNOWN, *sorted(set(tokenizer.get_vocab()) - {UNKNOWN})]


def _lines(repositories: Iterable[set[str]]) -> Iterator[str]:
    for words in repositories:
        yield " ".join(sorted(words))
