"""Where every way into the program begins: the command, ``python -m``, the packaged program.

Next to nothing is imported before Ctrl+C is seen to: see :mod:`moelauncher.core.quiet_import`.
"""

from __future__ import annotations

from moelauncher.core.quiet_import import import_quietly


def main() -> int:
    """Run the command line on the process's own arguments; returns the exit status."""
    return int(import_quietly("moelauncher.cli").main())
