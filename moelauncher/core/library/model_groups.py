"""Which rows are quantisations of one model, and what tells them apart.

In: catalog entries. Out: a key that is equal for all quantisations of a model. Pure; any thread.
"""

from __future__ import annotations

import re

from moelauncher.core.library.catalog_entry import CatalogEntry

_LABEL = re.compile(
    r"(?:^|[-_. ])((?:UD-)?(?:I?Q\d(?:_[0-9A-Z]+)*|MXFP4(?:_MOE)?|NVFP4|TQ\d_\d|BF16|F16|F32|FP16))"
    r"(?=$|[-_. ])",
    re.IGNORECASE,
)


def group_key(entry: CatalogEntry) -> str:
    """What all quantisations of a model share; "" for a row that stands alone."""
    if not entry.offered or not entry.arch:
        return ""
    name = re.sub(r"[\s_.-]+", " ", _LABEL.sub(" ", entry.name)).strip().casefold()
    if not name:
        return ""
    return f"{name}|{entry.arch}|{entry.n_layer}|{entry.n_expert}"


def quant_label(entry: CatalogEntry) -> str:
    """How the entry is stored, as its file name says it ("UD-Q4_K_XL"), else as the file does."""
    found = _LABEL.findall(entry.path.stem)
    if not found:
        return entry.quant
    label = str(found[-1]).upper()
    # A name that contradicts the tensors is only a name.
    if entry.quant and not label.startswith("UD-") and label[:2] != entry.quant[:2]:
        return entry.quant
    return label


def group_name(entry: CatalogEntry) -> str:
    """The model's name without the quantisation in it."""
    return _LABEL.sub("", entry.name).strip(" -_.") or entry.name
