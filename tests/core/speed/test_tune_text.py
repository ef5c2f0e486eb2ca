"""What a sweep found, in words."""

from __future__ import annotations

from moelauncher.core.speed.sweep import SweepDecision
from moelauncher.core.speed.tune_text import decision_text


def decision(best: int | None, rates: dict[int, float], **more: object) -> SweepDecision:
    equal = () if best is None else (best,)
    return SweepDecision(best, equal, rates, (), 0.02, True, **more)  # type: ignore[arg-type]


def test_the_fastest_and_what_it_gains() -> None:
    text = decision_text(decision(18, {18: 48.2, 40: 38.5}), present=40)
    assert text == "18 is the fastest: 48.2 tok/s. That is 25 % more than your 40 (38.5 tok/s)."


def test_equal_stops_and_what_the_roomier_leaves() -> None:
    tie = SweepDecision(28, (24, 26, 28), {24: 40.0, 26: 40.1, 28: 40.0}, (), 0.02, True)
    text = decision_text(tie, spare_bytes=1181116006, present=24)
    assert "24 to 28 are equal within the noise: take 28, it leaves 1.1 GiB free" in text
    assert "Your setting (24) is as fast." in text


def test_layers_of_a_dense_model_are_counted_on_the_gpu() -> None:
    tie = SweepDecision(3, (1, 3), {1: 40.0, 3: 40.0}, (), 0.02, True)
    text = decision_text(tie, label=lambda stop: 30 - stop)
    assert "27 to 29 are equal within the noise: take 27" in text


def test_prompts_may_want_another_stop() -> None:
    rates, prompts = {24: 33.0, 28: 30.0}, {24: 385.0, 28: 2090.0}
    text = decision_text(decision(24, rates, prompt_rates=prompts))
    assert "Prompts are read faster at 28: 2090 tok/s against 385 tok/s." in text
    alike = decision(24, rates, prompt_rates={24: 385.0, 28: 400.0})
    assert "Prompts" not in decision_text(alike)


def test_levers_have_their_sentences() -> None:
    text = decision_text(decision(24, {24: 33.0, 30: 30.0}, lever_notes=("6 threads: faster.",)))
    assert text.endswith("6 threads: faster.")


def test_little_is_told_where_little_is_known() -> None:
    assert decision_text(decision(None, {})) == "Nothing could be measured."
    assert decision_text(decision(8, {8: 20.0})) == "Only 8 was measured: 20.0 tok/s."
    assert "all stops are the same" in decision_text(decision(8, {8: 20.0}), one_place=True)
