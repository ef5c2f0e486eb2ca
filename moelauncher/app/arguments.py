"""The window's arguments. The command line knows them too; they are read here once more."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from moelauncher.cli import base_folder


def read_arguments(argv: Sequence[str]) -> argparse.Namespace:
    """Read ``argv``, with or without the program's own name. Exits with 2 on wrong ones."""
    given = list(argv)
    if given and Path(given[0]).stem.lower() in ("moelauncher", "moelauncher-window", "__main__"):
        del given[0]
    parser = argparse.ArgumentParser(prog="moelauncher", add_help=True)
    parser.add_argument("model", nargs="?", type=Path, metavar="MODEL.gguf")
    parser.add_argument("--demo", action="store_true")
    parser.add_argument("--basedir", type=base_folder, metavar="DIR")
    parser.add_argument("--screenshot", type=Path, metavar="FILE.png")
    return parser.parse_args(given)
