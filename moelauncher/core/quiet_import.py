"""Ctrl+C while modules load: the process ends at once, without a word.

Python would print where in its imports it was; hit at a bad moment there, it even forgets the
interrupt and goes on. Nothing of the program's own is under way yet, so nothing needs to be ended
with care: the system's own way of ending a process serves (a shell reports 130 of it too).
"""

from __future__ import annotations

import importlib
import signal
from types import ModuleType


def import_quietly(name: str) -> ModuleType:
    """The module ``name``. On the main thread Ctrl+C ends the process while it loads."""
    before = signal.getsignal(signal.SIGINT)
    ends = before is signal.default_int_handler
    if ends:
        try:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
        except ValueError:  # another thread: the main one has the interrupts
            ends = False
    try:
        return importlib.import_module(name)
    finally:
        if ends:
            signal.signal(signal.SIGINT, before)
