"""Answers without a model to the questions of `questions.jsonl`, to be judged by hand:
`python -m research.evals.strict TREES ANSWERS`. README.md says how."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from codeqa import load_settings, open_engine
from codeqa.engine import whole_answer

HERE = Path(__file__).parent


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m research.evals.strict", description=__doc__)
    parser.add_argument("trees", type=Path, help="folder that holds a folder for each repository")
    parser.add_argument("answers", type=Path, help="folder for one Markdown file a question")
    parser.add_argument("--data", type=Path, default=Path("build/strict"), help="for the indexes")
    given = parser.parse_args()
    lines = (HERE / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    questions = [json.loads(line) for line in lines]
    given.answers.mkdir(parents=True, exist_ok=True)
    for name in dict.fromkeys(one["repo"] for one in questions):
        root = given.trees / name
        if not root.is_dir():
            print(f"{name}: left out, {root} is not there")
            continue
        with open_engine(load_settings(root, data=given.data, model="none"), root) as engine:
            engine.index.run()
            asked = [one for one in questions if one["repo"] == name]
            for one in asked:
                answer = whole_answer(engine.ask(f"@codebase {one['question']}"))
                (given.answers / f"{one['id']}.md").write_text(answer.text, encoding="utf-8")
        print(f"{name}: {len(asked)} answers")


if __name__ == "__main__":
    main()
