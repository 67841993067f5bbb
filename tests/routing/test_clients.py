"""What chat programs ask on their own, and how agents wrap a question."""

from __future__ import annotations

import pytest

from codeqa.routing.clients import is_task, question_in, task_reply, task_text
from codeqa.types import Exchange

ASKED = "how are orders loaded?"
TALK = f"\n### Chat History:\n<chat_history>\nUSER: {ASKED}\nASSISTANT: By x.\n</chat_history>"
AROUND = "<environment_details>\n# Current Time\nnoon\n</environment_details>"
TITLE = "how are orders loaded"

TASKS = {  # a message, the result without a model
    "### Task:\nGenerate a concise, 3-5 word title with an emoji summarizing the chat history.\n"
    f'### Output:\nJSON format: {{ "title": "a title" }}{TALK}': f'{{"title": "{TITLE}"}}',
    "### Task:\nGenerate 1-3 broad tags categorizing the main themes of the chat history.\n"
    f'### Output:\nJSON format: {{ "tags": ["tag1", "tag2"] }}{TALK}': '{"tags": []}',
    "### Task:\nSuggest 3-5 relevant follow-up questions, based on the chat history.\n"
    f'JSON format: {{ "follow_ups": ["Question 1?"] }}{TALK}': '{"follow_ups": []}',
    "### Task:\nAnalyze the chat history to determine the necessity of search queries.\n"
    f'{{\n  "queries": ["query1", "query2"]\n}}{TALK}': '{"queries": []}',
    "### Task:\nYou are an autocompletion system. Continue the text.\n"
    '{ "text": "..." }\n<type>General</type><text>how</text>': '{"text": ""}',
    "Provide a concise, 5-word-or-less title for the conversation, with no punctuation.\n\n"
    f'||>User:\n"{ASKED}"\n||>Response:\n"By x."': TITLE,
    f'Summarize in a 10-word Title. Give the title only. "{ASKED}"': TITLE,
    f'Create a short (4-5 words max) title for this conversation: "{ASKED}"': TITLE,
    "Given the following... please reply with a title for the chat that is 3-4 words in length.\n\n"
    f"{ASKED}": TITLE,
    f"Please write a 5-10 word title the following conversation:\n\nUser: {ASKED}": TITLE,
    f"USER: {ASKED}\nASSISTANT: By x.\n\nGenerate a relevant title for this conversation.": TITLE,
    "Based on the chat history, give this conversation a name.\nKeep it short.\n\n"
    f"```\nuser: {ASKED}\n```": TITLE,
    f"总结给出的会话，将其总结为 10 字内标题，不要使用标点和特殊符号。\nuser: {ASKED}": TITLE,
}
ORDERS = """
Please generate a four to five word title summarizing our conversation without any lead-in.
Generate a concise 3-7 word title for this conversation, omitting punctuation.
Generate a detailed summary of this conversation. Include an overview.
Summarize the discussion briefly in 200 words or less to use as a prompt for future context.
Your task is to create a detailed summary of the conversation so far.
*Briefly* summarize this partial conversation about programming.
Based on the conversation so far, provide a concise description of this session in 4 words or less.
Your task is to reflect the likely facial expression through a fitting emoji.
使用四到五个字直接返回这句话的简要主题，不要解释
Suggest three follow-up questions for this chat.
Generate a concise commit message in the imperative form for the following Git diff.
Here is the query: x. Create a concise, 3-5 word phrase as a title for the previous query.
""".strip().splitlines()
RULES = """
You are a title generator. You output ONLY a thread title. Nothing else.
You are a professional conversation summarizer. Generate a concise title.
You are an expert in crafting pithy titles for chatbot conversations.
You are an expert software engineer that generates concise, one-line Git commit messages.
You are an expert at writing Git commits. Your job is to write a short clear commit message.
You are a summarization AI. You'll never answer a user's question directly.
Analyze if this message indicates a new conversation topic.
Create a short descriptive title for this conversation.
You will generate a short title based on the first message a user begins a conversation with
你是一名擅长会话的助理，你需要将用户的会话总结为 10 个字以内的标题
""".strip().splitlines()
QUESTIONS = """
How is the title of a conversation generated?
Write a function that generates a title for the conversation
Write a chat title test
Create a component that shows the conversation title
Create a summary of the session module
Give a description of the chat module
Give the name of the function that handles a request.
Summarize how the chat history is stored
Summarize what the class Session does
Name the class that stores the chat
Which component shows the title of the chat?
Where is the title limited to 50 characters?
Suggest a better name for `load_order` in 3 words
Please write down in 5 words what `load_order` does
Write a summary of how sessions are signed
where does it summarize a conversation?
Summarize this repository
Task: add the history to the chat
Suggest a better description for the error message.
""".strip().splitlines()


@pytest.mark.parametrize("message", TASKS)
def test_without_a_model_a_task_has_a_title_of_the_first_question_or_nothing(message: str) -> None:
    assert is_task(message)
    assert task_reply(message) == TASKS[message]


def test_a_task_is_known_by_its_order_or_by_the_rules_for_it() -> None:
    assert [order for order in ORDERS if not is_task(order)] == []
    assert [rules for rules in RULES if not is_task(ASKED, rules)] == []
    turns = [Exchange(ASKED, "By x."), Exchange("and saved?", "By y.")]
    assert task_reply(task_text(ORDERS[0], "", turns)) == TITLE
    assert len(task_text("x" * 1_000_000, "x" * 1_000_000, turns * 1_000)) < 40_000


def test_a_question_about_titles_and_conversations_is_no_task() -> None:
    assert [question for question in QUESTIONS if is_task(question)] == []
    assert not is_task(ASKED, "You are Cline, a highly skilled software engineer.")
    assert not is_task(ASKED, "You are a helpful assistant. Summarize at the end.")


WRAPPED = [
    f"<task>\n{ASKED}\n</task>\n\n{AROUND}",
    f"{ASKED}\n\n{AROUND}",
    f"<user_message>\n{ASKED}\n</user_message>\n\n# Progress\n\nWrite a list.\n\n{AROUND}",
    f"[ask_followup_question] Result:\n<answer>\n{ASKED}\n</answer>\n\n{AROUND}",
    f"<context>\nnoon\n</context>\n<reminderInstructions>\nx\n</reminderInstructions>\n"
    f"<userRequest>\n{ASKED}\n</userRequest>",
    f'<attachments>\n<attachment id="a.py">\ncode\n</attachment>\n</attachments>\n'
    f"<prompt>{ASKED}</prompt>",
    f"<system-reminder>\nSee CLAUDE.md\n</system-reminder>\n{ASKED}",
    f"<additional_data>\nx\n</additional_data>\n<user_query>\n{ASKED}\n</user_query>",
    f"<user_query>\n{ASKED}\n</user_query>",
]


def test_a_question_is_taken_out_of_what_an_agent_wraps_it_in() -> None:
    assert {question_in(message) for message in WRAPPED} == {ASKED}
    for as_is in (
        ASKED, "", AROUND, f"<environment_details>\n{ASKED}", "where is `<task>` read?",
        "why does this fail?\n<task>\n  <target/>\n</task>\nIt is from build.xml",
    ):  # fmt: skip
        assert question_in(as_is) == as_is
