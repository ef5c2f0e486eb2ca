"""Folders and files that nobody would make on purpose: the scan goes on, and tells."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from moelauncher.core.files.header_cache import HeaderCache
from moelauncher.core.library.catalog import scan
from moelauncher.core.library.catalog_entry import CatalogEntry, entry_as_json
from tests.helpers.gguf_files import write_tiny_model
from tests.helpers.model_tree import write_model_tree

posix = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such names")


def test_ten_thousand_other_files_are_passed_over(tmp_path: Path) -> None:
    for number in range(10_000):
        os.close(os.open(tmp_path / f"{number}.txt", os.O_CREAT | os.O_WRONLY))
    write_tiny_model(tmp_path / "m.gguf", "moe")
    assert [entry.path.name for entry in scan([tmp_path])] == ["m.gguf"]


def test_a_text_of_a_hundred_megabytes_is_refused_unread(tmp_path: Path) -> None:
    """A sparse file: the length is claimed, and there is room for it in the file."""
    path = tmp_path / "m.gguf"
    key = b"general.name"
    head = b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + struct.pack("<Q", len(key)) + key
    with path.open("wb") as file:
        file.write(head + struct.pack("<IQ", 8, 100 << 20))
        file.truncate(200 << 20)
    (entry,) = scan([tmp_path])
    assert "claims 104857600 bytes" in entry.problem
    assert entry.role == "unknown"


@posix
def test_names_of_every_kind_are_rows_on_one_line(tmp_path: Path) -> None:
    names = [
        "two\nlines.gguf",
        "right\u202eleft.gguf",
        "<b>bold<b>&amp;.gguf",
        "half\udcff.gguf",
        "x" * 250 + ".gguf",
        "\x1b[31mred.gguf",
        " .gguf",
        ".gguf",
    ]
    for name in names:
        write_tiny_model(tmp_path / "model.gguf", "dense").rename(tmp_path / name)
    entries = list(scan([tmp_path]))
    assert len(entries) == len(names)
    for entry in entries:
        assert entry.name.isprintable() and entry.name
        assert len(entry.name) <= 160
        json.dumps(entry_as_json(entry))


@posix
def test_a_path_of_4096_characters_is_walked_as_far_as_the_system_goes(tmp_path: Path) -> None:
    write_tiny_model(tmp_path / "m.gguf", "dense")
    here = Path.cwd()
    try:
        os.chdir(tmp_path)
        for _ in range(20):  # deeper than any path may be long
            Path("d" * 250).mkdir()
            os.chdir("d" * 250)
    finally:
        os.chdir(here)
    entries = list(scan([tmp_path]))
    assert [entry.path.name for entry in entries if entry.offered] == ["m.gguf"]
    assert [entry.role for entry in entries if entry.problem] == ["folder"]
    subprocess.run(["rm", "-rf", str(tmp_path / ("d" * 250))], check=True)


def test_a_place_with_an_impossible_name_is_a_row() -> None:
    for text in ("x" * 5000, "a\0b"):
        (entry,) = scan([Path(text)])
        assert entry.role == "folder" and entry.problem


def test_folders_that_vanish_while_they_are_read(tmp_path: Path) -> None:
    for number in range(4):
        write_tiny_model(tmp_path / f"f{number}" / "m.gguf", "dense")
    found = []
    for entry in scan([tmp_path]):
        found.append(entry)
        for number in range(1, 4):
            folder = tmp_path / f"f{number}"
            if folder.exists():
                (folder / "m.gguf").unlink()
                folder.rmdir()
    assert [entry.offered for entry in found] == [True] + [False] * (len(found) - 1)
    assert all(entry.role == "folder" for entry in found[1:])


def _written(cache: Path, text: str) -> None:
    cache.mkdir(exist_ok=True)
    (cache / "headers.json").write_text(text, encoding="utf-8")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\0\0\0",
        "[" * 100_000,
        "[]",
        '{"version": "999/99.0", "entries": {"a": [[], {}]}}',
        '{"version": 5, "entries": 5}',
    ],
)
def test_a_cache_that_is_corrupt_or_of_a_newer_version(tmp_path: Path, text: str) -> None:
    write_tiny_model(tmp_path / "models" / "m.gguf", "moe")
    plain = list(scan([tmp_path / "models"]))
    _written(tmp_path / "cache", text)
    assert list(scan([tmp_path / "models"], cache=HeaderCache(tmp_path / "cache"))) == plain
    assert list(scan([tmp_path / "models"], cache=HeaderCache(tmp_path / "cache"))) == plain


def test_two_windows_that_scan_at_once_spoil_nothing(tmp_path: Path) -> None:
    root = write_model_tree(tmp_path / "tree")
    plain = list(scan([root]))
    results: list[list[CatalogEntry]] = []

    def look() -> None:
        results.append(list(scan([root], cache=HeaderCache(tmp_path / "cache"))))

    threads = [threading.Thread(target=look) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [plain] * 4
    # And what they left behind is whole.
    assert list(scan([root], cache=HeaderCache(tmp_path / "cache"))) == plain
