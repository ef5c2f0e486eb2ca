"""The CUDA module: which toolkit is taken, what is made of packages, what the archive holds."""

from __future__ import annotations

import os
import sys
import zipfile
from pathlib import Path

import cuda_module
import pytest
from dev_console import DevError

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="laid out as on Linux")

DRYRUN = """#!/bin/sh
echo "#$ _HERE_={root}/bin" >&2
echo "#$ TOP={root}/bin/.." >&2
"""


def make_toolkit(root: Path, libraries: tuple[str, ...] = cuda_module.RUNTIME) -> Path:
    for folder in ("bin", "lib64", "nvvm/bin"):
        (root / folder).mkdir(parents=True)
    for name in libraries:
        (root / "lib64" / f"lib{name}.so.13").write_text(name, encoding="utf-8")
        (root / "lib64" / f"lib{name}.so.13.0.88").write_text(name, encoding="utf-8")
    compiler = root / "bin" / "nvcc"
    compiler.write_text(DRYRUN.format(root=root), encoding="utf-8")
    compiler.chmod(0o755)
    return root


def test_toolkit_is_named_or_found_by_its_compiler(tmp_path: Path) -> None:
    root = make_toolkit(tmp_path / "cuda-13")
    assert cuda_module.installed_toolkit({"PATH": "", "CUDA_PATH": str(root)}).root == root
    # A script on the path that calls the compiler, as some systems have.
    (tmp_path / "bin").mkdir()
    script = tmp_path / "bin" / "nvcc"
    script.write_text(f'#!/bin/sh\nexec {root}/bin/nvcc "$@"\n', encoding="utf-8")
    script.chmod(0o755)
    path = {"PATH": f"{tmp_path / 'bin'}{os.pathsep}/usr/bin{os.pathsep}/bin"}
    toolkit = cuda_module.installed_toolkit(path)
    assert toolkit is not None and toolkit.root == root and toolkit.has_driver_library


def test_toolkit_without_its_libraries_does_not_serve(tmp_path: Path) -> None:
    root = make_toolkit(tmp_path / "cuda-13", ("cudart",))
    assert cuda_module.installed_toolkit({"PATH": "", "CUDA_HOME": str(root)}) is None
    assert cuda_module.installed_toolkit({"PATH": "", "CUDA_PATH": str(tmp_path / "no")}) is None
    assert cuda_module.installed_toolkit({"PATH": str(tmp_path)}) is None


def test_packages_are_made_a_toolkit_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    kit = tmp_path / "toolkit"

    def install(command: list[str], **_: object) -> None:
        calls.append(command)
        root = Path(command[command.index("--target") + 1]) / "nvidia" / "cu13"
        for name in ("bin/nvcc", "nvvm/bin/cicc", "lib/libcudart.so.13", "lib/libcublas.so.13"):
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(name, encoding="utf-8")

    monkeypatch.setattr(cuda_module, "run_logged", install)
    for _ in range(2):
        toolkit = cuda_module.packaged_toolkit(tmp_path / "tools", kit, tmp_path / "log")
    assert len(calls) == 1 and "nvidia-cublas==13.*" in calls[0]
    root = toolkit.root
    assert os.access(toolkit.compiler, os.X_OK) and os.access(root / "nvvm/bin/cicc", os.X_OK)
    assert (root / "lib64" / "libcudart.so").resolve().name == "libcudart.so.13"
    assert not toolkit.has_driver_library


def test_toolkit_whose_packages_were_broken_off_is_taken_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    endings: list[type[BaseException] | None] = [KeyboardInterrupt, None]
    kit = tmp_path / "toolkit"

    def install(command: list[str], **_: object) -> None:
        root = Path(command[command.index("--target") + 1]) / "nvidia" / "cu13"
        for name in ("bin/nvcc", "nvvm/bin/cicc", "lib/libcudart.so.13"):
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(name, encoding="utf-8")
            if name == "bin/nvcc" and (ending := endings.pop(0)):
                raise ending

    monkeypatch.setattr(cuda_module, "run_logged", install)
    with pytest.raises(KeyboardInterrupt):
        cuda_module.packaged_toolkit(tmp_path / "tools", kit, tmp_path / "log")
    toolkit = cuda_module.packaged_toolkit(tmp_path / "tools", kit, tmp_path / "log")
    assert not endings
    assert (toolkit.root / "nvvm/bin/cicc").exists() and list(tmp_path.iterdir()) == [kit]


def test_packages_that_cannot_be_had_are_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: object, **_: object) -> None:
        raise DevError("no network")

    monkeypatch.setattr(cuda_module, "run_logged", fail)
    with pytest.raises(DevError, match="Install the CUDA toolkit"):
        cuda_module.packaged_toolkit(tmp_path / "tools", tmp_path / "kit", tmp_path / "log")


def test_archive_holds_the_module_and_what_it_asks_for(tmp_path: Path) -> None:
    root = make_toolkit(tmp_path / "cuda-13")
    module = tmp_path / "libggml-cuda.so"
    module.write_text("module", encoding="utf-8")
    toolkit = cuda_module.Toolkit(root, has_driver_library=True)
    folder = cuda_module.collect(module, toolkit, tmp_path / "cuda")
    file = cuda_module.pack(folder, tmp_path / "dist", "moelauncher-0.1.0-cuda-module")
    with zipfile.ZipFile(file) as archive:
        assert sorted(archive.namelist()) == [
            "cuda/libcublas.so.13",
            "cuda/libcublasLt.so.13",
            "cuda/libcudart.so.13",
            "cuda/libggml-cuda.so",
        ]
    assert list(file.parent.iterdir()) == [file]
    with pytest.raises(DevError, match="cudart"):
        empty = cuda_module.Toolkit(tmp_path / "empty", has_driver_library=True)
        cuda_module.collect(module, empty, tmp_path / "other")
