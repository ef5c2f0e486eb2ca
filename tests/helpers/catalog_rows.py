"""The rows of a scan, all at once."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from moelauncher.core.files.header_cache import HeaderCache
from moelauncher.core.library.catalog import scan
from moelauncher.core.library.catalog_entry import CatalogEntry


def rows(*places: Path, cache: HeaderCache | None = None) -> list[CatalogEntry]:
    """All rows, in the order in which they come."""
    return list(scan(places, cache=cache))


def by_file(entries: Iterable[CatalogEntry]) -> dict[str, CatalogEntry]:
    """By the name of the first file."""
    return {entry.path.name: entry for entry in entries}
