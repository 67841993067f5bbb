"""The command `codeqa` on a small real repository: results, messages and exit statuses."""

from __future__ import annotations

import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pytest
from conftest import ROOT, Run
from openai_server import ScriptedServer, dropped, failure, openai_server, stream
from repositories import write

from codeqa.cli.ask import option_form
from codeqa.prompts import PROMPTS
from codeqa.repositories import last_used
from codeqa.settings import load_settings
from tests.kit.indexed import emptied

if TYPE_CHECKING:
    from cli_shop import Command

pytest_plugins = ("cli_shop",)

KEY = "sk-very-secret-0123456789"
QUESTION = "how is an article put into the basket?"
ANSWER = ["It is appended ", "[store/basket.py:7-9].\n"]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedServer]:
    """A server that is set as the address of models; none of its models is chosen yet."""
    with openai_server(lambda path, body: stream(ANSWER, usage=(1_234, 56))) as server:
        monkeypatch.setenv("CODEQA_MODEL_URL", server.base_url)
        yield server


def test_an_option_of_the_terminal_is_made_by_its_type_or_not_at_all() -> None:
    assert option_form(bool) == {"is_flag": True} and option_form(str) == {"type": str}
    assert option_form(tuple[str, ...]) == {"multiple": True}
    assert option_form(Literal["", "a", "b"])["type"].choices == ("a", "b")
    with pytest.raises(TypeError, match="teach it"):
        option_form(int)


# index


def test_index_shows_plain_progress_and_a_summary_of_what_was_read(shop: Path) -> None:
    summary = (shop.parent / "summary.txt").read_text()
    for line in ("Indexed", "files", "methods", "classes", "documents", "references", "on disk"):
        assert line in summary
    assert "1 binary" in summary and str(shop) in summary.splitlines()[0]
    progress = (shop.parent / "progress.txt").read_text()
    assert progress.strip() and "\r" not in progress and "\x1b" not in progress


def test_a_wrong_call_is_one_line_that_says_what_is_wrong(
    shop_codeqa: Command, shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(shop)
    for arguments, words in (
        ("index nowhere", "There is no folder nowhere"),
        ("index ~nobody-of-that-name/src", "~nobody-of-that-name/src"),
        ("index README.md", "is not a folder"),
        ("index all", "There is no folder all"),
        ("search basket --top 0", "--top"),
        ("search basket --top many", "--top"),
        ("search basket --kind clas", "'class'"),
        ("search basket --repo no-such-name", "codeqa repos list"),
        ("search ''", "The question is empty."),
        ("ask ' '", "The question is empty."),
        ("ask x --mode shout", "'explain', 'locate', 'review', 'plan', 'change'"),
        ("ask x --model no-such/model", "no-such"),
        ("ask x --model custom/m", "needs an address"),
        ("ask x --model openai/gpt-4o", "OPENAI_API_KEY"),
        ("models use no-such/model", "no-such"),
        ("models use openai/gpt-4o", "OPENAI_API_KEY"),
        ("models use custom/m", "needs an address"),
        ("models use custom/m --url ftp://host", "http://"),
        ("models use", "PROVIDER/NAME"),
        ("models tset", "tset"),
        ("serach basket", "serach"),
    ):
        result = shop_codeqa(*shlex.split(arguments))
        assert (result.status, result.out) == (2, ""), arguments
        assert words in result.error
    traced = shop_codeqa("serach", "basket", "--debug")
    assert "Traceback" in traced.err and traced.err.endswith(result.err)


@pytest.mark.parametrize("words", ["index", "serve"])
def test_a_folder_without_source_is_refused_and_is_not_the_repository_used_last(
    words: str, shop_codeqa: Command, shop: Path, tmp_path: Path
) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    before = last_used(load_settings())
    refused = shop_codeqa(words, empty)
    assert (refused.status, refused.out) == (1, "")
    assert refused.error.startswith(f"No source files here: {empty} is empty")
    assert last_used(load_settings()) == before == shop
    assert "empty" not in shop_codeqa("repos", "list").out


def test_a_repository_whose_files_are_gone_is_asked_in_vain(
    codeqa: Command, tmp_path: Path
) -> None:
    location = emptied(tmp_path).location
    indexed = codeqa("index", location.root)
    assert indexed.status == 1 and "codeqa: No source files here" in indexed.err
    found = codeqa("search", "anything", "--repo", location.root)
    assert (found.status, found.out) == (0, "")
    assert "Nothing was found." in found.err
    asked = codeqa("ask", "anything at all?", "--repo", location.root)
    assert asked.status == 0 and asked.out.strip()


def test_a_bare_git_directory_is_refused_with_what_to_do(codeqa: Command, tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", "--bare", tmp_path / "shop.git"], check=True)
    refused = codeqa("index", tmp_path / "shop.git")
    assert refused.status == 2 and "bare git directory" in refused.error
    assert "git clone" in refused.error and "incomplete" not in codeqa("repos", "list").out


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="needs a user without rights")
def test_a_data_folder_that_cannot_be_written_is_said(
    codeqa: Command, tmp_path: Path, shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o500)
    monkeypatch.setenv("CODEQA_DATA", str(locked / "data"))
    result = codeqa("index", shop)
    assert result.status == 1
    assert "Permission denied" in result.error


# search


def test_search_shows_place_symbol_score_and_why_and_json_has_every_field(
    shop_codeqa: Command, shop: Path
) -> None:
    result = shop_codeqa("search", "put an article into the basket", "--repo", shop)
    assert result.status == 0, result.err
    first = result.out.splitlines()[0].split()
    assert first[0] == "1" and first[1].startswith("store/basket.py:")
    assert "Basket.add_article" in result.out and "why: " in result.out
    assert float(first[-1]) > 0
    call = ("search", "total price", "--repo", shop, "--top", "2")
    result = shop_codeqa(*call, "--json")
    document = json.loads(result.out)
    assert set(document) >= {"question", "milliseconds", "channels", "coverage", "hits", "files"}
    assert 1 <= len(document["hits"]) <= 2
    hit = document["hits"][0]
    assert hit["name"] == "total_price" and hit["path"] == "store/basket.py"
    assert (hit["start_line"], hit["end_line"]) == (12, 14)
    assert hit["why"] and hit["channels"] and hit["language"] == "python"
    assert "Reranked:" not in result.err
    assert "Reranked: built-in" in shop_codeqa(*call, "--rerank").err
    document = json.loads(shop_codeqa(*call, "--rerank", "--json").out)
    assert (document["reranker"], document["notice"]) == ("built-in", "")


def test_indexed_code_cannot_command_the_terminal_and_its_index_outlives_its_folder(
    codeqa: Command, tmp_path: Path
) -> None:
    root = tmp_path / "short lived"
    root.mkdir()
    (root / "a.py").write_text("def alone(mark='\x1b[2J\u202e'):\n    return 1\n")
    assert codeqa("index", root).status == 0
    found = codeqa("search", "alone", "--repo", root)
    assert "mark='\u241b[2J\ufffd'" in found.out
    assert "\x1b" not in found.out and "\u202e" not in found.out
    shutil.rmtree(root)
    assert "folder gone" in codeqa("repos", "list").out
    assert codeqa("repos", "remove", root, "--yes").status == 0


def test_filters_keep_only_what_they_name(shop_codeqa: Command, shop: Path) -> None:
    question = "basket articles customer pays card order"
    for asked, kinds in (
        ([question, "--kind", "class"], {"class"}),
        ([f"{question} lang:golang"], {"function", "module"}),
        ([question, "--path", "README.md"], {"document"}),
    ):
        result = shop_codeqa("search", *asked, "--repo", shop, "--json")
        assert {hit["kind"] for hit in json.loads(result.out)["hits"]} == kinds


def test_a_repository_is_named_or_that_of_the_folder_or_the_last_one_used(
    codeqa: Command, shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    nothing = codeqa("search", "add article")
    assert nothing.status == 2 and nothing.error.startswith("No repository was given")
    monkeypatch.setenv("CODEQA_DATA", str(shop.parent / "data"))
    assert "store/basket.py" in codeqa("search", "add article", "--repo", "my shop").out
    for folder in (tmp_path, shop / "store"):
        monkeypatch.chdir(folder)
        assert "store/basket.py" in codeqa("search", "add article").out


def test_no_command_shows_the_help_and_is_bad_usage(codeqa: Command) -> None:
    result = codeqa()
    assert result.status == 2
    assert "Commands:" in result.err
    assert codeqa("-h").out == codeqa("--help").out == result.err
    assert codeqa("repos", "list", "-h").status == 0
    assert "WANT: definition, callers, references" in codeqa("symbol", "-h").out


SHADOWS = ("json", "click", "lancedb", "platformdirs", "filelock", "tree_sitter", "typing")


@pytest.fixture
def shadows(tmp_path: Path) -> Path:
    """A repository with files that are called as libraries are."""
    files = {f"{name}.py": "raise SystemExit('the repository was run')\n" for name in SHADOWS}
    return write(tmp_path / "repository", files)


def test_a_closed_pipe_is_no_failure_and_no_local_module_is_run(
    shadows: Path,
) -> None:
    script = '"$0" -m codeqa models | true; echo "${PIPESTATUS[0]}"'
    command = ["bash", "-c", script, sys.executable]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=shadows, env=environment, capture_output=True, text=True)
    assert (done.stdout, done.stderr.count("Traceback")) == ("0\n", 0)
    assert "the repository was run" not in done.stderr


@pytest.mark.slow
def test_python_files_of_the_working_directory_do_not_replace_libraries(
    shadows: Path, run_python: Run
) -> None:
    done = run_python("-m", "codeqa", "index", ".", cwd=shadows)
    assert done.returncode == 0, done.stderr
    assert re.search(rf"files +{len(SHADOWS)} \(", done.stdout), done.stdout


# repos


def test_repos_list_shows_numbers_size_and_place(shop_codeqa: Command, shop: Path) -> None:
    result = shop_codeqa("repos", "list")
    header, line = result.out.splitlines()
    assert header.split()[0] == "name" and header.split()[-1] == "from"
    assert line.startswith("my shop") and line.endswith(str(shop)) and "ready" in line
    assert str(shop.parent / "data") in result.err
    (row,) = json.loads(shop_codeqa("repos", "list", "--json").out)
    assert row["path"] == str(shop) and row["state"] == "ready"
    assert row["files"] == 3 and row["units"] >= 5 and row["bytes_on_disk"] > 1_000
    assert shop.stat().st_ctime - 86_400 < row["updated_at"] <= time.time()


def test_without_an_index_the_list_is_empty_and_it_is_said_how_to_make_one(
    codeqa: Command, tmp_path: Path
) -> None:
    result = codeqa("repos", "list")
    assert (result.status, result.out) == (0, "")
    assert "codeqa index" in result.err
    assert json.loads(codeqa("repos", "list", "--json").out) == []
    for command in ("search", "ask"):
        result = codeqa(command, "anything", "--repo", tmp_path)
        assert result.status == 1 and "codeqa index" in result.error


def test_repos_remove_deletes_the_index_and_nothing_else(
    copied_codeqa: Command, shop: Path, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    unasked = copied_codeqa("repos", "remove", shop)  # nobody is there to be asked
    assert unasked.status == 2 and "--yes" in unasked.error
    assert copied_codeqa("repos", "list").out
    removed = copied_codeqa("repos", "remove", "my shop", "--yes")
    assert (removed.status, removed.out) == (0, f"Removed the index of {shop}\n")
    assert not any((data / "repos").iterdir())
    assert (shop / "store" / "basket.py").exists()
    again = copied_codeqa("repos", "remove", "my shop", "--yes")
    assert again.status == 1 and "is not indexed" in again.error


def test_doctor_passes_on_a_sound_installation_and_never_shows_a_secret(
    shop_codeqa: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    secrets = {"CODEQA_TOKEN": "the-token", "OPENAI_API_KEY": "sk-secret", "JINA_API_KEY": "ji-key"}
    for name, value in secrets.items():
        monkeypatch.setenv(name, value)
    result = shop_codeqa("doctor")
    lines = result.out.splitlines()
    assert all(line.startswith("ok") for line in lines), result.out
    for name in ("git", "data", "state", "model", "reranker"):
        assert any(line[6:].startswith(f"{name}:") for line in lines)
    assert "files, " in next(line for line in lines if "index of my shop" in line)
    told = shop_codeqa("doctor", "--json").out
    assert all(check["ok"] for check in json.loads(told))
    assert not any(value in result.out + told for value in secrets.values())


def test_doctor_survives_an_index_that_cannot_be_read(
    copied_codeqa: Command, shop: Path, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    for path in (data / "repos").rglob("*.lance/**/*"):
        if path.is_file():
            path.write_bytes(b"not a table")
    for note in (data / "repos").glob("*/report.json"):
        note.unlink()  # what the list saw, where no run has written since
    result = copied_codeqa("doctor")
    assert result.status == 1
    assert "FAIL  index of my shop" in result.out
    assert "unreadable" in copied_codeqa("repos", "list").out


# models


def test_every_provider_is_listed_with_its_key_and_what_chose_the_model_is_named(
    codeqa: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GROQ_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_BASE_URL", "https://gateway.example/v1")
    result = codeqa("models")
    assert result.status == 0
    rows = {line.split()[0]: line for line in result.out.splitlines()}
    assert "exported" in rows["groq"] and "https://api.groq.com" in rows["groq"]
    assert "gpt-4o" in rows["openai"] and "https://gateway.example/v1" in rows["openai"]
    assert "unneeded" in rows["ollama"] and "missing" in rows["anthropic"]
    assert "No model is used" in result.err and KEY not in result.out + result.err
    for setting, words in (
        ("ollama/qwen3", "In use: ollama/qwen3 at 127.0.0.1 (set by CODEQA_MODEL)"),
        ("anthropic", "There is no key for Anthropic."),
    ):
        monkeypatch.setenv("CODEQA_MODEL", setting)
        named = codeqa("models")
        assert named.status == 0 and words in named.err


def test_a_model_is_used_until_none_is(
    codeqa: Command, server: ScriptedServer, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{KEY}\n"))
    used = codeqa("models", "use", "custom/m", "--url", server.base_url, "--key-stdin")
    assert used.status == 0, used.err
    assert "custom/m at 127.0.0.1" in used.out
    assert server.exchanges == []  # choosing sends nothing
    shown = codeqa("models")
    assert "In use: custom/m at 127.0.0.1 (picked by the user)" in shown.err
    for words in (["none"], ["use", "none"]):
        codeqa("models", "use", "custom/m", "--url", server.base_url)
        none = codeqa("models", *words)
        assert none.status == 0 and "nothing is sent" in none.out
        assert "No model is used" in codeqa("models").err
    for result in (used, shown, none):
        assert KEY not in result.out + result.err
    assert (data_dir / "models.json").stat().st_mode & 0o777 == 0o600


def test_what_is_no_key_is_refused_without_repeating_it(
    codeqa: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    for text in ("", "\n", "two words\n", "k\u00e9y\n", "a\x00b\n"):
        monkeypatch.setattr("sys.stdin", io.StringIO(text))
        result = codeqa("models", "use", "groq", "--key-stdin")
        assert result.status == 2 and "key" in result.error
        assert text.strip("\n") == "" or text.strip("\n") not in result.err
    assert "No model is used" in codeqa("models").err


# ask


def last_message(request: tuple[str, dict[str, Any]]) -> str:
    return json.dumps(request[1]["messages"][-1])


def test_the_answer_of_a_model_is_printed_and_what_made_it_is_said_beside_it(
    shop_codeqa: Command, shop: Path, server: ScriptedServer
) -> None:
    result = shop_codeqa("ask", QUESTION, "--repo", shop, "--model", "custom/m", "--rerank")
    assert (result.status, result.out) == (0, "".join(ANSWER))
    notes = result.err.splitlines()
    assert "Model: custom/m at 127.0.0.1, 1,234 tokens read and 56 written" in notes
    assert "Reranked: built-in" in notes
    assert any(note.startswith("Searched: 3 of 3 files") for note in notes)
    assert "add_article" in last_message(server.requests[0])
    # What looks like the tag is not taken for it.
    question = f"{QUESTION} Tell me@codebase.example"
    options = ("--model", "custom/other", "--mode", "review", "--strict")
    result = shop_codeqa("ask", question, "--repo", shop, *options)
    assert "Model: custom/other at 127.0.0.1" in result.err
    assert "Searched: 3 of 3 files" in result.err
    sent = last_message(server.requests[1])
    assert question in sent and "add_article" in sent and "[MODE: review]" in sent
    strict = json.dumps(PROMPTS["strict"].text.strip()).strip('"')
    assert [strict in last_message(request) for request in server.requests] == [False, True]
    result = shop_codeqa("ask", QUESTION, "--repo", shop, "--model", "custom/m", "--json")
    answer = json.loads(result.out)
    assert (result.status, result.err) == (0, "")
    assert (answer["question"], answer["answer"]) == (QUESTION, "".join(ANSWER))
    assert answer["model"] == "custom/m" and answer["citations"][0]["verified"] is True
    tokens = {"prompt": 1_234, "completion": 56, "estimated": False, "cost": 0.0}
    assert answer["tokens"] == tokens


def test_citations_that_are_not_true_are_named(
    shop_codeqa: Command, shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = stream(["See [store/basket.py:7-9], [store/basket.py:70-90] and [no/such.py:3]."])
    with openai_server(lambda path, body: said) as server:
        monkeypatch.setenv("CODEQA_MODEL_URL", server.base_url)
        result = shop_codeqa("ask", QUESTION, "--repo", shop, "--model", "custom/m")
    (note,) = [line for line in result.err.splitlines() if line.startswith("Not verified")]
    assert note == (
        "Not verified: store/basket.py:70-90, the file has only 14 lines; "
        "no/such.py:3, no indexed file has this path"
    )


def test_without_a_model_nothing_is_sent(
    shop_codeqa: Command, shop: Path, server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CODEQA_MODEL", "custom/m")
    for option in (["--no-model"], ["--model", "none"]):
        result = shop_codeqa("ask", QUESTION, "--repo", shop, *option)
        assert result.status == 0 and result.out.endswith("\n")
        assert "add_article" in result.out and "[store/basket.py:" in result.out
        assert "Model:" not in result.err
    review = shop_codeqa("ask", "/review add_article", "--repo", shop, "--no-model")
    assert review.status == 0 and "needs a language model" in review.err
    assert server.exchanges == []


def test_a_follow_up_goes_on_from_the_code_that_was_found(
    shop_codeqa: Command, shop: Path, server: ScriptedServer
) -> None:
    model = ("--repo", shop, "--model", "custom/m")
    shop_codeqa("ask", QUESTION, *model)
    result = shop_codeqa("ask", "-c", "why is that?", *model)
    assert (result.status, result.out) == (0, "".join(ANSWER))
    assert "Searched:" not in result.err, "it is about the answer"
    *_, second = server.requests  # a small call may come before it
    assert "add_article" in last_message(second)
    said = [message["content"] for message in second[1]["messages"][1:-1]]
    assert said == [QUESTION, "".join(ANSWER)]
    result = shop_codeqa("ask", "-c", "and who calls it?", "--repo", shop, "--no-model")
    assert "add_article is called in" in result.out, "it takes the index"
    # A question that is no follow-up owes nothing to what was said before.
    shop_codeqa("ask", "who pays?", *model)
    assert len(server.requests[-1][1]["messages"]) == 2


def test_small_talk_is_answered_as_on_the_page_also_as_a_follow_up(
    shop_codeqa: Command, shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = ("--repo", shop, "--no-model")
    assert shop_codeqa("ask", "hi", *options).out.startswith("Hello. Ask me about the code of")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(f"{QUESTION}\n".encode())))
    assert "add_article" in shop_codeqa("ask", "-", *options).out
    assert shop_codeqa("ask", "-c", "thanks!", *options).out.startswith("You are welcome.")


def test_a_follow_up_belongs_to_its_repository(
    shop_codeqa: Command, shop: Path, server: ScriptedServer, tmp_path: Path
) -> None:
    other = tmp_path / "other shop"
    other.mkdir()
    (other / "a.py").write_text("def alone():\n    return 1\n")
    assert shop_codeqa("index", other).status == 0
    nothing = shop_codeqa("ask", "--continue", "and then?", "--repo", other)
    assert nothing.status == 0 and "**The evidence is weak.**" in nothing.out, (
        "it goes on from none"
    )
    shop_codeqa("ask", QUESTION, "--repo", shop, "--model", "custom/m")
    shop_codeqa("ask", "what is alone?", "--repo", other, "--model", "custom/m")
    shop_codeqa("ask", "-c", "and then?", "--repo", shop, "--model", "custom/m")
    assert "add_article" in last_message(server.requests[-1])
    assert "alone" not in json.dumps(server.requests[-1][1]["messages"])
    assert shop_codeqa("repos", "remove", other, "--yes").status == 0


def test_a_model_that_fails_is_one_line_with_a_next_step(
    shop_codeqa: Command, shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CODEQA_MODEL_KEY", KEY)
    call = ("ask", QUESTION, "--repo", shop, "--model", "custom/m")
    for reply, printed, words in (
        (failure(401, f"Incorrect API key provided: {KEY}"), "", "127.0.0.1"),
        (failure(404, "The model `m` does not exist"), "", "m"),
        (dropped(["It is ", "appended"]), "It is appended\n", "broke off"),
    ):
        with openai_server(lambda path, body, reply=reply: reply) as server:  # type: ignore[misc]
            monkeypatch.setenv("CODEQA_MODEL_URL", server.base_url)
            result = shop_codeqa(*call)
            as_json = shop_codeqa(*call, "--json")
        assert (result.status, result.out) == (1, printed)
        assert words in result.error and KEY not in result.err
        assert result.error.endswith("Or ask with --no-model.")
        assert (as_json.status, as_json.out) == (1, "")
        assert server.headers[0]["authorization"] == f"Bearer {KEY}"
