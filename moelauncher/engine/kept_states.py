"""States of long chats on the disk, so that a chat that is opened again is not read again.

In: a context's tokens and what llama.cpp made of them. Out: the same, in another run of the
program. Bounded in size, the longest unused go first; losing any of it costs time only, so
nothing here raises. Engine thread.

A state is two files: ``KEY-TOKENS-CHAT.state`` is llama.cpp's own (tokens, then the cache), and
``.marks`` beside it holds the checkpoints of caches that cannot be cut. KEY stands for all
that a state depends on, so another file of the model or another KV type finds nothing; CHAT for
the chat that it is of, so that it goes when that is deleted.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import shutil
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from moelauncher.core.atomic_file import replace_patiently
from moelauncher.core.chats.prompt_prefix import common_prefix

_log = logging.getLogger(__name__)

#: A chat shorter than this is read again quicker than it is looked for.
LEAST_TOKENS = 512
#: So much stays free on the disk.
_SPARE_BYTES = 1 << 30
#: llama.cpp's file begins with two numbers for its kind and version, then the tokens' count.
_HEAD = struct.Struct("<III")
_MARK = struct.Struct("<QQ")  # tokens, bytes
_MARKS_MAX = 64


@dataclass(frozen=True)
class KeptState:
    """One state on the disk: its tokens, and the lengths of its checkpoints."""

    path: Path
    tokens: list[int]
    marks: tuple[int, ...]


class KeptStates:
    """The folder. ``limit_bytes`` is asked each time; 0 keeps nothing."""

    def __init__(
        self, folder: Path, limit_bytes: Callable[[], int], least_tokens: int = LEAST_TOKENS
    ) -> None:
        self._folder = folder
        self._limit_bytes = limit_bytes
        self._forgotten: set[str] = set()
        self.least_tokens = least_tokens

    @property
    def on(self) -> bool:
        """Whether anything is to be kept; where not, what is there goes."""
        if self._limit_bytes() > 0:
            return True
        self._clean(0)
        return False

    def wants(self, n_tokens: int, n_bytes: int) -> bool:
        """Whether a state of that size would be kept; what is too much is cleaned away."""
        limit = self._limit_bytes()
        if n_bytes > limit:
            self._clean(limit)
            return False
        if n_tokens < self.least_tokens:
            return False
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._clean(limit - n_bytes)
            return shutil.disk_usage(self._folder).free > n_bytes + _SPARE_BYTES
        except OSError as error:
            _log.warning("chat states cannot be kept in %s: %s", self._folder, error)
            return False

    def forget(self, chat_id: str) -> None:
        """Keep no more of this chat; what is there goes with :meth:`drop_forgotten`. Any thread."""
        self._forgotten.add(chat_id)

    def recall(self, chat_id: str) -> None:
        """Take back a :meth:`forget`: the chat goes on."""
        self._forgotten.discard(chat_id)

    def keeps(self, chat_id: str) -> bool:
        """Whether states of this chat are wanted."""
        return chat_id not in self._forgotten

    def drop_forgotten(self) -> None:
        """Remove what is kept of forgotten chats, and what may be of them."""
        gone = {_short(chat_id) for chat_id in self._forgotten}
        if not gone:
            return
        for path in self._files():
            # A state that names no chat may be of any: it costs only time.
            if path.suffix == ".state" and path.stem.split("-")[2:3] in ([], *([g] for g in gone)):
                self.drop(path)

    def path_for(self, key: str, tokens: Sequence[int], chat_id: str = "") -> Path:
        """Where the state of ``tokens`` belongs."""
        import numpy as np  # not above: it would delay the window

        told = hashlib.sha256(np.asarray(tokens, dtype="<i4").tobytes()).hexdigest()[:16]
        of_chat = f"-{_short(chat_id)}" if chat_id else ""
        return self._folder / f"{_short(key)}-{told}{of_chat}.state"

    def has(self, path: Path) -> bool:
        """Whether that state is there; it counts as used now."""
        with contextlib.suppress(OSError):
            os.utime(path)
            return True
        return False

    def keep(
        self,
        path: Path,
        write: Callable[[Path], bool],
        marks: Sequence[tuple[int, Any]],
    ) -> bool:
        """Let ``write`` write llama.cpp's part, then put both parts in their place.

        ``marks`` are checkpoints: their tokens, and a buffer of bytes.

        An earlier state of the same chat is of no use any more, and goes.
        """
        half = path.with_suffix(".part")
        try:
            with half.with_suffix(".half").open("wb") as file:
                for n_tokens, state in marks[-_MARKS_MAX:]:
                    file.write(_MARK.pack(n_tokens, len(state)))
                    file.write(state)
            if not write(half):
                raise OSError("llama.cpp could not write it")
            replace_patiently(half.with_suffix(".half"), path.with_suffix(".marks"))
            replace_patiently(half, path)
        except OSError as error:
            _log.warning("the state of a chat was not kept: %s", error)
            for left in (half, half.with_suffix(".half")):
                with contextlib.suppress(OSError):
                    left.unlink()
            return False
        self._drop_begun(path)
        return True

    def all(self, key: str) -> list[KeptState]:
        """All states under ``key``."""
        found = []
        for path in self._files():
            if path.suffix == ".state" and path.name.startswith(_short(key) + "-"):
                tokens = _tokens_in(path)
                if tokens:
                    found.append(KeptState(path, tokens, _mark_lengths(path)))
        return found

    def drop(self, path: Path) -> None:
        """Forget a state."""
        for part in (path, path.with_suffix(".marks")):
            with contextlib.suppress(OSError):
                part.unlink()

    # Parts

    def _files(self) -> list[Path]:
        try:
            return list(self._folder.iterdir())
        except OSError:
            return []

    def _clean(self, limit_bytes: int) -> None:
        states = []
        total = 0
        for path in self._files():
            try:
                if path.suffix in (".part", ".half"):
                    path.unlink()  # a run that ended while it wrote
                elif path.suffix == ".state":
                    size = path.stat().st_size
                    with contextlib.suppress(OSError):
                        size += path.with_suffix(".marks").stat().st_size
                    states.append((path.stat().st_mtime_ns, size, path))
                    total += size
            except OSError:
                continue
        for _, size, path in sorted(states):
            if total <= limit_bytes:
                return
            self.drop(path)
            total -= size

    def _drop_begun(self, newest: Path) -> None:
        key = newest.name.partition("-")[0]
        tokens = _tokens_in(newest)
        for path in self._files():
            if path.suffix != ".state" or path == newest or not path.name.startswith(key + "-"):
                continue
            older = _tokens_in(path)
            if older and len(older) - common_prefix(older, tokens) < self.least_tokens:
                self.drop(path)


def read_marks(path: Path) -> list[tuple[int, bytes]]:
    """The checkpoints beside a state; none where they cannot be read whole."""
    found: list[tuple[int, bytes]] = []
    marks = path.with_suffix(".marks")
    try:
        left = marks.stat().st_size
        with marks.open("rb") as file:
            while len(found) < _MARKS_MAX and (head := file.read(_MARK.size)):
                n_tokens, n_bytes = _MARK.unpack(head)
                left -= _MARK.size + n_bytes
                if left < 0:
                    return []
                found.append((n_tokens, file.read(n_bytes)))
    except (OSError, struct.error, MemoryError):
        return []
    return found


def _mark_lengths(path: Path) -> tuple[int, ...]:
    found: list[int] = []
    try:
        left = path.with_suffix(".marks").stat().st_size
        with path.with_suffix(".marks").open("rb") as file:
            while len(found) < _MARKS_MAX and (head := file.read(_MARK.size)):
                n_tokens, n_bytes = _MARK.unpack(head)
                left -= _MARK.size + n_bytes
                if left < 0:
                    return ()
                found.append(n_tokens)
                file.seek(n_bytes, os.SEEK_CUR)
    except (OSError, struct.error):
        return ()
    return tuple(found)


def _tokens_in(path: Path) -> list[int]:
    try:
        with path.open("rb") as file:
            _, _, count = _HEAD.unpack(file.read(_HEAD.size))
            if count * 4 > path.stat().st_size:
                return []
            data = file.read(4 * count)
        import numpy as np

        return [int(token) for token in np.frombuffer(data, dtype="<i4")]
    except (OSError, struct.error, ValueError):
        return []


def _short(key: str) -> str:
    return hashlib.sha256(key.encode("utf-8", errors="surrogateescape")).hexdigest()[:16]
