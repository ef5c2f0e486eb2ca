"""``moelauncher compare``: do two settings give the same answers, and if not, how far apart?"""

from __future__ import annotations

import argparse
from dataclasses import asdict, replace
from typing import Any

from moelauncher.commands import arguments
from moelauncher.commands.model import runnable_model
from moelauncher.commands.session import Session
from moelauncher.commands.terminal import ProgressLine, out, out_json, table
from moelauncher.core.cpu_cores import MAX_THREADS
from moelauncher.core.engine_protocol import LoadRequest
from moelauncher.core.errors import WrongArguments
from moelauncher.core.memory.placement import Placement
from moelauncher.core.program.settings import KV_TYPES
from moelauncher.core.speed.same_answers import (
    N_TOKENS,
    PROMPTS,
    AnswerSetting,
    AnswersJob,
    AnswersProgress,
    Comparison,
    PromptAnswer,
    SameAnswers,
    context_for,
    format_kl,
    joined,
    noise_setting,
    only_order_differs,
    scale_text,
    verdict,
)
from moelauncher.core.translate import tr
from moelauncher.engine.answers import run_answers

_FLASH = {"auto": None, "on": True, "off": False}
#: So many characters before and behind the place where two texts part.
_AROUND = 40


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``compare``."""
    arguments.add_model(parser)
    arguments.add_placement(parser)
    arguments.add_context(parser)
    arguments.add_threads(parser)
    parser.add_argument(
        "--flash-attention", choices=_FLASH, default="auto", help="of the first setting (auto)"
    )
    other = parser.add_argument_group("the other setting; what is not named is as in the first")
    other.add_argument("--with-cpu-moe", type=arguments.cpu_moe, metavar="N|all|auto")
    other.add_argument("--with-kv", choices=KV_TYPES)
    other.add_argument("--with-flash-attention", choices=_FLASH)
    other.add_argument(
        "--with-threads", type=arguments.whole(1, tr("number of threads"), MAX_THREADS), metavar="N"
    )
    other.add_argument("--with-ubatch", type=arguments.whole(1, tr("batch size")), metavar="N")
    parser.add_argument(
        "--tokens",
        type=arguments.whole(1, tr("number of tokens"), 4096),
        default=N_TOKENS,
        metavar="N",
        help=f"tokens of each answer ({N_TOKENS})",
    )
    arguments.add_anyway(parser)
    arguments.add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Compare and print the verdict."""
    named = (
        options.with_cpu_moe,
        options.with_kv,
        options.with_flash_attention,
        options.with_threads,
        options.with_ubatch,
    )
    if all(one is None for one in named):
        raise WrongArguments(
            tr("There is nothing to compare with."),
            tr("Name what is to differ, for example --with-kv q8_0."),
        )
    session = Session(options, runnable_model(options))
    progress = ProgressLine(tr("Comparing"), quiet=options.json)
    try:
        job, order_only = _job(session, options)
        found: SameAnswers | None = None
        for event in run_answers(job):
            if isinstance(event, AnswersProgress):
                progress.show(event.fraction)
            else:
                found = event
    finally:
        progress.end()
        session.close()
    assert found is not None  # a check that ends has an answer
    if options.json:
        out_json(_document(found, order_only))
    else:
        _print(found, order_only)
    return 0


def _job(session: Session, options: argparse.Namespace) -> tuple[AnswersJob, bool]:
    first = session.plan(options.cpu_moe)
    request = session.load_request(first)
    request = replace(request, context=context_for(request.context))
    reference = AnswerSetting(request, _FLASH[options.flash_attention])
    flash = options.with_flash_attention
    context = replace(
        request.context,
        kv_type=options.with_kv or request.context.kv_type,
        n_threads=options.with_threads or request.context.n_threads,
        n_ubatch=options.with_ubatch or request.context.n_ubatch,
    )
    changed: LoadRequest = replace(request, context=context)
    if options.with_cpu_moe is not None:
        plan = session.plan(options.with_cpu_moe)
        changed = replace(session.load_request(plan), context=context)
    change = AnswerSetting(changed, reference.flash_attention if flash is None else _FLASH[flash])
    noise = noise_setting(reference, change, _other_place(session, first.placement))
    job = AnswersJob(reference, change, noise, PROMPTS, options.tokens)
    return job, only_order_differs(reference, change)


def _other_place(session: Session, placement: Placement) -> Placement:
    """Another stop of the slider, which takes no more of the GPU: one more layer, else all."""
    stop = placement.cpu_moe + 1 if placement.cpu_moe < placement.of else 0
    return session.plan(stop).placement


def _document(found: SameAnswers, order_only: bool) -> dict[str, Any]:
    told = verdict(found, order_only=order_only)
    return {
        "level": told.level,
        "text": told.text,
        "noise": _numbers(found.noise),
        "change": _numbers(found.change),
        "answers": [
            asdict(answer) | {"same": answer.same, "mean": answer.mean}
            for answer in found.change.answers
        ],
    }


def _numbers(comparison: Comparison | None) -> dict[str, Any] | None:
    if comparison is None:
        return None
    return {
        "n_same": comparison.n_same,
        "of": len(comparison.answers),
        "mean_kl": comparison.mean,
        "max_kl": comparison.worst,
    }


def _print(found: SameAnswers, order_only: bool) -> None:
    out(verdict(found, order_only=order_only).text)
    out()
    rows = []
    noise = found.noise.answers if found.noise else (None,) * len(found.change.answers)
    for answer, quiet in zip(found.change.answers, noise, strict=True):
        where = tr("same") if answer.same else tr("token {n}").format(n=answer.parted_at)
        kl = "" if quiet is None else format_kl(quiet.mean)
        rows.append((answer.prompt, where, format_kl(answer.mean), kl))
    head = (tr("prompt"), tr("parts at"), tr("mean KL"), tr("noise"))
    out(table(head, rows, frozenset({2, 3})))
    out(scale_text())
    for answer in found.change.answers:
        if not answer.same:
            out()
            _print_parting(answer)


def _print_parting(answer: PromptAnswer) -> None:
    at = answer.parted_at or 0
    before = joined(answer.tokens[:at])[-_AROUND:]
    out(answer.prompt)
    for pieces in (answer.tokens, answer.other):
        behind = joined(pieces[at:])[:_AROUND]
        out("  …" + f"{before}|{behind}".replace("\n", "⏎"))
