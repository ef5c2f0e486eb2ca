"""Fetches one file: goes on where an earlier try ended, and is not believed until it is checked.

What is not whole lies beside its place as ``NAME.gguf.part``, with a small note of what it is a
part of. Only a file with the right length and checksum is given its name. Pool threads only.
"""

from __future__ import annotations

import errno
import hashlib
import json
import re
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from moelauncher.core.atomic_file import replace_patiently
from moelauncher.core.errors import Cancelled, LauncherError
from moelauncher.core.library.hub_files import HubFile
from moelauncher.core.text_cleaning import display_name
from moelauncher.core.translate import tr
from moelauncher.core.units import format_bytes
from moelauncher.hub.answers import UnreachableError, failure, opened

#: What the disk must keep free beside the model.
SPARE_BYTES = 256 << 20
#: Tries in a row that bring nothing new.
_TRIES = 5
_HASH_BYTES = 4 << 20
_RANGE = re.compile(r"bytes (\d+)-(\d+)/(\d+|\*)")


@dataclass(frozen=True)
class Job:
    """One file to fetch."""

    address: str
    headers: Mapping[str, str]
    file: HubFile
    target: Path

    @property
    def part(self) -> Path:
        """Where the file grows."""
        return self.target.with_name(self.target.name + ".part")

    @property
    def note(self) -> Path:
        """What ``part`` is a part of."""
        return self.target.with_name(self.target.name + ".part.json")


def is_whole(job: Job) -> bool:
    """Whether the file is there already, by its length."""
    try:
        return job.target.is_file() and job.target.stat().st_size == job.file.size_bytes
    except OSError:
        return False


def fetched_bytes(job: Job) -> int:
    """How much of it is there, whole or in part."""
    if is_whole(job):
        return job.file.size_bytes
    try:
        same = json.loads(job.note.read_text(encoding="utf-8")) == _identity(job)
        return min(job.part.stat().st_size, job.file.size_bytes) if same else 0
    except (OSError, ValueError, RecursionError):
        return 0


def need_room(folder: Path, n_bytes: int) -> None:
    """Raises LauncherError where ``folder``'s disk has no room for ``n_bytes`` more."""
    try:
        free = shutil.disk_usage(folder).free
    except OSError:
        return
    if free < n_bytes + SPARE_BYTES:
        raise LauncherError(
            tr("The disk has {free} free, and the download needs {needed} more.").format(
                free=format_bytes(free), needed=format_bytes(n_bytes + SPARE_BYTES)
            ),
            tr("Make room, or choose a smaller quantisation."),
        )


def fetch(
    job: Job,
    progress: Callable[[int, bool], None],
    cancelled: Callable[[], bool],
    *,
    wait: Callable[[float], None] = time.sleep,
) -> None:
    """Fill ``job.part`` and check it; ``finish`` gives it its name.

    ``progress`` is told the bytes that are there, and whether they are being checked. Raises
    Cancelled (the part stays) or LauncherError.
    """
    job.target.parent.mkdir(parents=True, exist_ok=True)
    tries = 0
    while (here := fetched_bytes(job)) < job.file.size_bytes:
        try:
            _fetch_on(job, here, progress, cancelled)
        except UnreachableError:
            if fetched_bytes(job) > here:
                tries = 0
            tries += 1
            if tries >= _TRIES:
                raise
            for _ in range(2 ** (tries - 1) * 4):
                if cancelled():
                    raise Cancelled from None
                wait(0.25)
    _check(job, progress, cancelled)


def finish(job: Job) -> None:
    """Give a checked file its name."""
    try:
        replace_patiently(job.part, job.target)
        job.note.unlink(missing_ok=True)
    except OSError as error:
        raise _disk_error(job, error) from error


def forget(job: Job) -> None:
    """Delete what is there of an unfinished file."""
    job.part.unlink(missing_ok=True)
    job.note.unlink(missing_ok=True)


def _identity(job: Job) -> dict[str, Any]:
    return {
        "name": job.file.name,
        "size_bytes": job.file.size_bytes,
        "sha256": job.file.sha256,
        "address": job.address,
    }


def _fetch_on(
    job: Job, here: int, progress: Callable[[int, bool], None], cancelled: Callable[[], bool]
) -> None:
    """One answer's worth of bytes, appended."""
    total = job.file.size_bytes
    headers = {**job.headers, **({"Range": f"bytes={here}-"} if here else {})}
    with opened(job.address, headers) as answer:
        status = answer.status_code
        if status == 416 or (status == 206 and not _starts_at(answer, here)):
            # The file on the server is another one now: begin anew.
            forget(job)
            raise UnreachableError(tr("The file on the server has changed."), tr("Try again."))
        if status not in (200, 206):
            raise failure(status, job.address)
        if status == 200:
            here = 0  # A server that ignores ranges sends everything again.
        try:
            job.note.write_text(json.dumps(_identity(job)), encoding="utf-8")
            with job.part.open("r+b" if here else "wb") as file:
                file.truncate(here)
                file.seek(here)
                for piece in answer.iter_bytes():
                    if cancelled():
                        raise Cancelled
                    here += len(piece)
                    if here > total:
                        file.truncate(0)
                        raise LauncherError(
                            tr("The server sends more than it announced; the file is not kept."),
                            tr("Try again, or choose another repository."),
                        )
                    file.write(piece)
                    progress(here, False)
        except OSError as error:
            if isinstance(error, (ConnectionError, TimeoutError)):
                raise
            raise _disk_error(job, error) from error
    if here < total:
        raise UnreachableError(
            tr("The connection ended early: {size} are missing.").format(
                size=format_bytes(total - here)
            ),
            tr("Try again: the download goes on where it stopped."),
        )


def _starts_at(answer: Any, here: int) -> bool:
    match = _RANGE.match(answer.headers.get("Content-Range", ""))
    return match is not None and int(match[1]) == here


def _disk_error(job: Job, error: OSError) -> LauncherError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return LauncherError(
            tr("The disk is full."), tr("Make room, then go on: what was fetched is kept.")
        )
    return LauncherError(
        tr("{name} cannot be written: {reason}.").format(
            name=display_name(job.part.name), reason=error.strerror or str(error)
        ),
        tr("Check the folder's permissions."),
    )


def _check(job: Job, progress: Callable[[int, bool], None], cancelled: Callable[[], bool]) -> None:
    if is_whole(job) and not job.part.exists():
        return
    if not job.file.sha256:
        return
    digest, done = hashlib.sha256(), 0
    with job.part.open("rb") as file:
        while piece := file.read(_HASH_BYTES):
            if cancelled():
                raise Cancelled
            digest.update(piece)
            done += len(piece)
            progress(done, True)
    if digest.hexdigest() != job.file.sha256.lower():
        forget(job)
        raise LauncherError(
            tr("{name} arrived damaged: its checksum is wrong. It was deleted.").format(
                name=display_name(job.target.name)
            ),
            tr("Download it again."),
        )
