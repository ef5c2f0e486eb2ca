"""VRAM that moved into shared memory, told from what is meant to lie there."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from moelauncher.core.engine_protocol import BufferReport, LoadReport
from moelauncher.core.machine import GpuReading, MachineSnapshot
from moelauncher.core.memory.context_settings import ContextSettings
from moelauncher.core.memory.placement import Placement, PlacementDevice
from moelauncher.core.memory.spill import Spill, find_spills, main_memory_bytes
from tests.helpers.memory_values import GIB, MIB, snapshot


def report(*devices: PlacementDevice) -> LoadReport:
    gpus = devices or (PlacementDevice("CUDA0", None),)
    return LoadReport(
        path=Path("m.gguf"),
        placement=Placement(0, 4, "first", gpus, (), 5, (0,) * 5, (), ()),
        context=ContextSettings(),
        load_s=1.0,
        n_ctx=4096,
        n_threads=1,
        flash_attention=True,
        buffers=(
            BufferReport("CUDA0", "weights", 6 * GIB),
            BufferReport("CUDA_Host", "compute", 200 * MIB),
            BufferReport("CUDA_Host", "weights", 100 * MIB),
            BufferReport("CPU", "kv", GIB),
            BufferReport("CPU_Mapped", "weights", 12 * GIB),
        ),
        template_source="model",
    )


def seen(shared_mib: int | None, **changes: object) -> MachineSnapshot:
    card = GpuReading(
        "RTX",
        "PDH",
        device_name="CUDA0",
        shared_bytes=None if shared_mib is None else shared_mib * MIB,
    )
    return snapshot(1, replace(card, **changes))  # type: ignore[arg-type]


def test_what_llama_cpp_pins_itself_and_a_little_more_is_no_spill() -> None:
    assert find_spills(seen(50), seen(50 + 300 + 128), report()) == ()
    grown = find_spills(seen(50), seen(50 + 300 + 129), report())
    assert grown == (Spill("CUDA0", 129 * MIB),)


@pytest.mark.parametrize(
    ("before", "now"),
    [
        (seen(None), seen(4000)),
        (seen(0), seen(None)),
        (seen(0), seen(4000, device_name="CUDA1")),
        (seen(0, shares_ram=True), seen(4000, shares_ram=True)),
    ],
)
def test_unknown_other_and_integrated_gpus_tell_of_none(
    before: MachineSnapshot, now: MachineSnapshot
) -> None:
    assert find_spills(before, now, report()) == ()


def test_mapped_weights_are_the_files_and_an_integrated_gpus_memory_is_main_memory() -> None:
    assert main_memory_bytes(report()) == GIB + 300 * MIB
    integrated = PlacementDevice("CUDA0", None, shares_ram=True)
    assert main_memory_bytes(report(integrated)) == 7 * GIB + 300 * MIB
