"""Windows' power mode and power plan, as one profile.

The mode (the slider of the battery's menu, "Best power efficiency" to "Best performance") lies
over the plan, and counts only where the plan is a balanced one. What asks Windows is behind the
small :class:`SchemeSource` seam, so that this module is tested on every system.
"""

from __future__ import annotations

import ctypes
import uuid
from typing import Any, Protocol

#: Plans and modes of Windows that are the same everywhere; a maker's own are not known.
_PLANS = {
    "a1841308-3541-4fab-bc81-f71556f20b4a": "power-saver",
    "381b4222-f694-41f0-9685-ff5bb260df2e": "balanced",
    "8c5e7fda-e8bf-4a96-9a85-a6e23a8c635c": "performance",
    "e9a42b02-d5df-448d-aa00-03f14749eb61": "performance",
}
_MODES = {
    "961cc777-2547-4f9d-8174-7d86181b8a7a": "power-saver",
    "00000000-0000-0000-0000-000000000000": "balanced",
    "3af9b8d9-7c97-431d-ad78-34a8bfea439f": "balanced",
    "ded574b5-45a0-4f42-8737-46345c09c238": "performance",
}


class SchemeSource(Protocol):
    """What is asked of Windows; None where it does not answer."""

    def plan(self) -> str | None:
        """GUID of the active power plan."""

    def mode(self) -> str | None:
        """GUID of the power mode that lies over it."""


def profile_of_schemes(source: SchemeSource) -> str:
    """ "power-saver", "balanced", "performance", or "" where it is neither known nor told."""
    plan = _PLANS.get(source.plan() or "", "")
    if plan not in ("", "balanced"):
        return plan
    return _MODES.get(source.mode() or "", plan)


class PowerSchemes:
    """A :class:`SchemeSource` that asks powrprof.dll; knows nothing where there is none."""

    def __init__(self) -> None:
        load: Any = getattr(ctypes, "WinDLL", None)
        self._load = load

    def plan(self) -> str | None:
        """See :class:`SchemeSource`."""
        found = ctypes.POINTER(ctypes.c_ubyte * 16)()
        try:
            if self._load is None or self._load("powrprof").PowerGetActiveScheme(
                None, ctypes.byref(found)
            ):
                return None
            guid = bytes(found.contents)
            free = self._load("kernel32").LocalFree
        except (OSError, AttributeError, ValueError):
            return None
        free.argtypes = [ctypes.c_void_p]
        free(found)
        return str(uuid.UUID(bytes_le=guid))

    def mode(self) -> str | None:
        """See :class:`SchemeSource`. Not in Windows' headers, and there since 10.0.16299."""
        found = (ctypes.c_ubyte * 16)()
        try:
            if self._load is None or self._load("powrprof").PowerGetEffectiveOverlayScheme(
                ctypes.byref(found)
            ):
                return None
        except (OSError, AttributeError):
            return None
        return str(uuid.UUID(bytes_le=bytes(found)))
