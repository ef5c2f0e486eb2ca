"""What is remembered of the placement pane for each model, in the window's state.

In: the pane's values. Out: them again when the model is selected, each only where it still
makes sense. GUI thread.
"""

from __future__ import annotations

from collections.abc import Mapping

from moelauncher.core.cpu_cores import MAX_THREADS
from moelauncher.core.files.model_facts import ModelFacts
from moelauncher.core.program import settings as keys
from moelauncher.core.program.settings import Settings
from moelauncher.core.program.window_state import StateFile
from moelauncher.gui.memory.placement_values import PlacementValues


class RememberedChoices:
    """The key ``models`` of the window's state: choices by the file's path."""

    def __init__(self, state: StateFile, settings: Settings) -> None:
        self._state = state
        self._settings = settings

    def note(self, facts: ModelFacts, values: PlacementValues, *, auto: bool) -> None:
        """Keep ``values`` for that model; ``auto``: they are Auto's."""
        stored = self._state.get("models")
        models = dict(stored) if isinstance(stored, dict) else {}
        models[str(facts.path)] = {
            "auto": auto,
            "stop": values.stop,
            "n_gpu_layers": values.n_gpu_layers,
            "n_ctx": values.n_ctx,
            "kv_type": values.kv_type,
            "n_threads": values.n_threads,
            "n_ubatch": values.n_ubatch,
            "use_mmap": values.use_mmap,
            "which": values.which,
        }
        self._state.set("models", models)

    def of(self, facts: ModelFacts) -> Mapping[str, object] | None:
        """What was kept for that model; None where it is new here."""
        stored = self._state.get("models")
        found = stored.get(str(facts.path)) if isinstance(stored, dict) else None
        return found if isinstance(found, dict) else None

    def values(self, stored: Mapping[str, object], facts: ModelFacts) -> PlacementValues:
        """The stored choices, each only where it still makes sense; else the settings."""
        settings = self._settings

        def whole(name: str, low: int, high: int, default: int) -> int:
            value = stored.get(name)
            return value if type(value) is int and low <= value <= high else default

        kv_type = stored.get("kv_type")
        n_ctx = settings.get(keys.N_CTX)
        if facts.ctx_train:
            n_ctx = min(n_ctx, facts.ctx_train)
        n_threads = whole("n_threads", 0, MAX_THREADS, settings.get(keys.N_THREADS) or 0)
        mapped = stored.get("use_mmap")
        return PlacementValues(
            stop=whole("stop", 0, len(facts.expert_layers), len(facts.expert_layers)),
            n_gpu_layers=whole("n_gpu_layers", 0, facts.n_layer_all + 1, 0),
            n_ctx=whole("n_ctx", 1, 1 << 31, n_ctx),
            kv_type=kv_type if kv_type in keys.KV_TYPES else settings.get(keys.KV_TYPE),
            n_threads=n_threads or None,
            n_ubatch=whole("n_ubatch", 1, 65536, settings.get(keys.N_UBATCH)),
            use_mmap=mapped if isinstance(mapped, bool) else settings.get(keys.USE_MMAP),
            which="last" if stored.get("which") == "last" else "first",
        )
