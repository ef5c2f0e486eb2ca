"""The keyboard's ways through the chat, and the size of its text.

| keys | what |
| --- | --- |
| Ctrl+N, Ctrl+R, Ctrl+Up | new chat, regenerate, edit the last message |
| Ctrl+. | stop (so does Escape within the chat) |
| Ctrl+F | find in this chat |
| F6, Shift+F6 | the next pane, the one before |
| Ctrl++, Ctrl+-, Ctrl+0 | larger text, smaller text, the usual size |

Enter and Shift+Enter (send, new line) are the composer's own. GUI thread only.
"""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject, Qt
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import QApplication, QWidget

from moelauncher.core.program.window_state import StateFile
from moelauncher.gui import theme as look
from moelauncher.gui.chats.chat_session import ChatSession
from moelauncher.gui.chats.turn_desk import TurnDesk
from moelauncher.gui.main_window import MainWindow

ZOOM_STEP = 10
ZOOM_SMALLEST, ZOOM_LARGEST = 80, 180


class ChatKeys(QObject):
    """Shortcuts of the whole window that lead into the chat."""

    def __init__(
        self,
        window: MainWindow,
        chat: ChatSession,
        turns: TurnDesk,
        stop: Callable[[], None],
        state: StateFile,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._window = window
        self._state = state
        stored = state.get("chat_zoom")
        self._zoom = 100
        if isinstance(stored, int) and ZOOM_SMALLEST <= stored <= ZOOM_LARGEST:
            self._set_zoom(stored)
        for keys, act in (
            (("Ctrl+N",), chat.new_chat),
            (("Ctrl+R",), turns.regenerate_last),
            (("Ctrl+Up",), turns.edit_last),
            (("Ctrl+.",), stop),
            (("Ctrl+F",), window.chat.find_bar.open),
            (("F6",), lambda: self._focus_pane(1)),
            (("Shift+F6",), lambda: self._focus_pane(-1)),
            (("Ctrl++", "Ctrl+="), lambda: self._set_zoom(self._zoom + ZOOM_STEP)),
            (("Ctrl+-",), lambda: self._set_zoom(self._zoom - ZOOM_STEP)),
            (("Ctrl+0",), lambda: self._set_zoom(100)),
        ):
            for key in keys:
                QShortcut(QKeySequence(key), window).activated.connect(act)

    def _panes(self) -> list[QWidget]:
        window = self._window
        panes = (
            window.model_list.list,
            window.chats.search,
            window.chats.list,
            window.chat.view,
            window.chat.composer.field,
            window.placement.context,
        )
        return [pane for pane in panes if pane.isVisible() and pane.isEnabled()]

    def _focus_pane(self, step: int) -> None:
        panes = self._panes()
        now = QApplication.focusWidget()
        within = [
            n
            for n, pane in enumerate(panes)
            if now is not None and (now is pane or pane.isAncestorOf(now))
        ]
        at = within[0] if within else (-1 if step > 0 else 0)
        panes[(at + step) % len(panes)].setFocus(Qt.FocusReason.ShortcutFocusReason)

    def _set_zoom(self, percent: int) -> None:
        self._zoom = min(ZOOM_LARGEST, max(ZOOM_SMALLEST, percent))
        look.theme().set_chat_zoom(self._zoom)
        self._state.set("chat_zoom", None if self._zoom == 100 else self._zoom)
