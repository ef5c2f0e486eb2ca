"""Asks the release site, when the user wants to know whether there is a newer version.

In: an address. Out: :class:`Release`. One request that says no more of this machine than any web
browser's does. Blocks for at most some seconds; a pool thread. Needs no library.
"""

from __future__ import annotations

import http.client
import urllib.error
import urllib.request

from moelauncher.core.errors import LauncherError
from moelauncher.core.program.releases import Release, read_release
from moelauncher.core.translate import tr

_PATIENCE_S = 10.0
_MOST_BYTES = 1 << 20


def newest_release(url: str, *, patience_s: float = _PATIENCE_S) -> Release:
    """What ``url`` says. Raises LauncherError where nobody is reached or understood."""
    if not url:
        raise LauncherError(
            tr("This copy of MoE Launcher does not know where its releases are published."),
            tr("Look where you got it from."),
        )
    if not url.startswith(("https://", "http://")):
        raise LauncherError(tr("“{url}” is no web address.").format(url=url))
    request = urllib.request.Request(url, headers={"User-Agent": "MoE-Launcher"})
    try:
        with urllib.request.urlopen(request, timeout=patience_s) as answer:
            text = answer.read(_MOST_BYTES).decode("utf-8", errors="replace")
    except urllib.error.HTTPError as error:
        raise LauncherError(
            tr("The release site answered with an error ({code}).").format(code=error.code),
            tr("Try again later."),
            str(error),
        ) from error
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise LauncherError(
            tr("The release site could not be reached."),
            tr("Check the connection, and try again."),
            str(getattr(error, "reason", error)),
        ) from error
    return read_release(text)
