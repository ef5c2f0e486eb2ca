"""The devices once a second, without a child that holds a GPU for the asking."""

from __future__ import annotations

from dataclasses import replace

import pytest

from moelauncher.core.machine import BackendDevice, GpuReading, MachineSnapshot
from moelauncher.core.units import GIB, MIB
from moelauncher.engine.child import Child
from moelauncher.engine.device_watch import IDLE_S, DeviceWatch

CPU = BackendDevice("CPU", "a processor", "cpu", "CPU", None, None)
CUDA = BackendDevice("CUDA0", "RTX 4070", "gpu", "CUDA", 11 * GIB, 12 * GIB)


class SleepyChild(Child):
    """Answers with devices; counts who woke it. No process is started."""

    def __init__(self, *devices: BackendDevice) -> None:
        super().__init__()
        self.answer = [device.__dict__ for device in devices]
        self.asked: list[bool] = []
        self.naps: list[float] = []
        self.awake = False

    @property
    def pid(self) -> int | None:
        return 7 if self.awake else None

    def request(self, operation, parameters=None, *, counts=True, **more):
        assert operation == "devices"
        self.asked.append(counts)
        self.awake = True
        return self.answer

    def sleep(self, idle_s: float = 0.0) -> None:
        self.naps.append(idle_s)


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def seen(source: str, free: int = 11 * GIB) -> MachineSnapshot:
    gpu = GpuReading("RTX 4070", source, 12 * GIB, 12 * GIB - free, free, "CUDA0")
    return MachineSnapshot(0.0, 32 * GIB, 16 * GIB, GIB, gpus=(gpu,))


def test_without_a_gpu_one_answer_is_enough(clock: Clock) -> None:
    child = SleepyChild(CPU)
    watch = DeviceWatch(child, clock=clock)
    for _ in range(5):
        assert watch.devices() == (CPU,)
        clock.now += 60
    assert child.asked == [True]
    assert child.naps == [], "a child that holds no GPU may stay warm"


def test_another_meters_word_lets_the_child_sleep(clock: Clock) -> None:
    child = SleepyChild(CPU, CUDA)
    watch = DeviceWatch(child, clock=clock)
    watch.devices()
    watch.heard(seen("NVML"))
    for _ in range(100):
        clock.now += 1
        assert watch.devices() == (CPU, CUDA)
    assert child.asked == [True]
    assert set(child.naps) == {IDLE_S}


def test_a_child_that_is_awake_is_asked_and_not_kept_awake(clock: Clock) -> None:
    child = SleepyChild(CPU, CUDA)
    watch = DeviceWatch(child, clock=clock)
    watch.devices()
    watch.heard(seen("llama.cpp (CUDA)"))
    watch.devices()
    assert child.asked == [True, False]


def test_where_nobody_else_measures_it_is_woken_now_and_then(clock: Clock) -> None:
    child = SleepyChild(CPU, CUDA)
    watch = DeviceWatch(child, clock=clock)
    watch.devices()
    child.awake = False
    for _ in range(90):
        clock.now += 1
        watch.devices()
        child.awake = False
    assert len(child.asked) in (3, 4), "every half minute or so"


def test_with_a_model_here_this_process_asks_itself(clock: Clock) -> None:
    child = SleepyChild(CPU, CUDA)
    here = [CPU, replace(CUDA, free_bytes=3 * GIB)]
    watch = DeviceWatch(child, clock=clock, ask_here=lambda: here)
    watch.devices()
    watch.computes_here()
    assert watch.devices() == tuple(here)
    assert child.asked == [True]
    assert child.naps == [IDLE_S], "what the child holds of the GPU is needed by the model"


def test_the_child_does_not_push_a_model_off_its_gpu(clock: Clock) -> None:
    watch = DeviceWatch(SleepyChild(CPU, CUDA), clock=clock, ask_here=lambda: [CPU, CUDA])
    assert watch.room_to_ask()
    watch.devices()
    watch.heard(seen("NVML", free=300 * MIB))
    assert watch.room_to_ask(), "nothing of ours is there"
    watch.computes_here()
    assert not watch.room_to_ask()
    watch.heard(seen("NVML", free=2 * GIB))
    assert watch.room_to_ask()
    vulkan = replace(CUDA, name="Vulkan0", backend="Vulkan")
    cheap = DeviceWatch(SleepyChild(CPU, vulkan), clock=clock, ask_here=lambda: [CPU, vulkan])
    cheap.devices()
    cheap.heard(seen("PDH", free=300 * MIB))
    cheap.computes_here()
    assert cheap.room_to_ask()
