"""gui/controls/menu_button.py: what a menu opens leaves no button lit behind."""

from __future__ import annotations

from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QCursor
from PySide6.QtWidgets import QMenu, QPushButton

from moelauncher.gui.controls.menu_button import open_under


def test_a_button_whose_pointer_went_away_with_the_menu_is_not_lit(qtbot) -> None:
    button = QPushButton("Menu")
    menu = QMenu(button)
    menu.addAction("Doctor…")
    open_under(button, menu)
    qtbot.addWidget(button)
    with qtbot.waitExposed(button):
        button.show()
    assert button.menu() is menu
    # As Qt leaves it: the pointer is elsewhere, and nobody told the button.
    QCursor.setPos(button.mapToGlobal(button.rect().bottomRight() + QPoint(50, 50)))
    button.setAttribute(Qt.WidgetAttribute.WA_UnderMouse)
    menu.aboutToHide.emit()
    assert not button.underMouse()
    QCursor.setPos(button.mapToGlobal(button.rect().center()))
    menu.aboutToHide.emit()
    assert button.underMouse()
