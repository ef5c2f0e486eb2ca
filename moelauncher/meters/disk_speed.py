"""How fast a folder's disk can be read, past the system's cache.

In: a folder with model files. Out: :class:`DiskSpeed`. Reads parts of the largest file for
about a second and writes nothing. Blocks; any thread.
"""

from __future__ import annotations

import mmap
import os
import random
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from moelauncher.core.program.doctor_facts import DiskSpeed
from moelauncher.core.translate import tr

MIB = 1 << 20
PIECE_BYTES = 4 * MIB
#: Below this a file's speed says little.
LEAST_BYTES = 32 * MIB
#: A network drive with hundreds of thousands of files must not be walked through.
_MOST_FILES = 2000


def disk_speed(
    folders: Iterable[Path],
    *,
    seconds: float = 1.0,
    clock: Callable[[], float] = time.perf_counter,
    cancelled: Callable[[], bool] = lambda: False,
) -> DiskSpeed | None:
    """The speed of the first of ``folders`` that holds a large enough file; None without any."""
    nothing = None
    for folder in folders:
        file = largest_model(folder)
        if file is None:
            if nothing is None and folder.is_dir():
                nothing = DiskSpeed(folder, None, tr("there is no model file to read"))
            continue
        try:
            return DiskSpeed(folder, _read(file, seconds, clock, cancelled))
        except OSError as error:
            return DiskSpeed(folder, None, error.strerror or str(error))
    return nothing


def largest_model(folder: Path) -> Path | None:
    """The largest GGUF file below ``folder`` that is worth reading."""
    best: tuple[int, Path] | None = None
    try:
        for number, file in enumerate(folder.rglob("*.gguf")):
            if number >= _MOST_FILES:
                break
            size = file.stat().st_size
            if size >= LEAST_BYTES and (best is None or size > best[0]):
                best = (size, file)
    except OSError:  # a folder that may not be looked into; what was found before it serves
        pass
    return best[1] if best else None


def _read(
    file: Path, seconds: float, clock: Callable[[], float], cancelled: Callable[[], bool]
) -> float | None:
    """Bytes a second, from pieces all over the file: what one of them left in the disk's own
    cache does not help the next."""
    reader = _Reader(file)
    try:
        starts = [at * PIECE_BYTES for at in range(reader.size // PIECE_BYTES)]
        random.Random(0).shuffle(starts)
        begun, count = clock(), 0
        for start in starts:
            if cancelled():
                return None
            count += reader.read(start)
            if clock() - begun >= seconds:
                break
        elapsed = clock() - begun
        return count / elapsed if count and elapsed > 0 else None
    finally:
        reader.close()


if sys.platform == "win32":
    import ctypes

    class _Reader:
        """Past the cache: FILE_FLAG_NO_BUFFERING."""

        def __init__(self, file: Path) -> None:
            generic_read, share_all, open_existing, no_buffering = 0x80000000, 7, 3, 0x20000000
            self._kernel = ctypes.WinDLL("kernel32", use_last_error=True)
            self._kernel.CreateFileW.restype = ctypes.c_void_p
            handle = self._kernel.CreateFileW(
                str(file), generic_read, share_all, None, open_existing, no_buffering, None
            )
            if handle in (None, ctypes.c_void_p(-1).value):
                raise ctypes.WinError(ctypes.get_last_error())
            self._handle = ctypes.c_void_p(handle)
            self.size = file.stat().st_size
            self._buffer = mmap.mmap(-1, PIECE_BYTES)
            self._memory = (ctypes.c_char * PIECE_BYTES).from_buffer(self._buffer)

        def read(self, start: int) -> int:
            done = ctypes.c_uint32()
            place = ctypes.c_longlong(start)
            if not self._kernel.SetFilePointerEx(self._handle, place, None, 0):
                raise ctypes.WinError(ctypes.get_last_error())
            if not self._kernel.ReadFile(
                self._handle, self._memory, PIECE_BYTES, ctypes.byref(done), None
            ):
                raise ctypes.WinError(ctypes.get_last_error())
            return done.value

        def close(self) -> None:
            self._kernel.CloseHandle(self._handle)
            del self._memory
            self._buffer.close()

else:

    class _Reader:
        """Past the cache where the file system allows it, else after dropping what is cached."""

        def __init__(self, file: Path) -> None:
            direct = getattr(os, "O_DIRECT", 0)
            try:
                self._file = os.open(file, os.O_RDONLY | direct)
            except OSError:
                direct = 0
                self._file = os.open(file, os.O_RDONLY)
            self.size = os.fstat(self._file).st_size
            # Direct reading wants memory that begins at a page.
            self._buffer = mmap.mmap(-1, PIECE_BYTES)
            if not direct and hasattr(os, "posix_fadvise"):
                os.posix_fadvise(self._file, 0, 0, os.POSIX_FADV_DONTNEED)

        def read(self, start: int) -> int:
            return os.preadv(self._file, [self._buffer], start)

        def close(self) -> None:
            self._buffer.close()
            os.close(self._file)
