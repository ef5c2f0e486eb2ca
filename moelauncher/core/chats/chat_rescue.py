"""What cannot be stored when the program ends waits in a file, and the next start takes it in.

In: chats and the store. Out: a rescue file at the end; at the next start its chats in the store,
once, and a sentence about it. What cannot be read is kept. The store's thread.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from moelauncher.core.chats.chat_store import ChatStore
from moelauncher.core.chats.kept_chat import KeptChat
from moelauncher.core.chats.rescue_file import (
    DamagedRescueError,
    NewerRescueError,
    find_rescues,
    read_rescue,
    write_rescue,
)
from moelauncher.core.chats.rescued_chat import Rescue, unstored
from moelauncher.core.damaged_file import set_aside
from moelauncher.core.errors import LauncherError
from moelauncher.core.paths import shortened
from moelauncher.core.translate import tr

_log = logging.getLogger(__name__)


class ChatRescue:
    """For the chats of one file. ``other_folders``: where else a rescue may be put."""

    def __init__(
        self,
        chats_file: Path,
        other_folders: Sequence[Path] = (),
        *,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._chats_file = chats_file
        self._others = tuple(other_folders)
        self._now = now

    def leave(
        self, store: ChatStore | None, chats: Iterable[KeptChat], shown: str = ""
    ) -> Path | None:
        """Write down those of ``chats`` that ``store`` could not be brought to hold; None: it
        holds them all. ``shown``: the id of the chat to show at the next start.

        Raises LauncherError where no folder takes the file.
        """
        if store is not None:
            chats = [chat for chat in chats if not store.is_deleted(chat.id)]
        left = unstored(chats, lambda chat_id: store.written(chat_id) if store else None)
        if not left:
            return None
        known = {one.chat.id for one in left}
        rescue = Rescue(left, self._now(), shown if shown in known else "")
        return write_rescue(rescue, self._chats_file, self._others)

    def take_in(self, store: ChatStore) -> str:
        """Bring what waits into ``store``; the sentences that tell of it, "" for nothing."""
        notes: list[str] = []
        found: list[tuple[Path, Rescue]] = []
        for path in find_rescues(self._chats_file, self._others):
            try:
                found.append((path, read_rescue(path)))
            except NewerRescueError:
                text = tr(
                    "Rescued chat text comes from a newer version of this program and is kept "
                    "for it: {path}."
                )
                notes.append(text.format(path=shortened(path)))
            except DamagedRescueError:
                notes.append(_kept_aside(path))
            except OSError as error:
                text = tr("Rescued chat text in {path} cannot be read now: {reason}.")
                notes.append(text.format(path=shortened(path), reason=error.strerror or error))
        found.sort(key=lambda one: one[1].when_s)
        notes += self._into(store, found)
        return " ".join(dict.fromkeys(notes))

    def _into(self, store: ChatStore, found: Sequence[tuple[Path, Rescue]]) -> list[str]:
        n_chats, copies, notes = 0, [], []
        for path, rescue in found:
            try:
                if not store.writable:
                    raise LauncherError(tr("The chats can be read but not changed."))
                chats = store.take_in(rescue)
            except LauncherError as error:
                _log.warning("%s: %s %s", path, error.sentence, error.details)
                text = tr(
                    "Text that could not be stored when the program was last closed waits until "
                    "your chats can be changed again: {path}."
                )
                notes.append(text.format(path=shortened(path)))
                continue
            ids = {one.chat.id for one in rescue.chats}
            n_chats += len(chats)
            copies += [chat.shown_title for chat in chats if chat.id not in ids]
            _log.info("took in %d of %d chats from %s", len(chats), len(ids), path)
            with contextlib.suppress(OSError):  # the store knows that it is in there
                path.unlink()
        if copies:
            text = tr(
                "Text that could not be stored when the program was last closed is in a chat of "
                "its own, since the original has changed: {titles}."
            )
            notes.append(text.format(titles=", ".join(f"“{title}”" for title in copies)))
        if n_chats > len(copies):
            notes.append(
                tr(
                    "Text that could not be stored when the program was last closed is in your "
                    "chats now."
                )
            )
        return notes


def _kept_aside(path: Path) -> str:
    """A damaged one is told once."""
    return set_aside(
        path,
        moved=tr("Rescued chat text is damaged and was not taken in; its file is kept: {path}."),
        stays=tr("Rescued chat text in {path} is damaged and was not taken in; it is kept."),
    )
