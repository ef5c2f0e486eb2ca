"""A loaded model for the commands that make it talk: plan, load, and wait for events.

One :class:`Session` owns an engine and the child process that accepts files for it; both are
gone when :meth:`Session.close` returns. One thread.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from moelauncher.commands.arguments import AUTO
from moelauncher.commands.helper_process import make_child
from moelauncher.commands.machine import Plan, context_of, machine_of, plan_for
from moelauncher.commands.terminal import ProgressLine
from moelauncher.core.engine_protocol import (
    EngineEvent,
    Finished,
    GenerateFailed,
    GenerateRequest,
    LoadCancelled,
    Loaded,
    LoadFailed,
    LoadProgress,
    LoadReport,
    LoadRequest,
    NativeLog,
)
from moelauncher.core.errors import Cancelled, LauncherError
from moelauncher.core.files.model_facts import ModelFacts
from moelauncher.core.log_file import log_native
from moelauncher.core.memory.auto_placement import Machine, forecast_on
from moelauncher.core.memory.memory_forecast import MemoryForecast
from moelauncher.core.translate import tr
from moelauncher.core.units import format_bytes
from moelauncher.engine.dry_run import describe_build, make_acceptor
from moelauncher.engine.llama_engine import LlamaEngine

#: How long one wait for events lasts, so that Ctrl+C is noticed on every system.
_WAIT_S = 0.2


class Session:
    """An engine with one model at a time."""

    def __init__(self, options: argparse.Namespace, facts: ModelFacts) -> None:
        self._options = options
        self.facts = facts
        self.context = context_of(options)
        self.child = make_child(options)
        self._engine: LlamaEngine | None = None
        try:
            self.machine: Machine = machine_of(options, self.child, facts)
        except BaseException:
            self.child.close()
            raise

    def close(self) -> None:
        """Unload, end the engine's thread and the child process."""
        if self._engine is not None:
            self._engine.close()
        self.child.close()

    def why_no_gpu(self) -> tuple[str, ...]:
        """The GPU modules that were left out, as sentences, where no GPU serves."""
        if self.machine.gpus:
            return ()
        try:
            return describe_build(self.child).notes
        except LauncherError as error:
            return (error.sentence,)

    def plan(self, wish: int | str = AUTO) -> Plan:
        """The placement for a stop, "all" or "auto"."""
        return plan_for(
            self.facts, self.machine, self.context, wish, self.child, which=self._options.which
        )

    def forecast(self, plan: Plan) -> MemoryForecast:
        """What a load under ``plan`` takes."""
        return forecast_on(self.facts, plan.placement, self.context, self.machine, plan.dry_run)

    @property
    def engine(self) -> LlamaEngine:
        """The engine, begun at the first use."""
        if self._engine is None:
            self._engine = LlamaEngine(accept=make_acceptor(self.child))
        return self._engine

    def load_request(self, plan: Plan) -> LoadRequest:
        """What to ask the engine for. Raises LauncherError where RAM cannot hold it."""
        expected = self.forecast(plan)
        if not self._options.anyway:
            _refuse_what_ram_cannot_hold(expected)
        return LoadRequest(
            self.facts.path,
            plan.placement,
            self.context,
            weights_fit_ram=not expected.streams_from_disk,
            expected_gpu_weights={gpu.name: gpu.weights_bytes for gpu in expected.gpus},
        )

    def load(self, plan: Plan) -> LoadReport:
        """Load the model. Raises LauncherError with the reason."""
        self.engine.load(self.load_request(plan))
        progress = ProgressLine(tr("Loading"), quiet=self._options.json)
        try:
            for event in self._events():
                if isinstance(event, LoadProgress) and event.stage == "reading":
                    progress.show(event.fraction)
                elif isinstance(event, Loaded):
                    return event.report
                elif isinstance(event, LoadFailed):
                    raise event.error
                elif isinstance(event, LoadCancelled):
                    raise Cancelled
        finally:
            progress.end()
        raise AssertionError("events never end before a load does")

    def generate(self, request: GenerateRequest) -> Iterator[EngineEvent]:
        """The events of one reply, ending with Finished. Raises LauncherError.

        Closing the generator early (Ctrl+C) stops the reply.
        """
        number = self.engine.generate(request)
        try:
            for event in self._events():
                if event.request != number:
                    continue
                if isinstance(event, GenerateFailed):
                    raise event.error
                yield event
                if isinstance(event, Finished):
                    return
        finally:
            self.engine.stop()

    def _events(self) -> Iterator[EngineEvent]:
        while True:
            for event in self.engine.drain(_WAIT_S):
                if isinstance(event, NativeLog):
                    log_native(event)
                else:
                    yield event


def _refuse_what_ram_cannot_hold(expected: MemoryForecast) -> None:
    """Weights may stream from the disk; what is computed with must be in memory."""
    ram = expected.ram
    if ram.fits or expected.streams_from_disk:
        return
    raise LauncherError(
        tr("This needs {size} of RAM beside the weights, and {free} is free.").format(
            size=format_bytes(ram.used_bytes - ram.weights_bytes),
            free=format_bytes(ram.free_bytes),
        ),
        tr(
            "Choose a smaller context (--ctx) or a smaller KV type (--kv q8_0),"
            " or load it all the same (--anyway)."
        ),
    )
