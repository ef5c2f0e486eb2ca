"""The line over the chat: which model is selected, and what it is."""

from __future__ import annotations

from PySide6.QtWidgets import QHBoxLayout, QSizePolicy, QWidget

from moelauncher.core.files.model_facts import ModelFacts
from moelauncher.core.units import format_parameters, format_tokens
from moelauncher.gui.controls.elided_label import ElidedLabel
from moelauncher.gui.theme import GRID, HEADER_HEIGHT, PANE_MARGIN, font, set_tone


class ModelHeading(QWidget):
    """Name, architecture, size and layers. ``extras`` takes buttons at the right."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("modelHeading")
        self.setAccessibleName(self.tr("Model"))
        self.setFixedHeight(HEADER_HEIGHT)
        row = QHBoxLayout(self)
        row.setContentsMargins(PANE_MARGIN, 0, PANE_MARGIN, 0)
        row.setSpacing(GRID)
        self.name = ElidedLabel()
        self.name.setObjectName("modelName")
        self.name.setFont(font("title", bold=True))
        self.name.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)
        self.details = ElidedLabel()
        self.details.setObjectName("modelDetails")
        self.details.setFont(font("body", figures=True))
        self.details.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        set_tone(self.details, "muted")
        row.addWidget(self.name)
        row.addWidget(self.details, 1)
        self.extras = QHBoxLayout()
        self.extras.setSpacing(GRID)
        row.addLayout(self.extras)
        self.set_facts(None)

    def set_facts(self, facts: ModelFacts | None) -> None:
        """Show a model; None: nothing is selected."""
        if facts is None:
            self.set_text(self.tr("No model selected"), "")
            return
        parts = [facts.arch, facts.quant, self._size(facts), self._layers(facts)]
        if facts.ctx_train:
            parts.append(format_tokens(facts.ctx_train))
        if facts.n_expert:
            parts.append(
                self.tr("{n} experts, {used} used").format(
                    n=facts.n_expert, used=facts.n_expert_used
                )
            )
        self.set_text(facts.name, " · ".join(part for part in parts if part))

    def set_text(self, name: str, details: str) -> None:
        """Show a name and details as they are ("cannot be read")."""
        self.name.set_text(name)
        self.details.set_text(details)
        self.name.setAccessibleName(name)
        self.details.setAccessibleName(details)

    def _size(self, facts: ModelFacts) -> str:
        total = format_parameters(facts.n_params)
        if not facts.n_expert:
            return total
        return self.tr("{total}, {active} active").format(
            total=total, active=format_parameters(facts.n_active_params)
        )

    def _layers(self, facts: ModelFacts) -> str:
        kinds = [layer.kind for layer in facts.layers if layer.loaded]
        recurrent = kinds.count("recurrent")
        if not recurrent:
            return self.tr("{n} layers").format(n=len(kinds))
        return self.tr("{recurrent} recurrent + {attention} attention layers").format(
            recurrent=recurrent, attention=len(kinds) - recurrent
        )
