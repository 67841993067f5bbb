"""People whom a reverse proxy has signed in, and who of them sees which repository: all addresses
are walked as somebody who may not see one, and nothing of it comes back and nothing of it changes.
"""

from __future__ import annotations

import http.client
import json
import re
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from flask import Flask, request
from flask.testing import FlaskClient
from indexed import write
from repositories import git
from serving import serving

from codeqa.chat.values import AskOptions
from codeqa.engine import EVERY_TOOL, open_engine, open_multi_repo
from codeqa.errors import SettingsError
from codeqa.indexing import Indexer
from codeqa.repositories import (
    RepositoryReport,
    find_repository,
    remove_repository,
    rename_repository,
)
from codeqa.repositories.snapshots import take_snapshot
from codeqa.settings import Settings, load_settings
from codeqa.store import Location, list_locations, locate
from codeqa.store.location import location_of, save_location
from codeqa.web.app import create_app
from codeqa.web.endpoints import Endpoint
from codeqa.web.security import LOCAL, TERMINAL_TOKEN
from codeqa.web.workspace import workspace
from codeqa_server.access import Rules, read_rules

pytest_plugins = ("web_kit",)

NAME = "quokka"
"""In the name of the hidden repository, and of what it holds."""
SECRET = "wombat"
"""In what it holds, and in nothing that is sent."""
RULES = """
owners = ["platform"]

[repositories]
"quokka-bank" = ["bank"]
"*" = ["*"]
"""
ASKED = f"@codebase where is {NAME}_pays?"


def header(user: str, groups: str = "") -> dict[str, str]:
    return {"X-Forwarded-User": user, "X-Forwarded-Groups": groups}


MIA, ZOE, OWNER = header("mia", "shop"), header("zoe", "bank, shop"), header("ada", "platform")


@dataclass(frozen=True, slots=True)
class World:
    data: Path
    open: Location
    hidden: Location
    joint: str
    turns: dict[str, str]
    """User → the turn that they once had about the hidden repository."""

    def settings(self, **more: Any) -> Settings:
        return load_settings(data=self.data, workers=1, model="none", auth="header", **more)


def write_rules(settings: Settings, text: str = RULES) -> None:
    settings.config_dir.mkdir(parents=True, exist_ok=True)
    (settings.config_dir / "access.toml").write_text(text)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, patient: None) -> World:
    base = tmp_path_factory.mktemp("world")
    settings = load_settings(data=base / "data", workers=1, model="none")
    places = []
    for folder, word, said in (("shop", "plain", "buyer"), (f"{NAME}-bank", NAME, SECRET)):
        source = f'def {word}_pays(total):\n    """The {said} pays."""\n    return total\n'
        root = write(base / folder, {f"{word}.py": source, f"{said}.bin": b"\0\1"})
        git(root, "init", "-qb", f"{said}-branch")
        git(root, "add", ".")
        git(root, "-c", "user.name=A", "-c", "user.email=a@b.c", "commit", "-qm", f"The {said}")
        places.append(locate(settings, root))
        Indexer(settings, places[-1]).run(refine=False)
    shop, hidden = places
    snapshot = take_snapshot(settings, hidden, "HEAD")
    Indexer(settings, snapshot).run(refine=False)
    turns = {}
    with open_engine(settings, hidden.root) as one, open_multi_repo(settings, places) as both:
        for user in ("user-mia", "user-zoe"):  # as they may have asked before the rules changed
            for engine in (both, one):
                asked = AskOptions(ASKED, conversation="earlier", user=user, use_model=False)
                turns[user] = list(engine.chat.ask(asked))[-1].data["turn"]
        joint = both.location.id
    return World(settings.data_dir, shop, hidden, joint, turns)


def start(world: World, data: Path, text: str = RULES, gone: bool = False, **more: Any) -> Flask:
    """A server of a copy of the world. The hidden repository is the one that it starts with and has
    a clone that failed beside it; or it is `gone`."""
    shutil.copytree(world.data, data)
    settings = load_settings(data=data, workers=1, model="none", auth="header", **more)
    write_rules(settings, text)
    for folder in (data / "revs" / world.hidden.id).glob("*[!x]"):
        save_location(locate(settings, folder))  # where it was copied to
    if gone:
        remove_repository(settings, find_repository(settings, world.hidden.id))
    app = create_app(settings, world.open.root if gone else world.hidden.root)
    about = RepositoryReport(f"{NAME}-clone", f"https://{NAME}.example/a/b", "failed")
    jobs = {f"{NAME}-clone-0123abcd": about}
    jobs[world.hidden.id] = replace(about, name=world.hidden.name, state="refreshing")
    space = app.extensions["codeqa"]
    space.jobs._reports.update({} if gone else jobs)
    for place in (world.open, *([] if gone else [world.hidden])):
        space.open(place.root, update=False)  # no run behind makes two servers differ
    return app


@pytest.fixture
def make(world: World, tmp_path: Path) -> Iterator[Callable[..., Flask]]:
    """Such servers, which end with the test."""
    apps: list[Flask] = []

    def made(*given: Any, **more: Any) -> Flask:
        apps.append(start(world, tmp_path / f"data{len(apps)}", *given, **more))
        return apps[-1]

    yield made
    for app in apps:
        app.extensions["codeqa"].close()


@pytest.fixture(scope="module")
def shared(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Flask]:
    """One that no test changes."""
    app = start(world, tmp_path_factory.mktemp("shared") / "data", watch=False, hyde="off")
    yield app
    app.extensions["codeqa"].close()


@pytest.fixture
def proxied(data_dir: Path) -> Callable[..., FlaskClient]:
    """Clients of servers behind a proxy, without a repository."""

    def made(**more: Any) -> FlaskClient:
        settings = load_settings(data=data_dir, auth="header", **more)
        write_rules(settings)
        return create_app(settings).test_client()

    return made


# The walk


def requests_of(app: Flask, repo: str, world: World, user: str) -> Iterator[tuple[str, dict]]:
    """For each address and method of `app` what is sent to have it tell of `repo`, by as many names
    as an address may know it, deletions last."""
    root = f"codeqa/{NAME}-bank"
    values: dict[str, Any] = {
        "repo": repo, "repos": [repo] if repo else [], "path": f"{NAME}.py", "scope": "profile",
        "conversation": "earlier", "turn": world.turns[user], "filename": "css/page.css",
        "q": NAME[:4], "question": ASKED, "query": f"{NAME} pays", "model": root, "value": 1,
        "messages": [{"role": "user", "content": ASKED}], "name": f"{NAME}_pays", "title": "Pays",
        "body": f"{NAME}_pays gives too much", "text": f"@{NAME}_pays", "pattern": f"{NAME}_pays",
        "revision": "HEAD", "without_model": True, "challenge": "x", "render": True,
        "line": "1", "lines": "1-2",
    }  # fmt: skip
    paths = {"/api/repos": str(world.hidden.root), "/api/tree": "", "/api/folders": "/"}
    sends = []
    for rule in app.url_map.iter_rules():
        for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}:
            here = values | ({"path": paths[rule.rule]} if rule.rule in paths else {})
            address = app.url_map.bind("localhost").build(
                rule.endpoint, {name: values.get(name, repo or "x") for name in rule.arguments}
            )
            query = {name: one for name, one in here.items() if isinstance(one, str)}
            given = {"method": method, "path": address, "query_string": query}
            view = app.view_functions[rule.endpoint]
            body = view.body.model_fields if isinstance(view, Endpoint) and view.body else here
            if method == "POST":
                given["json"] = {name: one for name, one in here.items() if name in body}
            sends.append((f"{method} {rule.rule}", given))
    for name, tool in EVERY_TOOL.items():
        arguments = {one: values[one] for one in tool.schema().get("required", ())}
        arguments |= {"title": "Pays", "body": values["body"]} if name == "review" else {}
        call = {"method": "tools/call", "id": 1, "params": {"name": name, "arguments": arguments}}
        sent = {"method": "POST", "path": "/mcp", "query_string": {"repo": repo}, "json": call}
        sends.append((f"MCP {name}", sent))
    hello = {"method": "initialize", "id": 1}
    sent = {"method": "POST", "path": "/mcp", "query_string": {"repo": repo}, "json": hello}
    sends.append(("MCP initialize", sent))
    yield from sorted(sends, key=lambda one: one[0].startswith("DELETE"))


def of_hidden(world: World, data: Path) -> dict[str, object]:
    """All files of the hidden repository and of its index, and all that is kept of what was said
    of it."""
    ids = (world.hidden.id, world.joint)
    folders = (world.hidden.root, data / "repos" / world.hidden.id, data / "revs")
    found: dict[str, object] = {
        str(path): (path.stat().st_size, path.stat().st_mtime_ns)
        for folder in folders
        for path in [folder, *folder.rglob("*")]
    }
    with closing(sqlite3.connect(data / "state.sqlite")) as state:
        for table in ("turn", "conversation", "question"):
            rows = state.execute(f"SELECT * FROM {table} WHERE repository IN (?, ?)", ids)
            found[table] = rows.fetchall()
        found["feedback"] = state.execute("SELECT * FROM feedback").fetchall()
    return found


_DIFFERS = re.compile(r"[0-9a-f]{8,}|[0-9]+([.][0-9]+)?|[a-z]+/data[0-9]")
"""Times, ids of turns, the data folder."""


def walk(app: Flask, twin: Flask, world: World, only: str = "") -> list[str]:
    """What is wrong: the addresses that tell Mia of the hidden repository or change it, or that
    answer her otherwise than those of `twin`, where there is none. `only` those with that in it."""
    wrong, data = list[str](), app.extensions["codeqa"].settings.data_dir
    before = of_hidden(world, data)
    for repo in (world.hidden.id, f"{world.open.id}~{world.hidden.id}", ""):
        for address, given in requests_of(app, repo, world, "user-mia"):
            # Where none is named all look it up alike, and answers take their time.
            if only not in address or not (repo or address.split()[0] in ("GET", "MCP")):
                continue
            answers = [answer(one, given, MIA) for one in (app, twin)]
            if answers[0] != answers[1] or SECRET in str(answers):
                wrong.append(f"{address} of {repo!r}: {answers}")
        if of_hidden(world, data) != before:
            wrong.append(f"one of the addresses changes {repo!r}")
            before = of_hidden(world, data)
    return wrong


def answer(app: Flask, given: dict[str, Any], who: dict[str, str]) -> tuple[int, str]:
    app.extensions["codeqa_gate"]._questions._times.clear()
    with app.test_client().open(**given, headers=who) as sent:
        return sent.status_code, _DIFFERS.sub("#", sent.get_data(as_text=True))


def test_no_address_shows_or_changes_a_hidden_repository(
    make: Callable[..., Flask], world: World
) -> None:
    assert walk(make(), make(gone=True), world) == []


def test_the_walk_has_every_address_answer_somebody_who_may_see_the_repository(
    make: Callable[..., Flask], world: World
) -> None:
    """Else it would prove nothing of an address that it does not know how to ask."""
    app, silent, told = make(), set[str](), set[str]()
    views = {
        f"{method} {rule.rule}": app.view_functions[rule.endpoint]
        for rule in app.url_map.iter_rules()
        for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}
    }
    owners = {one for one, view in views.items() if isinstance(view, Endpoint) and view.owners}
    for address, given in requests_of(app, world.hidden.id, world, "user-zoe"):
        status, text = answer(app, given, ZOE)
        silent |= {address} if status >= 400 or '"isError":true' in text else set()
        telling = (SECRET, f"{NAME}-bank", f"{NAME}_pays", f"{NAME}.py")
        told |= {address} if any(one in text for one in telling) else set()
    unasked = {"GET /api/conversations/<path:conversation>/answer", "GET /metrics"}
    unasked.add("GET /static/all/<name>")  # the page's own script, under a name of its digest
    assert silent == owners | unasked
    talk = "/api/conversations/<path:conversation>"
    expected = {
        "GET /", "POST /", "POST /chat", "POST /chat/stream", "POST /v1/chat/completions",
        "GET /v1/models", "GET /api/repos", "POST /api/repos", "GET /api/status", "GET /api/file",
        "GET /api/tree", "GET /api/complete", "GET /api/skipped", "GET /api/revisions",
        "GET /api/outline", "GET /api/name", "GET /api/blame", "GET /api/first-questions",
        "GET /api/conversations", f"GET {talk}", f"GET {talk}/export", f"POST {talk}/branch",
        "GET /api/context/<turn>", "POST /api/search", "POST /api/mentions", "POST /api/review",
        "MCP initialize", "MCP ask", "MCP review", "MCP open_file", "MCP grep", "MCP symbol",
    }  # fmt: skip
    assert expected - told == set()


def test_the_walk_finds_a_new_address_that_forgets_to_ask_who_may_see(
    make: Callable[..., Flask], world: World
) -> None:
    def names() -> list[str]:
        return [one.name for one in list_locations(workspace().settings)]

    def status() -> str:
        return workspace().engine(request.args["repo"], LOCAL).location.name

    def touch(repo: str) -> str:
        if (folder := workspace().settings.data_dir / "repos" / repo).is_dir():
            (folder / "note").touch()
        return "Done"

    def asks_first() -> str:
        return workspace().engine(request.args["repo"]).location.name

    apps = make(), make(gone=True)
    for app in apps:
        app.add_url_rule("/api/planted/names", view_func=names)
        app.add_url_rule("/api/planted/status", view_func=status)
        app.add_url_rule("/api/planted/<repo>/touch", view_func=touch, methods=["POST"])
        app.add_url_rule("/api/planted/asks-first", view_func=asks_first)
    found = "\n".join(walk(*apps, world, only="/api/planted"))
    assert f"GET /api/planted/names of '{world.hidden.id}'" in found
    assert f"GET /api/planted/status of '{world.hidden.id}'" in found
    assert f"one of the addresses changes '{world.hidden.id}'" in found
    assert "asks-first" not in found


# Who asks


def test_who_asks_is_believed_of_the_proxy_alone(proxied: Callable[..., FlaskClient]) -> None:
    client = proxied(auth_from="192.0.2.7, 2001:db8::/32")

    def status(address: str, **given: str) -> int:
        sent = {"headers": given or MIA, "environ_base": {"REMOTE_ADDR": address}}
        return client.get("/api/repos", **sent).status_code

    for proxy in ("192.0.2.7", "::ffff:192.0.2.7", "2001:db8::1"):
        assert status(proxy) == 200, proxy
    for other in ("192.0.2.8", "127.0.0.1", "::1", "::ffff:192.0.2.8", "", "unix"):
        assert status(other) == 403, other
        assert status(other, Accept="text/html") == 403, "nor without the header"
    missing = client.get("/", environ_base={"REMOTE_ADDR": "192.0.2.7"})
    assert missing.status_code == 401 and "X-Forwarded-User" in missing.json["error"]["hint"]
    assert client.get("/health", environ_base={"REMOTE_ADDR": "192.0.2.8"}).status_code == 200
    bearer = {"Authorization": f"Bearer {client.application.config[TERMINAL_TOKEN]}"}
    assert status("127.0.0.1", **bearer) == 200, "the terminal of who runs the server"
    assert status("192.0.2.8", **bearer) == 403


def test_names_by_settings_are_read_and_no_others(proxied: Callable[..., FlaskClient]) -> None:
    client = proxied(auth_user="Remote-User", auth_groups="Remote-Groups")
    assert client.get("/api/repos", headers=OWNER).status_code == 401
    named = {"Remote-User": "ada", "Remote-Groups": "platform"}
    assert client.get("/api/repos", headers=named).json["changeable"]
    mixed = {"Remote-User": "ada", "X-Forwarded-Groups": "platform"}
    assert not client.get("/api/repos", headers=mixed).json["changeable"]


def test_names_become_users_of_their_own_that_no_token_or_terminal_has(shared: Flask) -> None:
    client = shared.test_client()

    def user(name: str) -> str:
        sent = name.encode().decode("latin-1")
        return str(client.get("/api/privacy", headers=header(sent)).json["user"])

    names = ["local", "terminal", "mcp", "token-0123abcd", "anna", "Anna", "a:b", "a%3Ab", "a/b",
             "ä", "a\u0308", "user-anna", "anna@example.com", "' OR 1=1 --", "../x"]  # fmt: skip
    users = [user(one) for one in names]
    assert len(set(users)) == len(names) and users[-3] == "user-anna@example.com"
    for one in users:
        assert re.fullmatch(r"user-[\w.~%@-]+", one, re.ASCII), one


def test_a_header_that_came_twice_or_is_no_plain_text_makes_nobody_of_a_group(
    world: World, make: Callable[..., Flask]
) -> None:
    """Over a real connection, as a user sends it and a proxy that only adds passes it on."""
    app = make()
    with serving(app.extensions["codeqa"].settings, app=app) as port:

        def sees(*sent: tuple[str, bytes]) -> tuple[int, bool, bool]:
            """The status; whether the hidden repository is seen, and whether as an owner."""
            connection = http.client.HTTPConnection("127.0.0.1", port)
            connection.putrequest("GET", "/api/repos")
            for name, value in sent:
                connection.putheader(name, value)
            connection.endheaders()
            with closing(connection), connection.getresponse() as answer:
                body = json.loads(answer.read())
            names = [one["name"] for one in body.get("repositories", ())]
            return answer.status, world.hidden.name in names, bool(body.get("changeable"))

        user, groups = "X-Forwarded-User", "X-Forwarded-Groups"
        mia, nobody = (user, b"mia"), (401, False, False)
        plain = (200, False, False)
        assert sees(mia, (groups, b"bank")) == (200, True, False)
        assert sees(mia, (groups, b"shop , platform\t")) == (200, True, True)
        for twice in (
            [(user, b"ada"), mia],
            [mia, (groups, b"platform"), (groups, b"shop")],
            [mia, ("x-forwarded-GROUPS", b"platform"), (groups, b"shop")],
            [mia, (user, b"mia")],
        ):
            assert sees(*twice) == nobody, twice
        for other in ("X_Forwarded_Groups", "X-Forwarded_Groups", "X-Forwarded-Group"):
            assert sees(mia, (groups, b"shop"), (other, b"platform")) == plain, other
        assert sees((user, b"mia,ada")) == sees((user, b"")) == sees((user, b" ")) == nobody
        assert sees((user, b"\xff\xfe")) == sees(mia, (groups, b"\xffbank")) == nobody
        for group in ("ｂａｎｋ", "Bank", "ban", "bankers", "*", "b,ank", "bank;platform",
                      '"bank"', "ba\u0441nk", "platform%2Cbank"):  # fmt: skip
            assert sees(mia, (groups, group.encode())) == plain, group
        for group in ("bank\u00a0", "\u200bbank", "bank\u2028"):
            assert sees(mia, (groups, group.encode())) == nobody, group
        assert sees(mia, (groups, "größe, bänk, bank".encode())) == (200, True, False)


def test_a_page_elsewhere_whose_name_leads_here_cannot_speak_as_the_proxy(
    proxied: Callable[..., FlaskClient],
) -> None:
    client = proxied(auth_host="code.example.org", host="0.0.0.0")
    for host, status in (
        ("code.example.org", 200), ("Code.Example.Org:443", 200), ("127.0.0.1:5001", 200),
        ("10.0.3.7:5001", 200), ("evil.example", 421), ("code.example.org.evil.example", 421),
        ("", 421),
    ):  # fmt: skip
        sent = client.get("/api/repos", headers=OWNER | {"Host": host})
        assert sent.status_code == status, host
    cross = OWNER | {"Host": "code.example.org", "Origin": "https://evil.example"}
    assert client.get("/api/repos", headers=cross).status_code == 403


def test_what_leaves_open_who_asks_keeps_the_server_from_starting(settings: Settings) -> None:
    write_rules(settings)
    for given in (
        {"auth_from": "0.0.0.0/0"}, {"auth_from": "::/0, 127.0.0.1"}, {"auth_from": ""},
        {"auth_from": "proxy.example"}, {"auth_from": "10.0.0.1/8"}, {"token": "x"},
        {"access_log": "/nowhere/at/all"},
    ):  # fmt: skip
        with pytest.raises(SettingsError):
            create_app(load_settings(data=settings.data_dir, auth="header", **given))
    with pytest.raises(SettingsError):
        load_settings(auth="headers")
    for wrong in (
        "owner = []", "[repositories]\nx = 'bank'", "[repositories]\nx = [1]", "owners = [",
        "owners = 'bank'", "[repositories]\nx = ['a']\nx = ['b']", None,
    ):  # fmt: skip
        if wrong is None:
            (settings.config_dir / "access.toml").unlink()
        else:
            write_rules(settings, wrong)
        with pytest.raises(SettingsError, match=r"access\.toml"):
            create_app(load_settings(data=settings.data_dir, auth="header"))


# The rules


def seen(app: Flask, who: dict[str, str]) -> set[str]:
    rows = app.test_client().get("/api/repos", headers=who).json["repositories"]
    return {row["name"] for row in rows}


def test_changed_rules_apply_at_once_and_wrong_ones_hide_everything(
    make: Callable[..., Flask], world: World, caplog: pytest.LogCaptureFixture
) -> None:
    app, shop, bank = make(), world.open.name, world.hidden.name
    settings = app.extensions["codeqa"].settings
    assert seen(app, MIA) == {shop} and seen(app, ZOE) >= {shop, bank}
    write_rules(settings, RULES.replace("bank", "shop"))
    assert seen(app, MIA) >= {shop, bank} and seen(app, ZOE) >= {shop, bank}
    write_rules(settings, RULES.replace('"bank"', '"else"'))
    assert seen(app, MIA) == seen(app, ZOE) == {shop}
    path = settings.config_dir / "access.toml"
    for wrong in ("[repositories", "owners = 1", None):
        path.unlink() if wrong is None else path.write_text(wrong)
        caplog.clear()
        for who in (MIA, OWNER):
            refused = app.test_client().get(f"/api/status?repo={world.hidden.id}", headers=who)
            assert refused.status_code == 503 and NAME not in refused.text
        assert "access.toml" in caplog.text and "nobody sees any repository" in caplog.text
    path.write_text(RULES)
    assert seen(app, MIA) == {shop} and seen(app, OWNER) >= {shop, bank}


def test_the_first_pattern_that_fits_decides_and_what_none_fits_nobody_sees(
    make: Callable[..., Flask], world: World
) -> None:
    app, shop, bank = make(), world.open.name, world.hidden.name
    settings, folder = app.extensions["codeqa"].settings, world.hidden.root
    for text, mia, zoe in (
        ("", set(), set()),
        (f"{shop} = ['*']", {shop}, {shop}),
        (f"{shop} = []\n'*' = ['*']", {bank}, {bank}),
        ("'*' = ['bank']", set(), {shop, bank}),
        (f"'{folder}' = ['shop']", {bank}, {bank}),
        (f"'{folder.parent}/*' = ['shop']", {shop, bank}, {shop, bank}),
        (f"'{folder.parent}/{shop}' = ['bank']\n'*' = ['shop']", {bank}, {shop, bank}),
        ("'Shop' = ['*']\n'sho' = ['*']", set(), set()),
    ):
        write_rules(settings, f"[repositories]\n{text}")
        assert (seen(app, MIA) - {f"{NAME}-clone"}, seen(app, ZOE)) == (mia, zoe), text


def test_a_clone_is_named_by_where_it_comes_from_and_a_name_by_its_owner(
    settings: Settings,
) -> None:
    write_rules(settings, "[repositories]\n'host.example/acme/*' = ['acme']\nshop = ['shop']")
    rules = read_rules(settings.config_dir / "access.toml")
    found = {}
    for place in ("host.example/acme/shop", "host.example/acme,sub/tool", "host.example/other/shop",
                  "evil.example/host.example,acme/x", "host.example/acme/shop@release,1",
                  "host.example_8443/acme/shop"):  # fmt: skip
        location = location_of(settings, settings.data_dir.resolve() / "clones" / place)
        save_location(location)
        found[place] = rules.groups_of(location)
    assert list(found.values()) == [{"acme"}, {"acme"}, {"shop"}, set(), {"acme"}, {"acme"}]
    rename_repository(settings, location, "shop2")
    rules = Rules(repositories={"shop2": {"x"}})
    assert rules.groups_of(location) == {"x"}


# What was seen before


def test_conversations_hide_and_return_with_the_right_to_see_a_repository(
    make: Callable[..., Flask], world: World
) -> None:
    app = make()
    client, settings = app.test_client(), app.extensions["codeqa"].settings
    end, (snapshot,) = world.hidden.id[-8:], list_locations(settings, "revs/*")

    def status(address: str, repo: str) -> int:
        query = {"repo": repo, "path": f"{NAME}.py"}
        sent = client.get(address, query_string=query, headers=MIA)
        assert sent.status_code >= 400 or SECRET not in sent.text or may
        return sent.status_code

    turn = f"/api/context/{world.turns['user-mia']}"
    for may in (False, True, False):
        write_rules(settings, RULES.replace("bank", "shop") if may else RULES)
        good = 200 if may else 404
        assert status("/api/conversations/earlier", world.hidden.id) == good
        assert status("/api/conversations/earlier/export", world.joint) == good
        assert status(turn, world.hidden.id) == good
        for repo in (snapshot.id, f"{end}~{snapshot.id}", f"~{end}", f"{end}~",
                     f"x-{end}~y-{end}"):  # fmt: skip
            assert status("/api/status", repo) == good, repo
        for repo in (end, world.hidden.name, str(world.hidden.root), world.hidden.id.upper(),
                     f"{world.hidden.id}/", f" {world.hidden.id}", f"../repos/{world.hidden.id}",
                     f"{world.open.id}\0{end}"):  # fmt: skip
            assert status("/api/status", repo) == 404, repo
        both = client.get(f"/api/status?repo={world.joint}", headers=MIA).json["id"]
        assert both == (world.joint if may else world.open.id)
        asked = {"question": ASKED, "repo": world.joint, "conversation": "new"}
        told = client.post("/chat", json=asked, headers=MIA).json["response"]
        assert (SECRET in told) == may
        # A client that keeps its conversation goes on from the code that is cached for its user.
        asked = {"question": ASKED, "repo": world.hidden.id}
        assert client.post("/chat", json=asked, headers=MIA).status_code == good
        for repo, tells in ((world.hidden.id, may), (world.open.id, False), (world.joint, False)):
            said = [{"role": "user", "content": f"And what does {NAME}_pays do?"}]
            sent = {"repo": repo, "messages": said, "without_model": True, "retrieval": "explicit"}
            assert (SECRET in client.post("/chat", json=sent, headers=MIA).text) == tells, repo
    gone = client.delete("/api/privacy/conversation?id=earlier", headers=MIA)
    assert gone.status_code == 200 and gone.json["counts"]["conversations"] == 1, "it is their own"
    assert NAME not in gone.text


def test_who_changed_lines_is_told_of_indexed_files_to_who_may_see_them(
    shared: Flask, world: World
) -> None:
    client = shared.test_client()

    def blamed(path: str, repo: Location, lines: str = "1-2") -> tuple[int, list[str]]:
        asked = {"path": path, "lines": lines, "repo": repo.id}
        answer = client.get("/api/blame", query_string=asked, headers=MIA)
        commits = (answer.json or {}).get("commits", [])
        return answer.status_code, [one["subject"] for one in commits]

    assert blamed("plain.py", world.open) == (200, ["The buyer"])
    assert blamed("plain.py", world.open, "no lines") == (200, [])
    assert blamed("buyer.bin", world.open) == (404, [])  # git has it, the index does not
    assert blamed("../shop/plain.py", world.open) == (404, [])
    assert blamed(f"{NAME}.py", world.hidden) == (404, [])


def test_a_conversation_over_all_repositories_hides_with_the_right_to_one(
    make: Callable[..., Flask], world: World, tmp_path: Path
) -> None:
    app = make()
    client, settings = app.test_client(), app.extensions["codeqa"].settings

    def ask(who: dict[str, str], conversation: str, question: str) -> str:
        asked = {"question": question, "repo": "~", "conversation": conversation}
        return client.post("/chat", json=asked, headers=who).json["response"]

    def kept(who: dict[str, str]) -> set[str]:
        rows = client.get("/api/conversations?repo=~", headers=who).json["conversations"]
        found = {row["id"] for row in rows}
        for one in ("open", "both"):
            sent = client.get(f"/api/conversations/{one}?repo=~", headers=who)
            assert (sent.status_code == 200) == (one in found) or who is ZOE
            assert one in found or SECRET not in sent.text
        return found

    assert "plain.py" in ask(MIA, "open", "@codebase where is plain_pays?")
    assert SECRET in ask(ZOE, "both", ASKED) and kept(MIA) == {"open"} and kept(ZOE) == {"both"}
    assert client.get("/api/status?repo=~", headers=MIA).json["id"] == "~"
    root = write(tmp_path / "third", {"third.py": "def third_pays():\n    return 3\n"})
    Indexer(settings, locate(settings, root)).run(refine=False)
    assert "third.py" in ask(MIA, "open", "@codebase where is third_pays?")
    assert kept(MIA) == {"open"} and SECRET not in ask(MIA, "other", ASKED)
    write_rules(settings, RULES.replace("bank", "shop"))
    told = ask(MIA, "both", ASKED)
    turn = client.get("/api/conversations/both?repo=~", headers=MIA).json["turns"][-1]["id"]
    assert SECRET in told and kept(MIA) == {"open", "other", "both"}
    write_rules(settings, RULES)
    assert kept(MIA) == {"open", "other"}
    assert SECRET not in ask(MIA, "both", "@codebase and what does it do?")
    found = client.get(f"/api/conversations?repo=~&q={NAME}", headers=MIA).text
    assert '"both"' not in found
    for address in (f"/api/context/{turn}", "/api/conversations/both/export"):
        assert client.get(f"{address}?repo=~", headers=MIA).status_code == 404, address
    said = [{"role": "user", "content": f"And what does {NAME}_pays do?"}]
    sent = {"repo": "~", "messages": said, "without_model": True, "retrieval": "explicit"}
    assert SECRET not in client.post("/chat", json=sent, headers=MIA).text
    write_rules(settings, RULES.replace("bank", "shop"))
    assert kept(MIA) == {"open", "other", "both"}


# The log


def test_the_log_says_who_asked_when_of_which_repository_and_never_what(
    make: Callable[..., Flask], world: World, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "asked.jsonl"
    client = make(access_log=str(path)).test_client()
    key = "sk-" + "a1B2" * 12

    def ask(client: Any, who: dict[str, str], repo: str) -> int:
        asked = {"question": f"@codebase {key}", "repo": repo}
        return client.post("/chat", json=asked, headers=who).status_code

    def lines() -> list[dict[str, Any]]:
        return [json.loads(line) for line in path.read_text().splitlines()]

    ask(client, ZOE, world.joint)
    path.rename(tmp_path / "asked.jsonl.1")  # as logrotate does it
    ask(client, MIA, world.hidden.id)
    client.post("/api/search", json={"question": key}, headers=MIA, query_string={"repo": ""})
    client.get(f"/api/file?path=plain.py&repo={world.open.id}", headers=MIA)
    client.post("/chat", json={"question": key})
    assert path.stat().st_mode & 0o777 == 0o600
    (first,) = map(json.loads, (tmp_path / "asked.jsonl.1").read_text().splitlines())
    assert first["user"] == "user-zoe" and first["at"] == "POST /chat"
    assert set(first["repositories"]) == {world.open.id, world.hidden.id}
    assert [(one["user"], one["repositories"], one["status"]) for one in lines()] == [
        ("user-mia", [], 404), ("user-mia", [world.open.id], 200),
    ]  # fmt: skip
    assert all(set(one) == {"time", "user", "at", "repositories", "status"} for one in lines())
    path.unlink()
    client = make(access_log=str(path), access_log_text=True).test_client()
    ask(client, MIA, world.open.id)
    call = {"name": "grep", "arguments": {"pattern": f"needle {key}"}}
    message = {"method": "tools/call", "id": 1, "params": call}
    client.post(f"/mcp?repo={world.open.id}", json=message, headers=MIA)
    texts = [one["text"] for one in lines()]
    assert "@codebase" in texts[0] and "needle" in texts[1] and key not in path.read_text()
    path.unlink()
    path.mkdir()
    assert ask(client, MIA, world.open.id) == 200, "a log that cannot be written costs no answer"
    assert "access log cannot be written" in caplog.text


def test_everybody_without_a_proxy_is_as_before_and_asked_too_often_is_refused(
    proxied: Callable[..., FlaskClient], client: FlaskClient
) -> None:
    asking = proxied()
    for _ in range(120):
        asking.application.extensions["codeqa_gate"].count_question("user-mia")
    for who in (MIA, ZOE):
        sent = asking.post("/mcp", json={"method": "ping", "id": 1}, headers=who)
        assert (sent.status_code == 429) == (who is MIA)
    alone = client.get("/api/privacy", headers=MIA)
    assert alone.json["user"] == "local", "the header means nothing"
