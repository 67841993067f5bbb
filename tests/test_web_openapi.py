"""The description at /openapi.json, and whether the server does what it says."""

from __future__ import annotations

import itertools
import json
import urllib.request
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given
from hypothesis import settings as hypothesis_settings
from hypothesis.errors import Unsatisfiable
from pydantic import SecretStr
from schemathesis import GenerationMode
from serving import serving

from codeqa.settings import Settings, load_settings
from codeqa.web.app import create_app
from codeqa.web.endpoints import Endpoint

pytest_plugins = (
    "cli_shop",
    "web_kit",
)

NOT_ASKED = {
    "GET /api/models/local": "looks for servers on other ports",
    "POST /api/models": "changes where questions go",
    "POST /api/models/forget": "changes keys",
    "POST /api/models/list": "asks another machine",
    "POST /api/models/test": "asks another machine",
    "DELETE /api/repos/{repo}": "removes the index",
}
"""What is left to tests/test_web_models.py, with what it would do."""
MAY_REFUSE = {
    "POST /": "nothing asked",
    "POST /chat": "nothing asked",
    "POST /chat/stream": "nothing asked",
    "POST /v1/chat/completions": "nothing asked",
    "POST /api/conversations/{conversation}": "a title that cannot be shown",
    "POST /api/repos": "a path that is no folder",
    "POST /api/repos/{repo}": "a name that cannot be typed",
    "GET /api/folders": "a path that is no folder",
    "POST /api/tools/grep": "an expression that is none",
    "POST /api/review": "an issue without a word",
    "DELETE /api/privacy/{scope}": "what is no scope",
}
"""Where a request may be refused (400) that fits its schema: why no schema can say it."""
QUESTION = "@codebase how is an article put into the basket?"


@dataclass
class Server:
    port: int
    turn: str = ""
    counts: Counter[tuple[str, int]] = field(default_factory=Counter)
    """Operation and status → how often."""
    numbers: Iterator[int] = field(default_factory=itertools.count)

    def send(self, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(self.url(path), data, headers)
        with urllib.request.urlopen(request, timeout=30) as response:
            return json.load(response)

    def url(self, path: str = "") -> str:
        return f"http://127.0.0.1:{self.port}{path}"


@pytest.fixture
def server(shop: Path, shop_settings: Settings) -> Iterator[Server]:
    """The page's own server over a real index, with a conversation in it."""
    with serving(shop_settings, shop) as port:
        server = Server(port)
        body = {"question": QUESTION, "conversation": "kept"}
        server.turn = server.send("/chat", body)["turn"]
        yield server


def aimed(case: Any, server: Server) -> None:
    """Have the request be about something that there is."""
    known = {"conversation": "kept", "turn": server.turn, "model": "codeqa", "repo": "my shop",
             "scope": "profile"}  # fmt: skip
    for name in case.path_parameters:
        case.path_parameters[name] = known[name]
    for name, value in (("repo", ""), ("path", "store/basket.py")):
        if name in (case.query or {}):
            case.query[name] = value
    if isinstance(case.body, dict):
        case.body |= {name: value for name, value in (("repo", ""), ("turn", server.turn))
                      if name in case.body}  # fmt: skip
        if case.path.startswith("/v1/"):
            case.body["model"] = "codeqa"
            case.body["messages"] = [{"role": "user", "content": QUESTION}]
        elif case.path in ("/", "/chat", "/chat/stream"):
            case.body["question"] = QUESTION


def try_out(server: Server, count: int, *, otherwise: bool) -> list[str]:
    """Ask everything `count` times as described and as often `otherwise`; what was wrong."""
    schema = schemathesis.openapi.from_dict(server.send("/openapi.json"))
    schema.config.update(base_url=server.url())
    problems: list[str] = []
    operations = [result.ok() for result in schema.get_all_operations()]
    # What the others are about has to be there until they are done.
    for operation in sorted(operations, key=lambda one: one.method.upper() == "DELETE"):
        name = f"{operation.method.upper()} {operation.path}"
        if name in NOT_ASKED:
            continue
        takes = bool(operation.body or operation.query)
        modes = [GenerationMode.POSITIVE]
        if takes and otherwise:
            modes.append(GenerationMode.NEGATIVE)
        for mode in modes:
            try:
                ask(server, operation, name, mode, count)
            except Unsatisfiable:  # whatever is sent fits
                assert mode is GenerationMode.NEGATIVE
            except (Exception, BaseExceptionGroup) as error:
                parts = [str(one) for one in getattr(error, "exceptions", [])]
                problems.append(f"{name}, {mode.value}: {error} {' '.join(parts)}")
    return problems


def ask(server: Server, operation: Any, name: str, mode: GenerationMode, count: int) -> None:
    from schemathesis.checks import CHECKS

    left_out = [CHECKS.get_one("positive_data_acceptance")] if name in MAY_REFUSE else []

    @given(case=operation.as_strategy(generation_mode=mode))
    @hypothesis_settings(
        max_examples=count, deadline=None, derandomize=True, database=None,
        suppress_health_check=list(HealthCheck), phases=[Phase.generate],
    )  # fmt: skip
    def each(case: Any) -> None:
        # Every other one is about something that there is.
        if mode is GenerationMode.POSITIVE and next(server.numbers) % 2:
            aimed(case, server)
        response = case.call(allow_redirects=False)
        server.counts[name, response.status_code] += 1
        case.validate_response(response, excluded_checks=left_out)

    each()


def test_every_address_but_the_pages_is_described_validly(data_dir: Path) -> None:
    app = create_app(load_settings(data=data_dir))
    missing = [
        str(rule)
        for rule in app.url_map.iter_rules()
        if rule.endpoint != "static" and not rule.endpoint.startswith("pages.")
        if not isinstance(app.view_functions[rule.endpoint], Endpoint)
    ]
    assert missing == []
    document = app.test_client().get("/openapi.json").json
    schemathesis.openapi.from_dict(document).validate()
    operations = [one for methods in document["paths"].values() for one in methods.values()]
    assert len(operations) >= 30 and all(one["summary"] and one["tags"] for one in operations)
    assert len({one["operationId"] for one in operations}) == len(operations)
    described = document["components"]["schemas"]["QuestionBody"]["properties"]
    assert "description" in described["pin"] and "description" in described["repos"]
    assert {} in document["security"], "no token is needed"


def test_the_description_says_that_a_token_is_needed(data_dir: Path) -> None:
    app = create_app(load_settings(data=data_dir, token=SecretStr("one,two")))
    bearer = {"Authorization": "Bearer one"}
    document = app.test_client().get("/openapi.json", headers=bearer).json
    assert document["security"] == [{"token": []}]
    assert document["components"]["securitySchemes"]["token"]["scheme"] == "bearer"


def test_the_server_does_what_its_description_says(server: Server) -> None:
    assert try_out(server, 1, otherwise=False) == []
    assert {200, 400, 404} <= {status for _, status in server.counts}


@pytest.mark.slow
def test_the_server_does_what_its_description_says_for_many_requests(server: Server) -> None:
    assert try_out(server, 25, otherwise=True) == []
    answered = {name for name, status in server.counts if status < 400}
    assert len(answered) > 25, server.counts
