"""Descriptions of methods, written beside the code that they describe."""

from __future__ import annotations

from collections.abc import Mapping

from codeqa.embeddings import Embedding
from codeqa.store.filters import one_of
from codeqa.store.meta import record_of
from codeqa.store.records import search_text, unit_of
from codeqa.store.schema import REFINED, vector_array
from codeqa.store.writer import Writer
from codeqa.tokens import search_tokens
from codeqa.unit_text import unit_text


def write_comments(
    writer: Writer, comments: Mapping[str, str], fast: Embedding | None = None
) -> int:
    """Set the description of the methods with these ids; returns how many rows changed.

    The description joins the text that is embedded and searched, so the vectors of a changed
    row are made anew: those of `fast`, if the index holds such, here; the others are dropped,
    and refining fills them again. One commit.
    """
    import pyarrow as pa

    handle = writer.tables["methods"]
    query = handle.search().where(one_of("id", comments)).limit(len(comments))
    rows = query.to_arrow().to_pylist() if comments else []
    changed = [row for row in rows if row["llm_comment"] != comments[row["id"]]]
    if not changed:
        return 0
    for row in changed:
        unit, comment = unit_of(row), comments[row["id"]]
        row["llm_comment"] = comment
        row["code"] = unit_text(unit, comment)
        row["search_text"] = " ".join([search_text(unit), *search_tokens(comment)])
        row["vector"] = None
        if REFINED in row:
            row[REFINED] = None
    data = pa.Table.from_pylist(changed, schema=handle.schema)
    if fast is not None and record_of(fast) == writer.meta.vector:
        place = handle.schema.get_field_index("vector")
        kind = handle.schema.field(place).type
        vectors = vector_array(fast.embed_passages([row["code"] for row in changed]), kind)
        data = data.set_column(place, handle.schema.field(place), vectors)
    handle.merge_insert("id").when_matched_update_all().execute(data, on_bad_vectors="null")
    return len(changed)
