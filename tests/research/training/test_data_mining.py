"""From git mirrors to rows: licences, what is read, and what a row shows."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from codeqa.parsing import parse_file
from codeqa.text.unit_text import decode
from research.training import licences, mine
from research.training.collect import collect
from research.training.console import read_lines, write_lines
from research.training.mirrors import find_mirror
from research.training.rows import Rows
from tests.kit.repositories import Write, git

MIT = "MIT License\n\nPermission is hereby granted, free of charge, to any person obtaining a copy"
APACHE = "                 Apache License\n           Version 2.0, January 2004\n"
GPL = "GNU GENERAL PUBLIC LICENSE\nVersion 3, 29 June 2007\n"

MakeMirror = Callable[..., Path]


@pytest.fixture
def make_mirror(tmp_path: Path, write_files: Write) -> MakeMirror:
    """`make_mirror("owner/name", {path: text}, …)`: a bare mirror, one commit per mapping."""

    def make(repository: str, *commits: Mapping[str, str | bytes]) -> Path:
        tree = tmp_path / "trees" / repository
        tree.mkdir(parents=True)
        git(tree, "init", "-q", "-b", "main")
        for files in commits:
            write_files(tree, files)
            git(tree, "add", "-A")
            git(tree, "commit", "-q", "-m", "a change")
        mirrors = tmp_path / "mirrors"
        mirrors.mkdir(exist_ok=True)
        target = mirrors / repository.replace("/", "+")
        git(tmp_path, "clone", "-q", "--mirror", str(tree), str(target))
        return target

    return make


def _rows(path: str, text: str, role: str = "source") -> list[dict[str, Any]]:
    parsed = parse_file(path, text.encode(), role)
    maker = Rows("owner/name")
    return list(maker.of_document(parsed) if role == "document" else maker.of_code(parsed))


def test_a_licence_is_known_by_what_its_text_states_first() -> None:
    for text, name in {
        MIT: "MIT", APACHE: "Apache-2.0", GPL: "GPL", "All rights reserved.": "unknown",
        "The new BSD license is GPL-compatible.\nRedistribution and use in source and\n"
        "binary forms": "BSD",
        "ISC License\n\nPermission to use, copy, modify, and/or distribute this software for\n"
        "any purpose with or without fee is hereby granted, provided that": "ISC",
        f"{APACHE}\nThe bundled part is under the GNU General Public License.": "Apache-2.0",
    }.items():  # fmt: skip
        assert licences.licence_of(text) == name


def test_only_trees_with_a_permissive_licence_or_a_choice_are_accepted() -> None:
    for texts, readme, licence, refused in (
        ((MIT,), "", "MIT", False),
        ((GPL,), "", "GPL", True),
        ((), "", "", True),
        ((MIT, GPL), "", "MIT, GPL", True),
        ((MIT, GPL), "It is dual-licensed under MIT and GPL.", "MIT", False),
    ):
        name, why = licences.tree_licence(texts, readme)
        assert (name, bool(why)) == (licence, refused)


def test_mirrors_are_found_in_the_usual_layouts(tmp_path: Path) -> None:
    for number, layout in enumerate(("o+n", "o/n.git", "o/n/.git", "o+n/repo", "n.git")):
        mirrors = tmp_path / str(number)
        (mirrors / layout / "objects").mkdir(parents=True)
        (mirrors / layout / "HEAD").write_text("ref: refs/heads/main\n")
        assert find_mirror(mirrors, "o/n") == mirrors / layout
        assert find_mirror(mirrors, "o/other") is None


def test_trees_are_collected_or_listed_with_reasons(
    make_mirror: MakeMirror, tmp_path: Path
) -> None:
    make_mirror("o/free", {"LICENSE": MIT, "a.py": "x = 1\n", "gpl/LICENSE": GPL + "x" * 60})
    make_mirror("o/copyleft", {"COPYING": GPL, "a.py": "x = 1\n"})
    make_mirror("o/silent", {"a.py": "x = 1\n"})
    make_mirror("pallets/flask", {"LICENSE": MIT})
    listed = tmp_path / "list.jsonl"
    names = ["o/free", "o/copyleft", "o/silent", "o/gone", "pallets/flask"]
    write_lines(listed, ({"repository": name, "commit": ""} for name in names))

    assert collect(tmp_path / "mirrors", tmp_path / "out", listed) == (1, 4)
    (entry,) = read_lines(tmp_path / "out" / "collected.jsonl")
    assert (entry["repository"], entry["licence"]) == ("o/free", "MIT")
    assert entry["restricted"] == ["gpl/"] and entry["bytes"] == {"python": 6}
    refused = {r["repository"]: r["why"] for r in read_lines(tmp_path / "out" / "refused.jsonl")}
    assert refused == {
        "o/copyleft": "its licence files state GPL",
        "o/silent": "no licence file at the top of its tree",
        "o/gone": "no mirror at hand",
        "pallets/flask": "it belongs to the benchmark",
    }


PYTHON = '''\
class Door:
    """A door between two rooms.

    It can be locked.
    """

    @cached
    def open_slowly(self, hinge):
        """Swing the door open without a sound.

        The hinge must be oiled.
        """
        # push it
        self.angle = hinge.turn(90)

    def close_with_a_bang(self):
        self.angle = 0
        self.noise = self.room.echo(100)
'''


def test_documented_code_gives_rows_whose_units_do_not_hold_the_sentence() -> None:
    door, slowly, bang = _rows("house/door.py", PYTHON)
    assert (door["source"], door["query"]) == ("class", "A door between two rooms")
    assert (slowly["source"], slowly["query"]) == ("doc", "Swing the door open without a sound")
    unit = decode(slowly["unit"])
    assert (unit.path, unit.owner, unit.name) == ("house/door.py", "Door", "open_slowly")
    assert unit.doc_comment == "The hinge must be oiled."
    assert "self.angle = hinge.turn(90)" in unit.body and "# push it" in unit.body
    for word in ("Swing", "sound", "oiled"):
        assert word not in unit.body
    # An undocumented function is asked for by its name, which its unit then lacks.
    assert (bang["source"], bang["query"]) == ("name", "close with a bang")
    unit = decode(bang["unit"])
    assert unit.name == "" and unit.owner == "Door"
    assert "close_with_a_bang" not in bang["unit"] and "self.room.echo(100)" in unit.body


JAVA = """class A {
  /**
   * Opens the {@code door} slowly. It may creak.
   * @param d which
   */
  int open(int d) { return d; }
}
"""
CSHARP = """class A {
  /// <summary>
  /// Opens the <see cref="Door"/> slowly.
  /// </summary>
  /// <param name="d">which</param>
  int Open(int d) { return d; }
}
"""


def test_doc_comments_of_other_languages_give_rows() -> None:
    for path, text, query, rest in (
        ("A.java", JAVA, "Opens the door slowly", ["It may creak.", "@param d which"]),
        ("a.cs", CSHARP, "Opens the Door slowly", ["d: which"]),
    ):
        (row,) = [row for row in _rows(path, text) if row["source"] == "doc"]
        unit = decode(row["unit"])
        assert row["query"] == query
        assert [line.strip() for line in unit.doc_comment.split("\n") if line.strip()] == rest
        assert not re.findall("slowly|creak|which", unit.body)


def test_tests_inside_source_files_and_a_query_that_stands_in_the_code_give_no_rows() -> None:
    text = '#[test]\nfn opens_every_door_slowly() {\n    assert_eq!(open(1), 1, "the door");\n}\n'
    assert _rows("src/lib.rs", text) == []
    text = ('def open_it():\n    """Cannot open the door right now."""\n'
            '    raise Stuck("cannot open the door right now")\n')  # fmt: skip
    maker = Rows("owner/name")
    assert list(maker.of_code(parse_file("a.py", text.encode()))) == []
    assert maker.refused == {"leaks": 1}


def test_a_heading_gives_a_row_with_the_text_below_it() -> None:
    text = "# Guide\n\n## How the door is opened\n\n" + "Push it, and then wait a while. " * 5
    (row,) = _rows("docs/guide.md", text, "document")
    unit = decode(row["unit"])
    assert (row["source"], row["query"]) == ("section", "How the door is opened")
    assert unit.owner == "Guide" and "How the door" not in row["unit"] and "Push it" in unit.body


def _mine(tmp_path: Path, *names: str) -> dict[str, list[dict[str, Any]]]:
    listed = tmp_path / "list.jsonl"
    write_lines(listed, ({"repository": name} for name in names))
    collect(tmp_path / "mirrors", tmp_path / "out", listed)
    assert mine.mine(tmp_path / "out", 1, mine.Limits()) == len(names)
    return {name: list(read_lines(tmp_path / "out" / "rows" / f"{name.replace('/', '+')}.jsonl.gz"))
            for name in names}  # fmt: skip


def test_mining_leaves_other_peoples_code_out(make_mirror: MakeMirror, tmp_path: Path) -> None:
    test = "def test_opens_without_any_noise():\n    Door().open_slowly(1)\n"
    copyleft = '"""Licensed under the GNU General Public License."""\n' + PYTHON
    make_mirror("o/n", {"LICENSE": MIT, "src/door.py": PYTHON, "vendor/door.py": PYTHON,
                        "src/door_pb2.py": PYTHON, "bench/door.py": PYTHON, "src/gpl.py": copyleft,
                        "other/LICENSE": GPL * 3, "other/door.py": PYTHON,
                        "tests/test_door.py": test})  # fmt: skip
    rows = _mine(tmp_path, "o/n")["o/n"]
    assert {row["path"] for row in rows} == {"src/door.py"} and len(rows) == 4
    report = json.loads((tmp_path / "out" / "rows" / "o+n.json").read_text())
    assert report["languages"] == {"python": {"class": 1, "doc": 1, "name": 1, "test": 1}}
    assert report["skipped"] == {"licence of its folder": 1, "licence in its head": 1}
    # A test is a question for the function that it is about.
    (row,) = [row for row in rows if row["source"] == "test"]
    assert (row["query"], decode(row["unit"]).name) == ("opens without any noise", "open_slowly")


def test_mining_goes_on_where_it_stopped(make_mirror: MakeMirror, tmp_path: Path) -> None:
    make_mirror("o/n", {"LICENSE": MIT, "door.py": PYTHON})
    _mine(tmp_path, "o/n")
    target = tmp_path / "out" / "rows" / "o+n.jsonl.gz"
    first = target.read_bytes()
    target.write_bytes(b"kept as it is")
    assert mine.mine(tmp_path / "out", 1, mine.Limits()) == 1
    assert target.read_bytes() == b"kept as it is"

    entries = list(read_lines(tmp_path / "out" / "collected.jsonl"))
    told = tmp_path / "out" / "rows" / "o+n.json"
    told.write_text(told.read_text().replace(entries[0]["commit"], "0" * 40))
    mine.mine(tmp_path / "out", 1, mine.Limits())
    assert target.read_bytes() == first, "the same tree gives the same bytes"
