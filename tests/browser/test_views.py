"""All views: axe-core's rules, nothing out of reach, and each looks as its reference does.

`pytest tests/browser/test_views.py -m "slow or not slow" --write-references` draws them anew.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from browser.actions import PHONE, get_answer, pass_time
from browser.conftest import ScriptedServer
from browser.test_accessibility import Scheme, violations
from browser.views import (
    REFERENCES,
    SMALLEST_PART,
    cells_unlike,
    draw_in_boxes,
    faults_of_place,
    picture,
    views,
)
from playwright.sync_api import Page
from waiting import until

SIZES = {1440: {"width": 1440, "height": 900}, 768: {"width": 768, "height": 1024}, 360: PHONE}
USUAL = (1440, "light")
"""What the quick suite looks at, but for the contrast of colours, which takes half the time."""
ALL = [
    pytest.param(width, scheme, marks=() if (width, scheme) == USUAL else pytest.mark.slow)
    for width in SIZES
    for scheme in ("light", "dark")
]


@pytest.mark.parametrize(("width", "scheme"), ALL)
def test_every_view_has_no_grave_fault_and_looks_as_it_did(
    scripted: ScriptedServer,
    guarded: ScriptedServer,
    pytestconfig: pytest.Config,
    tmp_path: Path,
    width: int,
    scheme: Scheme,
) -> None:
    page = guarded.open("/health", own=True, scheme=scheme, **SIZES[width])
    draw_in_boxes(page)
    faults = {}
    for name, part in views(page, scripted, guarded.address):
        pass_time(page, 20)  # what was said for a moment goes
        file = REFERENCES / f"{name.replace(' ', '-')}-{width}-{scheme}.png"
        if pytestconfig.getoption("write_references", False):
            file.write_bytes(settled(page))
        contrast = (width, scheme) != USUAL
        faults[name] = violations(page, part, contrast) + faults_of_place(page, part)
        until(partial(looks_like, page, file, tmp_path / file.name))
    assert {view: lines for view, lines in faults.items() if lines} == {}


@pytest.mark.slow
def test_nothing_is_out_of_reach_at_twice_the_size(
    scripted: ScriptedServer, guarded: ScriptedServer
) -> None:
    page = guarded.open("/health", own=True, width=720, height=450)
    walked = views(page, scripted, guarded.address)
    faults = {name: faults_of_place(page, part) for name, part in walked}
    assert {view: lines for view, lines in faults.items() if lines} == {}


@pytest.mark.slow
def test_what_has_moved_is_missing_or_has_another_colour_is_seen(scripted: ScriptedServer) -> None:
    page = scripted.open("/health", own=True, **SIZES[1440])
    draw_in_boxes(page)
    page.goto(scripted.address)
    get_answer(page, "x")
    before = settled(page)
    assert cells_unlike(page, before, settled(page)) == 0
    for part, change in (
        (".actions button", "transform: translateX(24px)"),
        ("#send", "transform: translateY(24px)"),
        ("#close-sidebar", "visibility: hidden"),
        ("#codebase", "background: #b3261e"),
    ):
        put = "([part, style]) => document.querySelector(part).style.cssText = style"
        page.evaluate(put, [part, change])
        assert cells_unlike(page, before, picture(page)) >= SMALLEST_PART, part
        page.evaluate(put, [part, ""])
    page.emulate_media(color_scheme="dark")
    assert cells_unlike(page, before, picture(page)) > 1000


def looks_like(page: Page, file: Path, seen: Path) -> bool:
    """Whether the page looks as in `file`; how it does look goes to `seen`."""
    seen.write_bytes(picture(page))
    return file.exists() and cells_unlike(page, file.read_bytes(), seen.read_bytes()) < (
        SMALLEST_PART
    )


def settled(page: Page) -> bytes:
    """A picture of the page once it does not change any more."""
    pictures = [picture(page)]

    def same() -> bool:
        pictures.append(picture(page))
        return cells_unlike(page, *pictures[-2:]) == 0

    until(same)
    return pictures[-1]
