"""The header cache: what it gives back, what it throws away, two processes at once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from moelauncher.core.files import header_cache
from moelauncher.core.files.header_cache import FileStamp, HeaderCache

STAMP = FileStamp("/models/x.gguf", 10, 20)
FACTS = {"name": "X", "n_layer": 4}


def _stored(folder: Path) -> Path:
    cache = HeaderCache(folder)
    cache.put([STAMP], FACTS)
    cache.save()
    return folder / "headers.json"


def test_facts_come_back_for_the_same_files(tmp_path: Path) -> None:
    _stored(tmp_path)
    assert HeaderCache(tmp_path).get([STAMP]) == FACTS


@pytest.mark.parametrize(
    "stamps",
    [
        [FileStamp("/models/x.gguf", 11, 20)],
        [FileStamp("/models/x.gguf", 10, 21)],
        [FileStamp("/models/y.gguf", 10, 20)],
        [STAMP, FileStamp("/models/y.gguf", 1, 1)],
    ],
)
def test_a_changed_file_is_not_known(tmp_path: Path, stamps: list[FileStamp]) -> None:
    _stored(tmp_path)
    assert HeaderCache(tmp_path).get(stamps) is None


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[]",
        "null",
        '{"version": "999/9.9", "entries": {}}',
        '{"version": 1}',
        "[" * 100_000,
        "\x00\x01",
    ],
)
def test_a_broken_or_foreign_cache_is_replaced_silently(tmp_path: Path, content: str) -> None:
    file = _stored(tmp_path)
    file.write_text(content, encoding="utf-8")
    cache = HeaderCache(tmp_path)
    assert cache.get([STAMP]) is None
    cache.put([STAMP], FACTS)
    cache.save()
    assert HeaderCache(tmp_path).get([STAMP]) == FACTS


@pytest.mark.parametrize("entries", [[], {"a": 1}, {STAMP.path: [1, 2]}, {STAMP.path: [None, {}]}])
def test_odd_entries_are_left_out(tmp_path: Path, entries: object) -> None:
    file = _stored(tmp_path)
    stored = json.loads(file.read_text(encoding="utf-8"))
    stored["entries"] = entries
    file.write_text(json.dumps(stored), encoding="utf-8")
    assert HeaderCache(tmp_path).get([STAMP]) is None


def test_undecodable_bytes_are_no_error(tmp_path: Path) -> None:
    file = _stored(tmp_path)
    file.write_bytes(b"\xff\xfe\x00")
    assert HeaderCache(tmp_path).get([STAMP]) is None


def test_names_that_are_no_unicode_survive(tmp_path: Path) -> None:
    stamp = FileStamp("/models/\udcff.gguf", 1, 2)
    cache = HeaderCache(tmp_path)
    cache.put([stamp], FACTS)
    cache.save()
    assert HeaderCache(tmp_path).get([stamp]) == FACTS


def test_the_oldest_are_dropped_where_there_are_too_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(header_cache, "_MAX_ENTRIES", 2)
    cache = HeaderCache(tmp_path)
    stamps = [FileStamp(f"/models/{n}.gguf", 1, 1) for n in range(3)]
    for stamp in stamps[:2]:
        cache.put([stamp], FACTS)
    assert cache.get([stamps[0]])  # used, so the other is the oldest
    cache.put([stamps[2]], FACTS)
    cache.save()
    again = HeaderCache(tmp_path)
    assert [again.get([stamp]) is not None for stamp in stamps] == [True, False, True]


def test_nothing_is_written_where_nothing_changed(tmp_path: Path) -> None:
    HeaderCache(tmp_path).save()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_made_is_no_error(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("", encoding="utf-8")
    cache = HeaderCache(blocked / "cache")
    cache.put([STAMP], FACTS)
    cache.save()
    assert cache.get([STAMP]) == FACTS


def test_without_a_folder_it_lives_in_memory() -> None:
    cache = HeaderCache(None)
    cache.put([STAMP], FACTS)
    cache.save()
    assert cache.get([STAMP]) == FACTS


def test_two_at_once_keep_what_both_read(tmp_path: Path) -> None:
    first, second = HeaderCache(tmp_path), HeaderCache(tmp_path)
    other = FileStamp("/models/y.gguf", 1, 1)
    first.put([STAMP], FACTS)
    second.put([other], FACTS)
    first.save()
    second.save()
    again = HeaderCache(tmp_path)
    assert again.get([STAMP]) == again.get([other]) == FACTS
    assert [path.name for path in tmp_path.iterdir()] == ["headers.json"]
