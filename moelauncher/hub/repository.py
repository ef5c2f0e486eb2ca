"""Hugging Face, or a mirror of it: what a repository holds, what a file is, and the file itself.

Implements :class:`moelauncher.core.library.hub_files.Hub`. The server is huggingface_hub's
(HF_ENDPOINT is honoured), the token the one it finds in its usual places. Pool threads only.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import BinaryIO, cast

from huggingface_hub import HfApi, constants, hf_hub_url
from huggingface_hub.hf_api import RepoFile
from huggingface_hub.utils import build_hf_headers

from moelauncher import __version__
from moelauncher.core.errors import LauncherError
from moelauncher.core.files.gguf_header import parse_header
from moelauncher.core.files.model_facts import ModelFacts
from moelauncher.core.library.hub_files import (
    DownloadProgress,
    HubChoice,
    HubFile,
    HubLink,
    choices_of,
    target_of,
)
from moelauncher.core.library.model_files import checked_facts
from moelauncher.hub import download as downloads
from moelauncher.hub.answers import failure, unreachable
from moelauncher.hub.remote_file import RemoteFile

_TOLD_S = 0.2


class Repositories:
    """One server; ``endpoint`` and ``token`` None: what huggingface_hub is set to."""

    def __init__(
        self,
        endpoint: str | None = None,
        token: str | None = None,
        *,
        wait: Callable[[float], None] = time.sleep,
    ) -> None:
        self._endpoint = (endpoint or constants.ENDPOINT).rstrip("/")
        self._token = token
        self._wait = wait

    def choices(self, link: HubLink) -> tuple[HubChoice, ...]:
        """The quantisations that ``link`` asks for, the smallest first. Raises LauncherError."""
        api = HfApi(endpoint=self._endpoint, token=self._token)
        try:
            items = list(api.list_repo_tree(link.repo, recursive=True, revision=link.revision))
        except Exception as error:
            raise self._refusal(error) from error
        return choices_of(
            link,
            [
                HubFile(item.path, item.size, item.lfs.sha256 if item.lfs is not None else "")
                for item in items
                if isinstance(item, RepoFile)
            ],
        )

    def facts(self, choice: HubChoice, cancelled: Callable[[], bool]) -> ModelFacts:
        """What ``choice`` is, from the first bytes of each of its files. Raises LauncherError."""
        headers = []
        for file in choice.files:
            remote = RemoteFile(
                self._address(choice, file), file.size_bytes, self._headers(), cancelled
            )
            name = Path(PurePosixPath(file.name).name)
            headers.append(parse_header(name, cast(BinaryIO, remote), file.size_bytes))
        return checked_facts(headers)

    def download(
        self,
        choice: HubChoice,
        folder: Path,
        progress: Callable[[DownloadProgress], None],
        cancelled: Callable[[], bool],
    ) -> Path:
        """Fetch all files of ``choice`` below ``folder``; see the protocol."""
        jobs = self._jobs(choice, folder)
        for job in jobs:
            job.target.parent.mkdir(parents=True, exist_ok=True)
        total = choice.size_bytes
        downloads.need_room(
            jobs[0].target.parent, total - sum(downloads.fetched_bytes(job) for job in jobs)
        )
        meter = _Meter(total, progress)
        for job in jobs:
            meter.begin(sum(downloads.fetched_bytes(other) for other in jobs if other != job))
            downloads.fetch(job, meter.told, cancelled, wait=self._wait)
        # Only now, all at once: half of a split model is no model.
        for job in jobs:
            if job.part.exists():
                downloads.finish(job)
        return jobs[0].target

    def forget(self, choice: HubChoice, folder: Path) -> None:
        """Delete what an unfinished download left."""
        for job in self._jobs(choice, folder):
            downloads.forget(job)

    def _jobs(self, choice: HubChoice, folder: Path) -> list[downloads.Job]:
        headers = self._headers()
        return [
            downloads.Job(
                self._address(choice, file),
                headers,
                file,
                target_of(folder, choice.repo, file.name),
            )
            for file in choice.files
        ]

    def _address(self, choice: HubChoice, file: HubFile) -> str:
        address = hf_hub_url(
            choice.repo, file.name, revision=choice.revision, endpoint=self._endpoint
        )
        return str(address)

    def _headers(self) -> dict[str, str]:
        return dict(
            build_hf_headers(
                token=self._token, library_name="moelauncher", library_version=__version__
            )
        )

    def _refusal(self, error: Exception) -> LauncherError:
        if isinstance(error, LauncherError):
            return error
        status = getattr(getattr(error, "response", None), "status_code", None)
        if isinstance(status, int) and status >= 400:
            return failure(status, self._endpoint)
        return unreachable(error, self._endpoint)


class _Meter:
    """Sums up files, and tells a few times a second, with the speed of late."""

    def __init__(self, total: int, progress: Callable[[DownloadProgress], None]) -> None:
        self._total = total
        self._progress = progress
        self._others = 0
        self._told_s = 0.0
        self._rate_from: tuple[float, int] | None = None
        self._rate: float | None = None

    def begin(self, others: int) -> None:
        """Another file; ``others`` bytes of the rest are there."""
        self._others = others
        self._rate_from = None

    def told(self, here: int, checking: bool) -> None:
        """``here`` bytes of the present file are there, or checked."""
        now = time.monotonic()
        if now - self._told_s < _TOLD_S and here + self._others < self._total:
            return
        self._told_s = now
        if checking:
            self._rate = None
        elif self._rate_from is None or here < self._rate_from[1]:
            self._rate_from = (now, here)
        elif now - self._rate_from[0] >= 1.0:
            self._rate = (here - self._rate_from[1]) / (now - self._rate_from[0])
            if now - self._rate_from[0] >= 5.0:
                self._rate_from = (now, here)
        n_bytes = min(self._others + here, self._total)
        self._progress(DownloadProgress(n_bytes, self._total, self._rate, checking))
