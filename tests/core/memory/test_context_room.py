"""What to leave out when a conversation no longer fits."""

from __future__ import annotations

import pytest

from moelauncher.core.memory.context_room import nearly_full, oldest_to_leave_out

#: Four questions and answers of 100 and 300 tokens, and the question being written.
TURNS = [(key, 100 if key % 2 else 300, bool(key % 2)) for key in range(1, 9)] + [(0, 50, True)]


@pytest.mark.parametrize(
    ("n_prompt", "n_ctx", "expected"),
    [(3000, 4096, False), (3840, 4096, False), (3841, 4096, True), (9000, 4096, True)],
)
def test_said_before_it_is_full(n_prompt: int, n_ctx: int, expected: bool) -> None:
    assert nearly_full(n_prompt, n_ctx) is expected


@pytest.mark.parametrize(
    ("n_prompt", "n_ctx", "keep_first", "left_out"),
    [
        (1650, 3400, 0, ()),
        (1650, 3200, 0, (1, 2)),
        (1650, 2000, 0, (1, 2, 3, 4)),
        (1650, 2000, 2, (3, 4, 5, 6)),
        (1650, 100, 0, (1, 2, 3, 4, 5, 6, 7, 8)),
        (1650, 100, 99, ()),
    ],
)
def test_the_oldest_go_in_whole_pairs(
    n_prompt: int, n_ctx: int, keep_first: int, left_out: tuple[int, ...]
) -> None:
    assert oldest_to_leave_out(TURNS, n_prompt, n_ctx, keep_first) == left_out


def test_the_last_question_stays() -> None:
    assert oldest_to_leave_out([(1, 9000, True)], 9000, 512) == ()
    assert oldest_to_leave_out([], 9000, 512) == ()
