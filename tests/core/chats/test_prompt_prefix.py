"""What of an evaluated prompt serves the next."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moelauncher.core.chats.prompt_prefix import (
    PrefixPlan,
    common_prefix,
    least_missed,
    plan_prefix,
)

TOKENS = st.lists(st.integers(0, 2), max_size=40)


@given(TOKENS, TOKENS)
def test_common_prefix_is_the_longest(first: list[int], second: list[int]) -> None:
    length = common_prefix(first, second)
    assert first[:length] == second[:length]
    rest = first[length : length + 1], second[length : length + 1]
    assert not (rest[0] and rest[1] and rest[0] == rest[1])


@given(
    TOKENS,
    TOKENS,
    st.integers(0, 40),
    st.integers(0, 20),
    st.booleans(),
    st.lists(st.integers(0, 40)),
)
def test_plan_keeps_only_what_is_equal_and_leaves_a_token_to_compute(
    evaluated: list[int],
    wanted: list[int],
    oldest: int,
    window: int,
    recurrent: bool,
    checkpoints: list[int],
) -> None:
    plan = plan_prefix(
        evaluated,
        wanted,
        oldest_position=oldest,
        window=window,
        recurrent=recurrent,
        checkpoints=checkpoints,
    )
    assert plan.keep <= max(len(wanted) - 1, 0)
    assert evaluated[: plan.keep] == wanted[: plan.keep]
    assert plan.checkpoint is None or plan.checkpoint in checkpoints


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ({"oldest_position": 0}, PrefixPlan(60)),
        # Cells that the window needs are there, or gone.
        ({"oldest_position": 50, "window": 10}, PrefixPlan(60)),
        ({"oldest_position": 51, "window": 10}, PrefixPlan(0)),
        ({"oldest_position": 51, "window": 10, "checkpoints": (20, 40, 70)}, PrefixPlan(40, 40)),
        # A state cannot be cut, only restored.
        ({"oldest_position": 0, "recurrent": True}, PrefixPlan(0)),
        ({"oldest_position": 0, "recurrent": True, "checkpoints": (60, 40)}, PrefixPlan(60, 60)),
        # Nothing of the cache is left.
        ({"oldest_position": -1, "recurrent": True, "checkpoints": ()}, PrefixPlan(0)),
    ],
)
def test_parting_after_60_of_100_tokens(limits: dict[str, object], expected: PrefixPlan) -> None:
    evaluated = list(range(100))
    wanted = [*range(60), 999, 998]
    assert plan_prefix(evaluated, wanted, **limits) == expected  # type: ignore[arg-type]


def test_going_on_needs_no_cut_even_of_a_recurrent_state() -> None:
    plan = plan_prefix([1, 2, 3], [1, 2, 3, 4], oldest_position=2, recurrent=True)
    assert plan == PrefixPlan(3)


@pytest.mark.parametrize(
    ("lengths", "given_up"),
    [
        ([10], 0),
        ([10, 20], 0),
        ([10, 20, 30], 0),
        ([10, 20, 30, 40], 1),
        ([10, 20, 25, 900, 1000, 1010], 1),
        ([10, 500, 505, 510, 1000, 1010], 2),
    ],
)
def test_which_checkpoint_is_missed_least(lengths: list[int], given_up: int) -> None:
    assert least_missed(lengths) == given_up
