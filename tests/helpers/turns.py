"""An engine that goes on only when what it told has been looked at."""

from __future__ import annotations

import threading

from moelauncher.core.engine_protocol import (
    EngineEvent,
    GenerateRequest,
    PromptProgress,
    TokenEvent,
)
from moelauncher.engine.llama_engine import LlamaEngine
from tests.helpers.engines import Outcome


class Turns:
    """Inside its block the engine waits, at each token and each piece of a prompt that a request
    made there tells, until that was seen.

    Else a short reply may be over before a busy machine gives the test's thread its turn.
    """

    def __init__(self, engine: LlamaEngine) -> None:
        self._engine = engine
        self._emit = engine._emit
        self._seen = threading.Semaphore(0)
        self._taken = True

    def __enter__(self) -> Turns:
        self._engine._emit = self._tell  # type: ignore[method-assign]
        return self

    def __exit__(self, *_: object) -> None:
        self.let_go()
        self._engine._emit = self._emit  # type: ignore[method-assign]

    def _tell(self, event: EngineEvent) -> None:
        """What the engine calls, on its thread."""
        self._emit(event)
        if self._taken and isinstance(event, PromptProgress | TokenEvent):
            assert self._seen.acquire(timeout=240)

    def saw(self, event: EngineEvent) -> None:
        """The engine may go on after ``event``."""
        if isinstance(event, PromptProgress | TokenEvent):
            self._seen.release()

    def let_go(self) -> None:
        """It waits no longer."""
        self._taken = False
        self._seen.release()


def stopped_at(
    engine: LlamaEngine, request: GenerateRequest, stop_at: type[EngineEvent]
) -> Outcome:
    """All events of ``request``, which is stopped at the first ``stop_at``."""
    outcome = Outcome()
    with Turns(engine) as turns:
        number = engine.generate(request)
        while not outcome.ended:
            for event in engine.drain(240.0):
                if event.request == number:
                    outcome.events.append(event)
                if isinstance(event, stop_at):
                    engine.stop()
                turns.saw(event)
    return outcome
