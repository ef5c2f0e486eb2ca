"""llama.cpp's source is fetched once, and a fetch that was stopped counts as none."""

from __future__ import annotations

import io
import sys
import tarfile
from pathlib import Path

import llama_source
import pytest
from dev_console import DevError


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """A package index with one source archive; what was asked of it."""
    asked: list[list[str]] = []

    def download(command: list[str], **_: object) -> None:
        asked.append([str(part) for part in command])
        folder = Path(command[command.index("--dest") + 1])
        with tarfile.open(folder / "llama_cpp_python-0.3.36.tar.gz", "w:gz") as archive:
            member = tarfile.TarInfo("llama_cpp_python-0.3.36/CMakeLists.txt")
            member.size = 2
            archive.addfile(member, io.BytesIO(b"ok"))

    monkeypatch.setattr(llama_source, "run_logged", download)
    return asked


def test_source_is_fetched_once(tmp_path: Path, index: list[list[str]]) -> None:
    for _ in range(2):
        root = llama_source.fetch_source("0.3.36", tmp_path / "bin", tmp_path, tmp_path / "log")
        assert (root / "CMakeLists.txt").read_text(encoding="utf-8") == "ok"
    assert len(index) == 1 and "llama-cpp-python==0.3.36" in index[0]


def test_source_whose_unpacking_was_broken_off_is_unpacked_anew(
    tmp_path: Path, index: list[list[str]]
) -> None:
    (tmp_path / "unfinished" / "llama_cpp_python-0.3.35").mkdir(parents=True)
    root = llama_source.fetch_source("0.3.36", tmp_path / "bin", tmp_path, tmp_path / "log")
    assert (root / "CMakeLists.txt").is_file()


def test_tools_are_kept_when_all_are_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    programs = tmp_path / "tools" / ("Scripts" if sys.platform == "win32" else "bin")
    asked: list[object] = []
    monkeypatch.setattr(llama_source, "run_logged", lambda command, **_: asked.append(command))
    programs.mkdir(parents=True)
    (programs / "ninja").touch()  # pip was stopped between the two
    llama_source.make_tools(tmp_path, tmp_path / "log")
    assert len(asked) == 2
    (programs / "cmake").touch()
    assert llama_source.make_tools(tmp_path, tmp_path / "log") == programs
    assert len(asked) == 2


def test_index_without_the_source_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(llama_source, "run_logged", lambda *arguments, **_: None)
    with pytest.raises(DevError, match="no source archive"):
        llama_source.fetch_source("0.3.36", tmp_path / "bin", tmp_path, tmp_path / "log")
