"""Which vision projector (mmproj file) belongs to which model.

In: a model's name and width, and the projectors that lie beside it. Out: one of them, or
None. Pure; any thread.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_WORD = re.compile(r"[a-z]+|\d+(?:\.\d+)*[a-z]*")
#: Words that say how a file is stored, not which model it belongs to.
_NOISE = re.compile(
    r"mmproj|projector|model|gguf|it|instruct|chat|ud|[fq]\d+.*|bf16|iq\d.*|[kmsl]|xl"
)
#: Half precision is what the projectors are made for; more only costs memory.
_PREFERRED_QUANTS = ("F16", "BF16", "Q8_0", "F32")


@dataclass(frozen=True)
class Projector:
    """One mmproj file; ``n_embd`` is the width of the model it projects into, if it says so."""

    path: Path
    quant: str
    n_embd: int | None


def projector_for(
    path: Path, n_embd: int | None, projectors: Sequence[Projector], *, alone: bool
) -> Path | None:
    """The projector that fits the model at ``path``.

    ``alone``: no other model lies in the folder, so a projector there is surely this one's even
    where the names share nothing.
    """
    words = _words(path)
    best: tuple[tuple[int, int, int], Path] | None = None
    for projector in projectors:
        shared = len(words & _words(projector.path))
        known = n_embd is not None and projector.n_embd is not None
        fits = known and n_embd == projector.n_embd
        if not alone and not shared and not fits:
            continue
        # Old projectors state another number there: a mismatch counts against, no more.
        if known and not fits and not alone:
            continue
        quant = projector.quant
        rank = _PREFERRED_QUANTS.index(quant) if quant in _PREFERRED_QUANTS else 9
        score = (int(fits), shared, -rank)
        if best is None or score > best[0]:
            best = (score, projector.path)
    return None if best is None else best[1]


def _words(path: Path) -> frozenset[str]:
    words = _WORD.findall(path.stem.lower())
    return frozenset(word for word in words if not _NOISE.fullmatch(word))
