"""Remembers the best measured setting of each model, and shows it in the model's row.

GUI thread only. What is kept goes into the window's state file.
"""

from __future__ import annotations

from pathlib import Path

from moelauncher.core.engine_protocol import GenerationStats
from moelauncher.core.files.model_facts import ModelFacts
from moelauncher.core.memory.forecast import forecast
from moelauncher.core.memory.launch_plan import LaunchPlan
from moelauncher.core.program.window_state import StateFile
from moelauncher.core.speed.best_setting import BestSetting, best_setting, with_tuned
from moelauncher.core.speed.chat_speeds import reply_speeds, speed_text, with_reply
from moelauncher.core.speed.speed_estimate import SpeedBasis, basis_of
from moelauncher.core.speed.speed_prediction import SpeedModel, token_traffic
from moelauncher.gui.library.model_list_pane import ModelListPane

_CHATS, _TUNED = "chat_speeds", "tuned_speeds"


class BestSpeeds:
    """One window's memory of speeds."""

    def __init__(self, state: StateFile, rows: ModelListPane) -> None:
        self._state = state
        self._rows = rows
        for stored in (state.get(_TUNED), state.get(_CHATS)):
            for path in stored if isinstance(stored, dict) else ():
                self._show(Path(path))

    def note_reply(self, facts: ModelFacts, plan: LaunchPlan, stats: GenerationStats) -> None:
        """A reply ended: its rate may be the best that this model had here."""
        depth = max(0, stats.context_used - stats.completion_tokens // 2)
        context = plan.choices.context
        # Where the GPU in view is imagined, the plan's forecast is not of what ran.
        ran = forecast(facts, plan.placement, context) if plan.imagined_gpu else plan.forecast
        reads = token_traffic(facts, plan.placement, ran, context.n_ctx, depth)
        speeds = with_reply(
            self._state.get(_CHATS),
            str(facts.path),
            stats.tok_s,
            stats.completion_tokens,
            plan.placement.cpu_moe,
            plan.placement.of if plan.placement.devices else 0,
            reads,
        )
        if speeds is not None:
            self._state.set(_CHATS, speeds)
            self._show(facts.path)

    def note_tuned(self, path: Path, best: BestSetting | None) -> None:
        """What Tune's store knows of the model at ``path`` on this machine."""
        self._state.set(_TUNED, with_tuned(self._state.get(_TUNED), str(path), best))
        self._show(path)

    def chats_text(self, path: Path) -> str:
        """The fastest reply of a model, as a line; "" where there was none."""
        return speed_text(self._state.get(_CHATS), str(path))

    def basis(self, hardware: SpeedModel | None = None) -> SpeedBasis:
        """What the speed of a model that is not measured is estimated from; ``hardware`` as
        :func:`basis_of` takes it."""
        return basis_of(reply_speeds(self._state.get(_CHATS)), hardware)

    def _show(self, path: Path) -> None:
        best = best_setting(self._state.get(_TUNED), self._state.get(_CHATS), str(path))
        self._rows.set_best(path, best)
