"""What a packaged program knows of its own making: the file ``build.json`` in its resources.

In: nothing. Out: the facts, empty for a program that runs from a checkout or a wheel.
"""

from __future__ import annotations

import json

from moelauncher.core.errors import LauncherError
from moelauncher.core.resources import read_text_resource


def build_facts() -> dict[str, object]:
    """Version, commit, date, system and compiler flags of the package. Any thread."""
    try:
        document = json.loads(read_text_resource("build.json"))
    except (LauncherError, OSError, ValueError):
        return {}
    return document if isinstance(document, dict) else {}
