"""One message of the chat: its parts, how tall they are, and how they are drawn.

A message is no widget. :class:`~moelauncher.gui.chats.chat_view.ChatView` keeps a column of them
and asks for heights and painting, so a long chat costs what is on the screen. Documents are
made when they are first needed, and heights are kept for the width they were laid out for.
GUI thread only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import (
    QAbstractTextDocumentLayout,
    QColor,
    QFontMetricsF,
    QPainter,
    QPalette,
    QTextCharFormat,
    QTextCursor,
)

from moelauncher.core.chats.conversation import ShownTurn
from moelauncher.core.translate import tr
from moelauncher.gui import theme as look
from moelauncher.gui.chats.code_block import CodeBlock
from moelauncher.gui.chats.markdown import (
    ReplyDocument,
)
from moelauncher.gui.palette import Palette, faded

REPLY_MAX_PX = 720.0
#: The row beneath a message in which its actions appear; always there, so nothing moves.
ACTIONS_PX = 26.0
ARROW_PX = 24.0
LEFT_OUT_OPACITY = 0.5
#: What can be done with a turn: kinds of hot spots in the row beneath it.
ACTIONS = frozenset(
    {
        "older",
        "newer",
        "copy_turn",
        "edit",
        "answer",
        "regenerate",
        "go_on",
        "take_in",
        "delete",
        "use_chatml",
    }
)
#: These say where one is among the versions, so they are seen without hovering.
_ALWAYS_SEEN = frozenset({"older", "newer", "take_in", "use_chatml"})
FOLD_HEIGHT = 22.0
#: Even unfolded no more than this is laid out; copying still gives all of it.
SHOWN_CHARS_LIMIT = 200_000


@dataclass(frozen=True)
class HotSpot:
    """Something in a message that can be clicked, or reached by Tab.

    ``kind``: "thought", "details", "more" (folds), "copy" (``payload`` is the code), or one
    of :data:`ACTIONS`.
    """

    kind: str
    rect: QRectF  # in the message's coordinates
    label: str  # what it says
    payload: str = ""


#: A place that a search found in a part: start, end, and whether it is the present one.
Hit = tuple[int, int, bool]


@dataclass
class TextPart:
    """A laid out document within a message."""

    kind: str  # "user", "label", "reasoning", "body", "footer", "error", "hint", "details"
    document: ReplyDocument
    origin: QPointF
    codes: tuple[CodeBlock, ...] = ()
    quotes: tuple[tuple[int, int], ...] = ()  # (text block, depth)
    hits: tuple[Hit, ...] = ()  # what a search found

    @property
    def selectable(self) -> bool:
        """Whether the mouse selects in it: what was said, not what we say about it."""
        return self.kind not in ("label", "footer")

    @property
    def rect(self) -> QRectF:
        """Where it stands, in the message's coordinates."""
        size = self.document.size()
        return QRectF(self.origin.x(), self.origin.y(), size.width(), size.height())


#: Given a part's index: the selected stretch of it (start, end), or None.
SelectionOf = Callable[[int], "tuple[int, int] | None"]


class MessageView:
    """Root of the two kinds of messages. Coordinates start at the message's top left."""

    def __init__(self, text: str = "") -> None:
        self._text = text
        self.parts: list[TextPart] = []
        self.hot_spots: list[HotSpot] = []
        self.height = 0.0
        self._width: float | None = None
        #: The turn shown; None: a message that belongs to no kept turn.
        self.shown: ShownTurn | None = None
        self._version_rect = QRectF()
        #: Whether the actions are seen: under the mouse, or the last message.
        self.actions_seen = False

    def set_shown(self, shown: ShownTurn) -> None:
        """Which turn this is, and which of its versions."""
        if shown != self.shown:
            before, self.shown = self.shown, shown
            if before is None or _place_of(before) != _place_of(shown):
                self._width = None  # other actions; the documents stay

    @property
    def streaming(self) -> bool:
        """Whether text is still to come."""
        return False

    @property
    def plain_text(self) -> str:
        """All text that the message shows."""
        return self._text

    @property
    def source_text(self) -> str:
        """What was written: the user's text, or the reply's Markdown."""
        return self._text

    @property
    def searched_text(self) -> str:
        """All that a search may find in this message."""
        return self.source_text

    def searched_parts(self) -> list[TextPart]:
        """What a search looks through, in reading order: also what is folded away."""
        return [part for part in self.parts if part.selectable]

    def reveal(self, part: TextPart) -> bool:
        """Unfold ``part`` of :meth:`searched_parts`; False where it is seen already.

        The message is to be laid out again then, and its parts may be others.
        """
        return False

    @property
    def plain_body(self) -> str:
        """What was said, as it reads on the screen, without Markdown's marks."""
        return self.source_text

    def is_laid_out(self, width: float) -> bool:
        """Whether ``height`` is exact for ``width``."""
        return self._width == width

    def lay_out(self, width: float) -> None:
        """Make ``height``, ``parts`` and ``hot_spots`` true for ``width``."""
        if self._width != width:
            self._arrange(width)
            self._width = width

    def estimate(self, width: float) -> None:
        """Guess ``height`` for ``width`` without laying out anything."""
        if self._width == width:
            return
        line_px = look.chat_font("body").pixelSize() * 1.5
        per_line = max(20.0, min(width, REPLY_MAX_PX) / (look.chat_font("body").pixelSize() * 0.5))
        text = self.source_text
        lines = text.count("\n") + len(text) / per_line + 1
        self.height = self._estimated(lines * line_px)

    def invalidate(self) -> None:
        """Something is shown differently: lay out again, with new documents."""
        self._width = None
        self.parts = []
        self.hot_spots = []

    def part_at(self, point: QPointF) -> tuple[int, int] | None:
        """The nearest selectable part and the text position in it."""
        best: tuple[float, int] | None = None
        for index, part in enumerate(self.parts):
            if not part.selectable:
                continue
            rect = part.rect
            away = max(rect.top() - point.y(), point.y() - rect.bottom(), 0.0)
            if best is None or away < best[0]:
                best = (away, index)
        if best is None:
            return None
        part = self.parts[best[1]]
        local = point - part.origin
        height = part.document.size().height()
        if local.y() < 0:
            return best[1], 0
        if local.y() > height:
            return best[1], part.document.characterCount() - 1
        position = part.document.documentLayout().hitTest(local, Qt.HitTestAccuracy.FuzzyHit)
        return best[1], max(0, position)

    def link_at(self, point: QPointF) -> str:
        """The address of the link under ``point``, or ""."""
        for part in self.parts:
            if part.kind == "body" and part.rect.contains(point):
                return part.document.documentLayout().anchorAt(point - part.origin)
        return ""

    def text_at(self, point: QPointF) -> bool:
        """Whether there is text to select right under ``point``."""
        return any(part.selectable and part.rect.contains(point) for part in self.parts)

    def paint(
        self, painter: QPainter, clip: QRectF, selection_of: SelectionOf, pressed: HotSpot | None
    ) -> None:
        """Draw the parts within ``clip``. ``pressed``: the hot spot to show as hovered."""
        colors = look.theme().colors
        if self.shown is not None and self.shown.left_out:
            painter.setOpacity(LEFT_OUT_OPACITY)
        for index, part in enumerate(self.parts):
            if part.rect.intersects(clip.adjusted(-40, -40, 40, 40)):
                self._paint_part(painter, part, clip, selection_of(index), colors)
        painter.setOpacity(1.0)
        for spot in self.hot_spots:
            hidden = spot.kind in ACTIONS - _ALWAYS_SEEN and not self.actions_seen
            if spot.rect.intersects(clip) and not hidden:
                self._paint_hot_spot(painter, spot, spot == pressed, colors)
        self._paint_version(painter, colors)

    def _add_actions(self, left: float, right: float, y: float, room: float) -> None:
        """Put the row of actions at ``y``: from ``left`` on, or ending at ``right`` if that is
        more than 0. What finds no ``room`` has an empty place; the context menu has it all.
        """
        self._version_rect = QRectF()
        if self.shown is None or self.streaming:
            return
        font = QFontMetricsF(look.chat_font("small"))
        row = [
            (kind, label, font.horizontalAdvance(label) + 2 * look.GRID)
            for kind, label in self._actions(self.shown)
        ]
        if self.shown.left_out:
            label = tr("Not given to the model: include again")
            spot = ("take_in", label, font.horizontalAdvance(label) + 2 * look.GRID)
            row.insert(len(row) if right > 0 else 0, spot)
        if self.shown.n_versions > 1:
            count = ("", "", font.horizontalAdvance(self._version_text()))
            versions = [("older", "‹", ARROW_PX), count, ("newer", "›", ARROW_PX)]
            # At the outer edge, where they stand still while the others come and go.
            row = [*row, *versions] if right > 0 else [*versions, *row]
        total = sum(width for _, _, width in row)
        left_out = set()
        for kind, _, width in reversed(row):
            if total > room and kind and kind not in _ALWAYS_SEEN:
                left_out.add(kind)
                total -= width
        x = right - total if right > 0 else left
        for kind, label, width in row:
            if kind in left_out:
                self.hot_spots.append(HotSpot(kind, QRectF(), label, str(self.shown.key)))
                continue
            rect = QRectF(x, y + 2, width, ACTIONS_PX - 4)
            if kind:
                self.hot_spots.append(HotSpot(kind, rect, label, str(self.shown.key)))
            else:
                self._version_rect = rect
            x += width

    def _actions(self, shown: ShownTurn) -> list[tuple[str, str]]:
        """The actions of this kind of message, as (kind, label)."""
        return []

    def _version_text(self) -> str:
        if self.shown is None:
            return ""
        return f"{self.shown.version} / {self.shown.n_versions}"

    def _paint_version(self, painter: QPainter, colors: Palette) -> None:
        if self._version_rect.isEmpty():
            return
        painter.setFont(look.chat_font("small", figures=True))
        painter.setPen(colors.muted)
        painter.drawText(self._version_rect, Qt.AlignmentFlag.AlignCenter, self._version_text())

    def _arrange(self, width: float) -> None:
        raise NotImplementedError

    def _estimated(self, text_height: float) -> float:
        return text_height

    def _paint_part(
        self,
        painter: QPainter,
        part: TextPart,
        clip: QRectF,
        selected: tuple[int, int] | None,
        colors: Palette,
    ) -> None:
        context = QAbstractTextDocumentLayout.PaintContext()
        context.clip = clip.translated(-part.origin)
        # Qt draws rules in the inactive window text, and list marks in the text colour.
        context.palette.setColor(QPalette.ColorRole.Text, colors.text)
        context.palette.setColor(QPalette.ColorRole.HighlightedText, colors.text)
        context.palette.setColor(QPalette.ColorRole.WindowText, colors.border)
        marks = marks_of(part, selected, colors)
        if marks:
            context.selections = marks
        painter.save()
        painter.translate(part.origin)
        part.document.documentLayout().draw(painter, context)
        painter.restore()

    def _paint_hot_spot(
        self, painter: QPainter, spot: HotSpot, hovered: bool, colors: Palette
    ) -> None:
        painter.setFont(look.chat_font("small"))
        button = spot.kind == "copy" or spot.kind in ACTIONS
        if button and hovered:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(colors.hover)
            painter.drawRoundedRect(spot.rect, look.HALF, look.HALF)
        ends = self.shown is not None and (
            (spot.kind == "older" and self.shown.version == 1)
            or (spot.kind == "newer" and self.shown.version == self.shown.n_versions)
        )
        painter.setPen(colors.border if ends else colors.text if hovered else colors.muted)
        flags = Qt.AlignmentFlag.AlignVCenter | (
            Qt.AlignmentFlag.AlignHCenter if button else Qt.AlignmentFlag.AlignLeft
        )
        painter.drawText(spot.rect, flags, spot.label)


def marks_of(
    part: TextPart, selected: tuple[int, int] | None, colors: Palette
) -> list[QAbstractTextDocumentLayout.Selection]:
    """What a search found in ``part``, and what is selected, as they are painted."""
    marks = [
        # Muted text, as thinking is, could not be read on these.
        _marked(part, start, end, faded(colors.warn, 0.55 if present else 0.25), colors.text)
        for start, end, present in part.hits
    ]
    if selected is not None:
        marks.append(_marked(part, *selected, faded(colors.accent, 0.35)))
    return marks


def _marked(
    part: TextPart, start: int, end: int, color: QColor, text_color: QColor | None = None
) -> QAbstractTextDocumentLayout.Selection:
    mark = QAbstractTextDocumentLayout.Selection()
    mark.cursor = QTextCursor(part.document)
    mark.cursor.setPosition(start)
    mark.cursor.setPosition(end, QTextCursor.MoveMode.KeepAnchor)
    ink = QTextCharFormat()
    ink.setBackground(color)
    if text_color is not None:
        ink.setForeground(text_color)
    mark.format = ink
    return mark


def _place_of(shown: ShownTurn) -> tuple[object, ...]:
    turn = shown.turn
    where = (shown.key, shown.version, shown.n_versions)
    return *where, shown.left_out, shown.unanswered, turn.can_go_on, turn.state
