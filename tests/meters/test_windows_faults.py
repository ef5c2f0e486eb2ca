"""Hard page faults on Windows, which counts them for all programs together."""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path

import pytest

from moelauncher.core.speed.conditions import condition_notes
from moelauncher.meters import condition_watch, windows_counters
from moelauncher.meters.condition_watch import MachineWatch
from moelauncher.meters.process_counters import ProcessCounters
from moelauncher.meters.windows_faults import PAGE_READS, PageReads
from tests.helpers.windows_stub import build_stub


class Counters:
    """As many reads as were written into it."""

    def __init__(self, reads: int = 100) -> None:
        self.reads = reads
        self.closed = 0

    def collect_raw(self) -> dict[str, int]:
        return {PAGE_READS: self.reads}

    def close(self) -> None:
        self.closed += 1


def test_reads_during_a_run_are_its_note(monkeypatch: pytest.MonkeyPatch) -> None:
    # Windows tells of no process how many of its faults needed the disk.
    monkeypatch.setattr(condition_watch, "read_counters", lambda pid: ProcessCounters(1.0, 0))
    counters = Counters()
    watch = MachineWatch([], PageReads(lambda: counters))
    finish = watch.begin(os.getpid())
    counters.reads += 4321
    seen = finish()
    watch.close()
    assert seen.major_faults == 4321
    assert any("4,321 times a page" in note for note in condition_notes(seen))
    assert counters.closed == 1


def test_what_the_process_itself_tells_goes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(condition_watch, "read_counters", lambda pid: ProcessCounters(1.0, 0, 7))
    counters = Counters()
    watch = MachineWatch([], PageReads(lambda: counters))
    finish = watch.begin(os.getpid())
    counters.reads += 4321
    assert finish().major_faults == 0
    watch.close()


def test_what_windows_refuses_stays_unknown() -> None:
    def refuse() -> Counters:
        raise OSError("no counters")

    reads = PageReads(refuse)
    assert reads.count() is None
    reads.close()

    class Failing(Counters):
        def collect_raw(self) -> dict[str, int]:
            raise OSError("PDH answered 0x800007D5")

    assert PageReads(Failing).count() is None


@pytest.mark.skipif(sys.platform == "win32", reason="asked of Windows itself below")
def test_the_real_calls_against_a_compiled_stand_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = ctypes.CDLL(str(build_stub(tmp_path)))
    monkeypatch.setattr(ctypes, "WinDLL", lambda name: library, raising=False)
    reads = PageReads()
    first, second = reads.count(), reads.count()
    reads.close()
    assert first is not None and second is not None
    assert second - first == 700
    assert first > 2**32, "the count is 64 bits wide"
    assert ctypes.c_int.in_dll(library, "stub_closed").value == 1


def test_the_structure_has_windows_size() -> None:
    assert ctypes.sizeof(windows_counters._RawCounter) == 40  # PDH_RAW_COUNTER


@pytest.mark.skipif(sys.platform != "win32", reason="asks Windows itself")
def test_windows_itself_answers() -> None:
    reads = PageReads()
    count = reads.count()
    reads.close()
    assert count is None or count >= 0
