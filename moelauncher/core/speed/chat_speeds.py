"""The fastest reply that each model gave here, and at which placement: what its card tells.

In: a reply's rate. Out: values that the window's state can hold, and the line about them. These are
chats as they came, not measurements: one reply, whatever else the machine did. Pure; one thread.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from moelauncher.core.translate import tr
from moelauncher.core.units import format_rate

if TYPE_CHECKING:
    from moelauncher.core.speed.speed_prediction import TokenTraffic

#: A reply shorter than this says little about a rate.
LEAST_TOKENS = 48
_MOST_MODELS = 512


def with_reply(
    stored: object,
    path: str,
    tok_s: float | None,
    n_tokens: int,
    cpu_moe: int,
    of: int,
    reads: TokenTraffic | None = None,
) -> dict[str, object] | None:
    """``stored`` with this reply, where it is the fastest so far; None where nothing changes.

    ``reads`` is what one token of it read: it tells what other models can expect here.
    """
    if tok_s is None or not tok_s > 0 or n_tokens < LEAST_TOKENS:
        return None
    speeds = dict(stored) if isinstance(stored, dict) else {}
    known = _known(speeds.get(path))
    if known is not None and known[0] >= tok_s:
        return None
    speeds.pop(path, None)
    reply: dict[str, object] = {"tok_s": round(tok_s, 2), "cpu_moe": cpu_moe, "of": of}
    if reads is not None:
        values = (reads.ram_bytes, reads.vram_bytes, reads.bus_bytes, reads.hand_overs)
        reply["reads"] = [round(value) for value in values]
    speeds[path] = reply
    return dict(list(speeds.items())[-_MOST_MODELS:])


def speed_text(stored: object, path: str) -> str:
    """What is known of the model at ``path``, as a line; "" where nothing is."""
    known = known_reply(stored, path)
    if known is None:
        return ""
    tok_s, cpu_moe, of = known
    if not of:
        return tr("{rate} in a chat here").format(rate=format_rate(tok_s))
    return tr("{rate} in a chat here, with {n} of {of} expert layers on the CPU").format(
        rate=format_rate(tok_s), n=cpu_moe, of=of
    )


def known_reply(stored: object, path: str) -> tuple[float, int, int] | None:
    """tok/s of a model's fastest reply, and how many of how many expert layers were in RAM."""
    return _known(stored.get(path)) if isinstance(stored, Mapping) else None


def reply_speeds(stored: object) -> list[tuple[TokenTraffic, float]]:
    """What a token read, and tok/s, of each model's fastest reply."""
    from moelauncher.core.speed.speed_prediction import TokenTraffic

    found = []
    for value in stored.values() if isinstance(stored, Mapping) else ():
        known = _known(value)
        reads = value.get("reads") if known is not None else None
        if known is None or not isinstance(reads, list) or len(reads) != 4:
            continue
        if all(type(number) is int and number >= 0 for number in reads):
            ram, vram, bus, hand_overs = reads
            found.append((TokenTraffic(vram, ram, bus, hand_overs), known[0]))
    return found


def _known(value: object) -> tuple[float, int, int] | None:
    if not isinstance(value, Mapping):
        return None
    tok_s, cpu_moe, of = value.get("tok_s"), value.get("cpu_moe"), value.get("of")
    if isinstance(tok_s, bool) or not isinstance(tok_s, int | float) or not tok_s > 0:
        return None
    if type(cpu_moe) is not int or type(of) is not int:
        return None
    return float(tok_s), cpu_moe, of
