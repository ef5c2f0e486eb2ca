"""One row of the model list, with all that its place in the list depends on.

Pure values: a scan prepares them by the thousand in the pool.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from moelauncher.core.library.catalog_entry import CatalogEntry
from moelauncher.core.library.model_groups import group_key


@dataclass(frozen=True)
class ModelRow:
    """What one row shows. ``level`` is "good", "warn", "bad", or "" for no dot."""

    entry: CatalogEntry
    verdict: str = ""
    level: str = ""
    #: Equal for all quantisations of a model; "" for a row that stands alone.
    group: str = ""

    @cached_property
    def sort_key(self) -> tuple[bool, str, int, str]:
        """Rows with a problem come last; quantisations lie together, the largest first."""
        entry = self.entry
        name = self.group or entry.name.casefold()
        return bool(entry.problem), name, -(entry.size_bytes or 0), str(entry.path)


def is_listed(entry: CatalogEntry) -> bool:
    """Whether the window lists an entry: one can chat with it, or must hear why not."""
    return entry.role == "chat" or bool(entry.problem)


def row_of_entry(entry: CatalogEntry) -> ModelRow:
    """The row of an entry, not judged yet."""
    return ModelRow(entry, group=group_key(entry))


def prepared_rows(entries: Iterable[CatalogEntry]) -> list[ModelRow]:
    """Rows in the list's order, with all that is slow to work out: names cut, paths hashed."""
    rows = sorted(map(row_of_entry, entries), key=lambda row: row.sort_key)
    for row in rows:
        hash(row.entry.path)
    return rows
