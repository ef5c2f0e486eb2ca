"""What stays free of a device, and what its driver takes for itself.

In: device names. Out: bytes. Pure; any thread.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from moelauncher.core.memory.placement import RAM
from moelauncher.core.units import MIB

#: What stays free of a GPU unless the user says otherwise.
LEAVE_FREE_BYTES = 256 * MIB
LEAVE_FREE_DISPLAY_BYTES = 512 * MIB
#: The driver's own share of a fresh process, outside llama.cpp's buffers, until measured.
DRIVER_BYTES = 400 * MIB
DRIVER_VULKAN_BYTES = 150 * MIB


@dataclass(frozen=True)
class Margins:
    """What is kept free, and what the driver takes, per device name; RAM under "RAM".

    A name that is missing gets the defaults. The driver takes nothing more from a device
    on which this process has a context already: pass 0 there.
    """

    leave_free_bytes: Mapping[str, int] = field(default_factory=dict)
    driver_bytes: Mapping[str, int] = field(default_factory=dict)

    def leave_free(self, name: str) -> int:
        """The margin of one device; main memory has none unless it is named."""
        return self.leave_free_bytes.get(name, 0 if name == RAM else LEAVE_FREE_BYTES)

    def driver(self, name: str) -> int:
        """The driver's share of one GPU."""
        return self.driver_bytes.get(
            name, DRIVER_VULKAN_BYTES if name.startswith("Vulkan") else DRIVER_BYTES
        )


def default_leave_free(drives_display: bool | None) -> int:
    """Bytes to leave free on a GPU: more where it draws the desktop, or may do so."""
    return LEAVE_FREE_DISPLAY_BYTES if drives_display else LEAVE_FREE_BYTES


def margins_from(stored: object) -> dict[str, int]:
    """Bytes to leave free by device name, of what was stored as far as it makes sense."""
    if not isinstance(stored, dict):
        return {}
    return {
        name: value
        for name, value in stored.items()
        if isinstance(name, str) and type(value) is int and value >= 0
    }
