"""The scripts and styles of a page, as one file each."""

from __future__ import annotations

import gzip
import hashlib
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


def test_scripts_of_others_are_as_their_authors_built_them_and_sent_compressed(
    client: FlaskClient,
) -> None:
    listed = (STATIC / "vendor" / "README.md").read_text(encoding="utf-8")
    for name, most in (("mermaid.tiny.js", 700_000), ("temml.min.js", 60_000)):
        script = (STATIC / "vendor" / name).read_bytes()
        assert f"{hashlib.sha256(script).hexdigest()}  {name}" in listed
        sent = client.get(f"/static/all/{name}", headers={"Accept-Encoding": "gzip"})
        assert gzip.decompress(sent.data) == script and len(sent.data) < most


def test_the_frame_that_draws_diagrams_has_no_rights_and_loads_only_its_two_scripts(
    client: FlaskClient,
) -> None:
    frame = client.get("/static/diagram")
    policy = frame.headers["Content-Security-Policy"]
    assert policy.startswith("sandbox allow-scripts; default-src 'none'; script-src 'self';")
    scripts = re.findall(r'src="(/[^"]+)"', frame.text)
    assert len(scripts) == 2
    for address in (*scripts, "/static/all/temml.min.js"):
        site = client.get(address).headers["Cross-Origin-Resource-Policy"]
        assert site == ("cross-origin" if address in scripts else "same-origin")
