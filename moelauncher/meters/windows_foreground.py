"""Windows lets no program push its window to the front, unless the one in front gives it leave.

In: the named pipe to the program whose window is open. Out: that program's leave. Elsewhere, and
where Windows does not answer, nothing happens.
"""

from __future__ import annotations

import ctypes
import sys
from typing import Any


def let_server_come_to_front(pipe: int) -> bool:
    """Let the process that serves ``pipe`` (a handle) activate its window; whether it may now.

    This process must have that right itself: one that the user just started has it.
    """
    if sys.platform != "win32":
        return False
    process = server_of(pipe)
    return process is not None and _may_come_to_front(process)


def server_of(pipe: int) -> int | None:
    """The id of the process that made ``pipe``; None where Windows does not tell."""
    if sys.platform != "win32":
        return None
    # winbase.h: BOOL GetNamedPipeServerProcessId(HANDLE Pipe, PULONG ServerProcessId)
    ask: Any = ctypes.WinDLL("kernel32").GetNamedPipeServerProcessId
    ask.argtypes = [ctypes.c_void_p, ctypes.POINTER(ctypes.c_ulong)]
    process = ctypes.c_ulong()
    return process.value if ask(pipe, ctypes.byref(process)) else None


def _may_come_to_front(process: int) -> bool:
    if sys.platform != "win32":
        return False
    # winuser.h: BOOL AllowSetForegroundWindow(DWORD dwProcessId)
    allow: Any = ctypes.WinDLL("user32").AllowSetForegroundWindow
    allow.argtypes = [ctypes.c_ulong]
    return bool(allow(process))
