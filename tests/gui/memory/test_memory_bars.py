"""gui/memory/memory_bars.py: what the gauge draws, from what is measured, planned and loaded."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from moelauncher.core.engine_protocol import BufferReport, LoadReport
from moelauncher.core.machine import GpuReading
from moelauncher.core.memory.context_settings import ContextSettings
from moelauncher.core.memory.launch_plan import IMAGINED_GPU
from moelauncher.core.memory.placement import Placement
from moelauncher.gui.memory.memory_bars import Bar, bars_of, loaded_forecast, short_device
from tests.helpers.memory_values import GIB, MIB, device, forecast, main_memory, snapshot


def segment(bar: Bar, kind: str):
    return next(segment for segment in bar.segments if segment.kind == kind)


def test_nothing_known_is_no_bar() -> None:
    assert bars_of(None, None, None) == ()


def test_without_a_model_the_measured_use_is_shown() -> None:
    gpu, ram = bars_of(snapshot(3), None, None)
    assert (gpu.name, gpu.label, gpu.meter) == ("CUDA0", "RTX 4070", "NVML")
    assert [s.kind for s in gpu.segments] == ["others"]
    assert gpu.then_bytes == 3 * GIB
    assert not ram.is_gpu
    assert ram.then_bytes == 12 * GIB


def test_a_plan_adds_up_to_others_and_the_forecast() -> None:
    gpu, ram = bars_of(snapshot(), forecast(), None)
    assert segment(gpu, "others").then_bytes == GIB  # 12 total, 11 free
    assert gpu.then_bytes == GIB + device().used_bytes
    assert ram.then_bytes == 12 * GIB + main_memory().used_bytes
    assert gpu.over_bytes == ram.over_bytes == 0


def test_before_a_load_only_others_are_there_now() -> None:
    gpu, _ = bars_of(snapshot(), forecast(), None)
    assert segment(gpu, "others").now_bytes == GIB
    assert sum(s.now_bytes for s in gpu.segments if s.kind != "others") == 0


def test_what_is_loaded_is_now_and_the_plan_is_then() -> None:
    planned = forecast(device(expert_bytes=5 * GIB))
    gpu, _ = bars_of(snapshot(9), planned, forecast())
    assert segment(gpu, "experts").now_bytes == 4 * GIB
    assert segment(gpu, "experts").then_bytes == 5 * GIB
    assert segment(gpu, "dense").now_bytes == segment(gpu, "dense").then_bytes == 2 * GIB


def test_over_full_is_what_exceeds_memory_less_the_margin() -> None:
    planned = forecast(device(expert_bytes=8 * GIB))
    gpu, _ = bars_of(snapshot(), planned, None)
    assert gpu.over_bytes == 2 * GIB
    assert gpu.scale_bytes == gpu.then_bytes  # 13 GiB in 12: the bar shows all of it
    assert gpu.then_bytes > gpu.total_bytes


def test_inside_the_margin_is_over_too() -> None:
    planned = forecast(device(expert_bytes=6 * GIB + GIB // 2))
    gpu, _ = bars_of(snapshot(), planned, None)
    assert gpu.over_bytes == GIB // 2
    assert gpu.scale_bytes == gpu.total_bytes


def test_unknown_free_memory_falls_back_on_the_meter() -> None:
    planned = forecast(device(free_bytes=None, total_bytes=None))
    gpu, _ = bars_of(snapshot(3), planned, None)
    assert gpu.total_bytes == 12 * GIB
    assert segment(gpu, "others").then_bytes == 3 * GIB


def test_unknown_size_still_has_a_scale() -> None:
    planned = forecast(device("Remote", free_bytes=None, total_bytes=None))
    gpu, _ = bars_of(None, planned, None)
    assert gpu.total_bytes is None
    assert gpu.over_bytes == 0
    assert gpu.scale_bytes > gpu.then_bytes > 0


def test_the_loaded_model_is_not_counted_among_the_others() -> None:
    loaded = forecast(device(free_bytes=None))
    gpu, _ = bars_of(snapshot(10), None, loaded)
    assert segment(gpu, "others").then_bytes == 10 * GIB - device().used_bytes


@pytest.mark.parametrize(("mapped", "others_gib"), [(True, 12), (False, 2)])
def test_mapped_weights_are_not_in_the_system_s_used_memory(mapped: bool, others_gib: int) -> None:
    loaded = forecast()
    loaded = type(loaded)(
        (loaded.devices[0], main_memory(free_bytes=None)), True, None, "", "dry-run"
    )
    _, ram = bars_of(snapshot(), None, loaded, weights_mapped=mapped)
    assert segment(ram, "others").then_bytes == others_gib * GIB


def test_gpus_are_matched_by_llama_cpp_s_name_not_by_order() -> None:
    first = GpuReading("AMD Radeon", "sysfs", total_bytes=8 * GIB, device_name="Vulkan1")
    second = GpuReading("NVIDIA GeForce RTX 3060", "NVML", 12 * GIB, device_name="Vulkan0")
    planned = forecast(device("Vulkan0"), device("Vulkan1"))
    bars = bars_of(snapshot(1, first, second), planned, None)
    assert [bar.label for bar in bars[:2]] == ["RTX 3060", "Radeon"]


def test_a_pretended_gpu_has_no_meter() -> None:
    gpu, _ = bars_of(snapshot(), forecast(device("RTX4090")), None)
    assert (gpu.label, gpu.meter, gpu.measured_used_bytes) == ("", "", None)


def test_a_report_replaces_the_plan_s_gpu_numbers() -> None:
    report = LoadReport(
        path=Path("m.gguf"),
        placement=Placement(0, 0, "first", (), (), 0, (), (), ()),
        context=ContextSettings(),
        load_s=1,
        n_ctx=4096,
        n_threads=1,
        flash_attention=None,
        buffers=(
            BufferReport("CUDA0", "weights", 6 * GIB + 10 * MIB),
            BufferReport("CUDA0", "kv", 300 * MIB),
            BufferReport("CUDA0", "kv", 100 * MIB),
            BufferReport("CPU_Mapped", "weights", 99 * GIB),
        ),
        template_source="model",
    )
    loaded = loaded_forecast(report, forecast())
    assert loaded.devices[0].weights_bytes == 6 * GIB + 10 * MIB
    assert loaded.devices[0].expert_bytes == 4 * GIB
    assert loaded.devices[0].kv_bytes == 400 * MIB
    assert loaded.devices[0].compute_bytes == device().compute_bytes
    assert loaded.ram == main_memory()


def test_short_names() -> None:
    assert short_device("NVIDIA GeForce RTX 4070") == "RTX 4070"
    assert short_device("llvmpipe (LLVM 15.0.6, 256 bits)") == "llvmpipe (LLVM 15.0.6, 256 bits)"


def test_nothing_is_loaded_on_an_imagined_gpu() -> None:
    plan = forecast(device(IMAGINED_GPU.name, free_bytes=None, total_bytes=None))
    gpu, ram = bars_of(snapshot(note="none"), plan, plan)
    assert gpu.imagined
    assert sum(s.now_bytes for s in gpu.segments) == 0
    assert gpu.then_bytes == device().used_bytes
    assert not ram.imagined
    assert segment(ram, "experts").now_bytes == 10 * GIB


def test_an_integrated_gpu_has_its_share_in_the_bar_of_main_memory() -> None:
    planned = forecast(device("Vulkan0", shares_ram=True), main_memory(lent_bytes=8 * GIB))
    planned = replace(planned, devices=planned.devices[:2])
    gpu, ram = bars_of(snapshot(1), planned, planned)
    assert gpu.shares_ram and not ram.shares_ram
    lent = segment(ram, "lent")
    assert (lent.now_bytes, lent.then_bytes) == (8 * GIB, 8 * GIB)
    assert ram.then_bytes == 12 * GIB + 8 * GIB + 10 * GIB
    assert ram.over_bytes == 0, "20 GiB were free: 8 for the GPU, 10 for experts, 2 kept"
    assert segment(gpu, "lent").then_bytes == 0
