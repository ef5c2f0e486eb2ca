"""What has to go when a model goes: its shards, or a blob and the links to it.

In: a catalog entry. Out: :class:`TrashPlan`. Looks at the disk, changes nothing; a pool job.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from moelauncher.core.errors import LauncherError
from moelauncher.core.library.catalog_entry import CatalogEntry
from moelauncher.core.translate import tr


@dataclass(frozen=True)
class TrashPlan:
    """``files`` go to the trash, then ``links`` (which would lead nowhere) are removed."""

    files: tuple[Path, ...]
    links: tuple[Path, ...]
    size_bytes: int


def trash_plan(entry: CatalogEntry) -> TrashPlan:
    """The files of ``entry``. Raises LauncherError where another program must remove it."""
    files: list[Path] = []
    links: list[Path] = []
    size_bytes = 0
    for file in entry.files:
        if _is_ollama_blob(file):
            raise LauncherError(
                tr("{name} belongs to Ollama, which would miss its file.").format(name=entry.name),
                tr("Remove it there: ollama rm {name}").format(name=entry.name),
            )
        try:
            if not file.is_symlink():
                size_bytes += file.stat().st_size
                files.append(file)
                continue
            target = file.resolve(strict=True)
        except (OSError, ValueError, RuntimeError):
            # A link that leads nowhere, or a file that has gone meanwhile.
            if file.is_symlink():
                links.append(file)
            continue
        if target.parent.name == "blobs" and "snapshots" in file.parts:
            files.append(target)
            size_bytes += target.stat().st_size
            links += _links_to(target)
        else:
            # The user's own link: what it leads to may serve others.
            links.append(file)
    return TrashPlan(tuple(files), tuple(dict.fromkeys(links)), size_bytes)


def _is_ollama_blob(file: Path) -> bool:
    return file.parent.name == "blobs" and (file.parent.parent / "manifests").is_dir()


def _links_to(blob: Path) -> list[Path]:
    """Links below the snapshots of a Hugging Face cache that lead to ``blob``."""
    found = []
    for link in sorted((blob.parent.parent / "snapshots").rglob("*")):
        try:
            if link.is_symlink() and link.resolve() == blob:
                found.append(link)
        except (OSError, RuntimeError):
            continue
    return found
