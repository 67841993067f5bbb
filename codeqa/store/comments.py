"""Descriptions of methods, written beside the code that they describe.

A description joins the text that is embedded and searched (`code`, `search_text`). It belongs to
the source that it was written for: a row whose source changed loses it, one that is only written
again keeps it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from codeqa.embeddings.base import Embedding
from codeqa.store.filters import one_of
from codeqa.store.meta import record_of
from codeqa.store.records import Batch, search_text, units_of
from codeqa.store.schema import ALL_ROWS, REFINED, vector_array
from codeqa.store.writer import DESCRIBED, Writer
from codeqa.text.tokens import search_tokens
from codeqa.text.unit_text import decode, encode, unit_text
from codeqa.types import Unit


def write_comments(
    writer: Writer, described: Sequence[tuple[Unit, str]], fast: Embedding | None = None
) -> int:
    """Set the descriptions of methods; returns how many rows changed. One commit.

    The vectors of a changed row are made anew: those of `fast`, if the index holds such, here;
    the others are dropped, and refining fills them again. Methods that are gone or have another
    source by now are left alone.
    """
    import pyarrow as pa

    comments = {unit.id: (unit.source_code, text) for unit, text in described}
    handle = writer.tables["methods"]
    found = handle.search().where(one_of("id", comments)).limit(ALL_ROWS).to_arrow()
    changed = []
    for row, unit in zip(found.to_pylist(), units_of(found), strict=True):
        source, comment = comments[unit.id]
        if row["llm_comment"] == comment or unit.source_code != source:
            continue
        row["llm_comment"] = comment
        row["code"] = unit_text(unit, comment)
        row["search_text"] = _with_words(search_text(unit), comment)
        row["vector"] = None
        if REFINED in row:
            row[REFINED] = None
        changed.append(row)
    if not changed:
        return 0
    data = pa.Table.from_pylist(changed, schema=handle.schema)
    if fast is not None and record_of(fast) == writer.meta.vector:
        place = handle.schema.get_field_index("vector")
        kind = handle.schema.field(place).type
        vectors = vector_array(fast.embed_passages([row["code"] for row in changed]), kind)
        data = data.set_column(place, handle.schema.field(place), vectors)
    handle.merge_insert("id").when_matched_update_all().execute(data, on_bad_vectors="null")
    return len(changed)


def keep_comments(writer: Writer, batch: Batch) -> None:
    """Give the methods of `batch` the descriptions that rows of the same id and source have.

    To be called before `batch` is embedded and written.
    """
    columns = batch.tables["methods"]
    old = writer.described
    if old is None or not columns:
        return
    condition = f"({one_of('path', sorted(set(columns['path'])))}) AND {DESCRIBED}"
    query = old.search().where(condition).select(["id", "source_code", "llm_comment"])
    rows = query.limit(ALL_ROWS).to_arrow().to_pylist()
    comments = {(row["id"], row["source_code"]): row["llm_comment"] for row in rows}
    pairs = zip(columns["id"], columns["source_code"], strict=True)
    for place, pair in enumerate(pairs):
        if (comment := comments.get(pair)) is None:
            continue
        fields = decode(columns["code"][place])
        doc = "\n".join(part for part in (comment, fields.doc_comment) if part)
        columns["llm_comment"][place] = comment
        columns["code"][place] = encode(replace(fields, doc_comment=doc))
        columns["search_text"][place] = _with_words(columns["search_text"][place], comment)


def _with_words(text: str, comment: str) -> str:
    """Tokens of a unit with those of its description."""
    return " ".join([text, *search_tokens(comment)])
