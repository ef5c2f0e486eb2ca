"""The files that one model is made of: shards found, read and checked together.

In: the path of any shard. Out: :class:`ModelFacts`, or a LauncherError with the reason why
llama.cpp could not load it. Any thread.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from moelauncher.core.errors import LauncherError
from moelauncher.core.files.gguf_header import GgufHeader, read_header
from moelauncher.core.files.known_architectures import KNOWN_ARCHITECTURES
from moelauncher.core.files.model_facts import ModelFacts, facts_of
from moelauncher.core.text_cleaning import display_name
from moelauncher.core.translate import tr

#: Roles that llama.cpp loads as a model of its own, so the architecture must be one it knows.
_LOADED_ROLES = frozenset({"chat", "embedding", "reranker", "draft", "other"})

_SHARD = re.compile(
    r"^(?P<prefix>.*)-(?P<number>\d{5})-(?P<of>of)-(?P<count>\d{5})(?P<end>\.gguf)$", re.I
)
#: No real model has more; a made-up name must not make us look for a million files.
_MAX_SHARDS = 1000


@dataclass(frozen=True)
class ShardName:
    """The parts of ``PREFIX-00002-of-00003.gguf``; numbers count from 1."""

    prefix: str
    number: int
    count: int
    end: str
    of: str = "of"

    def file_name(self, number: int) -> str:
        """The name of shard ``number``, written as this one is."""
        return f"{self.prefix}-{number:05d}-{self.of}-{self.count:05d}{self.end}"


def shard_name(file_name: str) -> ShardName | None:
    """The shard that ``file_name`` names; None where it is a whole model's name."""
    match = _SHARD.match(file_name)
    if match is None:
        return None
    number, count = int(match["number"]), int(match["count"])
    if not 1 <= number <= count <= _MAX_SHARDS:
        return None
    return ShardName(match["prefix"], number, count, match["end"], match["of"])


def shards_of(path: Path) -> tuple[Path, ...]:
    """All files of the model that ``path`` belongs to, in order; they may not exist."""
    shard = shard_name(path.name)
    if shard is None:
        return (path,)
    return tuple(path.with_name(shard.file_name(n + 1)) for n in range(shard.count))


def load_facts(path: Path) -> ModelFacts:
    """The facts of the model that ``path`` (any of its shards) belongs to.

    Raises LauncherError where a shard is missing, a file is damaged, or this llama.cpp could
    not load the model; the sentence is the one that the model's row shows.
    """
    files = shards_of(path)
    if len(files) > 1:
        missing = [file for file in files if is_missing(file)]
        # Where nothing is there at all, the reader's own sentence is the right one.
        if missing and len(missing) < len(files):
            raise missing_shard(files, missing[0])
    return checked_facts([read_header(file) for file in files])


def is_missing(file: Path) -> bool:
    """Whether ``file`` is surely not there; one that may not be looked at is not missing."""
    try:
        file.stat()
    except FileNotFoundError:
        return True
    except (OSError, ValueError):
        return False
    return False


def missing_shard(files: Sequence[Path], missing: Path) -> LauncherError:
    """What to say where ``missing``, one of ``files``, is not there."""
    return LauncherError(
        tr("Part {n} of {count} is missing: {name}.").format(
            n=list(files).index(missing) + 1, count=len(files), name=display_name(missing.name)
        ),
        tr("Download it into the same folder."),
    )


def checked_facts(headers: Sequence[GgufHeader]) -> ModelFacts:
    """The facts from all shards' headers; raises LauncherError where they cannot be loaded."""
    facts = facts_of(headers)
    problem = problem_of(headers, facts)
    if problem is not None:
        raise problem
    return facts


def problem_of(headers: Sequence[GgufHeader], facts: ModelFacts) -> LauncherError | None:
    """Why llama.cpp could not load these files; None where nothing speaks against it."""
    for header in headers:
        if header.problem:
            message = header.problem
            if len(headers) > 1:
                message = f"{display_name(header.path.name)}: {message}"
            return LauncherError(message, tr("Download or copy it again."))
    return _split_problem(headers, facts) or _loading_problem(facts)


def _split_problem(headers: Sequence[GgufHeader], facts: ModelFacts) -> LauncherError | None:
    stated = headers[0].metadata.get("split.count")
    count = stated if isinstance(stated, int) and stated > 1 else 1
    if count != len(headers):
        if len(headers) == 1:
            return LauncherError(
                tr("This is one of {count} parts, but its name does not say which.").format(
                    count=count
                ),
                tr("Give the parts the names they were downloaded with."),
            )
        return _foreign_parts()
    for number, header in enumerate(headers):
        if header.metadata.get("split.count", count) != stated and count > 1:
            return _foreign_parts()
        if header.metadata.get("split.no", number) != number and count > 1:
            return _foreign_parts()
    if count > 1:
        asked = shard_name(headers[0].path.name)
        if asked is not None and (asked.of, asked.end) != ("of", ".gguf"):
            ending = f"-00001-of-{count:05d}.gguf"
            return LauncherError(
                tr("llama.cpp finds parts only under names in small letters: {ending}.").format(
                    ending=ending
                ),
                tr("Rename all parts so."),
            )
    names = {tensor.name for tensor in facts.tensors}
    if len(names) != len(facts.tensors):
        return _foreign_parts()
    total = headers[0].metadata.get("split.tensors.count")
    if count > 1 and isinstance(total, int) and total != len(names):
        return _foreign_parts()
    return None


def _foreign_parts() -> LauncherError:
    return LauncherError(
        tr("The parts do not belong together."),
        tr("Download all parts of one model into a folder of their own."),
    )


def _loading_problem(facts: ModelFacts) -> LauncherError | None:
    if facts.role not in _LOADED_ROLES:
        return None
    if not facts.arch:
        return LauncherError(
            tr("The file does not name its architecture."), tr("Download or copy it again.")
        )
    if facts.arch not in KNOWN_ARCHITECTURES:
        return LauncherError(
            tr("The architecture “{arch}” is not known to this llama.cpp.").format(
                arch=display_name(facts.arch)
            ),
            tr("A newer MoE Launcher may run it."),
        )
    if facts.byte_order != sys.byteorder:
        return LauncherError(
            tr("The file is {order}-endian, which this machine cannot run.").format(
                order=facts.byte_order
            ),
            tr("Download the {order}-endian file.").format(order=sys.byteorder),
        )
    if facts.unplaceable_experts:
        return LauncherError(
            tr("This old file stores every expert as a tensor of its own, which cannot be placed."),
            tr("Download a newer conversion; today's llama.cpp does not load this one."),
        )
    return None
