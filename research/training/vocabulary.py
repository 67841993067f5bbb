"""The table's vocabulary: WordPiece, learnt on the words of the rows that train.

A word counts once for each repository that uses it, however often it does. What one project
made up would otherwise fill the vocabulary, be learnt by heart, and never be met again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from codeqa.embeddings.pieces import BODY_CHARACTERS, CONTINUES, DOC_CHARACTERS, UNKNOWN, split
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

    lines = [" ".join(sorted(words)) for words in repositories]
    tokenizer = Tokenizer(WordPiece(unk_token=UNKNOWN))
    tokenizer.pre_tokenizer = WhitespaceSplit()
    # Of two equally frequent pairs the trainer joins the one with the lower ids, and gives out
    # ids for letters in an order that changes from run to run: here all have one beforehand.
    trainer = WordPieceTrainer(
        vocab_size=size,
        min_frequency=MIN_REPOSITORIES,
        limit_alphabet=0,
        special_tokens=[UNKNOWN, *_letters(lines)],
        continuing_subword_prefix=CONTINUES,
        show_progress=False,
    )
    tokenizer.train_from_iterator(lines, trainer)
    return [UNKNOWN, *sorted(set(tokenizer.get_vocab()) - {UNKNOWN})]


def _letters(lines: list[str]) -> list[str]:
    """The pieces of one letter: the ALPHABET most frequent, at a word's start and inside one."""
    words = Counter(word for line in lines for word in line.split())
    letters, inside = Counter[str](), set[str]()
    for word, count in words.items():
        inside.update(word[1:])
        for letter in word:
            letters[letter] += count
    kept = sorted(letters, key=lambda letter: (-letters[letter], letter))[:ALPHABET]
    return sorted([*kept, *(CONTINUES + letter for letter in kept if letter in inside)])
