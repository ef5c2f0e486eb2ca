"""What goes with a model: all parts, the blob behind a link, never what others still use."""

from __future__ import annotations

from pathlib import Path

import pytest

from moelauncher.core.errors import LauncherError
from moelauncher.core.library.catalog import entry_of, scan
from moelauncher.core.library.trash_plan import trash_plan
from tests.helpers.gguf_files import write_tiny_model
from tests.helpers.model_tree import write_ollama_model
from tests.helpers.platform_marks import links


def test_all_parts_of_a_split_model_go(tmp_path: Path) -> None:
    first = write_tiny_model(tmp_path / "big.gguf", "moe", split_max_tensors=20)
    plan = trash_plan(entry_of(first))
    assert plan.files == tuple(sorted(tmp_path.glob("big-*.gguf")))
    assert plan.size_bytes == sum(file.stat().st_size for file in plan.files)
    assert plan.links == ()


@links
def test_the_blob_behind_a_snapshot_goes_with_its_links(tmp_path: Path) -> None:
    repo = tmp_path / "models--o--n"
    (repo / "blobs").mkdir(parents=True)
    blob = write_tiny_model(repo / "blobs" / "0a1b", "dense")
    for revision in ("r1", "r2"):
        (repo / "snapshots" / revision).mkdir(parents=True)
        (repo / "snapshots" / revision / "m.gguf").symlink_to(blob)
    (repo / "snapshots" / "r1" / "other.gguf").symlink_to(repo / "blobs" / "ffff")
    plan = trash_plan(entry_of(repo / "snapshots" / "r1" / "m.gguf"))
    assert plan.files == (blob,)
    assert plan.links == tuple(repo / "snapshots" / r / "m.gguf" for r in ("r1", "r2"))
    assert plan.size_bytes == blob.stat().st_size


@links
def test_a_user_s_own_link_goes_alone(tmp_path: Path) -> None:
    model = write_tiny_model(tmp_path / "m.gguf", "dense")
    (tmp_path / "below").mkdir()
    link = tmp_path / "below" / "l.gguf"
    link.symlink_to(model)
    plan = trash_plan(entry_of(link))
    assert (plan.files, plan.links, plan.size_bytes) == ((), (link,), 0)
    model.unlink()
    assert trash_plan(entry_of(link)).links == (link,)


def test_ollama_s_blobs_are_left_to_ollama(tmp_path: Path) -> None:
    write_tiny_model(tmp_path / "blobs" / f"sha256-{'ab' * 32}", "moe")
    write_ollama_model(tmp_path, "tiny:latest", "ab" * 32)
    (entry,) = scan([tmp_path])
    with pytest.raises(LauncherError, match="belongs to Ollama") as caught:
        trash_plan(entry)
    assert caught.value.hint == "Remove it there: ollama rm tiny:latest"


def test_what_has_gone_meanwhile_is_no_error(tmp_path: Path) -> None:
    entry = entry_of(write_tiny_model(tmp_path / "m.gguf", "dense"))
    (tmp_path / "m.gguf").unlink()
    assert trash_plan(entry).files == ()
