"""Finds the Python threads that a test left running."""

from __future__ import annotations

import sys
import threading
import time
import traceback

_GRACE_S = 30.0
"""A thread that was told to end may need this long on a busy machine."""


def python_threads() -> list[threading.Thread]:
    """The threads that Python started and that still run.

    A foreign thread (Qt's, llama.cpp's) that once called Python stays listed by ``threading``
    as a dummy, whether it still runs or not; those are left out, and so is the thread by which
    pytest-timeout watches a test where there is no alarm signal (on Windows).
    """
    dummy = threading._DummyThread
    return [
        thread
        for thread in threading.enumerate()
        if not isinstance(thread, dummy) and not thread.name.startswith("pytest_timeout ")
    ]


class ThreadWatch:
    """Remembers the threads alive now; :meth:`left_behind` names those that came and stayed."""

    def __init__(self) -> None:
        self._before = set(threading.enumerate())

    def left_behind(self) -> list[str]:
        """One entry a thread still alive after the grace, with the line it stands at."""
        deadline = time.monotonic() + _GRACE_S
        for thread in self._new():
            thread.join(max(0.0, deadline - time.monotonic()))
        return [_describe(thread) for thread in self._new()]

    def _new(self) -> list[threading.Thread]:
        return [thread for thread in python_threads() if thread not in self._before]


def _describe(thread: threading.Thread) -> str:
    frame = sys._current_frames().get(thread.ident or -1)
    where = "".join(traceback.format_stack(frame)[-3:]) if frame else "(no Python frame)\n"
    return f"thread {thread.name!r} still runs, at\n{where}"
