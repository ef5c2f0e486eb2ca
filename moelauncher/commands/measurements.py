"""``moelauncher measurements``: what was measured of a model, to read, export and import."""

from __future__ import annotations

import argparse
from pathlib import Path

from moelauncher.commands import arguments
from moelauncher.commands.kept_measurements import kept_store
from moelauncher.commands.model import chosen_model
from moelauncher.commands.terminal import note, out, out_json, table
from moelauncher.core.errors import LauncherError
from moelauncher.core.files.model_facts import ModelFacts
from moelauncher.core.speed.llama_bench_json import read_llama_bench
from moelauncher.core.speed.measured_rows import (
    MeasuredRow,
    measured_rows,
    middle_and_spread,
    new_ones,
    without_chats,
)
from moelauncher.core.speed.measurement import Measurement, model_fingerprint
from moelauncher.core.speed.measurement_export import (
    decode_test,
    documents,
    placement_text,
    prompt_test,
    to_csv,
    to_markdown,
)
from moelauncher.core.speed.measurement_store import MeasurementStore
from moelauncher.core.translate import tr
from moelauncher.core.units import format_bytes


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``measurements``."""
    arguments.add_model(parser)
    parser.add_argument(
        "--import",
        dest="imported",
        type=arguments.named_path,
        action="append",
        default=[],
        metavar="FILE.json",
        help="first take in what llama-bench -o json printed of this model",
    )
    parser.add_argument("--chats", action="store_true", help="also the speeds of replies in chats")
    arguments.add_form(parser)


def run(options: argparse.Namespace) -> int:
    """Import where asked, then print what is stored of the model."""
    facts = chosen_model(options)
    with kept_store(options) as store:
        if store is None:
            return 1
        for path in options.imported:
            _import(store, path, facts)
        found = store.of_model(model_fingerprint(facts))
    if not options.chats:
        found = without_chats(found)
    _print(found, facts, options)
    return 0


def _import(store: MeasurementStore, path: Path, facts: ModelFacts) -> None:
    if store.read_only:
        raise LauncherError(store.problem)
    fresh = new_ones(read_llama_bench(path, facts), store.of_model(model_fingerprint(facts)))
    store.add_all(fresh)
    note(tr("{n} repeats were taken from {path}.").format(n=len(fresh), path=path))


def _print(found: list[Measurement], facts: ModelFacts, options: argparse.Namespace) -> None:
    if options.json:
        for document in documents(found):
            out_json(document)
    elif options.csv:
        out(to_csv(found), end="")
    elif options.md:
        out(to_markdown(found, facts), end="")
    elif not found:
        out(tr("Nothing is measured of {name} yet.").format(name=facts.name))
    else:
        _print_tables(found)


def _print_tables(found: list[Measurement]) -> None:
    head = (tr("placement"), tr("prompt"), "", tr("decode"), "", "VRAM", tr("remarks"))
    groups: dict[object, list[MeasuredRow]] = {}
    for row in measured_rows(found):
        groups.setdefault(row.first.machine, []).append(row)
    for rows in groups.values():
        machine = rows[0].first.machine
        out(", ".join(filter(None, (machine.name, machine.driver, machine.build))))
        out(table(head, [_cells(row) for row in rows], frozenset({2, 4, 5})))


def _cells(row: MeasuredRow) -> tuple[str, ...]:
    vram = "" if row.vram_bytes is None else format_bytes(row.vram_bytes)
    return (
        placement_text(row.first),
        prompt_test(row),
        _rate(row.prompt_rates),
        decode_test(row),
        _rate(row.rates),
        vram,
        " ".join(row.remarks),
    )


def _rate(rates: tuple[float, ...]) -> str:
    found = middle_and_spread(rates)
    return "" if found is None else f"{found[0]:.2f} ± {found[1]:.2f}"
