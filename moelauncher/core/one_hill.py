"""The one hill that lies closest to a row of values: rising to its top, then falling.

In: values and their weights, in order. Out: the hill's values. Pure; any thread. What breaks
the rise or the fall is averaged away, so that noise makes no second top.
"""

from __future__ import annotations

from collections.abc import Sequence


def one_hill(values: Sequence[float], weights: Sequence[float]) -> list[float]:
    """The unimodal least-squares fit (pool adjacent violators on both sides of each top)."""
    best: list[float] = []
    best_error = float("inf")
    for top in range(len(values)):
        left = _rising(values[: top + 1], weights[: top + 1])
        right = _rising(values[top + 1 :][::-1], weights[top + 1 :][::-1])[::-1]
        hill = left + right
        error = sum(w * (v - h) ** 2 for v, w, h in zip(values, weights, hill, strict=True))
        if error < best_error - 1e-12 and (not right or right[0] <= left[-1] + 1e-12):
            best, best_error = hill, error
    return best


def _rising(values: Sequence[float], weights: Sequence[float]) -> list[float]:
    blocks: list[tuple[float, float, int]] = []  # mean, weight, length
    for value, weight in zip(values, weights, strict=True):
        blocks.append((value, weight, 1))
        while len(blocks) > 1 and blocks[-2][0] > blocks[-1][0]:
            (a, wa, na), (b, wb, nb) = blocks[-2:]
            blocks[-2:] = [((a * wa + b * wb) / (wa + wb), wa + wb, na + nb)]
    return [mean for mean, _, length in blocks for _ in range(length)]
