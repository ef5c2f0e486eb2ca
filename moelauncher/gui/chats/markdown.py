"""Markdown of a finished reply, as a styled document. Never HTML, never a remote resource.

In: the model's text. Out: a :class:`ReplyDocument` and the code blocks in it. Model output
is data: HTML stays visible as text, images are shown as their description and address, and
nothing is ever loaded. GUI thread only.
"""

from __future__ import annotations

import re

from PySide6.QtCore import Qt, QUrl
from PySide6.QtGui import (
    QColor,
    QFont,
    QFontDatabase,
    QFontMetricsF,
    QTextBlock,
    QTextBlockFormat,
    QTextCharFormat,
    QTextCursor,
    QTextDocument,
    QTextFormat,
    QTextFrame,
    QTextFrameFormat,
    QTextLength,
    QTextOption,
    QTextTable,
)

from moelauncher.core.translate import tr
from moelauncher.gui import theme as look
from moelauncher.gui.chats.code_block import (
    GAP_PX,
    PAD_PX,
    CodeBlock,
    find_code_blocks,
    style_code_block,
)
from moelauncher.gui.palette import Palette

#: Longer replies stay plain text: laying out megabytes of tables would freeze the window.
MARKDOWN_LIMIT_CHARS = 400_000
LINE_HEIGHT_PERCENT = 130
QUOTE_INDENT_PX = 14
#: Lists and quotes nested deeper than this are drawn at this depth.
NESTING_LIMIT = 12

_FENCE = re.compile(r"^[ >\t]*(?:[-*+]\s+|\d+[.)]\s+)*(`{3,}|~{3,})(.*)$")
_CODE_SPAN = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", re.DOTALL)
_MATH = re.compile(
    r"\\\[.*?\\\]|\\\(.*?\\\)|\$\$.+?\$\$|(?<![\\$\w])\$(?![\s$])[^$\n]*?(?<![\s\\])\$(?![\w$])",
    re.DOTALL,
)
_NAMELESS_IMAGE = re.compile(r"(?<![\\`])!\[\s*\](?=[(\[])")
_MATH_SPECIAL = re.compile(r"([\\_*\[\]()~`|])")
_DEEP = re.compile(rf"^(?:[ \t]*(?:>|[-*+][ \t])){{{NESTING_LIMIT + 1},}}")


class ReplyDocument(QTextDocument):
    """A document that loads nothing and remembers no undo steps."""

    def __init__(self) -> None:
        super().__init__()
        self.setUndoRedoEnabled(False)
        self.setDocumentMargin(0)
        self.setDefaultFont(look.chat_font("body"))
        option = QTextOption()
        option.setWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
        self.setDefaultTextOption(option)

    def loadResource(self, kind: int, name: QUrl | str) -> object:
        """Nothing: neither the network nor the disk is asked for what a reply names."""
        return None


def prepared(text: str) -> str:
    """``text`` so that Qt's Markdown reader neither swallows nor mangles parts of it.

    A leading ``---`` would be taken for front matter and hidden; two fenced blocks without
    text between them would become one; formulas would lose backslashes and underscores.
    """
    lines = text.replace("\x00", "\N{REPLACEMENT CHARACTER}").split("\n")
    out: list[str] = []
    prose: list[str] = []
    fence = ""
    closed_just_now = False

    def flush() -> None:
        if prose:
            out.append(_formulas_kept(_images_named("\n".join(prose))))
            prose.clear()

    for line in lines:
        match = _FENCE.match(line)
        if fence:
            out.append(line)
            if match and match[1].startswith(fence) and not match[2].strip():
                fence, closed_just_now = "", True
            continue
        if match and "`" not in match[2]:
            flush()
            if closed_just_now:
                out.append("\n\N{ZERO WIDTH SPACE}\n")
            out.append(line)
            fence = match[1]
            continue
        if line.strip():
            closed_just_now = False
        prose.append(_shallow(line))
    flush()
    result = "\n".join(out)
    return "\n" + result if result.lstrip().startswith("---") else result


def set_reply(document: ReplyDocument, text: str, colors: Palette) -> tuple[CodeBlock, ...]:
    """Fill ``document`` with the Markdown in ``text``; answers its code blocks."""
    if len(text) > MARKDOWN_LIMIT_CHARS:
        document.setPlainText(text)
        style_plain(document, colors.text)
        return ()
    features = (
        QTextDocument.MarkdownFeature.MarkdownDialectGitHub
        | QTextDocument.MarkdownFeature.MarkdownNoHTML
    )
    document.setMarkdown(prepared(text), features)
    edit = QTextCursor(document)
    edit.beginEditBlock()
    _describe_images(document)
    _drop_stray_lines(document.rootFrame())
    codes = find_code_blocks(document)
    in_code = {number for code in codes for number in range(code.first, code.last + 1)}
    block = document.begin()
    while block.isValid():
        if block.blockNumber() not in in_code:
            _style_block(block, colors)
        block = block.next()
    for code in codes:
        style_code_block(document, code, colors)
    _style_frames(document.rootFrame(), colors, in_code)
    edit.endEditBlock()
    document.setIndentWidth(24)
    return codes


def style_plain(document: QTextDocument, color: QColor) -> None:
    """The look of plain text: the line height and one colour for all of it."""
    cursor = QTextCursor(document)
    cursor.select(QTextCursor.SelectionType.Document)
    shape = QTextBlockFormat()
    shape.setLineHeight(
        LINE_HEIGHT_PERCENT, QTextBlockFormat.LineHeightTypes.ProportionalHeight.value
    )
    cursor.mergeBlockFormat(shape)
    ink = QTextCharFormat()
    ink.setForeground(color)
    cursor.mergeCharFormat(ink)
    # Text that is inserted later takes the format of the (perhaps empty) block.
    cursor.mergeBlockCharFormat(ink)


def spare_below_line(document: QTextDocument) -> float:
    """The room that the line height leaves below the last line, in pixels."""
    line = QFontMetricsF(document.defaultFont()).height()
    return line * (LINE_HEIGHT_PERCENT - 100) / 100


def quote_level(block: QTextBlock) -> int:
    """How deep in quotes a block stands; 0 for plain text."""
    return block.blockFormat().intProperty(QTextFormat.Property.BlockQuoteLevel.value)


def _formulas_kept(text: str) -> str:
    spans = list(_CODE_SPAN.finditer(text))

    def kept(match: re.Match[str]) -> str:
        if any(span.start() < match.end() and match.start() < span.end() for span in spans):
            return match[0]
        return _MATH_SPECIAL.sub(r"\\\1", match[0])

    return _MATH.sub(kept, text)


def _images_named(text: str) -> str:
    # Qt's reader drops an image that has no description, and its address with it.
    return _NAMELESS_IMAGE.sub(f"![{tr('no description')}]", text)


def _shallow(line: str) -> str:
    # The reader recurses once a level; a line of a thousand ">" must stay harmless.
    match = _DEEP.match(line)
    if match is None:
        return line
    return "\\" + line.lstrip()


def _describe_images(document: QTextDocument) -> None:
    found: list[tuple[int, int, str]] = []
    block = document.begin()
    while block.isValid():
        parts = block.begin()
        while not parts.atEnd():
            fragment = parts.fragment()
            shape = fragment.charFormat()
            if shape.isImageFormat():
                image = shape.toImageFormat()
                name = image.stringProperty(QTextFormat.Property.ImageAltText.value)
                text = tr("[image: {what}]").format(
                    what=", ".join(part for part in (name, image.name()) if part)
                )
                found.append((fragment.position(), fragment.length(), text))
            parts += 1
        block = block.next()
    cursor = QTextCursor(document)
    for position, length, text in reversed(found):
        cursor.setPosition(position)
        cursor.setPosition(position + length, QTextCursor.MoveMode.KeepAnchor)
        cursor.insertText(text, QTextCharFormat())


def _style_block(block: QTextBlock, colors: Palette) -> None:
    old = block.blockFormat()
    shape = QTextBlockFormat()
    shape.setLineHeight(
        LINE_HEIGHT_PERCENT, QTextBlockFormat.LineHeightTypes.ProportionalHeight.value
    )
    level = old.headingLevel()
    in_table = QTextCursor(block).currentTable() is not None
    if level:
        shape.setTopMargin(14)
        shape.setBottomMargin(4)
    elif in_table:
        shape.setTopMargin(0)
        shape.setBottomMargin(0)
    elif block.textList() is not None:
        shape.setTopMargin(2)
        shape.setBottomMargin(2)
    else:
        shape.setTopMargin(4)
        shape.setBottomMargin(4)
    depth = quote_level(block)
    if depth:
        shape.setLeftMargin(QUOTE_INDENT_PX * depth)
    if block.blockNumber() == 0:
        shape.setTopMargin(0)
    cursor = QTextCursor(block)
    cursor.mergeBlockFormat(shape)
    ink = colors.muted if depth else colors.text
    body_px = look.chat_font("body").pixelSize()
    for start, length, run in _runs(block):
        style = QTextCharFormat(run)
        style.setForeground(colors.accent_text if run.isAnchor() else ink)
        if run.fontFixedPitch():
            style.setFontFamilies(_fixed_families())
            style.setBackground(colors.raised if colors.dark else colors.hover)
            style.setProperty(QTextFormat.Property.FontPixelSize.value, body_px - 1)
        if level:
            # Qt's relative size would win over a size in pixels.
            style.clearProperty(QTextFormat.Property.FontSizeAdjustment.value)
            size = body_px + {1: 5, 2: 3, 3: 1}.get(level, 0)
            style.setProperty(QTextFormat.Property.FontPixelSize.value, size)
        if level or run.fontWeight() > QFont.Weight.Normal:
            style.setFontWeight(QFont.Weight.DemiBold)
        cursor.setPosition(start)
        cursor.setPosition(start + length, QTextCursor.MoveMode.KeepAnchor)
        cursor.setCharFormat(style)


def _fixed_families() -> list[str]:
    return [QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont).family(), "monospace"]


def _runs(block: QTextBlock) -> list[tuple[int, int, QTextCharFormat]]:
    # Collected first: merging formats splits the fragments that are being walked.
    runs = []
    parts = block.begin()
    while not parts.atEnd():
        fragment = parts.fragment()
        runs.append((fragment.position(), fragment.length(), fragment.charFormat()))
        parts += 1
    return runs


def _style_frames(frame: QTextFrame, colors: Palette, in_code: set[int]) -> None:
    """``in_code``: numbers of the blocks that a code block is made of."""
    for child in frame.childFrames():
        if isinstance(child, QTextTable):
            shape = child.format().toTableFormat()
            shape.setBorder(1)
            shape.setBorderCollapse(True)
            shape.setBorderStyle(QTextFrameFormat.BorderStyle.BorderStyle_Solid)
            shape.setBorderBrush(colors.border)
            shape.setCellPadding(6)
            shape.setCellSpacing(0)
            # Above a table Qt takes its margin alone, without the room that a code card keeps.
            before = child.document().findBlock(child.firstPosition() - 1)
            after_code = before.blockNumber() in in_code
            shape.setTopMargin(GAP_PX + PAD_PX if after_code else look.GRID)
            shape.setBottomMargin(look.GRID)
            # As wide as its text, and no wider than the column.
            shape.setWidth(QTextLength())
            shape.setAlignment(Qt.AlignmentFlag.AlignLeft)
            child.setFormat(shape)
            for column in range(child.columns()):
                cell = child.cellAt(0, column)
                style = cell.format()
                style.setBackground(colors.surface)
                cell.setFormat(style)
                cursor = cell.firstCursorPosition()
                cursor.setPosition(
                    cell.lastCursorPosition().position(), QTextCursor.MoveMode.KeepAnchor
                )
                _align_header(child, column)
                bold = QTextCharFormat()
                bold.setFontWeight(QFont.Weight.DemiBold)
                cursor.mergeCharFormat(bold)
        _style_frames(child, colors, in_code)


def _drop_stray_lines(frame: QTextFrame) -> None:
    # WORKAROUND: Qt's reader leaves an empty block before the text of a table's first cell.
    for child in frame.childFrames():
        if isinstance(child, QTextTable):
            cell = child.cellAt(0, 0)
            first = cell.firstCursorPosition()
            if first.block() != cell.lastCursorPosition().block() and not first.block().text():
                first.deleteChar()
        _drop_stray_lines(child)


def _align_header(table: QTextTable, column: int) -> None:
    # Qt's reader aligns the cells of a column, but not its header.
    if table.rows() < 2:
        return
    shape = QTextBlockFormat()
    below = table.cellAt(1, column).firstCursorPosition()
    shape.setAlignment(below.blockFormat().alignment())
    table.cellAt(0, column).firstCursorPosition().mergeBlockFormat(shape)
