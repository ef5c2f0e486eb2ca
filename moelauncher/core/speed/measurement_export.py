"""Measurements as text to keep or to share: CSV, JSON, and Markdown for a forum.

In: :class:`Measurement` values, and the model's facts where its file is at hand (they make the
llama-bench commands). Out: text. CSV and JSON hold every repeat; Markdown one row a setting.
No path of the user's is in any of them. Pure; any thread.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from moelauncher import __version__
from moelauncher.core.files.model_facts import ModelFacts
from moelauncher.core.memory.llama_commands import measured_commands
from moelauncher.core.speed.measured_rows import MeasuredRow, measured_rows, middle_and_spread
from moelauncher.core.speed.measurement import CHAT, LAYERS, LLAMA_BENCH, Machine, Measurement
from moelauncher.core.translate import tr
from moelauncher.core.units import format_bytes

FORMAT = "moelauncher-measurements"
FORMAT_VERSION = 1

_COLUMNS = (
    "time",
    "source",
    "model_name",
    "model",
    "machine",
    "driver",
    "build",
    "division",
    "cpu_moe",
    "which",
    "n_gpu_layers",
    "gpus",
    "tensor_split",
    "n_ctx",
    "kv_type",
    "n_ubatch",
    "threads",
    "use_mmap",
    "flash_attention",
    "n_prompt",
    "n_generated",
    "depth",
    "prompt_tok_s",
    "tok_s",
    "vram_bytes",
    "ram_bytes",
    "disturbance",
    "notes",
)


def to_csv(measurements: Iterable[Measurement]) -> str:
    """Every repeat, a line each; empty cells are unknown."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for one in measurements:
        values = _flat(one)
        writer.writerow(_cell(values[name]) for name in _COLUMNS)
    return text.getvalue()


def to_json(measurements: Iterable[Measurement]) -> str:
    """Every repeat with all that is known, as one document."""
    document = {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "measurements": documents(measurements),
    }
    return json.dumps(document, ensure_ascii=False, allow_nan=False, indent=1) + "\n"


def documents(measurements: Iterable[Measurement]) -> list[dict[str, Any]]:
    """What :func:`to_json` holds of each repeat."""
    return [asdict(one) | {"time": _time(one.time_s)} for one in measurements]


def to_markdown(measurements: Sequence[Measurement], facts: ModelFacts | None = None) -> str:
    """Tables to paste, one for each machine and build, and the commands that measure the same."""
    parts = []
    groups: dict[tuple[str, Machine], list[MeasuredRow]] = {}
    for row in measured_rows(measurements):
        groups.setdefault((row.first.model, row.first.machine), []).append(row)
    for (_, machine), rows in groups.items():
        parts.append(_heading(rows[0].first, machine, facts))
        parts.append(_table(rows))
        commands = [] if facts is None else _commands(rows, facts)
        if commands:
            title = tr("The same with llama.cpp's own program:")
            parts.append("\n".join([title, "", "```", *commands, "```"]))
    if not parts:
        return tr("Nothing is measured yet.") + "\n"
    made = tr("Measured with MoE Launcher {version}: median ± median absolute deviation.")
    parts.append(made.format(version=__version__))
    return "\n\n".join(parts) + "\n"


# Inside


def _heading(first: Measurement, machine: Machine, facts: ModelFacts | None) -> str:
    model = first.model_name
    if facts is not None:
        model += f", {facts.quant}, {format_bytes(facts.size_bytes)}"
    lines = [(tr("Model"), model), (tr("Machine"), machine.name)]
    lines += [(tr("Driver"), machine.driver)] if machine.driver else []
    lines += [(tr("Build"), machine.build)] if machine.build else []
    return "\n".join(f"- **{_escaped(name)}:** {_escaped(text)}" for name, text in lines)


def _table(rows: Sequence[MeasuredRow]) -> str:
    head = [
        tr("placement"),
        tr("context"),
        "KV",
        "ubatch",
        tr("threads"),
        tr("prompt tok/s"),
        tr("decode tok/s"),
        tr("repeats"),
        "VRAM",
        tr("remarks"),
    ]
    lines = ["| " + " | ".join(head) + " |", "| --- | ---: | --- |" + " ---: |" * 6 + " --- |"]
    for row in rows:
        first = row.first
        setting = first.setting
        threads = first.threads or setting.n_threads
        cells = [
            placement_text(first),
            "" if first.source == LLAMA_BENCH else str(setting.n_ctx),
            setting.kv_type,
            str(setting.n_ubatch),
            "" if threads is None else str(threads),
            _rates(row.prompt_rates, prompt_test(row)),
            _rates(row.rates, decode_test(row)),
            str(max(len(row.rates), len(row.prompt_rates))),
            "" if row.vram_bytes is None else format_bytes(row.vram_bytes),
            " ".join(row.remarks),
        ]
        lines.append("| " + " | ".join(_escaped(cell) for cell in cells) + " |")
    return "\n".join(lines)


def placement_text(measured: Measurement) -> str:
    """ "24 expert layers on the CPU", "20 layers on the GPU" and where the number is from."""
    setting = measured.setting
    if not setting.gpus:
        text = tr("all on the CPU")
    elif setting.division == LAYERS:
        text = tr("layer split: {n} layers on the GPU").format(n=setting.n_gpu_layers)
    elif not setting.cpu_moe:
        text = tr("-ngl {n}, no experts on the CPU").format(n=setting.n_gpu_layers)
    else:
        text = tr("experts of {n} layers on the CPU").format(n=setting.cpu_moe)
        text += tr(" (the last)") if setting.which == "last" else ""
    if measured.source == LLAMA_BENCH:
        text += ", llama-bench"
    elif measured.source == CHAT:
        text += ", " + tr("chat")
    return text


def prompt_test(row: MeasuredRow) -> str:
    """llama-bench's name for what was read: "pp512"."""
    return f"pp{row.read[-1].n_prompt}" if row.read else ""


def decode_test(row: MeasuredRow) -> str:
    """llama-bench's name for what was written, and behind how much: "tg128 @ d512"."""
    if not row.decoded:
        return ""
    last = row.decoded[-1]
    return f"tg{last.n_generated}" + (f" @ d{last.depth}" if last.depth else "")


def _rates(rates: Sequence[float], test: str) -> str:
    found = middle_and_spread(rates)
    return "" if found is None else f"{found[0]:.2f} ± {found[1]:.2f} ({test})"


def _commands(rows: Sequence[MeasuredRow], facts: ModelFacts) -> list[str]:
    commands: list[str] = []
    for row in rows:
        if row.first.source != CHAT:
            # Prompt and decode may be in repeats of their own.
            for one in (*row.read[:1], *row.decoded[:1]):
                n_repeats = max(len(row.read), len(row.decoded))
                commands += measured_commands(facts, one, n_repeats)
    return list(dict.fromkeys(commands))


def _flat(one: Measurement) -> dict[str, Any]:
    values = asdict(one) | asdict(one.setting)
    values |= {
        "time": _time(one.time_s),
        "machine": one.machine.name,
        "driver": one.machine.driver,
        "build": one.machine.build,
        "tensor_split": "/".join(f"{part:.9g}" for part in one.setting.tensor_split),
        "threads": one.threads or one.setting.n_threads,
        "notes": " ".join(one.notes),
    }
    return values


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "1" if value else "0"
    text = f"{value:.4f}" if isinstance(value, float) else str(value)
    # A name from a file must not be taken for a formula by a spreadsheet.
    return f"'{text}" if text[:1] in ("=", "+", "-", "@") and not _is_number(text) else text


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _time(time_s: float) -> str:
    try:
        return datetime.fromtimestamp(time_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (OverflowError, OSError, ValueError):
        return ""


def _escaped(text: str) -> str:
    """One line of Markdown in a cell."""
    for sign in ("\\", "|", "`", "*", "_", "<", "["):
        text = text.replace(sign, "\\" + sign)
    return " ".join(text.split())
