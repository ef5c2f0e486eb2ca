"""The margin is learned upward, the driver's share by the middle of what was measured."""

from __future__ import annotations

from moelauncher.core.launch_plan import machine_of
from moelauncher.core.learned_margin import Learned, learned
from moelauncher.core.load_records import LOADED, OUT_OF_MEMORY, SPILLED, LoadRecord
from moelauncher.core.machine import BackendDevice, GpuReading, MachineSnapshot
from moelauncher.core.own_share import OwnShare
from moelauncher.core.units import GIB, MIB

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
