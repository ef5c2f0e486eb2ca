"""Installs the Windows installer's program under Wine and removes it again, looking at each step.

Standard library only. Both run as somebody who asks nothing and is asked nothing (``/S``).
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import wine_run
from dev_console import DevError, say
from smoke_plan import Plan, Started, run

PATIENCE_S = 900
_UNINSTALL_KEY = r"HKCU\Software\Microsoft\Windows\CurrentVersion\Uninstall\MoELauncher"
_CLASSES = r"HKCU\Software\Classes"
_PROGRAM_ID = "MoELauncher.gguf"
_REFUSED = 2


@dataclass(frozen=True)
class _Windows:
    """The Windows that the installer is tried in, and the user's folders there."""

    prefix: wine_run.Prefix
    display: str

    @property
    def local_data(self) -> Path:
        """``%LOCALAPPDATA%``."""
        users = self.prefix.folder / "drive_c" / "users"
        found = next((u for u in users.iterdir() if u.name != "Public"), None)
        if found is None:
            raise DevError(f"{users} has no user.")
        return found / "AppData" / "Local"

    @property
    def program_folder(self) -> Path:
        """Where the installer puts the program when nobody chooses."""
        return self.local_data / "Programs" / "MoE Launcher"

    @property
    def shortcut(self) -> Path:
        """The entry in the Start menu."""
        menu = self.local_data.parent / "Roaming" / "Microsoft" / "Windows" / "Start Menu"
        return menu / "Programs" / "MoE Launcher.lnk"

    @property
    def uninstall_command(self) -> list[str | Path]:
        """Removes the program without asking.

        Without the folder at the end the uninstaller copies itself to another one, and what is
        started here ends at once. It knows the folder without quotation marks only, so none of
        its words may have a space, for which Wine would set them.
        """
        folder = self.program_folder
        words = f"_?={wine_run.windows_path(folder)}".split(" ")
        return [folder / "uninstall.exe", "/S", *words]

    def run(self, *command: str | Path) -> subprocess.CompletedProcess[bytes]:
        """Runs a program to its end."""
        environment: Mapping[str, str] = self.prefix.environment({"DISPLAY": self.display})
        try:
            return subprocess.run(
                ["wine", *(str(part) for part in command)],
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=PATIENCE_S,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise DevError(f"{command[0]}: no end after {PATIENCE_S} s.") from error

    def registry(self, key: str, value: str = "") -> str | None:
        """What the registry holds under ``value`` ("" for the key's own); None for nothing."""
        asked = ["/v", value] if value else ["/ve"]
        answer = self.run("reg", "query", key, *asked)
        text = answer.stdout.decode("utf-8", "replace")
        _, found, rest = text.partition("REG_SZ")
        return rest.strip() if found else None


def check_installer(
    installer: Path, bundle: Path, version: str, prefix: wine_run.Prefix, display: str
) -> None:
    """Installs, looks, installs over it, removes, looks; and tries the last two while it runs.

    Raises :class:`DevError`.
    """
    windows = _Windows(prefix, display)
    with wine_run.awake(prefix.environment({"DISPLAY": display})):
        _check_each_step(windows, installer, bundle, version)
    say("      installed, installed over it, and removed under Wine: files, menu, .gguf, registry")
    say("      neither installed nor removed while it runs")


def _check_each_step(windows: _Windows, installer: Path, bundle: Path, version: str) -> None:
    shutil.rmtree(windows.program_folder, ignore_errors=True)
    data = windows.local_data / "moelauncher"
    shutil.rmtree(data, ignore_errors=True)
    _install(windows, installer, bundle, version)
    for name in ("models/a.gguf", "chats.sqlite3", "Cache/headers/a"):
        (data / name).parent.mkdir(parents=True, exist_ok=True)
        (data / name).write_bytes(b"kept?")
    own = windows.program_folder / "own.txt"
    own.write_text("the user's", encoding="utf-8")
    _install(windows, installer, bundle, version)
    if not (data / "Cache" / "headers" / "a").exists():
        raise DevError("An update emptied the cache.")
    _refuse_while_running(windows, installer)
    _remove(windows, data, own)


def _install(windows: _Windows, installer: Path, bundle: Path, version: str) -> None:
    answer = windows.run(installer, "/S")
    if answer.returncode:
        raise DevError(f"The installer ended with {answer.returncode}: {answer.stderr!r}")
    wanted = _sizes(bundle)
    found = _sizes(windows.program_folder)
    lacking = [name for name, size in wanted.items() if found.get(name) != size]
    if lacking:
        raise DevError(f"Not, or not wholly, installed: {', '.join(lacking[:5])}")
    # The first question after an installation sometimes gets no answer from Wine.
    wrong = _wrong_entries(windows, version) and _wrong_entries(windows, version)
    if wrong:
        raise DevError(f"After installing, these are wrong: {', '.join(wrong)}")
    said = windows.run(windows.program_folder / "moelauncher-cli.exe", "--version").stdout
    if version.encode() not in said:
        raise DevError(f"The installed program says {said!r}.")


def _wrong_entries(windows: _Windows, version: str) -> list[str]:
    """What Windows was told wrongly of the installed program, and what it was told instead."""
    command = windows.registry(rf"{_CLASSES}\{_PROGRAM_ID}\shell\open\command")
    program_id = windows.registry(rf"{_CLASSES}\.gguf")
    shown_version = windows.registry(_UNINSTALL_KEY, "DisplayVersion")
    uninstaller = windows.registry(_UNINSTALL_KEY, "UninstallString")
    opens = (command or "").endswith('\\MoE Launcher\\moelauncher.exe" "%1"')
    checks = {
        f"the version ({shown_version})": shown_version == version,
        f"the uninstaller ({uninstaller})": uninstaller is not None,
        f"the program of .gguf files ({program_id})": program_id == _PROGRAM_ID,
        f"what opens them ({command})": opens,
        "the Start menu": windows.shortcut.exists(),
    }
    return [what for what, right in checks.items() if not right]


def _refuse_while_running(windows: _Windows, installer: Path) -> None:
    program = windows.program_folder / "moelauncher.exe"
    work = windows.local_data / "Temp" / "moelauncher-running"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    plan = Plan(
        program,
        work,
        prefix=("wine",),
        work_there=str(wine_run.windows_path(work)),
        environment=windows.prefix.environment(
            {"DISPLAY": windows.display, "QT_QPA_PLATFORM": "offscreen"}
        ),
    )
    before = _sizes(windows.program_folder)
    base = ["--basedir", plan.there("base")]
    window = Started(plan, plan.window, base)
    try:
        window.wait_for("listening for later starts", work / "base" / "logs")
        commands: dict[str, list[str | Path]] = {
            "installer": [installer, "/S"],
            "uninstaller": windows.uninstall_command,
        }
        for name, command in commands.items():
            code = windows.run(*command).returncode
            if code != _REFUSED:
                raise DevError(f"While the program ran, the {name} ended with {code}.")
        run(plan, plan.window, ["--quit", *base])
        window.output()
    finally:
        window.end()
    if _sizes(windows.program_folder) != before:
        raise DevError("What refused to install or remove changed the program's folder.")
    shutil.rmtree(work)


def _remove(windows: _Windows, data: Path, own: Path) -> None:
    answer = windows.run(*windows.uninstall_command)
    if answer.returncode:
        raise DevError(f"The uninstaller ended with {answer.returncode}: {answer.stderr!r}")
    (windows.program_folder / "uninstall.exe").unlink(missing_ok=True)
    left = [name for name in _sizes(windows.program_folder) if name != own.name]
    expected = {
        "files": not left,
        "the user's own file": own.exists(),
        "the list of programs": windows.registry(_UNINSTALL_KEY, "DisplayName") is None,
        "the program of .gguf files": windows.registry(rf"{_CLASSES}\.gguf") is None,
        "the Start menu": not windows.shortcut.exists(),
        "the model": (data / "models" / "a.gguf").exists(),
        "the chats": (data / "chats.sqlite3").exists(),
        "the cache": not (data / "Cache").exists(),
    }
    wrong = [what for what, right in expected.items() if not right]
    if wrong:
        raise DevError(f"After removing, these are wrong: {', '.join(wrong)} {left[:5]}")


def _sizes(folder: Path) -> dict[str, int]:
    """Each file by its path in ``folder``."""
    return {
        file.relative_to(folder).as_posix(): file.stat().st_size
        for file in folder.rglob("*")
        if file.is_file()
    }
