"""Where the session stands, shown: what can be pressed, and every sentence that says why.

In: the state, and what it allows. Out: the panes of the window. It decides nothing. GUI thread.
"""

from __future__ import annotations

from moelauncher.core.session_state import BUSY_STATES, Controls, LaunchAction, SessionState
from moelauncher.gui.chats.chat_session import ChatSession
from moelauncher.gui.chats.reply_desk import ReplyDesk
from moelauncher.gui.chats.turn_desk import TurnDesk
from moelauncher.gui.library.selection_desk import SelectionDesk
from moelauncher.gui.main_window import MainWindow
from moelauncher.gui.memory.load_desk import LoadDesk
from moelauncher.gui.memory.planner import Planner
from moelauncher.gui.session_texts import SessionTexts
from moelauncher.gui.speed.tune_desk import TuneDesk


class SessionView:
    """Paints a state into one window."""

    def __init__(
        self,
        window: MainWindow,
        texts: SessionTexts,
        planner: Planner,
        tuning: TuneDesk,
        chat: ChatSession,
        turns: TurnDesk,
        selected: SelectionDesk,
        loads: LoadDesk,
        replies: ReplyDesk,
    ) -> None:
        self._window = window
        self._texts = texts
        self._planner = planner
        self._tuning = tuning
        self._chat = chat
        self._turns = turns
        self._selected = selected
        self._loads = loads
        self._replies = replies

    def show(self, state: SessionState, shown: Controls) -> None:
        """Show ``state``; ``shown`` is what it allows."""
        window, texts, loaded = self._window, self._texts, self._loads.loaded
        window.placement.set_controls(
            shown,
            texts.launch(
                shown,
                loaded.plan if loaded else None,
                self._planner.plan,
                self._loads.expected_s(self._planner.plan),
            ),
            texts.why_not(shown.why_not, self._selected.entry),
        )
        if shown.launch_action is not LaunchAction.CANCEL and state is not SessionState.STOPPING:
            window.placement.set_progress("", None)
        elsewhere = self._chat.elsewhere
        window.chat.set_controls(shown, elsewhere.shown_title if elsewhere else "")
        self._turns.set_can_answer(shown.send_enabled and loaded is not None)
        idle = state not in BUSY_STATES and self._planner.facts is not None
        self._tuning.set_able(idle, "" if idle else texts.why_no_tune(state))
        window.chats.set_can_compare(idle)
        window.chat.set_empty_hint(texts.empty_chat(state, self._selected.entry))
        self._replies.show_context()
        window.status.set_build(*texts.build(loaded.report if loaded else None))
        window.status.set_state(*texts.state(state, None))
