"""Reads the headers of a large unknown collection on all cores, by processes of this program.

A header is parsed by Python, so threads would take turns. The workers begin at the end of the
collection and fill the header cache; the scan begins at its front as ever, and finds in the cache
what they were faster with. If a worker cannot be started or dies, the scan reads it all itself.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import IO

from moelauncher.core.files.header_cache import FileStamp, HeaderCache
from moelauncher.core.helper_python import helper_python
from moelauncher.core.library.catalog import read_for_cache, uncached_groups

#: The first argument of a worker process (see ``cli``).
FLAG = "--read-headers"
#: Below this many unknown models the start of processes takes longer than it spares.
FEWEST_MODELS = 48
_MOST_WORKERS = 16
#: So many models that the cache does not know make the scan a cold one.
_MISSES = 8
_LOOK_S = 0.02

_Groups = list[tuple[Path, ...]]


@contextmanager
def header_workers(
    places: Iterable[Path], cache: HeaderCache, cancelled: Callable[[], bool], *, n_workers: int = 0
) -> Iterator[None]:
    """Let workers fill ``cache`` while the body scans ``places``. Ends them with the body.

    ``n_workers`` 0: one less than there are cores, for the scan itself takes one.
    """
    count = n_workers or min(_MOST_WORKERS, (os.cpu_count() or 1) - 1)
    ended = threading.Event()
    before = cache.n_missed

    def over() -> bool:
        return ended.is_set() or cancelled()

    def run_when_needed() -> None:
        # A collection that is known needs no second look at every file.
        while cache.n_missed - before < _MISSES and not ended.wait(_LOOK_S):
            pass
        if not over():
            _run(list(places), cache, over, count)

    # Daemons: a drive that hangs must not hold up the program's end.
    starter = threading.Thread(target=run_when_needed, name="header workers", daemon=True)
    starter.start()
    try:
        yield
    finally:
        ended.set()
        starter.join()


def serve() -> int:
    """A worker's life: a JSON list of files in, what the cache keeps of them out, line by line."""
    for line in sys.stdin:
        files = tuple(Path(text) for text in json.loads(line))
        answer = None
        with suppress(Exception):
            found = read_for_cache(files)
            if found is not None:
                answer = [[asdict(stamp) for stamp in found[0]], found[1]]
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()
    return 0


def worker_command() -> list[str]:
    """How a worker is started, from a checkout, an installation or a frozen bundle."""
    if getattr(sys, "frozen", False):
        return [sys.executable, FLAG]
    return [helper_python(), "-m", "moelauncher", FLAG]


def _run(
    places: Sequence[Path], cache: HeaderCache, cancelled: Callable[[], bool], count: int
) -> None:
    if count < 1:
        return
    groups = uncached_groups(places, cache, cancelled)
    if len(groups) < FEWEST_MODELS:
        return
    lock = threading.Lock()
    threads = [
        threading.Thread(
            target=_feed, args=(groups, lock, cache, cancelled), name="header worker", daemon=True
        )
        for _ in range(count)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _feed(
    groups: _Groups, lock: threading.Lock, cache: HeaderCache, cancelled: Callable[[], bool]
) -> None:
    root = Path(__file__).resolve().parents[3]
    try:
        worker = subprocess.Popen(
            worker_command(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=None if getattr(sys, "frozen", False) else root,
            text=True,
            encoding="utf-8",
            creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
        )
    except OSError:
        return
    assert worker.stdin is not None and worker.stdout is not None
    try:
        while not cancelled():
            with lock:
                if not groups:
                    break
                files = groups.pop()
            # The scan may have come here meanwhile.
            if cache.stored_role(files[0]) is None:
                _ask(files, worker.stdin, worker.stdout, cache)
    except (OSError, ValueError, TypeError, KeyError):
        pass  # The worker died; the scan reads the rest.
    finally:
        with suppress(OSError):
            worker.stdin.close()
        worker.stdout.close()
        worker.terminate()
        worker.wait()


def _ask(files: tuple[Path, ...], request: IO[str], answer: IO[str], cache: HeaderCache) -> None:
    request.write(json.dumps([str(file) for file in files]) + "\n")
    request.flush()
    found = json.loads(answer.readline())
    if found is not None:
        cache.put([FileStamp(**stamp) for stamp in found[0]], found[1])
