"""What is printed, and where: results to stdout, all else to stderr.

In: values. Out: text that cannot move the cursor or colour the screen, whatever a file or a
model put into it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

from moelauncher.core.errors import LauncherError
from moelauncher.core.translate import tr
from moelauncher.core.units import format_share


class OutputLost(LauncherError):  # noqa: N818 - named for what happened
    """stdout cannot be written to (a full disk)."""


def prepare_streams() -> None:
    """UTF-8 on both streams, whatever the console's code page is.

    A file name that is no valid text holds half characters; they come out as ``\\udcff``,
    which is what JSON calls them too.
    """
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(encoding="utf-8", errors="backslashreplace")


def printable(text: str) -> str:
    """``text`` without control characters but line breaks and tabs."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in "\n\t" else "\ufffd" for c in text)


def out(text: str = "", *, end: str = "\n") -> None:
    """To stdout, at once."""
    _write(printable(text) + end)


def out_json(document: object) -> None:
    """One JSON document on one line of stdout. Unknown numbers are null, never NaN."""
    _write(json.dumps(document, ensure_ascii=False, allow_nan=False) + "\n")


def note(text: str) -> None:
    """A line to stderr."""
    aside(text + "\n")


def aside(text: str) -> None:
    """Text beside the result, as it comes: to stderr, without a line break."""
    # Without a stderr (closed by the caller) print would take stdout, where results go.
    if sys.stderr is not None:
        print(printable(text), end="", file=sys.stderr, flush=True)


def _write(text: str) -> None:
    try:
        print(text, end="", flush=True)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputLost(
            tr("The output cannot be written: {reason}.").format(
                reason=error.strerror or str(error)
            )
        ) from error


class ProgressLine:
    """One line on stderr that is painted over; nothing where stderr is no terminal."""

    def __init__(self, label: str, *, quiet: bool = False) -> None:
        self._label = label
        self._shown = ""
        self._on = sys.stderr is not None and sys.stderr.isatty() and not quiet

    def show(self, fraction: float) -> None:
        """Paint the line where its text changed."""
        text = f"{self._label}: {format_share(fraction)}"
        if self._on and text != self._shown:
            self._shown = text
            print(f"\r{text}   ", end="", file=sys.stderr, flush=True)

    def end(self) -> None:
        """Wipe the line."""
        if self._shown:
            print("\r" + " " * (len(self._shown) + 3) + "\r", end="", file=sys.stderr, flush=True)
            self._shown = ""


def table(head: Sequence[str], rows: Sequence[Sequence[str]], right: frozenset[int]) -> str:
    """Columns as wide as their longest cell; those in ``right`` are set to the right."""
    lines = [[printable(cell).replace("\n", " ") for cell in row] for row in (head, *rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    text = (
        "  ".join(
            cell.rjust(width) if i in right else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )
    return "\n".join(text)
