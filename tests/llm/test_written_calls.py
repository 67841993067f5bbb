"""Tool calls in the text of an answer: which are read, and what stays text."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from codeqa.llm.answer import AnswerReader
from codeqa.llm.values import Reasoning
from codeqa.llm.written_calls import LONGEST_CALL, WrittenCalls

TOOLS = {
    "search_code": ["query", "guess", "path"],
    "symbol": ["name", "want"],
    "grep": ["pattern", "path", "regex"],
}
GREP = ("grep", {"pattern": "load_order"})
SYMBOL = ("symbol", {"name": "connect", "want": "callers"})
ONE = '{"name": "grep", "arguments": {"pattern": "load_order"}}'
TWO = '{"name": "symbol", "arguments": {"name": "connect", "want": "callers"}}'
MANY_WORDS = "Orders are kept in a table. " * 30
CODE = 'def retry(x):\n    return {"a": 1}'

Call = tuple[str, dict[str, Any]]
FORMS: dict[str, tuple[str, Sequence[Call]]] = {
    "hermes": (f'<tool_call>\n{ONE}\n</tool_call>', [GREP]),
    "hermes inside one": (f'<tool_call>\n{ONE}\n{TWO}\n</tool_call>', [GREP, SYMBOL]),
    "hermes args first": (
        '<tool_call>{"arguments": {"pattern": "load_order"}, "name": "grep"}</'
        'tool_call>',
        [GREP]),
    "hermes truncated": (
        '<tool_call>\n{"name": "grep", "arguments": {"pattern": "load_order"}\n</'
        'tool_call>',
        [GREP]),
    "hermes no close": (f'<tool_call>\n{ONE}', [GREP]),
    "hermes str args": (
        '<tool_call>\n{"name": "grep", "arguments": "{\\"pattern\\": \\"load_order\\"'
        '}"}\n</tool_call>',
        [GREP]),
    "hermes parameters": (
        '<tool_call>{"name": "grep", "parameters": {"pattern": "load_order"}}</'
        'tool_call>',
        [GREP]),
    "hermes list": (f'<tool_call>[{ONE}, {TWO}]</tool_call>', [GREP, SYMBOL]),
    "before": (f"I'll look for it in the code.\n\n<tool_call>\n{ONE}\n</tool_call>", [GREP]),
    "after": (f'<tool_call>\n{ONE}\n</tool_call>\nI will wait for the result.', [GREP]),
    "response invented": (
        f'<tool_call>\n{ONE}\n</tool_call>\n<tool_response>\nsrc/a.py:1: x\n</'
        'tool_response>\nIt is in a.py.',
        [GREP]),
    "long before": (f'{MANY_WORDS}\n<tool_call>\n{ONE}\n</tool_call>', [GREP]),
    "qwen coder": (
        '<tool_call>\n<function=grep>\n<parameter=pattern>\nload_order\n</'
        'parameter>\n</function>\n</tool_call>',
        [GREP]),
    "qwen coder two": (
        '<function=grep>\n<parameter=pattern>\nload_order\n</parameter>\n</'
        'function>\n<function=symbol>\n<parameter=name>\nconnect\n</parameter>\n<'
        'parameter=want>\ncallers\n</parameter>\n</function>',
        [GREP, SYMBOL]),
    "qwen coder unclosed par": (
        '<tool_call>\n<function=symbol>\n<parameter=name>\nconnect\n<parameter='
        'want>\ncallers\n</function>\n</tool_call>',
        [SYMBOL]),
    "qwen coder html value": (
        '<function=grep>\n<parameter=pattern>\n</div>\n</parameter>\n</function>',
        [("grep", {"pattern": "</div>"})]),
    "qwen coder code": (
        "<function=search_code>\n<parameter=query>\nretry\n</parameter>\n"
        f"<parameter=guess>\n{CODE}\n</parameter>\n</function>",
        [("search_code", {"query": "retry", "guess": CODE})]),
    "llama function": ('<function=grep>{"pattern": "load_order"}</function>', [GREP]),
    "deepseek v3": (
        '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>grep\n```json'
        '\n{"pattern": "load_order"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
        [GREP]),
    "deepseek v3.1": (
        '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>grep<｜tool▁sep｜>{"pattern": "'
        'load_order"}<｜tool▁call▁end｜><｜tool▁call▁begin｜>symbol<｜tool▁sep｜>{"name'
        '": "connect", "want": "callers"}<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
        [GREP, SYMBOL]),
    "deepseek dsml": (
        '<｜DSML｜function_calls>\n<｜DSML｜invoke name="grep">\n<｜DSML｜parameter '
        'name="pattern" string="true">load_order</｜DSML｜parameter>\n</｜DSML｜'
        'invoke>\n</｜DSML｜function_calls>',
        [GREP]),
    "kimi": (
        '<|tool_calls_section_begin|><|tool_call_begin|>functions.grep:0<|'
        'tool_call_argument_begin|>{"pattern": "load_order"}<|tool_call_end|><|'
        'tool_call_begin|>functions.symbol:1<|tool_call_argument_begin|>{"name": '
        '"connect", "want": "callers"}<|tool_call_end|><|tool_calls_section_end|>',
        [GREP, SYMBOL]),
    "mistral": (f'[TOOL_CALLS][{ONE}]', [GREP]),
    "mistral v11": (
        '[TOOL_CALLS]grep{"pattern": "load_order"}[TOOL_CALLS]symbol{"name": "'
        'connect", "want": "callers"}',
        [GREP, SYMBOL]),
    "mistral args": ('[TOOL_CALLS]grep[ARGS]{"pattern": "load_order"}', [GREP]),
    "mistral call id": (
        '[TOOL_CALLS]grep[CALL_ID]a1b2c3d4e[ARGS]{"pattern": "load_order"}',
        [GREP]),
    "lm studio": (f'[TOOL_REQUEST]{ONE}[END_TOOL_REQUEST]', [GREP]),
    "llama tag": (
        '<|python_tag|>{"name": "grep", "parameters": {"pattern": "load_order"}}',
        [GREP]),
    "llama builtin": ('<|python_tag|>grep.call(pattern="load_order")', [GREP]),
    "llama bare": ('{"name": "grep", "parameters": {"pattern": "load_order"}}', [GREP]),
    "llama bare type": (
        '{"type": "function", "name": "grep", "parameters": {"pattern": "'
        'load_order"}}',
        [GREP]),
    "llama bare after text": (
        'I will search.\n\n{"name": "grep", "parameters": {"pattern": "load_order'
        '"}}',
        [GREP]),
    "bare array": (f'[{ONE}, {TWO}]', [GREP, SYMBOL]),
    "bare pretty": (
        '{\n  "name": "grep",\n  "arguments": {\n    "pattern": "load_order"\n  }'
        '\n}',
        [GREP]),
    "bare args first": ('{"arguments": {"pattern": "load_order"}, "name": "grep"}', [GREP]),
    "bare tool_calls": (
        '{"tool_calls": [{"id": "1", "type": "function", "function": {"name": "'
        'grep", "arguments": "{\\"pattern\\": \\"load_order\\"}"}}]}',
        [GREP]),
    "json fence": (f'```json\n{ONE}\n```', [GREP]),
    "json fence after text": (
        'Let me search the code for it.\n\n```json\n{\n  "name": "grep",\n  "'
        'arguments": {\n    "pattern": "load_order"\n  }\n}\n```\n',
        [GREP]),
    "tool in fence": (f'```xml\n<tool_call>\n{ONE}\n</tool_call>\n```', [GREP]),
    "gemma code": ('```tool_code\ngrep(pattern="load_order")\n```', [GREP]),
    "gemma two": (
        '```tool_code\ngrep(pattern="load_order")\nsymbol(name=\'connect\', want="'
        'callers")\n```',
        [GREP, SYMBOL]),
    "gemma python": ('```python\ngrep(pattern="load_order")\n```', [GREP]),
    "gemma positional": ('```tool_code\ngrep("load_order")\n```', [GREP]),
    "functiongemma": (
        '<start_function_call>call:grep{pattern:<escape>load_order<escape>}<'
        'end_function_call>',
        [GREP]),
    "gemma4": ('<|tool_call>call:grep{pattern:<|"|>load_order<|"|>}<tool_call|>', [GREP]),
    "pythonic": (
        '[grep(pattern="load_order"), symbol(name="connect", want="callers")]',
        [GREP, SYMBOL]),
    "lfm2": ("<|tool_call_start|>[grep(pattern='load_order')]<|tool_call_end|>", [GREP]),
    "bare call": ('grep(pattern="load_order")', [GREP]),
    "glm": (
        '<tool_call>grep\n<arg_key>pattern</arg_key>\n<arg_value>load_order</'
        'arg_value>\n</tool_call>',
        [GREP]),
    "glm one line": (
        '<tool_call>symbol<arg_key>name</arg_key><arg_value>connect</arg_value><'
        'arg_key>want</arg_key><arg_value>callers</arg_value></tool_call>',
        [SYMBOL]),
    "granite 3": (f'<|tool_call|>[{ONE}]', [GREP]),
    "phi": (f'functools[{ONE}]', [GREP]),
    "claude": (
        '<function_calls>\n<invoke name="grep">\n<parameter name="pattern">'
        'load_order</parameter>\n</invoke>\n</function_calls>',
        [GREP]),
    "minimax": (
        '<minimax:tool_call>\n<invoke name="grep">\n<parameter name="pattern">'
        'load_order</parameter>\n</invoke>\n</minimax:tool_call>',
        [GREP]),
    "seed": (
        '<seed:tool_call>\n<function=grep>\n<parameter=pattern>load_order</'
        'parameter>\n</function>\n</seed:tool_call>',
        [GREP]),
    "olmo": ('<function_calls>\ngrep(pattern="load_order")\n</function_calls>', [GREP]),
    "command r": (
        '<|START_ACTION|>[\n    {"tool_call_id": "0", "tool_name": "grep", "'
        'parameters": {"pattern": "load_order"}}\n]<|END_ACTION|>',
        [GREP]),
    "apertus": ('<|tools_prefix|>[{"grep": {"pattern": "load_order"}}]<|tools_suffix|>', [GREP]),
    "nemotron": (f'<TOOLCALL>[{ONE}]</TOOLCALL>', [GREP]),
    "internlm": (
        '<|action_start|><|plugin|>\n{"name": "grep", "parameters": {"pattern": "'
        'load_order"}}<|action_end|>',
        [GREP]),
    "harmony": (
        '<|channel|>commentary to=functions.grep <|constrain|>json<|message|>{"'
        'pattern": "load_order"}<|call|>',
        [GREP]),
    "value names tool": (
        '<function=grep>\n<parameter=pattern>\n"symbol"\n</parameter>\n</function>',
        [("grep", {"pattern": '"symbol"'})]),
    "triple": (
        f'```tool_code\nsearch_code(query="retry", guess="""{CODE}""")\n```',
        [("search_code", {"query": "retry", "guess": CODE})]),
    "react": (
        'I look.\nAction: grep\nAction Input: {"pattern": "load_order"}\nObservation: none',
        [GREP]),
    "python's quotes": (
        "<tool_call>\n{'name': 'grep', 'arguments': {'pattern': 'load_order'}}\n</tool_call>",
        [GREP]),
    "a comma too many": (
        '<tool_call>{"name": "grep", "arguments": {"pattern": "load_order",}}</tool_call>',
        [GREP]),
    "other keys": ('{"tool": "grep", "args": {"pattern": "load_order"}}', [GREP]),
}  # fmt: skip
QUOTED = [
    "Action: none is taken for symbol tables.",
    ('The parser reads `<tool_call>` blocks: `<tool_call>{"name": "grep", "'
     'arguments": {}}</tool_call>` is one [src/a.py:1-2].'),
    (f'It splits the text at the tag [src/a.py:1-9]:\n\n```\n<tool_call>\n{ONE}\n</'
     'tool_call>\n```\n\nThen it reads the JSON.'),
    ('Hermes writes <tool_call>{"name": "get_weather", "arguments": {"city": "Rome'
     '"}}</tool_call> and the parser reads it. Hermes writes <tool_call>{"name": "'
     'get_weather", "arguments": {"city": "Rome"}}</tool_call> and the parser '
     'reads it. '),
    ('<tool_call> is a tag that the parser finds with a regular expression; the '
     'symbol after it is the name. <tool_call> is a tag that the parser finds with'
     ' a regular expression; the symbol after it is the name. <tool_call> is a tag'
     ' that the parser finds with a regular expression; the symbol after it is the'
     ' name. <tool_call> is a tag that the parser finds with a regular expression;'
     ' the symbol after it is the name. <tool_call> is a tag that the parser finds'
     ' with a regular expression; the symbol after it is the name. <tool_call> is '
     'a tag that the parser finds with a regular expression; the symbol after it '
     'is the name. '),
    '`grep` searches files. grep(pattern) is called by the model.',
    'grep(pattern) returns the lines that match, see [src/a.py:1-2]. It is called in two places.',
    'symbol is a table of names.\nIt has rows.',
    '{"a": 1} is what it returns [src/a.py:3-4].',
    '```json\n{"name": "shop", "version": 1}\n```\nis its package.json.',
    (f'```json\n{ONE}\n```\nThis is what a model sends to [src/a.py:1-2]; the '
     'reader takes `name` first and then the arguments.'),
    '```python\ngrep(pattern="x")\n```\nis how the tests call it [tests/a.py:1-2].',
    'List<FunctionCall> is what `parse` returns [src/a.py:1-2].',
    'The type is Promise<ToolResult<string>> and Map<function, action> there.',
    'a < b and c <tool than',
    '[src/shop/models.py:16-21] reads the order.\n\n[src/shop/db.py:1-2] connects.',
    ('[TOOL_CALLS] is the mark of Mistral. The parser cuts the text there and '
     'reads a list of objects from what follows it, as [src/a.py:1-3] shows.'),
    'function=foo',
    'It ends with <',
    'Ends with a fence ```',
    'It is f',
    'functools.lru_cache keeps it.',
    'Use ``<tool_call>{"name": "grep"}</tool_call>`` there.',
    '```\n[TOOL_CALLS][{"name": "grep", "arguments": {}}]\n```\nis from Mistral.',
    'x = {\n  "name": "grep"\n}\nis the default.',
    'The names are:\n- grep\n- symbol\n',
    'grep',
    '{',
    'The tool `symbol`:\n\n    symbol(name="a")\n\nreturns code.',
    '<details><summary>functions</summary>\n\ngrep: x\n</details>\n',
]  # fmt: skip


def read(text: str, size: int) -> tuple[list[Call], str]:
    """The calls in `text` that comes in pieces of `size`, and the text beside them."""
    written = WrittenCalls(TOOLS)
    shown = [written.feed(text[at : at + size]) for at in range(0, len(text), size)]
    calls, rest = written.end()
    return [(one.name, json.loads(one.arguments)) for one in calls], "".join([*shown, rest])


@pytest.mark.parametrize("form", FORMS)
def test_a_call_is_read_in_the_form_of_each_model_and_never_shown(form: str) -> None:
    text, calls = FORMS[form]
    for size in (1, 3, 10_000):
        made, shown = read(text, size)
        assert made == list(calls)
        assert text.startswith(shown) and not any(mark in shown for mark in "<[{`|")


def test_an_answer_that_quotes_a_call_stays_text() -> None:
    for text in QUOTED:
        for size in (1, 3, 10_000):
            assert read(text, size) == ([], text)


def test_a_call_that_broke_off_is_a_call_without_what_is_missing() -> None:
    for text in ('{"name": "grep", "argum', '{"name": "grep", "arguments": {"pattern": "load_or'):
        assert read(f"<tool_call>{text}", 9) == ([("grep", {})], "")


def test_what_begins_like_a_call_and_becomes_long_is_text() -> None:
    text = 'grep(pattern="x") ' + "is how it is called. " * LONGEST_CALL
    assert read(text, 100) == ([], text)


def test_text_that_cannot_become_a_call_is_shown_at_once() -> None:
    for text in (
        "`Basket` ",
        "[src/a.py:1-2] ",
        "Symbols ",
        "a < b ",
        "See <b>",
        "- x\n```js\nlet ",
    ):
        assert WrittenCalls(TOOLS).feed(text) == text


def test_a_call_in_a_channel_follows_the_thought_in_another() -> None:
    thought = "<|channel|>analysis<|message|>I look.<|end|>"
    call = 'functions.grep <|constrain|>json<|message|>{"pattern": "load_order"}<|call|>'
    for head in (
        "<|start|>assistant<|channel|>commentary to=", "<|channel|>commentary to=",
        "<|start|>assistant to=",
    ):  # fmt: skip
        for text in (head + call, f"{thought}{head}{call}"):
            answer, written = AnswerReader(), WrittenCalls(TOOLS)
            for letter in text:
                for piece in answer.take({"choices": [{"delta": {"content": letter}}]}):
                    assert isinstance(piece, Reasoning) or not written.feed(piece)
            assert not written.feed(answer.rest())
            (made,) = written.end()[0]
            assert (made.name, json.loads(made.arguments)) == GREP
