"""The meter thread: snapshots keep coming whatever a source does."""

from __future__ import annotations

import queue
import sys
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from moelauncher.core.errors import Cancelled
from moelauncher.core.machine import GpuReading, MachineSnapshot
from moelauncher.meters.meter_thread import MeterThread, default_sources, read_machine

#: For what comes at once where the machine is not busy.
WAIT_S = 60.0


class ScriptedSource:
    """Plays one answer a reading, the last one for ever; an exception is raised."""

    def __init__(self, name: str, *answers: list[GpuReading] | Exception) -> None:
        self.name = name
        self.answers = list(answers)
        self.closed = 0
        self.threads: set[str] = set()

    def read(self) -> list[GpuReading]:
        self.threads.add(threading.current_thread().name)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    def close(self) -> None:
        self.closed += 1


class HangingSource(ScriptedSource):
    """Does not answer before ``go`` is set."""

    def __init__(self, name: str, *answers: list[GpuReading]) -> None:
        super().__init__(name, *answers)
        self.go = threading.Event()

    def read(self) -> list[GpuReading]:
        self.go.wait()
        return super().read()


def card(name: str) -> GpuReading:
    return GpuReading(name, "script", used_bytes=1)


class Running:
    """A running meter thread and the snapshots that came."""

    def __init__(
        self,
        *sources: ScriptedSource,
        clock: Callable[[], float] = time.monotonic,
        patience_s: float = WAIT_S,
    ) -> None:
        self.snapshots: queue.Queue[MachineSnapshot] = queue.Queue()
        self.meters = MeterThread(
            sources, self.snapshots.put, interval_s=0.005, clock=clock, patience_s=patience_s
        )
        self.meters.start()

    def next(self) -> MachineSnapshot:
        return self.snapshots.get(timeout=WAIT_S)

    def until(self, holds: Callable[[MachineSnapshot], bool]) -> MachineSnapshot:
        until_s = time.monotonic() + WAIT_S
        while time.monotonic() < until_s:
            snapshot = self.next()
            if holds(snapshot):
                return snapshot
        raise AssertionError("no such snapshot came")


@pytest.fixture
def running() -> Iterator[Callable[..., Running]]:
    started: list[Running] = []

    def start(*sources: ScriptedSource, **options: object) -> Running:
        started.append(Running(*sources, **options))  # type: ignore[arg-type]
        return started[-1]

    yield start
    for one in started:
        one.meters.stop()


def names(snapshot: MachineSnapshot) -> list[str]:
    return [gpu.name for gpu in snapshot.gpus]


def test_snapshots_have_memory_and_gpus(running: Callable[..., Running]) -> None:
    snapshot = running(ScriptedSource("a", [card("one")])).next()
    assert snapshot.ram_total_bytes >= snapshot.ram_available_bytes > 0
    assert snapshot.own_ram_bytes > 0
    assert names(snapshot) == ["one"]


def test_a_failing_source_leaves_the_others_and_comes_back(
    running: Callable[..., Running],
) -> None:
    broken = ScriptedSource("broken", RuntimeError("gone"), RuntimeError("gone"), [card("two")])
    run = running(ScriptedSource("good", [card("one")]), broken)
    assert names(run.next()) == ["one"]
    assert names(run.until(lambda s: len(s.gpus) == 2)) == ["one", "two"]


def test_a_hanging_source_delays_nobody(running: Callable[..., Running]) -> None:
    hanging = HangingSource("hanging", [card("late")])
    run = running(hanging, ScriptedSource("good", [card("one")]), patience_s=0.05)
    for _ in range(5):
        run.until(lambda s: names(s) == ["one"])
    hanging.go.set()
    run.until(lambda s: names(s) == ["late", "one"])


def test_an_old_reading_is_dropped(running: Callable[..., Running]) -> None:
    now = [100.0]
    source = HangingSource("a", [card("one")])
    source.go.set()
    run = running(source, clock=lambda: now[0], patience_s=0.05)
    run.until(lambda s: names(s) == ["one"])
    source.go.clear()

    def dropped_by_now(snapshot: MachineSnapshot) -> bool:
        now[0] += 60.0  # each time: a reading that was under way is of now
        return names(snapshot) == []

    run.until(dropped_by_now)
    source.go.set()
    run.until(lambda s: names(s) == ["one"])


def test_stop_closes_every_source_on_its_own_thread() -> None:
    before = set(threading.enumerate())
    sources = [ScriptedSource("a", []), ScriptedSource("b", [])]
    run = Running(*sources)
    run.next()
    run.meters.stop(timeout_s=WAIT_S)
    assert [source.closed for source in sources] == [1, 1]
    assert [source.threads for source in sources] == [{"meter-a"}, {"meter-b"}]
    assert set(threading.enumerate()) <= before


def test_stop_without_start_is_no_fault() -> None:
    MeterThread([], lambda snapshot: None).stop()


def test_a_consumer_that_raises_does_not_end_it(caplog: pytest.LogCaptureFixture) -> None:
    came: queue.Queue[int] = queue.Queue()

    def consume(snapshot: MachineSnapshot) -> None:
        came.put(1)
        raise ValueError("a fault in the window")

    meters = MeterThread([], consume, interval_s=0.005)
    meters.start()
    for _ in range(3):
        came.get(timeout=WAIT_S)
    meters.stop()
    assert "missed a second" in caplog.text


def test_one_snapshot_without_a_thread_closes_its_sources() -> None:
    good, broken = ScriptedSource("a", [card("one")]), ScriptedSource("b", OSError("no"))
    assert names(read_machine([good, broken])) == ["one"]
    assert (good.closed, broken.closed) == (1, 1)


def test_the_note_speaks_once_the_build_has_spoken() -> None:
    snapshot = read_machine(default_sources(list))
    assert snapshot.gpu_note != ""
    assert read_machine([ScriptedSource("NVML", [card("x")])]).gpu_note == ""


def test_a_source_that_ends_with_the_program_is_no_warning(
    running: Callable[..., Running], caplog: pytest.LogCaptureFixture
) -> None:
    run = running(ScriptedSource("a", Cancelled()), ScriptedSource("b", [card("one")]))
    assert names(run.next()) == ["one"]
    assert caplog.text == ""


def test_the_same_failure_is_told_once(
    running: Callable[..., Running], caplog: pytest.LogCaptureFixture
) -> None:
    run = running(ScriptedSource("a", RuntimeError("gone")))
    for _ in range(4):
        run.next()
    assert caplog.text.count("a: gone") == 1


@pytest.mark.parametrize(
    ("system", "names_there"),
    [
        ("linux", ["NVML", "amdgpu", "llama.cpp"]),
        ("win32", ["NVML", "PDH", "llama.cpp"]),
        ("darwin", ["NVML", "llama.cpp"]),
    ],
)
def test_each_system_has_its_sources(
    system: str, names_there: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", system)
    assert [source.name for source in default_sources(list)] == names_there
