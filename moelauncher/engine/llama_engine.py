"""The engine that runs llama.cpp in this process, on one thread of its own.

In: requests, from any thread. Out: events, fetched with :meth:`LlamaEngine.drain`. See
``core.engine_protocol`` for the contract; what is loaded after a LoadFailed or a
LoadCancelled is nothing.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace

from moelauncher.core.engine_protocol import (
    ContextSettings,
    EngineEvent,
    Finished,
    GenerateFailed,
    GenerateRequest,
    GenerationStats,
    LoadCancelled,
    Loaded,
    LoadFailed,
    LoadProgress,
    LoadReport,
    LoadRequest,
    NativeLog,
    Unloaded,
)
from moelauncher.core.errors import Cancelled, LauncherError
from moelauncher.core.placement import same_place
from moelauncher.core.translate import tr
from moelauncher.engine.evaluated_context import EvaluatedContext
from moelauncher.engine.generate import Generation
from moelauncher.engine.load_log import parse_load_log
from moelauncher.engine.load_model import (
    LoadedModel,
    ModelContext,
    check_context,
    file_state,
    last_lines,
    load_weights,
    make_context,
)
from moelauncher.engine.load_verify import find_mismatches
from moelauncher.engine.memory_failure import memory_shortage
from moelauncher.engine.native import load_native, log_to
from moelauncher.engine.stop_flag import StopFlag

#: Called before each load in this process with the request and a "was it cancelled?";
#: raises LauncherError for a file that must not be loaded, Cancelled when it was.
Accept = Callable[[LoadRequest, Callable[[], bool]], object]

_PROGRESS_EVERY_S = 0.1


@dataclass
class _Running:
    """What is loaded now. ``evaluated`` belongs to ``context``."""

    request: LoadRequest
    model: LoadedModel
    context: ModelContext
    evaluated: EvaluatedContext
    model_lines: list[tuple[str, str]]
    report: LoadReport


class LlamaEngine:
    """An ``Engine``. Its thread is no daemon: whoever makes one closes it."""

    def __init__(
        self, notify: Callable[[], None] | None = None, accept: Accept | None = None
    ) -> None:
        """``notify`` is called on the engine's thread when events begin to wait."""
        self._notify = notify
        self._accept = accept
        self._events: deque[EngineEvent] = deque()
        self._events_wait = threading.Event()
        self._requests: deque[tuple[int, LoadRequest | GenerateRequest | None]] = deque()
        self._wake = threading.Condition()
        self._last_number = 0
        self._stopped_up_to = 0
        self._running_number = 0
        self._closing = False
        self._stop = StopFlag()
        self._model_lock = threading.Lock()  # held while the vocabulary is read or freed
        self._running: _Running | None = None
        self._lines: list[tuple[str, str]] = []
        self._thread = threading.Thread(target=self._work, name="llama-engine", daemon=False)
        self._thread.start()

    def load(self, request: LoadRequest) -> int:
        """See :class:`Engine`. A change of the context alone keeps the weights."""
        return self._queue(request)

    def generate(self, request: GenerateRequest) -> int:
        """See :class:`Engine`."""
        return self._queue(request)

    def unload(self) -> int:
        """See :class:`Engine`."""
        return self._queue(None)

    def stop(self) -> None:
        """End the running request and those that wait; unloads are done all the same."""
        with self._wake:
            self._stopped_up_to = self._last_number
            if self._running_number:
                self._stop.set(True)

    def drain(self, timeout_s: float = 0.0) -> list[EngineEvent]:
        """See :class:`Engine`. One consumer at a time."""
        deadline_s = time.monotonic() + timeout_s
        while True:
            # First the flag, then the events: one that comes between rings again.
            self._events_wait.clear()
            events: list[EngineEvent] = []
            while self._events:
                events.append(self._events.popleft())
            left_s = deadline_s - time.monotonic()
            if events or left_s <= 0.0:
                return events
            self._events_wait.wait(left_s)

    def count_tokens(self, text: str) -> int | None:
        """See :class:`Engine`."""
        with self._model_lock:
            running = self._running
            return len(running.model.vocabulary.tokenise(text)) if running else None

    def close(self) -> None:
        """See :class:`Engine`. Queued requests are forgotten. May be called twice."""
        with self._wake:
            self._closing = True
            self._requests.clear()
            self._stopped_up_to = self._last_number
            self._stop.set(True)
            self._wake.notify_all()
        self._thread.join()

    def _queue(self, request: LoadRequest | GenerateRequest | None) -> int:
        with self._wake:
            self._last_number += 1
            if not self._closing:
                self._requests.append((self._last_number, request))
                self._wake.notify_all()
            return self._last_number

    # ---- the engine's thread

    def _work(self) -> None:
        while (job := self._next_job()) is not None:
            number, request = job
            with log_to(self._take_line):
                if isinstance(request, LoadRequest):
                    self._do_load(number, request)
                elif isinstance(request, GenerateRequest):
                    self._do_generate(number, request)
                else:
                    self._free()
                    self._emit(Unloaded(number))
        with log_to(self._take_line):
            self._free()

    def _next_job(self) -> tuple[int, LoadRequest | GenerateRequest | None] | None:
        with self._wake:
            self._running_number = 0
            self._wake.wait_for(lambda: self._closing or bool(self._requests))
            if self._closing:
                return None
            number, request = self._requests.popleft()
            self._running_number = number
            self._stop.set(number <= self._stopped_up_to)
            return number, request

    def _emit(self, event: EngineEvent) -> None:
        self._events.append(event)
        if not self._events_wait.is_set():
            self._events_wait.set()
            if self._notify is not None:
                self._notify()

    def _take_line(self, level: str, text: str) -> None:
        self._lines.append((level, text))
        self._emit(NativeLog(self._running_number, level, text))

    def _cancelled(self) -> bool:
        return self._stop.raised

    def _do_load(self, number: int, request: LoadRequest) -> None:
        started_s = time.perf_counter()
        self._lines = []
        try:
            report = self._load(number, request, started_s)
        except Cancelled:
            self._free()
            self._emit(LoadCancelled(number))
        except LauncherError as error:
            self._free()
            # The lines are those of the step that failed, weights or context.
            names = [device.name for device in request.placement.devices]
            self._emit(LoadFailed(number, error, memory_shortage(self._lines, names)))
        except Exception as error:
            self._free()
            self._emit(LoadFailed(number, _unexpected(error, self._lines)))
        else:
            self._emit(Loaded(number, report))

    def _load(self, number: int, request: LoadRequest, started_s: float) -> LoadReport:
        running = self._running
        keeps_weights = running is not None and _same_weights(running, request)
        if running is not None and keeps_weights:
            if _same_but_threads(running.request.context, request.context):
                running.context.set_threads(request.context)
                running.request = request
                return self._finish(running, started_s)
        else:
            self._free()
            running = None
        self._check(number, request, started_s)
        if running is None:
            model, model_lines = self._load_model(number, request, started_s)
        else:
            model, model_lines = running.model, running.model_lines
            # The old context goes first: both together may not fit.
            running.context.free()
        self._emit(LoadProgress(number, "context", 0.0, time.perf_counter() - started_s))
        self._lines = []
        try:
            context = make_context(model, request.context, self._stop, self._lines)
        except BaseException:
            with self._model_lock:
                self._running = None
            model.free()
            raise
        running = _Running(
            request,
            model,
            context,
            EvaluatedContext(model, context, self._stop),
            model_lines,
            self._report(request, model, context, model_lines, self._lines),
        )
        model.flash_attention = running.report.flash_attention
        with self._model_lock:
            self._running = running
        if self._cancelled():
            raise Cancelled
        return self._finish(running, started_s)

    def _check(self, number: int, request: LoadRequest, started_s: float) -> None:
        """All that can be said no to before memory is touched."""
        self._emit(LoadProgress(number, "checking", 0.0, time.perf_counter() - started_s))
        file_state(request.path)
        check_context(request.context, None)
        if self._accept is not None:
            self._accept(request, self._cancelled)
        if self._cancelled():
            raise Cancelled

    def _load_model(
        self, number: int, request: LoadRequest, started_s: float
    ) -> tuple[LoadedModel, list[tuple[str, str]]]:
        native = load_native()
        for note in native.notes:
            self._take_line("warning", note)
        told_s = 0.0

        def tell(fraction: float) -> None:
            nonlocal told_s
            elapsed_s = time.perf_counter() - started_s
            if elapsed_s - told_s >= _PROGRESS_EVERY_S or fraction in (0.0, 1.0):
                told_s = elapsed_s
                self._emit(LoadProgress(number, "reading", fraction, elapsed_s))

        model = load_weights(native, request, tell, self._cancelled, self._lines)
        return model, self._lines

    def _report(
        self,
        request: LoadRequest,
        model: LoadedModel,
        context: ModelContext,
        model_lines: list[tuple[str, str]],
        context_lines: list[tuple[str, str]],
    ) -> LoadReport:
        log = parse_load_log([*model_lines, *context_lines])
        flash = log.flash_attention
        warnings = log.warnings
        if model.template.too_long:
            warnings = (
                *warnings,
                tr("The file's chat template is too long to be one; ChatML is used instead."),
            )
        return LoadReport(
            path=request.path,
            placement=request.placement,
            context=request.context,
            load_s=0.0,
            n_ctx=context.n_ctx,
            n_threads=context.n_threads,
            flash_attention=flash if flash is not None else model.flash_attention,
            buffers=log.buffers,
            template_source=model.template.source,
            template_text=model.template.text,
            mismatches=find_mismatches(request, log, model_lines),
            warnings=warnings,
        )

    def _finish(self, running: _Running, started_s: float) -> LoadReport:
        running.report = replace(
            running.report,
            context=running.request.context,
            n_threads=running.context.n_threads,
            load_s=time.perf_counter() - started_s,
        )
        return running.report

    def _do_generate(self, number: int, request: GenerateRequest) -> None:
        self._lines = []
        running = self._running
        try:
            if running is None:
                raise LauncherError(tr("No model is loaded."), tr("Launch a model first."))
            generation = Generation(
                number, request, running.model, running.evaluated, self._stop, self._emit
            )
            stats: GenerationStats = generation.run()
        except LauncherError as error:
            self._emit(GenerateFailed(number, error))
        except Exception as error:
            self._emit(GenerateFailed(number, _unexpected(error, self._lines)))
        else:
            self._emit(Finished(number, stats))

    def _free(self) -> None:
        with self._model_lock:
            running, self._running = self._running, None
        if running is not None:
            running.context.free()
            running.model.free()


def _same_weights(running: _Running, request: LoadRequest) -> bool:
    before = running.request
    return (
        before.path == request.path
        and same_place(before.placement, request.placement)
        and before.use_mmap == request.use_mmap
        and running.model.file_state == file_state(request.path)
    )


def _same_but_threads(before: ContextSettings, after: ContextSettings) -> bool:
    return replace(before, n_threads=after.n_threads) == after


def _unexpected(error: Exception, lines: list[tuple[str, str]]) -> LauncherError:
    return LauncherError(
        tr("The engine failed in a way that was not foreseen ({reason}).").format(
            reason=str(error) or type(error).__name__
        ),
        tr("Load the model again."),
        f"{type(error).__name__}: {error}\n{last_lines(lines)}",
    )
