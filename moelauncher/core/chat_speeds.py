"""The fastest reply that each model gave here, and at which placement: what its card tells.

In: a reply's rate. Out: values that the window's state can hold, and the line about them. These are
chats as they came, not measurements: one reply, whatever else the machine did. Pure; one thread.
"""

from __future__ import annotations

from collections.abc import Mapping

from moelauncher.core.translate import tr
from moelauncher.core.units import format_rate

#: A reply shorter than this says little about a rate.
LEAST_TOKENS = 48
_MOST_MODELS = 512


def with_reply(
    stored: object, path: str, tok_s: float | None, n_tokens: int, cpu_moe: int, of: int
) -> dict[str, object] | None:
    """``stored`` with this reply, where it is the fastest so far; None where nothing changes."""
    if tok_s is None or not tok_s > 0 or n_tokens < LEAST_TOKENS:
        return None
    speeds = dict(stored) if isinstance(stored, dict) else {}
    known = _known(speeds.get(path))
    if known is not None and known[0] >= tok_s:
        return None
    speeds.pop(path, None)
    speeds[path] = {"tok_s": round(tok_s, 2), "cpu_moe": cpu_moe, "of": of}
    return dict(list(speeds.items())[-_MOST_MODELS:])


def speed_text(stored: object, path: str) -> str:
    """What is known of the model at ``path``, as a line; "" where nothing is."""
    known = _known(stored.get(path)) if isinstance(stored, Mapping) else None
    if known is None:
        return ""
    tok_s, cpu_moe, of = known
    if not of:
        return tr("{rate} in a chat here").format(rate=format_rate(tok_s))
    return tr("{rate} in a chat here, with {n} of {of} expert layers on the CPU").format(
        rate=format_rate(tok_s), n=cpu_moe, of=of
    )


def _known(value: object) -> tuple[float, int, int] | None:
    if not isinstance(value, Mapping):
        return None
    tok_s, cpu_moe, of = value.get("tok_s"), value.get("cpu_moe"), value.get("of")
    if isinstance(tok_s, bool) or not isinstance(tok_s, int | float) or not tok_s > 0:
        return None
    if type(cpu_moe) is not int or type(of) is not int:
        return None
    return float(tok_s), cpu_moe, of
