"""``moelauncher list``: the model files of some folders, with the reason where one is unfit."""

from __future__ import annotations

import argparse
from pathlib import Path

from moelauncher.commands.arguments import add_json, named_path
from moelauncher.commands.terminal import note, out, out_json, table
from moelauncher.core.errors import LauncherError
from moelauncher.core.files.header_cache import HeaderCache
from moelauncher.core.library.catalog import scan
from moelauncher.core.library.catalog_entry import CatalogEntry, entry_as_json
from moelauncher.core.library.header_workers import header_workers
from moelauncher.core.library.library_settings import skipped_sources
from moelauncher.core.library.model_folders import default_model_folders
from moelauncher.core.paths import AppPaths, app_paths, shortened
from moelauncher.core.program.settings import MODEL_FOLDERS, Settings
from moelauncher.core.translate import tr
from moelauncher.core.units import format_bytes, format_parameters


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``list``."""
    parser.add_argument(
        "folders",
        metavar="DIR",
        nargs="*",
        type=named_path,
        help="folders or files to look at (the window's folders)",
    )
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Print the entries; a file with a problem is an entry, not an error."""
    paths = app_paths(options.basedir)
    for folder in options.folders:
        if not folder.exists():
            raise LauncherError(tr("There is no folder or file {path}.").format(path=folder))
    folders = [folder.absolute() for folder in options.folders] or _known_folders(paths)
    cache = HeaderCache(paths.headers_folder)
    with header_workers(folders, cache, lambda: False):
        entries = list(scan(folders, cache=cache))
    if options.json:
        for entry in entries:
            if not _is_file_row(entry):
                note(f"{shortened(entry.path)}: {entry.problem}")
        out_json([entry_as_json(entry) for entry in entries if _is_file_row(entry)])
    elif entries:
        _print(entries)
    else:
        out(tr("No model files here. Name a folder that holds GGUF files."))
    return 0


def _is_file_row(entry: CatalogEntry) -> bool:
    """Whether the row is of something that calls itself a model, not of a folder on the way.

    Nor of a download that is not finished: nothing half-done is ever listed as a model.
    """
    if entry.role == "download":
        return False
    return entry.role != "folder" or entry.path.suffix.lower() == ".gguf"


def _known_folders(paths: AppPaths) -> list[Path]:
    settings = Settings.load(paths.settings_file)
    folders = [Path(folder) for folder in settings.get(MODEL_FOLDERS)]
    folders += [place for place in (paths.models, paths.sample_folder) if place.is_dir()]
    return [*folders, *default_model_folders(skip=skipped_sources(settings))]


def _print(entries: list[CatalogEntry]) -> None:
    head = (tr("name"), tr("facts"), tr("size"), tr("parameters"), tr("experts in"), tr("file"))
    out(table(head, [_row(entry) for entry in entries], right=frozenset({2, 3, 4})))


def _row(entry: CatalogEntry) -> tuple[str, ...]:
    layers = ""
    if entry.n_moe_layers:
        layers = tr("{n} of {all} layers").format(n=entry.n_moe_layers, all=entry.n_layer)
    return (
        entry.name,
        entry.problem or entry.description,
        "" if entry.size_bytes is None else format_bytes(entry.size_bytes),
        _parameters(entry),
        layers,
        shortened(entry.path),
    )


def _parameters(entry: CatalogEntry) -> str:
    if not entry.n_params:
        return ""
    text = format_parameters(entry.n_params)
    if entry.n_expert and entry.n_active_params:
        text += "-A" + format_parameters(entry.n_active_params)
    return text
