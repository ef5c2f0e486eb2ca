"""The one protocol that every meter speaks, and how their answers are joined.

In: readings of one GPU from several sources (NVML knows its temperature, PDH its spill,
llama.cpp its device name). Out: one :class:`GpuReading` a GPU. Pure; any thread.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import fields, replace
from typing import Protocol

from moelauncher.core.machine import GpuReading
from moelauncher.core.translate import tr


class MeterSource(Protocol):
    """Something that can say how full the GPUs are.

    ``read`` may block and may raise; it is called on a thread of its own, always the
    same one. A source whose driver is not on this machine answers with an empty list.
    ``close`` is called once, on that same thread.
    """

    name: str

    def read(self) -> list[GpuReading]:
        """One reading a GPU."""

    def close(self) -> None:
        """Give the driver back. Never raises."""


#: The name of the source that speaks for the loaded llama.cpp build (backend_report.py).
BACKEND_SOURCE = "llama.cpp"

_PCI = re.compile(r"([0-9a-f]+):([0-9a-f]{2}):([0-9a-f]{2})(?:\.([0-7]))?")


def normalise_pci(address: str | None) -> str | None:
    """``"00000000:01:00.0"`` and ``"0000:01:00"`` as ``"0000:01:00.0"``; None if it is none."""
    match = _PCI.fullmatch((address or "").strip().lower())
    if match is None:
        return None
    domain, bus, device, function = match.groups()
    return f"{int(domain, 16):04x}:{bus}:{device}.{function or '0'}"


def merge_gpus(readings: Iterable[Sequence[GpuReading]]) -> tuple[GpuReading, ...]:
    """Join what several sources say of the same GPU.

    ``readings`` holds one list a source, the most trusted first: a number of an earlier
    source is never replaced, only what it left unknown is filled in. Two readings are of
    one GPU where their PCI addresses agree, or, where one has none, their names do.
    """
    merged: list[GpuReading] = []
    for source in readings:
        taken: set[int] = set()
        for reading in source:
            at = _match(reading, merged, taken)
            if at is None:
                taken.add(len(merged))
                merged.append(reading)
            else:
                taken.add(at)
                merged[at] = _fill(merged[at], reading)
    return tuple(merged)


def _match(reading: GpuReading, merged: Sequence[GpuReading], taken: set[int]) -> int | None:
    free = [i for i in range(len(merged)) if i not in taken]
    pci = normalise_pci(reading.pci_address)
    if pci is not None:
        for i in free:
            if normalise_pci(merged[i].pci_address) == pci:
                return i
    for i in free:
        known = normalise_pci(merged[i].pci_address)
        if known is not None and pci is not None:
            continue  # both know where they sit, and it is not the same place
        if _same_name(merged[i].name, reading.name):
            return i
    return None


def _same_name(one: str, other: str) -> bool:
    def plain(name: str) -> str:
        words = re.sub(r"\(.*?\)", " ", name.lower())  # "(RADV NAVI31)", "(TM)"
        return " ".join(
            word for word in re.split(r"[^a-z0-9]+", words) if word not in {"nvidia", "amd", ""}
        )

    return plain(one) == plain(other) != ""


def _fill(reading: GpuReading, more: GpuReading) -> GpuReading:
    if more.shares_ram and more.total_bytes is not None:
        # Drivers tell of the small part that is set aside for an integrated GPU, and take what
        # it uses beyond that for a spill. llama.cpp's backend knows what it may use.
        reading = replace(
            reading, total_bytes=None, used_bytes=None, free_bytes=None, shared_bytes=None
        )
    added = {
        field.name: getattr(more, field.name)
        for field in fields(GpuReading)
        if field.name not in {"name", "source", "shares_ram"}
        and getattr(reading, field.name) in (None, ())
        and getattr(more, field.name) not in (None, ())
    }
    # On Windows NVML names the processes, but only PDH knows what each of them holds.
    if not any(h.used_bytes for h in reading.holders) and any(h.used_bytes for h in more.holders):
        added["holders"] = more.holders
    # A device name or an address is no measurement, so it does not make a source.
    if set(added) - {"device_name", "pci_address"}:
        added["source"] = f"{reading.source} + {more.source}"
    return replace(reading, **added, shares_ram=reading.shares_ram or more.shares_ram)


def gpu_note(gpus: Sequence[GpuReading], backend_known: bool) -> str:
    """Why llama.cpp has no GPU here, as a sentence; "" where it has one or has not said yet."""
    if not backend_known or any(gpu.device_name for gpu in gpus):
        return ""
    if not gpus:
        return tr("llama.cpp uses no GPU here: the doctor (menu ☰) says why.")
    return tr(
        "{gpu} is in this machine, but llama.cpp does not use it. The doctor (menu) says why, and "
        "what to do."
    ).format(gpu=gpus[0].name)
