"""``moelauncher tune``: finds the fastest placement by measuring, and remembers it."""

from __future__ import annotations

import argparse
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from moelauncher.commands import arguments
from moelauncher.commands.expected_speed import hardware_basis
from moelauncher.commands.kept_measurements import kept_store, this_machine
from moelauncher.commands.model import runnable_model
from moelauncher.commands.session import Session
from moelauncher.commands.terminal import note
from moelauncher.commands.tune_printer import TunePrinter
from moelauncher.core.cpu_cores import logical_cores
from moelauncher.core.errors import Cancelled, LauncherError
from moelauncher.core.memory.launch_plan import LaunchChoices
from moelauncher.core.memory.layer_split import no_layer_split
from moelauncher.core.speed.lever_search import LeverSearch, TurnLengths
from moelauncher.core.speed.levers import LEVERS
from moelauncher.core.speed.measurement import model_fingerprint
from moelauncher.core.speed.measurement_store import MeasurementStore
from moelauncher.core.speed.speed_outlook import speed_outlook
from moelauncher.core.speed.split_search import SplitSearch, split_stop
from moelauncher.core.speed.tune_events import TuneJob
from moelauncher.core.speed.tune_plan import tune_plan
from moelauncher.core.translate import tr
from moelauncher.engine.dry_run import describe_devices
from moelauncher.engine.tune import run_tune
from moelauncher.meters.condition_watch import MachineWatch
from moelauncher.meters.meter_thread import default_sources


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
    arguments.add_repeat(parser, "how often the close candidates are measured (3)")
    parser.add_argument(
        "--budget",
        type=arguments.whole(1, tr("number of seconds")),
        default=600,
        metavar="SECONDS",
        help="time for all of it (600)",
    )
    parser.add_argument(
        "--levers",
        type=_levers,
        default=(),
        metavar=",".join(LEVERS),
        help="also try other values of these once the placement is decided (none)",
    )
    arguments.add_layer_split(parser)
    arguments.add_threads(parser)
    arguments.add_anyway(parser)
    arguments.add_json(parser, "one JSON document a line, what was decided last")


def _levers(text: str) -> tuple[str, ...]:
    wanted = [part.strip() for part in text.split(",") if part.strip()]
    if not wanted or any(part not in LEVERS for part in wanted):
        raise argparse.ArgumentTypeError(
            tr("{text}: name some of {levers}").format(text=text, levers=", ".join(LEVERS))
        )
    return tuple(lever for lever in LEVERS if lever in wanted)


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
    with kept_store(options) as store:
        session = Session(options, facts)
        try:
            return _tune(options, session, store)
        finally:
            session.close()


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
    machine = this_machine(session)
    job = TuneJob(
        model=model_fingerprint(session.facts),
        model_name=session.facts.name,
        machine=machine,
        n_prompt=options.pp,
        n_generate=options.tg,
        budget_s=float(options.budget),
    )
    watch = MachineWatch(default_sources(lambda: devices))
    hardware = hardware_basis(options.basedir, machine.name, session)
    expected = speed_outlook(plan, (), hardware).curve
    levers = LeverSearch(
        plan,
        plan.sweep(n_repeats=options.repeat, predicted=expected),
        options.levers,
        TurnLengths(options.pp, options.tg),
        logical_cores=logical_cores(),
        n_repeats=options.repeat,
    )
    split = split_stop(plan) if options.layer_split else None
    if options.layer_split and split is None:
        note(no_layer_split(session.facts, session.machine, session.context))
    search = SplitSearch(levers, split, n_repeats=options.repeat)
    printer = TunePrinter(search, store, as_json=options.json)
    try:
        with _stop_on_interrupt() as stopped:
            for event in run_tune(
                job,
                search,
                search.case,
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
