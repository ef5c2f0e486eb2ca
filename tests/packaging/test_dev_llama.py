"""A compiled wheel is used again only where it is the very same build."""

from __future__ import annotations

import json
import sys
import tomllib
import zipfile
from pathlib import Path

import dev
import dev_llama
import pytest
from dev_console import DevError
from dev_vulkan import VulkanSdk

from tests.helpers.places import build_cache


def test_pin_is_read_from_the_project_file():
    project = dev.PROJECT.read_text(encoding="utf-8")
    version = dev_llama.pinned_version(project)
    assert f"llama-cpp-python=={version}" in tomllib.loads(project)["project"]["dependencies"]
    with pytest.raises(DevError):
        dev_llama.pinned_version("dependencies = []")


def test_key_tells_builds_apart():
    keys = {
        dev_llama.key_of("0.3.36", "native-cpu", ("-DA=ON",), "avx2"),
        dev_llama.key_of("0.3.37", "native-cpu", ("-DA=ON",), "avx2"),
        dev_llama.key_of("0.3.36", "loadable", ("-DA=ON",), "avx2"),
        dev_llama.key_of("0.3.36", "native-cpu", ("-DA=OFF",), "avx2"),
        dev_llama.key_of("0.3.36", "native-cpu", ("-DA=ON",), "avx2 avx512f"),
    }
    assert len(keys) == 5
    assert all(key.startswith("llama_cpp_python-0.3.3") for key in keys)


@pytest.mark.parametrize(
    ("cpuinfo", "features"),
    [
        (
            "processor\t: 0\nflags\t\t: sse2 avx2 fma\n\nprocessor\t: 1\nflags\t\t: x\n",
            "avx2 fma sse2",
        ),
        ("processor\t: 0\nFeatures\t: fp asimd\n", "asimd fp"),
        ("processor\t: 0\n", ""),
    ],
)
def test_processor_features_in_any_order_are_the_same(cpuinfo, features):
    assert dev_llama.features_of(cpuinfo) == features


def test_cache_can_be_moved(tmp_path):
    assert dev_llama.cache_folder({"MOELAUNCHER_BUILD_CACHE": str(tmp_path)}) == tmp_path
    for environ in ({"MOELAUNCHER_BUILD_CACHE": str(tmp_path)}, {"XDG_CACHE_HOME": "x"}, {}):
        assert dev_llama.cache_folder(environ) == build_cache(environ)


@pytest.mark.parametrize(
    ("member", "is_vulkan"),
    [
        ("llama_cpp/lib/libggml-vulkan.so", True),
        ("lib/libggml-vulkan.so.0.25.3", True),
        ("llama_cpp/lib/ggml-vulkan.dll", True),
        ("include/ggml-vulkan.h", False),
        ("llama_cpp/lib/libggml-vulkan-shaders.so", False),
    ],
)
def test_header_is_not_taken_for_the_backend(member, is_vulkan):
    assert dev_llama.is_library(member, "ggml-vulkan") is is_vulkan


def make_build(folder: Path) -> dev_llama.Build:
    folder.mkdir()
    with zipfile.ZipFile(folder / "llama_cpp_python-0.3.36-py3-none-any.whl", "w") as archive:
        archive.writestr("llama_cpp/__init__.py", "")
        archive.writestr("llama_cpp/lib/libggml-vulkan.so", "library")
        archive.writestr("lib/libggml-vulkan.so", "library")
    return dev_llama.Build("0.3.36", "loadable", folder)


def test_unpacked_build_holds_the_package_alone(tmp_path):
    build = make_build(tmp_path / "build")
    folder = dev_llama.unpack(build)
    assert [path.name for path in folder.iterdir()] == ["llama_cpp"]
    assert (folder / "llama_cpp" / "lib" / "libggml-vulkan.so").exists()
    assert dev_llama.unpack(build) == folder


def test_build_without_a_wheel_is_none(tmp_path):
    (tmp_path / "half").mkdir()
    assert dev_llama.Build("0.3.36", "native-cpu", tmp_path / "half").wheel is None
    assert dev_llama.Build("0.3.36", "native-cpu", tmp_path / "absent").wheel is None


FAKE_PIP = """
import json, os, sys, zipfile
from pathlib import Path
folder = Path(sys.argv[sys.argv.index("--wheel-dir") + 1])
with zipfile.ZipFile(folder / "llama_cpp_python-0.3.36-py3-none-any.whl", "w") as archive:
    for member in os.environ["FAKE_MEMBERS"].split():
        archive.writestr(member, "")
seen = {"arguments": sys.argv[1:], "environment": dict(os.environ)}
Path(os.environ["FAKE_SEEN"]).write_text(json.dumps(seen), encoding="utf-8")
sys.exit(int(os.environ.get("FAKE_EXIT", "0")))
"""


@pytest.fixture
def fake_pip(tmp_path, monkeypatch):
    """A pip that writes a wheel with the members in FAKE_MEMBERS, and tells how it was called."""
    (tmp_path / "fake" / "pip").mkdir(parents=True)
    (tmp_path / "fake" / "pip" / "__main__.py").write_text(FAKE_PIP, encoding="utf-8")
    (tmp_path / "fake" / "pip" / "__init__.py").write_text("", encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "fake"))
    monkeypatch.setenv("FAKE_SEEN", str(tmp_path / "seen.json"))
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    return lambda: json.loads((tmp_path / "seen.json").read_text(encoding="utf-8"))


def test_compiled_wheel_is_kept_and_pips_own_cache_is_not_asked(tmp_path, fake_pip, monkeypatch):
    monkeypatch.setenv("FAKE_MEMBERS", "llama_cpp/lib/libggml-cpu-haswell.so include/ggml-vulkan.h")
    build = dev_llama.Build("0.3.36", "loadable", tmp_path / "cache" / "key")
    dev_llama.compile_wheel(build, Path(sys.executable), VulkanSdk(include=Path("headers")))
    assert build.wheel is not None
    assert {path.name for path in (tmp_path / "cache").iterdir()} == {"key", "locks", "logs"}
    seen = fake_pip()
    assert "--no-cache-dir" in seen["arguments"]
    assert "llama-cpp-python==0.3.36" in seen["arguments"]
    flags = seen["environment"]["CMAKE_ARGS"].split()
    assert {"-DGGML_VULKAN=ON", "-DLLAVA_BUILD=OFF", "-DVulkan_INCLUDE_DIR=headers"} <= set(flags)
    assert "SOURCE_DATE_EPOCH" not in seen["environment"]


def test_wheel_without_the_wanted_backend_is_refused(tmp_path, fake_pip, monkeypatch):
    monkeypatch.setenv("FAKE_MEMBERS", "llama_cpp/lib/libggml-cpu.so include/ggml-vulkan.h")
    build = dev_llama.Build("0.3.36", "loadable", tmp_path / "cache" / "key")
    with pytest.raises(DevError, match="without ggml-cpu-haswell"):
        dev_llama.compile_wheel(build, Path(sys.executable), VulkanSdk())
    assert build.wheel is None


def test_build_that_another_run_finished_meanwhile_is_not_made_again(
    tmp_path, fake_pip, monkeypatch
):
    monkeypatch.setenv("FAKE_EXIT", "1")
    build = dev_llama.Build("0.3.36", "loadable", tmp_path / "cache" / "key")
    build.folder.mkdir(parents=True)
    (build.folder / "llama_cpp_python-0.3.36-py3-none-any.whl").touch()
    dev_llama.compile_wheel(build, Path(sys.executable))
    assert not (tmp_path / "seen.json").exists()


def test_failed_build_leaves_nothing_to_mistake_for_a_finished_one(tmp_path, fake_pip, monkeypatch):
    monkeypatch.setenv("FAKE_MEMBERS", "llama_cpp/lib/libggml-cpu.so")
    monkeypatch.setenv("FAKE_EXIT", "1")
    build = dev_llama.Build("0.3.36", "native-cpu", tmp_path / "cache" / "key")
    with pytest.raises(DevError, match="compiling"):
        dev_llama.compile_wheel(build, Path(sys.executable))
    assert build.wheel is None
    assert {path.name for path in (tmp_path / "cache").iterdir()} == {"locks", "logs"}


def test_ready_wheel_comes_from_upstreams_index_and_never_from_sources(
    tmp_path, fake_pip, monkeypatch
):
    monkeypatch.setenv("FAKE_MEMBERS", "llama_cpp/lib/ggml.dll")
    build = dev_llama.Build("0.3.36", "cu124", tmp_path / "cache" / "key")
    dev_llama.fetch_wheel(build, Path(sys.executable))
    assert build.wheel is not None
    arguments = fake_pip()["arguments"]
    assert arguments[arguments.index("--only-binary") + 1] == "llama-cpp-python"
    assert arguments[arguments.index("--extra-index-url") + 1].endswith("/whl/cu124")


def test_missing_ready_wheel_names_the_other_ways(tmp_path, fake_pip, monkeypatch):
    monkeypatch.setenv("FAKE_MEMBERS", "")
    monkeypatch.setenv("FAKE_EXIT", "1")
    build = dev_llama.Build("0.3.36", "rocm72", tmp_path / "cache" / "key")
    with pytest.raises(DevError, match="--wheels build"):
        dev_llama.fetch_wheel(build, Path(sys.executable))
