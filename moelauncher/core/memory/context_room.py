"""Whether a conversation still fits into the context, and what to leave out if not.

In: token counts. Out: a verdict, or how many of the oldest turns go. Pure; any thread.
"""

from __future__ import annotations

from collections.abc import Sequence

#: A reply shorter than this is hardly one: so much room is wanted behind the prompt.
REPLY_TOKENS = 256


def reply_room(n_ctx: int) -> int:
    """The tokens that shall stay free for a reply."""
    return min(REPLY_TOKENS, n_ctx // 8)


def nearly_full(n_prompt: int, n_ctx: int) -> bool:
    """Whether a reply to a prompt of ``n_prompt`` tokens would soon end for want of room."""
    return n_prompt + reply_room(n_ctx) > n_ctx


def oldest_to_leave_out(
    costs: Sequence[tuple[int, int, bool]], n_prompt: int, n_ctx: int, keep_first: int = 0
) -> tuple[int, ...]:
    """The keys of the oldest turns without which there is room for a reply again.

    ``costs``: of each turn that the model is still given, oldest first, its key, its tokens
    and whether it is the user's. The first ``keep_first`` turns and the last question stay.
    What stays begins with a question, as templates want it. Half of the context is made
    free, so that the offer does not come back at every message; less where there is less.
    """
    wanted = n_prompt - n_ctx // 2
    last_question = max((at for at, cost in enumerate(costs) if cost[2]), default=0)
    left_out: list[int] = []
    for at, (key, n_tokens, _) in enumerate(costs[:last_question]):
        if at < keep_first:
            continue
        begins_anew = costs[at][2]
        if wanted <= 0 and begins_anew:
            break
        left_out.append(key)
        wanted -= n_tokens
    return tuple(left_out)
