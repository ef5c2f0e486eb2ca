"""What else the machine did: what is a note, and what spoils a run."""

from __future__ import annotations

import pytest

from moelauncher.core.speed.conditions import Conditions, condition_notes, disturbance

QUIET = Conditions(others_cpu=0.05)


@pytest.mark.parametrize(
    ("now", "word"),
    [
        (Conditions(others_cpu=0.6), "60 %"),
        (Conditions(slept_s=30.0), "slept"),
        (Conditions(swapped_bytes=1 << 30), "swap"),
        (Conditions(throttled=("too hot",)), "too hot"),
    ],
)
def test_disturbances(now: Conditions, word: str) -> None:
    assert word in disturbance(now, QUIET)


@pytest.mark.parametrize(
    "now",
    [
        Conditions(),
        Conditions(others_cpu=0.2),
        Conditions(on_battery=True),
        Conditions(throttled=("power limit",)),
        Conditions(swapped_bytes=1000),
    ],
)
def test_what_does_not_spoil_a_run(now: Conditions) -> None:
    assert disturbance(now, QUIET) == ""


def test_a_machine_that_is_always_busy_disturbs_all_alike() -> None:
    busy = Conditions(others_cpu=0.8, throttled=("too hot",))
    assert disturbance(busy, busy) == ""
    assert "80 %" in " ".join(condition_notes(busy))


def test_each_condition_has_its_note() -> None:
    notes = " ".join(
        condition_notes(
            Conditions(
                on_battery=True,
                power_profile="power-saver",
                read_bytes=2 << 30,
                ram_free_bytes=100 << 20,
                spilled_bytes=900 << 20,
                throttled=("power limit",),
                gpu_others=(("game.exe", 3 << 30), ("browser", 1 << 30)),
            )
        )
    )
    words = ("battery", "power-saver", "2.0 GiB", "100 MiB", "900 MiB", "power limit", "game.exe")
    for word in words:
        assert word in notes
    assert condition_notes(Conditions()) == ()
