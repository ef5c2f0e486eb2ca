"""How long this computer has slept since it was started.

In: nothing. Out: seconds; only differences mean something. Any thread.
"""

from __future__ import annotations

import sys
import time


def asleep_s() -> float:
    """Seconds asleep so far: a clock that goes on in sleep, less one that does not."""
    if sys.platform == "win32":
        return _asleep_on_windows_s()
    if sys.platform == "linux":
        return time.clock_gettime(time.CLOCK_BOOTTIME) - time.monotonic()
    # Somebody who sets the clock meanwhile looks like a sleeper; there is no better one.
    return time.time() - time.monotonic()


def _asleep_on_windows_s() -> float:
    if sys.platform != "win32":
        return 0.0
    import ctypes

    awake = ctypes.c_ulonglong()
    kernel = ctypes.windll.kernel32
    if not kernel.QueryUnbiasedInterruptTime(ctypes.byref(awake)):
        return 0.0
    kernel.GetTickCount64.restype = ctypes.c_ulonglong
    return float(kernel.GetTickCount64() / 1e3 - awake.value / 1e7)
