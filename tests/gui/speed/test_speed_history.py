"""gui/speed/speed_history.py: samples a wide pen can afford, gaps kept, prompt phases."""

from __future__ import annotations

import math

import numpy as np

from moelauncher.gui.speed.speed_history import CAPACITY, SpeedHistory


def test_close_samples_are_thinned_but_the_newest_is_always_there() -> None:
    history = SpeedHistory()
    for i in range(301):
        history.add_rate(100 + i / 30, 30.0 + i)
    times, rates = history.arrays(0)
    assert len(times) <= 22
    assert times[-1] == 110
    assert rates[-1] == 330
    assert np.all(np.diff(times) > 0)


def test_a_gap_ends_the_line_where_it_was_last_known() -> None:
    history = SpeedHistory()
    history.add_rate(10.0, 30.0)
    history.add_rate(10.2, 31.0)
    history.add_rate(10.3, None)
    history.add_rate(10.4, 40.0)
    times, rates = history.arrays(0)
    assert list(times) == [10.0, 10.2, 10.3, 10.4]
    assert math.isnan(rates[2])
    assert rates[3] == 40.0


def test_only_what_is_asked_for() -> None:
    history = SpeedHistory()
    for second in range(100):
        history.add_rate(float(second), 1.0)
    history.mark(20.0, "30 › 24")
    history.mark(80.0, "24 › 20")
    history.shade(10.0, 12.0)
    history.shade(48.0, 52.0)
    assert history.arrays(50.0)[0][0] == 50.0
    assert [mark.text for mark in history.marks(50.0)] == ["24 › 20"]
    assert history.shades(50.0) == [(50.0, 52.0)]


def test_a_growing_prompt_phase_is_one_shade() -> None:
    history = SpeedHistory()
    for end in (11.0, 12.0, 13.0):
        history.shade(10.0, end)
    assert history.shades(0.0) == [(10.0, 13.0)]


def test_the_memory_is_bounded() -> None:
    history = SpeedHistory()
    for i in range(5 * CAPACITY):
        history.add_rate(float(i), 1.0)
        history.shade(float(i), i + 0.5)
    assert len(history.arrays(0)[0]) == CAPACITY
    assert len(history.shades(0)) <= 60


def test_the_rate_at_a_time() -> None:
    history = SpeedHistory()
    history.add_rate(10.0, 30.0)
    history.add_rate(11.0, None)
    history.add_rate(12.0, 40.0)
    assert history.rate_at(9.0) is None
    assert history.rate_at(10.5) == 30.0
    assert history.rate_at(11.5) is None
    assert history.rate_at(99.0) == 40.0


def test_the_window_grows_with_what_there_is() -> None:
    history = SpeedHistory()
    assert history.window_s == 30.0
    history.shade(95.0, 100.0)
    for end, window in ((125.0, 30.0), (126.0, 60.0), (156.0, 180.0), (9999.0, 180.0)):
        history.add_rate(end, 1.0)
        assert history.window_s == window
