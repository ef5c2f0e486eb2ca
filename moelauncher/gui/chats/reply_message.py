"""A model's reply: plain text while it streams, Markdown once it is finished.

Around the text: the folded thinking block, the prompt's progress, an error with its hint and
folded details, and the numbers. GUI thread only.
"""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import (
    QColor,
    QFontMetricsF,
    QPainter,
    QTextCharFormat,
    QTextCursor,
)

from moelauncher.core.chats.conversation import ShownTurn
from moelauncher.core.chats.turn import Turn, TurnState
from moelauncher.core.engine_protocol import GenerationStats
from moelauncher.core.errors import LauncherError, TemplateRefused
from moelauncher.core.speed.prompt_pace import PromptReading
from moelauncher.core.translate import tr
from moelauncher.gui import theme as look
from moelauncher.gui.chats.code_block import CodeBlock, card_rect, copy_rect, paint_card
from moelauncher.gui.chats.markdown import (
    ReplyDocument,
    set_reply,
    style_plain,
)
from moelauncher.gui.chats.message_view import (
    ACTIONS_PX,
    FOLD_HEIGHT,
    REPLY_MAX_PX,
    HotSpot,
    MessageView,
    SelectionOf,
    TextPart,
)
from moelauncher.gui.chats.reply_error import error_parts, rails
from moelauncher.gui.chats.reply_footer import footer_runs, prompt_progress_text, thought_text
from moelauncher.gui.chats.reply_marks import (
    paint_caret,
    paint_progress,
    quote_rails,
    quoted_blocks,
)
from moelauncher.gui.palette import Palette

#: Room that replies leave on the right, so that the user's bubbles stand out.
REPLY_INSET_PX = 56.0
PROGRESS_MAX_PX = 320.0


class ReplyMessage(MessageView):
    """A model's reply: plain text while it streams, Markdown once it is finished."""

    def __init__(self, label: str, show_label: bool) -> None:
        super().__init__()
        self._label = label
        self._show_label = show_label
        self._reasoning = ""
        self._thought_began_s: float | None = None
        self._thought_s: float | None = None
        self._progress: PromptReading | None = None
        self._streaming = True
        self._stats: GenerationStats | None = None
        self._placement_text = ""
        self._error: LauncherError | None = None
        self._thought_open = False
        self._details_open = False
        self._cut = False
        self._copied: HotSpot | None = None
        self._progress_rect = QRectF()
        self._body: TextPart | None = None
        self._reasoning_part: TextPart | None = None

    @classmethod
    def of_turn(cls, turn: Turn, show_label: bool) -> ReplyMessage:
        """A reply that was written earlier, or is to be written on."""
        message = cls(turn.label, show_label)
        message._text, message._reasoning = turn.text, turn.reasoning
        message._stats, message._placement_text = turn.stats, turn.placement_text
        message._error = turn.error
        message._thought_s = turn.thought_s
        message._streaming = turn.state is TurnState.STREAMING
        message._cut = turn.state is TurnState.CUT
        return message

    @property
    def streaming(self) -> bool:
        """Whether text is still to come."""
        return self._streaming

    @property
    def label(self) -> str:
        """Who answers."""
        return self._label

    @property
    def plain_text(self) -> str:
        if not self.parts:
            self.lay_out(self._width or REPLY_MAX_PX)
        shown: list[str] = []
        if self._show_label and self._label:
            shown.append(self._label)
        folds = {spot.kind: spot.label for spot in self.hot_spots}
        if "thought" in folds:
            shown.append(folds["thought"])
        for part in self.parts:
            if part.kind != "label":
                shown.append(part.document.toPlainText())
        if self._waiting_text():
            shown.append(self._waiting_text())
        return "\n".join(text for text in shown if text)

    @property
    def searched_text(self) -> str:
        # Markdown's marks may stand within words.
        plain = self.plain_body if self._has_marks() else ""
        return f"{self._text}\n{plain}\n{self._reasoning}"

    def searched_parts(self) -> list[TextPart]:
        folded = bool(self._reasoning) and not self._thought_open
        return [*([self._thinking()] if folded else []), *super().searched_parts()]

    def reveal(self, part: TextPart) -> bool:
        folded = part is self._reasoning_part and not self._thought_open
        if folded:
            self.toggle("thought")
        return folded

    def _has_marks(self) -> bool:
        return any(mark in self._text for mark in "*_`\\~[&")

    @property
    def plain_body(self) -> str:
        if self._width is None:
            self.lay_out(REPLY_MAX_PX)
        return self._body.document.toPlainText() if self._body is not None else ""

    def append(self, text: str, reasoning: str, now_s: float) -> float:
        """Add streamed text; cheap, the last paragraph alone is laid out again.

        Answers from where on, in the message's coordinates, it has to be painted again.
        """
        self._progress = None if (text or reasoning) else self._progress
        if reasoning:
            if self._thought_began_s is None:
                # Of a reply that is looked at again, some thinking is done already.
                self._thought_began_s = now_s - (self._thought_s or 0.0)
            self._reasoning += reasoning
            if not self._text:
                self._thought_s = now_s - self._thought_began_s
        if text:
            if self._thought_began_s is not None and not self._text:
                self._thought_s = now_s - self._thought_began_s
            # Models open with line breaks after their thinking; an empty line is no answer.
            self._text += text if self._text else text.lstrip("\n")
        if self._width is None:
            return 0.0
        changed_from = 0.0
        if text and self._body is not None:
            if not reasoning:
                # A word that grows may move from the last line to the next one.
                line_px = 2 * QFontMetricsF(self._body.document.defaultFont()).height()
                changed_from = max(0.0, self._body.rect.bottom() - line_px)
            self._insert(self._body, text)
        if reasoning and self._reasoning_part is not None:
            self._insert(self._reasoning_part, reasoning)
        self._stack(self._width)
        return changed_from

    def set_progress(self, reading: PromptReading) -> bool:
        """How much of the prompt has been read. Answers whether that looks different now."""
        before = self._waiting_text()
        self._progress = reading
        if before == self._waiting_text():
            return False
        if self._width is not None:
            self._stack(self._width)
        return True

    def finish(self, stats: GenerationStats, placement_text: str) -> None:
        """The reply is complete (or was stopped): show it as Markdown."""
        self._stats = stats
        self._placement_text = placement_text
        self._close()

    def fail(self, error: LauncherError) -> None:
        """The reply ended with an error; what came before stays."""
        self._error = error
        self._close()

    def toggle(self, kind: str) -> None:
        """Unfold or fold: "thought" or "details"."""
        if kind == "thought":
            self._thought_open = not self._thought_open
        elif kind == "details":
            self._details_open = not self._details_open
        if self._width is not None:
            self._stack(self._width)

    def set_copied(self, spot: HotSpot | None) -> None:
        """Say at ``spot`` that its code was copied; None takes it back."""
        self._copied = spot
        if self._width is not None:
            self._stack(self._width)

    def invalidate(self) -> None:
        super().invalidate()
        self._body = None
        self._reasoning_part = None

    def _close(self) -> None:
        self._streaming = False
        self._progress = None
        self.invalidate()

    def _insert(self, part: TextPart, text: str) -> None:
        cursor = QTextCursor(part.document)
        cursor.movePosition(QTextCursor.MoveOperation.End)
        cursor.insertText(text)

    def _arrange(self, width: float) -> None:
        # A message that is only stacked anew keeps its documents; a new width re-flows them.
        self._stack(width)

    def _stack(self, width: float) -> None:
        colors = look.theme().colors
        column = max(120.0, min(REPLY_MAX_PX, width - min(REPLY_INSET_PX, width * 0.08)))
        self.parts = []
        self.hot_spots = []
        y = 0.0
        if self._show_label and self._label:
            y += self._add_runs("label", [(self._label, True)], y, column, colors.muted) + 2
        if self._reasoning:
            rect = QRectF(0, y, column, FOLD_HEIGHT)
            self.hot_spots.append(HotSpot("thought", rect, self._thought_label(column)))
            y += FOLD_HEIGHT + 2
            if self._thought_open:
                y += self._add_reasoning(y, column) + look.GRID
        if self._text:
            y += self._add_body(y, column, colors)
        self._progress_rect = QRectF()
        waiting = self._waiting_text()
        if waiting:
            self._progress_rect = QRectF(0, y, min(column, PROGRESS_MAX_PX), 34)
            y += 34
        if self._error is not None:
            top = y + (look.GRID if y else 0)
            parts, spots, height = error_parts(self._error, top, column, self._details_open)
            self.parts += parts
            self.hot_spots += spots
            y += height + (look.GRID if self._text or self._reasoning else 0)
        if self._cut:
            y += look.GRID if y else 0
            text = tr("cut off: the program ended while this was being written")
            y += self._add_runs("footer", [(text, False)], y, column, colors.warn)
        elif self._stats is not None and not self._streaming:
            runs = footer_runs(self._stats, self._placement_text)
            y += look.GRID
            y += self._add_runs("footer", runs, y, column, colors.muted)
        self._add_actions(-look.GRID, 0.0, max(y, FOLD_HEIGHT), width + look.GRID)
        self.height = max(y, FOLD_HEIGHT) + ACTIONS_PX

    def _actions(self, shown: ShownTurn) -> list[tuple[str, str]]:
        found = [("copy_turn", tr("Copy")), ("regenerate", tr("Regenerate"))]
        if shown.turn.can_go_on:
            found.insert(0, ("go_on", tr("Continue")))
        if isinstance(shown.turn.error, TemplateRefused):
            found.insert(0, ("use_chatml", tr("Use ChatML for this model")))
        return [*found, ("delete", tr("Delete"))]

    def _add_runs(
        self, kind: str, runs: list[tuple[str, bool]], y: float, column: float, ink: QColor
    ) -> float:
        document = ReplyDocument()
        document.setDefaultFont(look.chat_font("small", figures=True))
        cursor = QTextCursor(document)
        for text, strong in runs:
            shape = QTextCharFormat()
            shape.setFont(look.chat_font("small", bold=strong, figures=True))
            shape.setForeground(look.theme().colors.text if strong else ink)
            cursor.insertText(text, shape)
        document.setTextWidth(column)
        self.parts.append(TextPart(kind, document, QPointF(0, y)))
        return document.size().height()

    def _thinking(self) -> TextPart:
        if self._reasoning_part is None:
            document = ReplyDocument()
            document.setPlainText(self._reasoning.strip("\n"))
            style_plain(document, look.theme().colors.muted)
            self._reasoning_part = TextPart("reasoning", document, QPointF())
        return self._reasoning_part

    def _add_reasoning(self, y: float, column: float) -> float:
        part = self._thinking()
        part.origin = QPointF(14, y)
        part.document.setTextWidth(column - 14)
        self.parts.append(part)
        return part.document.size().height()

    def _add_body(self, y: float, column: float, colors: Palette) -> float:
        if self._body is None:
            document = ReplyDocument()
            codes: tuple[CodeBlock, ...] = ()
            quotes: tuple[tuple[int, int], ...] = ()
            if self._streaming:
                document.setPlainText(self._text)
                style_plain(document, colors.text)
            else:
                codes = set_reply(document, self._text, colors)
                quotes = quoted_blocks(document)
            self._body = TextPart("body", document, QPointF(), codes, quotes)
        part = self._body
        if part.document.textWidth() != column:
            part.document.setTextWidth(column)
        above = 0.0
        if part.codes:
            # Qt drops the margin above a document's first block, where its card begins.
            above = max(0.0, -card_rect(part.document, part.codes[0], column).top())
        part.origin = QPointF(0, y + above)
        self.parts.append(part)
        for code in part.codes:
            card = card_rect(part.document, code, column).translated(part.origin)
            # As wide as either text, so that "Copied" does not move anything.
            rect = copy_rect(card, max(tr("Copy"), tr("Copied"), key=len))
            spot = HotSpot("copy", rect, tr("Copy"), code.text)
            if self._copied is not None and self._copied.rect == rect:
                spot = HotSpot("copy", rect, tr("Copied"), code.text)
            self.hot_spots.append(spot)
        height = part.document.size().height()
        if part.codes and part.codes[-1].last == part.document.blockCount() - 1:
            card = card_rect(part.document, part.codes[-1], column)
            height = max(height, card.bottom() + 1)
        return above + height

    def _thought_label(self, column: float) -> str:
        arrow = "▾" if self._thought_open else "▸"
        thinking = self._streaming and not self._text
        label = f"{arrow} " + thought_text(self._thought_s, thinking)
        if thinking and not self._thought_open:
            # A slow model thinks for minutes: the newest line shows that it is at work.
            tail = self._reasoning[-300:].strip().replace("\n", " ")
            room = column - QFontMetricsF(look.chat_font("small")).horizontalAdvance(label + " · ")
            metrics = QFontMetricsF(look.chat_font("small"))
            tail = metrics.elidedText(tail, Qt.TextElideMode.ElideLeft, room)
            label += f" · {tail}" if tail else ""
        return label

    def _waiting_text(self) -> str:
        if not self._streaming or self._text or self._reasoning:
            return ""
        return prompt_progress_text(self._progress)

    def _estimated(self, text_height: float) -> float:
        extra = FOLD_HEIGHT if self._reasoning else 0.0
        return text_height + extra + ACTIONS_PX + (30.0 if self._stats is not None else 0.0)

    def paint(
        self, painter: QPainter, clip: QRectF, selection_of: SelectionOf, pressed: HotSpot | None
    ) -> None:
        colors = look.theme().colors
        for rail, is_error in rails(self.parts, self.hot_spots):
            painter.fillRect(rail, colors.bad if is_error else colors.border)
        super().paint(painter, clip, selection_of, pressed)
        if not self._progress_rect.isEmpty():
            share = None if self._progress is None else self._progress.share
            paint_progress(painter, self._progress_rect, self._waiting_text(), share)
        if self._streaming and self._text and self._body is not None:
            paint_caret(painter, self._body)

    def _paint_part(
        self,
        painter: QPainter,
        part: TextPart,
        clip: QRectF,
        selected: tuple[int, int] | None,
        colors: Palette,
    ) -> None:
        if part.kind == "body" and not self._streaming:
            for code in part.codes:
                card = card_rect(part.document, code, part.document.textWidth())
                card.translate(part.origin)
                if card.intersects(clip):
                    paint_card(painter, card, code.language, colors)
            for rail in quote_rails(part, clip):
                painter.fillRect(rail, colors.border)
        super()._paint_part(painter, part, clip, selected, colors)
