"""What this program is, and whether there is a newer one: asked only by its button."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QDialog, QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from moelauncher.core.errors import LauncherError
from moelauncher.core.program.releases import Release
from moelauncher.gui import theme as look
from moelauncher.gui.controls.pane import plain_label, rule


class AboutDialog(QDialog):
    """Not modal; made once and shown again.

    Signals:
        check_requested(): ask the release site.
        page_requested(str): open this page in the browser.
    """

    check_requested = Signal()
    page_requested = Signal(str)

    def __init__(self, version: str, facts: str, parent: QWidget | None = None) -> None:
        """``facts``: some lines about how this copy was made and where it keeps its things."""
        super().__init__(parent)
        self.setObjectName("aboutDialog")
        self.setWindowTitle(self.tr("About MoE Launcher"))
        self.setMinimumWidth(460)
        self._page = ""
        title = plain_label(self.tr("MoE Launcher {version}").format(version=version), "", self)
        title.setObjectName("aboutVersion")
        title.setFont(look.font("title", bold=True))
        details = plain_label(facts, "muted", self)
        details.setWordWrap(True)
        self.answer = plain_label(self.tr("It looks for updates only when you ask."), "muted", self)
        self.answer.setObjectName("updateResult")
        self.answer.setWordWrap(True)
        self.check = QPushButton(self.tr("Check for updates"), self)
        self.check.setObjectName("checkUpdatesButton")
        self.check.clicked.connect(self.check_requested)
        self.page = QPushButton(self.tr("Open its page"), self)
        self.page.setObjectName("releasePageButton")
        self.page.setProperty("kind", "primary")
        self.page.clicked.connect(lambda: self.page_requested.emit(self._page))
        self.page.hide()
        close = QPushButton(self.tr("Close"), self)
        close.clicked.connect(self.close)
        row = QHBoxLayout()
        row.setSpacing(look.GRID)
        row.addWidget(self.check)
        row.addWidget(self.page)
        row.addStretch(1)
        row.addWidget(close)
        for button in (self.check, self.page, close):
            button.setAutoDefault(False)
        column = QVBoxLayout(self)
        margin = look.PANE_MARGIN
        column.setContentsMargins(margin, margin, margin, margin)
        column.setSpacing(look.GRID)
        column.addWidget(title)
        column.addWidget(details)
        column.addWidget(rule(self))
        column.addWidget(self.answer)
        column.addLayout(row)

    def set_busy(self) -> None:
        """The site is being asked."""
        self.check.setEnabled(False)
        self.page.hide()
        self._say(self.tr("Asking the release site."), "muted")

    def set_release(self, release: Release, newer: bool) -> None:
        """What the site says."""
        self.check.setEnabled(True)
        self._page = release.page
        self.page.setVisible(newer and bool(release.page))
        if newer:
            text = self.tr("Version {version} is there.").format(version=release.version)
            self._say(text, "good")
        else:
            text = self.tr("This is the newest version (the site has {version}).")
            self._say(text.format(version=release.version), "")

    def set_problem(self, error: LauncherError) -> None:
        """The site could not be asked."""
        self.check.setEnabled(True)
        self._say(error.sentence, "bad")

    def _say(self, text: str, tone: str) -> None:
        look.set_tone(self.answer, tone)
        self.answer.setText(text)
        self.answer.setAccessibleDescription(text)
