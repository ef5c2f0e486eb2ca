"""Translation for text that is made outside the window's own classes.

``core`` and its siblings hold no Qt, yet their sentences are shown in the window. They
pass each one through :func:`tr`; ``app`` installs Qt's translator at start, the command
line leaves the English as it is. Format *after* translating::

    tr("{n} layers").format(n=3)
"""

from __future__ import annotations

from collections.abc import Callable


def _identity(text: str) -> str:
    return text


_translate: Callable[[str], str] = _identity


def install_translator(translate: Callable[[str], str] | None) -> None:
    """Send every later :func:`tr` through ``translate``; ``None`` restores plain English."""
    global _translate
    _translate = translate or _identity


def tr(text: str) -> str:
    """The sentence in the user's language. Any thread."""
    return _translate(text)
