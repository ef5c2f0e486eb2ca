"""Reading main memory as fast as it goes."""

from __future__ import annotations

import pytest

from moelauncher.core import ram_bandwidth
from moelauncher.core.ram_bandwidth import measure_ram_bandwidth

GIB = 1 << 30


def test_memory_is_read_at_gigabytes_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ram_bandwidth, "BUFFER_BYTES", 64 << 20)
    for n_threads in (1, 2, 1000):
        rate = measure_ram_bandwidth(n_threads, free_bytes=8 * GIB, seconds=0.04)
        assert rate is not None
        # No memory of the last twenty years is outside of this, and no unit mistake inside.
        assert 0.05e9 < rate < 5e12


def test_little_memory_is_not_filled_for_a_number() -> None:
    assert measure_ram_bandwidth(2, free_bytes=ram_bandwidth.BUFFER_BYTES) is None


def test_measuring_can_be_given_up() -> None:
    assert measure_ram_bandwidth(1, free_bytes=8 * GIB, cancelled=lambda: True) is None


def test_bytes_are_counted_against_the_clock() -> None:
    ticks = iter(range(10_000))
    # Each look at the clock is a second later: one pass of 512 MiB a second.
    rate = measure_ram_bandwidth(
        1, free_bytes=8 * GIB, seconds=0.0, clock=lambda: float(next(ticks))
    )
    assert rate == ram_bandwidth.BUFFER_BYTES
