"""One judgement of the doctor's."""

from __future__ import annotations

from dataclasses import dataclass

GOOD, WARNING, BAD = "good", "warning", "bad"


@dataclass(frozen=True)
class Verdict:
    """``level`` is one of the three above; ``advice`` is "" where all is well."""

    level: str
    subject: str
    text: str
    advice: str = ""
