"""What a chat template lets the user switch: thinking on or off, or how much of it.

Pure values; any thread.
"""

from __future__ import annotations

from dataclasses import dataclass

#: Variables that switch thinking, in the words of the model families; the first found counts.
ON_OFF = ("enable_thinking", "thinking")
EFFORT = "reasoning_effort"
EFFORTS = ("none", "minimal", "low", "medium", "high", "max")
USUAL_EFFORTS = ("low", "medium", "high")


@dataclass(frozen=True)
class TemplateSwitch:
    """A variable of the template with the values that make a difference.

    ``values`` are booleans for on and off, else words, the least thinking first;
    ``default`` is what the template does by itself (None: none of these).
    """

    name: str
    values: tuple[bool | str, ...]
    default: bool | str | None

    def chosen(self, value: object) -> bool | str | None:
        """``value`` if the switch knows it, else the default."""
        return next((known for known in self.values if _same(known, value)), self.default)


def _same(known: bool | str, value: object) -> bool:
    return type(known) is type(value) and known == value


def named_efforts(template: str) -> tuple[str, ...]:
    """The efforts that a template names itself; the usual three where it takes any word."""
    named = tuple(
        effort for effort in EFFORTS if f"'{effort}'" in template or f'"{effort}"' in template
    )
    return named if len(named) > 1 else USUAL_EFFORTS
