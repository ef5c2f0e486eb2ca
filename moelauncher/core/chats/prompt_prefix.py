"""How much of an evaluated prompt serves the next one.

In: the tokens that are in the context, the tokens that are wanted there, what the kind of
cache allows. Out: :class:`PrefixPlan`. Pure, any thread.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class PrefixPlan:
    """``keep`` tokens stay; first restore the checkpoint of ``checkpoint`` tokens, if any."""

    keep: int
    checkpoint: int | None = None


def common_prefix(first: Sequence[int], second: Sequence[int]) -> int:
    """The number of leading tokens that both have in common."""
    length = min(len(first), len(second))
    if list(first[:length]) == list(second[:length]):
        return length
    low, high = 0, length  # the first `low` are equal, the first `high` are not
    while high - low > 1:
        middle = (low + high) // 2
        if list(first[low:middle]) == list(second[low:middle]):
            low = middle
        else:
            high = middle
    return low


def plan_prefix(
    evaluated: Sequence[int],
    wanted: Sequence[int],
    *,
    oldest_position: int,
    window: int = 0,
    recurrent: bool = False,
    checkpoints: Sequence[int] = (),
) -> PrefixPlan:
    """What to keep of ``evaluated`` so that only the rest of ``wanted`` is computed.

    ``oldest_position`` is the first position whose cells the cache still has;
    ``window`` is the sliding window in tokens (0: none), ``recurrent`` says that the cache
    cannot be cut at all; ``checkpoints`` are the lengths (in tokens) at which a state was
    saved. At least one token of ``wanted`` is always left to compute: its logits are needed.
    """
    shared = min(common_prefix(evaluated, wanted), max(len(wanted) - 1, 0))
    if shared == 0:
        return PrefixPlan(0)
    if shared == len(evaluated):
        return PrefixPlan(shared)
    if not recurrent and oldest_position <= max(0, shared - window if window else 0):
        return PrefixPlan(shared)
    usable = [length for length in checkpoints if 0 < length <= shared]
    return PrefixPlan(max(usable), max(usable)) if usable else PrefixPlan(0)


def least_missed(checkpoints: Sequence[int]) -> int:
    """Which of the saved lengths to give up for want of room: its index.

    The first stands for the system prompt, the last two for what comes next; of the others
    the one whose neighbours are nearest goes, so that old parts of a chat stay reachable.
    """
    inner = range(1, len(checkpoints) - 2)
    if not inner:
        return 0
    return min(inner, key=lambda at: checkpoints[at + 1] - checkpoints[at - 1])
