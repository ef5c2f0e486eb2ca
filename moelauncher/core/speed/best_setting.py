"""The best setting that was measured of each model here, as its row in the list tells it.

In: what Tune measured, what chats gave. Out: values that the window's state can hold, and the
line in the row. Pure; one thread.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from moelauncher.core.speed.chat_speeds import known_reply
from moelauncher.core.translate import tr
from moelauncher.core.units import format_rate

_MOST_MODELS = 512
#: Faster than this the tenths say nothing.
_WHOLE_FROM = 10.0


@dataclass(frozen=True)
class BestSetting:
    """``n`` of ``of`` layers (a dense model's layers, else expert layers) are on the CPU;
    ``of`` 0: nothing was divided. ``tuned``: repeated measurements, not one reply in a chat."""

    tok_s: float
    n: int
    of: int
    tuned: bool

    @property
    def text(self) -> str:
        """The line; short, for a row has little room."""
        rate = format_rate(self.tok_s)
        if self.tok_s >= _WHOLE_FROM:
            rate = tr("{n:.0f} tok/s").format(n=self.tok_s)
        if not self.of:
            return tr("{rate} here").format(rate=rate)
        if not self.n:
            return tr("all on the GPU · {rate}").format(rate=rate)
        return tr("{n} of {of} layers on CPU · {rate}").format(n=self.n, of=self.of, rate=rate)


def with_tuned(stored: object, path: str, best: BestSetting | None) -> dict[str, object]:
    """``stored`` with what is measured of the model at ``path`` now; None: nothing any more."""
    kept = dict(stored) if isinstance(stored, Mapping) else {}
    kept.pop(path, None)
    if best is not None:
        kept[path] = {"tok_s": round(best.tok_s, 2), "n": best.n, "of": best.of}
    return dict(list(kept.items())[-_MOST_MODELS:])


def best_setting(tuned: object, replies: object, path: str) -> BestSetting | None:
    """What is known of the model at ``path``: measurements before chats."""
    value = tuned.get(path) if isinstance(tuned, Mapping) else None
    if isinstance(value, Mapping):
        tok_s, n, of = value.get("tok_s"), value.get("n"), value.get("of")
        if isinstance(tok_s, float | int) and tok_s > 0 and type(n) is int and type(of) is int:
            return BestSetting(float(tok_s), n, of, tuned=True)
    reply = known_reply(replies, path)
    return None if reply is None else BestSetting(*reply, tuned=False)
