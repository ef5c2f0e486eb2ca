"""A file on a server, read by HTTP ranges: enough of a file to read a GGUF header.

In: an address. Out: bytes at a place. A server that ignores ranges is read from its start, but
never further than a header can reach. Pool threads only; Raises LauncherError.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping

from moelauncher.core.errors import Cancelled, LauncherError
from moelauncher.core.translate import tr
from moelauncher.hub.answers import failure, opened

#: Read at once: a header has some megabytes, and each question costs a round trip.
_BLOCK_BYTES = 4 << 20
#: A server that ignores ranges sends everything: no header lies further in than this.
_FURTHEST_BYTES = 128 << 20


class RemoteFile(io.RawIOBase):
    """``seek`` and ``read`` over HTTP, one block at a time."""

    def __init__(
        self,
        address: str,
        size_bytes: int,
        headers: Mapping[str, str],
        cancelled: Callable[[], bool],
    ) -> None:
        super().__init__()
        self._address = address
        self._size_bytes = size_bytes
        self._headers = dict(headers)
        self._cancelled = cancelled
        self._at = 0
        self._start = 0
        self._block = b""

    def readable(self) -> bool:
        """Always."""
        return True

    def seekable(self) -> bool:
        """Always."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Only from the start."""
        if whence != io.SEEK_SET:
            raise io.UnsupportedOperation("seek")
        self._at = offset
        return offset

    def tell(self) -> int:
        """Where the next byte comes from."""
        return self._at

    def read(self, n_bytes: int = -1) -> bytes:
        """Up to ``n_bytes`` from the current place; fewer at the end of a block."""
        if n_bytes < 0:
            n_bytes = _BLOCK_BYTES
        inside = self._at - self._start
        if not 0 <= inside < len(self._block):
            wanted = min(max(n_bytes, _BLOCK_BYTES), self._size_bytes - self._at)
            if wanted <= 0:
                return b""
            self._block, self._start = self._fetch(self._at, wanted), self._at
            inside = 0
        data = self._block[inside : inside + n_bytes]
        self._at += len(data)
        return data

    def _fetch(self, start: int, n_bytes: int) -> bytes:
        headers = {**self._headers, "Range": f"bytes={start}-{start + n_bytes - 1}"}
        skip = start
        data = bytearray()
        with opened(self._address, headers) as answer:
            if answer.status_code == 206:
                skip = 0
            elif answer.status_code != 200:
                raise failure(answer.status_code, self._address)
            elif start + n_bytes > _FURTHEST_BYTES:
                raise LauncherError(
                    tr("The server cannot send a part of a file, so the model stays unknown.")
                )
            for piece in answer.iter_bytes():
                if self._cancelled():
                    raise Cancelled
                data += piece
                if len(data) >= skip + n_bytes:
                    break
        return bytes(data[skip : skip + n_bytes])
