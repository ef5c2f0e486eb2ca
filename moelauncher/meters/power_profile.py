"""The power profile that the computer runs under, where it says one.

In: nothing. Out: a name as Linux has them ("low-power", "balanced", "performance"), "" where
nobody knows. Any thread; a millisecond at most.
"""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path

from moelauncher.meters.windows_power import PowerSchemes, profile_of_schemes

_LINUX = Path("/sys/firmware/acpi/platform_profile")


def power_profile() -> str:
    """Of this computer, now."""
    if sys.platform == "win32":
        return profile_of_schemes(PowerSchemes())
    with contextlib.suppress(OSError, UnicodeDecodeError):
        return _LINUX.read_text(encoding="utf-8").strip()
    return ""
