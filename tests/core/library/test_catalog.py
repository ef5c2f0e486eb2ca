"""Folders to rows: shards joined, projectors paired, links counted once, and every bad file."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

import pytest

from moelauncher.core.errors import LauncherError
from moelauncher.core.files.header_cache import HeaderCache
from moelauncher.core.library import catalog
from moelauncher.core.library.catalog import entry_of, scan
from moelauncher.core.library.catalog_entry import entry_as_json
from moelauncher.core.library.model_files import load_facts
from moelauncher.core.text_cleaning import display_name
from tests.helpers.catalog_rows import by_file, rows
from tests.helpers.expert_layouts import ExpertLayout, write_layout
from tests.helpers.gguf_files import write_mmproj, write_tiny_model
from tests.helpers.platform_marks import links

JSON_KEYS = [
    "path",
    "files",
    "name",
    "arch",
    "quant",
    "size_bytes",
    "n_params",
    "n_active_params",
    "n_layer",
    "n_moe_layers",
    "n_expert",
    "n_expert_used",
    "ctx_train",
    "mmproj",
    "role",
    "problem",
]


@pytest.fixture
def moe(tmp_path: Path) -> Path:
    folder = tmp_path / "models"
    folder.mkdir()
    return write_tiny_model(folder / "Tiny-MoE-Q8_0.gguf", "moe")


def test_a_row_says_what_the_model_is(moe: Path) -> None:
    (entry,) = rows(moe.parent)
    assert (entry.path, entry.files, entry.name) == (moe, (moe,), "Tiny moe")
    assert (entry.arch, entry.quant, entry.role) == ("qwen3moe", "Q8_0", "chat")
    assert (entry.n_layer, entry.n_moe_layers, entry.n_expert, entry.n_expert_used) == (4, 4, 8, 2)
    assert entry.size_bytes == moe.stat().st_size
    assert entry.ctx_train == 2048
    assert entry.offered and entry.has_chat_template
    assert (entry.problem, entry.hint) == ("", "")
    assert entry.description == "qwen3moe  Q8_0  MoE 8/2"


def test_json_has_exactly_the_promised_keys(moe: Path) -> None:
    (entry,) = rows(moe.parent)
    values = entry_as_json(entry)
    assert list(values) == JSON_KEYS
    assert values["problem"] is None
    assert json.loads(json.dumps(values))["files"] == [str(moe)]


def test_folders_of_any_depth_are_searched(tmp_path: Path) -> None:
    deep = tmp_path.joinpath(*"abcdefgh")
    deep.mkdir(parents=True)
    write_tiny_model(deep / "x.GGUF", "dense")
    (deep / "readme.txt").write_text("no model", encoding="utf-8")
    assert [entry.path.name for entry in rows(tmp_path)] == ["x.GGUF"]


def test_single_files_can_be_named(moe: Path) -> None:
    write_tiny_model(moe.with_name("other.gguf"), "dense")
    assert [entry.path for entry in rows(moe)] == [moe]


def test_shards_are_one_row(tmp_path: Path) -> None:
    first = write_tiny_model(tmp_path / "big.gguf", "moe", split_max_tensors=20)
    whole = entry_of(write_tiny_model(tmp_path / "whole" / "w.gguf", "moe"))
    (entry,) = [e for e in rows(tmp_path) if e.path.parent == tmp_path]
    assert entry.path == first
    assert entry.files == tuple(sorted(tmp_path.glob("big-*.gguf")))
    assert len(entry.files) > 2
    assert entry.size_bytes == sum(file.stat().st_size for file in entry.files)
    assert (entry.n_params, entry.n_moe_layers) == (whole.n_params, whole.n_moe_layers)
    assert entry.offered
    # Any of the parts leads to the same model.
    assert load_facts(entry.files[1]).files == entry.files
    assert entry_of(entry.files[-1]) == entry


@pytest.mark.parametrize("number", [0, 1, -1])
def test_a_missing_shard_is_named(tmp_path: Path, number: int) -> None:
    write_tiny_model(tmp_path / "big.gguf", "moe", split_max_tensors=20)
    files = sorted(tmp_path.glob("big-*.gguf"))
    gone = files[number]
    gone.unlink()
    (entry,) = rows(tmp_path)
    n = files.index(gone) + 1
    sentence = f"Part {n} of {len(files)} is missing: {gone.name}."
    assert entry.problem == sentence
    assert entry.hint == "Download it into the same folder."
    assert entry.files == tuple(file for file in files if file != gone)
    assert entry.n_params is None
    assert not entry.offered
    with pytest.raises(LauncherError, match="is missing"):
        load_facts(entry.files[0])


def test_parts_of_two_models_do_not_belong_together(tmp_path: Path) -> None:
    write_tiny_model(tmp_path / "a.gguf", "moe", split_max_tensors=20)
    write_tiny_model(tmp_path / "b" / "a.gguf", "moe", split_max_tensors=20, n_layer=5)
    files = sorted(tmp_path.glob("a-*.gguf"))
    other = sorted((tmp_path / "b").glob("a-*.gguf"))
    shutil.copyfile(other[1], files[1])
    (entry,) = [e for e in rows(tmp_path) if e.path.parent == tmp_path]
    assert entry.problem == "The parts do not belong together."
    shutil.copyfile(files[0], files[1])
    (entry,) = [e for e in rows(tmp_path) if e.path.parent == tmp_path]
    assert entry.problem == "The parts do not belong together."


def test_a_renamed_part_is_told_from_a_model(tmp_path: Path) -> None:
    first = write_tiny_model(tmp_path / "big.gguf", "moe", split_max_tensors=20)
    alone = tmp_path / "alone"
    alone.mkdir()
    first.rename(alone / "model.gguf")
    (entry,) = rows(alone)
    assert "but its name does not say which" in entry.problem


def test_a_projector_is_paired_and_listed_with_its_role(moe: Path) -> None:
    mmproj = write_mmproj(moe.with_name("mmproj-F16.gguf"))
    entries = by_file(rows(moe.parent))
    assert entries["mmproj-F16.gguf"].role == "mmproj"
    assert not entries["mmproj-F16.gguf"].offered
    assert entries[moe.name].mmproj == mmproj
    assert entry_as_json(entries[moe.name])["mmproj"] == str(mmproj)
    assert entry_of(moe).mmproj == mmproj


def test_a_projector_is_known_by_its_content(moe: Path) -> None:
    mmproj = write_mmproj(moe.with_name("zz-vision-part.gguf"))
    assert by_file(rows(moe.parent))[moe.name].mmproj == mmproj


def test_projectors_go_to_the_models_they_fit(moe: Path) -> None:
    small = write_mmproj(moe.with_name("mmproj-a.gguf"), n_embd=64)
    wide = write_mmproj(moe.with_name("mmproj-b.gguf"), n_embd=128)
    other = write_tiny_model(moe.with_name("Other-7B.gguf"), "dense", n_embd=128)
    text_only = write_tiny_model(moe.with_name("Text.gguf"), "dense", n_embd=32)
    entries = by_file(rows(moe.parent))
    assert entries[moe.name].mmproj == small
    assert entries[other.name].mmproj == wide
    assert entries[text_only.name].mmproj is None


def test_a_projector_above_the_shards_folder_is_found(tmp_path: Path) -> None:
    mmproj = write_mmproj(tmp_path / "mmproj-F16.gguf", n_embd=64)
    below = tmp_path / "UD-Q4"
    below.mkdir()
    write_tiny_model(below / "model.gguf", "moe")
    assert by_file(rows(tmp_path))["model.gguf"].mmproj == mmproj


@links
def test_links_to_one_file_count_once(moe: Path, tmp_path: Path) -> None:
    (moe.parent / "again.gguf").symlink_to(moe)
    os.link(moe, moe.parent / "hard.gguf")
    (tmp_path / "linked").symlink_to(moe.parent, target_is_directory=True)
    assert len(rows(tmp_path, moe.parent)) == 1


@links
def test_the_hugging_face_cache_shows_each_model_once(moe: Path, tmp_path: Path) -> None:
    repo = tmp_path / "hub" / "models--owner--name"
    (repo / "blobs").mkdir(parents=True)
    moe.rename(repo / "blobs" / "0a1b2c")
    mmproj = write_mmproj(tmp_path / "mmproj.gguf")
    mmproj.rename(repo / "blobs" / "3d4e5f")
    for revision in ("r1", "r2"):
        snapshot = repo / "snapshots" / revision
        snapshot.mkdir(parents=True)
        (snapshot / "model.gguf").symlink_to(repo / "blobs" / "0a1b2c")
        (snapshot / "mmproj-F16.gguf").symlink_to(repo / "blobs" / "3d4e5f")
    entries = rows(tmp_path / "hub")
    assert sorted(entry.role for entry in entries) == ["chat", "mmproj"]
    chat = next(entry for entry in entries if entry.role == "chat")
    assert chat.path == repo / "snapshots" / "r1" / "model.gguf"
    assert chat.mmproj == repo / "snapshots" / "r1" / "mmproj-F16.gguf"


@links
def test_link_loops_end(moe: Path) -> None:
    (moe.parent / "loop").symlink_to(moe.parent, target_is_directory=True)
    (moe.parent / "self").symlink_to(moe.parent / "self")
    assert [entry.path for entry in rows(moe.parent)] == [moe]


def test_odd_names_survive(moe: Path) -> None:
    names = ["&lt;b&gt;bold.gguf", "right\u202eleft.gguf"]
    if sys.platform != "win32":
        names += ["two\nlines.gguf", "half\udcff.gguf", "<b>bold<b>.gguf"]
    for name in names:
        (moe.parent / name).write_bytes(b"")
    entries = rows(moe.parent)
    assert len(entries) == len(names) + 1
    for entry in entries:
        assert entry.name.isprintable()
        assert "\u202e" not in entry.name
        json.dumps(entry_as_json(entry))


def test_a_name_inside_the_file_is_cleaned(tmp_path: Path) -> None:
    write_tiny_model(tmp_path / "x.gguf", "dense", name="Evil\n\u202egnp.exe <img src=x>")
    (entry,) = rows(tmp_path)
    assert entry.name == "Evil gnp.exe <img src=x>"


def test_first_rows_come_before_the_last_files_are_read(tmp_path: Path) -> None:
    for number in range(3):
        write_tiny_model(tmp_path / f"{number}.gguf", "dense")
    entries = scan([tmp_path])
    assert next(entries).path.name == "0.gguf"
    (tmp_path / "2.gguf").write_bytes(b"")
    assert [entry.problem for entry in entries] == ["", "The file is empty."]


def test_the_cache_spares_the_headers(
    moe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mmproj = write_mmproj(moe.with_name("mmproj.gguf"))
    first = rows(moe.parent, cache=HeaderCache(tmp_path / "cache"))
    reads: list[Path] = []
    real = catalog.read_header

    def counted(path: Path) -> object:
        reads.append(path)
        return real(path)

    monkeypatch.setattr(catalog, "read_header", counted)
    assert rows(moe.parent, cache=HeaderCache(tmp_path / "cache")) == first
    assert reads == []
    # A changed file is read again, and only this one.
    write_tiny_model(moe, "dense")
    again = by_file(rows(moe.parent, cache=HeaderCache(tmp_path / "cache")))
    assert again[moe.name].arch == "llama"
    assert reads == [moe]
    assert again[moe.name].mmproj == mmproj


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("plain", "plain"),
        ("  two\r\nlines\t", "two lines"),
        ("a\u202eb\u2066c\u200fd\u00ade", "abcde"),
        ("half \udce9", "half \ufffd"),
        ("<b>&amp;", "<b>&amp;"),
        ("\x00\x1b[31m", "[31m"),
        ("", ""),
    ],
)
def test_display_names(raw: str, shown: str) -> None:
    assert display_name(raw) == shown


def test_long_names_are_cut() -> None:
    shown = display_name("x" * 100_000)
    assert len(shown) == 160
    assert shown.endswith("…")


def test_many_single_files_look_into_their_folder_once(
    moe: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [moe.with_name(f"copy{number}.gguf") for number in range(20)]
    for file in files:
        shutil.copy(moe, file)
    looks: list[Path] = []
    real = catalog.first_architecture

    def counted(path: Path) -> str | None:
        looks.append(path)
        return real(path)

    monkeypatch.setattr(catalog, "first_architecture", counted)
    assert len(rows(*files)) == 20
    assert len(looks) <= 2 * len(files)


def test_shards_keep_the_case_of_their_names(tmp_path: Path) -> None:
    # Into another folder: in its own, Wine takes a name in capitals for the one that is there.
    write_tiny_model(tmp_path / "written" / "m.gguf", "moe", split_max_tensors=20)
    shouted = tmp_path / "shouted"
    shouted.mkdir()
    for path in (tmp_path / "written").iterdir():
        path.rename(shouted / path.name.upper())
    (entry,) = scan([shouted])
    assert len(entry.files) == 3
    assert "names in small letters: -00001-of-00003.gguf" in entry.problem
    assert not entry.offered, "llama.cpp would not load it"
    assert all(file.exists() for file in entry.files)


def test_how_many_experts_are_used_is_unknown_where_no_key_says_it(tmp_path: Path) -> None:
    layout = ExpertLayout("qwen3moe", ("aE", "aE"))
    (entry,) = scan([write_layout(tmp_path / "x.gguf", layout, keys_of_experts=False)])
    assert (entry.n_expert, entry.n_expert_used) == (4, None)
    assert "MoE 4/?" in entry.description
    (dense,) = scan([write_layout(tmp_path / "x.gguf", ExpertLayout("llama", ("aD",)))])
    assert (dense.n_expert, dense.n_expert_used) == (0, 0)
