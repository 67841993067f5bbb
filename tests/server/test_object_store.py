"""Tables on an S3 store: what is refused before anything is written, and a real index there."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from s3_server import BUCKET, ENVIRONMENT, Stores, s3_stores
from waiting import PATIENCE

from codeqa.engine import open_engine
from codeqa.errors import StorageError
from codeqa.indexing import Indexer
from codeqa.settings import Settings, load_settings
from codeqa.store import locate
from codeqa_server import object_store
from codeqa_server.object_store import check_commits
from tests.kit.repositories import write

SHOP = {
    "shop/prices.py": "def discounted_price(price, share):\n    return price * (1 - share)\n",
    "shop/cart.py": "from shop.prices import discounted_price\n\n\ndef total(items):\n"
    "    return sum(discounted_price(one, 0.1) for one in items)\n",
}


@pytest.fixture(scope="module")
def stores() -> Iterator[Stores]:
    with s3_stores() as running:
        yield running


@pytest.fixture
def on_s3(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """Settings of tables in a part of the bucket that is this test's own; no address yet."""
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    patience = f"{PATIENCE:.0f}"
    limits = {"connect_timeout": f"{patience}s", "client_retry_timeout": patience}
    monkeypatch.setattr(object_store, "IMPATIENT", {**limits, "client_max_retries": "0"})
    write(tmp_path / "repo", SHOP)
    return load_settings(tables=f"s3://{BUCKET}/{tmp_path.name}", workers=1)


@pytest.mark.slow
def test_a_repository_is_indexed_and_searched_on_a_store_that_keeps_every_commit(
    stores: Stores, on_s3: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", stores.careful)
    with open_engine(on_s3, tmp_path / "repo") as engine:
        engine.index.run()
        assert engine.search.search("discounted price").units[0].unit.name == "discounted_price"
        (tmp_path / "repo" / "tax.py").write_text("def value_added_tax():\n    return 0.19\n")
        engine.index.run()
        assert engine.search.search("value added tax").units[0].unit.name == "value_added_tax"
        assert not (engine.location.folder / "tables").exists()


def test_a_store_without_conditional_puts_is_refused_before_any_write(
    stores: Stores, on_s3: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", stores.careless)
    location = locate(on_s3, tmp_path / "repo")
    with pytest.raises(StorageError, match=r"loses rows that are written.*If-None-Match"):
        Indexer(on_s3, location).run()
    assert not any(location.id in path for _, path, _ in stores.requests)
    assert not (on_s3.data_dir / "stores.json").exists()


def test_a_store_that_passed_is_not_probed_again(
    stores: Stores, on_s3: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", stores.careful)
    location = locate(on_s3, tmp_path / "repo")
    on_s3.data_dir.mkdir()
    check_commits(location)
    assert on_s3.tables in json.loads((on_s3.data_dir / "stores.json").read_text())
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")  # where nobody listens
    check_commits(location)


@pytest.mark.slow  # Lance looks for some for two seconds
def test_credentials_come_from_the_profile_where_the_environment_holds_none(
    stores: Stores, on_s3: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_ENDPOINT_URL", stores.careless)
    location = locate(on_s3, tmp_path / "repo")
    with pytest.raises(StorageError, match="Failed to get AWS credentials"):
        check_commits(location)
    profile = "[default]\naws_access_key_id = of-the-profile\naws_secret_access_key = x\n"
    (tmp_path / "credentials").write_text(profile)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    with pytest.raises(StorageError, match="loses rows that are written"):
        check_commits(location)
    assert "of-the-profile" in {credential for _, _, credential in stores.requests}


@pytest.mark.slow  # Lance tries it again
def test_why_a_store_cannot_be_written_is_said(
    stores: Stores, on_s3: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nobody = "http://127.0.0.1:9"
    for tables, address, why in (
        ("s3://no-such-bucket/tables", stores.careful, "NoSuchBucket"),
        (f"s3://{BUCKET}/x", nobody, "Connection refused"),
    ):
        monkeypatch.setenv("AWS_ENDPOINT_URL", address)
        settings = load_settings(tables=tables)
        with pytest.raises(StorageError, match=f"cannot be written to {tables}: {why}"):
            check_commits(locate(settings, tmp_path / "repo"))
