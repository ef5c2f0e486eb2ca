"""``moelauncher plan``: where every byte of a model would go, on this machine or another."""

from __future__ import annotations

import argparse

from moelauncher.commands import arguments
from moelauncher.commands.expected_speed import speed_basis
from moelauncher.commands.helper_process import make_child
from moelauncher.commands.machine import context_of, machine_of, plan_for
from moelauncher.commands.model import chosen_model
from moelauncher.commands.terminal import note, out, out_json
from moelauncher.core.library.catalog import entry_of
from moelauncher.core.library.catalog_entry import entry_as_json
from moelauncher.core.memory.auto_placement import forecast_on, helpful_text
from moelauncher.core.memory.plan_document import context_warning, plan_document, plan_text
from moelauncher.core.speed.speed_outlook import expected_speed


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``plan``."""
    arguments.add_model(parser)
    arguments.add_placement(parser)
    arguments.add_context(parser)
    parser.add_argument(
        "--gpu",
        type=arguments.gpu,
        action="append",
        metavar="NAME=SIZE",
        help="plan for a GPU with SIZE free instead of this machine's (repeatable)",
    )
    parser.add_argument(
        "--tensor-split",
        type=arguments.split,
        metavar="A,B,..",
        help="how several GPUs share the layers (computed from bytes)",
    )
    parser.add_argument(
        "--ram", type=arguments.size, metavar="SIZE", help="free main memory (this machine's)"
    )
    arguments.add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Print the plan; one that does not fit is an answer, not an error."""
    facts = chosen_model(options)
    context = context_of(options)
    child = make_child(options)
    try:
        machine = machine_of(options, child, facts)
        plan = plan_for(
            facts,
            machine,
            context,
            options.cpu_moe,
            child,
            which=options.which,
            tensor_split=options.tensor_split,
        )
        basis = speed_basis(options, facts, machine, context, child)
    finally:
        child.close()
    result = forecast_on(facts, plan.placement, context, machine, plan.dry_run)
    text = helpful_text(
        facts,
        plan.placement,
        context,
        machine,
        result,
        explicit_split=options.tensor_split is not None,
    )
    speed = expected_speed(facts, plan.placement, result, context.n_ctx, basis)
    if options.json:
        for remark in (context_warning(facts, context.n_ctx), result.note):
            if remark:
                note(remark)
        model = entry_as_json(entry_of(facts.path))
        document = plan_document(
            model, facts, plan.placement, result, context, text=text, speed=speed
        )
        out_json(document)
    else:
        out(plan_text(facts, plan.placement, result, context, text=text, speed=speed))
    return 0
