"""What requests and responses of several modules are made of: texts with limits, truth values,
failures. Lines are 1-based and inclusive, times are seconds since the epoch.
"""

from __future__ import annotations

from typing import Annotated, Any, get_type_hints

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, create_model

from codeqa.chat.citations import Citation
from codeqa.chat.grounding import Sentence
from codeqa.search import parse_rerank
from codeqa.text.tokens import well_formed

QUESTION_CHARACTERS = 20_000
NAME_CHARACTERS = 4_096
"""Longest path, address, key or other name."""
ID_CHARACTERS = 200


def _clean(value: Any) -> Any:
    """A lone surrogate, which JSON can hold, is no reason to refuse a text."""
    return well_formed(value) if isinstance(value, str) else value


def _truth(value: Any) -> bool:
    if isinstance(value, (dict, list)):
        raise ValueError("Send true or false")
    return parse_rerank(value)


Clean = BeforeValidator(_clean)
Text = Annotated[str, Field(max_length=NAME_CHARACTERS), Clean]
Filled = Annotated[str, Field(max_length=NAME_CHARACTERS, pattern=r"\S"), Clean]
Id = Annotated[str, Field(max_length=ID_CHARACTERS), Clean]
FilledId = Annotated[str, Field(max_length=ID_CHARACTERS, pattern=r"\S"), Clean]
Repo = Annotated[Text, Field(description="Id of the repository; empty for the current one.")]
Span = Annotated[
    str, Field(max_length=NAME_CHARACTERS, pattern=r"^[^\x00\n]+:[0-9]{1,9}-[0-9]{1,9}$"), Clean
]
Truth = Annotated[bool, BeforeValidator(_truth, json_schema_input_type=bool | str | float | None)]
Values = dict[str, Any]


class Schema(BaseModel):
    """Docstrings of fields are their descriptions, also of dataclasses in it."""

    model_config = ConfigDict(
        use_attribute_docstrings=True,
        json_schema_serialization_defaults_required=True,
        regex_engine="python-re",  # reads patterns as the clients of /openapi.json do
    )


def fields_of(kind: type[Any], *without: str) -> type[Schema]:
    """A model with the fields of the dataclass `kind`, but those named, as it describes them."""
    whole = create_model("Whole", __base__=Schema, one=(kind, ...))
    described = whole.model_json_schema()["$defs"][kind.__name__]["properties"]
    fields: Values = {
        name: (hint, Field(description=described[name].get("description")))
        for name, hint in get_type_hints(kind).items()
        if name not in without
    }
    return create_model(f"{kind.__name__}Fields", __base__=Schema, **fields)


class FailureDetails(Schema):
    code: str
    """What kind of failure, for programs."""
    message: str
    """What failed, in one sentence."""
    hint: str
    """What to do next, in one sentence; may be empty."""


class Failure(Schema):
    """Every failure but those under /v1."""

    error: FailureDetails


class ApiFailureDetails(Schema):
    message: str
    type: str
    param: str | None
    code: str | None


class ApiFailure(Schema):
    """A failure under /v1, as OpenAI's API tells of it."""

    error: ApiFailureDetails


class Grounding(Schema):
    """How much of an answer is shown by the code that was sent for it."""

    supported: int
    """Sentences that have their evidence in it."""
    claims: int
    """Sentences that claim something about the code."""
    left_out: int
    """Sentences that a strict answer was written without."""
    sentences: list[Sentence]


class AnswerDetails(Schema):
    """What an answer in one piece tells of itself."""

    turn: str
    """Id under which it is kept; empty when it is not."""
    intent: str
    confidence: float
    retrieval_info: dict[str, int]
    """`num_docs` and `similar_queries`."""
    citations: list[Citation]
    grounding: Grounding
    notice: str
    """What the reader should know about the answer, as sentences; may be empty."""
