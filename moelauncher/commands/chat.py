"""``moelauncher chat``: one question, answered in the terminal."""

from __future__ import annotations

import argparse
from dataclasses import replace

from moelauncher.commands import arguments
from moelauncher.commands.model import runnable_model
from moelauncher.commands.session import Session
from moelauncher.commands.terminal import aside, note, out, out_json
from moelauncher.core.chats.reply_document import reply_document
from moelauncher.core.engine_protocol import (
    ChatMessage,
    Finished,
    GenerateRequest,
    GenerationStats,
    LoadReport,
    Sampling,
    TokenEvent,
)
from moelauncher.core.memory.plan_document import context_warning, placement_sentence
from moelauncher.core.translate import tr
from moelauncher.core.units import format_duration, format_rate


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``chat``."""
    arguments.add_model(parser)
    arguments.add_placement(parser)
    parser.add_argument("-p", "--prompt", required=True, help="what to ask")
    parser.add_argument("--system", metavar="S", help="what the model is told beforehand")
    parser.add_argument(
        "--max-tokens",
        type=arguments.whole(1, tr("number of tokens")),
        metavar="N",
        help="end the answer after so many tokens (when the context is full)",
    )
    parser.add_argument(
        "--seed",
        type=arguments.whole(0, tr("seed")),
        metavar="N",
        help="the same seed draws the same answer (random)",
    )
    parser.add_argument(
        "--temp",
        type=arguments.temperature,
        default=Sampling().temperature,
        metavar="T",
        help="0 always takes the likeliest token (0.8)",
    )
    arguments.add_context(parser)
    arguments.add_threads(parser)
    arguments.add_anyway(parser)
    arguments.add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Load, ask, stream the answer to stdout and the numbers to stderr."""
    facts = runnable_model(options)
    session = Session(options, facts)
    try:
        warning = context_warning(facts, options.ctx)
        if warning:
            note(warning)
        plan = session.plan(options.cpu_moe)
        report = session.load(plan)
        _tell(report)
        text, reasoning, stats = _ask(session, options)
        if options.json:
            out_json(reply_document(text, reasoning, stats, report, session.forecast(plan)))
        else:
            note(placement_sentence(facts, report.placement))
            for reason in session.why_no_gpu():
                note(reason)
            _print_numbers(stats, report)
    finally:
        session.close()
    return 0


def _request(options: argparse.Namespace) -> GenerateRequest:
    messages = [ChatMessage("user", options.prompt)]
    if options.system:
        messages.insert(0, ChatMessage("system", options.system))
    return GenerateRequest(
        messages=tuple(messages),
        sampling=replace(Sampling(), temperature=options.temp, seed=options.seed),
        max_tokens=options.max_tokens,
    )


def _ask(session: Session, options: argparse.Namespace) -> tuple[str, str, GenerationStats]:
    texts: list[str] = []
    thoughts: list[str] = []
    for event in session.generate(_request(options)):
        if isinstance(event, TokenEvent):
            if not options.json:
                _stream(event, begins=bool(thoughts) and not texts)
            if event.text:
                texts.append(event.text)
            if event.reasoning:
                thoughts.append(event.reasoning)
        elif isinstance(event, Finished):
            if not options.json:
                out()
            return "".join(texts), "".join(thoughts), event.stats
    raise AssertionError("a reply ends with Finished")


def _stream(event: TokenEvent, *, begins: bool) -> None:
    """The answer to stdout, what the model thinks on the way to stderr."""
    if event.reasoning:
        aside(event.reasoning)
    if event.text:
        if begins:
            aside("\n\n")
        out(event.text, end="")


def _tell(report: LoadReport) -> None:
    """What the load did that the user may not expect."""
    if report.template_source == "chatml":
        note(tr("The model has no chat template of its own; ChatML is used."))
    for mismatch in report.mismatches:
        note(mismatch)


def _print_numbers(stats: GenerationStats, report: LoadReport) -> None:
    note(
        tr(
            "{rate}, {tokens} tokens; prompt {prompt} tokens, {prompt_rate}; "
            "first token after {ttft}; loaded in {load}"
        ).format(
            rate=format_rate(stats.tok_s),
            tokens=stats.completion_tokens,
            prompt=stats.prompt_tokens,
            prompt_rate=format_rate(stats.prompt_tok_s),
            ttft=format_duration(stats.ttft_s),
            load=format_duration(report.load_s),
        )
    )
