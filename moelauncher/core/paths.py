"""Where the program keeps its things: the platform's folders, or all under one.

In: ``--basedir`` or nothing. Out: :class:`AppPaths`. Nothing is created until asked for. A
package with a folder ``portable`` beside its program keeps everything in that folder.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from moelauncher.core.errors import LauncherError
from moelauncher.core.translate import tr

_APP = "moelauncher"


@dataclass(frozen=True)
class AppPaths:
    """Folders and files of this program; they may not exist yet (see :func:`made`)."""

    config: Path
    data: Path
    cache: Path
    logs: Path
    #: Where a model that is dropped, fetched or built is put; listed by itself.
    models: Path

    @property
    def settings_file(self) -> Path:
        """The user's settings, TOML."""
        return self.config / "settings.toml"

    @property
    def chat_library_file(self) -> Path:
        """The user's system prompts and presets, and what was last set for a model, JSON."""
        return self.config / "chat-library.json"

    @property
    def chat_states_folder(self) -> Path:
        """What models made of long chats; losing it costs time only."""
        return self.cache / "chat-states"

    @property
    def window_file(self) -> Path:
        """What the window remembers of itself, JSON; losing it costs nothing."""
        return self.data / "window.json"

    @property
    def loads_file(self) -> Path:
        """What past loads took, JSON lines; losing it costs a safer margin only."""
        return self.data / "loads.jsonl"

    @property
    def chats_file(self) -> Path:
        """All chats, SQLite."""
        return self.data / "chats.sqlite3"

    @property
    def rescue_folders(self) -> tuple[Path, ...]:
        """Where text goes that neither the chats nor their folder take, the first that does.

        The last ones may be on another disk than the rest.
        """
        usual = Path(platformdirs.user_data_dir(_APP, appauthor=False))
        return (self.config, usual, Path(tempfile.gettempdir()))

    @property
    def measurements_file(self) -> Path:
        """Every measurement of speed, SQLite."""
        return self.data / "measurements.sqlite3"

    @property
    def bandwidths_file(self) -> Path:
        """How fast memories are, JSON; losing it costs seconds."""
        return self.data / "bandwidths.json"

    @property
    def log_file(self) -> Path:
        """The window's newest log."""
        return self.logs / "moelauncher.log"

    @property
    def command_log_file(self) -> Path:
        """The command line's: it may run beside the window, and both move old logs away."""
        return self.logs / "command-line.log"

    @property
    def headers_folder(self) -> Path:
        """The header cache; losing it costs time only."""
        return self.cache / "headers"

    @property
    def broken_backends_file(self) -> Path:
        """GPU modules that crashed here; losing it costs one more crash of the child."""
        return self.cache / "broken-backends.json"

    @property
    def sample_folder(self) -> Path:
        """The sample model, built once."""
        return self.cache / "sample"


#: The folder beside the program that makes it portable.
PORTABLE_FOLDER = "portable"


def portable_folder(
    program: Path = Path(sys.executable),
    *,
    frozen: bool = bool(getattr(sys, "frozen", False)),
    environ: Mapping[str, str] = os.environ,
) -> Path | None:
    """The folder that a portable copy keeps its things in; None where it is none.

    Only a package can be portable: a checkout's Python lies in a folder that is not its own.
    """
    if not frozen:
        return None
    # An AppImage runs from a folder that is mounted for it; what the user sees is its file.
    beside = Path(environ.get("APPIMAGE") or program).parent / PORTABLE_FOLDER
    return beside if beside.is_dir() else None


def app_paths(basedir: Path | None = None) -> AppPaths:
    """The folders under ``basedir``, or in a portable copy, or where this platform puts such
    things."""
    if basedir is None:
        basedir = portable_folder()
    if basedir is not None:
        base = basedir.expanduser().absolute()
        return AppPaths(
            base / "config", base / "data", base / "cache", base / "logs", base / "models"
        )
    dirs = platformdirs.PlatformDirs(_APP, appauthor=False)
    data = Path(dirs.user_data_dir)
    return AppPaths(
        config=Path(dirs.user_config_dir),
        data=data,
        cache=Path(dirs.user_cache_dir),
        logs=Path(dirs.user_log_dir),
        models=data / "models",
    )


def made(folder: Path) -> Path:
    """``folder``, created where it is missing. Raises LauncherError where that fails."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LauncherError(
            tr("The folder {folder} cannot be made: {reason}.").format(
                folder=folder, reason=error.strerror or str(error)
            ),
            tr("Choose another place with --basedir."),
        ) from error
    if not os.access(folder, os.W_OK):
        raise LauncherError(
            tr("The folder {folder} cannot be written to.").format(folder=folder),
            tr("Choose another place with --basedir."),
        )
    return folder


def shortened(path: Path | str) -> str:
    """``path`` for people, the home folder as ``~``."""
    text, home = str(path), str(Path.home())
    if text == home or text.startswith(home + os.sep):
        return "~" + text[len(home) :]
    return text
