"""A button that opens a menu, and looks like a button again once the menu is gone.

GUI thread only.
"""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QCursor
from PySide6.QtWidgets import QMenu, QPushButton, QToolButton


def open_under(button: QPushButton | QToolButton, menu: QMenu) -> None:
    """Let ``button`` open ``menu``.

    WORKAROUND: what a menu opens takes the pointer away, and Qt then leaves the button drawn as
    if the pointer were still over it.
    """

    def let_go() -> None:
        over = button.rect().contains(button.mapFromGlobal(QCursor.pos()))
        button.setAttribute(Qt.WidgetAttribute.WA_UnderMouse, over)
        button.update()

    button.setMenu(menu)
    menu.aboutToHide.connect(let_go)
