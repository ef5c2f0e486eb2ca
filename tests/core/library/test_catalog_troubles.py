"""Files and folders that cannot be read: rows with a reason, and the scan goes on."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from moelauncher.core.errors import LauncherError
from moelauncher.core.files.header_cache import HeaderCache
from moelauncher.core.library import catalog
from moelauncher.core.library.catalog import entry_of, scan
from moelauncher.core.library.catalog_entry import CatalogEntry
from moelauncher.core.library.model_files import load_facts
from tests.helpers.catalog_rows import by_file, rows
from tests.helpers.gguf_files import write_tiny_model
from tests.helpers.platform_marks import links


@pytest.fixture
def moe(tmp_path: Path) -> Path:
    folder = tmp_path / "models"
    folder.mkdir()
    return write_tiny_model(folder / "Tiny-MoE-Q8_0.gguf", "moe")


@links
def test_a_dangling_link_is_a_row_with_a_reason(moe: Path) -> None:
    (moe.parent / "gone.gguf").symlink_to(moe.parent / "nothing")
    entry = by_file(rows(moe.parent))["gone.gguf"]
    assert entry.problem == "The link points to a file that is not there."
    assert entry.size_bytes is None


def test_bad_files_are_rows_and_the_scan_goes_on(moe: Path) -> None:
    data = moe.read_bytes()
    folder = moe.parent
    (folder / "a-empty.gguf").write_bytes(b"")
    (folder / "b-zip.gguf").write_bytes(b"PK\x03\x04")
    (folder / "c-cut-header.gguf").write_bytes(data[:3000])
    (folder / "d-cut-weights.gguf").write_bytes(data[:-50_000])
    (folder / "e-folder.gguf").mkdir()
    (folder / "f-unknown.gguf").write_bytes(data.replace(b"qwen3moe", b"qwen9moe"))
    write_tiny_model(folder / "g-big.gguf", "dense", big_endian=True)
    entries = by_file(rows(folder))
    assert {name: entry.problem for name, entry in entries.items()} == {
        "a-empty.gguf": "The file is empty.",
        "b-zip.gguf": "This is not a GGUF file.",
        "c-cut-header.gguf": "The file is cut short: it ends inside its header.",
        "d-cut-weights.gguf": "The file is cut short: 49 KiB are missing.",
        "e-folder.gguf": "This is a folder, not a model file.",
        "f-unknown.gguf": "The architecture “qwen9moe” is not known to this llama.cpp.",
        "g-big.gguf": "The file is big-endian, which this machine cannot run.",
        moe.name: "",
    }
    assert [entry.path for entry in entries.values() if entry.offered] == [moe]
    # Cut in the weights, it still says what it is.
    cut = entries["d-cut-weights.gguf"]
    assert (cut.name, cut.arch, cut.n_expert) == ("Tiny moe", "qwen3moe", 8)
    assert entries["a-empty.gguf"].name == "a-empty"
    assert entries["a-empty.gguf"].role == "unknown"


def test_load_facts_says_the_same_sentence_as_the_row(moe: Path) -> None:
    for data in (b"", b"PK", moe.read_bytes()[:3000], moe.read_bytes()[:-50_000]):
        moe.write_bytes(data)
        (entry,) = rows(moe.parent)
        with pytest.raises(LauncherError) as caught:
            load_facts(moe)
        assert (caught.value.message, caught.value.hint) == (entry.problem, entry.hint)


def test_load_facts_of_a_vanished_file(tmp_path: Path) -> None:
    for name in ("x.gguf", "x-00001-of-00003.gguf"):
        with pytest.raises(LauncherError, match="The file is not there any more"):
            load_facts(tmp_path / name)


def test_a_folder_that_is_not_there_is_a_row(moe: Path, tmp_path: Path) -> None:
    gone, kept = rows(tmp_path / "gone", moe.parent)
    assert (gone.role, gone.problem) == ("folder", "This folder is not there.")
    assert kept.path == moe


def test_an_unreadable_folder_is_a_row_and_the_scan_goes_on(
    moe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    locked = tmp_path / "a-locked"
    locked.mkdir()
    real = os.scandir

    def refuse(path: Path) -> object:
        if path == locked:
            raise PermissionError(13, "Permission denied")
        return real(path)

    monkeypatch.setattr(catalog.os, "scandir", refuse)  # root may read everything
    entries = by_file(rows(tmp_path))
    assert entries["a-locked"].problem == "This folder cannot be read: Permission denied."
    assert entries["a-locked"].files == ()
    assert entries[moe.name].offered


def test_files_that_may_not_be_looked_at_are_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder that may be listed but not entered: every look at a file in it is refused."""
    write_tiny_model(tmp_path / "a.gguf", "dense")
    write_tiny_model(tmp_path / "big.gguf", "moe", split_max_tensors=20)
    real = Path.stat

    def refuse(self: Path, *, follow_symlinks: bool = True) -> os.stat_result:
        if self.suffix == ".gguf":
            raise PermissionError(13, "Permission denied")
        return real(self, follow_symlinks=follow_symlinks)

    monkeypatch.setattr(Path, "stat", refuse)  # root may look at everything
    entries = rows(tmp_path)
    assert [entry.size_bytes for entry in entries] == [None, None]
    for entry in entries:
        assert "access is denied" in entry.problem
        with pytest.raises(LauncherError, match="access is denied"):
            load_facts(entry.path)
    (entry,) = rows(tmp_path / "b.gguf")
    assert entry.problem == "This folder cannot be read: Permission denied."


def test_a_cancelled_scan_ends(tmp_path: Path) -> None:
    for number in range(3):
        write_tiny_model(tmp_path / f"{number}.gguf", "dense")
    seen: list[CatalogEntry] = []
    for entry in scan([tmp_path], cancelled=lambda: len(seen) >= 1):
        seen.append(entry)
    assert len(seen) == 1


def test_stored_nonsense_is_read_anew(moe: Path, tmp_path: Path) -> None:
    cache = HeaderCache(tmp_path / "cache")
    first = rows(moe.parent, cache=cache)
    file = tmp_path / "cache" / "headers.json"
    stored = json.loads(file.read_text(encoding="utf-8"))
    for odd in ({"name": 5}, {}, {"n_layer": "x"}):
        for entry in stored["entries"].values():
            entry[1] = {**entry[1], **odd} if odd else {}
        file.write_text(json.dumps(stored), encoding="utf-8")
        assert rows(moe.parent, cache=HeaderCache(tmp_path / "cache")) == first


def test_problems_are_never_cached(moe: Path, tmp_path: Path) -> None:
    whole = moe.read_bytes()
    moe.write_bytes(whole[:-50_000])
    cache = HeaderCache(tmp_path / "cache")
    rows(moe.parent, cache=cache)
    cache.save()
    assert not (tmp_path / "cache").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="names are text elsewhere")
def test_a_name_that_is_no_text_becomes_one(moe: Path) -> None:
    odd = moe.with_name(os.fsdecode(b"caf\xe9.gguf"))
    write_tiny_model(moe, "moe", name="/none").rename(odd)
    entry = entry_of(odd)
    assert entry.path == odd
    assert entry.name == "caf\ufffd"
