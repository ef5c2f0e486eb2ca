"""Names from files made fit to be shown: one line, no tricks with direction, no half characters.

In: any text that a file or a folder held. Out: text for a label. Pure; any thread.
"""

from __future__ import annotations

import unicodedata

#: Marks that turn the reading direction, or that are not seen at all.
_INVISIBLE = frozenset("\u061c\u200b\u200c\u200d\u200e\u200f\u2060\ufeff\u00ad") | frozenset(
    chr(code) for code in (*range(0x202A, 0x202F), *range(0x2066, 0x206A))
)
_LONGEST = 160


def display_name(text: str) -> str:
    """``text`` on one line: line breaks become spaces, controls and direction marks go.

    Characters that could not be decoded become U+FFFD. Markup stays as it is: labels show it
    as plain text. Long names are cut with an ellipsis.
    """
    kept = []
    for char in text:
        category = unicodedata.category(char)
        if char in _INVISIBLE:
            continue
        if category == "Cs":
            kept.append("\ufffd")
        elif category in ("Cc", "Zl", "Zp", "Zs"):
            kept.append(" ")
        else:
            kept.append(char)
        if len(kept) > 8 * _LONGEST:
            break
    clean = " ".join("".join(kept).split())
    if len(clean) > _LONGEST:
        clean = clean[: _LONGEST - 1].rstrip() + "…"
    return clean


def writable_text(text: str) -> str:
    """``text`` as UTF-8 can hold it: half a surrogate pair (from a clipboard) becomes "?"."""
    return text.encode("utf-8", "replace").decode("utf-8")
