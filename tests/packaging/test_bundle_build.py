"""Parts of the packages' build that need no compiler and no PyInstaller."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import bundle_build
import dev_llama
import pytest

import moelauncher


def test_version_is_the_programs() -> None:
    assert bundle_build.program_version() == moelauncher.__version__


def test_the_bundle_gets_the_programs_libraries_but_its_own_llama_cpp() -> None:
    wanted = bundle_build.requirements()
    names = {text.split(">")[0].split("=")[0].split("<")[0] for text in wanted}
    assert {"PySide6-Essentials", "pyqtgraph", "huggingface_hub", "jinja2", "pyinstaller"} <= names
    assert dev_llama.PACKAGE not in names


def test_loadable_build_does_not_depend_on_this_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    before = dev_llama.loadable_build("0.3.36")
    native = dev_llama.native_build("0.3.36")
    monkeypatch.setattr(dev_llama, "processor_features", lambda: "another")
    assert dev_llama.loadable_build("0.3.36") == before
    assert dev_llama.native_build("0.3.36") != native
    flags = dev_llama.flags_of("loadable")
    assert "-DGGML_NATIVE=OFF" in flags and "-DGGML_CPU_ALL_VARIANTS=ON" in flags


def test_checksums_are_read_by_sha256sum(tmp_path: Path) -> None:
    (tmp_path / "b.deb").write_bytes(b"b")
    (tmp_path / "a.tar.gz").write_bytes(b"a")
    bundle_build.write_checksums(tmp_path, [tmp_path / "b.deb", tmp_path / "a.tar.gz"])
    assert (tmp_path / "SHA256SUMS").read_text(encoding="utf-8") == (
        f"{hashlib.sha256(b'a').hexdigest()}  a.tar.gz\n{hashlib.sha256(b'b').hexdigest()}  b.deb\n"
    )


def test_checksums_of_the_other_systems_packages_stay_while_they_are_there(tmp_path: Path) -> None:
    linux, windows = tmp_path / "a.deb", tmp_path / "b.zip"
    linux.write_bytes(b"a")
    bundle_build.write_checksums(tmp_path, [linux])
    windows.write_bytes(b"b")
    bundle_build.write_checksums(tmp_path, [windows])
    text = (tmp_path / "SHA256SUMS").read_text(encoding="utf-8")
    assert [line.split()[1] for line in text.splitlines()] == ["a.deb", "b.zip"]
    linux.unlink()
    bundle_build.write_checksums(tmp_path, [windows])
    text = (tmp_path / "SHA256SUMS").read_text(encoding="utf-8")
    assert [line.split()[1] for line in text.splitlines()] == ["b.zip"]


def test_environment_is_kept_until_what_it_is_made_of_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[str] = []

    def run(command: list[str], **_: object) -> None:
        ran.append(str(command[2]))
        (tmp_path / "linux" / "venv").mkdir(parents=True, exist_ok=True)

    monkeypatch.setattr(bundle_build, "run_logged", run)
    places = bundle_build.Places(tmp_path / "linux", tmp_path / "dist")
    bundle_build.make_environment(places, sample=True)
    assert ran == ["venv", "pip", "pip"]
    made = bundle_build.make_environment(places, sample=True)
    assert len(ran) == 3
    bundle_build.make_environment(places, sample=False)
    assert ran[3:] == ["venv", "pip"]
    assert json.loads((made.venv / "moelauncher-package.json").read_text(encoding="utf-8"))
