"""``moelauncher doctor``: what this machine and this installation are, and what to mend."""

from __future__ import annotations

import argparse

from moelauncher.commands.arguments import add_json
from moelauncher.commands.examination import examine
from moelauncher.commands.helper_process import make_child
from moelauncher.commands.terminal import out, out_json, table
from moelauncher.core.paths import app_paths
from moelauncher.core.program.doctor_report import MARKS, fact_rows, hide_home, report_document
from moelauncher.core.program.machine_check import check_machine
from moelauncher.core.program.settings import Settings
from moelauncher.core.translate import tr


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``doctor``."""
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Print facts and verdicts. A bad verdict is an answer: exit status 0."""
    paths = app_paths(options.basedir)
    child = make_child(options, try_again=True)
    try:
        facts = examine(child, paths, Settings.load(paths.settings_file))
    finally:
        child.close()
    verdicts = check_machine(facts)
    if options.json:
        out_json(report_document(facts, verdicts))
        return 0
    out("\n".join(f"{label:<20} {value}" for label, value in fact_rows(facts)))
    out()
    lines = [
        (MARKS[v.level], v.subject, hide_home(f"{v.text} {v.advice}").strip()) for v in verdicts
    ]
    out(table(("", tr("what"), tr("verdict")), lines, right=frozenset()))
    return 0
