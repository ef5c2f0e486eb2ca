"""The model that a command is about: a file, or the sample model built on demand."""

from __future__ import annotations

import argparse
from pathlib import Path

from moelauncher.commands.terminal import ProgressLine
from moelauncher.core.errors import LauncherError
from moelauncher.core.files.model_facts import ModelFacts
from moelauncher.core.library.model_files import load_facts, shard_name
from moelauncher.core.library.sample_model import build_sample_model
from moelauncher.core.paths import app_paths
from moelauncher.core.translate import tr


def chosen_model(options: argparse.Namespace) -> ModelFacts:
    """The facts of ``--demo``'s or MODEL's file. Raises LauncherError with the reason."""
    if options.demo:
        return load_facts(_sample(options))
    path: Path = options.model
    if path.is_dir():
        raise LauncherError(
            tr("{path} is a folder.").format(path=path),
            tr("Name a GGUF file in it; moelauncher list shows them."),
        )
    if not path.is_symlink() and not path.exists() and not shard_name(path.name):
        raise LauncherError(tr("There is no file {path}.").format(path=path))
    return load_facts(path.absolute())


def runnable_model(options: argparse.Namespace) -> ModelFacts:
    """The same, for commands that make it talk."""
    facts = chosen_model(options)
    if facts.role in ("mmproj", "lora", "imatrix", "vocab"):
        raise LauncherError(
            tr("{name} is no language model but a file of the kind “{role}”.").format(
                name=facts.path.name, role=facts.role
            ),
            tr("Choose the model that it belongs to."),
        )
    return facts


def _sample(options: argparse.Namespace) -> Path:
    progress = ProgressLine(tr("Building the sample model"), quiet=options.json)
    try:
        return build_sample_model(app_paths(options.basedir).sample_folder, progress=progress.show)
    finally:
        progress.end()
