"""Worker processes fill the header cache beside a scan, and a scan needs none of them."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from moelauncher.core.files.header_cache import HeaderCache
from moelauncher.core.library import header_workers as workers
from moelauncher.core.library.catalog import scan
from tests.helpers.gguf_files import write_tiny_model


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "models"
    source = write_tiny_model(root / "0.gguf", "moe")
    for number in range(1, workers.FEWEST_MODELS + 4):
        shutil.copyfile(source, root / f"{number}.gguf")
    write_tiny_model(root / "split.gguf", "shared", split_max_tensors=30)
    (root / "bad.gguf").write_bytes(b"GGUF")
    if sys.platform != "win32":
        shutil.copyfile(source, root / "größe\n\udcff.gguf")
    return root


def test_what_workers_read_is_what_the_scan_reads(tree: Path, tmp_path: Path) -> None:
    plain = list(scan([tree]))
    cache = HeaderCache(tmp_path / "cache")
    # The body waits for nothing: the workers run to their end here.
    workers._run([tree], cache, lambda: False, 2)
    roles = [cache.stored_role(entry.path) for entry in plain]
    assert roles.count("chat") == len(plain) - 1, "all but the bad file"
    assert list(scan([tree], cache=cache)) == plain


def test_a_scan_beside_workers_finds_the_same(tree: Path, tmp_path: Path) -> None:
    plain = list(scan([tree]))
    cache = HeaderCache(tmp_path / "cache")
    with workers.header_workers([tree], cache, lambda: False, n_workers=1):
        assert list(scan([tree], cache=cache)) == plain
    assert list(scan([tree], cache=HeaderCache(tmp_path / "cache"))) == plain


def test_a_scan_that_is_given_up_ends_its_workers(tree: Path, tmp_path: Path) -> None:
    cache = HeaderCache(tmp_path / "cache")
    with workers.header_workers([tree], cache, lambda: False, n_workers=2):
        next(scan([tree], cache=cache))


def test_workers_that_cannot_start_are_not_missed(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for command in ([str(tmp_path / "nothing")], [sys.executable, "-c", "print('nonsense')"]):
        monkeypatch.setattr(workers, "worker_command", lambda command=command: command)
        cache = HeaderCache(tmp_path / "cache")
        with workers.header_workers([tree], cache, lambda: False, n_workers=1):
            assert len(list(scan([tree], cache=cache))) > workers.FEWEST_MODELS


def test_a_small_collection_starts_no_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse() -> list[str]:
        raise AssertionError("a worker was started")

    monkeypatch.setattr(workers, "worker_command", refuse)
    write_tiny_model(tmp_path / "m.gguf", "dense")
    workers._run([tmp_path], HeaderCache(None), lambda: False, 4)
