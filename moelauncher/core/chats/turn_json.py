"""Turns as JSON values and back, for the chat database and for exported chats.

In and out: dictionaries that ``json`` can hold. Reading forgives: a field that makes no
sense is left at its default, since a person or another version may have written the file.
Pure; any thread.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, asdict, fields
from typing import Any, TypeVar

from moelauncher.core.chats.turn import Turn, TurnState
from moelauncher.core.engine_protocol import GenerationStats, Sampling
from moelauncher.core.errors import LauncherError, TemplateRefused

#: No count, time or rate of a reply comes near it.
MOST = 2**53

Made = TypeVar("Made", GenerationStats, Sampling)


def details_of(turn: Turn) -> dict[str, object]:
    """All of a turn but role, text, reasoning and state."""
    found: dict[str, object] = {}
    if turn.label:
        found["label"] = turn.label
    if turn.placement_text:
        found["placement"] = turn.placement_text
    if turn.thought_s is not None:
        found["thought_s"] = round(turn.thought_s, 3)
    if turn.stats is not None:
        found["stats"] = asdict(turn.stats)
    if turn.sampling is not None:
        found["sampling"] = asdict(turn.sampling)
    if turn.error is not None:
        found["error"] = {
            "message": turn.error.message,
            "hint": turn.error.hint,
            "details": turn.error.details,
            "template": isinstance(turn.error, TemplateRefused),
        }
    return found


def turn_from(
    role: str, text: str, reasoning: str, state: str, details: Mapping[str, object]
) -> Turn:
    """The turn that :func:`details_of` and its columns describe."""
    return Turn(
        role,
        text,
        reasoning=reasoning,
        label=_text(details.get("label")),
        placement_text=_text(details.get("placement")),
        state=TurnState(state) if state in _STATES and role != "user" else TurnState.DONE,
        stats=made_from(GenerationStats, details.get("stats")),
        error=_error(details.get("error")),
        thought_s=_number(details.get("thought_s")),
        sampling=made_from(Sampling, details.get("sampling")),
    )


def made_from(kind: type[Made], values: object) -> Made | None:
    """A flat dataclass of numbers and texts from a mapping; None where that is not one."""
    if not isinstance(values, Mapping):
        return None
    wanted: dict[str, Any] = {}
    for one in fields(kind):
        value = values.get(one.name)
        optional = "None" in str(one.type)
        is_text = str(one.type) == "str"
        if value is None and optional:
            wanted[one.name] = None
        elif isinstance(value, str) if is_text else _number(value) is not None:
            wanted[one.name] = value
        elif one.default is MISSING:
            return None
    return kind(**wanted)


_STATES = frozenset(state.value for state in TurnState)


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    # JSON of other programs may hold Infinity and NaN, which nobody can show.
    return value if abs(value) < MOST else None


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _error(value: object) -> LauncherError | None:
    if not isinstance(value, Mapping):
        return None
    parts = (_text(value.get(name)) for name in ("message", "hint", "details"))
    kind = TemplateRefused if value.get("template") is True else LauncherError
    return kind(*parts)
