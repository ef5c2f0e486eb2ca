"""The OK and Cancel of a dialog."""

from __future__ import annotations

from PySide6.QtWidgets import QDialog, QDialogButtonBox

from moelauncher.gui.theme import repolish


def ok_cancel(dialog: QDialog) -> QDialogButtonBox:
    """Both buttons, at the dialog's service; OK is the one that Enter presses, and looks so."""
    buttons = QDialogButtonBox(
        QDialogButtonBox.StandardButton.Ok | QDialogButtonBox.StandardButton.Cancel, dialog
    )
    repolish(buttons.button(QDialogButtonBox.StandardButton.Ok), "kind", "primary")
    buttons.accepted.connect(dialog.accept)
    buttons.rejected.connect(dialog.reject)
    return buttons
