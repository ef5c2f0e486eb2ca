"""AMD GPUs on Linux, from the files of the amdgpu kernel driver.

In: ``/sys/class/drm`` (or a tree laid out like it). Out: one reading a card. Absent
files are unknown numbers, never errors. Any thread.
"""

from __future__ import annotations

import re
from pathlib import Path

from moelauncher.core.machine import GpuReading
from moelauncher.meters.source import normalise_pci

#: Transfer rate a lane, as the kernel writes it, to the PCI Express generation.
_GENERATIONS = {"2.5": 1, "5.0": 2, "5": 2, "8.0": 3, "8": 3, "16.0": 4, "32.0": 5, "64.0": 6}


class AmdSysfsMeter:
    """One reading for each card that has ``mem_info_vram_total``."""

    name = "amdgpu"

    def __init__(self, root: Path = Path("/sys/class/drm")) -> None:
        self._root = root

    def read(self) -> list[GpuReading]:
        """All AMD cards, in card order."""
        try:
            cards = [p for p in self._root.iterdir() if re.fullmatch(r"card\d+", p.name)]
        except OSError:
            return []
        cards.sort(key=lambda path: int(path.name[4:]))
        return [reading for card in cards if (reading := self._read_card(card)) is not None]

    def close(self) -> None:
        """Nothing is held open."""

    def _read_card(self, card: Path) -> GpuReading | None:
        device = card / "device"
        total = _number(device / "mem_info_vram_total")
        if total is None:
            return None
        used = _number(device / "mem_info_vram_used")
        busy = _number(device / "gpu_busy_percent")
        address = _pci_address(device)
        return GpuReading(
            name=_text(device / "product_name") or f"AMD GPU {address or card.name}",
            source=self.name,
            total_bytes=total,
            used_bytes=used,
            free_bytes=None if used is None else max(0, total - used),
            pci_address=address,
            temperature_c=_temperature_c(device),
            utilisation=None if busy is None else busy / 100,
            shared_bytes=_number(device / "mem_info_gtt_used"),
            drives_display=_drives_display(self._root, card.name),
            pcie=_pcie(device),
            driver=self.name,
        )


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip() or None
    except OSError:
        return None


def _number(path: Path) -> int | None:
    text = _text(path)
    return int(text) if text is not None and text.isdecimal() else None


def _pci_address(device: Path) -> str | None:
    match = re.search(r"^PCI_SLOT_NAME=(\S+)$", _text(device / "uevent") or "", re.MULTILINE)
    return normalise_pci(match.group(1)) if match else None


def _temperature_c(device: Path) -> float | None:
    for path in sorted(device.glob("hwmon/hwmon*/temp1_input")):
        milli = _number(path)
        if milli is not None:
            return milli / 1000
    return None


def _drives_display(root: Path, card: str) -> bool | None:
    states = [_text(path) for path in root.glob(f"{card}-*/status")]
    return any(state == "connected" for state in states) if states else None


def _pcie(device: Path) -> str | None:
    speed = (_text(device / "current_link_speed") or "").split(" ")[0]
    width = _number(device / "current_link_width")
    generation = _GENERATIONS.get(speed)
    return f"{generation}.0 x{width}" if generation and width else None
