"""A compiled wheel is used again only where it is the very same build."""

from __future__ import annotations

import tomllib
import zipfile
from pathlib import Path

import dev
import dev_llama
import pytest
from dev_console import DevError

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
        dev_llama.key_of("0.3.36", "native-vulkan", ("-DA=ON",), "avx2"),
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
    return dev_llama.Build("0.3.36", "native-vulkan", folder)


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
