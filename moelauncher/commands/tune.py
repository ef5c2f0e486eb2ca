"""``moelauncher tune``: finds the fastest placement by measuring, and remembers it."""

from __future__ import annotations

import argparse
import signal
import statistics
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

from moelauncher.commands import arguments
from moelauncher.commands.model import runnable_model
from moelauncher.commands.session import Session
from moelauncher.commands.terminal import ProgressLine, note, out, out_json
from moelauncher.core.bench_row import BenchRow, spread_note
from moelauncher.core.errors import Cancelled, LauncherError
from moelauncher.core.launch_plan import LaunchChoices
from moelauncher.core.machine_identity import machine_identity
from moelauncher.core.measurement import Measurement, model_fingerprint
from moelauncher.core.measurement_store import MeasurementStore
from moelauncher.core.paths import app_paths
from moelauncher.core.translate import tr
from moelauncher.core.tune_events import (
    Decided,
    Failed,
    Measured,
    TuneCase,
    TuneJob,
    Visiting,
    setting_of,
)
from moelauncher.core.tune_plan import TunePlan, tune_plan
from moelauncher.core.tune_text import decision_text
from moelauncher.core.units import format_bytes, format_duration
from moelauncher.engine.dry_run import describe_build, describe_devices
from moelauncher.engine.tune import run_tune
from moelauncher.meters.condition_watch import MachineWatch
from moelauncher.meters.meter_thread import default_sources, read_machine


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``tune``."""
    arguments.add_model(parser)
    parser.add_argument(
        "--cpu-moe",
        type=arguments.cpu_moe,
        default=arguments.AUTO,
        metavar="N|all|auto",
        help="your present setting; it is always measured too (auto)",
    )
    arguments.add_which(parser)
    arguments.add_context(parser)
    arguments.add_lengths(parser, fewest_generated=1)
    parser.add_argument(
        "--repeat",
        type=arguments.whole(1, tr("number of repeats")),
        default=3,
        metavar="R",
        help="how often the close candidates are measured (3)",
    )
    parser.add_argument(
        "--budget",
        type=arguments.whole(1, tr("number of seconds")),
        default=600,
        metavar="SECONDS",
        help="time for all of it (600)",
    )
    arguments.add_threads(parser)
    arguments.add_anyway(parser)
    arguments.add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Measure, print each row as soon as it is known, and at last the decision."""
    facts = runnable_model(options)
    if max(options.pp, 1) + options.tg + 1 > options.ctx:
        raise LauncherError(
            tr("A context of {n_ctx} tokens does not hold {n} tokens to measure.").format(
                n_ctx=options.ctx, n=max(options.pp, 1) + options.tg + 1
            ),
            tr("Choose a larger context (--ctx), or measure fewer tokens."),
        )
    store = _open_store(options)
    session = Session(options, facts)
    try:
        return _tune(options, session, store)
    finally:
        session.close()
        if store is not None:
            store.close()


def _open_store(options: argparse.Namespace) -> MeasurementStore | None:
    try:
        store = MeasurementStore(app_paths(options.basedir).measurements_file)
    except LauncherError as error:
        note(error.sentence)
        return None
    if store.problem:
        note(store.problem)
    return store


def _tune(options: argparse.Namespace, session: Session, store: MeasurementStore | None) -> int:
    present = session.plan(options.cpu_moe).placement
    choices = LaunchChoices(
        cpu_moe=present.cpu_moe,
        n_gpu_layers=None if present.of else present.n_gpu_layers,
        which=options.which,
        context=session.context,
        use_mmap=True,
    )
    plan = tune_plan(session.facts, session.machine, choices)
    devices = describe_devices(session.child)
    sources = default_sources(lambda: devices)
    machine = machine_identity(
        devices, read_machine(sources), describe_build(session.child).version
    )
    job = TuneJob(
        model=model_fingerprint(session.facts),
        model_name=session.facts.name,
        machine=machine,
        n_prompt=options.pp,
        n_generate=options.tg,
        budget_s=float(options.budget),
    )
    watch = MachineWatch(default_sources(lambda: devices))
    printer = _Printer(options, plan, store)
    try:
        with _stop_on_interrupt() as stopped:
            for event in run_tune(
                job,
                plan.sweep(n_repeats=options.repeat),
                lambda stop: TuneCase(
                    plan.request(stop), plan.stops[stop].forecast.ram.weights_bytes
                ),
                watch,
                cancelled=stopped.is_set,
            ):
                printer.take(event)
    finally:
        printer.progress.end()
        watch.close()
    if printer.cancelled:
        raise Cancelled
    return 0 if printer.best is not None else 1


@contextmanager
def _stop_on_interrupt() -> Iterator[threading.Event]:
    """Ctrl+C ends the sweep after what runs; what was measured is still decided upon."""
    stopped = threading.Event()
    before = signal.signal(signal.SIGINT, lambda *_: stopped.set())
    try:
        yield stopped
    finally:
        signal.signal(signal.SIGINT, before)


class _Printer:
    """Rows and the decision, as text or JSON, and into the store."""

    def __init__(
        self, options: argparse.Namespace, plan: TunePlan, store: MeasurementStore | None
    ) -> None:
        self._json: bool = options.json
        self._plan = plan
        self._store = store
        self._by_stop: dict[int, list[Measurement]] = {}
        self.progress = ProgressLine(tr("Tuning"), quiet=options.json)
        self.best: int | None = None
        self.cancelled = False

    def take(self, event: object) -> None:
        """One event of the sweep."""
        if isinstance(event, Visiting):
            self.progress.show(event.n_done / event.n_most)
        elif isinstance(event, Measured):
            self._keep(event.measurement)
            self._measured(event)
        elif isinstance(event, Failed):
            self._failed(event)
        elif isinstance(event, Decided):
            self._decided(event)

    def _keep(self, measurement: Measurement) -> None:
        if self._store is None or self._store.read_only:
            return
        try:
            self._store.add(measurement)
        except LauncherError as error:
            note(error.sentence)
            self._store = None

    def _measured(self, event: Measured) -> None:
        runs = self._by_stop.setdefault(event.stop, [])
        runs.append(event.measurement)
        for row in _rows(runs):
            document = row.to_json() | {
                "disturbed": [one.disturbance for one in runs if one.disturbance]
            }
            if self._json:
                out_json(document)
        if not self._json:
            self.progress.end()
            one = event.measurement
            rate = f"{one.tok_s:.2f}" if one.tok_s is not None else "–"
            prompt = f"{one.prompt_tok_s:.1f}" if one.prompt_tok_s is not None else "–"
            line = (
                f"{self._label(event.stop):>4}  {rate:>8} tok/s  {prompt:>8} pp"
                f"  {format_bytes(one.vram_bytes):>10}"
            )
            remark = one.disturbance or " ".join(one.notes)
            out(f"{line}  {remark}".rstrip())

    def _failed(self, event: Failed) -> None:
        if self._json:
            out_json(
                {
                    "cpu_moe": self._plan.stops[event.stop].placement.cpu_moe,
                    "failed": event.error.message,
                    "hint": event.error.hint,
                }
            )
        else:
            self.progress.end()
            out(f"{self._label(event.stop):>4}  {event.error.message}")

    def _label(self, stop: int) -> int:
        placement = self._plan.stops[stop].placement
        return placement.cpu_moe if placement.of else placement.n_gpu_layers

    def _decided(self, event: Decided) -> None:
        decision, plan = event.decision, self._plan
        self.best = decision.best
        self.cancelled = event.why == "cancelled" and decision.best is None
        spare = None if decision.best is None else plan.stops[decision.best].forecast.spare_bytes
        text = decision_text(
            decision, spare_bytes=spare, present=plan.present, one_place=plan.one_place
        )
        document: dict[str, Any] = {
            "decision": {
                "best": None if decision.best is None else self._label(decision.best),
                "equal": [self._label(stop) for stop in decision.equal],
                "present": self._label(plan.present),
                "rates": {str(self._label(s)): rate for s, rate in decision.rates.items()},
                "failed": [self._label(stop) for stop in decision.failed],
                "noise": decision.noise,
                "decided": decision.decided,
                "ended": event.why or "decided",
                "elapsed_s": event.elapsed_s,
                "text": text,
                "notes": [event.busy_note] if event.busy_note else [],
            }
        }
        if decision.best is not None:
            request = plan.request(decision.best)
            document["decision"]["setting"] = asdict(setting_of(request))
            self._remember(decision.best)
        if self._json:
            out_json(document)
            return
        self.progress.end()
        out(text)
        if event.busy_note:
            out(event.busy_note)
        ended = {
            "": tr("Decided in {time}."),
            "budget": tr("The time was used up after {time}; more may change the result."),
            "cancelled": tr("Stopped after {time}; what was measured is kept."),
        }[event.why]
        out(ended.format(time=format_duration(event.elapsed_s)))

    def _remember(self, stop: int) -> None:
        runs = [one for group in self._by_stop.values() for one in group]
        if self._store is None or self._store.read_only or not runs:
            return
        try:
            self._store.remember_choice(
                runs[0].model,
                runs[0].machine.name,
                setting_of(self._plan.request(stop)),
                time.time(),
            )
        except LauncherError as error:
            note(error.sentence)


def _rows(runs: list[Measurement]) -> Iterator[BenchRow]:
    """What ``bench`` would print of these repeats: undisturbed ones, or all if none is."""
    counted = [one for one in runs if not one.disturbance] or runs
    last = runs[-1]
    for test, n_tokens, depth, rates in (
        ("pp", last.n_prompt, 0, [one.prompt_tok_s for one in counted]),
        ("tg", last.n_generated, last.depth, [one.tok_s for one in counted]),
    ):
        known = tuple(rate for rate in rates if rate is not None)
        if not n_tokens or not known or not statistics.median(known):
            continue
        notes = list(dict.fromkeys(text for one in runs for text in one.notes))
        if spread := spread_note(known):
            notes.append(spread)
        yield BenchRow(
            last.setting.cpu_moe,
            test,
            n_tokens,
            depth,
            known,
            last.vram_bytes,
            last.ram_bytes,
            tuple(notes),
        )
