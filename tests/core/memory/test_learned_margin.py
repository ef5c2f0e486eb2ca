"""The margin is learned upward, the driver's share by the middle of what was measured."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from moelauncher.core.machine import BackendDevice, GpuReading, MachineSnapshot
from moelauncher.core.memory.auto_placement import forecast_on, gpus_fit
from moelauncher.core.memory.context_settings import ContextSettings
from moelauncher.core.memory.launch_plan import machine_of
from moelauncher.core.memory.learned_margin import Learned, learned
from moelauncher.core.memory.load_records import LOADED, OUT_OF_MEMORY, SPILLED, LoadRecord
from moelauncher.core.memory.memory_forecast import MemoryForecast
from moelauncher.core.memory.own_share import OwnShare
from moelauncher.core.memory.place_model import place
from moelauncher.core.memory.tensor_split import split_for_counts
from moelauncher.core.units import GIB, MIB
from tests.helpers.planned_models import made_facts

DEVICE = "CUDA0 RTX"


def loaded(beside_mib: int, *, had_context: bool = False, device: str = DEVICE) -> LoadRecord:
    return LoadRecord(
        time_s=0.0,
        device=device,
        outcome=LOADED,
        model="m",
        planned_bytes=8 * GIB,
        driver_bytes=400 * MIB,
        leave_free_bytes=256 * MIB,
        spare_bytes=GIB,
        buffer_bytes=7 * GIB,
        measured_bytes=7 * GIB + beside_mib * MIB,
        had_context=had_context,
    )


def failed(spare_mib: int | None, outcome: str = OUT_OF_MEMORY, spilled_mib: int = 0) -> LoadRecord:
    return LoadRecord(
        time_s=0.0,
        device=DEVICE,
        outcome=outcome,
        model="m",
        planned_bytes=8 * GIB,
        driver_bytes=400 * MIB,
        leave_free_bytes=256 * MIB,
        spare_bytes=None if spare_mib is None else spare_mib * MIB,
        spilled_bytes=spilled_mib * MIB or None,
    )


def test_nothing_is_known_of_a_new_device() -> None:
    assert learned((), DEVICE) == Learned()
    assert learned([loaded(300, device="CUDA1 RTX")], DEVICE) == Learned()


def test_the_drivers_share_is_the_middle_of_what_was_measured() -> None:
    records = [loaded(300), loaded(310), loaded(290)]
    assert learned(records, DEVICE) == Learned(300 * MIB, 0)


def test_one_load_that_went_further_makes_the_margin_larger() -> None:
    records = [loaded(300), loaded(300), loaded(390)]
    assert learned(records, DEVICE) == Learned(300 * MIB, 96 * MIB)


def test_what_another_program_took_meanwhile_is_no_driver() -> None:
    assert learned([loaded(300), loaded(5000), loaded(-2000)], DEVICE) == Learned(300 * MIB, 0)


def test_with_a_context_already_there_nothing_more_should_be_taken() -> None:
    assert learned([loaded(3, had_context=True)], DEVICE) == Learned(None, 0)
    assert learned([loaded(40, had_context=True)], DEVICE) == Learned(None, 48 * MIB)


def test_a_load_that_failed_though_it_was_said_to_fit() -> None:
    assert learned([failed(100)], DEVICE).extra_bytes == 176 * MIB
    assert learned([failed(-100)], DEVICE).extra_bytes == 0, "it was said not to fit"
    assert learned([failed(None)], DEVICE).extra_bytes == 0
    assert learned([failed(9000)], DEVICE).extra_bytes == GIB, "there is a limit"


def test_what_spilled_is_left_free_next_time() -> None:
    assert learned([failed(100, SPILLED, 200)], DEVICE).extra_bytes == 208 * MIB


def test_old_loads_are_forgotten() -> None:
    assert learned([failed(100), *[loaded(300)] * 20], DEVICE) == Learned(300 * MIB, 0)


def _machine(had_context: tuple[str, ...] = (), everywhere: int | None = None, **leave_free: int):
    device = BackendDevice("CUDA0", "RTX", "gpu", "CUDA", 11 * GIB, 12 * GIB)
    reading = GpuReading("RTX", "NVML", 12 * GIB, GIB, 11 * GIB, "CUDA0", drives_display=True)
    snapshot = MachineSnapshot(0.0, 32 * GIB, 16 * GIB, GIB, gpus=(reading,))
    records = [loaded(300), loaded(300), loaded(390)]
    return machine_of(
        [device],
        snapshot,
        OwnShare(),
        leave_free,
        everywhere,
        records=records,
        had_context=had_context,
    )


def test_the_machine_is_planned_with_what_was_learned() -> None:
    margins = _machine().margins
    assert margins.leave_free("CUDA0") == 512 * MIB + 96 * MIB
    assert margins.driver("CUDA0") == 300 * MIB


def test_the_users_own_margin_is_never_changed() -> None:
    assert _machine(CUDA0=GIB).margins.leave_free("CUDA0") == GIB
    assert _machine(everywhere=0).margins.leave_free("CUDA0") == 0


def test_a_context_that_is_there_is_not_counted_twice() -> None:
    assert _machine(had_context=("CUDA0",)).margins.driver("CUDA0") == 0


def spilled(spilled_mib: int) -> LoadRecord:
    return failed(0, SPILLED, spilled_mib)


_MARGIN = st.integers(0, 3000)


@given(
    layers=st.lists(st.tuples(st.integers(1, 900), st.integers(0, 3000)), min_size=2, max_size=8),
    free_mib=st.lists(st.integers(500, 12_000), min_size=1, max_size=2),
    past=st.lists(st.tuples(st.sampled_from([loaded, failed, spilled]), _MARGIN), max_size=4),
    stop=st.integers(0, 8),
    users_mib=st.none() | st.integers(0, 2000),
)
def test_what_was_learned_keeps_every_plan_within_its_margins(
    layers: list[tuple[int, int]],
    free_mib: list[int],
    past: list[tuple[Callable[[int], LoadRecord], int]],
    stop: int,
    users_mib: int | None,
) -> None:
    """A plan fits only if it leaves each card its margin; and if one fits, so does the one made."""
    facts = made_facts(
        [(dense * MIB, experts * MIB) for dense, experts in layers],
        keys={"embedding_length": 1024, "attention.head_count": 8, "attention.head_count_kv": 8},
    )
    devices = [
        BackendDevice(f"CUDA{index}", "RTX", "gpu", "CUDA", free * MIB, 12 * GIB)
        for index, free in enumerate(free_mib)
    ]
    records = [outcome(size) for outcome, size in past]
    users = None if users_mib is None else users_mib * MIB
    machine = machine_of(devices, None, OwnShare(), {}, users, records=records)
    context = ContextSettings(n_ctx=4096)
    margins = [machine.margins.leave_free(device.name) for device in devices]
    if users is None:
        assert min(margins) >= 256 * MIB
    else:
        assert margins == [users] * len(devices), "the user's own is never changed"

    def plan(split: tuple[float, ...] | None) -> MemoryForecast:
        placement = place(
            facts,
            machine.gpus,
            cpu_moe=stop,
            tensor_split=split,
            context=context,
            margins=machine.margins,
        )
        return forecast_on(facts, placement, context, machine)

    made = plan(None)
    for gpu in made.gpus:
        room = gpu.free_bytes - machine.margins.leave_free(gpu.name)
        assert gpu.fits == (gpu.used_bytes <= room or not gpu.used_bytes)
        if gpu.used_bytes:
            assert gpu.driver_bytes == machine.margins.driver(gpu.name)
    if len(devices) == 2 and not gpus_fit(made):
        n_all = len(layers) + 1
        cuts = ((first, n_all - first) for first in range(n_all + 1))
        assert not any(gpus_fit(plan(split_for_counts(cut))) for cut in cuts)
