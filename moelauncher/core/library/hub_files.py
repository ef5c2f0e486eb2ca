"""What a user may write to get a model from Hugging Face, and what a repository offers.

In: a link, ``org/name``, or ``org/name:QUANT``; file names and sizes of a repository. Out:
:class:`HubLink` and :class:`HubChoice`. Pure, no network; any thread. Names come from a server: one
that would leave the folder is refused here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Protocol
from urllib.parse import unquote, urlsplit

from moelauncher.core.errors import LauncherError
from moelauncher.core.library.model_files import shard_name
from moelauncher.core.text_cleaning import display_name
from moelauncher.core.translate import tr

if TYPE_CHECKING:
    from moelauncher.core.files.model_facts import ModelFacts

_PART = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,95}")
_LABEL = re.compile(
    r"(?:^|[-_./])((?:UD-)?(?:I?Q\d(?:_[0-9A-Z]+)*|MXFP4(?:_MOE)?|NVFP4|TQ\d_\d|BF16|F16|F32))(?=$|[-_./])",
    re.IGNORECASE,
)
#: Names that Windows keeps for devices, whatever the ending.
_RESERVED = re.compile(r"^(?:con|prn|aux|nul|com\d|lpt\d)(?:\.|$)", re.IGNORECASE)
_FORBIDDEN = re.compile(r'[\x00-\x1f<>:"|?*\\]')


@dataclass(frozen=True)
class HubLink:
    """A repository, and what of it is wanted; "" where the user did not say."""

    repo: str  # "org/name"
    revision: str = "main"
    file: str = ""
    quant: str = ""


@dataclass(frozen=True)
class HubFile:
    """One file of a repository; ``sha256`` "" where the server does not tell."""

    name: str  # with folders, by slashes
    size_bytes: int
    sha256: str = ""


@dataclass(frozen=True)
class HubChoice:
    """One quantisation: its files in order, whole."""

    repo: str
    revision: str
    label: str
    files: tuple[HubFile, ...]

    @property
    def size_bytes(self) -> int:
        """All its files together."""
        return sum(file.size_bytes for file in self.files)


@dataclass(frozen=True)
class DownloadProgress:
    """``n_bytes`` of ``total_bytes`` are there; ``checking``: the checksum is computed."""

    n_bytes: int
    total_bytes: int
    bytes_per_s: float | None = None
    checking: bool = False


class Hub(Protocol):
    """How models are fetched; served by the hub room, scripted in tests. Pool threads only."""

    def choices(self, link: HubLink) -> tuple[HubChoice, ...]:
        """The quantisations of a repository. Raises LauncherError with the reason in words."""

    def facts(self, choice: HubChoice, cancelled: Callable[[], bool]) -> ModelFacts:
        """What a choice is, from the first bytes of its files. Raises LauncherError."""

    def download(
        self,
        choice: HubChoice,
        folder: Path,
        progress: Callable[[DownloadProgress], None],
        cancelled: Callable[[], bool],
    ) -> Path:
        """Fetch all files below ``folder``; returns the first one.

        Goes on where an earlier try ended. Raises Cancelled when asked to stop (what was fetched
        stays, so it is a pause), LauncherError where it cannot go on.
        """

    def forget(self, choice: HubChoice, folder: Path) -> None:
        """Delete what an unfinished download left."""


def parse_link(text: str) -> HubLink:
    """What the user wrote, understood. Raises LauncherError where it names no repository."""
    text = text.strip()
    quant = ""
    if re.match(r"^[a-z]+://", text, re.IGNORECASE) or re.match(
        r"^(?:www\.)?(?:huggingface\.co|hf\.co|hf-mirror\.com)/", text, re.IGNORECASE
    ):
        split = urlsplit(text if "://" in text else f"https://{text}")
        if split.scheme.lower() not in ("http", "https", "hf"):
            raise _no_link(text)
        path = unquote(split.path) if split.scheme.lower() != "hf" else split.netloc + split.path
    else:
        path, _, quant = text.partition(":")
    parts = [part for part in path.split("/") if part]
    if parts and ":" in parts[-1] and not quant and len(parts) == 2:
        parts[-1], _, quant = parts[-1].partition(":")
    if parts[:1] == ["models"]:
        del parts[0]
    if len(parts) < 2 or not all(_PART.fullmatch(part) for part in parts[:2]):
        raise _no_link(text)
    repo = f"{parts[0]}/{parts[1]}"
    revision, rest = "main", parts[2:]
    if len(rest) >= 2 and rest[0] in ("blob", "resolve", "tree", "raw"):
        revision, rest = rest[1], rest[2:]
    file = "/".join(rest)
    if file and not file.lower().endswith(".gguf"):
        if "." in rest[-1]:
            raise LauncherError(
                tr("{name} is no GGUF file.").format(name=display_name(rest[-1])),
                tr("Name a repository, or a .gguf file in it."),
            )
        file = ""
    if quant and not re.fullmatch(r"[A-Za-z0-9_.-]{1,40}", quant):
        raise _no_link(text)
    return HubLink(repo, revision, file, quant)


def _no_link(text: str) -> LauncherError:
    return LauncherError(
        tr("“{text}” names no repository.").format(text=display_name(text)),
        tr("Write org/name, org/name:Q4_K_M, or paste a link to a model on Hugging Face."),
    )


def choices_of(link: HubLink, files: Iterable[HubFile]) -> tuple[HubChoice, ...]:
    """The quantisations among a repository's files that ``link`` asks for, the smallest first.

    Projectors and the like are no choice. Raises LauncherError where nothing is left.
    """
    groups: dict[str, list[HubFile]] = {}
    for file in files:
        name = PurePosixPath(file.name).name
        if not name.lower().endswith(".gguf") or re.search(r"mmproj|imatrix", name, re.IGNORECASE):
            continue
        checked_parts(file.name)
        shard = shard_name(name)
        key = file.name if shard is None else f"{file.name[: -len(name)]}{shard.prefix}"
        groups.setdefault(key, []).append(file)
    choices = []
    for key, group in groups.items():
        parts = tuple(sorted(group, key=lambda file: file.name))
        shard = shard_name(PurePosixPath(parts[0].name).name)
        if shard is not None and len(parts) != shard.count:
            continue  # incomplete on the server
        choices.append(HubChoice(link.repo, link.revision, label_of(key), parts))
    if not choices:
        raise LauncherError(
            tr("{repo} holds no GGUF model.").format(repo=link.repo),
            tr("Look for a repository with GGUF in its name."),
        )
    wanted = [choice for choice in choices if _is_wanted(choice, link)]
    if not wanted:
        raise LauncherError(
            tr("{repo} has no {what}.").format(
                repo=link.repo, what=display_name(link.file or link.quant)
            ),
            tr("It has: {labels}.").format(
                labels=", ".join(sorted({choice.label for choice in choices}))
            ),
        )
    return tuple(sorted(wanted, key=lambda choice: choice.size_bytes))


def label_of(name: str) -> str:
    """The quantisation that a file name tells; the name itself where it tells none."""
    stem = re.sub(r"\.gguf$", "", name, flags=re.IGNORECASE)
    found = _LABEL.findall(stem)
    return str(found[-1]).upper() if found else display_name(PurePosixPath(stem).name)


def _is_wanted(choice: HubChoice, link: HubLink) -> bool:
    if link.file:
        return any(file.name == link.file for file in choice.files)
    if link.quant:
        wanted = link.quant.upper()
        return wanted in (choice.label, choice.label.removeprefix("UD-"))
    return True


def checked_parts(name: str) -> tuple[str, ...]:
    """The folders and the name of a server's file. Raises LauncherError on any that is no name.

    Refuses what would leave the folder it is put into, on any system: "..", drives, backslashes,
    devices of Windows.
    """
    parts = tuple(name.split("/"))
    for part in parts:
        bad = part in ("", ".", "..") or len(part.encode("utf-8", "replace")) > 255
        if bad or part[-1] in " ." or _FORBIDDEN.search(part) or _RESERVED.match(part):
            raise LauncherError(
                tr("The server names a file “{name}”, which cannot be stored.").format(
                    name=display_name(name)
                ),
                tr("Nothing was written. Choose another repository."),
            )
    return parts


def target_of(folder: Path, repo: str, name: str) -> Path:
    """Where a file of ``repo`` is put below ``folder``. Raises LauncherError as above."""
    return folder.joinpath(*checked_parts(repo), *checked_parts(name))
