"""Measures placements through the same engine that chats.

In: one :class:`LoadRequest` a placement. Out: a stream of :class:`BenchRow`. Blocks; not for
the window's thread. The text is real, nothing of it is cached between repeats, and what runs
first in a placement is not counted.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol, TypeVar

from moelauncher.core.engine_protocol import (
    Engine,
    EngineEvent,
    Finished,
    GenerateFailed,
    GenerateRequest,
    GenerationStats,
    LoadCancelled,
    Loaded,
    LoadFailed,
    LoadReport,
    LoadRequest,
    Sampling,
)
from moelauncher.core.errors import Cancelled, LauncherError
from moelauncher.core.resources import read_text_resource
from moelauncher.core.speed.bench_row import BenchRow, spread_note
from moelauncher.core.speed.remarks import each_once
from moelauncher.core.translate import tr

_DRAIN_S = 0.05
#: How long the engine is left alone between two looks: short runs are not to wait, long ones not
#: to be disturbed. A look costs half a per cent of a fast model's speed at 30 a second.
_FIRST_PACE_S, _LAST_PACE_S, _SLOWER = 1 / 30, 1 / 4, 1.5
#: Each repeat begins this many words further on, so that its first token differs.
_STRIDE_WORDS = 41
_WARM_UP_TOKENS = 16

_Event = TypeVar("_Event", bound=EngineEvent)


@dataclass(frozen=True)
class BenchCase:
    """A placement to measure. ``ram_weights_bytes`` is the plan's share of main memory:
    llama.cpp itself logs only a span of the mapped file.
    """

    request: LoadRequest
    ram_weights_bytes: int | None = None


class BenchObserver(Protocol):
    """Looks on while repeats run, and keeps what it sees."""

    def begin(self) -> None:
        """A repeat begins."""

    def end(
        self, case: BenchCase, report: LoadReport, stats: GenerationStats
    ) -> tuple[str, tuple[str, ...]]:
        """It ended. Why it does not count, as a sentence ("": it does), and other remarks."""


def run_bench(
    engine: Engine,
    cases: Iterable[BenchCase],
    *,
    observer: BenchObserver | None = None,
    n_prompt: int = 512,
    n_generate: int = 128,
    n_repeats: int = 3,
    cancelled: Callable[[], bool] = lambda: False,
    step: Callable[[int, int], None] = lambda done, total: None,
) -> Iterator[BenchRow]:
    """Measure each case: a prompt of ``n_prompt`` tokens, ``n_generate`` more behind it.

    Yields the rows of a case when it is done; a test of 0 tokens has no row. ``step`` gets
    how many runs of a case are done; ``observer`` is told of each. Raises LauncherError
    where a load or a run fails, or the context is too small, and Cancelled.
    """
    if n_prompt < 0 or n_generate < 0 or n_repeats < 1 or n_prompt + n_generate < 1:
        raise LauncherError(
            tr("There is nothing to measure."),
            tr("Ask for at least 1 repeat, and for 1 token of prompt or generation."),
        )
    for case in cases:
        yield from BenchRun(engine, cancelled).measure(
            case, n_prompt, n_generate, n_repeats, step, observer
        )


class BenchRun:
    """Loads and timed repeats on one engine."""

    def __init__(self, engine: Engine, cancelled: Callable[[], bool] = lambda: False) -> None:
        self._engine = engine
        self._cancelled = cancelled

    def open(self, request: LoadRequest, n_prompt: int, n_generate: int) -> LoadReport:
        """Load, and run once what does not count. Raises LauncherError, Cancelled."""
        n_depth, n_drawn = _lengths(n_prompt, n_generate)
        if n_depth + n_drawn > request.context.n_ctx:
            raise LauncherError(
                tr("A context of {n_ctx} tokens does not hold {n} tokens to measure.").format(
                    n_ctx=request.context.n_ctx, n=n_depth + n_drawn
                ),
                tr("Choose a larger context, or measure fewer tokens."),
            )
        report = self._load(request)
        self._generate(self._prompt(0, n_depth), min(max(n_drawn // 4, 2), _WARM_UP_TOKENS))
        return report

    def repeat(self, number: int, n_prompt: int, n_generate: int) -> GenerationStats:
        """One timed run; each ``number`` (from 1 on) has other text."""
        n_depth, n_drawn = _lengths(n_prompt, n_generate)
        return self._generate(self._prompt(number, n_depth), n_drawn)

    def measure(
        self,
        case: BenchCase,
        n_prompt: int,
        n_generate: int,
        n_repeats: int,
        step: Callable[[int, int], None],
        observer: BenchObserver | None = None,
    ) -> Iterator[BenchRow]:
        """The rows of one case; see :func:`run_bench`."""
        report = self.open(case.request, n_prompt, n_generate)
        n_depth, _ = _lengths(n_prompt, n_generate)
        runs: list[GenerationStats] = []
        left_out: list[int] = []
        seen: list[str] = []
        for repeat in range(1, n_repeats + 1):
            step(repeat - 1, n_repeats)
            if observer is not None:
                observer.begin()
            run = self.repeat(repeat, n_prompt, n_generate)
            if observer is not None:
                disturbance, remarks = observer.end(case, report, run)
                if disturbance:
                    left_out.append(len(runs))
                seen += dict.fromkeys(filter(None, (disturbance, *remarks)))
            runs.append(run)
        step(n_repeats, n_repeats)
        vram, ram = memory_taken(case, report)
        placement = report.placement
        for test, n_tokens, depth in (("pp", n_prompt, 0), ("tg", n_generate, n_depth)):
            if n_tokens:
                rates = tuple(_rate(run, test) for run in runs)
                notes = (*_notes(report, runs, rates, n_depth), *each_once(seen, n_repeats))
                yield BenchRow(
                    placement.cpu_moe,
                    test,
                    n_tokens,
                    depth,
                    rates,
                    vram,
                    ram,
                    notes,
                    tuple(left_out),
                    placement.ram_layers,
                )

    def _load(self, request: LoadRequest) -> LoadReport:
        number = self._engine.load(request)
        ended = self._wait(number, (Loaded, LoadFailed, LoadCancelled))
        if isinstance(ended, LoadFailed):
            raise ended.error
        if not isinstance(ended, Loaded):
            raise Cancelled
        return ended.report

    def _generate(self, prompt: str, n_tokens: int) -> GenerationStats:
        request = GenerateRequest(
            raw_prompt=prompt,
            sampling=Sampling(temperature=0.0),
            max_tokens=n_tokens,
            ignore_end_of_generation=True,
        )
        ended = self._wait(self._engine.generate(request), (Finished, GenerateFailed))
        if isinstance(ended, GenerateFailed):
            raise ended.error
        assert isinstance(ended, Finished)
        if ended.stats.finish_reason == "cancelled":
            raise Cancelled
        return ended.stats

    def _wait(self, number: int, kinds: tuple[type[_Event], ...]) -> _Event:
        """The event that ends request ``number``. What comes before it is not looked at."""
        stopped, pace_s = False, _FIRST_PACE_S
        while True:
            if not stopped and self._cancelled():
                self._engine.stop()
                stopped = True
            for event in self._engine.drain(_DRAIN_S):
                if isinstance(event, kinds) and event.request == number:
                    if stopped:
                        raise Cancelled
                    return event
            time.sleep(pace_s)
            pace_s = min(pace_s * _SLOWER, _LAST_PACE_S)

    def _prompt(self, repeat: int, n_tokens: int) -> str:
        """Text of ``n_tokens`` tokens, other text for each repeat."""
        words = read_text_resource("bench_text.txt").split()
        start = repeat * _STRIDE_WORDS % len(words)
        endless = itertools.islice(itertools.cycle(words), start, None)
        text = " ".join(itertools.islice(endless, n_tokens))  # a word has a token at least
        fewest, most = 0, len(text)
        while fewest < most:
            middle = (fewest + most + 1) // 2
            if self._count(text[:middle]) <= n_tokens:
                fewest = middle
            else:
                most = middle - 1
        return text[:fewest]

    def _count(self, text: str) -> int:
        return self._engine.count_tokens(text) or 0


def _lengths(n_prompt: int, n_generate: int) -> tuple[int, int]:
    """Tokens before, and to draw: a rate needs a first token that it does not count."""
    return max(n_prompt, 1), n_generate + 1


def _rate(run: GenerationStats, test: str) -> float:
    rate = run.prompt_tok_s if test == "pp" else run.tok_s
    if rate is None:
        raise LauncherError(tr("The model gave no tokens to measure."), tr("Measure more tokens."))
    return rate


def memory_taken(case: BenchCase, report: LoadReport) -> tuple[int | None, int | None]:
    """(VRAM, RAM) bytes of the load: what llama.cpp allocated, RAM weights as planned."""
    gpus = {device.name for device in report.placement.devices}
    vram = sum(buffer.n_bytes for buffer in report.buffers if buffer.device in gpus)
    if case.ram_weights_bytes is None:
        return vram, None
    others = sum(
        buffer.n_bytes
        for buffer in report.buffers
        if buffer.device not in gpus and buffer.kind != "weights"
    )
    return vram, case.ram_weights_bytes + others


def _notes(
    report: LoadReport, runs: list[GenerationStats], rates: tuple[float, ...], n_depth: int
) -> tuple[str, ...]:
    notes = [*report.mismatches]
    lengths = {run.prompt_tokens for run in runs}
    if any(length - n_depth not in (0, 1) for length in lengths):  # one more: a model's BOS
        notes.append(
            tr("The prompts had {lengths} tokens.").format(
                lengths=", ".join(str(length) for length in sorted(lengths))
            )
        )
    if note := spread_note(rates):
        notes.append(note)
    return tuple(notes)
