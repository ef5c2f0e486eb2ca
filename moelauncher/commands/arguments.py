"""Arguments that several commands share, and how their values are read.

Out: argparse types; each raises ArgumentTypeError with one sentence (exit status 2).
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from moelauncher.core.cpu_cores import MAX_THREADS
from moelauncher.core.errors import LauncherError
from moelauncher.core.program.settings import KV_TYPES
from moelauncher.core.translate import tr
from moelauncher.core.units import parse_size, parse_tokens

T = TypeVar("T")

AUTO, ALL = "auto", "all"


@dataclass(frozen=True)
class GpuWish:
    """``--gpu NAME=SIZE``: a GPU that is not here."""

    name: str
    free_bytes: int


def _sentence(read: Callable[[str], T]) -> Callable[[str], T]:
    def parse(text: str) -> T:
        try:
            return read(text)
        except LauncherError as error:
            raise argparse.ArgumentTypeError(error.sentence) from error

    return parse


size = _sentence(parse_size)
#: A size that may be nothing ("leave 0 free").
size_or_zero = _sentence(lambda text: parse_size(text, smallest_bytes=0))


def whole(smallest: int, what: str, largest: int = 1 << 31) -> Callable[[str], int]:
    """A whole number from ``smallest`` to ``largest``; ``what`` names it in the sentence."""

    def parse(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            number = None
        if number is None or not smallest <= number <= largest:
            raise argparse.ArgumentTypeError(
                tr(
                    "“{text}” is no {what}: write a whole number from {smallest} to {largest}."
                ).format(text=text, what=what, smallest=smallest, largest=largest)
            )
        return number

    return parse


def tokens(text: str) -> int:
    """A context size: 4096, 32k."""
    number = parse_tokens(text)
    if number is None or number > 1 << 31:
        raise argparse.ArgumentTypeError(
            tr("“{text}” is no context size: write for example 4096 or 32k.").format(text=text)
        )
    return number


def cpu_moe(text: str) -> int | str:
    """A slider stop, "all" or "auto"."""
    if text in (AUTO, ALL):
        return text
    try:
        stop = int(text)
    except ValueError:
        stop = -1
    if stop < 0:
        raise argparse.ArgumentTypeError(
            tr("“{text}” is no number of expert layers: write 0, 1, 2, ..., all or auto.").format(
                text=text
            )
        )
    return stop


def cpu_moe_list(text: str) -> tuple[int | str, ...]:
    """Stops to measure: "0,8,all"."""
    return tuple(cpu_moe(part.strip()) for part in text.split(","))


def gpu(text: str) -> GpuWish:
    """NAME=SIZE."""
    name, equals, wish = text.rpartition("=")
    name = name.strip()
    if not equals or not name:
        raise argparse.ArgumentTypeError(
            tr("“{text}” is no GPU: write NAME=SIZE, for example RTX4070=12GiB.").format(text=text)
        )
    if name == "RAM":
        raise argparse.ArgumentTypeError(tr("“RAM” names main memory; use --ram for it."))
    return GpuWish(name, size(wish))


def split(text: str) -> tuple[float, ...]:
    """a,b,..: one number a GPU."""
    try:
        parts = tuple(float(part) for part in text.split(","))
    except ValueError:
        parts = ()
    if not parts or any(not math.isfinite(part) or part < 0 for part in parts) or not any(parts):
        raise argparse.ArgumentTypeError(
            tr("“{text}” is no split: write one number a GPU, for example 3,2.").format(text=text)
        )
    return parts


def temperature(text: str) -> float:
    """0 to 10."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 10:  # NaN fails too
        raise argparse.ArgumentTypeError(
            tr("“{text}” is no temperature: a number from 0 to 10 is expected.").format(text=text)
        )
    return value


def named_path(text: str) -> Path:
    """The argparse type of a file or folder. An empty text, as a script with an unset variable
    gives, would be the current folder.
    """
    if not text.strip():
        raise argparse.ArgumentTypeError(tr("a path is expected, and an empty text was given."))
    return Path(text)


def add_model(parser: argparse.ArgumentParser) -> None:
    """MODEL or --demo, one of them."""
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument(
        "model",
        metavar="MODEL",
        nargs="?",
        type=named_path,
        help="a GGUF file, any part of a split one",
    )
    which.add_argument(
        "--demo", action="store_true", help="the sample model, built at the first use"
    )


def add_context(parser: argparse.ArgumentParser) -> None:
    """--ctx, --kv, --ubatch."""
    parser.add_argument(
        "--ctx", type=tokens, default=4096, metavar="N", help="context size in tokens (4096)"
    )
    parser.add_argument("--kv", choices=KV_TYPES, default="f16", help="type of the KV cache (f16)")
    parser.add_argument(
        "--ubatch",
        type=whole(1, tr("batch size")),
        default=512,
        metavar="N",
        help="prompt tokens computed at once (512)",
    )


def add_threads(parser: argparse.ArgumentParser) -> None:
    """--threads."""
    parser.add_argument(
        "--threads",
        type=whole(1, tr("number of threads"), MAX_THREADS),
        metavar="N",
        help="CPU threads (physical cores - 1)",
    )


def add_lengths(parser: argparse.ArgumentParser, *, fewest_generated: int) -> None:
    """--pp, --tg: how much is measured."""
    what = tr("number of tokens")
    parser.add_argument(
        "--pp", type=whole(0, what), default=512, metavar="N", help="prompt tokens (512)"
    )
    parser.add_argument(
        "--tg",
        type=whole(fewest_generated, what),
        default=128,
        metavar="N",
        help="tokens generated behind the prompt (128)",
    )


def add_repeat(parser: argparse.ArgumentParser, help_text: str) -> None:
    """--repeat."""
    parser.add_argument(
        "--repeat", type=whole(1, tr("number of repeats")), default=3, metavar="R", help=help_text
    )


def add_layer_split(parser: argparse.ArgumentParser) -> None:
    """--layer-split."""
    parser.add_argument(
        "--layer-split",
        action="store_true",
        help="also measure what programs that split by whole layers would choose",
    )


def add_anyway(parser: argparse.ArgumentParser) -> None:
    """--anyway."""
    parser.add_argument(
        "--anyway", action="store_true", help="load even what RAM does not seem to hold"
    )


def add_placement(parser: argparse.ArgumentParser) -> None:
    """--cpu-moe, --which, --leave-free."""
    parser.add_argument(
        "--cpu-moe",
        type=cpu_moe,
        default=AUTO,
        metavar="N|all|auto",
        help="expert layers whose experts stay in RAM (auto: as few as fit)",
    )
    add_which(parser)


def add_which(parser: argparse.ArgumentParser) -> None:
    """--which, --leave-free."""
    parser.add_argument(
        "--which",
        choices=("first", "last"),
        default="first",
        help="which expert layers go to RAM (first)",
    )
    parser.add_argument(
        "--leave-free",
        type=size_or_zero,
        metavar="SIZE",
        help="VRAM to leave to other programs (512MiB on a GPU with a display, else 256MiB)",
    )


def add_form(parser: argparse.ArgumentParser) -> None:
    """--json, --csv, --md: one of them."""
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="one JSON document a line")
    form.add_argument("--csv", action="store_true", help="comma-separated values")
    form.add_argument("--md", action="store_true", help="Markdown to paste in a forum")


def add_json(
    parser: argparse.ArgumentParser, meaning: str = "print JSON, and nothing else"
) -> None:
    """--json."""
    parser.add_argument("--json", action="store_true", help=meaning)


def base_folder(text: str) -> Path:
    """The argparse type of --basedir: a folder, there or to be made."""
    path = Path(text).expanduser()
    # An empty text, as a script with an unset variable gives, is no folder to fill.
    if not text.strip() or path.is_file():
        raise argparse.ArgumentTypeError(tr("“{text}” is no folder.").format(text=text))
    return path


def add_basedir(parser: argparse.ArgumentParser) -> None:
    """``--basedir``, which every command and the window know."""
    parser.add_argument(
        "--basedir",
        type=base_folder,
        metavar="DIR",
        help="keep settings, chats and caches under one folder",
    )


def add_window_arguments(parser: argparse.ArgumentParser) -> None:
    """What the window is told on the command line."""
    parser.add_argument(
        "model", metavar="MODEL.gguf", nargs="?", type=named_path, help="the model to select"
    )
    parser.add_argument("--demo", action="store_true", help="select the sample model")
    add_basedir(parser)
    ends = parser.add_mutually_exclusive_group()
    ends.add_argument(
        "--screenshot",
        type=named_path,
        metavar="FILE.png",
        help="save a picture of the window once all is shown, and end",
    )
    ends.add_argument(
        "--quit", action="store_true", help="close the window that is open, as its own button does"
    )
