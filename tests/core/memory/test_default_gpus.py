"""Which devices a model is placed on, and an integrated GPU's memory counted once."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from moelauncher.core.engine_protocol import BufferReport, LoadReport
from moelauncher.core.machine import BackendDevice, GpuReading, MachineSnapshot
from moelauncher.core.memory.auto_placement import auto_placement
from moelauncher.core.memory.context_settings import ContextSettings
from moelauncher.core.memory.default_gpus import allowed_devices, default_gpus
from moelauncher.core.memory.forecast import forecast
from moelauncher.core.memory.launch_plan import machine_of
from moelauncher.core.memory.own_share import OwnShare
from moelauncher.core.memory.place_model import place
from moelauncher.core.memory.placement import PlacementDevice
from moelauncher.core.memory.plan_document import plan_document, plan_text
from moelauncher.core.memory.spill import find_spills, main_memory_bytes
from tests.helpers.planned_models import GIB, MIB, made_facts, truth_facts

CPU = BackendDevice("CPU", "Ryzen", "cpu", "CPU", 30 * GIB, 32 * GIB)
CARD = BackendDevice("CUDA0", "RTX 4070", "gpu", "CUDA", 11 * GIB, 12 * GIB, "0000:01:00.0")
SAME_CARD = BackendDevice(
    "Vulkan0", "RTX 4070", "gpu", "Vulkan", 11 * GIB, 12 * GIB, "0000:01:00.0"
)
INTEGRATED = BackendDevice("Vulkan1", "Radeon 780M", "igpu", "Vulkan", 15 * GIB, 16 * GIB)
BY_OTHER_BACKEND = BackendDevice("ROCm0", "Radeon 780M", "igpu", "ROCm", 15 * GIB, 16 * GIB)
REMOTE = BackendDevice("RPC0", "elsewhere:50052", "gpu", "RPC", 20 * GIB, 24 * GIB)
BLAS = BackendDevice("BLAS", "OpenBLAS", "accel", "BLAS", None, None)


def names(*devices: BackendDevice) -> list[str]:
    return [device.name for device in default_gpus(devices)]


def test_a_card_is_used_and_the_integrated_gpu_beside_it_is_not() -> None:
    assert names(INTEGRATED, CARD, CPU) == ["CUDA0"]
    assert names(CPU, BLAS) == []


def test_an_integrated_gpu_is_used_where_there_is_no_card() -> None:
    assert names(INTEGRATED, CPU) == ["Vulkan1"]
    assert names(REMOTE, INTEGRATED, CPU) == ["RPC0", "Vulkan1"], "a remote machine is no card"


def test_what_two_backends_see_is_used_once() -> None:
    assert names(CARD, SAME_CARD, CPU) == ["CUDA0"]
    assert names(INTEGRATED, BY_OTHER_BACKEND, CPU) == ["Vulkan1"]


def test_cards_without_an_address_are_all_taken() -> None:
    software = [
        BackendDevice(f"Vulkan{index}", "llvmpipe", "gpu", "Vulkan", GIB, GIB) for index in (0, 1)
    ]
    assert names(*software, CPU) == ["Vulkan0", "Vulkan1"]


def test_a_remote_machine_stands_before_the_cards() -> None:
    assert names(CARD, REMOTE) == ["RPC0", "CUDA0"]


def _snapshot(available: int, *gpus: GpuReading) -> MachineSnapshot:
    return MachineSnapshot(1.0, 32 * GIB, available, GIB, gpus=gpus)


def _reading(free: int) -> GpuReading:
    return GpuReading(
        "Radeon 780M",
        "llama.cpp (Vulkan)",
        16 * GIB,
        16 * GIB - free,
        free,
        "Vulkan1",
        shares_ram=True,
    )


def test_the_machine_of_an_integrated_gpu() -> None:
    machine = machine_of(
        [INTEGRATED, CPU], _snapshot(20 * GIB, _reading(14 * GIB)), OwnShare(), {}, None
    )
    (gpu,) = machine.gpus
    assert (gpu.name, gpu.free_bytes, gpu.shares_ram) == ("Vulkan1", 14 * GIB, True)
    assert machine.margins.leave_free("Vulkan1") == 512 * MIB, "the desktop lives on it too"


CONTEXT = ContextSettings(n_ctx=4096)


def _integrated(free: int | None = 15 * GIB) -> PlacementDevice:
    return PlacementDevice("Vulkan1", free, 16 * GIB, shares_ram=True)


@given(
    layers=st.lists(st.tuples(st.integers(1, 900), st.integers(0, 3000)), min_size=1, max_size=8),
    stop=st.integers(0, 8),
    ram_mib=st.integers(500, 30_000),
    gpu_mib=st.integers(500, 30_000),
)
def test_memory_that_is_shared_is_counted_once(
    layers: list[tuple[int, int]], stop: int, ram_mib: int, gpu_mib: int
) -> None:
    facts = made_facts([(dense * MIB, experts * MIB) for dense, experts in layers])
    placement = place(facts, [_integrated(gpu_mib * MIB)], cpu_moe=stop)
    ram_free = ram_mib * MIB
    result = forecast(facts, placement, CONTEXT, ram_free_bytes=ram_free)
    (gpu,) = result.gpus
    both = gpu.used_bytes + result.ram.used_bytes
    assert result.ram.lent_bytes == gpu.used_bytes
    assert result.ram.spare_bytes == ram_free - both
    if result.fits:
        assert both <= ram_free
        assert gpu.used_bytes + gpu.leave_free_bytes <= min(gpu_mib, ram_mib) * MIB
    if result.streams_from_disk:
        assert both - result.ram.weights_bytes <= ram_free


def test_what_an_integrated_gpu_holds_cannot_stream_from_disk() -> None:
    facts = made_facts([(100 * MIB, 2000 * MIB)] * 8)
    on_gpu, on_cpu = (
        forecast(
            facts, place(facts, [_integrated()], cpu_moe=stop), CONTEXT, ram_free_bytes=8 * GIB
        )
        for stop in (0, 8)
    )
    assert not on_gpu.fits and not on_gpu.streams_from_disk
    assert not on_cpu.fits and on_cpu.streams_from_disk


def test_auto_leaves_an_integrated_gpu_no_more_than_main_memory_has() -> None:
    facts = truth_facts("gpt-oss-20b-mxfp4")
    machine = machine_of(
        [INTEGRATED, CPU], _snapshot(9 * GIB, _reading(15 * GIB)), OwnShare(), {}, None
    )
    answer = auto_placement(facts, machine, CONTEXT)
    (gpu,) = answer.forecast.gpus
    assert answer.fits and answer.placement.cpu_moe > 0
    assert gpu.used_bytes + 512 * MIB <= 9 * GIB
    assert gpu.free_bytes == 9 * GIB


def test_the_plan_says_that_the_memory_is_shared() -> None:
    facts = truth_facts("gpt-oss-20b-mxfp4")
    placement = place(facts, [_integrated()], cpu_moe=24)
    result = forecast(facts, placement, CONTEXT, ram_free_bytes=20 * GIB)
    said = plan_text(facts, placement, result, CONTEXT)
    assert "Vulkan1 is an integrated GPU: its memory is part of RAM, and counted once." in said
    gpu, ram = plan_document({}, facts, placement, result, CONTEXT)["devices"]  # type: ignore[misc]
    assert gpu["shares_ram"] is True
    assert "shares_ram" not in ram


def _report(shares_ram: bool) -> LoadReport:
    facts = made_facts([(MIB, MIB)])
    device = PlacementDevice("Vulkan1", None, shares_ram=shares_ram)
    return LoadReport(
        path=facts.path,
        placement=place(facts, [device], cpu_moe=0),
        context=CONTEXT,
        load_s=1.0,
        n_ctx=4096,
        n_threads=1,
        flash_attention=True,
        buffers=(
            BufferReport("Vulkan1", "weights", 700 * MIB),
            BufferReport("CPU_Mapped", "weights", 500 * MIB),
            BufferReport("Vulkan_Host", "compute", 10 * MIB),
        ),
        template_source="model",
    )


def test_an_unload_gives_main_memory_back_what_an_integrated_gpu_held() -> None:
    assert main_memory_bytes(_report(shares_ram=True)) == 710 * MIB
    assert main_memory_bytes(_report(shares_ram=False)) == 10 * MIB


def test_what_an_integrated_gpu_uses_is_no_spill() -> None:
    before, now = (
        _snapshot(
            20 * GIB,
            GpuReading("GPU", "x", device_name="Vulkan1", shared_bytes=size, shares_ram=shared),
        )
        for size, shared in ((0, True), (4 * GIB, True))
    )
    assert find_spills(before, now, _report(shares_ram=True)) == ()


def test_the_user_may_name_the_gpus_that_are_used() -> None:
    first = BackendDevice("Vulkan0", "a", "gpu", "Vulkan", 1, 2)
    second = BackendDevice("Vulkan1", "b", "gpu", "Vulkan", 1, 2)
    cpu = BackendDevice("CPU", "c", "cpu", "CPU", 1, 2)
    devices = (first, second, cpu)
    assert allowed_devices(devices, ()) == devices
    assert allowed_devices(devices, ("vulkan1",)) == (second, cpu)
    # A card that was taken out must not leave the program without any.
    assert allowed_devices(devices, ("CUDA0",)) == devices
    assert allowed_devices(devices, ("CPU",)) == devices
