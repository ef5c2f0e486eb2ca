"""Files that are replaced whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from moelauncher.core.atomic_file import write_text_atomically
from moelauncher.core.errors import LauncherError


def test_writes_utf8_and_leaves_no_half(tmp_path: Path) -> None:
    path = tmp_path / "new" / "file.txt"
    write_text_atomically(path, "große\n日本\n")
    assert path.read_bytes() == "große\n日本\n".encode()
    assert [p.name for p in path.parent.iterdir()] == ["file.txt"]


def refuse(times: int, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Let ``Path.replace`` fail like a sharing violation, ``times`` times."""
    calls: list[str] = []
    real = Path.replace

    def replace(self: Path, target: Path) -> Path:
        calls.append(self.name)
        if len(calls) <= times:
            raise PermissionError(13, "The process cannot access the file")
        return real(self, target)

    monkeypatch.setattr(Path, "replace", replace)
    return calls


def test_a_sharing_violation_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = refuse(3, monkeypatch)
    pauses: list[float] = []
    write_text_atomically(tmp_path / "a", "new", pause=pauses.append)
    assert (tmp_path / "a").read_text(encoding="utf-8") == "new"
    assert (len(calls), len(pauses)) == (4, 3)


def test_a_lasting_one_keeps_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").write_text("old", encoding="utf-8")
    refuse(1000, monkeypatch)
    with pytest.raises(LauncherError, match="Cannot write"):
        write_text_atomically(tmp_path / "a", "new", pause=lambda s: None)
    assert [p.name for p in tmp_path.iterdir()] == ["a"]
    assert (tmp_path / "a").read_text(encoding="utf-8") == "old"
