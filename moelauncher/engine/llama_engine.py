"""The engine that runs llama.cpp in this process, on one thread of its own.

In: requests, from any thread. Out: events, fetched with :meth:`LlamaEngine.drain`. See
``core.engine_protocol`` for the contract. Here are the queue and the thread; what is loaded,
and how it gets there, stands in :mod:`moelauncher.engine.resident_model`.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence

from moelauncher.core.engine_protocol import (
    ChatKept,
    ChatMessage,
    EngineEvent,
    Finished,
    GenerateFailed,
    GenerateRequest,
    GenerationStats,
    LoadRequest,
    NativeLog,
    Unloaded,
)
from moelauncher.core.errors import LauncherError
from moelauncher.core.template_switch import TemplateSwitch
from moelauncher.core.translate import tr
from moelauncher.engine.generate import Generation
from moelauncher.engine.kept_states import KeptStates
from moelauncher.engine.live_move import FreeRam
from moelauncher.engine.load_model import LoadedModel
from moelauncher.engine.native import log_to
from moelauncher.engine.resident_model import Accept, ResidentModel, unexpected
from moelauncher.engine.stop_flag import StopFlag

_log = logging.getLogger(__name__)

ENGINE_THREAD = "llama-engine"
#: So long the program's end waits for the engine to stop and to free its memory.
CLOSE_LIMIT_S = 30.0


class _KeepChat:
    """A job: write what is worth it to the disk."""


_Request = LoadRequest | GenerateRequest | _KeepChat | None  # None: an unload


class LlamaEngine:
    """An ``Engine``. Whoever makes one closes it."""

    def __init__(
        self,
        notify: Callable[[], None] | None = None,
        accept: Accept | None = None,
        free_ram: FreeRam = lambda: None,
        kept_states: KeptStates | None = None,
    ) -> None:
        """``notify`` is called on the engine's thread when events begin to wait.

        ``free_ram`` says, on that thread too, whether a conversation's state can be kept
        in main memory while its model moves; without it, it always is. ``kept_states`` is
        where long chats stay on the disk when they are left or the model is unloaded.
        """
        self._notify = notify
        self._pause = _Pause(self)
        self._events: deque[EngineEvent] = deque()
        self._events_wait = threading.Event()
        self._requests: deque[tuple[int, _Request]] = deque()
        self._wake = threading.Condition()
        self._last_number = 0
        self._stopped_up_to = 0
        self._running_number = 0
        self._moving_number = 0  # a load that a reply in progress waits for
        self._stopped_loads: set[int] = set()
        self._closing = False
        self._stop = StopFlag()
        self._kept_states = kept_states
        self._resident = ResidentModel(
            self._emit,
            self._take_line,
            self._stop,
            self._cancelled,
            accept,
            free_ram,
            kept_states,
        )
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

    def keep_chat(self) -> int:
        """See :class:`Engine`."""
        return self._queue(_KeepChat())

    def forget_chat(self, chat_id: str) -> None:
        """See :class:`Engine`. Also done at the end, where the queue does not come to it."""
        if self._kept_states is not None:
            self._kept_states.forget(chat_id)
            self._queue(_KeepChat())

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
        return self._resident.count_prompt(messages, template_values, template)

    def render_prompt(
        self,
        messages: Sequence[ChatMessage],
        template_values: Mapping[str, object],
        template: str | None = None,
    ) -> str | None:
        """See :class:`Engine`."""
        return self._resident.render_prompt(messages, template_values, template)

    def find_switches(self, template: str) -> Sequence[TemplateSwitch]:
        """See :class:`Engine`."""
        return self._resident.find_switches(template)

    def count_tokens(self, text: str) -> int | None:
        """See :class:`Engine`."""
        return self._resident.count_tokens(text)

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

    def _queue(self, request: _Request) -> int:
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
                elif isinstance(request, _KeepChat):
                    self._resident.keep_chat()
                    self._emit(ChatKept(number))
                else:
                    self._resident.leave()
                    self._emit(Unloaded(number))
        with log_to(self._take_line):
            self._resident.leave()

    def _next_job(self) -> tuple[int, _Request] | None:
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
        self._resident.lines.append((level, text))
        if self._stop.raised and level in ("warning", "error"):
            level = "info"  # llama.cpp's words for having been stopped, which the user wanted
        self._emit(NativeLog(self._running_number, level, text))

    def _cancelled(self) -> bool:
        return self._stop.raised or bool(
            self._stopped_loads & {self._moving_number, self._running_number}
        )

    def _do_load(self, number: int, request: LoadRequest) -> None:
        self._resident.load(number, request, in_reply=bool(self._moving_number))
        self._stopped_loads.discard(number)

    def _do_generate(self, number: int, request: GenerateRequest) -> None:
        self._resident.lines = []
        running = self._resident.running
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
            self._emit(GenerateFailed(number, unexpected(error, self._resident.lines)))
        else:
            self._emit(Finished(number, stats))

    def loaded_model(self) -> LoadedModel | None:
        """What is loaded now. Engine thread."""
        running = self._resident.running
        return running.model if running else None


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
