"""What the window needs from the other rooms, as plain callables and values.

The gui never imports the engine or the meters: ``app`` fills this in, tests fill it with
scripted ones. Each callable says on which thread it is called.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from moelauncher.core.engine_protocol import ContextSettings, Engine
from moelauncher.core.forecast import DryRunResult
from moelauncher.core.log_file import LogTail
from moelauncher.core.machine import BackendDevice, MachineSnapshot
from moelauncher.core.model_facts import ModelFacts
from moelauncher.core.paths import AppPaths
from moelauncher.core.placement import Placement
from moelauncher.core.settings import Settings
from moelauncher.core.window_state import StateFile


class Meters(Protocol):
    """A running sampler of the machine."""

    def start(self) -> None:
        """Begin; snapshots come about once a second."""

    def sample_now(self) -> None:
        """Something just changed: do not wait for the next second."""

    def stop(self) -> None:
        """End; no snapshot comes after this returns."""


@dataclass(frozen=True)
class Services:
    """Everything that the window is wired to."""

    paths: AppPaths
    settings: Settings
    state: StateFile
    log_tail: LogTail | None
    #: Window thread. The argument is called on the engine's thread when events wait.
    make_engine: Callable[[Callable[[], None]], Engine]
    #: Window thread. The argument is called on the meter thread.
    make_meters: Callable[[Callable[[MachineSnapshot], None]], Meters]
    #: Pool thread; asks llama.cpp in the child process. The last argument: was it cancelled?
    #: Raises LauncherError with the reason where llama.cpp refuses.
    dry_run: Callable[[ModelFacts, Placement, ContextSettings, Callable[[], bool]], DryRunResult]
    #: Pool thread; the devices of the installed llama.cpp build.
    devices: Callable[[], Sequence[BackendDevice]]
    #: Pool thread; one line about the build ("Vulkan", "CPU, AVX2").
    build_text: Callable[[], str]
    #: Window thread, at the very end: whatever the app holds open for the window.
    close: Callable[[], None]
