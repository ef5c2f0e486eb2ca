"""What the window needs from the other rooms, as plain callables and values.

The gui never imports the engine or the meters: ``app`` fills this in, tests fill it with
scripted ones. Each callable says on which thread it is called.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from moelauncher.core.engine_protocol import ContextSettings, Engine
from moelauncher.core.errors import LauncherError
from moelauncher.core.forecast import DryRunResult
from moelauncher.core.hub_files import Hub
from moelauncher.core.model_facts import ModelFacts
from moelauncher.core.paths import AppPaths
from moelauncher.core.placement import Placement
from moelauncher.core.settings import Settings
from moelauncher.core.translate import tr
from moelauncher.core.tune_events import TuneRunner
from moelauncher.core.window_state import StateFile


def no_hub() -> Hub:
    """Stands where nothing can be fetched."""
    raise LauncherError(
        tr("Models cannot be downloaded: huggingface_hub is not installed."),
        tr("Install it with: pip install huggingface_hub"),
    )


@dataclass(frozen=True)
class Services:
    """Everything that the window is wired to."""

    paths: AppPaths
    settings: Settings
    state: StateFile
    #: Window thread. The argument is called on the engine's thread when events wait.
    make_engine: Callable[[Callable[[], None]], Engine]
    #: Pool thread; asks llama.cpp in the child process. The last argument: was it cancelled?
    #: Raises LauncherError with the reason where llama.cpp refuses.
    dry_run: Callable[[ModelFacts, Placement, ContextSettings, Callable[[], bool]], DryRunResult]
    #: Pool thread; measures placements in child processes.
    tune: TuneRunner
    #: Pool thread; what fetches models. Raises LauncherError where the part for it is missing.
    hub: Callable[[], Hub] = no_hub
