"""A file that cannot be understood."""

from __future__ import annotations

from pathlib import Path

import pytest

from moelauncher.core.damaged_file import move_aside, set_aside


def test_earlier_ones_are_kept_and_a_databases_log_goes_along(tmp_path: Path) -> None:
    database = tmp_path / "kept.sqlite3"
    for text in ("first", "second"):
        database.write_text(text, encoding="utf-8")
        database.with_name("kept.sqlite3-wal").write_text(f"{text} log", encoding="utf-8")
        move_aside(database)
    assert {path.name: path.read_text(encoding="utf-8") for path in tmp_path.iterdir()} == {
        "kept.sqlite3.broken-1": "first",
        "kept.sqlite3.broken-1-wal": "first log",
        "kept.sqlite3.broken-2": "second",
        "kept.sqlite3.broken-2-wal": "second log",
    }


def test_the_sentence_names_where_it_lies_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "settings.toml"
    broken.write_text("?", encoding="utf-8")

    def refused(self: Path, target: Path) -> Path:
        raise PermissionError(self, target)

    with monkeypatch.context() as held:
        held.setattr(Path, "replace", refused)
        assert set_aside(broken, moved="now {path}", stays="still {path}") == f"still {broken}"
    told = set_aside(broken, moved="now {path}", stays="still {path}")
    assert told == f"now {broken}.broken-1"
    assert not broken.exists()
