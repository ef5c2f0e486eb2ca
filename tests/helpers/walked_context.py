"""A conversation of given tokens whose context goes from place to place, token by token.

No engine around it: here is looked at what a move does to the next token's distribution, and held
against runs that never moved.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from moelauncher.core.engine_protocol import LoadRequest
from moelauncher.engine.evaluated_context import EvaluatedContext
from moelauncher.engine.load_model import LoadedModel, ModelContext, load_weights, make_context
from moelauncher.engine.native import load_native, log_to
from moelauncher.engine.stop_flag import StopFlag

#: KL (nats) that a move may add to what undisturbed runs differ.
ADDED_KL = 1e-3

LogProbabilities = NDArray[np.float64]
_Place = TypeVar("_Place")


class WalkedContext:
    """One conversation. Its models and contexts live until ``stack`` is closed."""

    def __init__(self, place: LoadRequest, stack: ExitStack) -> None:
        self._stack, self._stop = stack, StopFlag()
        self._lines: list[tuple[str, str]] = []
        stack.enter_context(log_to(lambda level, text: self._lines.append((level, text))))
        made = self._made(place)
        self.context = EvaluatedContext(self.model, made, self._stop)

    def _made(self, place: LoadRequest) -> ModelContext:
        self.model: LoadedModel = load_weights(
            load_native(), place, lambda _: None, lambda: False, self._lines
        )
        self._stack.callback(self.model.free)
        made = make_context(self.model, place.context, self._stop, self._lines)
        self._stack.callback(made.free)
        return made

    def go_to(self, place: LoadRequest) -> None:
        """Weights and context anew, also where ``place`` is the same; the state is carried."""
        saved = self.context.save(lambda: None)
        made = self._made(place)
        reason = self.context.move_to(self.model, made, saved)
        assert reason == "", reason

    def read(self, token: int) -> LogProbabilities:
        """The logarithms of the next token's probabilities after ``token``."""
        assert self.context.decoder()(token)
        row = self.model.native.lib.llama_get_logits_ith(self.context.handle, -1)
        logits = np.array(row[: self.model.vocabulary.n_tokens], dtype=np.float64)
        logits -= logits.max()
        return logits - np.log(np.exp(logits).sum())


def tokens_of(place: LoadRequest, text: str) -> list[int]:
    """``text`` in the tokens of that model."""
    with ExitStack() as stack:
        return WalkedContext(place, stack).model.vocabulary.tokenise(text)


def divergence(one: LogProbabilities, other: LogProbabilities) -> float:
    """Kullback-Leibler, in nats."""
    return float((np.exp(one) * (one - other)).sum())


@dataclass(frozen=True)
class MovedToken:
    """The next token's distribution after one token of a conversation that moves: how far it
    is from the undisturbed run ``at`` that place, and how far the undisturbed runs of the places
    seen so far are from that run, at the same token."""

    at: int
    moved: float
    undisturbed: float

    @property
    def is_close(self) -> bool:
        """Whether the move added no more than it may."""
        return self.moved <= ADDED_KL + self.undisturbed


@dataclass(frozen=True)
class Walk:
    """``moved_tokens``: each token after the first move. ``stayed``: the largest divergence of a
    run that moves from its place to the same place. ``lost``: as ``moved_tokens``, of a run
    at the second place that lacks the oldest token."""

    moved_tokens: list[MovedToken]
    stayed: float
    lost: list[MovedToken]


def walk(
    places: Mapping[int, LoadRequest], way: Sequence[int], tokens: Sequence[int], each: int
) -> Walk:
    """Read ``tokens``, of which the last ``each`` times ``len(way) - 1`` come after a move.

    Two undisturbed runs under one placement repeat to the last bit. What undisturbed runs can
    differ is what placements differ, by the rounding of other kernels; and all that a
    conversation has read under one of them stays in the state that it takes along. So a moved
    run may be as far from the undisturbed one as are the runs of the places that it has seen.
    """
    first, rest = tokens[: -each * (len(way) - 1)], tokens[-each * (len(way) - 1) :]
    still = {at: _read(places[at], tokens)[-len(rest) :] for at in set(way)}

    def held(found: Sequence[LogProbabilities], ats: Sequence[int]) -> list[MovedToken]:
        seen = [set(way[: n // each + 2]) for n in range(len(found))]
        return [
            MovedToken(
                at,
                divergence(row, still[at][n]),
                max(divergence(still[other][n], still[at][n]) for other in seen[n]),
            )
            for n, (row, at) in enumerate(zip(found, ats, strict=True))
        ]

    ats = [at for at in way[1:] for _ in range(each)]
    moved = _read(
        places[way[0]], tokens, {len(first) + each * n: places[at] for n, at in enumerate(way[1:])}
    )
    stayed = _read(places[way[0]], tokens, {len(first): places[way[0]]})
    lost = _read(places[way[1]], [*first[1:], *rest[:each]])
    return Walk(
        held(moved[-len(rest) :], ats),
        max(
            divergence(one, other)
            for one, other in zip(stayed[-len(rest) :], still[way[0]], strict=True)
        ),
        held(lost[-each:], ats[:each]),
    )


def _read(
    place: LoadRequest, tokens: Sequence[int], moves: Mapping[int, LoadRequest] | None = None
) -> list[LogProbabilities]:
    """Every token in turn, with ``moves`` before the tokens of those numbers."""
    with ExitStack() as stack:
        walked = WalkedContext(place, stack)
        found = []
        for number, token in enumerate(tokens):
            if moves and number in moves:
                walked.go_to(moves[number])
            found.append(walked.read(token))
        return found
