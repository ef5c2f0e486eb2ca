"""The model list's look at the disk: all sources, in a pool job, rows as soon as they are known.

Runs in the pool; what it reports arrives on the window's thread through the job runner.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from moelauncher.core.files.header_cache import HeaderCache
from moelauncher.core.library.catalog import entry_of, scan
from moelauncher.core.library.catalog_entry import CatalogEntry
from moelauncher.core.library.header_workers import header_workers
from moelauncher.core.library.known_list import read_known_list, write_known_list
from moelauncher.core.library.model_folders import model_sources
from moelauncher.core.library.slow_places import slow_last
from moelauncher.gui.jobs import Report
from moelauncher.gui.library.model_row import ModelRow, is_listed, prepared_rows

#: Rows come in bundles, so that a fast disk does not flood the window's thread: the first at
#: once, later ones less often, for a long list takes longer to show.
_BUNDLE_S, _LONGEST_BUNDLE_S = 0.05, 0.25


@dataclass(frozen=True)
class Remembered:
    """Rows of the last run's list; nobody has looked whether their files are still there."""

    rows: Sequence[ModelRow]


@dataclass(frozen=True)
class Scanned:
    """What a scan tells beside the rows: folders to watch, since when, and the programs here."""

    folders: tuple[str, ...]
    began_ns: int
    programs: Mapping[str, tuple[Path, ...]]


def scan_sources(
    places: Sequence[Path],
    added: Collection[Path],
    skip: Collection[str],
    cache_folder: Path,
    report: Report,
    cancelled: Callable[[], bool],
    *,
    first: bool = False,
) -> Scanned:
    """Report bundles of rows of all ``places`` and of other programs' folders.

    A place that is not there is told only if the user ``added`` it. Folders on other machines
    come last. ``skip`` names programs that are not looked at. The ``first`` look of a start
    begins with the :class:`Remembered` rows of the last one.
    """
    began_ns = time.time_ns()
    looked_at = [str(place) for place in places] + [f"without {key}" for key in sorted(skip)]
    known: dict[Path, CatalogEntry] = {}
    if first:
        remembered = prepared_rows(read_known_list(cache_folder, looked_at))
        known = {row.entry.path: row.entry for row in remembered}
        report(Remembered(remembered))
    found: list[CatalogEntry] = []
    programs = {source.key: source.folders for source in model_sources()}
    others = [folder for key, folders in programs.items() if key not in skip for folder in folders]
    here = [place for place in places if place in added or place.exists()]
    folders: list[str] = []
    bundle: list[CatalogEntry] = []
    told_s, every_s = 0.0, _BUNDLE_S
    cache = HeaderCache(cache_folder)
    ordered = slow_last([*here, *others])
    entries = scan(
        ordered,
        cache=cache,
        cancelled=cancelled,
        visited=lambda folder: folders.append(str(folder)),
    )
    with header_workers(ordered, cache, cancelled):
        for read in entries:
            before = known.get(read.path)
            # The window sees at once that the same object is the same row.
            entry = before if before == read else read
            bundle.append(entry)
            found.append(entry)
            if time.monotonic() - told_s >= every_s:
                report(prepared_rows(bundle))
                bundle = []
                told_s = time.monotonic()
                every_s = min(every_s * 1.5, _LONGEST_BUNDLE_S)
    report(prepared_rows(bundle))
    if not cancelled():
        write_known_list(cache_folder, looked_at, filter(is_listed, found))
    folders += [str(place.parent) for place in here if place.suffix.lower() == ".gguf"]
    return Scanned(tuple(dict.fromkeys(folders)), began_ns, programs)


def first_model(path: Path, cancelled: Callable[[], bool]) -> CatalogEntry | None:
    """The model at ``path``, or the first one below it that can be chatted with."""
    if path.suffix.lower() == ".gguf" and not path.is_dir():
        return entry_of(path)
    found = None
    for entry in scan([path], cancelled=cancelled):
        if entry.offered:
            return entry
        found = found or entry
    return found
