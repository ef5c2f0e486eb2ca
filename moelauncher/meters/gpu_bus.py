"""Graphics cards as the system finds them, also those that no driver runs.

In: sysfs on Linux, the registry on Windows. Out: :class:`BusGpu` values. Reads a few small
files or keys; never raises for what is not there. Any thread.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path

from moelauncher.core.program.doctor_facts import BusGpu, vendor_name
from moelauncher.core.windows_registry import RegistryValues, display_adapters
from moelauncher.meters.source import normalise_pci

_PCI_DEVICES = Path("/sys/bus/pci/devices")
_MODULES = Path("/sys/module")
_NAMES = (Path("/usr/share/misc/pci.ids"), Path("/usr/share/hwdata/pci.ids"))
#: Display controllers: VGA, XGA, 3D and others.
_DISPLAY_CLASS = "0x03"
_HARDWARE_ID = re.compile(r"ven_([0-9a-f]{4})", re.IGNORECASE)


def bus_gpus() -> tuple[BusGpu, ...]:
    """The cards of this machine."""
    if sys.platform == "win32":
        return windows_gpus(display_adapters)
    return linux_gpus(_PCI_DEVICES, _MODULES, _NAMES)


# Linux


def linux_gpus(devices: Path, modules: Path, names: tuple[Path, ...]) -> tuple[BusGpu, ...]:
    """The cards under ``devices``, laid out like /sys/bus/pci/devices."""
    try:
        folders = sorted(devices.iterdir())
    except OSError:
        return ()
    found = []
    for folder in folders:
        if not _text(folder / "class").startswith(_DISPLAY_CLASS):
            continue
        vendor, device = _number(folder / "vendor"), _number(folder / "device")
        driver = _driver(folder)
        maker = vendor_name(vendor)
        found.append(
            BusGpu(
                vendor=maker,
                name=_product(vendor, device, names) or f"{maker} GPU {vendor:04x}:{device:04x}",
                pci_address=normalise_pci(folder.name),
                driver=driver,
                driver_version=(_text(modules / driver / "version") or None) if driver else None,
                visible_bytes=_largest_window(_text(folder / "resource")),
            )
        )
    return tuple(found)


def _driver(folder: Path) -> str | None:
    link = folder / "driver"
    return link.resolve().name if link.exists() else None


def _largest_window(resource: str) -> int | None:
    """The largest of the address ranges ("begin end flags", one a line) of a card."""
    sizes = []
    for line in resource.splitlines():
        parts = line.split()
        if len(parts) == 3:
            begin, end = int(parts[0], 16), int(parts[1], 16)
            sizes.append(end - begin + 1 if end > begin else 0)
    return max(sizes, default=0) or None


def _product(vendor: int, device: int, files: tuple[Path, ...]) -> str | None:
    """The card's name in the PCI registry, where the system has that: what it calls the chip,
    then the product in brackets."""
    for file in files:
        maker = False
        for line in _text(file).splitlines():
            if line.startswith(f"{vendor:04x} "):
                maker = True
            elif maker and line.startswith(f"\t{device:04x} "):
                name = line.split(maxsplit=1)[1].strip()
                product = re.search(r"\[(.+)\]", name)
                return product.group(1) if product else name
            elif maker and line and not line.startswith(("\t", "#")):
                break
    return None


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def _number(path: Path) -> int:
    try:
        return int(_text(path), 16)
    except ValueError:
        return 0


# Windows


def windows_gpus(adapters: Callable[[], list[RegistryValues]]) -> tuple[BusGpu, ...]:
    """The cards of the registry's display adapters."""
    found = []
    for values in adapters():
        name = values.get("DriverDesc")
        if not isinstance(name, str):
            continue
        match = _HARDWARE_ID.search(str(values.get("MatchingDeviceId", "")))
        service = values.get("ProviderName")
        version = values.get("DriverVersion")
        basic = "basic display" in name.lower() or "basic render" in name.lower()
        found.append(
            BusGpu(
                vendor=vendor_name(int(match.group(1), 16)) if match else str(service or ""),
                name=name,
                driver=None if basic else str(service or "") or None,
                driver_version=version if isinstance(version, str) else None,
            )
        )
    return tuple(found)
