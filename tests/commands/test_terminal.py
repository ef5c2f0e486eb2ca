"""What is printed cannot move the cursor, and JSON stays JSON."""

from __future__ import annotations

import io
import json
import sys

import pytest

from moelauncher.commands.terminal import out, out_json, prepare_streams, printable, table


def test_control_characters_are_shown_as_unknown() -> None:
    assert printable("a\x1b[2Jb\rc\u202ed") == "a\ufffd[2Jb\ufffdc\ufffdd"
    assert (
        printable("two\nlines\tand a tab, größe 日本 🦙") == "two\nlines\tand a tab, größe 日本 🦙"
    )


def test_a_console_of_an_old_code_page_gets_utf8(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="cp1252"))
    prepare_streams()
    out("日本")
    assert raw.getvalue().decode("utf-8").strip() == "日本"


def test_a_name_that_is_no_text_stays_valid_json(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="utf-8"))
    prepare_streams()
    out_json({"path": "bad\udcff.gguf"})
    assert json.loads(raw.getvalue()) == {"path": "bad\udcff.gguf"}


def test_nan_never_reaches_json() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        out_json({"rate": float("nan")})


def test_columns_line_up() -> None:
    text = table(("name", "size"), [("a", "10"), ("long\nname", "9")], right=frozenset({1}))
    assert text.splitlines() == ["name       size", "a            10", "long name     9"]
