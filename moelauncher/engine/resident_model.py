"""What is loaded: how it gets there, how it moves elsewhere with its conversation, and goes.

In: load requests, on the engine's thread, and questions about the vocabulary, from any. Out:
load events, through the caller's ``emit``. What is loaded after a LoadFailed or a
LoadCancelled is nothing, or with ``keeps_chat`` what was loaded before.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from moelauncher.core.engine_protocol import (
    CarriedChat,
    ChatMessage,
    EngineEvent,
    LoadCancelled,
    Loaded,
    LoadFailed,
    LoadProgress,
    LoadReport,
    LoadRequest,
)
from moelauncher.core.errors import Cancelled, LauncherError
from moelauncher.core.template_switch import TemplateSwitch
from moelauncher.core.translate import tr
from moelauncher.engine.chat_template import ChatTemplate
from moelauncher.engine.evaluated_context import EvaluatedContext
from moelauncher.engine.find_switches import find_switches
from moelauncher.engine.kept_states import KeptStates
from moelauncher.engine.live_move import FreeRam, SavedChat
from moelauncher.engine.load_model import (
    LoadedModel,
    check_context,
    file_state,
    last_lines,
    load_weights,
    make_context,
)
from moelauncher.engine.memory_failure import memory_shortage
from moelauncher.engine.native import load_native
from moelauncher.engine.running_model import RunningModel, report_of
from moelauncher.engine.stop_flag import StopFlag

#: Called before each load in this process with the request and a "was it cancelled?";
#: raises LauncherError for a file that must not be loaded, Cancelled when it was.
Accept = Callable[[LoadRequest, Callable[[], bool]], object]

_PROGRESS_EVERY_S = 0.1
#: Whoever counts holds up a load that comes just then.
_COUNT_S = 1.0


@dataclass
class _Move:
    """A load that takes the conversation along; ``before`` comes back where it fails."""

    before: RunningModel
    saved: SavedChat | None = None


class ResidentModel:
    """The one model in memory, or none. Engine thread, but for what is said otherwise."""

    def __init__(
        self,
        emit: Callable[[EngineEvent], None],
        take_line: Callable[[str, str], None],
        stop: StopFlag,
        cancelled: Callable[[], bool],
        accept: Accept | None,
        free_ram: FreeRam,
        kept_states: KeptStates | None,
    ) -> None:
        """``take_line`` gets what is said beside llama.cpp's own words (level, text);
        ``stop`` is the flag that its contexts look at, ``cancelled`` is asked by the load in
        progress; for the rest see ``LlamaEngine``."""
        self._emit = emit
        self._take_line = take_line
        self._stop = stop
        self._cancelled = cancelled
        self._accept = accept
        self._free_ram = free_ram
        self._kept_states = kept_states
        self._lock = threading.Lock()  # held while the vocabulary is read or freed
        self.running: RunningModel | None = None
        #: llama.cpp's lines since the step in progress began.
        self.lines: list[tuple[str, str]] = []

    def count_prompt(
        self,
        messages: Sequence[ChatMessage],
        template_values: Mapping[str, object],
        template: str | None = None,
    ) -> int | None:
        """See :class:`Engine`. Any thread. A template that takes long is not waited for."""
        with self._lock:
            text = self._rendered(messages, template_values, template)
            running = self.running
            if text is None or running is None:
                return None
            return len(running.model.vocabulary.tokenise_prompt(text))

    def render_prompt(
        self,
        messages: Sequence[ChatMessage],
        template_values: Mapping[str, object],
        template: str | None = None,
    ) -> str | None:
        """See :class:`Engine`. Any thread."""
        with self._lock:
            return self._rendered(messages, template_values, template)

    def find_switches(self, template: str) -> Sequence[TemplateSwitch]:
        """See :class:`Engine`. Any thread."""
        with self._lock:
            if self.running is None:
                return ()
            vocabulary = self.running.model.vocabulary
            # One of its own: trials are long, and nobody shall wait for them.
            stand_in = ChatTemplate(template, vocabulary.bos_text, vocabulary.eos_text)
        return find_switches(stand_in)

    def _rendered(
        self,
        messages: Sequence[ChatMessage],
        template_values: Mapping[str, object],
        template: str | None,
    ) -> str | None:
        until_s = time.monotonic() + _COUNT_S
        if self.running is None:
            return None
        try:
            return self.running.model.template_for(template).render(
                messages, template_values, cancelled=lambda: time.monotonic() > until_s
            )
        except Cancelled:
            return None

    def count_tokens(self, text: str) -> int | None:
        """See :class:`Engine`. Any thread."""
        with self._lock:
            running = self.running
            return len(running.model.vocabulary.tokenise(text)) if running else None

    def load(self, number: int, request: LoadRequest, *, in_reply: bool) -> None:
        """Load, and emit how it went. ``in_reply``: a reply in progress waits for it."""
        started_s = time.perf_counter()
        self.lines = []
        running = self.running
        move: _Move | None = None
        if running is not None and request.keeps_chat and running.request.path == request.path:
            move = _Move(running)
        try:
            if move is not None:
                move.before.check_move(request, in_reply=in_reply)
                self._check(number, request, started_s)
            report = self._load(number, request, started_s, move)
        except Cancelled:
            self._emit(LoadCancelled(number, self._bring_back(number, move)))
        except Exception as caught:
            error = caught if isinstance(caught, LauncherError) else None
            error = error or unexpected(caught, self.lines)
            # The lines are those of the step that failed, weights or context.
            names = [device.name for device in request.placement.devices]
            shortage = memory_shortage(self.lines, names)
            back = self._bring_back(number, move)
            self._emit(LoadFailed(number, error, shortage, back))
        else:
            self._emit(Loaded(number, report))

    def _load(
        self, number: int, request: LoadRequest, started_s: float, move: _Move | None
    ) -> LoadReport:
        running = self.running
        model: LoadedModel | None = None
        model_lines: list[tuple[str, str]] = []
        if running is not None and running.has_weights_of(request):
            if running.has_context_of(request):
                running.context.set_threads(request.context)
                running.request = request
                report = running.loaded_since(started_s)
                return replace(report, carried=running.kept() if move else None)
            model, model_lines = running.model, running.model_lines
        if move is None:
            if running is not None:
                running.evaluated.keep_on_disk()
            if model is None:
                self.free()
            self._check(number, request, started_s)
        else:
            move.saved = move.before.evaluated.save(self._free_ram)
        if running is not None and model is not None:
            # The old context goes first: both together may not fit.
            running.context.free()
        elif model is None:
            self.free()
            model, model_lines = self._load_model(number, request, started_s, self._cancelled)
        self._emit(LoadProgress(number, "context", 0.0, time.perf_counter() - started_s))
        running = self._make_running(request, model, model_lines, move)
        if self._cancelled() and move is None:
            raise Cancelled
        return running.loaded_since(started_s)

    def _make_running(
        self,
        request: LoadRequest,
        model: LoadedModel,
        model_lines: list[tuple[str, str]],
        move: _Move | None,
    ) -> RunningModel:
        """A context on ``model``, and the conversation in it where there is one.

        Raises LauncherError with nothing loaded; weights that a move keeps stay in memory.
        """
        self.lines = []
        try:
            context = make_context(model, request.context, self._stop, self.lines)
        except BaseException:
            with self._lock:
                self.running = None
            if move is None or move.before.model is not model:
                model.free()
            raise
        report = report_of(request, model, context, model_lines, self.lines)
        model.flash_attention = report.flash_attention
        if move is None or move.saved is None:
            evaluated = EvaluatedContext(model, context, self._stop, self._kept_states)
        else:
            evaluated, saved = move.before.evaluated, move.saved
            reason = evaluated.move_to(model, context, saved)
            how = "read_again" if reason else "restored"
            report = replace(report, carried=CarriedChat(how, len(saved.tokens), reason))
        running = RunningModel(request, model, context, evaluated, model_lines, report)
        with self._lock:
            self.running = running
        return running

    def _bring_back(self, number: int, move: _Move | None) -> LoadReport | None:
        """After a load that did not end well: what ran before; None where nothing does now."""
        if move is None:
            self.free()
            return None
        before, started_s = move.before, time.perf_counter()
        if before.context.handle is not None:  # nothing was touched yet
            return replace(before.report, carried=before.kept())
        self.free()
        failed_lines, self.lines = self.lines, []
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
            self.free()
            before.model.free()
            return None
        finally:
            self.lines = failed_lines
        return running.loaded_since(started_s)

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

        model = load_weights(native, request, tell, cancelled, self.lines)
        return model, self.lines

    def leave(self) -> None:
        """Free what is loaded; its chat may stay on the disk."""
        self.keep_chat()
        self.free()

    def keep_chat(self) -> None:
        """Write what was made of a long chat to the disk; chats that were deleted go."""
        if self.running is not None:
            self.running.evaluated.keep_on_disk()
        if self._kept_states is not None:
            self._kept_states.drop_forgotten()

    def free(self) -> None:
        """Take it out of memory."""
        with self._lock:
            running, self.running = self.running, None
        if running is not None:
            running.free()


def unexpected(error: Exception, lines: list[tuple[str, str]]) -> LauncherError:
    """The error for what nobody foresaw; ``lines`` are llama.cpp's last words."""
    return LauncherError(
        tr("The engine failed in a way that was not foreseen ({reason}).").format(
            reason=str(error) or type(error).__name__
        ),
        tr("Load the model again."),
        f"{type(error).__name__}: {error}\n{last_lines(lines)}",
    )
