"""Sleep and waking on Linux, as logind tells them: ``PrepareForSleep`` on the system bus.

A delay lock makes the system wait, five seconds at most, until the program is ready. Without a
bus or without logind (containers, other init systems) nothing is told. The window's thread.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from typing import Any

from PySide6.QtCore import SLOT, QObject, Slot
from PySide6.QtDBus import (
    QDBusConnection,
    QDBusMessage,
    QDBusPendingCallWatcher,
    QDBusUnixFileDescriptor,
)

_log = logging.getLogger(__name__)

SERVICE = "org.freedesktop.login1"
PATH = "/org/freedesktop/login1"
INTERFACE = "org.freedesktop.login1.Manager"
_ANSWER_WITHIN_MS = 5000
#: A text, though the type stubs of PySide6 6.11 ask for bytes, which it then refuses.
_TOLD: Any = SLOT("_told(bool)")


class LogindSleep(QObject):
    """A :class:`~moelauncher.core.program.sleep_source.SleepSource`."""

    def __init__(
        self, parent: QObject | None = None, connection: QDBusConnection | None = None
    ) -> None:
        """``connection``: the bus that logind is on; the system's by itself."""
        super().__init__(parent)
        self._bus = QDBusConnection.systemBus() if connection is None else connection
        self._on_sleep: Callable[[], None] = lambda: None
        self._on_wake: Callable[[], None] = lambda: None
        self._lock: int | None = None
        self._asked: QDBusPendingCallWatcher | None = None
        self._listening = False

    def start(self, on_sleep: Callable[[], None], on_wake: Callable[[], None]) -> bool:
        """See :class:`SleepSource`."""
        self._on_sleep, self._on_wake = on_sleep, on_wake
        if not self._bus.isConnected():
            return False
        self._listening = self._bus.connect(
            SERVICE, PATH, INTERFACE, "PrepareForSleep", self, _TOLD
        )
        if self._listening:
            self._take_lock()
        return self._listening

    def ready(self) -> None:
        """See :class:`SleepSource`."""
        lock, self._lock = self._lock, None
        if lock is not None:
            os.close(lock)

    def close(self) -> None:
        """See :class:`SleepSource`."""
        if self._listening:
            self._listening = False
            self._bus.disconnect(SERVICE, PATH, INTERFACE, "PrepareForSleep", self, _TOLD)
        self._asked = None
        self.ready()

    @property
    def holds_lock(self) -> bool:
        """Whether the system would wait for us now."""
        return self._lock is not None

    @Slot(bool)
    def _told(self, before: bool) -> None:
        if not self._listening:
            return
        if before:
            self._on_sleep()
        else:
            self._take_lock()
            self._on_wake()

    def _take_lock(self) -> None:
        if self._lock is not None or self._asked is not None:
            return
        call = QDBusMessage.createMethodCall(SERVICE, PATH, INTERFACE, "Inhibit")
        why = self.tr("The chat is saved")
        call.setArguments(["sleep", "MoE Launcher", why, "delay"])
        # Not waited for: a bus that hangs must not hold up the window.
        self._asked = QDBusPendingCallWatcher(self._bus.asyncCall(call, _ANSWER_WITHIN_MS), self)
        self._asked.finished.connect(self._answered)

    def _answered(self, watcher: QDBusPendingCallWatcher) -> None:
        reply = watcher.reply()
        watcher.deleteLater()
        if self._asked is not watcher:
            return
        self._asked = None
        given = reply.arguments()[0] if reply.arguments() else None
        if not isinstance(given, QDBusUnixFileDescriptor) or not given.isValid():
            _log.info("no lock on sleep: %s", reply.errorMessage())
            return
        # The message closes its own.
        self._lock = os.dup(given.fileDescriptor())
