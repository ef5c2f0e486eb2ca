"""A rescue file comes back as it was written, and as nothing else."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from moelauncher.core.chats.rescue_file import (
    FORMAT_VERSION,
    DamagedRescueError,
    NewerRescueError,
    find_rescues,
    read_rescue,
    write_rescue,
)
from moelauncher.core.chats.rescued_chat import Rescue, RescuedChat
from moelauncher.core.errors import LauncherError
from tests.helpers.kept_chats import kept


def rescue(text: str = "three") -> Rescue:
    chat = kept("a", ("one", "two"))
    talk = chat.conversation.edit(1, "otherwise").ask(text).leave_out([2])
    chat = replace(chat, conversation=talk, title="Numbers\t" * 40, settings={"max_tokens": 9})
    return Rescue((RescuedChat(chat, "print"), RescuedChat(kept("b", ("東京", "x")))), 12.5, "a")


def test_it_comes_back_as_it_was(path: Path) -> None:
    written = rescue()
    file = write_rescue(written, path, ())
    assert file.parent == path.parent
    assert find_rescues(path, ()) == [file]
    assert read_rescue(file) == written


def test_an_odd_setting_does_not_cost_the_text(path: Path) -> None:
    odd = replace(kept("a", ("one", "\ud83d")), settings={"odd": object()})
    file = write_rescue(Rescue((RescuedChat(odd),), 1.0), path, ())
    (found,) = read_rescue(file).chats
    assert [turn.text for turn in found.chat.conversation.turns] == ["one", "?"]


def test_each_gets_a_name_of_its_own(path: Path) -> None:
    files = {write_rescue(rescue(), path, ()) for _ in range(3)}
    assert set(find_rescues(path, ())) == files
    assert len(files) == 3


def test_a_folder_that_does_not_take_it_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("a file", encoding="utf-8")
    chats = tmp_path / "data" / "chats.sqlite3"
    others = (tmp_path / "data" / "config", tmp_path / "other")
    file = write_rescue(rescue(), chats, others)
    assert file.parent == tmp_path / "other"
    assert find_rescues(chats, others) == [file]
    assert len(read_rescue(file).chats) == 2
    with pytest.raises(LauncherError, match="Cannot write"):
        write_rescue(rescue(), chats, others[:1])


def test_chats_of_another_folder_are_left_to_their_program(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("a file", encoding="utf-8")
    shared = tmp_path / "shared"
    write_rescue(rescue(), tmp_path / "data" / "chats.sqlite3", (shared,))
    assert find_rescues(shared / "chats.sqlite3", (shared,)) == []
    assert find_rescues(tmp_path / "chats.sqlite3", (shared,)) == []


@pytest.mark.skipif(sys.platform == "win32", reason="Windows keeps rights by folder")
def test_nobody_else_reads_it(path: Path) -> None:
    file = write_rescue(rescue(), path, ())
    assert file.stat().st_mode & 0o077 == 0


@pytest.mark.skipif(sys.platform == "win32", reason="needs a link, which Windows gives to few")
def test_a_link_in_a_shared_folder_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("a file", encoding="utf-8")
    chats, shared = tmp_path / "data" / "chats.sqlite3", tmp_path / "shared"
    file = write_rescue(rescue(), chats, (shared,))
    elsewhere = file.rename(tmp_path / "elsewhere.json")
    file.symlink_to(elsewhere)
    assert find_rescues(chats, (shared,)) == []


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: "",
        lambda text: text[: len(text) // 2],
        lambda text: text.replace("three", "seven"),
        lambda text: text.replace("moelauncher-rescued-chats", "other"),
        lambda text: "[]\n[]\n",
        lambda text: "[" * 100_000,
        lambda text: text.partition("\n")[0],
    ],
)
def test_what_is_not_as_it_was_written_is_damaged(path: Path, damage) -> None:  # type: ignore[no-untyped-def]
    file = write_rescue(rescue(), path, ())
    file.write_text(damage(file.read_text(encoding="utf-8")), encoding="utf-8")
    with pytest.raises(DamagedRescueError):
        read_rescue(file)


def test_bytes_that_are_no_text_are_damaged(path: Path) -> None:
    file = write_rescue(rescue(), path, ())
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DamagedRescueError):
        read_rescue(file)


def test_one_of_a_newer_version_is_told_from_a_damaged_one(path: Path) -> None:
    file = write_rescue(rescue(), path, ())
    head, _, _ = file.read_text(encoding="utf-8").partition("\n")
    newer = json.loads(head) | {"version": FORMAT_VERSION + 1}
    file.write_text(json.dumps(newer) + "\nwhatever it holds\n", encoding="utf-8")
    with pytest.raises(NewerRescueError):
        read_rescue(file)
