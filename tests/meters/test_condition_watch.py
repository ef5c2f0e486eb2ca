"""What the machine did while something was measured."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace

import psutil
import pytest

from moelauncher.core.machine import GpuHolder, GpuReading
from moelauncher.core.speed.conditions import condition_notes, disturbance
from moelauncher.meters import condition_watch
from moelauncher.meters.condition_watch import MachineWatch
from moelauncher.meters.process_counters import read_counters
from moelauncher.meters.sleep_clock import asleep_s

CARD = GpuReading("RTX", "NVML", total_bytes=12 << 30, used_bytes=1 << 30, shared_bytes=100 << 20)


class Card:
    """A source that says what it is told to, and how often it was asked."""

    name = "card"

    def __init__(self) -> None:
        self.reading = CARD
        self.looked = threading.Semaphore(0)
        self.closed = False

    def read(self) -> tuple[GpuReading, ...]:
        self.looked.release()
        return (self.reading,)

    def close(self) -> None:
        self.closed = True

    def wait_for_looks(self, count: int) -> None:
        for _ in range(count):
            assert self.looked.acquire(timeout=240)


@pytest.fixture
def card(monkeypatch: pytest.MonkeyPatch) -> Card:
    monkeypatch.setattr(condition_watch, "_LOOK_EVERY_S", 0.001)
    monkeypatch.setattr(condition_watch, "_BASELINE_S", 0.0)
    return Card()


@pytest.fixture
def idle_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody else computes or swaps, however busy the machine of the test is."""
    cpu, swap = psutil.cpu_times(), SimpleNamespace(used=0)
    monkeypatch.setattr(condition_watch.psutil, "cpu_times", lambda: cpu)
    monkeypatch.setattr(condition_watch.psutil, "swap_memory", lambda: swap)


@pytest.fixture
def watch(card: Card) -> Iterator[MachineWatch]:
    made = MachineWatch([card])
    yield made
    made.close()
    assert card.closed


@pytest.mark.usefixtures("idle_machine")
def test_what_came_and_went_during_the_run_is_seen(card: Card, watch: MachineWatch) -> None:
    before = watch.baseline()
    finish = watch.begin(os.getpid())
    card.reading = replace(
        CARD,
        shared_bytes=900 << 20,
        throttle_reasons=("too hot",),
        holders=(GpuHolder(4711, "game.exe", 3 << 30), GpuHolder(os.getpid(), "us", 1 << 30)),
    )
    while card.looked.acquire(blocking=False):
        pass
    card.wait_for_looks(3)
    card.reading = CARD
    while card.looked.acquire(blocking=False):
        pass
    card.wait_for_looks(3)
    now = finish()
    assert now.throttled == ("too hot",)
    assert now.spilled_bytes == 800 << 20, "beyond what was there before"
    assert now.gpu_others == (("game.exe", 3 << 30),)
    assert "too hot" in disturbance(now, before)
    notes = " ".join(condition_notes(now))
    assert "game.exe held 3.0 GiB" in notes
    assert "800 MiB" in notes


def test_where_the_driver_names_nobody_it_is_what_was_held_before(
    card: Card, watch: MachineWatch
) -> None:
    watch.baseline()
    card.reading = replace(CARD, used_bytes=9 << 30)
    now = watch.begin(os.getpid())()
    assert now.gpu_others == (("", 1 << 30),)
    assert "Other programs held 1.0 GiB of VRAM." in condition_notes(now)


def test_this_machine_says_something(watch: MachineWatch) -> None:
    now = watch.begin(os.getpid())()
    assert now.ram_free_bytes
    assert now.slept_s < 1
    assert now.read_bytes is None or now.read_bytes >= 0


def test_a_driver_that_fails_is_no_reason_to_end(card: Card, watch: MachineWatch) -> None:
    def fail() -> tuple[GpuReading, ...]:
        raise RuntimeError("driver lost")

    card.read = fail  # type: ignore[method-assign]
    assert watch.begin(os.getpid())().throttled == ()


def test_a_run_that_was_never_finished_leaves_no_thread(watch: MachineWatch) -> None:
    watch.begin(os.getpid())
    watch.begin(os.getpid())
    watch.close()
    assert not [one for one in threading.enumerate() if one.name == "condition-watch"]


def test_counters_of_a_process() -> None:
    before = read_counters(os.getpid())
    assert before.cpu_s > 0
    assert read_counters(2**22 + 17).cpu_s == 0.0, "a process that is gone has used nothing"
    assert before.major_faults is None or before.major_faults >= 0


def test_time_asleep_stands_still_while_awake() -> None:
    counted_s = []
    for _ in range(3):  # a busy machine may take the processor away between two clocks
        before_s, until_s = asleep_s(), time.monotonic() + 0.2
        while time.monotonic() < until_s:
            pass
        counted_s.append(abs(asleep_s() - before_s))
    assert min(counted_s) < 0.1
