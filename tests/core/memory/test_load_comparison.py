"""A load held against its forecast."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from moelauncher.core.engine_protocol import BufferReport, LoadReport
from moelauncher.core.machine import GpuReading, MachineSnapshot
from moelauncher.core.memory.context_settings import ContextSettings
from moelauncher.core.memory.load_comparison import (
    KindComparison,
    buffer_device,
    compare_load,
    comparison_table,
    largest_difference,
    measured_use,
    with_measured,
)
from moelauncher.core.memory.memory_forecast import MemoryForecast
from moelauncher.core.memory.placement import RAM, Placement, PlacementDevice
from tests.helpers.memory_values import GIB, MIB, device, forecast, main_memory


def report(*buffers: BufferReport, gpus: tuple[str, ...] = ("CUDA0",)) -> LoadReport:
    devices = tuple(PlacementDevice(name, None) for name in gpus)
    placement = Placement(0, 4, "first", devices, (), 5, (0,) * 5, (), ())
    return LoadReport(
        path=Path("m.gguf"),
        placement=placement,
        context=ContextSettings(),
        load_s=1.0,
        n_ctx=4096,
        n_threads=1,
        flash_attention=True,
        buffers=buffers,
        template_source="model",
    )


#: What the forecast of the helpers plans, as llama.cpp would log it.
AS_PLANNED = (
    BufferReport("CUDA0", "weights", 6 * GIB),
    BufferReport("CUDA0", "kv", GIB // 2),
    BufferReport("CUDA0", "compute", GIB),
    BufferReport("CPU_Mapped", "weights", 12 * GIB),
    BufferReport("CUDA_Host", "compute", 200 * MIB),
    BufferReport("CPU", "output", MIB),
)


def planned() -> MemoryForecast:
    made = forecast()
    return replace(made, devices=(made.devices[0], main_memory(compute_bytes=201 * MIB)))


def test_a_load_as_planned_has_nothing_wrong() -> None:
    compared = compare_load(planned(), report(*AS_PLANNED), use_mmap=True)
    assert compared.wrong == ()
    assert [(row.device, row.kind) for row in compared.rows] == [
        ("CUDA0", "weights"),
        ("CUDA0", "kv"),
        ("CUDA0", "compute"),
        (RAM, "weights"),
        (RAM, "compute"),
    ]
    mapped = compared.rows[3]
    assert mapped.real_bytes is None, "a span of the file is not what is used"
    assert compared.devices[0].buffer_bytes == 6 * GIB + GIB // 2 + GIB
    assert largest_difference(compared.rows) == ""
    assert not compared.devices[0].had_context


def test_a_gpu_that_was_in_use_before_is_known_by_its_name() -> None:
    for before, known in ((("CUDA0",), True), (("CUDA1", RAM), False)):
        compared = compare_load(planned(), report(*AS_PLANNED), use_mmap=True, had_context=before)
        assert compared.devices[0].had_context is known


def test_without_mmap_main_memory_is_held_to_the_plan() -> None:
    weights = BufferReport("CPU", "weights", 9 * GIB)
    pinned = BufferReport("CUDA_Host", "weights", GIB)
    buffers = (*AS_PLANNED[:3], weights, pinned, *AS_PLANNED[4:])
    assert compare_load(planned(), report(*buffers), use_mmap=False).wrong == ()
    less = (*AS_PLANNED[:3], weights, *AS_PLANNED[4:])
    (wrong,) = compare_load(planned(), report(*less), use_mmap=False).wrong
    assert (wrong.device, wrong.kind, wrong.difference_bytes) == (RAM, "weights", -GIB)


@pytest.mark.parametrize(
    ("planned_bytes", "real_bytes", "wrong"),
    [
        (10 * GIB, 10 * GIB + 15 * MIB, False),
        (10 * GIB, 10 * GIB + 17 * MIB, True),  # under 1 %, over 16 MiB
        (100 * MIB, 102 * MIB, True),  # over 1 %
        (100 * MIB, 101 * MIB, False),  # 1 % is none yet
        (100 * MIB, 100 * MIB + MIB // 2, False),
        (MIB, MIB + MIB // 10, False),  # less than what the log is rounded to
        (0, 17 * MIB, True),
        (GIB, 0, True),
    ],
)
def test_how_much_is_a_bug(planned_bytes: int, real_bytes: int, wrong: bool) -> None:
    assert KindComparison("CUDA0", "kv", planned_bytes, real_bytes, "dry-run").wrong is wrong
    assert not KindComparison("CUDA0", "compute", planned_bytes, real_bytes, "estimate").wrong


def test_what_was_not_planned_is_a_difference_too() -> None:
    extra = BufferReport("CUDA0", "recurrent", 60 * MIB)
    (wrong,) = compare_load(planned(), report(*AS_PLANNED, extra), use_mmap=True).wrong
    assert (wrong.kind, wrong.planned_bytes, wrong.real_bytes) == ("recurrent", 0, 60 * MIB)
    assert largest_difference((wrong,)) == "CUDA0 recurrent +60 MiB"
    assert "<-- wrong" in comparison_table(
        compare_load(planned(), report(*AS_PLANNED, extra), use_mmap=True)
    )


def test_a_gpu_that_was_only_imagined_is_left_out() -> None:
    compared = compare_load(planned(), report(*AS_PLANNED[3:], gpus=()), use_mmap=True)
    assert {row.device for row in compared.rows} == {RAM}
    assert compared.devices == ()


def test_two_gpus_are_told_apart() -> None:
    gpus = (device("CUDA0", expert_bytes=0), device("CUDA1", kv_bytes=0))
    buffers = (
        BufferReport("CUDA0", "weights", 2 * GIB),
        BufferReport("CUDA0", "kv", GIB // 2),
        BufferReport("CUDA0", "compute", GIB),
        BufferReport("CUDA1", "weights", 6 * GIB),
        BufferReport("CUDA1", "compute", GIB + 20 * MIB),
    )
    made = forecast(*gpus)
    compared = compare_load(made, report(*buffers, gpus=("CUDA0", "CUDA1")), use_mmap=True)
    assert [(row.device, row.kind) for row in compared.wrong] == [("CUDA1", "compute")]


def test_buffers_and_their_devices() -> None:
    gpus = ("CUDA0", "CUDA1")
    names = ("CUDA1", "CUDA0_Split", "CUDA_Host", "CPU", "CPU_REPACK", "CUDA10")
    assert [buffer_device(name, gpus) for name in names] == ["CUDA1", "CUDA0", *[RAM] * 4]


def reading(used: int | None, own: int | None = None, name: str | None = "CUDA0") -> GpuReading:
    return GpuReading("RTX", "NVML", 12 * GIB, used, None, name, "0000:01:00.0", own_bytes=own)


def seen(*gpus: GpuReading) -> MachineSnapshot:
    return MachineSnapshot(0.0, 32 * GIB, 16 * GIB, GIB, gpus=gpus)


def test_what_the_meters_saw() -> None:
    assert measured_use(seen(reading(GIB)), seen(reading(9 * GIB))) == {"CUDA0": 8 * GIB}
    # Another program ended meanwhile: the driver knows what is ours.
    own = measured_use(seen(reading(3 * GIB, None)), seen(reading(9 * GIB, 8 * GIB)))
    assert own == {"CUDA0": 8 * GIB}
    assert measured_use(seen(reading(None)), seen(reading(GIB))) == {}
    assert measured_use(seen(reading(GIB)), seen(reading(GIB, name=None))) == {}
    assert measured_use(seen(), seen(reading(GIB))) == {}


def test_a_meter_that_does_not_move_saw_nothing() -> None:
    compared = compare_load(planned(), report(*AS_PLANNED), use_mmap=True)
    assert with_measured(compared, {"CUDA0": 0}).devices[0].measured_bytes is None
    (gpu,) = with_measured(compared, {"CUDA0": 8 * GIB}).devices
    assert gpu.measured_bytes == 8 * GIB
