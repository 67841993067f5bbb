"""Commands that a running server answers: the same as without it, quickly, and nobody else's."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import re
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from conftest import Run
from pydantic import SecretStr
from serving import listed
from waiting import PATIENCE

from codeqa.cli import served as asking
from codeqa.cli.serve import terminal_door
from codeqa.environment import digest_of
from codeqa.settings import Settings
from codeqa.web.ai_sdk import encode_stream
from codeqa.web.app import create_app
from codeqa.web.running import SERVERS_FOLDER, running_servers
from codeqa.web.security import HELLO_PATH, TERMINAL_TOKEN

if TYPE_CHECKING:
    from cli_shop import Command, Served

pytest_plugins = ("cli_shop",)

QUESTION = "how is an article put into the basket?"
LIGHT = (
    {
        f"codeqa.{name}"
        for name in ("cli", "environment", "errors", "folders", "text", "types", "web")
    }
    | {f"codeqa.cli.{name}" for name in ("answers", "ask", "command", "console", "main")}
    | {"codeqa.cli.served", "codeqa.cli.tools", "codeqa.web.running"}
    | {"codeqa.chat.options"}
    | {"codeqa.chat", "codeqa.chat.events", "codeqa.chat.record"}
    | {"codeqa.context", "codeqa.context.block", "codeqa.text.markdown", "codeqa.text.tokens"}
)
SECRET_WORDS = b"how is an article"
ASKED = {"question": QUESTION, "conversation": "c", "without_model": True}


def without_times(text: str) -> str:
    return re.sub(r'("milliseconds": )[\d.]+', r"\g<1>0", text)


COMMANDS = [
    (["ask", "--no-model", QUESTION], 0),
    (["ask", "--no-model", "--json", QUESTION], 0),
    (["search", "article", "--json", "--rerank"], 0),
    (["search", "article lang:cobol"], 0),
    (["symbol", "total_price", "callers", "--json"], 0),
    (["open-file", "basket.py", "7-9"], 0),
    (["grep", "((", "--regex"], 2),
]


def test_a_command_says_the_same_with_a_running_server_and_without(
    served: Served, codeqa: Command, shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for arguments, status in COMMANDS:
        asked = codeqa(*arguments, "--repo", shop)
        hello, *_, last = served.asked
        assert hello == "/api/terminal/hello"
        assert last.startswith(("/chat/stream", "/api/search", "/api/tools/"))
        served.asked.clear()
        local = codeqa(*arguments, "--repo", shop, "--local")
        assert served.asked == []
        assert asked.status == local.status == status, arguments
        assert without_times(asked.out) == without_times(local.out)
        assert asked.err == local.err
    monkeypatch.chdir(shop / "store")
    assert "Basket" in codeqa("ask", "--no-model", "-c", "what does it hold?").out
    assert served.asked, "the repository is that of the folder"
    assert "--local" in codeqa("symbol", "--help").out


def test_what_asks_a_server_loads_next_to_nothing(
    served: Served, shop: Path, run_python: Run
) -> None:
    code = (
        "import json, sys; from codeqa.cli import main, served; served.HELLO_SECONDS = 120\n"
        "status = [main([*json.loads(one), '--repo', sys.argv[1]]) for one in sys.argv[2:]]\n"
        "print(json.dumps([status, sorted(sys.modules)]))"
    )
    commands = (["ask", "--no-model", QUESTION], ["symbol", "total_price", "callers"])
    done = run_python("-c", code, shop, *map(json.dumps, commands))
    status, loaded = json.loads(done.stdout.splitlines()[-1])
    assert status == [0, 0] and served.asked.count("/api/terminal/hello") == 2
    assert not {"pydantic", "flask", "numpy", "sqlite3", "asyncio"} & set(loaded)
    assert {name for name in loaded if name.startswith("codeqa.")} <= LIGHT


def _changed(**values: Any) -> Callable[[Path], None]:
    def change(path: Path) -> None:
        path.write_text(json.dumps({**json.loads(path.read_text()), **values}))

    return change


def _other_token(path: Path) -> None:
    _changed(token="0" * 64, variables=[], digest=digest_of([], "0" * 64))(path)


UNFIT: dict[str, Callable[[Path], None]] = {
    "of another version": _changed(version="0.0.0"),
    "with other settings": _changed(digest="0" * 64),
    "that has ended": _changed(pid=2**22 + 1),
    "whose token is not that of the file": _other_token,
    "whose file others can read": lambda path: path.chmod(0o644),
    "whose file is broken": lambda path: path.write_text("{"),
    "on a port that nobody serves": _changed(port=9),
}


def test_a_server_that_is_not_fit_is_passed_over_without_a_word(
    served: Served, codeqa: Command, shop: Path
) -> None:
    file, text = served.file, served.file.read_text()
    for what, change in UNFIT.items():
        change(file)
        result = codeqa("symbol", "Basket", "--repo", shop)
        assert (result.status, result.err) == (0, ""), what
        assert "class Basket" in result.out and set(served.asked) <= {HELLO_PATH}, what
        assert file.exists() == (what != "that has ended")
        file.unlink(missing_ok=True)
        file.write_text(text)
        file.chmod(0o600)


def listen(listener: socket.socket, body: bytes, heard: list[bytes]) -> None:
    """Answer one caller with `body`, and note all that it says."""
    with contextlib.suppress(OSError), listener.accept()[0] as caller:
        heard.append(caller.recv(10_000))
        caller.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        while more := caller.recv(10_000):
            heard.append(more)


def test_nothing_is_told_to_somebody_else_who_listens_there(
    shop: Path, shop_settings: Settings
) -> None:
    app = create_app(shop_settings)
    for body in (b'{"proof": "' + b"0" * 64 + b'"}', b"[]", b"", b"1" * 5_000):
        heard: list[bytes] = []
        with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as listener:
            thread = threading.Thread(target=listen, args=(listener, body, heard))
            thread.start()
            with terminal_door(app, shop_settings, shop, listener.getsockname()[1]):
                options = {"question": QUESTION, "use_model": False}
                assert asking.ask((str(shop),), options, False) is None
            thread.join(PATIENCE)
        said = b"".join(heard)
        assert b"/api/terminal/hello" in said, body
        assert app.config[TERMINAL_TOKEN].encode() not in said and SECRET_WORDS not in said


def test_a_server_that_fails_early_is_passed_over_and_later_reported(
    served: Served, codeqa: Command, shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = shop.parent / "elsewhere"
    elsewhere.mkdir(exist_ok=True)
    told = codeqa("grep", "x", "--repo", elsewhere)
    assert told.status == 1 and "has not been indexed" in told.error, "as without a server"

    def broken(events: Iterator[Any], **_: Any) -> Iterator[bytes]:
        yield from itertools.islice(encode_stream(events, cite=lambda *_: None), 12)

    monkeypatch.setattr("codeqa.web.questions_api.encode_stream", broken)
    result = codeqa("ask", "--no-model", QUESTION, "--repo", shop)
    assert result.status == 1 and "The server stopped in the middle of the answer." in result.err
    monkeypatch.setattr("codeqa.web.code_api.search_for_programs", lambda *_: 1 / 0)
    assert "add_article" in codeqa("search", "add_article", "--repo", shop).out
    assert served.asked[-1] == "/api/search"


def test_only_who_can_read_the_file_is_answered(served: Served) -> None:
    (found,) = running_servers(served.settings.data_dir)
    assert served.file.stat().st_mode & 0o777 == 0o600 and found.pid == os.getpid()
    assert served.token not in repr(found)
    ours = {"Authorization": f"Bearer {served.token}"}
    of_all = listed(served.client)
    served.client.post("/chat/stream", json=ASKED, headers=ours).get_data()
    assert len(listed(served.client, headers=ours)) == 1 and listed(served.client) == of_all
    for more in ({"Origin": "http://evil.example"}, {"Host": "evil.example"}):
        refused = served.client.post("/api/tools/grep", json={}, headers={**ours, **more})
        assert refused.status_code in (403, 421)
    distant = {"REMOTE_ADDR": "192.0.2.7"}
    for address in ("/api/tools/grep", "/api/terminal/hello"):
        refused = served.client.post(address, json={}, headers=ours, environ_base=distant)
        assert refused.status_code == 403


def test_behind_tokens_the_terminals_lets_in_and_no_wrong_one(shop_settings: Settings) -> None:
    behind = shop_settings.model_copy(update={"token": SecretStr("a-token-of-the-owner")})
    app = create_app(behind)
    for token, status in ((app.config[TERMINAL_TOKEN], 200), ("wrong", 401), ("", 401)):
        headers = {"Authorization": f"Bearer {token}"}
        assert app.test_client().get("/api/repos", headers=headers).status_code == status
        distant = {"REMOTE_ADDR": "192.0.2.7"}
        refused = app.test_client().get("/api/repos", headers=headers, environ_base=distant)
        assert refused.status_code == 401
    app.extensions["codeqa"].close()


def test_the_file_goes_with_the_server_and_with_settings_of_a_file_there_is_none(
    shop_settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = create_app(shop_settings)
    with pytest.raises(ValueError), terminal_door(app, shop_settings, None, 1):
        assert len(running_servers(shop_settings.data_dir)) == 1
        monkeypatch.setenv("CODEQA_EFFORT", "deep")
        assert running_servers(shop_settings.data_dir) == [], "it would answer by other settings"
        raise ValueError
    assert list((shop_settings.data_dir / SERVERS_FOLDER).iterdir()) == []
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".env").write_text("CODEQA_EFFORT=deep\n")
    with terminal_door(app, shop_settings, None, 1):
        assert running_servers(shop_settings.data_dir) == []
    with terminal_door(app, shop_settings.model_copy(update={"host": "192.0.2.7"}), None, 1):
        assert running_servers(shop_settings.data_dir) == []
