"""Answers with looks before them, over real HTTP: looks are calls of tools, in the shapes that are
in use, or lines where the server takes none."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pytest
from chat_kit import ASK, SAYS, Open, Script, answer, ask, kinds
from openai_server import (
    NEVER,
    Gate,
    Streamed,
    delta,
    failure,
    openai_server,
    rate_limited,
    stream,
)

from codeqa.chat import reader
from codeqa.chat.events import RESULT_CHARACTERS, Event
from codeqa.chat.looks import LOOK_MARK, may_be_looks, read_looks
from codeqa.chat.reader import ANSWER_NOW, SHORTENED_RESULT
from codeqa.chat.record import TurnRecord
from codeqa.engine import Engine
from codeqa.llm.answer import MOST_CALLS
from codeqa.llm.client import Model
from research.evals.agent.player import Player

if TYPE_CHECKING:
    pass

pytest_plugins = ("chat_fixtures", "cli_shop")

ENDS = ("It is called by `end_of_visit` ", "[shop/visit.py:4-6].\n")
CALLERS = ("symbol", '{"name": "expire_session", "want": "callers"}')
LONG = "What it does is long to tell. " * 12
GREP = ("grep", '{"pattern": "MONTH"}')

Call = tuple[str, str]


def openai_calls(calls: Sequence[Call], said: Sequence[str] = ()) -> Streamed:
    """As OpenAI streams them: name first, arguments in pieces, numbered."""
    events = [delta(text) for text in said]
    for number, (name, arguments) in enumerate(calls):
        head = {"index": number, "id": f"call_{number}", "type": "function"}
        events.append(delta(tool_calls=[{**head, "function": {"name": name, "arguments": ""}}]))
        for at in range(0, len(arguments), 7):
            piece = {"index": number, "function": {"arguments": arguments[at : at + 7]}}
            events.append(delta(tool_calls=[piece]))
    return Streamed((*events, delta(reason="tool_calls")))


def anthropic_calls(calls: Sequence[Call], said: Sequence[str] = ()) -> Streamed:
    """As Anthropic's compatible API does: thoughts beside, arguments whole, content empty."""
    events = [delta(reasoning_content="Let me look. "), *(delta(text) for text in said)]
    for number, (name, arguments) in enumerate(calls):
        call = {"index": number, "id": f"toolu_{number}", "type": "function",
                "function": {"name": name, "arguments": arguments}}  # fmt: skip
        events.append(delta(content="", tool_calls=[call]))
    return Streamed((*events, delta(reason="tool_calls")))


def lines(calls: Sequence[Call], said: Sequence[str] = ()) -> Streamed:
    """As any model writes them, where its server takes no tools."""
    written = []
    for name, arguments in calls:
        given = json.loads(arguments)
        kind = {"open_file": "lines", "search_code": "search"}.get(name, name)
        written.append(f"{LOOK_MARK} {kind} {' '.join(map(str, given.values()))}\n")
    return stream([*said, *("\n" * bool(said)), *written])


def hermes_calls(calls: Sequence[Call], said: Sequence[str] = ()) -> Streamed:
    """As the text of an answer, where a server does not read what its model writes."""
    written = [
        f'<tool_call>\n{{"name": "{name}", "arguments": {arguments}}}\n</tool_call>\n'
        for name, arguments in calls
    ]
    text = "".join([*said, *written, "I wait for the results."])
    return stream([text[at : at + 9] for at in range(0, len(text), 9)])


@pytest.fixture(params=[openai_calls, anthropic_calls, lines, hermes_calls])
def looks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """How looks are written in a reply."""
    if request.param is lines:
        monkeypatch.setattr(Model, "refuses_tools", True)
    return request.param


@pytest.fixture
def engine(opened: Open, script: Script) -> Engine:
    """The shop with so small a context that it does not hold all of it."""
    return opened(**script.settings, context_tokens=300, context_characters=1_000)


@pytest.fixture
def many_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """More of them than any effort has."""
    monkeypatch.setitem(reader.ROUNDS, "normal", 10)


def looking(engine: Engine, question: str = ASK, **options: Any) -> list[Event]:
    return ask(engine, question, effort="normal", **options)


def deep(engine: Engine, question: str = ASK, **options: Any) -> list[Event]:
    return ask(engine, question, effort="deep", **options)


def steps(events: Sequence[Event]) -> list[dict[str, Any]]:
    told = [dict(event.data) for event in events if event.kind == "looked_up"]
    return [one for one in told if one["tool"]]


def kept(engine: Engine) -> TurnRecord:
    engine.conversations.flush()
    (turn,) = engine.conversations.turns("talk")
    return turn


def test_a_sensible_agent_reads_on_from_what_the_tools_show(opened: Open) -> None:
    player = Player("Who calls `expire_sesion`, and what does `Session.is_over` do?")
    with openai_server(player) as server:
        address = {"model": "openai/gpt-4o", "model_url": server.base_url, "model_key": "a-key"}
        engine = opened(**address, context_tokens=300)
        events = ask(engine, f"@codebase {player.question}", effort="deep")
    made = [(step["tool"], json.loads(step["arguments"])) for step in steps(events)]
    assert ("symbol", {"name": "expire_session"}) in made, "the name that was meant"
    assert all(one["verified"] for one in events[-1].data["citations"]), answer(events)


def results(script: Script) -> list[str]:
    """What the model has been given by looks in its last request."""
    texts = ((m["role"], str(m["content"])) for m in script.sent)
    return [text for role, text in texts if role == "tool" or text.startswith(f"[{LOOK_MARK} ")]


def test_the_model_looks_further_before_it_answers(
    engine: Engine, script: Script, looks: Any
) -> None:
    script.replies = [looks([CALLERS, GREP], ["I look who calls it."]), stream(ENDS)]
    events = looking(engine)
    assert kinds(events)[-4:] == ["generating", "looked_up", "token", "done"]
    first, second = steps(events)
    assert first["summary"] == "expire_session is called in 1 place" and not first["failed"]
    assert (first["tool"], json.loads(first["arguments"])) == ("symbol", json.loads(CALLERS[1]))
    assert second["summary"].startswith("grep “MONTH”: 2 lines")
    assert answer(events) == "".join(ENDS), "what belongs to looks is not told"
    assert "How you look further" in script.bodies[0]["messages"][0]["content"]
    shown = results(script)
    assert first["text"] in shown[0] and second["text"] in shown[1] and len(shown) == 2
    if "tools" in script.bodies[0]:
        assert "I look who calls it." in first["said"] and second["said"] == ""
        names = {tool["function"]["name"] for tool in script.bodies[0]["tools"]}
        assert names == {"search_code", "symbol", "open_file", "grep"}
        (said,) = [m for m in script.sent if m.get("tool_calls")]
        ids = [m["tool_call_id"] for m in script.sent if m["role"] == "tool"]
        assert [call["id"] for call in said["tool_calls"]] == ids
    told = [step["summary"] for step in events[-1].data["looked_up"] if step["tool"]]
    assert told == [first["summary"], second["summary"]]


def test_a_call_that_the_server_took_for_a_thought_is_made(engine: Engine, script: Script) -> None:
    thought = (
        'I look.\n<tool_call>\n{"name": "grep", "arguments": {"pattern": "MONTH"}}\n</tool_call>'
    )
    for pieces in ({"reasoning_content": thought}, {"content": f"<think>{thought}"}):
        script.replies = [Streamed((delta(**pieces), delta(reason="stop"))), stream(ENDS)]
        events = looking(engine)
        assert answer(events) == "".join(ENDS) and len(steps(events)) == 1


@pytest.mark.parametrize("effort", ["fast", "normal"])
def test_where_the_context_holds_the_answer_it_takes_one_call(
    engine: Engine, script: Script, effort: str
) -> None:
    events = ask(engine, ASK, effort=effort)
    assert answer(events) == "".join(SAYS) and not steps(events) and len(script.bodies) == 1
    _, block, edges, others = (part["text"] for part in script.sent[-1]["content"])
    assert block.startswith("[CONTEXT]")
    assert edges.startswith("[CALLS]") and others.startswith("[ALSO FOUND]")
    assert "expire_session: Called by: end_of_visit [shop/visit.py:6]" in edges
    assert "shop/part4.py:1-61 warehouse_part_4" in others


def test_a_model_whose_window_holds_no_more_is_told_of_no_looks(
    engine: Engine, script: Script, looks: Any
) -> None:
    script.window = 2_000
    assert answer(looking(engine)) == "".join(SAYS)
    assert "tools" not in script.bodies[-1] and LOOK_MARK not in script.sent[0]["content"]
    assert len(script.sent[-1]["content"]) == 2, "nor of what else was found"


@pytest.mark.parametrize(
    "thought",
    [
        (delta(reasoning_content="It ends [shop/session.py:1-2]"), delta(reasoning_content=" so.")),
        (delta("<think>It ends [shop/session.py:1-2]"), delta(" so.</think>\n\n")),
    ],
    ids=["beside the answer", "in the answer"],
)
def test_what_a_model_thinks_is_told_apart_from_its_answer_and_kept(
    engine: Engine, script: Script, thought: tuple[bytes, ...]
) -> None:
    script.replies = [Streamed((*thought, *map(delta, ENDS), delta(reason="stop")))]
    events = looking(engine)
    told = "".join(event.data["text"] for event in events if event.kind == "thought")
    assert told == "It ends [shop/session.py:1-2] so." and answer(events) == "".join(ENDS)
    turn = kept(engine)
    (thought_of,) = turn.looked_up
    assert (thought_of.tool, thought_of.summary, thought_of.text) == ("", "Reasoning", told)
    assert [one.path for one in turn.citations] == ["shop/visit.py"], "thoughts cite nothing"
    # What is cited is checked before the words that end it are told.
    order = [event.kind for event in events if event.kind in ("cited", "token")]
    assert order[-2:] == ["cited", "token"]


def test_text_before_the_lone_end_of_a_thought_is_taken_back(
    engine: Engine, script: Script
) -> None:
    thought = "It ends [shop/session.py:1-2] so, after a long while of looking at all the code.\n"
    script.replies = [stream([thought, "</think>", "\n\n", *ENDS])]
    events = looking(engine)
    assert "It ends" in answer(events), "it was told already"
    assert events[-1].data["revised"] == "".join(ENDS) == kept(engine).answer
    assert [one.path for one in kept(engine).citations] == ["shop/visit.py"]
    assert thought.strip() in kept(engine).looked_up[0].text


def test_what_a_look_has_shown_may_be_cited_and_is_kept(
    engine: Engine, script: Script, looks: Any
) -> None:
    said = "Teapots are counted [legacy/stock.py:1-3], sold nowhere [shop/till.py:60-61]."
    files = "legacy/stock.py", "shop/part2.py"
    opening = [("open_file", f'{{"path": "{file}"}}') for file in files]
    script.replies = [looks(opening), stream([said])]
    done = looking(engine, "@codebase @shop/session.py how long is a month?")[-1].data
    assert [(c["path"], c["verified"]) for c in done["citations"]] == [
        ("legacy/stock.py", True), ("shop/till.py", False),
    ]  # fmt: skip
    turn = kept(engine)
    *_, last = turn.looked_up
    assert last.summary == "read shop/part2.py 1-61 of 61 lines"
    assert len(last.text) <= RESULT_CHARACTERS + 2
    left_out = {chunk.path for chunk in engine.conversations.turn(turn.id).dropped}
    assert left_out and left_out.isdisjoint(files), "what was looked at is left out no more"


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (("rm", "{}"), "There is no tool 'rm'"),
        (("grep", '{"pattern": "x"'), "not a JSON object"),
        (("grep", '{"regex": "x"}'), "`pattern` is missing"),
        (("open_file", '{"path": "../../etc/passwd"}'), "No indexed file"),
    ],
)
def test_a_wrong_call_is_told_and_a_second_one_ends_the_looking(
    engine: Engine, script: Script, wrong: Call, told: str
) -> None:
    other = (wrong[0], wrong[1] + " ")
    script.replies = [openai_calls([wrong]), openai_calls([other]), stream(ENDS)]
    events = looking(engine)
    assert [step["failed"] for step in steps(events)] == [True, True]
    assert told in results(script)[0]
    assert "tools" not in script.bodies[-1] and script.sent[-1]["content"] == ANSWER_NOW
    assert answer(events) == "".join(ENDS)


def test_a_model_that_repeats_itself_has_to_answer(
    engine: Engine, script: Script, looks: Any, many_rounds: None
) -> None:
    script.replies = [looks([GREP])] * 3 + [stream(ENDS)]
    events = looking(engine)
    assert [step["failed"] for step in steps(events)] == [False, True, True]
    assert all("same arguments" in result for result in results(script)[1:])
    assert answer(events) == "".join(ENDS) and script.sent[-1]["content"] == ANSWER_NOW


def test_an_answer_in_the_message_of_a_look_is_not_told_before_it_was_looked(
    engine: Engine, script: Script, looks: Any
) -> None:
    both = looks([GREP], () if looks is lines else SAYS)
    if looks is lines:
        both = Streamed((*both.events[:-1], *map(delta, SAYS), delta(reason="stop")))
    script.replies = [both, stream(ENDS)]
    events = looking(engine)
    assert answer(events) == "".join(ENDS) and len(steps(events)) == 1
    assert "The session ends in" in str(script.sent), "it is sent back"


@pytest.mark.parametrize(("effort", "rounds"), [("fast", 0), ("normal", 3)])
def test_there_are_as_many_rounds_as_the_effort_allows(
    engine: Engine, script: Script, looks: Any, effort: str, rounds: int
) -> None:
    every = [looks([("grep", f'{{"pattern": "stock.move({n}"}}')]) for n in range(rounds)]
    script.replies = [*every, stream(ENDS)]
    events = ask(engine, ASK, effort=effort)
    assert len(script.bodies) == rounds + 1 and len(steps(events)) == rounds
    assert answer(events) == "".join(ENDS) and "tools" not in script.bodies[-1]
    assert (script.sent[-1]["content"] == ANSWER_NOW) == bool(rounds)


@pytest.mark.parametrize("same", [False, True], ids=["anew", "the same"])
def test_a_model_that_looks_for_ever_is_asked_no_more(
    engine: Engine, script: Script, looks: Any, same: bool
) -> None:
    every = range(3, 4) if same else range(9)
    script.replies = [looks([("grep", f'{{"pattern": "stock.move({n}"}}')]) for n in every]
    events = looking(engine)
    wanted = {lines: "LOOK grep stock.move(3", hermes_calls: 'grep {"pattern": "stock.move(3"}'}
    assert len(script.bodies) == (4 if looks in wanted else 5) and len(steps(events)) == 3
    if looks in wanted:
        refused = "The code found so far does not answer this. The model wanted to look at: "
        assert answer(events) == f"{refused}`{wanted[looks]}`.\n"
    else:  # it calls tools that were not offered: that is no answer
        assert "without content" in events[-1].data["message"]


def test_small_talk_what_leaves_code_out_and_what_asks_no_model_look_no_further(
    engine: Engine, script: Script
) -> None:
    deep(engine, "thank you!")
    deep(engine, exclude=("shop/stock.py:1-3",))
    assert all("tools" not in body for body in script.bodies) and len(script.bodies) == 2
    asked, events = len(script.bodies), deep(engine, use_model=False)
    assert len(script.bodies) == asked and steps(events) == []
    assert "expire_session" in answer(events)


def test_a_server_that_refuses_tools_is_offered_lines_from_then_on(
    engine: Engine, script: Script
) -> None:
    refused = failure(400, "this model does not support tools")
    script.replies = [refused, lines([CALLERS]), stream(ENDS)]
    events = looking(engine)
    assert answer(events) == "".join(ENDS) and len(steps(events)) == 1
    assert ["tools" in body for body in script.bodies] == [True, False, False]
    assert "this model does not support tools" in events[-1].data["notice"], "in its own words"
    looking(engine)
    assert "tools" not in script.bodies[-1] and f"{LOOK_MARK} symbol" in script.sent[0]["content"]


def test_of_calls_without_end_the_first_are_made_and_sent_back(
    engine: Engine, script: Script
) -> None:
    many = openai_calls([("grep", f'{{"pattern": "t{n}"}}') for n in range(MOST_CALLS + 9)])
    script.replies = [Streamed((*many.events, NEVER)), stream(ENDS)]
    events = looking(engine)
    assert script.server.wait_for_disconnects(), "the rest is not even read"
    (asked,) = [one for one in script.sent if one.get("tool_calls")]
    made = len(asked["tool_calls"])
    assert made == len(results(script)) == len(steps(events)) == reader.MOST_LOOKS
    assert f"only the first {made} of at least" in results(script)[-1]
    assert answer(events) == "".join(ENDS)
    # They are collected up to a length of all, which the last may cross.
    long = '{"pattern": "' + "x" * 40_000 + '%d"}'
    script.replies = [anthropic_calls([("grep", long % n) for n in range(4)]), stream(ENDS)]
    assert len(steps(looking(engine))) == 3


def test_a_model_that_fails_while_it_looks_answers_from_what_was_found(
    engine: Engine, script: Script
) -> None:
    script.replies = [
        openai_calls([("open_file", '{"path": "legacy/stock.py"}')]),
        failure(400, "llama does not support tools"),
        stream(["Counted [legacy/stock.py:1-3]."]),
    ]
    events = looking(engine, "@codebase @shop/session.py how long is a month?")
    assert answer(events) == "Counted [legacy/stock.py:1-3]."
    assert "could not look further" in events[-1].data["notice"]
    assert [c["verified"] for c in events[-1].data["citations"]] == [True]
    assert "legacy/stock.py" in str(script.sent[-1]["content"])


def test_a_rate_limit_in_a_later_step_is_waited_for(engine: Engine, script: Script) -> None:
    script.replies = [openai_calls([GREP]), rate_limited(1), stream(ENDS)]
    events = looking(engine)
    assert answer(events) == "".join(ENDS) and len(steps(events)) == 1
    told = [dict(event.data) for event in events if event.kind == "waiting"]
    assert [(one["seconds"], one["begins"]) for one in told] == [(1, True), (0, False)]
    assert told[0]["text"] == "127.0.0.1 asks to wait 1 s"


def test_two_requests_of_an_answer_are_made_again_whichever_they_are(
    engine: Engine, script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept = Model.sleep

    async def sleep(seconds: float) -> None:
        if len(script.bodies) > 4:  # what is told of a third wait ends it
            await asyncio.Event().wait()
        await slept(seconds)

    monkeypatch.setattr(Model, "sleep", staticmethod(sleep))
    later = rate_limited(1)
    script.replies = [later, openai_calls([CALLERS]), later, openai_calls([GREP]), later]
    events = looking(engine)
    assert events[-1].kind == "error" and "limits the rate" in events[-1].data["message"]
    assert len(script.bodies) == 5, "the third is not, and nothing else is asked instead"


@pytest.mark.parametrize("end", ["done", "error"])
def test_a_server_that_fails_twice_is_asked_once_more_and_without_tools(
    engine: Engine, script: Script, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    async def sleep(seconds: float) -> None:
        if len(script.bodies) > 1:  # what is asked next waits for no second time
            await asyncio.Event().wait()

    monkeypatch.setattr(Model, "sleep", staticmethod(sleep))
    script.replies = [failure(500), failure(500), stream(ENDS) if end == "done" else failure(500)]
    assert looking(engine)[-1].kind == end
    assert ["tools" in one for one in script.bodies] == [True, True, False]


def test_an_answer_in_the_middle_of_which_it_calls_goes_on(engine: Engine, script: Script) -> None:
    script.replies = [openai_calls([CALLERS], [LONG]), stream(ENDS)]
    events = looking(engine)
    assert answer(events).split() == (LONG + "".join(ENDS)).split()
    assert len(steps(events)) == 1


def test_what_was_answered_is_not_begun_again_where_tools_are_refused_late(
    engine: Engine, script: Script
) -> None:
    refused = failure(400, "tools are not supported here")
    script.replies = [openai_calls([CALLERS], [LONG]), refused, stream(ENDS)]
    events = looking(engine)
    assert events[-1].kind == "error" and answer(events).split() == LONG.split()
    assert len(script.bodies) == 2


def test_stopping_ends_it_at_once_with_what_there_is(engine: Engine, script: Script) -> None:
    stop = threading.Event()

    def stopped() -> Iterator[bytes | Gate]:
        stop.set()
        yield NEVER

    script.replies = [openai_calls([GREP]), Streamed(stopped())]
    events = looking(engine, cancelled=stop.is_set)
    assert events[-1].kind == "stopped"
    assert len(kept(engine).looked_up) == 1


def test_old_results_are_shortened_and_the_question_never(
    engine: Engine, script: Script, many_rounds: None
) -> None:
    every = [("open_file", f'{{"path": "shop/part{n}.py"}}') for n in range(5)]
    script.replies = [*(openai_calls([one]) for one in every), stream(ENDS)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("codeqa.chat.responders.RESULTS_CHARACTERS", 5_000)
        looking(engine)
    assert [text.endswith(SHORTENED_RESULT) for text in results(script)] == [True] * 4 + [False]
    assert script.sent[1] == script.bodies[0]["messages"][1]


# Looks as lines.


def test_lines_that_look_are_told_from_an_answer() -> None:
    made = [
        ("LOOK symbol Cart.total callers", [("symbol", {"name": "Cart.total", "want": "callers"})]),
        ("`LOOK symbol a, b`", [("symbol", {"name": "a, b", "want": "definition"})]),
        (
            "LOOK lines a/b.py:1-20, `c.py`",
            [("open_file", {"path": "a/b.py", "lines": "1-20"}), ("open_file", {"path": "c.py"})],
        ),
        ('- LOOK grep "no such" in src/', [("grep", {"pattern": "no such", "path": "src/"})]),
        ("Let me see:\n\nLOOK: grep x", [("grep", {"pattern": "x"})]),
        (
            "LOOK search how it ends\n```python\ndef end():\n    pass\n```\nLOOK rm x",
            [
                ("search_code", {"query": "how it ends", "guess": "def end():\n    pass"}),
                ("rm", {"query": "x"}),
            ],
        ),
        ("It is set once.\nThen:\nLOOK grep x", []),
        ("The word LOOK symbol x stands there.", []),
        ("", []),
    ]
    for text, expected in made:
        assert [(o.name, json.loads(o.arguments)) for o in read_looks(text)] == expected, text
    assert may_be_looks("LO") and may_be_looks("Let me see") and not may_be_looks("It is.\nThen")
