"""The door to llama.cpp: devices, log lines, and what stands in the way on Windows."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from moelauncher.core.errors import LauncherError
from moelauncher.core.memory.default_gpus import default_gpus
from moelauncher.engine import native
from moelauncher.engine.devices import list_devices
from moelauncher.engine.native import _drop_stale_toolkit_paths, _LogRouter, load_native, log_to


def test_cpu_is_a_device_and_no_gpu() -> None:
    cpu = next(device for device in list_devices() if device.kind == "cpu")
    assert cpu.name == "CPU"
    assert cpu.total_bytes and cpu.total_bytes > 2**28
    assert cpu not in default_gpus(list_devices())


def test_library_is_loaded_once() -> None:
    assert load_native() is load_native()


def test_missing_package_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_such_module(name: str) -> None:
        raise ModuleNotFoundError(f"No module named {name!r}")

    monkeypatch.setattr(native, "_loaded", None)
    monkeypatch.setattr(native.importlib, "import_module", no_such_module)
    with pytest.raises(LauncherError) as caught:
        load_native()
    assert "pip install llama-cpp-python" in caught.value.hint


def test_library_that_does_not_load_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(name: str) -> None:
        raise RuntimeError("Failed to load shared library: wrong ELF class")

    monkeypatch.setattr(native, "_loaded", None)
    monkeypatch.setattr(native.importlib, "import_module", broken)
    with pytest.raises(LauncherError) as caught:
        load_native()
    assert "wrong ELF class" in caught.value.details


def test_path_of_an_uninstalled_toolkit_is_dropped(tmp_path: Path) -> None:
    whole = tmp_path / "hip"
    (whole / "bin").mkdir(parents=True)
    (whole / "lib").mkdir()
    environ = {"CUDA_PATH": str(tmp_path / "gone"), "HIP_PATH": str(whole), "PATH": "x"}
    (note,) = _drop_stale_toolkit_paths(environ)
    assert environ == {"HIP_PATH": str(whole), "PATH": "x"}
    assert "CUDA_PATH" in note


def lines_of(*pieces: tuple[int, bytes]) -> list[tuple[str, str]]:
    router, lines = _LogRouter(), []
    before = router.open(lambda level, text: lines.append((level, text)))
    for level, text in pieces:
        router.receive(level, text)
    router.close(before)
    return lines


def test_pieces_are_joined_to_lines() -> None:
    assert lines_of((2, b"load"), (5, b"ing\nnext\n"), (3, b"careful\n")) == [
        ("info", "loading"),
        ("info", "next"),
        ("warning", "careful"),
    ]


def test_dots_of_progress_end_with_the_next_line() -> None:
    assert lines_of((2, b"."), (5, b"."), (5, b"."), (4, b"broken\n")) == [
        ("info", "..."),
        ("error", "broken"),
    ]


def test_rest_without_an_end_is_delivered_at_the_end() -> None:
    assert lines_of((1, b"half")) == [("debug", "half")]


def test_bytes_that_are_no_text_do_not_get_lost() -> None:
    assert lines_of((2, b"name = \xff\n")) == [("info", "name = \ufffd")]


def test_each_thread_logs_to_its_own_sink() -> None:
    router = _LogRouter()
    mine: list[str] = []
    theirs: list[str] = []

    def other_thread() -> None:
        before = router.open(lambda _level, text: theirs.append(text))
        router.receive(2, b"theirs\n")
        router.close(before)

    router.open(lambda _level, text: mine.append(text))
    thread = threading.Thread(target=other_thread)
    thread.start()
    thread.join()
    router.receive(2, b"mine\n")
    assert (mine, theirs) == (["mine"], ["theirs"])


def test_lines_of_a_native_helper_thread_go_to_the_open_sink() -> None:
    router, lines = _LogRouter(), []
    router.open(lambda _level, text: lines.append(text))
    thread = threading.Thread(target=lambda: router.receive(2, b"from below\n"))
    thread.start()
    thread.join()
    assert lines == ["from below"]


def test_sinks_nest() -> None:
    outer: list[str] = []
    inner: list[str] = []
    lib = load_native().lib
    with log_to(lambda _level, text: outer.append(text)):
        with log_to(lambda _level, text: inner.append(text)):
            assert not lib.llama_model_load_from_file(
                b"/nowhere/inner.gguf", lib.llama_model_default_params()
            )
        assert not lib.llama_model_load_from_file(
            b"/nowhere/outer.gguf", lib.llama_model_default_params()
        )
    assert any("inner.gguf" in line for line in inner)
    assert any("outer.gguf" in line for line in outer)
    assert not any("inner.gguf" in line for line in outer)


def test_lines_after_the_end_of_python_go_nowhere() -> None:
    code = """
from moelauncher.engine.native import _close_log, load_native, log_to
lib, lines = load_native().lib, []
def load_nothing():
    assert not lib.llama_model_load_from_file(b"/nowhere", lib.llama_model_default_params())
with log_to(lambda level, text: lines.append(text)):
    load_nothing()
    before = len(lines)
    _close_log(lib)
    load_nothing()
print(before > 0, len(lines) == before)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=240, check=True
    )
    assert (done.stdout.split(), done.stderr) == (["True", "True"], "")
