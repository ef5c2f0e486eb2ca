"""``moelauncher list`` as its users run it: a process over a folder of whole and broken files."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.command_line import assert_no_window, moelauncher, run_watched


def test_list_over_a_tree(tree: Path) -> None:
    ran = run_watched("list", tree, "--json")
    assert ran.status == 0, ran.err
    rows = {Path(row["path"]).name: row for row in ran.document}
    assert set(rows) == {
        *("moe.gguf", "dense.gguf", "empty.gguf", "cut.gguf", "text.gguf", "folder.gguf"),
    }
    assert rows["moe.gguf"]["n_expert"] == 8
    assert rows["moe.gguf"]["problem"] is None
    assert rows["dense.gguf"]["n_moe_layers"] == 0
    for name in ("empty.gguf", "cut.gguf", "text.gguf", "folder.gguf"):
        assert rows[name]["problem"], name
    assert_no_window(ran.modules)
    assert "llama_cpp" not in ran.modules


def test_list_for_people(tree: Path) -> None:
    ran = moelauncher("list", tree)
    assert ran.status == 0
    assert "Tiny moe" in ran.out
    assert "4 of 4 layers" in ran.out


def test_list_without_folders_uses_those_of_the_settings(tree: Path, tmp_path: Path) -> None:
    settings = tmp_path / "base" / "config" / "settings.toml"
    settings.parent.mkdir(parents=True)
    settings.write_text(f"[models]\nfolders = ['{tree}']\n", encoding="utf-8")
    ran = moelauncher("--basedir", tmp_path / "base", "list", "--json")
    assert "moe.gguf" in ran.out


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such pipes")
def test_a_reader_that_goes_away_is_no_crash(tree: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as pipe:
        done = subprocess.run(
            [sys.executable, "-m", "moelauncher", "list", tree],
            cwd=Path(__file__).parents[2],
            stdout=pipe,
            stderr=subprocess.PIPE,
            timeout=240,
        )
    assert done.returncode == 1
    assert done.stderr == b""
