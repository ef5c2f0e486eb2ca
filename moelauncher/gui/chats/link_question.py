"""Links in replies: asked about before they open, and only web and mail addresses do.

A model wrote them, so they are data until the user says otherwise. GUI thread only.
"""

from __future__ import annotations

from PySide6.QtCore import Qt, QUrl
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QMessageBox, QWidget

from moelauncher.core.translate import tr

LINK_SCHEMES = ("http", "https", "mailto")
SHOWN_CHARS = 500


def may_open(address: str) -> bool:
    """Whether ``address`` is of a kind that is opened at all."""
    url = QUrl(address)
    return url.isValid() and url.scheme().lower() in LINK_SCHEMES


def ask_and_open(address: str, parent: QWidget) -> QMessageBox:
    """Show the whole address and ask; open it in the user's own program on "Open"."""
    url = QUrl(address)
    box = QMessageBox(parent)
    box.setTextFormat(Qt.TextFormat.PlainText)
    box.setWindowTitle(tr("Open link"))
    if may_open(address):
        box.setIcon(QMessageBox.Icon.Question)
        box.setText(tr("Open this address? A model wrote it; check that you trust it."))
        # Encoded, so that look-alike letters of other scripts show in the host name.
        shown = url.toEncoded().toStdString()
        box.setInformativeText(shown[:SHOWN_CHARS])
        button = box.addButton(tr("Open"), QMessageBox.ButtonRole.AcceptRole)
        button.clicked.connect(lambda: QDesktopServices.openUrl(url))
        cancel = box.addButton(QMessageBox.StandardButton.Cancel)
        box.setDefaultButton(cancel)
    else:
        box.setIcon(QMessageBox.Icon.Information)
        box.setText(tr("This link is not opened: only web and mail addresses are."))
        box.setInformativeText(address[:SHOWN_CHARS])
        box.setStandardButtons(QMessageBox.StandardButton.Ok)
    box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    box.open()
    return box
