"""Asking a server, and what its refusals mean in words.

The HTTP client is huggingface_hub's own, with its proxies, certificates and retries of redirects; a
token goes only to the server it was made for. Pool threads only.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from huggingface_hub.utils import get_session

from moelauncher.core.errors import Cancelled, LauncherError
from moelauncher.core.translate import tr

#: Without a byte for this long the connection counts as broken; closing the window waits for it.
_TIMEOUT_S = 15.0


class UnreachableError(LauncherError):
    """The connection failed or broke: another try may help."""


@contextmanager
def opened(address: str, headers: Mapping[str, str]) -> Iterator[Any]:
    """A streamed answer, redirects followed. Raises UnreachableError where it breaks."""
    try:
        # Compressed answers could not be resumed, nor counted.
        asked = {**headers, "Accept-Encoding": "identity"}
        with get_session().stream(
            "GET", address, headers=asked, follow_redirects=True, timeout=_TIMEOUT_S
        ) as answer:
            yield answer
    except (LauncherError, Cancelled, OSError) as error:
        if isinstance(error, (ConnectionError, TimeoutError, ssl.SSLError)):
            raise unreachable(error, address) from error
        raise
    except Exception as error:
        # The client's own errors; its package is named differently from release to release.
        raise unreachable(error, address) from error


def unreachable(error: BaseException, address: str) -> UnreachableError:
    """What to say where the connection failed or broke."""
    return UnreachableError(
        tr("The connection to {host} failed: {reason}.").format(
            host=_host(address), reason=str(error).rstrip(".") or type(error).__name__
        ),
        tr("Check the network and try again: the download goes on where it stopped."),
        repr(error),
    )


def failure(status: int, address: str) -> LauncherError:
    """What an HTTP status means for the user."""
    host = _host(address)
    if status == 401:
        return LauncherError(
            tr("This repository needs a login, or does not exist."),
            tr(
                "Check its name. For a private or gated one, make a token on {host} and store it "
                "with “hf auth login”, or in the variable HF_TOKEN."
            ).format(host=host),
        )
    if status == 403:
        return LauncherError(
            tr("Its makers want their licence accepted before the download."),
            tr("Open the repository's page on {host}, accept the terms, and try again.").format(
                host=host
            ),
        )
    if status in (404, 410):
        return LauncherError(
            tr("There is no such repository or file on {host}.").format(host=host),
            tr("Check the name."),
        )
    if status == 429:
        return UnreachableError(
            tr("{host} asks to wait: too many requests.").format(host=host),
            tr("Try again in a few minutes."),
        )
    if status >= 500:
        return UnreachableError(
            tr("{host} has a fault of its own ({status}).").format(host=host, status=status),
            tr("Try again later: the download goes on where it stopped."),
        )
    return LauncherError(
        tr("{host} refused the request ({status}).").format(host=host, status=status)
    )


def _host(address: str) -> str:
    return urlsplit(address).hostname or address
