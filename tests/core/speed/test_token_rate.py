"""Decode speed from token times."""

from __future__ import annotations

import math

import numpy as np
import pytest

from moelauncher.core.speed.token_rate import RateCurve, TokenRate


def tokens(rate: TokenRate, start_s: float, gap_s: float, n: int) -> float:
    for i in range(n):
        rate.add(start_s + i * gap_s)
    return start_s + (n - 1) * gap_s


def test_a_steady_stream() -> None:
    rate = TokenRate()
    now = tokens(rate, 100.0, 0.05, 200)
    assert rate.rate(now) == pytest.approx(20.0)
    assert rate.average() == pytest.approx(20.0)


def test_the_window_forgets_the_past() -> None:
    rate = TokenRate(window_s=2.0)
    end = tokens(rate, 0.0, 0.1, 100)
    now = tokens(rate, end + 0.02, 0.02, 150)
    assert rate.rate(now) == pytest.approx(50.0)
    assert 10 < rate.average() < 50


def test_the_first_token_is_not_counted() -> None:
    rate = TokenRate()
    rate.begin()
    rate.add(10.0)
    assert math.isnan(rate.rate(10.0))
    assert math.isnan(rate.average())
    rate.add(10.5)
    assert rate.average() == pytest.approx(2.0)


def test_nothing_and_silence_are_nan_not_zero() -> None:
    rate = TokenRate()
    assert math.isnan(rate.rate(5.0))
    now = tokens(rate, 0.0, 0.05, 20)
    assert math.isnan(rate.rate(now + 60))


def test_a_model_slower_than_the_window_still_has_a_rate() -> None:
    rate = TokenRate(window_s=2.0)
    now = tokens(rate, 0.0, 4.0, 5)
    assert rate.rate(now + 1.0) == pytest.approx(0.25)
    assert math.isnan(rate.rate(now + 13.0))


def test_a_new_reply_starts_anew() -> None:
    rate = TokenRate()
    tokens(rate, 0.0, 0.1, 50)
    rate.begin()
    now = tokens(rate, 6.0, 0.2, 5)
    assert rate.average() == pytest.approx(5.0)
    assert rate.rate(now) == pytest.approx(5.0)


def test_more_tokens_than_the_ring_holds() -> None:
    rate = TokenRate(window_s=1000.0, capacity=16)
    now = tokens(rate, 0.0, 0.5, 1000)
    assert rate.rate(now) == pytest.approx(2.0)
    assert rate.average() == pytest.approx(2.0)


def test_equal_times_do_not_divide_by_zero() -> None:
    rate = TokenRate()
    rate.add(1.0)
    rate.add(1.0)
    assert math.isnan(rate.rate(1.0))
    assert math.isnan(rate.average())


def test_the_curve_is_in_order_and_bounded() -> None:
    curve = RateCurve(capacity=10)
    for i in range(35):
        curve.sample(float(i), float(i))
        times, rates = curve.arrays()
        assert len(times) == min(i + 1, 10)
        assert times[-1] == i
        assert np.array_equal(times, rates)
        assert np.all(np.diff(times) == 1)


def test_silence_costs_two_samples() -> None:
    curve = RateCurve(capacity=10)
    curve.sample(0.0, 5.0)
    for i in range(1, 100):
        curve.sample(float(i), math.nan)
    curve.sample(100.0, 6.0)
    times, rates = curve.arrays()
    assert times.tolist() == [0.0, 1.0, 99.0, 100.0]
    assert np.isnan(rates).tolist() == [False, True, True, False]


def test_marks_leave_with_the_curve() -> None:
    curve = RateCurve(capacity=3)
    curve.mark(0.5, "30 > 24")
    curve.sample(0.0, 1.0)
    curve.mark(1.5, "24 > 20")
    for i in range(1, 4):
        curve.sample(float(i), 1.0)
    assert [mark.text for mark in curve.marks()] == ["24 > 20"]
    curve.clear()
    assert curve.marks() == ()
    assert len(curve.arrays()[0]) == 0


def test_a_mark_before_the_first_sample_stays_until_samples_are_forgotten() -> None:
    curve = RateCurve(4)
    curve.mark(1.0, "30 › 24")
    curve.sample(2.0, 10.0)
    assert [mark.text for mark in curve.marks()] == ["30 › 24"]
    for now_s in (3.0, 4.0, 5.0, 6.0):
        curve.sample(now_s, 10.0)
    assert curve.marks() == ()
