"""What else went on while something was measured, and whether that spoils the result.

In: readings before, during and after. Out: :class:`Conditions`, the sentences that go with a
measurement, and the one that leaves it out of the median. Pure; any thread.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from moelauncher.core.translate import tr
from moelauncher.core.units import format_bytes

#: Load of others above what there was when the sweep began.
_LOAD = 0.25
_SWAPPED_BYTES = 64 << 20
_STREAMED_BYTES = 64 << 20
_SPILLED_BYTES = 64 << 20
_FAULTS = 1000
_SLEPT_S = 2.0
_LITTLE_RAM_BYTES = 512 << 20


@dataclass(frozen=True)
class Conditions:
    """The machine during one run; None and empty where nobody knows."""

    others_cpu: float | None = None  # 0..1 of all cores, by other programs
    ram_free_bytes: int | None = None
    read_bytes: int | None = None  # from the disk, by the run's own process
    #: Reads of pages from the disk: its own, on Windows those of all programs.
    major_faults: int | None = None
    swapped_bytes: int | None = None  # more in the swap than before
    on_battery: bool | None = None
    power_profile: str = ""
    throttled: tuple[str, ...] = ()
    spilled_bytes: int | None = None  # VRAM moved to shared memory
    #: Who else holds VRAM; the name is "" where the driver names nobody.
    gpu_others: tuple[tuple[str, int], ...] = ()
    slept_s: float = 0.0  # the computer slept so long


class ConditionWatch(Protocol):
    """Looks at the machine while something is measured."""

    def baseline(self) -> Conditions:
        """The machine before anything runs; takes about a second."""

    def begin(self, pid: int) -> Callable[[], Conditions]:
        """Watch process ``pid`` from now on; call what is returned when the run has ended."""


def disturbance(now: Conditions, before: Conditions) -> str:
    """Why a run does not count, as a sentence; "" where it does.

    A machine that is busy all the time (``before``) disturbs all runs alike: that is a note.
    """
    if now.slept_s > _SLEPT_S:
        return tr("The computer slept for {n:.0f} s.").format(n=now.slept_s)
    if now.others_cpu is not None and now.others_cpu > (before.others_cpu or 0.0) + _LOAD:
        return tr("Other programs used {n:.0f} % of the processor.").format(n=100 * now.others_cpu)
    if now.swapped_bytes is not None and now.swapped_bytes > _SWAPPED_BYTES:
        return tr("The system moved {size} to the disk (swap).").format(
            size=format_bytes(now.swapped_bytes)
        )
    new = [reason for reason in now.throttled if reason not in before.throttled]
    hot = [reason for reason in new if reason != tr("power limit")]
    if hot:
        return tr("The GPU slowed itself down ({reasons}).").format(reasons=", ".join(hot))
    return ""


def condition_notes(now: Conditions) -> tuple[str, ...]:
    """What to know of a run, a sentence each."""
    notes = []
    if now.on_battery:
        notes.append(tr("On battery."))
    if now.power_profile in ("low-power", "power-saver", "quiet", "cool"):
        notes.append(tr("The power profile is “{name}”.").format(name=now.power_profile))
    if now.others_cpu is not None and now.others_cpu > _LOAD:
        notes.append(
            tr("Other programs used {n:.0f} % of the processor.").format(n=100 * now.others_cpu)
        )
    if now.read_bytes is not None and now.read_bytes > _STREAMED_BYTES:
        notes.append(
            tr("{size} were read from the disk meanwhile: the weights do not stay in RAM.").format(
                size=format_bytes(now.read_bytes)
            )
        )
    elif now.major_faults is not None and now.major_faults > _FAULTS:
        notes.append(
            tr("{n} times a page had to come from the disk (major faults).").format(
                n=f"{now.major_faults:,}"
            )
        )
    if now.swapped_bytes is not None and now.swapped_bytes > _SWAPPED_BYTES:
        notes.append(
            tr("The system moved {size} to the disk (swap).").format(
                size=format_bytes(now.swapped_bytes)
            )
        )
    if now.ram_free_bytes is not None and now.ram_free_bytes < _LITTLE_RAM_BYTES:
        notes.append(
            tr("Only {size} of RAM were free.").format(size=format_bytes(now.ram_free_bytes))
        )
    if now.spilled_bytes is not None and now.spilled_bytes > _SPILLED_BYTES:
        notes.append(
            tr("{size} of VRAM spilled into shared memory.").format(
                size=format_bytes(now.spilled_bytes)
            )
        )
    if now.throttled:
        notes.append(
            tr("The GPU was held back ({reasons}).").format(reasons=", ".join(now.throttled))
        )
    if now.gpu_others:
        name, size = max(now.gpu_others, key=lambda other: other[1])
        who = name or tr("Other programs")
        notes.append(tr("{name} held {size} of VRAM.").format(name=who, size=format_bytes(size)))
    return tuple(notes)
