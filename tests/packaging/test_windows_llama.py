"""llama.cpp for Windows, as far as it can be tried without compiling it."""

from __future__ import annotations

from pathlib import Path

import dev_llama
import dev_vulkan
import pytest
import windows_llama
from dev_console import DevError

from tests.packaging.windows_files import program_bytes

HEADER = """\
#define VK_VERSION_1_0 1
VKAPI_ATTR VkResult VKAPI_CALL vkCreateInstance(
VKAPI_ATTR void VKAPI_CALL vkCmdCopyBuffer(
VKAPI_ATTR void VKAPI_CALL vkCmdCopyBuffer(
#define VK_VERSION_1_1 1
VKAPI_ATTR void VKAPI_CALL vkTrimCommandPool(
#define VK_VERSION_1_2 1
VKAPI_ATTR void VKAPI_CALL vkCmdDrawIndirectCount(
"""


def test_only_functions_that_every_loader_exports_are_linked() -> None:
    assert windows_llama.loader_functions(HEADER) == [
        *("vkCmdCopyBuffer", "vkCreateInstance", "vkTrimCommandPool"),
    ]


def test_headers_are_taken_out_of_the_systems_folder(tmp_path: Path) -> None:
    include = tmp_path / "usr" / "include"
    for name in ("vulkan", "vk_video", "spirv", "linux"):
        (include / name).mkdir(parents=True)
        (include / name / "a.h").touch()
    spirv = tmp_path / "usr" / "share" / "cmake" / "SPIRV-Headers"
    spirv.mkdir(parents=True)
    sdk = dev_vulkan.VulkanSdk(include=include, spirv_cmake=spirv)
    made = windows_llama.private_headers(sdk, tmp_path / "private")
    assert sorted(folder.name for folder in made.iterdir()) == ["spirv", "vk_video", "vulkan"]
    assert (tmp_path / "private" / "share" / "cmake" / "SPIRV-Headers").is_dir()


def test_a_build_is_kept_by_its_release_and_recipe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MOELAUNCHER_BUILD_CACHE", str(tmp_path))
    build = windows_llama.windows_build("0.3.36")
    assert build.folder.parent == dev_llama.cache_folder() == tmp_path
    assert not build.finished
    build.package_folder.mkdir(parents=True)
    assert windows_llama.windows_build("0.3.36").finished
    assert windows_llama.provide(build) == build.package_folder
    assert not windows_llama.windows_build("0.3.37").finished
    monkeypatch.setattr(windows_llama, "FLAGS", ("-DGGML_NATIVE=ON",))
    assert not windows_llama.windows_build("0.3.36").finished


def library_folder(tmp_path: Path, **needs: list[str]) -> Path:
    files = {
        "libllama.dll": ["ggml.dll", "KERNEL32.dll"],
        "ggml.dll": ["msvcrt.dll"],
        "ggml-cpu-x64.dll": [],
        "ggml-cpu-haswell.dll": [],
        "ggml-vulkan.dll": ["vulkan-1.dll"],
        **{name.replace("_", "-") + ".dll": names for name, names in needs.items()},
    }
    for name, names in files.items():
        (tmp_path / name).write_bytes(program_bytes(names))
    return tmp_path


def test_a_complete_set_of_libraries_passes(tmp_path: Path) -> None:
    windows_llama.check_package(library_folder(tmp_path))


def test_a_library_that_nothing_brings_is_named(tmp_path: Path) -> None:
    folder = library_folder(tmp_path, ggml=["libgomp-1.dll"])
    with pytest.raises(DevError, match=r"'ggml\.dll': \['libgomp-1\.dll'\]"):
        windows_llama.check_package(folder)


def test_a_lost_variant_is_named(tmp_path: Path) -> None:
    folder = library_folder(tmp_path)
    (folder / "ggml-cpu-haswell.dll").unlink()
    with pytest.raises(DevError, match="haswell"):
        windows_llama.check_package(folder)
