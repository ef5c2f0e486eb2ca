"""Runs a built program as somebody does who just unpacked it, and fails on any warning.

    python3 packaging/smoke.py FOLDER/moelauncher               here
    python3 packaging/smoke.py FOLDER/moelauncher --bare-root   also on a system with nothing on it
    python3 packaging/smoke.py FOLDER/moelauncher.exe           a Windows bundle, on Linux by Wine

The same steps on both systems: the doctor, a chat with the sample model, the window with a
picture of it and a file from the command line, and an open window that a later start hands a file
to and another one closes. Everything is written under one fresh folder.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import bare_root
import dev_system
import wine_run
from dev_console import DevError, format_elapsed, say
from smoke_plan import Plan, Started, log_text, run

QUESTION = "What is the capital of France?"
ANSWER = "Paris"
LATER_MODEL = "größe 2.gguf"
#: Of Qt where it paints into memory: a window there cannot come to the front.
_NO_FRONT = "This plugin does not support raise()"
#: Wine lacks those of GPU memory.
_NO_COUNTERS = "PDH: this Windows has none of these counters"
_MAPPED_EXPERTS = "tensor overrides to CPU are used with mmap"
#: Inside a bare root.
_PROGRAM_THERE, _WORK_THERE = "/opt/moelauncher", "/work"


def run_smoke(plan: Plan, label: str = "here") -> dict[str, Any]:
    """All steps. Raises :class:`DevError` at the first that fails; returns what was learnt."""
    shutil.rmtree(plan.work, ignore_errors=True)
    (plan.work / "home").mkdir(parents=True)
    started_s = time.monotonic()
    base = ["--basedir", plan.there("base")]
    version = run(plan, plan.command, ["--version"]).strip()
    doctor = _json(run(plan, plan.command, ["doctor", "--json", *base]))
    _check_doctor(doctor, plan)
    asked = ["-p", QUESTION, "--temp", "0", "--max-tokens", "32", "--json", "--ctx", "512"]
    # On Mesa's software device only small batches are computed right.
    asked += ["--ubatch", "8", "--cpu-moe", "all"] if plan.gpu else []
    reply = _json(run(plan, plan.command, ["chat", "--demo", *asked, *base]))
    if ANSWER not in reply["text"]:
        raise DevError(f"The sample model answered {reply['text']!r}.")
    model = next(plan.work.joinpath("base").rglob("*.gguf"), None)
    if model is None:
        raise DevError("The sample model was not built under --basedir.")
    inside = str(model.relative_to(plan.work)).replace("/", "\\" if "\\" in plan.there("") else "/")
    run(plan, plan.window, ["--screenshot", plan.there("first.png"), *base])
    run(plan, plan.window, [plan.there(inside), "--screenshot", plan.there("model.png"), *base])
    for picture in ("first.png", "model.png"):
        _check_picture(plan.work / picture)
    _hand_over(plan, model)
    in_memory = plan.environment.get("QT_QPA_PLATFORM") == "offscreen"
    expected = (*plan.expected_warnings, *([_NO_FRONT] if in_memory else []))
    for folder in ("base", "later"):
        _check_logs(plan.work / folder / "logs", expected)
    variant = doctor["cpu_variant"]
    elapsed = format_elapsed(time.monotonic() - started_s)
    say(f"      {label}: {version}, {variant}, {reply['tok_s']:.1f} tok/s, all good in {elapsed}")
    return {"doctor": doctor, "reply": reply}


def _hand_over(plan: Plan, model: Path) -> None:
    """An open window takes a file from a later start, and is closed by another."""
    shutil.copyfile(model, plan.work / LATER_MODEL)
    base = ["--basedir", plan.there("later")]
    logs = plan.work / "later" / "logs"
    window = Started(plan, plan.window, base)
    try:
        window.wait_for("listening for later starts", logs)
        run(plan, plan.window, [plan.there(LATER_MODEL), *base])
        window.wait_for(f"selected {plan.there(LATER_MODEL)}", logs)
        run(plan, plan.window, ["--quit", *base])
        window.output()
    finally:
        window.end()


def check_portable(program: Path, work: Path) -> None:
    """A folder ``portable`` beside the program takes all that it writes. It is taken away again.

    Raises :class:`DevError`.
    """
    home = work / "home"
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    folder = program.parent / "portable"
    folder.mkdir()
    try:
        doctor = _json(run(Plan(program, work), [str(program)], ["doctor", "--json"]))
        if Path(doctor["config"]).parent != folder or not (folder / "logs").is_dir():
            raise DevError(f"The portable copy writes to {doctor['config']}.")
    finally:
        shutil.rmtree(folder)
    left = [str(path.relative_to(home)) for path in home.rglob("*") if path.is_file()]
    if left:
        raise DevError(f"The portable copy wrote into the home folder: {left}")
    say("      a portable copy keeps its things beside itself")


def _json(text: str) -> dict[str, Any]:
    try:
        document = json.loads(text)
    except ValueError as error:
        raise DevError(f"That is no JSON document: {text[:500]!r}") from error
    if not isinstance(document, dict):
        raise DevError(f"That is no JSON object: {text[:500]!r}")
    return document


def _check_doctor(doctor: Mapping[str, Any], plan: Plan) -> None:
    if not doctor["cpu_variant"]:
        raise DevError("The bundle's llama.cpp has no processor variants.")
    if not doctor["build"]:
        raise DevError("The bundle does not know how it was built.")
    bad = [v for v in doctor["verdicts"] if v["subject"] == "llama.cpp" and v["level"] == "bad"]
    if bad:
        raise DevError(f"The doctor says: {bad}")
    gpus = [device for device in doctor["devices"] if device["kind"] in ("gpu", "igpu")]
    if plan.gpu is not None and bool(gpus) != plan.gpu:
        raise DevError(f"GPUs found: {gpus}, notes: {doctor['build_notes']}")


def _check_picture(file: Path) -> None:
    data = file.read_bytes() if file.exists() else b""
    if not data.startswith(b"\x89PNG") or len(data) < 10_000:
        raise DevError(f"{file.name} is no picture of a window ({len(data)} bytes).")


def _check_logs(folder: Path, expected: Sequence[str]) -> None:
    wrong = [
        line
        for line in log_text(folder).splitlines()
        if any(f" {level} " in line for level in ("WARNING", "ERROR", "CRITICAL"))
        and not any(text in line for text in expected)
    ]
    if wrong:
        raise DevError("The log has warnings:\n" + "\n".join(wrong[:20]))


# ------------------------------------------------------------------------- a bare system


def run_in_bare_roots(program: Path, work: Path) -> None:
    """:func:`run_in_bare_root` without a Vulkan driver, then with one."""
    run_in_bare_root(program, work / "plain", vulkan=False)
    run_in_bare_root(program, work / "vulkan", vulkan=True)


def run_in_bare_root(program: Path, work: Path, *, vulkan: bool) -> None:
    """The same on a system without Python, Qt or compiler, on an X screen of its own."""
    if reason := bare_root.can_make():
        raise DevError(f"No bare root can be made: {reason}.")
    root = bare_root.make_root(vulkan=vulkan)
    folders = {program.parent.resolve(): _PROGRAM_THERE, work.resolve(): _WORK_THERE}
    work.mkdir(parents=True, exist_ok=True)
    with x_screen() as display:
        plan = Plan(
            program=program,
            work=work / "run",
            # As under /usr or from a mounted image.
            prefix=tuple(
                bare_root.enter_command(root, folders, [], read_only=[program.parent.resolve()])
            ),
            program_there=f"{_PROGRAM_THERE}/{program.name}",
            work_there=f"{_WORK_THERE}/run",
            # llama.cpp takes a software device only when it is named.
            environment={"DISPLAY": display} | ({"GGML_VK_VISIBLE_DEVICES": "0"} if vulkan else {}),
            gpu=vulkan,
            # llama.cpp's own remark on experts in RAM, and that there is no Vulkan here.
            expected_warnings=((_MAPPED_EXPERTS,) if vulkan else ("libvulkan.so.1: cannot open",)),
        )
        label = "a bare system " + ("with the software Vulkan driver" if vulkan else "")
        run_smoke(plan, label.strip())


# ------------------------------------------------------------------------- Windows


def run_on_windows(program: Path, work: Path, prefix: wine_run.Prefix | None = None) -> None:
    """The same with a Windows bundle: on Windows itself, or by Wine in ``prefix``.

    Under Wine Qt paints into memory, since its Windows screen dies there at the first window. Where
    this machine has a Vulkan driver, Windows programs see it through Wine, and it is used too.
    """
    commands = program.with_name("moelauncher-cli.exe")
    if prefix is None:
        run_smoke(Plan(program, work, commands_program=str(commands)), "Windows")
        return
    variables = prefix.environment()
    expected = (_NO_COUNTERS,)
    with (
        x_screen() as display,
        wine_run.awake({**variables, "DISPLAY": display}),
    ):
        plan = Plan(
            program,
            work / "plain",
            prefix=("wine",),
            work_there=str(wine_run.windows_path(work / "plain")),
            environment={
                **{name: variables[name] for name in variables if name.startswith("WINE")},
                "HOME": str(work),
                "DISPLAY": display,
                "QT_QPA_PLATFORM": "offscreen",
            },
            commands_program=str(commands),
            expected_warnings=expected,
        )
        run_smoke(plan, "Wine")
        if dev_system.missing_vulkan(compiles=False):
            say("      without a Vulkan driver here, the Vulkan module was loaded but not used")
            return
        gpu = replace(
            plan,
            work=work / "gpu",
            work_there=str(wine_run.windows_path(work / "gpu")),
            environment={**plan.environment, "GGML_VK_VISIBLE_DEVICES": "0"},
            gpu=True,
            expected_warnings=(*expected, _MAPPED_EXPERTS),
        )
        run_smoke(gpu, "Wine, with this machine's Vulkan driver")


def screen_here(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The variables of this machine's screen; without one, Qt paints into memory."""
    names = ("DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "XDG_RUNTIME_DIR")
    if not (environ.get("DISPLAY") or environ.get("WAYLAND_DISPLAY")):
        return {"QT_QPA_PLATFORM": "offscreen"}
    return {name: environ[name] for name in names if name in environ}


@contextmanager
def x_screen() -> Iterator[str]:
    """The name of an X screen that lives as long as the block."""
    if not shutil.which("Xvfb"):
        raise DevError("Xvfb is missing (Debian: apt install xvfb).")
    reader, writer = os.pipe()
    process = subprocess.Popen(
        ["Xvfb", "-displayfd", str(writer), "-screen", "0", "1600x1000x24", "-nolisten", "tcp"],
        pass_fds=(writer,),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(writer)
    try:
        with os.fdopen(reader) as answer:
            number = answer.readline().strip()
        if not number:
            raise DevError("Xvfb did not start.")
        yield f":{number}"
    finally:
        process.terminate()
        process.wait()


def _wine_prefix() -> wine_run.Prefix | None:
    """The prefix of the packages' Windows Python, made where it is missing."""
    if sys.platform == "win32":
        return None
    import windows_python

    return windows_python.make().prefix("build")


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code."""
    parser = argparse.ArgumentParser(allow_abbrev=False, description=__doc__.splitlines()[0])
    parser.add_argument("program", type=Path)
    parser.add_argument("--bare-root", action="store_true", help="also where nothing is installed")
    options = parser.parse_args(arguments)
    program = options.program.resolve()
    try:
        with tempfile.TemporaryDirectory(prefix="moelauncher-smoke-") as work:
            if program.suffix == ".exe":
                run_on_windows(program, Path(work) / "windows", _wine_prefix())
                return 0
            run_smoke(Plan(program, Path(work) / "here", environment=screen_here()))
            if options.bare_root:
                run_in_bare_roots(program, Path(work) / "bare")
    except DevError as error:
        print(f"\n{error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
