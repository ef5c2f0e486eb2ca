"""The command line: finds the command, runs it, and turns errors into one sentence.

In: arguments. Out: an exit status: 0, 1 for an error (told on stderr), 2 for wrong
arguments, 130 after Ctrl+C. Without a command it opens the window; Qt is imported only then.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import NoReturn

from moelauncher import __version__
from moelauncher.commands.arguments import add_basedir, add_window_arguments
from moelauncher.commands.terminal import OutputLost, note, prepare_streams
from moelauncher.core.errors import Cancelled, LauncherError, WrongArguments
from moelauncher.core.log_file import LogSetup
from moelauncher.core.paths import app_paths
from moelauncher.core.quiet_import import import_quietly
from moelauncher.core.translate import tr

#: Command name to the module that runs it, and its line in the help.
_COMMANDS = {
    "list": ("list_models", "list the model files of some folders"),
    "plan": ("plan", "say where every byte of a model would go"),
    "bench": ("measure", "measure the speed at several placements"),
    "tune": ("tune", "find the fastest placement by measuring"),
    "measurements": ("measurements", "show, export and import what was measured of a model"),
    "compare": ("compare", "hold the answers under two settings against each other"),
    "chat": ("chat", "ask a model one question"),
    "doctor": ("doctor", "describe this machine and say what to mend"),
}

_INTERRUPTED = 130


class _Parser(argparse.ArgumentParser):
    """argparse, with its errors in one line."""

    def error(self, message: str) -> NoReturn:
        note(f"{self.prog}: {message}")
        note(tr("See {program} --help.").format(program=self.prog))
        self.exit(2)

    def refuse_unknown(self, arguments: Sequence[str]) -> None:
        """An option that is not there is named before its value is taken for a model."""
        for argument in arguments:
            if argument == "--":
                return
            name = argument.partition("=")[0]
            # With a blank in it, it is text (a prompt), as argparse sees it too.
            is_option = name.startswith("--") and " " not in argument
            if is_option and name not in self._option_string_actions:
                self.error(tr("unrecognized arguments: {name}").format(name=name))


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program; returns the exit status."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments[:1] == ["--child"]:
        # A frozen program starts itself for the child process; its pipes stay as they are.
        from moelauncher.engine.child_main import main as serve

        return serve()
    if arguments[:1] == ["--read-headers"]:
        from moelauncher.core.library.header_workers import serve as read_headers

        return read_headers()
    prepare_streams()
    try:
        return _run(arguments)
    except OutputLost as error:
        _drop_stdout()
        note(error.sentence)
        return 1
    except LauncherError as error:
        note(error.sentence)
        return 2 if isinstance(error, WrongArguments) else 1
    except (KeyboardInterrupt, Cancelled):
        return _INTERRUPTED
    except BrokenPipeError:
        # The reader has gone (head, less).
        _drop_stdout()
        return 1


def _drop_stdout() -> None:
    """What is still to be written would fail once more when Python ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _run(arguments: list[str]) -> int:
    name, before, after = _split_at_command(arguments)
    if name is None:
        return _open_window(arguments)
    command = import_quietly(f"moelauncher.commands.{_COMMANDS[name][0]}")
    parser = _command_parser(name, command)
    parser.refuse_unknown([*before, *after])
    options = parser.parse_args([*before, *after])
    log = LogSetup(app_paths(options.basedir).command_log_file)
    try:
        return int(command.run(options))
    finally:
        log.close()


def _split_at_command(arguments: list[str]) -> tuple[str | None, list[str], list[str]]:
    """The command, and what stands before and behind it. A file of that name is ``./list``."""
    index = 0
    while index < len(arguments):
        argument = arguments[index]
        if argument in ("--basedir", "--screenshot"):
            index += 2
            continue
        if not argument.startswith("-"):
            if argument in _COMMANDS:
                return argument, arguments[:index], arguments[index + 1 :]
            return None, arguments, []
        index += 1
    return None, arguments, []


def _command_parser(name: str, command: ModuleType) -> _Parser:
    summary = _COMMANDS[name][1]
    parser = _Parser(
        prog=f"moelauncher {name}",
        description=summary[0].upper() + summary[1:] + ".",
        allow_abbrev=False,
    )
    command.add_arguments(parser)
    add_basedir(parser)
    return parser


def _window_parser() -> argparse.ArgumentParser:
    commands = "\n".join(f"  {name:<12} {summary}" for name, (_, summary) in _COMMANDS.items())
    parser = _Parser(
        prog="moelauncher",
        usage="moelauncher [MODEL.gguf] [--demo] [--basedir DIR]\n       moelauncher COMMAND ...",
        description="Opens the window: pick a model, place its experts, chat, watch the speed.",
        epilog=f"commands:\n{commands}\n\n'moelauncher COMMAND --help' says more of each.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add_window_arguments(parser)
    parser.add_argument("--version", action="version", version=f"MoE Launcher {__version__}")
    return parser


def _open_window(arguments: list[str]) -> int:
    parser = _window_parser()
    options = parser.parse_args(arguments)
    model: Path | None = options.model
    if model is not None and not model.suffix and not model.exists():
        parser.error(tr("“{word}” is neither a command nor a file.").format(word=model))
    if not _has_display():
        raise LauncherError(
            tr("There is no display to open the window on."),
            tr("In a terminal, use moelauncher chat, plan, list, bench or doctor."),
        )
    try:
        app = import_quietly("moelauncher.app")
    except ImportError as error:
        raise LauncherError(
            tr("The window cannot be opened: {reason}.").format(reason=error),
            tr("Install PySide6-Essentials and pyqtgraph, or use a command (moelauncher --help)."),
        ) from error
    # With the program's own name in front, as the system hands it over.
    return int(app.main(["moelauncher", *arguments]))


def _has_display() -> bool:
    if sys.platform in ("win32", "darwin"):
        return True
    return any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"))
