"""Reads what ``llama-bench -o json`` (or ``jsonl``) printed, as measurements of one model.

In: the file, the facts of the model that it is said to be of. Out: one :class:`Measurement` a
repeat, ``source`` "llama-bench". A file that was cut short gives what is whole in it. Pure but
for reading the file; a pool job.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

from moelauncher.core.errors import LauncherError
from moelauncher.core.files.model_facts import ModelFacts
from moelauncher.core.memory.placement import expert_stops
from moelauncher.core.speed.measurement import (
    EXPERTS,
    LAYERS,
    LLAMA_BENCH,
    Machine,
    Measurement,
    Setting,
    model_fingerprint,
)
from moelauncher.core.text_cleaning import display_name
from moelauncher.core.translate import tr

#: A sweep of days is smaller; a larger file is something else.
_LONGEST_FILE_BYTES = 64 << 20
#: Parameters may be counted with or without a block that is not loaded.
_SAME_SIZE = 0.06
_BLOCKS = re.compile(r"blk\\\.\(?(?P<blocks>\d+(?:\|\d+)*)\)?(?=\\\.ffn)")


def read_llama_bench(path: Path, facts: ModelFacts) -> list[Measurement]:
    """The repeats in the file. Raises LauncherError: no such output, another model's, empty."""
    try:
        if path.stat().st_size > _LONGEST_FILE_BYTES:
            raise _no_such_output(path)
        text = path.read_text(encoding="utf-8-sig", errors="replace")
    except OSError as error:
        raise LauncherError(
            tr("{path} cannot be read: {reason}.").format(
                path=path, reason=error.strerror or str(error)
            )
        ) from error
    rows = [row for row in _objects(text) if _is_row(row)]
    if not rows:
        raise _no_such_output(path)
    _refuse_another_model(rows, facts)
    found = [one for row in rows for one in _measurements(row, facts)]
    if not found:
        raise LauncherError(
            tr("{name} holds no speeds of a prompt or of decoding alone.").format(name=path.name),
            tr("Run llama-bench with -p or -n, not only with -pg."),
        )
    return found


def _no_such_output(path: Path) -> LauncherError:
    return LauncherError(
        tr("{name} is no output of llama-bench.").format(name=path.name),
        tr("Write one with: llama-bench -m MODEL -o json > results.json"),
    )


def _objects(text: str) -> Iterator[dict[str, Any]]:
    """The JSON objects in an array, in lines, or in what is left of either."""
    decoder = json.JSONDecoder()
    place = text.find("{")
    while place >= 0:
        try:
            value, end = decoder.raw_decode(text, place)
        except (ValueError, RecursionError):
            return
        if isinstance(value, dict):
            yield value
        place = text.find("{", end)


def _is_row(row: Mapping[str, Any]) -> bool:
    numbers = (row.get("n_prompt"), row.get("n_gen"), row.get("model_n_params"))
    return all(type(number) is int and 0 <= number < 1 << 62 for number in numbers) and isinstance(
        row.get("samples_ts", row.get("avg_ts")), list | float | int
    )


def _refuse_another_model(rows: list[dict[str, Any]], facts: ModelFacts) -> None:
    for row in rows:
        named = _file_name(str(row.get("model_filename", "")))
        n_params = row["model_n_params"]
        near = abs(n_params - facts.n_params) <= _SAME_SIZE * facts.n_params
        if not near and named != facts.path.name:
            raise LauncherError(
                tr("These are numbers of another model: {name}.").format(
                    name=display_name(named or str(row.get("model_type", "?")))
                ),
                tr("Select that model first, then import."),
            )


def _file_name(text: str) -> str:
    windows = PureWindowsPath(text).name
    return PurePosixPath(windows).name


def _measurements(row: Mapping[str, Any], facts: ModelFacts) -> Iterator[Measurement]:
    n_prompt, n_generated = row["n_prompt"], row["n_gen"]
    if bool(n_prompt) == bool(n_generated):
        return  # both in one number: comparable with nothing here
    n_depth = _whole(row.get("n_depth")) or 0
    samples = row.get("samples_ts")
    rates = samples if isinstance(samples, list) and samples else [row.get("avg_ts")]
    setting, note = _setting(row, facts)
    for rate in rates:
        if not isinstance(rate, int | float) or isinstance(rate, bool) or not 0 < rate < 1e9:
            continue
        yield Measurement(
            model=model_fingerprint(facts),
            model_name=facts.name,
            setting=setting,
            machine=_machine(row),
            time_s=_time_s(row.get("test_time")),
            n_prompt=n_prompt,
            n_generated=n_generated,
            depth=n_depth,
            prompt_tok_s=float(rate) if n_prompt else None,
            tok_s=float(rate) if n_generated else None,
            notes=(note,) if note else (),
            source=LLAMA_BENCH,
            threads=_whole(row.get("n_threads")),
            flash_attention=_flash(row.get("flash_attn")),
        )


def _setting(row: Mapping[str, Any], facts: ModelFacts) -> tuple[Setting, str]:
    everything = facts.n_layer_all + 1
    n_layers = _whole(row.get("n_gpu_layers"))
    if n_layers is None or n_layers < 0:
        n_layers = everything
    n_layers = min(n_layers, everything)
    gpus = _words(row.get("gpu_info"))
    if not gpus:
        n_layers = 0
    stops = expert_stops(facts)
    moved, other = _moved(row, facts)
    cpu_moe = len(moved)
    which = "last" if moved and moved != stops[:cpu_moe] else "first"
    note = ""
    if other or moved not in (stops[:cpu_moe], stops[len(stops) - cpu_moe :]):
        note = tr("llama-bench placed tensors in a way that the slider has no stop for.")
    keys = _words(row.get("type_k")) or "f16"
    values = _words(row.get("type_v")) or keys
    setting = Setting(
        cpu_moe=cpu_moe,
        which=which,
        n_gpu_layers=n_layers,
        gpus=gpus,
        n_ctx=row["n_prompt"] + row["n_gen"] + (_whole(row.get("n_depth")) or 0),
        kv_type=keys if keys == values else f"{keys}/{values}",
        n_ubatch=_whole(row.get("n_ubatch")) or 512,
        n_threads=_whole(row.get("n_threads")),
        use_mmap=_mapped(row),
        tensor_split=_split(row.get("tensor_split")),
        division=LAYERS if stops and gpus and n_layers < everything else EXPERTS,
    )
    return setting, note


def _moved(row: Mapping[str, Any], facts: ModelFacts) -> tuple[tuple[int, ...], bool]:
    """Expert layers whose experts stayed in RAM; whether other tensors were moved too."""
    blocks = set(range(min(_whole(row.get("n_cpu_moe")) or 0, facts.n_layer_all)))
    other = False
    overrides = str(row.get("tensor_buft_overrides", "none"))
    for part in overrides[: 1 << 16].split(";"):
        pattern, equals, buffer = part.rpartition("=")
        if not equals:
            continue
        match = _BLOCKS.match(pattern)
        if match is None or buffer != "CPU":
            other = True
            continue
        blocks |= {int(block) for block in match["blocks"].split("|") if len(block) < 7}
    return tuple(block for block in expert_stops(facts) if block in blocks), other


def _machine(row: Mapping[str, Any]) -> Machine:
    names = [_words(row.get("cpu_info")) or "CPU", _words(row.get("gpu_info"))]
    build = " ".join(
        filter(None, (str(_whole(row.get("build_number")) or ""), _words(row.get("build_commit"))))
    )
    return Machine(
        name=", ".join(filter(None, names)),
        build=" ".join(filter(None, ("llama.cpp", build, _words(row.get("backends"))))),
        driver="",
    )


def _mapped(row: Mapping[str, Any]) -> bool:
    mode = row.get("load_mode")
    if isinstance(mode, str):
        return "mmap" in mode or mode == "auto"
    return bool(row.get("use_mmap", True))


def _flash(value: object) -> bool | None:
    if isinstance(value, bool):
        return value
    return {0: False, 1: True}.get(value) if isinstance(value, int) else None


def _split(value: object) -> tuple[float, ...]:
    try:
        parts = tuple(float(part) for part in str(value).split("/"))
    except ValueError:
        return ()
    return parts if len(parts) > 1 and all(0 <= part < 1e30 for part in parts) else ()


def _time_s(value: object) -> float:
    try:
        return datetime.fromisoformat(str(value)).timestamp()
    except (ValueError, OverflowError, OSError):
        return 0.0


def _whole(value: object) -> int | None:
    return value if type(value) is int and -(1 << 31) <= value < 1 << 62 else None


def _words(value: object) -> str:
    return display_name(value.strip()) if isinstance(value, str) else ""
