"""One hill through noisy values."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moelauncher.core.one_hill import one_hill


def test_a_hill_stays_as_it_is() -> None:
    assert one_hill([1, 3, 5, 4, 2], [1] * 5) == [1, 3, 5, 4, 2]


def test_a_second_top_is_averaged_away() -> None:
    assert one_hill([5, 3, 4, 1], [1] * 4) == [5, 3.5, 3.5, 1]


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=12))
def test_it_rises_then_falls(values: list[float]) -> None:
    hill = one_hill(values, [1.0] * len(values))
    assert len(hill) == len(values)
    top = hill.index(max(hill))
    assert list(hill[: top + 1]) == pytest.approx(sorted(hill[: top + 1]))
    assert list(hill[top:]) == pytest.approx(sorted(hill[top:], reverse=True))
