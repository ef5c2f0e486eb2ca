"""The engine that runs llama.cpp in this process, on one thread of its own.

In: requests, from any thread. Out: events, fetched with :meth:`LlamaEngine.drain`. See
``core.engine_protocol`` for the contract; what is loaded after a LoadFailed or a
LoadCancelled is nothing, or with ``keeps_chat`` what was loaded before.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from moelauncher.core.engine_protocol import (
    CarriedChat,
    ChatMessage,
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
from moelauncher.engine.find_switches import find_switches
from moelauncher.engine.generate import Generation
from moelauncher.engine.live_move import FreeRam, SavedChat
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
_log = logging.getLogger(__name__)

Accept = Callable[[LoadRequest, Callable[[], bool]], object]

_PROGRESS_EVERY_S = 0.1

ENGINE_THREAD = "llama-engine"
#: So long the program's end waits for the engine to stop and to free its memory.
CLOSE_LIMIT_S = 30.0
#: Whoever counts holds up a load that comes just then.
_COUNT_S = 1.0


@dataclass
class _Running:
    """What is loaded now. ``evaluated`` belongs to ``context``."""

    request: LoadRequest
    model: LoadedModel
    context: ModelContext
    evaluated: EvaluatedContext
    model_lines: list[tuple[str, str]]
    report: LoadReport

    def kept(self) -> CarriedChat:
        """Its conversation was not touched."""
        return CarriedChat("kept", len(self.evaluated.tokens))


@dataclass
class _Move:
    """A load that takes the conversation along; ``before`` comes back where it fails."""

    before: _Running
    saved: SavedChat | None = None


class LlamaEngine:
    """An ``Engine``. Its thread is no daemon: whoever makes one closes it."""

    def __init__(
        self,
        notify: Callable[[], None] | None = None,
        accept: Accept | None = None,
        free_ram: FreeRam = lambda: None,
    ) -> None:
        """``notify`` is called on the engine's thread when events begin to wait.

        ``free_ram`` says, on that thread too, whether a conversation's state can be kept
        in main memory while its model moves; without it, it always is.
        """
        self._notify = notify
        self._accept = accept
        self._free_ram = free_ram
        self._pause = _Pause(self)
        self._events: deque[EngineEvent] = deque()
        self._events_wait = threading.Event()
        self._requests: deque[tuple[int, LoadRequest | GenerateRequest | None]] = deque()
        self._wake = threading.Condition()
        self._last_number = 0
        self._stopped_up_to = 0
        self._running_number = 0
        self._moving_number = 0  # a load that a reply in progress waits for
        self._stopped_loads: set[int] = set()
        self._closing = False
        self._stop = StopFlag()
        self._model_lock = threading.Lock()  # held while the vocabulary is read or freed
        self._running: _Running | None = None
        self._lines: list[tuple[str, str]] = []
        self._thread = threading.Thread(target=self._work, name=ENGINE_THREAD, daemon=True)
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

    def stop(self, request: int | None = None) -> None:
        """See :class:`Engine`. Unloads that wait are done all the same."""
        with self._wake:
            if request is not None:
                self._stopped_loads.add(request)
                return
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

    def count_prompt(
        self,
        messages: Sequence[ChatMessage],
        template_values: Mapping[str, object],
        template: str | None = None,
    ) -> int | None:
        """See :class:`Engine`. A template that takes long is not waited for."""
        with self._model_lock:
            text = self._rendered(messages, template_values, template)
            running = self._running
            if text is None or running is None:
                return None
            return len(running.model.vocabulary.tokenise_prompt(text))

    def render_prompt(
        self,
        messages: Sequence[ChatMessage],
        template_values: Mapping[str, object],
        template: str | None = None,
    ) -> str | None:
        """See :class:`Engine`."""
        with self._model_lock:
            return self._rendered(messages, template_values, template)

    def _rendered(
        self,
        messages: Sequence[ChatMessage],
        template_values: Mapping[str, object],
        template: str | None,
    ) -> str | None:
        until_s = time.monotonic() + _COUNT_S
        if self._running is None:
            return None
        try:
            return self._running.model.template_for(template).render(
                messages, template_values, cancelled=lambda: time.monotonic() > until_s
            )
        except Cancelled:
            return None

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
        # Freeing a large model takes seconds; a file on a drive that is gone takes for ever.
        self._thread.join(CLOSE_LIMIT_S)
        if self._thread.is_alive():
            _log.warning("the engine does not end and is left behind")

    def _queue(self, request: LoadRequest | GenerateRequest | None) -> int:
        with self._wake:
            self._last_number += 1
            if not self._closing:
                self._requests.append((self._last_number, request))
                if isinstance(request, LoadRequest) and request.keeps_chat:
                    self._pause.wanted = True
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

    def serve_moves(self) -> None:
        """Do the loads at the head of the queue that the reply in progress waits for."""
        while True:
            with self._wake:
                request = self._requests[0][1] if self._requests else None
                if not isinstance(request, LoadRequest) or not request.keeps_chat:
                    self._pause.wanted = False
                    return
                self._moving_number = self._requests.popleft()[0]
            try:
                self._do_load(self._moving_number, request)
            finally:
                self._moving_number = 0

    def _emit(self, event: EngineEvent) -> None:
        self._events.append(event)
        if not self._events_wait.is_set():
            self._events_wait.set()
            if self._notify is not None:
                self._notify()

    def _take_line(self, level: str, text: str) -> None:
        self._lines.append((level, text))
        if self._stop.raised and level in ("warning", "error"):
            level = "info"  # llama.cpp's words for having been stopped, which the user wanted
        self._emit(NativeLog(self._running_number, level, text))

    def _cancelled(self) -> bool:
        return self._stop.raised or bool(
            self._stopped_loads & {self._moving_number, self._running_number}
        )

    def _do_load(self, number: int, request: LoadRequest) -> None:
        started_s = time.perf_counter()
        self._lines = []
        running = self._running
        move: _Move | None = None
        if running is not None and request.keeps_chat and running.request.path == request.path:
            move = _Move(running)
        try:
            if move is not None:
                self._check_move(number, move.before, request, started_s)
            report = self._load(number, request, started_s, move)
        except Cancelled:
            self._emit(LoadCancelled(number, self._bring_back(number, move)))
        except Exception as caught:
            error = caught if isinstance(caught, LauncherError) else None
            error = error or _unexpected(caught, self._lines)
            # The lines are those of the step that failed, weights or context.
            names = [device.name for device in request.placement.devices]
            shortage = memory_shortage(self._lines, names)
            back = self._bring_back(number, move)
            self._emit(LoadFailed(number, error, shortage, back))
        else:
            self._emit(Loaded(number, report))
        self._stopped_loads.discard(number)

    def _load(
        self, number: int, request: LoadRequest, started_s: float, move: _Move | None
    ) -> LoadReport:
        running = self._running
        model: LoadedModel | None = None
        model_lines: list[tuple[str, str]] = []
        if running is not None and _same_weights(running, request):
            if _same_but_threads(running.request.context, request.context):
                running.context.set_threads(request.context)
                running.request = request
                report = self._finish(running, started_s)
                return replace(report, carried=running.kept() if move else None)
            model, model_lines = running.model, running.model_lines
        if move is None:
            if model is None:
                self._free()
            self._check(number, request, started_s)
        else:
            move.saved = move.before.evaluated.save(self._free_ram)
        if running is not None and model is not None:
            # The old context goes first: both together may not fit.
            running.context.free()
        elif model is None:
            self._free()
            model, model_lines = self._load_model(number, request, started_s, self._cancelled)
        self._emit(LoadProgress(number, "context", 0.0, time.perf_counter() - started_s))
        running = self._make_running(request, model, model_lines, move)
        if self._cancelled() and move is None:
            raise Cancelled
        return self._finish(running, started_s)

    def _make_running(
        self,
        request: LoadRequest,
        model: LoadedModel,
        model_lines: list[tuple[str, str]],
        move: _Move | None,
    ) -> _Running:
        """A context on ``model``, and the conversation in it where there is one.

        Raises LauncherError with nothing loaded; weights that a move keeps stay in memory.
        """
        self._lines = []
        try:
            context = make_context(model, request.context, self._stop, self._lines)
        except BaseException:
            with self._model_lock:
                self._running = None
            if move is None or move.before.model is not model:
                model.free()
            raise
        report = self._report(request, model, context, model_lines, self._lines)
        model.flash_attention = report.flash_attention
        if move is None or move.saved is None:
            evaluated = EvaluatedContext(model, context, self._stop)
        else:
            evaluated, saved = move.before.evaluated, move.saved
            reason = evaluated.move_to(model, context, saved)
            how = "read_again" if reason else "restored"
            report = replace(report, carried=CarriedChat(how, len(saved.tokens), reason))
        running = _Running(request, model, context, evaluated, model_lines, report)
        with self._model_lock:
            self._running = running
        return running

    def _bring_back(self, number: int, move: _Move | None) -> LoadReport | None:
        """After a load that did not end well: what ran before; None where nothing does now."""
        if move is None:
            self._free()
            return None
        before, started_s = move.before, time.perf_counter()
        if before.context.handle is not None:  # nothing was touched yet
            return replace(before.report, carried=before.kept())
        self._free()
        failed_lines, self._lines = self._lines, []
        try:
            model, model_lines = before.model, before.model_lines
            if model.handle is None:
                # Also where the user stopped: what was there must not be lost by that.
                model, model_lines = self._load_model(
                    number, before.request, started_s, lambda: False
                )
            running = self._make_running(before.request, model, model_lines, move)
        except Exception as error:
            self._take_line("error", str(error))
            self._free()
            before.model.free()
            return None
        finally:
            self._lines = failed_lines
        return self._finish(running, started_s)

    def _check_move(
        self, number: int, running: _Running, request: LoadRequest, started_s: float
    ) -> None:
        """What can be said no to while the old place is still there."""
        if running.model.file_state != file_state(request.path):
            raise LauncherError(
                tr("{name} was changed on disk since it was loaded.").format(
                    name=request.path.name
                ),
                tr("Unload it, then load it again."),
            )
        n_tokens = len(running.evaluated.tokens)
        if self._moving_number and n_tokens >= request.context.n_ctx:
            raise LauncherError(
                tr("The reply in progress needs {n} tokens, the new context holds {limit}.").format(
                    n=n_tokens + 1, limit=request.context.n_ctx
                ),
                tr("Choose a larger context, or apply it after the reply."),
            )
        check_context(request.context, running.model.longest_context)
        self._check(number, request, started_s)

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
        self,
        number: int,
        request: LoadRequest,
        started_s: float,
        cancelled: Callable[[], bool],
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

        model = load_weights(native, request, tell, cancelled, self._lines)
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
            switches=find_switches(model.template),
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
                number,
                request,
                running.model,
                running.evaluated,
                self._stop,
                self._emit,
                self._pause,
            )
            stats: GenerationStats = generation.run()
        except LauncherError as error:
            self._emit(GenerateFailed(number, error))
        except Exception as error:
            self._emit(GenerateFailed(number, _unexpected(error, self._lines)))
        else:
            self._emit(Finished(number, stats))

    def loaded_model(self) -> LoadedModel | None:
        """What is loaded now. Engine thread."""
        return self._running.model if self._running else None

    def _free(self) -> None:
        with self._model_lock:
            running, self._running = self._running, None
        if running is not None:
            running.context.free()
            running.model.free()


class _Pause:
    """A :class:`MovePause` over the engine's queue."""

    def __init__(self, engine: LlamaEngine) -> None:
        self._engine = engine
        self.wanted = False

    def serve(self) -> LoadedModel:
        self._engine.serve_moves()
        running = self._engine.loaded_model()
        if running is None:
            raise LauncherError(
                tr("The model could not be brought back, so the reply ends here."),
                tr("Load the model again; the chat is kept."),
            )
        return running


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
