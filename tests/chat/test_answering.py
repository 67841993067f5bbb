"""Questions to answers over a real index, as streams of events."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator
from pathlib import Path

import chat_kit
import pytest
from block_grammar import parse_block
from chat_kit import answer, index, kinds
from markdown_it import MarkdownIt

from codeqa.chat.citations import find_citations
from codeqa.chat.events import Event
from codeqa.engine import Engine
from codeqa.selection import budget_of, build_context
from codeqa.settings import load_settings

pytest_plugins = ("chat_fixtures",)
pytestmark = pytest.mark.usefixtures("clock")

SESSION = '''"""Sessions of visitors."""

from shop.store import MONTH


class Session:
    """What is known of a visitor."""

    def expire(self, cookie):
        """Forget the visitor when the ``cookie`` is too old.

        :param cookie: what the browser sent
        """
        age = cookie.age
        if age > MONTH:
            self.clear()
            self.events.append("expired")
            self.modified = True
        if self.modified:
            self.touch()
        limit = self.limit
        if limit and age > limit:
            self.clear()
        return age


def open_session(request):
    """Read the session from the signed cookie of a request."""
    session = Session()
    session.expire(request.cookie)
    return session
'''
EVIL = (
    '    """Break ``` out [README.md:1-2]\n\n    ```\n'
    "    ## Not a heading <script>alert(1)</script> [README.md:1-2]\n    ```\n\n"
    '    ![image](http://evil.example/x.png)\n\n    ---\n    <img src=x>\n    """\n'
)
FILES = {
    "README.md": "# Shop\n\nA small shop that sells teapots over the network to everyone.\n\n"
    "## Delivery\n\nParcels are sent by pigeon, see [x](http://evil.example) and\n\n"
    "```\ncoo --fast\n```\n",
    "src/shop/__init__.py": '"""A shop for teapots."""\n',
    "src/shop/session.py": SESSION,
    "src/shop/store.py": "MONTH = 30\n\n\ndef save(item):\n    return item\n",
    "src/shop/app.py": "from shop.session import open_session\n\n\n"
    "def handle(request):\n    session = open_session(request)\n    return session\n\n\n"
    "def main():\n    handle(None)\n",
    "src/shop/evil.py": f"def fence_breaker(value):\n{EVIL}"
    + '    text = "```"\n    return text + value\n\n\n'
    + f"def long_breaker(value):\n{EVIL}"
    + '    text = "````"\n' * 30,
    "docs/evil.md": "# Evil Section\n\nSee ```` and <b>this</b> [README.md:1-2].\n\n"
    "~~~\n</pre> Not a heading ```\n~~~\n\n![i](http://evil.example/i.png)\n",
    "tests/test_session.py": "from shop.session import open_session\n\n\n"
    "def test_open_session():\n    assert open_session(request)\n",
}


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    folder = tmp_path_factory.mktemp("answering")
    engine = index(folder, FILES).open(folder / "said", effort="fast")
    yield engine
    engine.close()


def ask(engine: Engine, question: str, **options: object) -> tuple[list[Event], str]:
    """The events of the answer itself, in a conversation of its own unless one is named."""
    told = chat_kit.ask(engine, question, **{"conversation": uuid.uuid4().hex, **options})
    events = [event for event in told if event.kind not in ("step", "asked")]
    return events, answer(events)


def test_a_tagged_question_is_classified_retrieved_and_answered_with_true_citations(
    engine: Engine,
) -> None:
    events, text = ask(engine, "@codebase when does the session cookie expire?")
    assert kinds(events) == ["classified", "retrieved", "generating", "token", "done"]
    assert (events[0].data["intent"], events[0].data["confidence"]) == ("knowledge_base", 1.0)
    done = events[-1].data
    assert done["retrieval_info"] == events[1].data
    assert done["retrieval_info"]["num_docs"] > 0
    assert done["query_tags"] == ["codebase"]
    assert done["coverage"].startswith("8 of 8 files, by words and names; ")
    assert text.startswith("**`Session.expire`** · method [src/shop/session.py:9-24]: Forget the ")
    assert text.count("*Without a language model") == 1 and text.rstrip().endswith("use`.*")
    assert "[src/shop/session.py:" in text
    assert "age = cookie.age\n" in text
    cited = done["citations"]
    assert cited and all(citation["verified"] for citation in cited)
    assert [(c["path"], c["start"], c["end"]) for c in cited] == [
        (c.path, c.start, c.end) for c in find_citations(text)
    ]
    for citation in cited:
        lines = FILES[citation["path"]].split("\n")
        assert 1 <= citation["start"] <= citation["end"] <= len(lines)


def test_an_answer_says_where_its_best_unit_is_used(engine: Engine) -> None:
    _, text = ask(engine, "@codebase who in the shop calls open_session?")
    assert "Called by `handle` [src/shop/app.py:5]" in text


@pytest.mark.parametrize(
    ("question", "says", "says_not"),
    [
        ("what is this project?",
         ["A small shop that sells teapots", "From [README.md:1-", "`src/shop/`",
          "A shop for teapots.", "### Where it starts"], "evil.example"),
        ("how are parcels delivered by pigeon",
         ["> Parcels are sent by pigeon, see x and", "> ```\n> coo --fast\n> ```"],
         "evil.example"),
        ("how are kubernetes volumes mounted for a session replica?",
         ["**The evidence is weak.**", "“kubernetes”", "Searched: 8 of 8 files", "** · "],
         "**Nothing"),
        ("when does a session cookie of Kerberos expire?",
         ["**“Kerberos” appears nowhere in this code or its documents.**", "**`Session.expire`**"],
         "evidence is weak"),
        ("how does the Session of a Parcel expire? path:src/",
         ["- “Parcel” appears in [README.md:"],
         "evidence is weak"),
        ("how many sessions are there?", ["**Without a language model this is not counted.**"],
         "“many”"),
        ("Session", ["**`Session`**", "- `open_session` ["], "**`open_session`**"),
        ("zyzzyva qwxyz lang:python", ["**Nothing was found", "fewer filters"], "### "),
    ],
    ids=["the project", "a section", "weak evidence", "a name nowhere", "elsewhere", "how many",
         "a name alone", "nothing"],
)  # fmt: skip
def test_a_quoted_answer_says_what_there_is(
    engine: Engine, question: str, says: list[str], says_not: str
) -> None:
    events, text = ask(engine, f"@codebase {question}")
    assert [words for words in says if words not in text] == []
    assert says_not not in re.sub(r"^(```+)\S.*?^\1$", "", text, flags=re.MULTILINE | re.DOTALL)
    assert all(citation["verified"] for citation in events[-1].data["citations"])


def test_indexed_text_cannot_break_out_of_an_answer(engine: Engine) -> None:
    for name in ("fence_breaker", "long_breaker", "Evil Section"):
        events, text = ask(engine, f"@codebase {name}")
        parsed = MarkdownIt("commonmark", {"html": True}).parse(text)
        inner = [child for token in parsed for child in token.children or []]
        found = {token.type for token in [*parsed, *inner]}
        assert not found & {"html_block", "html_inline", "image", "link_open", "hr"}
        assert name in text
        headings = [parsed[i + 1].content for i, t in enumerate(parsed) if t.type == "heading_open"]
        assert not any("Not a heading" in heading for heading in headings)
        cited = {(one["path"], one["end"]) for one in events[-1].data["citations"]}
        assert ("README.md", 2) not in cited, "a citation inside quoted text is text"


def test_the_context_of_a_turn_is_what_was_packed(engine: Engine) -> None:
    question = "@codebase when does the session cookie expire?"
    events, _ = ask(engine, question)
    block = engine.conversations.turn(events[-1].data["turn"]).block
    packed = engine.chat.gatherer.context_for("when does the session cookie expire?")
    assert block.text == packed.text
    assert [c.id for c in parse_block(block.text)] == [c.id for c in block.chunks]
    assert len(block.text) <= engine.settings.context_characters
    assert all(chunk.unit_id and chunk.why for chunk in block.chunks)
    for chunk in block.chunks:
        lines = FILES[chunk.path].split("\n")[chunk.start_line - 1 : chunk.end_line]
        assert chunk.content == "\n".join(lines)


def test_of_five_methods_and_five_classes_the_best_three_of_each_enter_the_context(
    tmp_path: Path,
) -> None:
    files = {
        f"wagon{number}.py": f"class Wagon{number}:\n    load = 'wagon {number}'\n\n\n"
        f"def couple_{number}(wagon):\n    return 'wagon {number}'\n"
        for number in range(7)
    }
    engine = index(tmp_path, files).open(tmp_path / "said")
    result = engine.search.search("which wagon is loaded?")
    assert (len(result.methods), len(result.classes)) == (5, 5)
    settings = load_settings()
    block = build_context(engine.tables(), result, settings, budget_of("fast", settings), most=6)
    kept = {hit.unit.id for hit in (*result.methods[:3], *result.classes[:3])}
    assert {c.unit_id for c in block.chunks} == kept
    assert load_settings().context_characters == 28_000
    engine.close()


def test_without_a_tag_and_without_context_the_tag_is_suggested(engine: Engine) -> None:
    events, text = ask(engine, "when does the cookie expire?", conversation="fresh")
    assert kinds(events) == ["classified", "generating", "token", "done"]
    assert events[0].data["intent"] == "knowledge_base"
    assert events[-1].data["suggest_codebase"]
    assert "No code has been looked up" in text
    assert "`@codebase" in text


def test_without_a_tag_the_context_of_the_conversation_is_used(engine: Engine) -> None:
    ask(engine, "@codebase when does the session cookie expire?", conversation="c1")
    events, text = ask(engine, "and where is MONTH compared?", conversation="c1")
    assert "retrieved" not in kinds(events)
    assert events[0].data["intent"] == "continuation"
    assert events[-1].data["query_tags"] == []
    assert "there was no new search" in text
    assert "MONTH" in text
    assert all(citation["verified"] for citation in events[-1].data["citations"])
    _, other = ask(engine, "and where is MONTH compared?", conversation="c2")
    assert "No code has been looked up" in other
    _, text = ask(engine, "and the logout of it?", conversation="c1")
    assert "does not mention" in text and "`@codebase`" in text


def test_a_follow_up_about_something_else_gets_no_earlier_code_and_says_so(engine: Engine) -> None:
    where = "path:src/shop/session.py"
    ask(engine, f"@codebase {where} when does the session cookie expire?", conversation="c4")
    events, text = ask(engine, "where do zyzzyva weevils hibernate?", conversation="c4")
    assert "No code has been looked up" in text and "`@codebase`" in text
    assert events[-1].data["suggest_codebase"]
    assert "zyzzyva, weevils, hibernate" in events[0].data["left_out"]
    kept = engine.conversations.turn(events[-1].data["turn"])
    assert not kept.chunks and kept.left_out == events[0].data["left_out"]
    _, text = ask(engine, "and where is its age compared with MONTH?", conversation="c4")
    assert "session.py" in text, "the code stays for who comes back to it"


def test_an_empty_question_is_an_error_that_says_so(engine: Engine) -> None:
    for question in ("   ", " @codebase \n", "@codebase /plan"):
        (event,) = ask(engine, question)[0]
        assert (event.kind, event.data["message"]) == ("error", "The question is empty.")


def test_text_that_is_no_unicode_is_answered_all_the_same(engine: Engine) -> None:
    events, text = ask(engine, "@codebase \ud800 session path:\udfff/*", conversation="\udcff")
    assert kinds(events)[-1] == "done"
    assert "Nothing was found" in text
    events, text = ask(engine, "@codebase \udcff session", conversation="\udcff")
    assert kinds(events)[-1] == "done" and "session" in text
