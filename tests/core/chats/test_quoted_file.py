"""Files dropped on the chat: text is quoted, everything else refused in a sentence."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from moelauncher.core.chats.quoted_file import LONGEST_BYTES, quote_file
from moelauncher.core.errors import LauncherError


def quoted(tmp_path: Path, name: str, data: bytes, encoding: str = "utf-8") -> str:
    path = tmp_path / name
    path.write_bytes(data)
    return quote_file(path, encoding)


@pytest.mark.parametrize(
    ("name", "data", "expected"),
    [
        ("a.py", b"x = 1\r\n", "a.py:\n\n```py\nx = 1\n```\n"),
        ("notes", "東京".encode(), "notes:\n\n```\n東京\n```\n"),
        ("a.txt", b"\xef\xbb\xbfhi", "a.txt:\n\n```txt\nhi\n```\n"),
        ("a.txt", "hi".encode("utf-16"), "a.txt:\n\n```txt\nhi\n```\n"),
        ("a.md", b"````\nx\n````", "a.md:\n\n`````md\n````\nx\n````\n`````\n"),
        ("empty.txt", b"", "empty.txt:\n\n```txt\n\n```\n"),
        ("a.x y", b"hi", "a.x y:\n\n```\nhi\n```\n"),
    ],
)
def test_text_is_quoted(tmp_path: Path, name: str, data: bytes, expected: str) -> None:
    assert quoted(tmp_path, name, data) == expected


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\x89PNG\r\n\x1a\n\x00\x00", "no text file"),
        (b"caf\xe9", "an encoding that is not known"),
        (b"caf\xe9\x01", "no text file"),
        (b"\xff\xfe\x00", "no text file"),
        (b"x" * (LONGEST_BYTES + 1), "too long"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, data: bytes, reason: str) -> None:
    with pytest.raises(LauncherError, match=reason):
        quoted(tmp_path, "file.bin", data)


@pytest.mark.parametrize(
    ("text", "encoding"), [("東京は日本の首都。\n", "cp932"), ("Grüße aus dem Café\n", "cp1252")]
)
def test_text_in_the_systems_own_encoding(tmp_path: Path, text: str, encoding: str) -> None:
    assert text in quoted(tmp_path, "a.txt", text.encode(encoding), encoding)
    assert text in quoted(tmp_path, "a.txt", text.encode(), encoding)
    with pytest.raises(LauncherError, match="no text file"):
        quoted(tmp_path, "a.bin", text.encode(encoding) + b"\x02", encoding)


def test_a_file_that_is_gone_or_a_folder(tmp_path: Path) -> None:
    for path in (tmp_path / "gone.txt", tmp_path):
        with pytest.raises(LauncherError, match="cannot be read"):
            quote_file(path)


@pytest.mark.skipif(sys.platform == "win32", reason="pipes lie in no folder there")
def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.txt")
    with pytest.raises(LauncherError, match="no text file"):
        quote_file(tmp_path / "pipe.txt")
