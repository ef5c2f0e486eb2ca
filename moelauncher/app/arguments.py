"""What the window was told on the command line."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from moelauncher.commands.arguments import add_window_arguments


def read_arguments(argv: Sequence[str]) -> argparse.Namespace:
    """Read ``argv``, with or without the program's own name. Exits with 2 on wrong ones."""
    given = list(argv)
    if given and Path(given[0]).stem.lower() in ("moelauncher", "moelauncher-window", "__main__"):
        del given[0]
    parser = argparse.ArgumentParser(prog="moelauncher")
    add_window_arguments(parser)
    return parser.parse_args(given)
