"""``moelauncher bench``: tokens a second of a model at several placements."""

from __future__ import annotations

import argparse
import csv
import io
from collections.abc import Iterator

from moelauncher.commands import arguments
from moelauncher.commands.kept_measurements import KeptRepeats, kept_store, split_placement
from moelauncher.commands.machine import Plan
from moelauncher.commands.model import runnable_model
from moelauncher.commands.session import Session
from moelauncher.commands.terminal import ProgressLine, note, out, out_json
from moelauncher.core.errors import WrongArguments
from moelauncher.core.memory.placement import Placement
from moelauncher.core.speed.bench_row import BenchRow
from moelauncher.core.speed.measurement_export import to_markdown
from moelauncher.core.speed.measurement_store import MeasurementStore
from moelauncher.core.translate import tr
from moelauncher.core.units import format_bytes
from moelauncher.engine.bench import BenchCase, run_bench

#: Of the table for people: "experts of layers: 94".
_PLACE_WIDTH = 22
_COLUMNS = (
    "cpu_moe",
    "test",
    "n_tokens",
    "depth",
    "median",
    "mad",
    "vram_bytes",
    "ram_bytes",
    "repeats",
    "notes",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``bench``."""
    arguments.add_model(parser)
    parser.add_argument(
        "--cpu-moe",
        type=arguments.cpu_moe_list,
        default=(arguments.AUTO,),
        metavar="0,8,all",
        help="expert layers whose experts stay in RAM, one measurement each (auto)",
    )
    arguments.add_which(parser)
    arguments.add_context(parser)
    arguments.add_lengths(parser, fewest_generated=0)
    arguments.add_repeat(
        parser, "how often each is measured, after one run that does not count (3)"
    )
    arguments.add_layer_split(parser)
    arguments.add_threads(parser)
    arguments.add_anyway(parser)
    arguments.add_form(parser)


def run(options: argparse.Namespace) -> int:
    """Measure and print each row as soon as it is known."""
    if not options.pp and not options.tg:
        raise WrongArguments(tr("There is nothing to measure: --pp and --tg are both 0."))
    session = Session(options, runnable_model(options))
    progress = ProgressLine(tr("Measuring"), quiet=options.json)
    try:
        with kept_store(options) as store:
            _measure(options, session, store, progress)
    finally:
        progress.end()
        session.close()
    return 0


def _measure(
    options: argparse.Namespace,
    session: Session,
    store: MeasurementStore | None,
    progress: ProgressLine,
) -> None:
    split = split_placement(session) if options.layer_split else None
    observer = KeptRepeats(session, store, n_prompt=options.pp, n_generate=options.tg, split=split)
    try:
        rows = run_bench(
            session.engine,
            _cases(session, options.cpu_moe, split),
            observer=observer,
            n_prompt=options.pp,
            n_generate=options.tg,
            n_repeats=options.repeat,
            step=lambda done, total: progress.show(done / total),
        )
        for index, row in enumerate(rows):
            progress.end()
            if not options.md:
                _print(row, options, first=index == 0)
    finally:
        observer.close()
        # Also what there is of a run that was ended.
        if options.md and observer.measured:
            progress.end()
            out(to_markdown(observer.measured, session.facts), end="")


def _cases(
    session: Session, wishes: tuple[int | str, ...], split: Placement | None
) -> Iterator[BenchCase]:
    """One case a placement; two wishes that mean the same one are measured once."""
    seen: dict[object, int | str] = {}
    for wish in wishes:
        plan = session.plan(wish)
        placement = plan.placement
        # Without a GPU every stop is the same.
        place = (placement.layer_devices, placement.patterns)
        if place in seen:
            note(
                tr("{wish} is the same placement as {other}, so it is measured once.").format(
                    wish=wish, other=seen[place]
                )
            )
            continue
        seen[place] = wish
        yield _case(session, plan)
    if split is not None:
        yield _case(session, Plan(split, None))


def _case(session: Session, plan: Plan) -> BenchCase:
    request = session.load_request(plan)
    return BenchCase(request, session.forecast(plan).ram.weights_bytes)


def _print(row: BenchRow, options: argparse.Namespace, *, first: bool) -> None:
    if options.json:
        out_json(row.to_json())
    elif options.csv:
        if first:
            out(_csv_line(_COLUMNS))
        out(_csv_line(_cells(row)))
    else:
        if first:
            place, test, rate = tr("placed in RAM"), tr("test"), tr("tok/s")
            out(f"{place:<{_PLACE_WIDTH}}  {test:<10} {rate:>18}  {'VRAM':>10} {'RAM':>10}")
        out(table_line(row))


def _placed_in_ram(row: BenchRow) -> str:
    """A layer split, or a machine without a GPU, has whole layers there, not only their experts."""
    if row.ram_layers:
        return tr("whole layers: {n}").format(n=row.ram_layers)
    return tr("experts of layers: {n}").format(n=row.cpu_moe)


def table_line(row: BenchRow) -> str:
    """``row`` as a line of the table for people."""
    rate = f"{row.median:.2f} ± {row.mad:.2f}"
    line = (
        f"{_placed_in_ram(row):<{_PLACE_WIDTH}}  {row.test + str(row.n_tokens):<10} {rate:>18}"
        f"  {format_bytes(row.vram_bytes):>10} {format_bytes(row.ram_bytes):>10}"
    )
    return "  ".join([line, *row.notes])


def _cells(row: BenchRow) -> tuple[str, ...]:
    values = row.to_json()
    values["repeats"] = " ".join(f"{rate:.3f}" for rate in row.repeats)
    values["notes"] = " ".join(row.notes)
    values["median"] = f"{row.median:.3f}"
    values["mad"] = f"{row.mad:.3f}"
    return tuple("" if values[name] is None else str(values[name]) for name in _COLUMNS)


def _csv_line(cells: tuple[str, ...]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="").writerow(cells)
    return text.getvalue()
