"""What was remarked of several repeats, each thing said once."""

from __future__ import annotations

from moelauncher.core.speed.remarks import each_once


def busy(percent: int) -> str:
    return f"Other programs used {percent} % of the processor."


def test_what_differs_in_one_number_is_said_once_with_range_and_count() -> None:
    texts = [busy(41), "On battery.", busy(43), "On battery.", "On battery."]
    assert each_once(texts, 3) == [
        "Other programs used 41–43 % of the processor. (in 2 of 3 repeats)",
        "On battery.",
    ]


def test_without_a_number_of_repeats_nothing_is_counted() -> None:
    assert each_once([busy(41), busy(41)]) == [busy(41)]
    assert each_once([]) == []
