"""Is there a newer release? What a release site says, compared with this program.

In: the site's answer. Out: :class:`Release`. Pure; any thread. Nothing here or elsewhere asks by
itself: only a press of “Check for updates” does (``hub/release_check.py``).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from moelauncher.core.errors import LauncherError
from moelauncher.core.translate import tr

#: Where the newest release is described: a JSON object with "version" and "page". Whoever
#: publishes this program sets it, here or when building packages (MOELAUNCHER_RELEASES_URL);
#: empty: there is no such place, and the program says so.
RELEASES_URL = ""

_VERSION = re.compile(r"v?(\d+(?:\.\d+){0,3})(?P<rest>.*)")


@dataclass(frozen=True)
class Release:
    """A published version, and the page that tells of it and has its files."""

    version: str
    page: str = ""


def releases_url(package: Mapping[str, object]) -> str:
    """Where to ask, by the facts of this package; "" where nowhere."""
    named = package.get("releases_url")
    return named if isinstance(named, str) and named else RELEASES_URL


def read_release(text: str) -> Release:
    """The site's answer. Raises LauncherError where it is none."""
    try:
        document = json.loads(text)
        version, page = document["version"], document.get("page", "")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise _not_understood(text) from error
    if not isinstance(version, str) or _VERSION.fullmatch(version.strip()) is None:
        raise _not_understood(text)
    # Only a web page is opened, never a file or a program of this machine.
    is_page = isinstance(page, str) and page.startswith(("https://", "http://"))
    return Release(version.strip().removeprefix("v"), page if is_page else "")


def is_newer(release: Release, version: str) -> bool:
    """Whether ``release`` comes after ``version``; a version that cannot be read is not newer."""
    theirs, ours = _parts(release.version), _parts(version)
    return theirs is not None and ours is not None and theirs > ours


def _parts(version: str) -> tuple[tuple[int, ...], bool] | None:
    """Numbers, and whether it is final: 1.0rc1 comes before 1.0."""
    match = _VERSION.fullmatch(version.strip())
    if match is None:
        return None
    numbers = [int(part) for part in match[1].split(".")]
    padded = tuple(numbers + [0] * (4 - len(numbers)))
    return padded, not match["rest"] or match["rest"].startswith("+")


def _not_understood(text: str) -> LauncherError:
    return LauncherError(
        tr("The release site's answer could not be understood."),
        tr("Look at the program's page instead."),
        text[:500],
    )
