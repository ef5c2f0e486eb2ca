"""Sleep and waking on Windows: the system's suspend and resume notification.

The system calls on a thread of its own, and goes to sleep when that call returns, or after about
two seconds. Not by WM_POWERBROADCAST: that needs a window, and comes in the window's own queue.
"""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Callable
from typing import Any

#: Windows waits about so long for a program.
PATIENCE_S = 1.5

# winuser.h, powrprof.h
_SUSPEND, _RESUME_AUTOMATIC = 0x0004, 0x0012
_DEVICE_NOTIFY_CALLBACK = 2


class WindowsSleep:
    """A :class:`~moelauncher.core.program.sleep_source.SleepSource`."""

    def __init__(
        self,
        register: Callable[[Callable[[int], None]], Callable[[], None] | None] | None = None,
        patience_s: float = PATIENCE_S,
    ) -> None:
        """``register`` makes the system call a function with each event's number, and returns
        what ends that; None where it cannot."""
        self._register = register_with_windows if register is None else register
        self._patience_s = patience_s
        self._on_sleep: Callable[[], None] = lambda: None
        self._on_wake: Callable[[], None] = lambda: None
        self._unregister: Callable[[], None] | None = None
        self._ready = threading.Event()

    def start(self, on_sleep: Callable[[], None], on_wake: Callable[[], None]) -> bool:
        """See :class:`SleepSource`."""
        self._on_sleep, self._on_wake = on_sleep, on_wake
        self._unregister = self._register(self._told)
        return self._unregister is not None

    def ready(self) -> None:
        """See :class:`SleepSource`."""
        self._ready.set()

    def close(self) -> None:
        """See :class:`SleepSource`."""
        self._ready.set()
        unregister, self._unregister = self._unregister, None
        if unregister is not None:
            unregister()

    def _told(self, event: int) -> None:
        """On a thread of the system's."""
        if self._unregister is None:
            return
        if event == _SUSPEND:
            self._ready.clear()
            self._on_sleep()
            self._ready.wait(self._patience_s)
        elif event == _RESUME_AUTOMATIC:
            self._on_wake()


def register_with_windows(told: Callable[[int], None]) -> Callable[[], None] | None:
    """Let Windows call ``told``; returns what ends that, None where Windows has no such call."""
    if sys.platform != "win32":
        return None
    try:
        library: Any = ctypes.WinDLL("powrprof")
        register = library.PowerRegisterSuspendResumeNotification
        unregister = library.PowerUnregisterSuspendResumeNotification
    except (OSError, AttributeError):
        return None
    callback_type = ctypes.WINFUNCTYPE(
        ctypes.c_uint32, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p
    )

    def called(_context: object, event: int, _setting: object) -> int:
        told(event)
        return 0

    callback = callback_type(called)

    class Recipient(ctypes.Structure):
        _fields_ = [("callback", callback_type), ("context", ctypes.c_void_p)]

    recipient = Recipient(callback, None)
    handle = ctypes.c_void_p()
    if register(_DEVICE_NOTIFY_CALLBACK, ctypes.byref(recipient), ctypes.byref(handle)):
        return None

    # The system keeps their bare addresses.
    held: list[object] = [callback, recipient]

    def end() -> None:
        unregister(handle)
        held.clear()

    return end
