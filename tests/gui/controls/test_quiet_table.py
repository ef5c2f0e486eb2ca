"""gui/controls/quiet_table.py: a table says what will stand in it, until something does."""

from __future__ import annotations

from PySide6.QtGui import QColor
from pytestqt.qtbot import QtBot

from moelauncher.gui.controls.quiet_table import QuietTable


def inks(table: QuietTable) -> int:
    """How many colours the middle of the table has."""
    image = table.viewport().grab().toImage()
    y = image.height() // 2
    colors = {QColor(image.pixel(x, y + up)).rgb() for x in range(image.width()) for up in range(9)}
    return len(colors)


def test_an_empty_table_says_what_will_stand_in_it(qtbot: QtBot) -> None:
    told = QuietTable(["A", "B"], wide=1, empty_text="Each setting gets a row here.")
    silent = QuietTable(["A", "B"], wide=1)
    for table in (told, silent):
        qtbot.addWidget(table)
        table.resize(400, 300)
        table.show()
    assert inks(silent) == 1
    assert inks(told) > 1
    told.setRowCount(1)
    told.set_row(0, ["", ""])
    assert inks(told) == 1
    told.setRowCount(0)
    assert inks(told) > 1
