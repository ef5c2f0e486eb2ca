"""Loadable modules: which are taken, what is said of the others, and none from elsewhere."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from moelauncher.core.errors import LauncherError
from moelauncher.core.helper_python import helper_python
from moelauncher.engine import broken_backends
from moelauncher.engine.backend_modules import (
    BACKENDS_VARIABLE,
    BROKEN_VARIABLE,
    CPU_VARIANT_VARIABLE,
    LoadedModules,
    find_modules,
    load_modules,
    wish_for,
)
from moelauncher.engine.broken_backends import BrokenBackends, driver_fingerprint, suspect_of
from moelauncher.engine.child import Child
from moelauncher.engine.dry_run import describe_build, describe_devices
from tests.helpers.backend_stub import make_module, real_libraries

linux_only = pytest.mark.skipif(sys.platform == "win32", reason="compiles modules with cc")


class Registry:
    """Takes what is registered, as ggml does."""

    def __init__(self) -> None:
        self.n_registered = 0

    def ggml_backend_register(self, _registry: object) -> None:
        self.n_registered += 1


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, score in {"x64": 1, "haswell": 64, "zen4": 0}.items():
        make_module(tmp_path, f"cpu-{name}", score=score)
    return tmp_path


def load(folder: Path, **environ: str) -> tuple[LoadedModules, int]:
    registry = Registry()
    return load_modules(registry, folder, environ=environ), registry.n_registered


def test_a_build_in_one_piece_has_no_modules(tmp_path: Path) -> None:
    for name in ("libggml-cpu.so", "libggml-base.so", "libggml-vulkan.so", "libggml.so"):
        (tmp_path / name).write_bytes(b"")
    assert find_modules(tmp_path) == {}
    assert load(tmp_path) == (LoadedModules(), 0)
    assert find_modules(tmp_path / "gone") == {}


def test_both_systems_names_are_modules(tmp_path: Path) -> None:
    for name in ("ggml-cpu-zen4.dll", "ggml-vulkan.dll", "ggml-base.dll", "llama.dll", "x.so"):
        (tmp_path / name).write_bytes(b"")
    assert set(find_modules(tmp_path)) == {"cpu-zen4", "vulkan"}


@linux_only
def test_a_module_may_lie_in_a_folder_with_its_own_libraries(folder: Path) -> None:
    (folder / "cuda").mkdir()
    make_module(folder / "cuda", "cuda", n_devices=1)
    assert find_modules(folder)["cuda"] == folder / "cuda" / "libggml-cuda.so"
    modules, n_registered = load(folder)
    assert modules.gpu == ("cuda",) and n_registered == 2
    unwanted, n_registered = load(folder, MOELAUNCHER_BACKENDS="none")
    assert (unwanted.gpu, unwanted.gpu_found, n_registered) == ((), ("cuda",), 1)
    # One that lies beside the others is the packager's own.
    make_module(folder, "cuda")
    assert find_modules(folder)["cuda"] == folder / "libggml-cuda.so"


@linux_only
def test_an_addition_that_finds_no_gpu_is_named_and_left_out(folder: Path) -> None:
    (folder / "cuda").mkdir()
    make_module(folder / "cuda", "cuda")
    make_module(folder, "vulkan")
    modules, n_registered = load(folder)
    assert (modules.gpu, n_registered) == (("vulkan",), 2)
    assert modules.not_loaded == {
        "cuda": "The module “cuda” is not used: it finds no GPU, or its driver is missing or too "
        "old."
    }


@linux_only
def test_the_best_variant_that_the_processor_can_run_is_taken(folder: Path) -> None:
    loaded, n_registered = load(folder)
    assert (loaded.cpu_variant, n_registered) == ("haswell", 1)
    assert loaded.cpu_usable == ("haswell", "x64")
    assert loaded.notes == ()


@linux_only
def test_a_variant_can_be_forced(folder: Path) -> None:
    assert load(folder, **{CPU_VARIANT_VARIABLE: "X64"})[0].cpu_variant == "x64"


@linux_only
@pytest.mark.parametrize(
    ("wish", "sentence"),
    [
        ("zen4", "This processor cannot run the variant “zen4” of llama.cpp."),
        ("8086", "This build of llama.cpp has no processor variant “8086”."),
    ],
)
def test_a_variant_that_cannot_be_is_refused_in_words(
    folder: Path, wish: str, sentence: str
) -> None:
    loaded, n_registered = load(folder, **{CPU_VARIANT_VARIABLE: wish})
    assert (loaded.cpu_variant, n_registered) == ("haswell", 1)
    assert loaded.notes == (f"{sentence} It can run: haswell, x64.",)


@linux_only
def test_gpu_modules_are_loaded_unless_the_user_wants_others(folder: Path) -> None:
    make_module(folder, "vulkan")
    make_module(folder, "cuda")
    assert load(folder)[0].gpu == ("cuda", "vulkan")
    assert load(folder, **{BACKENDS_VARIABLE: "Vulkan"})[0].gpu == ("vulkan",)
    loaded, _ = load(folder, **{BACKENDS_VARIABLE: "none"})
    assert (loaded.gpu, loaded.notes) == ((), ())


@linux_only
def test_a_module_that_fails_is_named_with_its_reason_and_the_rest_works(folder: Path) -> None:
    (folder / "libggml-cuda.so").write_bytes(b"not a library")
    make_module(folder, "vulkan", start=False)
    make_module(folder, "sycl", version=1)
    loaded, n_registered = load(folder)
    assert (loaded.gpu, loaded.cpu_variant, n_registered) == ((), "haswell", 1)
    assert loaded.not_loaded == {
        "cuda": "The module “cuda” is not used: its library does not load "
        "(libggml-cuda.so: file too short).",
        "vulkan": "The module “vulkan” is not used: its driver is missing or does not start.",
        "sycl": "The module “sycl” is not used: it belongs to another version of llama.cpp.",
    }


@linux_only
def test_each_module_is_announced_before_it_is_touched(folder: Path) -> None:
    make_module(folder, "vulkan")
    announced: list[str] = []
    load_modules(Registry(), folder, environ={}, announce=announced.append)
    assert announced == ["vulkan", "cpu-haswell"]


@linux_only
def test_the_current_folder_is_never_searched(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    make_module(elsewhere, "vulkan", crash=True)
    make_module(elsewhere, "cpu-best", score=1000)
    monkeypatch.chdir(elsewhere)
    loaded, _ = load(folder)
    assert (loaded.gpu, loaded.cpu_variant) == ((), "haswell")


def test_settings_become_wishes_and_the_environment_weighs_more() -> None:
    environ = {BACKENDS_VARIABLE: "cuda"}
    wish_for("vulkan", "haswell", environ)
    assert environ == {BACKENDS_VARIABLE: "cuda", CPU_VARIANT_VARIABLE: "haswell"}
    wish_for("auto", "", environ := {})
    assert environ == {}


# Modules that crash: the child is started again without them.


@pytest.mark.parametrize(
    ("lines", "suspect"),
    [
        (["loading backend module: vulkan", "Segmentation fault"], "vulkan"),
        (["loading backend module: vulkan", "loading backend module: cpu-zen4"], None),
        (["loading backend module: (devices)"], "every-gpu"),
        (["loading backend module: (devices)", "loading backend module:"], None),
        ([], None),
    ],
)
def test_the_module_that_was_being_started_is_the_suspect(lines, suspect) -> None:
    assert suspect_of(lines) == suspect


@linux_only
def test_a_module_that_crashes_is_left_out_and_remembered(
    folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    make_module(folder, "vulkan", crash=True)
    monkeypatch.setenv("LLAMA_CPP_LIB_PATH", str(real_libraries(folder)))
    monkeypatch.delenv(BROKEN_VARIABLE, raising=False)
    monkeypatch.setenv("MOELAUNCHER_TEST_ENDS_HERE", "")  # so that delenv is undone at the end
    file = tmp_path / "cache" / "broken.json"
    broken = BrokenBackends(file)
    child = Child(broken=broken)
    try:
        assert [device.kind for device in describe_devices(child)] == ["cpu"]
        notes = describe_build(child).notes
    finally:
        child.close()
        environment = dict(broken._environ)
        broken._environ.pop(BROKEN_VARIABLE, None)
    assert environment[BROKEN_VARIABLE] == "vulkan"
    assert any("“vulkan” is not used: it crashed here before." in note for note in notes)

    later: dict[str, str] = {}
    assert BrokenBackends(file, environ=later).names == {"vulkan"}
    assert BrokenBackends(file, environ={}, fingerprint="another driver").names == frozenset()
    BrokenBackends(file, environ=later).forget()
    assert (later, file.exists()) == ({}, False)


def test_a_broken_memory_is_no_memory(tmp_path: Path) -> None:
    file = tmp_path / "broken.json"
    for text in ("", "[]", '{"names": 3}', '{"fingerprint": "f", "names": 3}'):
        file.write_text(text, encoding="utf-8")
        assert BrokenBackends(file, environ={}, fingerprint="f").names == frozenset()


def test_a_changed_driver_changes_the_fingerprint(tmp_path: Path) -> None:
    before = driver_fingerprint([tmp_path])
    (tmp_path / "nvidia_icd.json").write_text("{}", encoding="utf-8")
    assert driver_fingerprint([tmp_path]) != before
    assert driver_fingerprint([tmp_path / "gone"]) == before


def test_windows_notes_a_driver_s_version(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seen = set()
    for version in ("32.0.15.6094", "32.0.15.7652"):
        adapters = [{"DriverDesc": "GeForce RTX 4070", "DriverVersion": version}]
        monkeypatch.setattr(broken_backends, "display_adapters", lambda adapters=adapters: adapters)
        seen.add(driver_fingerprint([tmp_path]))
    assert len(seen) == 2


@linux_only
def test_a_child_that_crashes_for_another_reason_is_not_started_again(tmp_path: Path) -> None:
    script = "import os; os.write(2, b'loading backend module: cpu-zen4\\n'); os._exit(7)"
    environ: dict[str, str] = {}
    child = Child(command=[helper_python(), "-c", script], broken=BrokenBackends(environ=environ))
    try:
        with pytest.raises(LauncherError, match="crashed while it started"):
            child.request("devices")
    finally:
        child.close()
    assert environ == {}


@linux_only
def test_the_doctor_tells_of_a_module_that_does_not_load(folder: Path, tmp_path: Path) -> None:
    (folder / "libggml-vulkan.so").write_bytes(b"not a library")
    environment = os.environ | {"LLAMA_CPP_LIB_PATH": str(real_libraries(folder))}
    done = subprocess.run(
        [sys.executable, "-m", "moelauncher", "doctor", "--json", "--basedir", str(tmp_path / "b")],
        env=environment,
        capture_output=True,
        encoding="utf-8",
        timeout=240,
        check=False,
    )
    assert done.stderr == ""
    document = json.loads(done.stdout)
    told = [v["text"] for v in document["verdicts"] if "vulkan" in v["text"]]
    assert told and all(text in document["build_notes"] for text in told)
    assert "file too short" in told[0]
