"""A model's files are held against how they stood when it was loaded."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from moelauncher.core.program.mapped_files import (
    FileFate,
    MappedFile,
    as_json,
    as_they_stand,
    fate_of,
    from_json,
)


@pytest.fixture
def shards(tmp_path: Path) -> tuple[Path, Path]:
    paths = tmp_path / "model-1.gguf", tmp_path / "model-2.gguf"
    for path in paths:
        path.write_bytes(b"weights" * 100)
        os.utime(path, ns=(10**18, 10**18))
    return paths


def test_files_that_nobody_touched_are_unchanged(shards: tuple[Path, Path]) -> None:
    assert fate_of(as_they_stand(shards)) == (shards[0], FileFate.UNCHANGED)


def test_a_file_that_was_cut_short_is_named(shards: tuple[Path, Path]) -> None:
    then = as_they_stand(shards)
    os.truncate(shards[1], 7)
    os.utime(shards[1], ns=(10**18, 10**18))
    assert fate_of(then) == (shards[1], FileFate.CHANGED)


def test_a_file_that_was_written_anew_to_the_same_size_is_named(
    shards: tuple[Path, Path],
) -> None:
    then = as_they_stand(shards)
    os.utime(shards[1], ns=(10**18, 10**18 + 10**9))
    assert fate_of(then) == (shards[1], FileFate.CHANGED)


def test_a_file_that_is_gone_is_named(shards: tuple[Path, Path]) -> None:
    then = as_they_stand(shards)
    shards[0].unlink()
    assert fate_of(then) == (shards[0], FileFate.GONE)


def test_json_holds_all_of_it(shards: tuple[Path, Path]) -> None:
    files = (*as_they_stand(shards), MappedFile(Path("gone.gguf"), None, None))
    assert from_json(json.loads(json.dumps(as_json(files)))) == files


@pytest.mark.parametrize("value", [None, 3, {}, [3], [[]], [["a"]], [[1, 2, 3]], [["a", 1, 2, 3]]])
def test_nonsense_is_no_file(value: object) -> None:
    assert from_json(value) == ()
