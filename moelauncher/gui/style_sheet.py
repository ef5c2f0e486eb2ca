"""The window's style sheet. It holds no colour and no size of its own: ``theme`` fills them in."""

from __future__ import annotations

from collections.abc import Mapping


def filled_style_sheet(tokens: Mapping[str, str]) -> str:
    """The style sheet with each ``$name`` replaced by ``tokens[name]``."""
    sheet = _SHEET
    # Longest names first, so that $accent does not eat the start of $accent_hover.
    for name in sorted(tokens, key=len, reverse=True):
        sheet = sheet.replace("$" + name, tokens[name])
    return sheet


_SHEET = """
QMainWindow, QDialog, QWidget[panel="true"] { background: $window; }
QDialogButtonBox { dialogbuttonbox-buttons-have-icons: 0; }
QLabel { background: transparent; color: $text; }
QLabel:disabled { color: $disabled; }
QLabel[tone="muted"] { color: $muted; }
QLabel[tone="good"] { color: $good; }
QLabel[tone="warn"] { color: $warn; }
QLabel[tone="bad"] { color: $bad; }
QLabel[tone="accent"] { color: $accent_text; }

QLabel[hint="true"] { background: $window; padding: 4px 8px; border-radius: $radiuspx; }

QFrame[card="true"] { background: $surface; border: 1px solid $border; border-radius: $radiuspx; }
QFrame[segments="true"] { border: 1px solid $border; border-radius: $radiuspx; }
QFrame[line="true"] { background: $border; border: none; }

QPushButton, QToolButton {
    background: $raised; color: $text; border: 1px solid $border; border-radius: $radiuspx;
    min-height: $innerpx; padding: 0 12px;
}
QToolButton { padding: 0 8px; }
QPushButton:hover, QToolButton:hover { background: $hover; }
QPushButton:pressed, QToolButton:pressed { background: $pressed; }
QPushButton:focus { border: $ringpx solid $accent; min-height: $inner_focuspx; padding: 0 11px; }
QToolButton:focus { border: $ringpx solid $accent; min-height: $inner_focuspx; padding: 0 7px; }
QPushButton:checked, QToolButton:checked { border-color: $accent; color: $accent_text; }
QPushButton:disabled, QToolButton:disabled {
    color: $disabled; background: $surface; border-color: $border;
}
QPushButton[kind="primary"] {
    background: $accent; color: $on_accent; border-color: $accent; font-weight: 600;
}
QPushButton[kind="primary"]:hover { background: $accent_hover; border-color: $accent_hover; }
QPushButton[kind="primary"]:pressed { background: $accent_pressed; border-color: $accent_pressed; }
QPushButton[kind="primary"]:focus { border-color: $text; }
QPushButton[kind="primary"]:disabled {
    background: $raised; color: $disabled; border-color: $border;
}
QPushButton[kind="chip"] { min-height: $chippx; padding: 0 10px; }
QPushButton[kind="chip"]:focus { min-height: $chip_focuspx; padding: 0 9px; }
QPushButton[kind="foot"] { min-height: 20px; padding: 0 8px; }
QPushButton[kind="foot"]:focus { min-height: 18px; padding: 0 7px; }
QPushButton[kind="quiet"], QToolButton[kind="quiet"] {
    background: transparent; border-color: transparent; color: $muted; padding: 0 8px;
}
QPushButton[kind="quiet"]:hover, QToolButton[kind="quiet"]:hover {
    background: $hover; color: $text;
}
QPushButton[kind="quiet"]:focus, QToolButton[kind="quiet"]:focus {
    border-color: $accent; padding: 0 7px;
}
QPushButton[kind="link"] {
    background: transparent; border: none; color: $accent_text; text-align: left;
    min-height: 16px; padding: 0;
}
QPushButton[kind="link"]:hover { text-decoration: underline; }
QPushButton[kind="link"]:focus { border: none; text-decoration: underline; padding: 0; }
QPushButton[kind="link"]:disabled { color: $muted; }
QPushButton[kind="warnings"] {
    background: transparent; border: 1px solid transparent; color: $warn;
    min-height: 20px; padding: 0 6px;
}
QPushButton[kind="warnings"]:hover { background: $hover; }
QPushButton[kind="warnings"]:focus { border-color: $accent; }
QPushButton[kind="segment"] {
    background: transparent; border-color: transparent; color: $muted;
    min-height: $segmentpx; padding: 0 12px; border-radius: 4px;
}
QPushButton[kind="segment"]:checked { background: $raised; color: $text; border-color: $border; }
QPushButton[kind="segment"]:focus { border: 1px solid $accent; }

QLineEdit, QComboBox, QAbstractSpinBox {
    background: $surface; color: $text; border: 1px solid $border; border-radius: $radiuspx;
    min-height: $innerpx; padding: 0 8px; placeholder-text-color: $muted;
    selection-background-color: $accent; selection-color: $on_accent;
}
QLineEdit QToolButton, QLineEdit QToolButton:hover, QLineEdit QToolButton:focus {
    background: transparent; border: none; min-height: 0; padding: 0;
}
QLineEdit:hover, QComboBox:hover, QAbstractSpinBox:hover { border-color: $thumb; }
QLineEdit:focus, QComboBox:focus, QAbstractSpinBox:focus {
    border: $ringpx solid $accent; min-height: $inner_focuspx; padding: 0 7px;
}
QLineEdit:disabled, QComboBox:disabled, QAbstractSpinBox:disabled { color: $disabled; }
QComboBox:!editable { padding-left: 10px; }
QComboBox:!editable:focus { padding-left: 9px; }
QComboBox QLineEdit, QAbstractSpinBox QLineEdit,
QComboBox QLineEdit:focus, QAbstractSpinBox QLineEdit:focus {
    border: none; background: transparent; min-height: 0; padding: 0;
}
QAbstractSpinBox::up-button, QAbstractSpinBox::down-button { width: 0; border: none; }
QComboBox::drop-down { border: none; width: 20px; }
QComboBox::down-arrow { image: none; }
QComboBox QAbstractItemView {
    background: $surface; color: $text; border: 1px solid $border; padding: 4px;
    selection-background-color: $hover; selection-color: $text; outline: none;
}
QComboBox QAbstractItemView::item { min-height: 26px; padding: 0 8px; }

QPlainTextEdit, QTextEdit, QTextBrowser {
    background: $surface; color: $text; border: 1px solid $border; border-radius: $radiuspx;
    placeholder-text-color: $muted;
    selection-background-color: $accent; selection-color: $on_accent;
}
QDialog QPlainTextEdit { padding: 2px 6px; }
QPlainTextEdit:focus, QTextEdit:focus { border: 1px solid $accent; }

QCheckBox, QRadioButton { background: transparent; color: $text; spacing: 8px; min-height: 24px; }
QCheckBox::indicator {
    width: 14px; height: 14px; border: 1px solid $thumb; border-radius: 4px; background: $surface;
}
QCheckBox::indicator:checked { background: $accent; border-color: $accent; }
QCheckBox::indicator:disabled { border-color: $border; }
QCheckBox::indicator:focus { border: 2px solid $accent; width: 12px; height: 12px; }
QCheckBox::indicator:checked:focus { border-color: $text; }
QCheckBox:disabled, QRadioButton:disabled { color: $disabled; }

QAbstractItemView { background: $window; border: none; outline: none; }
QTableView {
    background: $surface; border: 1px solid $border; border-radius: $radiuspx;
    selection-background-color: $hover; selection-color: $text;
}
QTableView::item { padding: 0 8px; }
QHeaderView { background: transparent; border: none; }
QHeaderView::section {
    background: $surface; color: $muted; border: none; border-bottom: 1px solid $border;
    padding: 4px 11px;
}
QTableCornerButton::section { background: $surface; border: none; }
QScrollArea, QScrollArea > QWidget > QWidget { background: transparent; border: none; }
QAbstractScrollArea::corner { background: transparent; border: none; }
QSplitter::handle { background: $border; }
QSplitter[between="frames"]::handle { background: transparent; }

QScrollBar { background: transparent; border: none; margin: 0; }
QScrollBar:vertical { width: 10px; }
QScrollBar:horizontal { height: 10px; }
QScrollBar::handle { background: $thumb; border-radius: 3px; margin: 2px; }
QScrollBar::handle:vertical { min-height: 32px; }
QScrollBar::handle:horizontal { min-width: 32px; }
QScrollBar::handle:hover { background: $muted; }
QScrollBar::add-line, QScrollBar::sub-line { width: 0; height: 0; }
QScrollBar::add-page, QScrollBar::sub-page { background: transparent; }

QMenuBar { background: $window; color: $text; }
QMenuBar::item:selected { background: $hover; }
QMenu { background: $surface; color: $text; border: 1px solid $border; padding: 4px; }
QMenu::item { padding: 6px 24px 6px 12px; border-radius: 4px; }
QMenu::item:selected { background: $hover; }
QMenu::item:disabled { color: $disabled; }
QMenu::separator { height: 1px; background: $border; margin: 4px 8px; }

QToolTip {
    background: $raised; color: $text; border: 1px solid $border; padding: 6px 8px;
}
QProgressBar {
    background: $raised; border: none; border-radius: 2px; min-height: 4px; max-height: 4px;
}
QProgressBar::chunk { background: $accent; border-radius: 2px; }
"""
