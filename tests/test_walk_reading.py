"""Reading one file: confined to the root, regular files only, never waiting."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from codeqa.errors import NotFoundError, RepositoryError
from codeqa.repository.reading import read_file, read_with_status
from tests.repositories import write


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write(tmp_path / "outside", {"secret.txt": "secret", "in/secret.txt": "secret"})
    return write(tmp_path / "root", {"a.py": "a\r\n", "b/c.py": b"\xff\0", "käse/d e.py": "d"})


def test_a_file_is_read_byte_for_byte(root: Path) -> None:
    assert read_file(root, "a.py") == b"a\r\n"
    assert read_file(root, "b/c.py") == b"\xff\0"
    assert read_file(root, "käse/d e.py") == b"d"


@pytest.mark.parametrize(
    "path",
    [
        "", ".", "..", "/", "../outside/secret.txt", "b/../../outside/secret.txt", "b/../a.py",
        "./a.py", "b//c.py", "/etc/passwd", "b", "b/", "a.py/", "a.py/x", "missing.py",
        "missing/x.py", "a.py\0", "link.py", "folder/secret.txt", "inner/c.py", "pipe",
    ],
)  # fmt: skip
def test_a_path_that_leads_anywhere_else_is_not_found(path: str, root: Path) -> None:
    outside = root.parent / "outside"
    (root / "link.py").symlink_to(outside / "secret.txt")
    (root / "folder").symlink_to(outside)
    (root / "inner").symlink_to("b")
    os.mkfifo(root / "pipe")
    with pytest.raises(NotFoundError):
        read_file(root, path)


def test_the_root_itself_may_be_reached_through_a_link(root: Path) -> None:
    link = root.parent / "link"
    link.symlink_to(root)
    assert read_file(link, "a.py") == b"a\r\n"


def test_a_file_above_the_limit_is_refused(root: Path) -> None:
    data, status = read_with_status(root, "a.py", max_bytes=3)
    assert (data, status.st_size) == (b"a\r\n", 3)
    with pytest.raises(RepositoryError, match=r"a\.py cannot be read"):
        read_file(root, "a.py", max_bytes=2)


def test_no_descriptor_is_left_open(root: Path) -> None:
    folder = Path("/proc/self/fd")
    if not folder.is_dir():
        pytest.skip("the system does not list open files")
    before = len(list(folder.iterdir()))
    for path in ("a.py", "b/c.py", "missing/x.py", "b", "../x"):
        for _ in range(3):
            try:
                read_file(root, path)
            except NotFoundError:
                continue
    assert len(list(folder.iterdir())) == before


def test_a_folder_that_is_swapped_for_a_link_while_reading_leaks_nothing(root: Path) -> None:
    outside = root.parent / "outside" / "in"
    (root / "swap").mkdir()
    (root / "swap" / "secret.txt").write_text("harmless")
    real, link = root / "swap", root / "swap-link"
    link.symlink_to(outside)
    stop = threading.Event()

    def swap() -> None:
        while not stop.is_set():
            real.rename(root / "swap-real")
            link.rename(real)
            real.rename(link)
            (root / "swap-real").rename(real)

    thread = threading.Thread(target=swap)
    thread.start()
    seen = set()
    try:
        for _ in range(2_000):
            try:
                seen.add(read_file(root, "swap/secret.txt"))
            except NotFoundError:
                seen.add(b"")
    finally:
        stop.set()
        thread.join()
    assert seen <= {b"harmless", b""}
