"""Opens the model card: from the heading's button for the selected model, from a row's menu.

GUI thread; reading the header and judging the model are pool jobs.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QPushButton

from moelauncher.core.catalog import CatalogEntry, load_facts
from moelauncher.core.chat_speeds import speed_text, with_reply
from moelauncher.core.engine_protocol import GenerationStats
from moelauncher.core.errors import LauncherError
from moelauncher.core.launch_plan import LaunchPlan
from moelauncher.core.model_card import ModelCard, card_of
from moelauncher.core.model_facts import ModelFacts
from moelauncher.gui.jobs import JobRunner
from moelauncher.gui.main_window import MainWindow
from moelauncher.gui.model_card import ModelCardDialog
from moelauncher.gui.planner import Planner
from moelauncher.gui.services import Services

_SPEEDS = "chat_speeds"


class CardDesk(QObject):
    """Keeps at most one card open.

    Signals:
        message(str, str): text and level for the status line.
    """

    message = Signal(str, str)

    def __init__(
        self,
        window: MainWindow,
        services: Services,
        planner: Planner,
        jobs: JobRunner,
        measured: Callable[[ModelFacts], str],
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._measured = measured
        self._window = window
        self._state = services.state
        self._planner = planner
        self._jobs = jobs
        self._facts: ModelFacts | None = None
        self._asked: object = None
        self.dialog: ModelCardDialog | None = None
        self.button = QPushButton(self.tr("Card"))
        self.button.setObjectName("cardButton")
        self.button.setToolTip(self.tr("Everything that is known of this model"))
        self.button.clicked.connect(self.open_selected)
        window.heading.extras.addWidget(self.button)
        window.model_list.menus.card.connect(self.open_entry)
        planner.plan_changed.connect(self._plan_changed)
        self._plan_changed()

    def open_selected(self) -> None:
        """The card of the selected model."""
        facts = self._planner.facts
        if facts is not None:
            self._open(facts)

    def open_entry(self, entry: object) -> None:
        """The card of any model of the list."""
        if not isinstance(entry, CatalogEntry):
            return
        path = entry.path
        self._jobs.start(
            "card-facts", lambda report, cancelled: load_facts(path), self._open, self._complain
        )

    def note_reply(self, path: Path, plan: LaunchPlan, stats: GenerationStats) -> None:
        """A reply ended: its rate may be the best that this model had here."""
        speeds = with_reply(
            self._state.get(_SPEEDS),
            str(path),
            stats.tok_s,
            stats.completion_tokens,
            plan.placement.cpu_moe,
            plan.placement.of if plan.placement.devices else 0,
        )
        if speeds is not None:
            self._state.set(_SPEEDS, speeds)

    def _open(self, facts: object) -> None:
        assert isinstance(facts, ModelFacts)
        self._facts = facts
        self._ask()

    def _ask(self) -> None:
        facts, machine = self._facts, self._planner.machine
        context = self._planner.choices().context
        if facts is None:
            return
        self._asked = (facts.path, machine, context)
        chats = speed_text(self._state.get(_SPEEDS), str(facts.path))
        measured = "; ".join(text for text in (self._measured(facts), chats) if text)
        self._jobs.start(
            "card",
            lambda report, cancelled: card_of(facts, machine, context, measured=measured),
            self._show,
            self._complain,
        )

    def _show(self, card: object) -> None:
        assert isinstance(card, ModelCard)
        if self.dialog is None:
            self.dialog = ModelCardDialog(self._window)
            self.dialog.finished.connect(self._closed)
        self.dialog.set_card(card)
        self.dialog.show()
        self.dialog.raise_()

    def _closed(self, _result: int) -> None:
        self.dialog = None
        self._facts = None

    def _plan_changed(self) -> None:
        self.button.setEnabled(self._planner.facts is not None)
        # An open card follows the context and the machine.
        if self.dialog is not None and self._facts is not None:
            now = (self._facts.path, self._planner.machine, self._planner.choices().context)
            if now != self._asked:
                self._ask()

    def _complain(self, error: LauncherError) -> None:
        self.message.emit(error.sentence, "warning")
