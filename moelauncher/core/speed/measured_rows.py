"""Repeats of the same measurement as one row, and series beside the slider's own.

In: :class:`Measurement` values. Out: :class:`MeasuredRow` in the order in which they were
begun, and :class:`Series` for the plot. Pure; any thread.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace

from moelauncher.core.speed.measurement import (
    CHAT,
    EXPERTS,
    LAYERS,
    LLAMA_BENCH,
    Measurement,
    StopSpeed,
    stop_speeds,
)
from moelauncher.core.speed.remarks import each_once
from moelauncher.core.translate import tr


@dataclass(frozen=True)
class MeasuredRow:
    """Repeats that differ in nothing but when they ran. ``counted`` make the median."""

    repeats: tuple[Measurement, ...]

    @property
    def first(self) -> Measurement:
        """Any of them tells the setting; the newest tells the state of the driver."""
        return self.repeats[0]

    @property
    def counted(self) -> tuple[Measurement, ...]:
        """The undisturbed ones; where there is none, all."""
        return tuple(one for one in self.repeats if not one.disturbance) or self.repeats

    @property
    def decoded(self) -> tuple[Measurement, ...]:
        """The counted repeats that decoded."""
        return tuple(one for one in self.counted if one.tok_s is not None)

    @property
    def read(self) -> tuple[Measurement, ...]:
        """The counted repeats that read a prompt."""
        return tuple(one for one in self.counted if one.prompt_tok_s is not None)

    @property
    def rates(self) -> tuple[float, ...]:
        """Decode tok/s of the counted repeats."""
        return tuple(one.tok_s for one in self.decoded if one.tok_s is not None)

    @property
    def prompt_rates(self) -> tuple[float, ...]:
        """Prompt tok/s of the counted repeats."""
        return tuple(one.prompt_tok_s for one in self.read if one.prompt_tok_s is not None)

    @property
    def remarks(self) -> tuple[str, ...]:
        """What was seen, each once; first why repeats are left out of the median."""
        left_out = [one.disturbance for one in self.repeats if one.disturbance]
        texts = each_once(left_out)
        if left_out and len(left_out) < len(self.repeats):
            texts.insert(0, tr("{n} left out:").format(n=len(left_out)))
        notes = (note for one in self.repeats for note in one.notes)
        return (*texts, *each_once(note for note in notes if note not in left_out))

    @property
    def vram_bytes(self) -> int | None:
        """Of the newest repeat."""
        return self.repeats[-1].vram_bytes


def middle_and_spread(rates: Sequence[float]) -> tuple[float, float] | None:
    """Median and median absolute deviation; None of nothing."""
    if not rates:
        return None
    middle = statistics.median(rates)
    return middle, statistics.median(abs(rate - middle) for rate in rates)


def measured_rows(measurements: Sequence[Measurement]) -> tuple[MeasuredRow, ...]:
    """Repeats joined: one setting, source, machine, build and amount of tokens a row."""
    groups: dict[object, list[Measurement]] = {}
    for one in measurements:
        machine = one.machine
        lengths = (one.n_prompt, one.n_generated, one.depth)
        setting = one.setting
        if one.source == LLAMA_BENCH:  # it runs prompt and decode apart, in contexts as needed
            lengths = (0, 0, 0)
            setting = replace(setting, n_ctx=0)
        key = (one.model, one.source, setting, one.threads, machine, lengths)
        groups.setdefault(key, []).append(one)
    return tuple(MeasuredRow(tuple(group)) for group in groups.values())


@dataclass(frozen=True)
class Series:
    """Speeds that stand beside those of the slider. ``by_stop`` false: the numbers of
    ``speeds`` count layers on the GPU, and have no place on the slider's line."""

    name: str
    speeds: tuple[StopSpeed, ...]
    by_stop: bool


def other_series(
    measurements: Sequence[Measurement], machine: str, *, dense: bool
) -> tuple[Series, ...]:
    """A plain layer split measured here, and what was imported, one series a machine."""
    found = []
    split = [
        one
        for one in measurements
        if one.measured_here
        and one.machine.name == machine
        and one.setting.division == LAYERS
        and not dense
    ]
    speeds = stop_speeds(split, dense=True)
    if speeds:
        found.append(Series(tr("Layer split"), speeds, by_stop=False))
    imported: dict[str, list[Measurement]] = {}
    for one in measurements:
        if one.source == LLAMA_BENCH:
            imported.setdefault(one.machine.name, []).append(one)
    for where, group in imported.items():
        name = tr("llama-bench, {machine}").format(machine=where)
        experts = [one for one in group if dense or one.setting.division == EXPERTS]
        layers = [one for one in group if not dense and one.setting.division == LAYERS]
        for part, by_stop in ((experts, True), (layers, False)):
            speeds = stop_speeds(part, dense=dense or not by_stop)
            if speeds:
                found.append(Series(name, speeds, by_stop))
    return tuple(found)


def without_chats(measurements: Sequence[Measurement]) -> list[Measurement]:
    """What was measured for its own sake, here or elsewhere."""
    return [one for one in measurements if one.source != CHAT]


def new_ones(found: Sequence[Measurement], stored: Sequence[Measurement]) -> list[Measurement]:
    """Those of ``found`` that are not stored: a file may be imported twice."""
    known = set(stored)
    return [one for one in found if one not in known]
