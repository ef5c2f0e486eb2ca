"""The models in the user's folders: shards joined, projectors paired, or the reason why not.

In: folders (or single files). Out: :class:`CatalogEntry` values, one a model file found, as
soon as each is known. Any thread; a pool job in the window. Nothing is loaded, only headers
are read; what was read before comes from the :class:`HeaderCache`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from moelauncher.core.errors import LauncherError
from moelauncher.core.files.gguf_header import GgufHeader, first_architecture, read_header
from moelauncher.core.files.header_cache import FileStamp, HeaderCache
from moelauncher.core.files.model_facts import facts_of
from moelauncher.core.library.catalog_entry import (
    CatalogEntry,
    entry_of_facts,
    from_stored,
    to_stored,
)
from moelauncher.core.library.catalog_rows import (
    download_row,
    file_bytes,
    folder_row,
    ollama_row,
    unreadable_row,
)
from moelauncher.core.library.mmproj_pairing import Projector, projector_for
from moelauncher.core.library.model_files import (
    is_missing,
    missing_shard,
    problem_of,
    shard_name,
    shards_of,
)
from moelauncher.core.library.ollama_store import ollama_models
from moelauncher.core.library.partial_files import finished_name
from moelauncher.core.text_cleaning import display_name
from moelauncher.core.translate import tr


def entry_of(path: Path, *, cache: HeaderCache | None = None) -> CatalogEntry:
    """The entry of one model, with the projector that lies beside it. Never raises."""
    return _entry_among(path, _neighbours(path, cache), cache)


def _neighbours(path: Path, cache: HeaderCache | None) -> _Groups:
    """What lies in the folder of ``path``, itself included."""
    folder = _Folder(path.parent, ())
    try:
        folder.names = [item.name for item in path.parent.iterdir() if _is_gguf(item.name)]
    except (OSError, ValueError):
        folder.names = [path.name]
    return folder.groups(cache)


def _entry_among(path: Path, neighbours: _Groups, cache: HeaderCache | None) -> CatalogEntry:
    entry = _read(shards_of(path), cache)
    if entry.role == "chat":
        beside, models = neighbours
        projectors = _projectors(_read(group, cache) for group in beside)
        mmproj = projector_for(entry.path, entry.n_embd, projectors, alone=len(models) == 1)
        entry = replace(entry, mmproj=mmproj)
    return entry


def _projectors(entries: Iterable[CatalogEntry]) -> list[Projector]:
    return [
        Projector(entry.path, entry.quant, entry.n_embd)
        for entry in entries
        if entry.role == "mmproj" and not entry.problem
    ]


def scan(
    folders: Iterable[Path],
    *,
    cache: HeaderCache | None = None,
    cancelled: Callable[[], bool] = lambda: False,
    visited: Callable[[Path], None] = lambda folder: None,
) -> Iterator[CatalogEntry]:
    """All model files below ``folders`` (single files too), each as soon as it is known.

    Links are followed, loops are not; a file that is reached by several paths is one entry.
    ``cancelled`` is asked before every file; ``visited`` is told every folder that is entered.
    ``cache`` is saved at the end, also when the generator is closed early. Raises nothing but
    what ``cancelled`` and ``visited`` raise.
    """
    scanner = _Scanner(cache, cancelled, visited)
    try:
        for place in folders:
            yield from scanner.walk(place)
    finally:
        if cache is not None:
            cache.save()


#: The files of each projector, and of every other model, of one folder.
_Groups = tuple[list[tuple[Path, ...]], list[tuple[Path, ...]]]


def _is_gguf(name: str) -> bool:
    return name.lower().endswith(".gguf")


def _group_key(name: str) -> str:
    shard = shard_name(name)
    return name if shard is None else shard.file_name(0)


def read_for_cache(files: tuple[Path, ...]) -> tuple[list[FileStamp], dict[str, object]] | None:
    """What the cache would keep of these files; None where they cannot be listed as a model."""
    stamps = _stamps(files)
    entry = _read_headers(files)
    return None if stamps is None or entry.problem else (stamps, to_stored(entry))


def uncached_groups(
    places: Iterable[Path], cache: HeaderCache, cancelled: Callable[[], bool]
) -> list[tuple[Path, ...]]:
    """The files of every model below ``places`` that ``cache`` does not know, unread."""
    found: dict[Path, tuple[Path, ...]] = {}
    for place in places:
        for base, _, names in os.walk(place):
            if cancelled():
                return []
            for name in names:
                if _is_gguf(name):
                    files = shards_of(Path(base) / name)
                    found.setdefault(files[0], files)
    unknown = []
    for files in found.values():
        stamps = _stamps(files)
        if stamps is not None and cache.get(stamps) is None:
            unknown.append(files)
    return unknown


def _stamps(files: Sequence[Path]) -> list[FileStamp] | None:
    try:
        infos = [(file, file.stat()) for file in files]
    except (OSError, ValueError):
        return None
    return [FileStamp(str(file), info.st_size, info.st_mtime_ns) for file, info in infos]


def _read(files: tuple[Path, ...], cache: HeaderCache | None) -> CatalogEntry:
    """One model's entry from the cache or from its headers."""
    stamps = _stamps(files) if cache is not None else None
    if cache is not None and stamps is not None:
        stored = cache.get(stamps)
        entry = None if stored is None else from_stored(files, stored)
        if entry is not None:
            return entry
    entry = _read_headers(files)
    if cache is not None and stamps is not None and not entry.problem:
        cache.put(stamps, to_stored(entry))
    return entry


def _read_headers(files: tuple[Path, ...]) -> CatalogEntry:
    headers: list[GgufHeader] = []
    error: LauncherError | None = None
    present = []
    for file in files:
        if len(files) > 1 and is_missing(file):
            error = error or missing_shard(files, file)
            continue
        present.append(file)
        try:
            headers.append(read_header(file))
        except LauncherError as reason:
            if len(files) > 1:
                message = f"{display_name(file.name)}: {reason.message}"
                reason = LauncherError(message, reason.hint, reason.details)
            error = error or reason
    shown = tuple(present) or files
    entry = CatalogEntry(
        path=shown[0], files=shown, name=_stem(shown[0]), size_bytes=file_bytes(shown)
    )
    if headers:
        try:
            facts = facts_of(headers)
            entry = replace(
                entry_of_facts(facts), path=shown[0], files=shown, size_bytes=entry.size_bytes
            )
            error = error or problem_of(headers, facts)
        except LauncherError as reason:
            error = error or reason
    if error is not None:
        # Half of the tensors gives half of the numbers: better none.
        if len(headers) < len(files):
            entry = replace(
                entry, n_params=None, n_active_params=None, n_moe_layers=None, n_expert=None
            )
        entry = replace(entry, problem=error.message, hint=error.hint)
    return entry


def _stem(path: Path) -> str:
    shard = shard_name(path.name)
    return display_name(path.stem if shard is None else shard.prefix) or display_name(path.name)


class _Folder:
    """One folder's model files, and the projectors that the folder above offers."""

    def __init__(self, path: Path, inherited: tuple[Projector, ...]) -> None:
        self.path = path
        self.inherited = inherited
        self.names: list[str] = []
        self.unfinished: list[str] = []

    def groups(self, cache: HeaderCache | None = None) -> _Groups:
        """The files of what looks like a projector, and of every other model, by name."""
        groups: dict[str, tuple[Path, ...]] = {}
        for name in sorted(self.names):
            groups.setdefault(_group_key(name), shards_of(self.path / name))
        projectors: list[tuple[Path, ...]] = []
        models: list[tuple[Path, ...]] = []
        for files in groups.values():
            (projectors if _looks_like_projector(files[0], cache) else models).append(files)
        return projectors, models


def _looks_like_projector(path: Path, cache: HeaderCache | None) -> bool:
    if "mmproj" in path.name.lower():
        return True
    known = None if cache is None else cache.stored_role(path)
    # What was stored may be old: it only decides which files are read first.
    return first_architecture(path) == "clip" if known is None else known == "mmproj"


class _Scanner:
    """One walk; remembers what it saw, so that links count once and loops end."""

    def __init__(
        self,
        cache: HeaderCache | None,
        cancelled: Callable[[], bool],
        visited: Callable[[Path], None],
    ) -> None:
        self._cache = cache
        self._cancelled = cancelled
        self._visited = visited
        self._seen_folders: set[object] = set()
        self._seen_files: set[object] = set()
        # Of single files: a thousand from one folder look into it once.
        self._neighbours: dict[Path, _Groups] = {}

    def walk(self, place: Path) -> Iterator[CatalogEntry]:
        """Everything at or below ``place``."""
        try:
            is_folder = place.is_dir()
            exists = is_folder or place.exists()
        except (OSError, ValueError) as error:
            yield unreadable_row(place, error)
            return
        if is_folder:
            yield from self._walk_folders(place)
        elif exists or _is_gguf(place.name):
            if not self._cancelled() and self._is_new(shards_of(place)):
                if place.parent not in self._neighbours:
                    self._neighbours[place.parent] = _neighbours(place, self._cache)
                yield _entry_among(place, self._neighbours[place.parent], self._cache)
        else:
            yield folder_row(place, tr("This folder is not there."), tr("Remove it from the list."))

    def _walk_folders(self, root: Path) -> Iterator[CatalogEntry]:
        # A stack, not recursion: a folder tree can be deeper than Python's stack.
        waiting = [_Folder(root, ())]
        while waiting and not self._cancelled():
            folder = waiting.pop()
            try:
                if not self._enter(folder.path):
                    continue
                below = self._list(folder)
            except (OSError, ValueError) as error:
                yield unreadable_row(folder.path, error)
                continue
            if {"blobs", "manifests"} <= {path.name for path in below}:
                yield from self._ollama(folder.path)
                continue
            for odd in below:
                if _is_gguf(odd.name):
                    yield folder_row(odd, tr("This is a folder, not a model file."), "")
            for name in folder.unfinished:
                yield download_row(folder.path / name)
            projectors = yield from self._models(folder)
            offered = tuple(projectors) or folder.inherited
            waiting += [_Folder(path, offered) for path in reversed(below)]

    def _enter(self, path: Path) -> bool:
        identity = _identity(path)
        if identity in self._seen_folders:
            return False
        self._seen_folders.add(identity)
        self._visited(path)
        return True

    @staticmethod
    def _list(folder: _Folder) -> list[Path]:
        """Fill in the folder's model files; returns the folders below it, by name."""
        below = []
        with os.scandir(folder.path) as items:
            for item in items:
                try:
                    is_folder = item.is_dir()
                except OSError:
                    is_folder = False
                if is_folder:
                    below.append(folder.path / item.name)
                elif _is_gguf(item.name):
                    folder.names.append(item.name)
                elif finished_name(item.name) is not None:
                    folder.unfinished.append(item.name)
        folder.unfinished.sort()
        return sorted(below)

    def _ollama(self, store: Path) -> Iterator[CatalogEntry]:
        """The models of an Ollama store; their names stand in its manifests."""
        for model in ollama_models(store):
            if self._cancelled():
                return
            if self._is_new((model.path,)):
                yield ollama_row(model, _read((model.path,), self._cache))
            if model.projector is not None and self._is_new((model.projector,)):
                yield _read((model.projector,), self._cache)

    def _models(self, folder: _Folder) -> Generator[CatalogEntry, None, list[Projector]]:
        """Yields the folder's entries, projectors first; returns its projectors."""
        beside, models = folder.groups(self._cache)
        found = []
        for files in beside:
            if self._cancelled():
                return []
            entry = _read(files, self._cache)
            found.append(entry)
            if self._is_new(files):
                yield entry
        projectors = _projectors(found)
        for files in models:
            if self._cancelled():
                break
            if not self._is_new(files):
                continue
            entry = _read(files, self._cache)
            if entry.role == "chat":
                near = projector_for(entry.path, entry.n_embd, projectors, alone=len(models) == 1)
                far = projector_for(entry.path, entry.n_embd, folder.inherited, alone=False)
                if near or far:
                    entry = replace(entry, mmproj=near or far)
            yield entry
        return projectors

    def _is_new(self, files: Sequence[Path]) -> bool:
        """Whether any of ``files`` was not met before, by whatever path."""
        identities = {_identity(file) for file in files}
        new = not identities <= self._seen_files
        self._seen_files |= identities
        return new


def _identity(path: Path) -> object:
    """What is the same for every path to one file: device and number, else the real path."""
    try:
        info = path.stat()
    except (OSError, ValueError):
        return str(path)
    # Some file systems on Windows number nothing.
    return (info.st_dev, info.st_ino) if info.st_ino else os.path.realpath(path)
