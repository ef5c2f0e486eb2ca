"""The child process of a command, with the user's wishes and what is known to crash."""

from __future__ import annotations

import argparse
import os

from moelauncher.core.paths import app_paths
from moelauncher.core.program import settings as keys
from moelauncher.core.program.settings import Settings
from moelauncher.engine.backend_modules import wish_for
from moelauncher.engine.broken_backends import BrokenBackends
from moelauncher.engine.child import Child


def make_child(options: argparse.Namespace, *, try_again: bool = False) -> Child:
    """The child, not started yet. ``try_again`` forgets which GPU modules crashed before."""
    paths = app_paths(options.basedir)
    settings = Settings.load(paths.settings_file)
    wish_for(settings.get(keys.BACKENDS), settings.get(keys.CPU_VARIANT), os.environ)
    broken = BrokenBackends(paths.broken_backends_file)
    if try_again:
        broken.forget()
    return Child(broken=broken)
