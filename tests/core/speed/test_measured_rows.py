"""What a row says beside its numbers."""

from __future__ import annotations

from moelauncher.core.speed.measured_rows import measured_rows
from tests.core.speed.test_measurement_store import measurement


def busy(percent: int) -> str:
    return f"Other programs used {percent} % of the processor."


def test_remarks_that_differ_in_one_number_are_one_with_its_range() -> None:
    notes = [(busy(82),), (busy(9), "On battery."), (busy(100),), (busy(82),)]
    (row,) = measured_rows([measurement(notes=note) for note in notes])
    assert row.remarks == ("Other programs used 9–100 % of the processor.", "On battery.")


def test_remarks_with_several_numbers_or_other_units_stay_apart() -> None:
    held = (
        "RTX 4070 held 1.5 GiB.",
        "RTX 4080 held 2 GiB.",
        "1,024 MiB spilled.",
        "2 GiB spilled.",
    )
    (row,) = measured_rows([measurement(notes=(note,)) for note in held])
    assert row.remarks == held


def test_what_left_a_repeat_out_is_said_first_and_not_again() -> None:
    runs = [
        measurement(disturbance=busy(90), notes=(busy(90),)),
        measurement(disturbance=busy(1_000), notes=(busy(1_000),)),
        measurement(notes=(busy(30),)),
    ]
    (row,) = measured_rows(runs)
    assert row.remarks == (
        "2 left out:",
        "Other programs used 90–1000 % of the processor.",
        busy(30),
    )
