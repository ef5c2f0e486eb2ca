"""Results that depend on the model alone, computed once and kept as long as the model is.

The slider asks for them many times a second. :class:`ModelFacts` holds mappings and cannot
be hashed, so results are kept by identity and dropped with the facts. Any thread: at worst
two threads compute the same value.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from moelauncher.core.files.model_facts import ModelFacts

T = TypeVar("T")


def once_per_model(build: Callable[[ModelFacts], T]) -> Callable[[ModelFacts], T]:
    """Keep ``build``'s result for each living ``ModelFacts``."""
    kept: dict[int, tuple[weakref.ref[ModelFacts], T]] = {}

    @functools.wraps(build)
    def remembered(facts: ModelFacts) -> T:
        key = id(facts)
        entry = kept.get(key)
        if entry is not None and entry[0]() is facts:
            return entry[1]
        value = build(facts)
        kept[key] = (weakref.ref(facts, lambda _: kept.pop(key, None)), value)
        return value

    return remembered
