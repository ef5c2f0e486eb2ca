"""The list of the last run: what comes back, when, and what a damaged file does."""

from __future__ import annotations

import json
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from moelauncher.core.library import known_list
from moelauncher.core.library.catalog import scan
from moelauncher.core.library.catalog_entry import CatalogEntry
from moelauncher.core.library.known_list import read_known_list, write_known_list
from tests.helpers.gguf_files import write_mmproj, write_tiny_model

PLACES = ["/models", "without jan"]


@pytest.fixture
def entries(tmp_path: Path) -> list[CatalogEntry]:
    root = tmp_path / "models"
    one = write_tiny_model(root / "a" / "a.gguf", "moe")
    write_mmproj(root / "a" / "mmproj-a.gguf", n_embd=64)
    write_tiny_model(root / "split.gguf", "shared", split_max_tensors=30)
    (root / "bad.gguf").write_bytes(b"GGUF")
    if sys.platform != "win32":
        shutil.copyfile(one, root / "größe\n\udcff.gguf")
    found = list(scan([root]))
    assert any(entry.mmproj for entry in found) and any(entry.problem for entry in found)
    return found


def test_the_same_rows_come_back(tmp_path: Path, entries: list[CatalogEntry]) -> None:
    assert read_known_list(tmp_path / "cache", PLACES) == []
    write_known_list(tmp_path / "cache", PLACES, entries)
    assert read_known_list(tmp_path / "cache", PLACES) == entries


def test_another_choice_of_folders_finds_nothing(
    tmp_path: Path, entries: list[CatalogEntry]
) -> None:
    write_known_list(tmp_path, PLACES, entries)
    assert read_known_list(tmp_path, [*PLACES, "/more"]) == []


def test_half_fetched_files_are_not_remembered(tmp_path: Path, entries: list[CatalogEntry]) -> None:
    write_known_list(tmp_path, PLACES, [replace(entries[0], role="download"), *entries[1:]])
    assert read_known_list(tmp_path, PLACES) == entries[1:]


def test_a_list_that_did_not_change_is_not_written_again(
    tmp_path: Path, entries: list[CatalogEntry], monkeypatch: pytest.MonkeyPatch
) -> None:
    written = []
    monkeypatch.setattr(
        known_list, "write_text_atomically", lambda path, text: written.append(path)
    )
    write_known_list(tmp_path, PLACES, entries)
    assert len(written) == 1
    monkeypatch.undo()
    write_known_list(tmp_path, PLACES, entries)
    monkeypatch.setattr(known_list, "write_text_atomically", lambda path, text: written.append(1))
    write_known_list(tmp_path, PLACES, entries)
    assert len(written) == 1


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "{}",
        "[" * 100_000,
        '{"head": 3, "rows": 4}',
        '{"head": ["1/0"], "rows": []}',
        "\0",
        "rows: 5",
        "row: [[]]",
        'row: [["a", ["a"], null, "", "", {"name": 3}]]',
        'row: [["a", [3], null, "", "", {}]]',
        'row: [["a", "a", 5, "", "", {}]]',
    ],
)
def test_a_damaged_or_foreign_list_is_none(
    tmp_path: Path, entries: list[CatalogEntry], text: str
) -> None:
    write_known_list(tmp_path, PLACES, entries)
    file = tmp_path / "list.json"
    kind, _, value = text.partition(": ")
    if kind in ("row", "rows"):
        text = json.dumps(
            {**json.loads(file.read_text(encoding="utf-8")), "rows": json.loads(value)}
        )
    file.write_text(text, encoding="utf-8")
    assert read_known_list(tmp_path, PLACES) == []
    write_known_list(tmp_path, PLACES, entries)
    assert read_known_list(tmp_path, PLACES) == entries


def test_a_folder_that_cannot_be_written_costs_only_the_list(
    tmp_path: Path, entries: list[CatalogEntry]
) -> None:
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    write_known_list(tmp_path / "file", PLACES, entries)
    assert read_known_list(tmp_path / "file", PLACES) == []
