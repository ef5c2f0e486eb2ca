"""The threads that jobs run in: few, short-lived, and never waited for without limit.

A drive or a share that is gone may keep a thread inside the system for minutes, or for ever, and
nothing in this process can end it. So these are daemon threads: the interpreter does not wait for
them. What was left behind is kept in :data:`LEFT_BEHIND`: the program then ends without tidying
up what such a thread may still use. Any thread.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

#: Names of what still ran when its owner was closed.
LEFT_BEHIND: list[str] = []


class JobThreads:
    """Runs callables in at most ``most`` threads at a time, in their order."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._changed = threading.Condition()
        self._waiting: deque[tuple[str, Callable[[], None]]] = deque()
        self._threads: set[threading.Thread] = set()

    def start(self, name: str, work: Callable[[], None]) -> None:
        """Run ``work`` as soon as a thread is free; it must catch what it raises."""
        with self._changed:
            self._waiting.append((name, work))
            if len(self._threads) < self._most:
                thread = threading.Thread(target=self._run, name="job", daemon=True)
                self._threads.add(thread)
                thread.start()

    def close(self, limit_s: float) -> list[str]:
        """Forget what waits, and wait for what runs; the names of what did not end in time."""
        with self._changed:
            self._waiting.clear()
            self._changed.wait_for(lambda: not self._threads, limit_s)
            left = [thread.name for thread in self._threads]
        LEFT_BEHIND.extend(left)
        return left

    def _run(self) -> None:
        me = threading.current_thread()
        while True:
            with self._changed:
                if not self._waiting:
                    self._threads.discard(me)
                    self._changed.notify_all()
                    return
                name, work = self._waiting.popleft()
            me.name = f"job: {name}"
            work()
