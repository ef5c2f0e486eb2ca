"""Rows of the model list for what is no plain model file: folders, downloads, Ollama's blobs.

In: paths and what was found wrong. Out: :class:`CatalogEntry`. Any thread.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from moelauncher.core.library.catalog_entry import CatalogEntry
from moelauncher.core.library.ollama_store import OllamaModel
from moelauncher.core.library.partial_files import finished_name
from moelauncher.core.text_cleaning import display_name
from moelauncher.core.translate import tr


def file_bytes(files: Sequence[Path]) -> int | None:
    """The size of all of them; None where one cannot be asked."""
    try:
        return sum(file.stat().st_size for file in files)
    except (OSError, ValueError):
        return None


def unreadable_row(folder: Path, error: Exception) -> CatalogEntry:
    """A folder that the system did not let us read."""
    reason = getattr(error, "strerror", None) or str(error)
    problem = tr("This folder cannot be read: {reason}.").format(reason=reason)
    return folder_row(folder, problem, tr("Check its permissions."))


def ollama_row(model: OllamaModel, entry: CatalogEntry) -> CatalogEntry:
    """A model of Ollama's store, under the name that its manifest gives it."""
    mmproj = model.projector
    if entry.role != "chat" or mmproj is None or file_bytes((mmproj,)) is None:
        mmproj = None
    return replace(entry, name=display_name(model.name), mmproj=mmproj)


def download_row(path: Path) -> CatalogEntry:
    """A file that some program still fetches."""
    name = finished_name(path.name) or path.name
    return CatalogEntry(
        path=path,
        files=(path,),
        name=display_name(Path(name).stem),
        size_bytes=file_bytes((path,)),
        role="download",
        problem=tr("This download is not finished."),
        hint=tr("It is listed as a model when it is whole."),
    )


def folder_row(path: Path, problem: str, hint: str) -> CatalogEntry:
    """A place that is no model, and why."""
    return CatalogEntry(
        path=path,
        files=(),
        name=display_name(path.name) or display_name(str(path)),
        role="folder",
        problem=problem,
        hint=hint,
    )
