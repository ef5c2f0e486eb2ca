"""What a setting is, and the parsers of its values.

A parser turns what a file (or a dialog) holds into the value, or raises ValueError that says
what is expected.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Setting(Generic[T]):
    """One setting. ``name`` is its place in the file ("table.key").

    ``label`` and ``help`` are English: show them through ``tr``. ``parse`` turns what the
    file holds into the value, or raises ValueError; None in memory means "not in the file".
    """

    name: str
    default: T
    label: str
    help: str
    parse: Callable[[object], T]
    #: For the dialog: the values to choose from, or empty.
    choices: tuple[str, ...] = ()


def text(value: object) -> str:
    """Any text."""
    if not isinstance(value, str):
        raise ValueError("a text is expected")
    return value


def flag(value: object) -> bool:
    """True or false."""
    if not isinstance(value, bool):
        raise ValueError("true or false is expected")
    return value


def one_of(choices: tuple[str, ...]) -> Callable[[object], str]:
    """One of ``choices``."""

    def parse(value: object) -> str:
        if value not in choices:
            raise ValueError("one of " + ", ".join(choices) + " is expected")
        return value

    return parse


def whole(low: int, high: int) -> Callable[[object], int]:
    """A whole number from ``low`` to ``high``."""

    def parse(value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise ValueError(f"a whole number from {low} to {high} is expected")
        return value

    return parse


def real(low: float, high: float) -> Callable[[object], float]:
    """A number from ``low`` to ``high``."""

    def parse(value: object) -> float:
        # Written so that NaN fails too.
        if (
            isinstance(value, bool)
            or not isinstance(value, int | float)
            or not low <= value <= high
        ):
            raise ValueError(f"a number from {low:g} to {high:g} is expected")
        return float(value)

    return parse


def or_none(parse: Callable[[object], T]) -> Callable[[object], T | None]:
    """What ``parse`` takes, or nothing."""
    return lambda value: None if value is None else parse(value)


def texts(value: object) -> tuple[str, ...]:
    """A list of texts."""
    if not isinstance(value, list | tuple) or not all(isinstance(item, str) for item in value):
        raise ValueError("a list of texts is expected")
    return tuple(value)
