"""The short list of models that a first start offers: the program's own, or the user's copy of it.

In: ``featured_models.toml``. Out: :class:`FeaturedModel` values. Never raises: what makes no sense
is left out. Any thread.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

from moelauncher.core.errors import LauncherError
from moelauncher.core.library.hub_files import HubLink, parse_link
from moelauncher.core.resources import read_text_resource
from moelauncher.core.text_cleaning import display_name

FILE_NAME = "featured_models.toml"
_MOST = 12


@dataclass(frozen=True)
class FeaturedModel:
    """One offer; ``about`` is a short line for people."""

    name: str
    link: HubLink
    about: str


def featured_models(config: Path) -> tuple[FeaturedModel, ...]:
    """The offers of the user's copy in ``config``, where there is one, else the program's own."""
    try:
        text = (config / FILE_NAME).read_text(encoding="utf-8-sig")
    except (OSError, ValueError):
        try:
            text = read_text_resource(FILE_NAME)
        except LauncherError:
            return ()
    return _parsed(text)


def _parsed(text: str) -> tuple[FeaturedModel, ...]:
    try:
        rows = tomllib.loads(text).get("model", [])
    except (ValueError, RecursionError):
        return ()
    found = []
    for row in rows if isinstance(rows, list) else []:
        if not isinstance(row, dict) or not isinstance(row.get("link"), str):
            continue
        try:
            link = parse_link(row["link"])
        except LauncherError:
            continue
        name, about = row.get("name"), row.get("about")
        found.append(
            FeaturedModel(
                display_name(name) if isinstance(name, str) and name else link.repo,
                link,
                display_name(about) if isinstance(about, str) else "",
            )
        )
    return tuple(found[:_MOST])
