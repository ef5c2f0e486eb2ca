"""The file that holds what could not be stored when the program ended.

It lies beside the chats, or, where that folder does not take it, in another one. Two lines of
JSON: what it is, with a checksum of the other line, and the chats. It is written once, under a
name of its own, and only ever deleted, since Windows replaces no file that somebody has open.
Any thread.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Sequence
from pathlib import Path

from moelauncher.core.atomic_file import write_text_atomically
from moelauncher.core.chats.chat_export import as_document, from_document
from moelauncher.core.chats.kept_chat import KeptChat
from moelauncher.core.chats.rescued_chat import Rescue, RescuedChat
from moelauncher.core.errors import LauncherError
from moelauncher.core.text_cleaning import writable_text

FORMAT = "moelauncher-rescued-chats"
FORMAT_VERSION = 1


class NewerRescueError(Exception):
    """The file comes from a newer version of this program."""


class DamagedRescueError(Exception):
    """The file is not what was written."""


def write_rescue(rescue: Rescue, chats_file: Path, other_folders: Sequence[Path]) -> Path:
    """Write ``rescue`` beside ``chats_file`` or, failing that, into the first of the others that
    takes it; the file. Raises LauncherError where none does.
    """
    text = _text_of(rescue)
    for place, name in _names(chats_file, other_folders, rescue.id):
        try:
            write_text_atomically(place / name, text, private=True)
        except LauncherError as error:
            failure = error
        else:
            return place / name
    raise failure


def find_rescues(chats_file: Path, other_folders: Sequence[Path]) -> list[Path]:
    """The rescue files for ``chats_file``, wherever they were put."""
    found: list[Path] = []
    for place, pattern in _names(chats_file, other_folders, "*"):
        try:
            files = sorted(place.glob(pattern))
        except OSError:
            continue
        # A folder for temporary files may be everybody's.
        found += [path for path in files if place == chats_file.parent or _is_ours(path)]
    return list(dict.fromkeys(found))


def read_rescue(path: Path) -> Rescue:
    """What the file holds. Raises NewerRescueError, DamagedRescueError, or OSError."""
    try:
        head_line, _, body = path.read_bytes().decode("utf-8").partition("\n")
        head = json.loads(head_line)
        if head["format"] != FORMAT or type(head["version"]) is not int:
            raise DamagedRescueError(path.name)
        if head["version"] > FORMAT_VERSION:
            raise NewerRescueError(path.name)
        if head["sha256"] != _checksum(body):
            raise DamagedRescueError(path.name)
        return Rescue(
            tuple(_chat_from(path.name, item) for item in json.loads(body)),
            float(head["when_s"]),
            str(head["shown"]),
            str(head["id"]),
        )
    except (ValueError, RecursionError, KeyError, TypeError, LauncherError) as error:
        raise DamagedRescueError(path.name) from error


def _text_of(rescue: Rescue) -> str:
    chats = [
        {
            "id": one.chat.id,
            "title": one.chat.title,
            "stored_text": one.stored_text,
            "chat": as_document(one.chat),
        }
        for one in rescue.chats
    ]
    # One odd value shall not cost the text.
    body = writable_text(json.dumps(chats, ensure_ascii=False, default=str)) + "\n"
    head = {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "id": rescue.id,
        "when_s": rescue.when_s,
        "shown": rescue.shown,
        "sha256": _checksum(body),
    }
    return json.dumps(head) + "\n" + body


def _chat_from(name: str, item: dict[str, object]) -> RescuedChat:
    chat = from_document(name, item["chat"])
    chat = KeptChat(str(item["id"]), chat.conversation, str(item["title"]), chat.settings)
    return RescuedChat(chat, str(item["stored_text"]))


def _checksum(body: str) -> str:
    return hashlib.sha256(body.encode("utf-8")).hexdigest()


def _names(chats_file: Path, other_folders: Sequence[Path], part: str) -> list[tuple[Path, str]]:
    """Each folder, with the file's name there: elsewhere it tells which chats it belongs to."""
    whose = os.path.normcase(chats_file.absolute())
    mark = hashlib.sha256(whose.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    beside = (chats_file.parent, f"{chats_file.name}.rescue-{part}.json")
    elsewhere = f"moelauncher-rescue-{mark}-{part}.json"
    return [beside, *((folder, elsewhere) for folder in other_folders)]


def _is_ours(path: Path) -> bool:
    """Whether it is a plain file that this user wrote."""
    try:
        found = path.lstat()
    except OSError:
        return False
    user = getattr(os, "getuid", None)  # Windows has none, and a folder for each user
    return stat.S_ISREG(found.st_mode) and (user is None or found.st_uid == user())
