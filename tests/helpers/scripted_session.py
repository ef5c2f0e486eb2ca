"""The window's session over an engine that says what a test tells it to, and a made-up machine."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

from pytestqt.qtbot import QtBot

from moelauncher.core.engine_protocol import (
    BufferReport,
    ChatMessage,
    EngineEvent,
    Finished,
    GenerateRequest,
    GenerationStats,
    Loaded,
    LoadFailed,
    LoadProgress,
    LoadReport,
    LoadRequest,
    Unloaded,
)
from moelauncher.core.errors import LauncherError
from moelauncher.core.files.model_facts import ModelFacts
from moelauncher.core.library.catalog import entry_of
from moelauncher.core.machine import BackendDevice, GpuReading, MachineSnapshot
from moelauncher.core.memory.forecast import DryRunResult
from moelauncher.core.memory.launch_plan import LaunchPlan
from moelauncher.core.memory.memory_shortage import MemoryShortage
from moelauncher.core.memory.weight_probes import RefusedWeights
from moelauncher.core.paths import app_paths
from moelauncher.core.program.settings import Settings
from moelauncher.core.program.window_state import StateFile
from moelauncher.core.session_state import SessionState
from moelauncher.core.speed.device_bandwidth import BandwidthProbe
from moelauncher.core.speed.same_answers import AnswersRunner
from moelauncher.core.speed.tune_events import TuneRunner
from moelauncher.core.template_switch import TemplateSwitch
from moelauncher.gui.chats.chat_pane import ChatPane
from moelauncher.gui.library.model_list_pane import ModelListPane
from moelauncher.gui.main_window import MainWindow
from moelauncher.gui.services import Services, nothing_measured, nothing_refused
from moelauncher.gui.session import Session

GIB = 1 << 30
MIB = 1 << 20
DEVICE = BackendDevice("CUDA0", "RTX 4070", "gpu", "CUDA", 11 * GIB, 12 * GIB)


class ScriptedEngine:
    """Remembers what it was asked; answers only what :meth:`say` is given."""

    def __init__(self, notify: Callable[[], None]) -> None:
        self._notify = notify
        self._waiting: list[EngineEvent] = []
        self._number = 0
        self.loads: list[LoadRequest] = []
        self.replies: list[GenerateRequest] = []
        self.unloads = 0
        self.stops = 0
        self.stopped: list[int | None] = []
        self.kept_chats = 0
        self.forgotten: list[str] = []

    def load(self, request: LoadRequest) -> int:
        self.loads.append(request)
        return self._next()

    def generate(self, request: GenerateRequest) -> int:
        self.replies.append(request)
        return self._next()

    def unload(self) -> int:
        self.unloads += 1
        return self._next()

    def stop(self, request: int | None = None) -> None:
        self.stops += 1
        self.stopped.append(request)

    def keep_chat(self) -> int:
        self.kept_chats += 1
        # Apart from the others: tests answer the newest of those without a number.
        return 10_000 + self.kept_chats

    def forget_chat(self, chat_id: str) -> None:
        self.forgotten.append(chat_id)

    def drain(self, timeout_s: float = 0.0) -> list[EngineEvent]:
        events, self._waiting = self._waiting, []
        return events

    def count_prompt(
        self,
        messages: Sequence[ChatMessage],
        template_values: Mapping[str, object],
        template: str | None = None,
    ) -> int | None:
        return sum(len(message.content.split()) for message in messages)

    def render_prompt(
        self,
        messages: Sequence[ChatMessage],
        template_values: Mapping[str, object],
        template: str | None = None,
    ) -> str | None:
        return "\n".join(message.content for message in messages)

    def find_switches(self, template: str) -> Sequence[TemplateSwitch]:
        return ()

    def count_tokens(self, text: str) -> int | None:
        return len(text.split())

    def close(self) -> None:
        """Nothing is held."""

    def _next(self) -> int:
        self._number += 1
        return self._number

    @property
    def newest(self) -> int:
        """The number of the newest request."""
        return self._number

    def say(self, *events: EngineEvent, request: int | None = None) -> None:
        """These happened, to the newest request or to the one that is named."""
        number = self._number if request is None else request
        self._waiting += [replace(event, request=number) for event in events]
        self._notify()


class ScriptedWindow:
    """A session with one 12 GiB card and a model selected. Close it."""

    def __init__(
        self,
        qtbot: QtBot,
        folder: Path,
        model: Path,
        *,
        refused: Callable[[ModelFacts, Sequence[str]], RefusedWeights] = nothing_refused,
    ) -> None:
        """``refused``: what the card says of the model's weights, on a job's thread."""
        self._qtbot = qtbot
        self.paths = app_paths(folder / "base")
        self.engines: list[ScriptedEngine] = []
        #: Plays a sweep.
        self.tune: TuneRunner = lambda job, sweep, case_of, cancelled: iter(())
        #: Measures bandwidths.
        self.probe: BandwidthProbe = nothing_measured
        #: What a fresh child says of the devices after a sleep.
        self.awake: Callable[[], Sequence[BackendDevice]] = lambda: [DEVICE]
        #: Plays a check of answers.
        self.compare: AnswersRunner = lambda job, cancelled: iter(())
        #: What llama.cpp's dry runs say; a problem leaves the formula.
        self.answers = DryRunResult(problem="not asked")
        self.settings = Settings.load(self.paths.settings_file)
        services = Services(
            paths=self.paths,
            settings=self.settings,
            probe_devices=lambda: self.awake(),
            state=StateFile(self.paths.window_file),
            make_engine=self._make_engine,
            dry_run=lambda facts, placement, context, cancelled: self.answers,
            tune=lambda *arguments: self.tune(*arguments),
            measure_bandwidths=lambda *arguments: self.probe(*arguments),
            answers=lambda *arguments: self.compare(*arguments),
            refused_weights=refused,
        )
        self.window = MainWindow(ModelListPane(), ChatPane())
        qtbot.addWidget(self.window)
        self.session = Session(self.window, services)
        self.window.show()
        self.session.machine.set_devices([DEVICE])
        self.session.known.set_devices([DEVICE])
        self.see()
        self.select(model)

    def _make_engine(self, notify: Callable[[], None]) -> ScriptedEngine:
        self.engines.append(ScriptedEngine(notify))
        return self.engines[-1]

    @property
    def engine(self) -> ScriptedEngine:
        return self.engines[-1]

    @property
    def plan(self) -> LaunchPlan:
        plan = self.session.planner.plan
        assert plan is not None
        return plan

    def signal(self, signal: object) -> AbstractContextManager[object]:
        """Waits at the end of the block until ``signal`` was emitted."""
        return self._qtbot.waitSignal(signal)

    def wait(self, condition: Callable[[], bool]) -> None:
        self._qtbot.waitUntil(condition)

    def select(self, path: Path) -> None:
        """As a click in the list does."""
        self.window.model_list.entry_selected.emit(entry_of(path))
        self.wait(
            lambda: (
                self.session.planner.facts is not None and self.session.planner.facts.path == path
            )
        )

    def see(
        self,
        used_gib: float = 1.0,
        *,
        shared_gib: float | None = None,
        own_gib: float | None = None,
        ram_free_gib: float = 40,
        later_s: float = 0.0,
    ) -> None:
        """The meters' next word, ``later_s`` from now."""
        used = round(used_gib * GIB)
        card = GpuReading(
            name="NVIDIA GeForce RTX 4070",
            source="NVML",
            total_bytes=12 * GIB,
            used_bytes=used,
            free_bytes=12 * GIB - used,
            device_name="CUDA0",
            pci_address="0000:01:00.0",
            shared_bytes=None if shared_gib is None else round(shared_gib * GIB),
            own_bytes=None if own_gib is None else round(own_gib * GIB),
        )
        now = time.monotonic() + later_s
        self.session.on_snapshot(
            MachineSnapshot(
                now, 64 * GIB, round(ram_free_gib * GIB), GIB, gpus=(card,), gpu_note=""
            )
        )

    def buffers(self, plan: LaunchPlan, **off_mib: float) -> tuple[BufferReport, ...]:
        """What llama.cpp would log for ``plan``; ``off_mib`` makes a kind differ."""
        (gpu,) = plan.forecast.gpus
        sizes = {
            "weights": gpu.weights_bytes,
            "kv": gpu.kv_bytes,
            "recurrent": gpu.recurrent_bytes,
            "compute": gpu.compute_bytes,
        }
        return (
            *(
                BufferReport("CUDA0", kind, size + round(off_mib.get(kind, 0) * MIB))
                for kind, size in sizes.items()
            ),
            BufferReport("CPU_Mapped", "weights", 17 * GIB),
            BufferReport("CUDA_Host", "compute", plan.forecast.ram.compute_bytes),
        )

    def loaded(self, plan: LaunchPlan | None = None, **off_mib: float) -> None:
        """The load that goes on ends well, as planned or off by so much."""
        plan = plan or self.plan
        request = self.engine.loads[-1]
        report = LoadReport(
            path=request.path,
            placement=request.placement,
            context=request.context,
            load_s=2.0,
            n_ctx=request.context.n_ctx,
            n_threads=4,
            flash_attention=True,
            buffers=self.buffers(plan, **off_mib),
            template_source="model",
        )
        self.engine.say(LoadProgress(0, "reading", 0.5, 1.0), Loaded(0, report))

    def launch(self) -> None:
        """Launch what is selected, until it is ready."""
        self.session.launch()
        self.loaded()
        self.wait(lambda: self.session.state is SessionState.READY)

    def failed(self, shortage: MemoryShortage | None = None) -> None:
        """The load that goes on ends badly."""
        error = LauncherError("It did not load.", "Try something else.", "details")
        self.engine.say(LoadProgress(0, "reading", 0.5, 1.0), LoadFailed(0, error, shortage))

    def unloaded(self) -> None:
        self.engine.say(Unloaded(0))

    def finished(self) -> None:
        self.engine.say(Finished(0, GenerationStats("stop", 5, 0, 1, 10.0, 5.0, 0.1, 1.0, 6)))

    def close(self) -> None:
        self.window.close()
        self.session.close()
        self.session.deleteLater()
        self._qtbot.wait(1)
