"""What was remarked of several repeats, each thing said once.

In: sentences. Out: sentences. Pure; any thread.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from moelauncher.core.translate import tr

_NUMBER = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?")


def each_once(texts: Iterable[str], n_repeats: int = 0) -> list[str]:
    """Every text once, in order; those that differ in their one number become one with a range.

    With ``n_repeats`` it is added in how many of them a text was seen, where not in all.
    """
    alike: dict[str, list[str]] = {}
    for text in texts:
        one_number = len(_NUMBER.findall(text)) == 1
        alike.setdefault(_NUMBER.sub("#", text) if one_number else text, []).append(text)
    return [_counted(_joined(group), len(group), n_repeats) for group in alike.values()]


def _joined(texts: Sequence[str]) -> str:
    if len(set(texts)) == 1:
        return texts[0]
    numbers = [number for text in texts for number in _NUMBER.findall(text)]
    numbers.sort(key=lambda number: float(number.replace(",", "")))
    return _NUMBER.sub(f"{numbers[0]}–{numbers[-1]}", texts[0])


def _counted(text: str, count: int, n_repeats: int) -> str:
    if count >= n_repeats:
        return text
    return tr("{text} (in {n} of {total} repeats)").format(text=text, n=count, total=n_repeats)
