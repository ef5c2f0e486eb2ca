"""Tooltips of text that the program did not write: Qt would show what looks like HTML as such."""

from __future__ import annotations

import html


def plain_tip(text: str) -> str:
    """``text`` as a tooltip that shows it letter by letter."""
    if "<" not in text:
        return text
    return "<qt>" + html.escape(text).replace("\n", "<br>") + "</qt>"
