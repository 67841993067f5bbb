"""The scripts and styles of a page, as one file each."""

from __future__ import annotations

import gzip
import re
import sys
from importlib.machinery import ModuleSpec

import pytest
from conftest import ROOT
from flask.testing import FlaskClient

from codeqa.web.assets import SHEETS, asset, mermaid

pytest_plugins = ("web_kit",)

STATIC = ROOT / "static"


def test_a_page_takes_all_scripts_as_one_file_that_a_browser_keeps(client: FlaskClient) -> None:
    page = client.get("/").text
    (address,) = re.findall(r'type="module" src="([^"]+)"', page)
    sent = client.get(address, headers={"Accept-Encoding": "gzip"})
    assert sent.headers["Cache-Control"] == "max-age=31536000" and len(sent.data) < 60_000
    text = gzip.decompress(sent.data).decode()
    assert client.get(address).text == text
    assert "import {" not in text and "class Conversation" in text and "class Panel" in text
    etag = {"If-None-Match": sent.headers["ETag"]}
    assert client.get(address, headers=etag).status_code == 304
    assert client.get("/static/all/other.js").status_code == 404


def test_the_page_itself_is_compressed_for_who_takes_that_but_not_for_another_site(
    client: FlaskClient,
) -> None:
    typed = {"Sec-Fetch-Site": "none", "Accept-Encoding": "br, gzip"}
    sent = client.get("/", headers=typed)
    assert sent.headers["Content-Encoding"] == "gzip" and len(sent.data) < 10_000
    assert gzip.decompress(sent.data).decode() == client.get("/").text
    assert "Accept-Encoding" in sent.headers["Vary"] and "no-store" in sent.headers["Cache-Control"]
    for other in ({"Accept-Encoding": "gzip;q=0"}, {"Sec-Fetch-Site": "cross-site"}):
        assert "Content-Encoding" not in client.get("/", headers=typed | other).headers


def test_a_page_can_take_the_single_files_instead(client: FlaskClient) -> None:
    for page in ("/?source=yes", "/repositories?source=yes"):
        for address in re.findall(r'(?:src|href)="(/static/[^"]+)"', client.get(page).text):
            assert "/all/" not in address
            with client.get(address) as response:
                assert response.status_code == 200


def test_every_sheet_of_styles_is_sent() -> None:
    assert sorted(SHEETS) == sorted(path.stem for path in (STATIC / "css").glob("*.css"))


def test_mermaid_comes_unchanged_and_compressed_from_its_package_which_is_not_imported(
    client: FlaskClient,
) -> None:
    sent = client.get("/static/all/mermaid.js", headers={"Accept-Encoding": "gzip"})
    path = mermaid()
    assert path
    script = path.read_bytes()
    assert gzip.decompress(sent.data) == script and len(sent.data) < 1_000_000
    assert b'globalThis["mermaid"]' in script[-200:] and "mermaidx" not in sys.modules


def test_without_the_package_a_page_says_so_and_there_is_no_frame(
    client: FlaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert " data-diagrams>" in client.get("/").text
    for missing in (None, ModuleSpec("mermaidx", None)):
        monkeypatch.setattr("codeqa.web.assets.find_spec", lambda name, spec=missing: spec)
        asset.cache_clear()
        mermaid.cache_clear()
        assert "data-diagrams" not in client.get("/").text
        assert client.get("/static/diagram").status_code == 404
    mermaid.cache_clear()


def test_the_frame_that_draws_diagrams_has_no_rights_and_loads_only_its_two_scripts(
    client: FlaskClient,
) -> None:
    frame = client.get("/static/diagram")
    policy = frame.headers["Content-Security-Policy"]
    assert policy.startswith("sandbox allow-scripts; default-src 'none'; script-src 'self';")
    scripts = re.findall(r'src="(/[^"]+)"', frame.text)
    assert len(scripts) == 2
    for address in (*scripts, "/static/all/chat_page.js"):
        site = client.get(address).headers["Cross-Origin-Resource-Policy"]
        assert site == ("cross-origin" if address in scripts else "same-origin")
