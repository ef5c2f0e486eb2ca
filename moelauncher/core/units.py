"""The one place that reads and writes sizes, counts, rates and durations for people.

GiB is 2^30, GB is 10^9; the window says GiB. Pure; any thread.
"""

from __future__ import annotations

import re

from moelauncher.core.errors import LauncherError
from moelauncher.core.translate import tr

KIB = 1 << 10
MIB = 1 << 20
GIB = 1 << 30
TIB = 1 << 40

NO_BREAK_SPACE = "\N{NO-BREAK SPACE}"

_UNITS = {
    "": 1,
    "b": 1,
    "kb": 10**3,
    "mb": 10**6,
    "gb": 10**9,
    "tb": 10**12,
    "k": KIB,
    "m": MIB,
    "g": GIB,
    "t": TIB,
    "kib": KIB,
    "mib": MIB,
    "gib": GIB,
    "tib": TIB,
}
_SIZE = re.compile(r"([+-]?\d+(?:\.\d+)?)\s*([A-Za-z]*)")

#: Below this a size was surely meant in another unit.
SMALLEST_SIZE_BYTES = MIB
#: Above this no machine of today goes.
LARGEST_SIZE_BYTES = 1024 * TIB


def parse_size(text: str, *, smallest_bytes: int = SMALLEST_SIZE_BYTES) -> int:
    """Bytes of "12GiB", "11900MiB", "12GB" or a plain number of bytes.

    Raises LauncherError with one sentence, and what to write instead. ``smallest_bytes`` is
    the least that makes sense here; pass 0 where nothing is a sensible answer too.
    """
    wish = text.strip()
    hint = tr("Write for example 12GiB, 11900MiB or 12GB.")
    if not wish:
        raise LauncherError(tr("The size is empty."), hint)
    match = _SIZE.fullmatch(wish)
    if match is None:
        raise LauncherError(tr("“{text}” is no size.").format(text=wish), hint)
    number, unit = match.groups()
    if unit.lower() not in _UNITS:
        raise LauncherError(
            tr("“{text}” is no size: there is no unit “{unit}”.").format(text=wish, unit=unit), hint
        )
    if number.startswith("-"):
        raise LauncherError(
            tr("A size cannot be negative, as “{text}” is.").format(text=wish), hint
        )
    if not unit and "." in number:
        raise LauncherError(tr("“{text}” needs a unit.").format(text=wish), hint)
    n_bytes = (
        round(float(number) * _UNITS[unit.lower()])
        if "." in number
        else int(number) * _UNITS[unit.lower()]
    )
    if n_bytes < smallest_bytes:
        if n_bytes == 0:
            raise LauncherError(tr("A size must be above 0."), hint)
        raise LauncherError(
            tr("“{text}” means {n_bytes} bytes, which is too small to be meant.").format(
                text=wish, n_bytes=n_bytes
            ),
            hint if unit else tr("Write {number}GiB.").format(number=number),
        )
    if n_bytes > LARGEST_SIZE_BYTES:
        raise LauncherError(
            tr("“{text}” is more memory than any machine has.").format(text=wish), hint
        )
    return n_bytes


def format_bytes(n_bytes: int | None) -> str:
    """ "1.2 GiB", "512 MiB", "0 MiB"; a dash where unknown. Negative numbers keep their sign."""
    if n_bytes is None:
        return "–"
    size = abs(n_bytes)
    sign = "-" if n_bytes < 0 else ""
    # 1023.96 MiB would print as 1024 MiB: the switch comes where rounding would cross.
    if size >= GIB - MIB // 2:
        return f"{sign}{size / GIB:.1f} GiB"
    if size >= MIB or size == 0:
        return f"{sign}{size / MIB:.0f} MiB"
    return f"{sign}{max(round(size / KIB), 1)} KiB"


def format_tokens(n_tokens: int | None) -> str:
    """ "32k", "1.2k", "412": 1k is 1024 where it divides a context size evenly, else 1000."""
    if n_tokens is None:
        return "–"
    if n_tokens < 1000:
        return str(n_tokens)
    if n_tokens % 1024 == 0:
        return f"{n_tokens // 1024}k"
    if n_tokens >= 99_500:
        return f"{n_tokens / 1000:.0f}k"
    return f"{n_tokens / 1000:.1f}".removesuffix(".0") + "k"


def format_rate(tokens_per_s: float | None) -> str:
    """ "34.6 tok/s", "310 tok/s" from a hundred on; a dash where unknown."""
    if tokens_per_s is None:
        return "–"
    if tokens_per_s >= 99.95:
        return f"{tokens_per_s:.0f} tok/s"
    return f"{tokens_per_s:.1f} tok/s"


def format_duration(seconds: float | None) -> str:
    """ "0.4 s", "4 s", "3 min", "1 h 5 min"; a dash where unknown."""
    if seconds is None:
        return "–"
    if seconds < 0.95:
        return f"{max(seconds, 0.0):.1f} s"
    if seconds < 89.5:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes} min"
    hours, rest = divmod(minutes, 60)
    return f"{hours} h {rest} min" if rest else f"{hours} h"


def format_parameters(n_params: int | None) -> str:
    """ "34.7B", "270M", "1.2T"; a dash where unknown."""
    if n_params is None:
        return "–"
    for size, letter in ((10**12, "T"), (10**9, "B"), (10**6, "M")):
        if n_params >= size * 0.9995:
            value = n_params / size
            return f"{value:.0f}{letter}" if letter == "M" else f"{value:.1f}{letter}"
    return str(n_params)


def format_share(share: float | None) -> str:
    """ "62 %" of a fraction 0..1; a dash where unknown."""
    return "–" if share is None else f"{share * 100:.0f} %"


def format_gib(n_bytes: float) -> str:
    """GiB without the unit, with as many digits as are worth reading: "10.4", "0.63"."""
    value = n_bytes / GIB
    return f"{value:.1f}" if abs(value) >= 0.995 else f"{value:.2f}"


def parse_tokens(text: str) -> int | None:
    """Tokens as people type them: "32768", "32,768", "32k", "1M" (of 1024 each).

    None where it is no number above 0.
    """
    # Separators stand between thousands only: 4096.5 is no way to write 40965.
    match = re.fullmatch(
        r"\s*([0-9]{1,9}|[0-9]{1,3}(?:[\s,.'_\u2019\u202f\u00a0][0-9]{3}){1,2})\s*([kKmM]?)\s*",
        text,
    )
    if match is None:
        return None
    unit = {"": 1, "k": 1 << 10, "m": 1 << 20}[match[2].lower()]
    number = int(re.sub(r"[^0-9]", "", match[1])) * unit
    return number or None


def unbroken(text: str) -> str:
    """``text``, such as "334 MiB RAM", as a line that is broken elsewhere keeps it together."""
    return text.replace(" ", NO_BREAK_SPACE)
