"""A file's first bytes, read with suspicion: the lowest layer of the GGUF reader.

In: an open file and its length. Out: numbers and texts, or a LauncherError where the file ends
too early or claims something absurd. Holds about one chunk of the file at a time.
"""

from __future__ import annotations

import struct
from typing import BinaryIO

from moelauncher.core.errors import LauncherError
from moelauncher.core.translate import tr

GGUF_STRING = 8
GGUF_ARRAY = 9
#: Struct code of each fixed-size GGUF value type.
VALUE_CODES = {
    0: "B",
    1: "b",
    2: "H",
    3: "h",
    4: "I",
    5: "i",
    6: "f",
    7: "?",
    10: "Q",
    11: "q",
    12: "d",
}
VALUE_BYTES = {number: struct.calcsize(f"<{code}") for number, code in VALUE_CODES.items()}

# Limits that no real file comes near; they bound time and memory on a damaged one.
_MAX_HEADER_BYTES = 512 << 20
_MAX_STRINGS = 1 << 22
_CHUNK_BYTES = 1 << 20


def damaged(what: str) -> LauncherError:
    """The error of a file that contradicts itself; ``what`` is translated."""
    return LauncherError(
        tr("The file is damaged: {what}.").format(what=what), tr("Download or copy it again.")
    )


def _cut_in_header() -> LauncherError:
    return LauncherError(
        tr("The file is cut short: it ends inside its header."), tr("Download or copy it again.")
    )


class HeaderBytes:
    """A moving window over the file's first bytes. Holds about one chunk at a time."""

    def __init__(self, file: BinaryIO, file_bytes: int) -> None:
        self._file = file
        self.file_bytes = file_bytes
        self._start = 0  # where in the file the window begins
        self._buffer = b""
        self._at = 0  # next byte, within the window
        self._order = "<"
        self._n_strings = 0
        self._u32 = struct.Struct("<I")
        self._u64 = struct.Struct("<Q")

    def set_byte_order(self, order: str) -> None:
        """Read all later numbers as "<" (little) or ">" (big) endian."""
        self._order = order
        self._u32 = struct.Struct(f"{order}I")
        self._u64 = struct.Struct(f"{order}Q")

    @property
    def position(self) -> int:
        """Where the next byte lies in the file."""
        return self._start + self._at

    @property
    def remaining(self) -> int:
        """How many bytes of the file are left."""
        return self.file_bytes - self.position

    def _need(self, n_bytes: int) -> None:
        """Make the window hold ``n_bytes`` at the current place, or raise."""
        if self._at + n_bytes <= len(self._buffer):
            return
        position = self.position
        if n_bytes > self.file_bytes - position:
            raise _cut_in_header()
        if position + n_bytes > _MAX_HEADER_BYTES:
            raise damaged(tr("its header has no end"))
        wanted = min(max(n_bytes, _CHUNK_BYTES), self.file_bytes - position)
        self._buffer = b""  # the old window goes before the new one comes
        self._file.seek(position)
        data = self._file.read(wanted) or b""
        while len(data) < n_bytes:
            piece = self._file.read(wanted - len(data))
            if not piece:
                break
            data += piece
        self._start, self._at, self._buffer = position, 0, data
        if len(self._buffer) < n_bytes:
            raise LauncherError(tr("The file changed while it was read."), tr("Try again."))

    def u32(self) -> int:
        """The next unsigned 32-bit number."""
        self._need(4)
        value: int = self._u32.unpack_from(self._buffer, self._at)[0]
        self._at += 4
        return value

    def u64(self) -> int:
        """The next unsigned 64-bit number."""
        self._need(8)
        value: int = self._u64.unpack_from(self._buffer, self._at)[0]
        self._at += 8
        return value

    def raw(self, n_bytes: int) -> bytes:
        """The next ``n_bytes`` bytes."""
        self._need(n_bytes)
        data = self._buffer[self._at : self._at + n_bytes]
        self._at += n_bytes
        return data

    def string(self, limit: int) -> bytes:
        """The next length-prefixed text, at most ``limit`` bytes."""
        length = self.u64()
        if length > limit:
            raise damaged(tr("a text in its header claims {n} bytes").format(n=length))
        return self.raw(length)

    def value(self, kind: int) -> object:
        """The next value of a fixed-size GGUF type."""
        code = VALUE_CODES[kind]
        return struct.unpack(f"{self._order}{code}", self.raw(VALUE_BYTES[kind]))[0]

    def values(self, kind: int, length: int) -> tuple[object, ...]:
        """The next ``length`` values of a fixed-size GGUF type."""
        data = self.raw(length * VALUE_BYTES[kind])
        return struct.unpack(f"{self._order}{length}{VALUE_CODES[kind]}", data)

    def skip(self, n_bytes: int) -> None:
        """Step over ``n_bytes`` without reading them."""
        if n_bytes > self.remaining:
            raise (
                _cut_in_header()
                if n_bytes <= _MAX_HEADER_BYTES
                else damaged(tr("an array in its header claims {n} bytes").format(n=n_bytes))
            )
        self._at += n_bytes

    def count_strings(self, length: int) -> None:
        """Account for an array of ``length`` strings before any of it is read."""
        self._n_strings += length
        if self._n_strings > _MAX_STRINGS:
            raise damaged(tr("an array in its header claims {n} texts").format(n=length))
        if length * 8 > self.remaining:
            raise _cut_in_header()

    def skip_strings(self, length: int) -> None:
        """Step over ``length`` strings; the one hot loop of the reader."""
        unpack = self._u64.unpack_from
        while length:
            self._need(8)
            buffer, at, done = self._buffer, self._at, 0
            try:
                for done in range(length):  # noqa: B007 - its last value is used below
                    at += 8 + unpack(buffer, at)[0]
            except (struct.error, OverflowError, IndexError):
                # The window ended before string number `done`, or its length made no sense.
                length -= done
            else:
                length = 0
            if self._start + at > self.file_bytes:
                raise _cut_in_header()
            self._at = at
