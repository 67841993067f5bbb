"""The compose file, and the processes that it starts, started here without containers."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import yaml
from conftest import ROOT
from postgres_server import postgres_server
from redis_server import free_port, redis_server
from s3_server import BUCKET, ENVIRONMENT, s3_stores
from serving import PATIENT
from waiting import PATIENCE, until

from codeqa.settings import settings_table
from tests.kit.repositories import write

COMPOSE = yaml.safe_load((ROOT / "deploy" / "compose.yaml").read_text("utf-8"))
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
SECRET = re.compile(r"\$\{(\w+)")
TOKEN = "a-token-of-the-test"


def test_the_compose_file_names_versions_opens_loopback_alone_and_holds_no_password() -> None:
    named = set(SECRET.findall(json.dumps(SERVICES))) - {"REPOSITORY"}
    example = (ROOT / "deploy" / "example.env").read_text("utf-8")
    assert named == set(re.findall(r"^(\w+)=$", example, re.M))
    for name, service in SERVICES.items():
        _, _, tag = service["image"].rpartition(":")
        assert tag and tag != "latest", name
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", ())), name
        assert "healthcheck" in service or name == "bucket", "which ends once it is made"
        for variable, value in service.get("environment", {}).items():
            if re.search("PASSWORD|SECRET|TOKEN|AUTH|MC_HOST", variable):
                assert SECRET.search(value), f"{name}: {variable}"
    known = {variable for variable, _, _ in settings_table()}
    given = {one for one in SERVICES["web1"]["environment"] if not one.startswith("AWS_")}
    assert given <= known


def asked(port: int, path: str, body: Any = None) -> str:
    headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
    data = json.dumps(body).encode() if body else None
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", data, headers)
    with urllib.request.urlopen(request, timeout=PATIENCE) as response:
        return str(response.read().decode())


@contextmanager
def web(repository: Path, environment: dict[str, str]) -> Iterator[int]:
    """The port of a server with two processes, which is told to end as a container is."""
    port = free_port()
    command = [sys.executable, "-c", PATIENT, "serve", str(repository), "--port", str(port)]
    process = subprocess.Popen([*command, "--workers", "2"], env=environment, cwd=ROOT)

    def is_ready() -> str:
        assert process.poll() is None, "the server has ended"
        with suppress(urllib.error.URLError, OSError):
            return asked(port, "/ready")
        return ""

    try:
        until(is_ready)
        yield port
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0
    finally:
        process.kill()
        process.wait()


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_two_servers_share_conversations_tables_and_measurements(tmp_path: Path) -> None:
    write(tmp_path / "shop", {"shop/prices.py": "def discounted_price(p):\n    return p * .9\n"})
    with ExitStack() as running:
        redis = running.enter_context(redis_server(tmp_path / "redis"))
        stores = running.enter_context(s3_stores())
        environment = {
            **os.environ, **ENVIRONMENT, "PYTHONPATH": str(ROOT), "REDIS_URL": redis.url,
            "AWS_ENDPOINT_URL": stores.careful, "CODEQA_TABLES": f"s3://{BUCKET}/deploy",
            "CODEQA_TOKEN": TOKEN, "CODEQA_SECRET_KEY": "0" * 64, "CODEQA_METRICS": "on",
            "CODEQA_LOG_FORMAT": "json", "CODEQA_WEB_WORKERS": "2", "CODEQA_EFFORT": "fast",
        }  # fmt: skip
        server = running.enter_context(postgres_server())
        environment |= {"CODEQA_STATE": server.new_database(), "CODEQA_JOBS": "rq"}
        worker = subprocess.Popen([sys.executable, "-m", "codeqa", "worker"], env=environment)
        running.callback(worker.wait)
        running.callback(worker.kill)
        first = running.enter_context(web(tmp_path / "shop", environment))
        second = running.enter_context(web(tmp_path / "shop", environment))
        question = {"question": "@codebase what is a discounted price?", "conversation": "c"}
        assert "discounted_price" in asked(first, "/chat", question)
        assert "discounted_price" in asked(second, "/chat", question)
        for port in (first, second):
            turns = json.loads(asked(port, "/api/conversations/c"))["turns"]
            assert len(turns) == 2, "what one server kept the other shows"
            measured = asked(port, "/metrics")
            assert 'codeqa_answer_seconds_count{end="done"} 1.0' in measured
