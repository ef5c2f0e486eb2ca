"""Every size and font of the window, the scheme in force, and the style sheet made of it all.

Painters and plots take their colours from :func:`theme` and repaint on ``theme().changed``;
ordinary widgets get theirs from the style sheet and say what they are by dynamic
properties:

- ``QPushButton`` ``kind``: ``"primary"``, ``"chip"`` (28 px), ``"segment"``, ``"quiet"``,
  ``"link"``
- ``QLabel`` ``tone``: ``"muted"``, ``"good"``, ``"warn"``, ``"bad"``, ``"accent"``
  (see :func:`set_tone`)
- ``QFrame`` ``card``: ``True`` for a bordered surface, ``line``: ``True`` for a rule
- ``QWidget`` ``panel``: ``True`` for the window's colour

Everything here runs on the GUI thread.
"""

from __future__ import annotations

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QFont,
    QFontInfo,
    QGuiApplication,
    QPalette,
)
from PySide6.QtWidgets import QApplication, QWidget

from moelauncher.gui.palette import DARK, LIGHT, Palette, mixed, text_on
from moelauncher.gui.style_sheet import filled_style_sheet

# Sizes, in logical pixels: one 8-px grid, 4 inside controls.
GRID = 8
HALF = 4
PANE_MARGIN = 16
CONTROL_HEIGHT = 32
CHIP_HEIGHT = 28
HEADER_HEIGHT = 48
STATUS_HEIGHT = 28
RADIUS = 6
BORDER = 1
FOCUS_RING = 2
EASING_MS = 120
MINIMUM_BODY_PX = 13


def tabular(font: QFont) -> QFont:
    """``font`` with digits of one width, so that changing figures do not jitter."""
    result = QFont(font)
    result.setFeature(QFont.Tag("tnum"), 1)
    return result


def font(
    size: str = "body", *, bold: bool = False, figures: bool = False, spacing_px: float = 0.0
) -> QFont:
    """The system's UI font. ``size``: "small", "body", "title" or "figure"."""
    base = QFont(QApplication.font())
    body_px = max(MINIMUM_BODY_PX, QFontInfo(base).pixelSize())
    base.setPixelSize(
        {"small": body_px - 1, "body": body_px, "title": body_px + 2, "figure": body_px + 6}[size]
    )
    if bold:
        base.setWeight(QFont.Weight.DemiBold)
    if spacing_px:
        base.setLetterSpacing(QFont.SpacingType.AbsoluteSpacing, spacing_px)
    return tabular(base) if figures else base


def chat_font(size: str = "body", *, bold: bool = False, figures: bool = False) -> QFont:
    """As :func:`font`, in the size that the user gave to the chat's text."""
    result = font(size, bold=bold, figures=figures)
    result.setPixelSize(max(8, round(result.pixelSize() * theme().chat_zoom / 100)))
    return result


def section_font() -> QFont:
    """The font of a pane's title (which is written in capitals)."""
    result = font("small", bold=True, spacing_px=0.4)
    result.setCapitalization(QFont.Capitalization.AllUppercase)
    return result


def set_tone(widget: QWidget, tone: str) -> None:
    """Give a label one of the tones of the style sheet ("" for plain text)."""
    if (widget.property("tone") or "") != tone:
        repolish(widget, "tone", tone)


def repolish(widget: QWidget, name: str, value: object) -> None:
    """Set a dynamic property that the style sheet reads, and make it count."""
    widget.setProperty(name, value)
    # Before the first polish there is nothing to redo, and doing it would lose the font.
    if not widget.testAttribute(Qt.WidgetAttribute.WA_WState_Polished):
        return
    style = widget.style()
    style.unpolish(widget)
    style.polish(widget)
    widget.update()


class Theme(QObject):
    """What the window looks like now.

    Signals:
        changed: the colours are others; repaint.
    """

    changed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self._mode = "system"
        self._chat_zoom = 100
        self._colors = LIGHT
        self._app: QApplication | None = None

    @property
    def colors(self) -> Palette:
        """The colours in force."""
        return self._colors

    @property
    def dark(self) -> bool:
        """Whether the dark scheme is in force."""
        return self._colors.dark

    @property
    def mode(self) -> str:
        """What was asked for: "system", "dark" or "light"."""
        return self._mode

    @property
    def chat_zoom(self) -> int:
        """The size of the chat's text, in percent of the usual one."""
        return self._chat_zoom

    def set_chat_zoom(self, percent: int) -> None:
        """Make the chat's text larger or smaller."""
        if percent != self._chat_zoom:
            self._chat_zoom = percent
            self.changed.emit()

    def apply(self, app: QApplication, mode: str) -> None:
        """Style ``app``; with "system" the system's scheme is followed live."""
        if self._app is not app:
            self._app = app
            app.styleHints().colorSchemeChanged.connect(self._scheme_changed)
            app.setStyle("Fusion")
            base = QFont(app.font())
            base.setPixelSize(max(MINIMUM_BODY_PX, QFontInfo(base).pixelSize()))
            app.setFont(base)
        self._mode = mode
        scheme = {"dark": Qt.ColorScheme.Dark, "light": Qt.ColorScheme.Light}.get(
            mode, Qt.ColorScheme.Unknown
        )
        # Also turns title bars and native dialogs; Unknown hands the choice back to the system.
        app.styleHints().setColorScheme(scheme)
        self._restyle()

    def _scheme_changed(self) -> None:
        if self._mode == "system":
            self._restyle()

    def _restyle(self) -> None:
        if self._app is None:
            return
        if self._mode == "system":
            dark = QGuiApplication.styleHints().colorScheme() == Qt.ColorScheme.Dark
        else:
            dark = self._mode == "dark"
        self._colors = DARK if dark else LIGHT
        self._app.setPalette(qt_palette(self._colors))
        self._app.setStyleSheet(style_sheet(self._colors))
        self.changed.emit()


_theme: Theme | None = None


def theme() -> Theme:
    """The one theme of the program."""
    global _theme
    if _theme is None:
        _theme = Theme()
    return _theme


def apply_theme(app: QApplication, mode: str = "system") -> None:
    """Style the whole program. ``mode``: "system", "dark" or "light"; may be called again."""
    theme().apply(app, mode)


def qt_palette(colors: Palette) -> QPalette:
    """The same colours for what the style draws itself (check marks, native parts)."""
    result = QPalette()
    role = QPalette.ColorRole
    for which, color in (
        (role.Window, colors.window),
        (role.WindowText, colors.text),
        (role.Base, colors.surface),
        (role.AlternateBase, colors.raised),
        (role.Text, colors.text),
        (role.Button, colors.raised),
        (role.ButtonText, colors.text),
        (role.BrightText, colors.text),
        (role.ToolTipBase, colors.raised),
        (role.ToolTipText, colors.text),
        (role.PlaceholderText, colors.muted),
        (role.Highlight, colors.accent),
        (role.HighlightedText, text_on(colors.accent)),
        (role.Accent, colors.accent),
        (role.Link, colors.accent),
        (role.LinkVisited, colors.accent),
        (role.Light, colors.border),
        (role.Midlight, colors.border),
        (role.Mid, colors.border),
        (role.Dark, colors.border),
        (role.Shadow, colors.border),
    ):
        result.setColor(which, color)
    for which in (role.WindowText, role.Text, role.ButtonText):
        result.setColor(QPalette.ColorGroup.Disabled, which, colors.disabled)
    return result


def style_sheet(colors: Palette) -> str:
    """The application's style sheet, made from the tokens above."""
    token = {
        name: value.name() for name, value in vars(colors).items() if isinstance(value, QColor)
    }
    token |= {
        "on_accent": text_on(colors.accent).name(),
        "accent_hover": mixed(colors.accent, colors.text, 0.12).name(),
        "accent_pressed": mixed(colors.accent, colors.window, 0.18).name(),
        "thumb": mixed(colors.border, colors.muted, 0.35).name(),
        "inner": str(CONTROL_HEIGHT - 2 * BORDER),
        "inner_focus": str(CONTROL_HEIGHT - 2 * FOCUS_RING),
        "chip": str(CHIP_HEIGHT - 2 * BORDER),
        "segment": str(CHIP_HEIGHT - 4 * BORDER),
        "chip_focus": str(CHIP_HEIGHT - 2 * FOCUS_RING),
        "radius": str(RADIUS),
        "ring": str(FOCUS_RING),
    }
    return filled_style_sheet(token)
