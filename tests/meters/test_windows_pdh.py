"""The Windows meter over scripted counters; the real calls exist on Windows only."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from moelauncher.core.machine import GpuHolder
from moelauncher.meters import windows_counters
from moelauncher.meters.windows_pdh import (
    DEDICATED,
    PROCESS_DEDICATED,
    SHARED,
    Adapter,
    WindowsPdhMeter,
)
from tests.helpers.windows_stub import build_stub

GIB = 1 << 30
CARD = 0xC8E1


class ScriptedCounters:
    """Two adapters and a list of moments, each played once."""

    def __init__(self, moments: list[Mapping[str, Mapping[str, int]]]) -> None:
        self.moments = moments
        self.closed = 0

    def adapters(self) -> list[Adapter]:
        return [
            Adapter(CARD, "NVIDIA GeForce RTX 4070", 12 * GIB),
            Adapter(0x1_00000002, "Intel UHD", 128 << 20),
        ]

    def collect(self) -> Mapping[str, Mapping[str, int]]:
        return self.moments.pop(0)

    def close(self) -> None:
        self.closed += 1


def meter_over(*moments: Mapping[str, Mapping[str, int]]) -> WindowsPdhMeter:
    counters = ScriptedCounters(list(moments))
    return WindowsPdhMeter(lambda: counters, lambda pid: f"program {pid}")


LUID = "luid_0x00000000_0x0000C8E1_phys_0"


def test_vram_and_spill_by_adapter() -> None:
    meter = meter_over(
        {
            DEDICATED: {LUID: 3 * GIB, "luid_0x00000001_0x00000002_phys_0": 5},
            SHARED: {LUID: 2 * GIB},
        }
    )
    card, other = meter.read()
    assert (card.total_bytes, card.used_bytes, card.free_bytes) == (12 * GIB, 3 * GIB, 9 * GIB)
    assert card.shared_bytes == 2 * GIB
    assert other.used_bytes == 5
    assert other.shared_bytes is None


def test_linked_adapters_add_up() -> None:
    meter = meter_over({DEDICATED: {LUID: 1, LUID[:-1] + "1": 2}})
    assert meter.read()[0].used_bytes == 3


def test_who_holds_it_largest_first_without_us() -> None:
    meter = meter_over(
        {
            PROCESS_DEDICATED: {
                f"pid_7_{LUID}": 10,
                f"pid_8_{LUID}": 30,
                f"pid_9_{LUID}": 0,
                f"pid_{os.getpid()}_{LUID}": 50,
            }
        }
    )
    card = meter.read()[0]
    assert card.holders == (GpuHolder(8, "program 8", 30), GpuHolder(7, "program 7", 10))
    assert card.own_bytes == 50


def test_missing_counters_are_unknown() -> None:
    card = meter_over({}).read()[0]
    assert (card.used_bytes, card.free_bytes, card.shared_bytes, card.own_bytes) == (None,) * 4


def test_unknown_instance_names_are_left_out() -> None:
    meter = meter_over({DEDICATED: {"_Total": 99, LUID: 1}})
    assert meter.read()[0].used_bytes == 1


def test_opened_once_closed_once() -> None:
    opened: list[ScriptedCounters] = []

    def open_counters() -> ScriptedCounters:
        opened.append(ScriptedCounters([{}, {}]))
        return opened[-1]

    meter = WindowsPdhMeter(open_counters)
    assert opened == []
    meter.read()
    meter.read()
    meter.close()
    meter.close()
    assert len(opened) == 1
    assert opened[0].closed == 1


@pytest.mark.skipif(sys.platform == "win32", reason="asked of Windows itself below")
def test_the_real_calls_against_a_compiled_stand_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = ctypes.CDLL(str(build_stub(tmp_path)))
    monkeypatch.setattr(ctypes, "WinDLL", lambda name: library, raising=False)
    meter = WindowsPdhMeter(name_of_process=lambda pid: f"program {pid}")
    for _ in range(2):
        (card,) = meter.read()  # the software adapter is no GPU
        assert card.name == "NVIDIA GeForce RTX 4070"
        assert (card.total_bytes, card.used_bytes) == (12 * GIB, 3 * GIB)
        assert card.shared_bytes is None  # that counter is missing there
        assert card.holders == (GpuHolder(42, "program 42", GIB),)
    meter.close()

    def count(name: str) -> int:
        return ctypes.c_int.in_dll(library, name).value

    assert (count("stub_opened"), count("stub_closed")) == (1, 1)
    assert count("stub_released") == 3  # two adapters and the factory


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has the counters")
def test_elsewhere_windows_counters_say_so() -> None:
    with pytest.raises(OSError, match="Windows only"):
        WindowsPdhMeter().read()


def test_structures_have_windows_sizes() -> None:
    # PDH_FMT_COUNTERVALUE_ITEM_W and DXGI_ADAPTER_DESC1 in 64-bit Windows' headers.
    assert ctypes.sizeof(windows_counters._CounterItem) == 24
    assert ctypes.sizeof(windows_counters._AdapterDescription) == 312


@pytest.mark.skipif(sys.platform != "win32", reason="asks Windows itself")
def test_windows_itself_answers() -> None:
    meter = WindowsPdhMeter()
    try:
        assert isinstance(meter.read(), list)
    finally:
        meter.close()
