"""The scripts and styles of a page, as one file each."""

from __future__ import annotations

import gzip
import re

from conftest import ROOT
from flask.testing import FlaskClient

from codeqa.web.assets import SHEETS

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
