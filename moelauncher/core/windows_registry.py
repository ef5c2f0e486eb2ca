"""What Windows has noted of this machine in its registry; nothing on other systems.

In: nothing, or a key. Out: names and values. Reads memory of the system only, never a device
or a network; never raises. Any thread.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping

#: What a key holds, by value names.
RegistryValues = Mapping[str, object]

#: The class of display adapters; each has a key below it, "0000", "0001" ...
_DISPLAY_ADAPTERS = r"SYSTEM\CurrentControlSet\Control\Class\{4d36e968-e325-11ce-bfc1-08002be10318}"
_PROCESSORS = r"HARDWARE\DESCRIPTION\System\CentralProcessor"
#: Drives that are connected again at each sign-in; a key below it for each letter.
_CONNECTED_DRIVES = "Network"


def display_adapters() -> list[RegistryValues]:
    """Each graphics adapter that ever had a driver here."""
    found = keys_below(_DISPLAY_ADAPTERS)
    return [values for name, values in found.items() if name.isdecimal()]


def network_drives() -> tuple[str, ...]:
    """The drives of other machines, as "Z:"."""
    return tuple(f"{letter.upper()}:" for letter in keys_below(_CONNECTED_DRIVES, of_user=True))


def processor_name() -> str | None:
    """What the processor calls itself; None where that is unknown."""
    for values in keys_below(_PROCESSORS).values():
        name = values.get("ProcessorNameString")
        return name.strip() or None if isinstance(name, str) else None
    return None


def keys_below(path: str, *, of_user: bool = False) -> dict[str, RegistryValues]:
    """The keys below one, in its order, with what they hold; those that may be read."""
    found: dict[str, RegistryValues] = {}
    if sys.platform != "win32":
        return found
    import winreg

    try:
        root = winreg.OpenKey(
            winreg.HKEY_CURRENT_USER if of_user else winreg.HKEY_LOCAL_MACHINE, path
        )
    except OSError:
        return found
    with root:
        for index in range(winreg.QueryInfoKey(root)[0]):
            try:
                name = winreg.EnumKey(root, index)
                with winreg.OpenKey(root, name) as key:
                    count = winreg.QueryInfoKey(key)[1]
                    found[name] = dict(winreg.EnumValue(key, i)[:2] for i in range(count))
            except OSError:  # a key that only the system may read, or that has just gone
                continue
    return found
