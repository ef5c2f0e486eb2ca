# ruff: noqa: E501 - llama.cpp's lines are as long as they are
"""Which device refused how much: lines of real failures, and one made to happen."""

from __future__ import annotations

import sys

import pytest

from moelauncher.core.memory.memory_shortage import MemoryShortage
from moelauncher.core.units import MIB
from moelauncher.engine.memory_failure import memory_shortage
from tests.helpers.vulkan_build import require_vulkan_build, run_probe, vulkan_environment

CUDA_WEIGHTS = """\
info|load_tensors: loading model tensors, this can take a while... (load_mode = mmap)
error|ggml_backend_cuda_buffer_type_alloc_buffer: allocating 11452.77 MiB on device 0: cudaMalloc failed: out of memory
error|alloc_tensor_range: failed to allocate CUDA0 buffer of size 12009091072
error|llama_model_load: error loading model: unable to allocate CUDA0 buffer
error|llama_model_load_from_file_impl: failed to load model
"""
CUDA_KV = """\
info|llama_kv_cache:      CUDA1 KV buffer size =  1152.00 MiB
error|ggml_backend_cuda_buffer_type_alloc_buffer: allocating 3072.00 MiB on device 1: cudaMalloc failed: out of memory
error|alloc_tensor_range: failed to allocate CUDA1 buffer of size 3221225472
error|llama_init_from_model: failed to initialize the context: failed to allocate buffer for kv cache
"""
CUDA_COMPUTE = """\
error|ggml_backend_cuda_buffer_type_alloc_buffer: allocating 456.98 MiB on device 0: cudaMalloc failed: out of memory
error|ggml_gallocr_reserve_n_impl: failed to allocate CUDA0 buffer of size 479178752
error|graph_reserve: failed to allocate compute buffers
error|llama_init_from_model: failed to initialize the context: failed to allocate compute pp buffers
"""
CUDA_ONLY = """\
error|ggml_backend_cuda_buffer_type_alloc_buffer: allocating 100.00 MiB on device 1: cudaMalloc failed: out of memory
"""
VULKAN_WEIGHTS = """\
error|alloc_tensor_range: failed to allocate Vulkan0 buffer of size 1054534656
error|llama_model_load: error loading model: unable to allocate Vulkan0 buffer
error|llama_model_load_from_file_impl: failed to load model
"""
VULKAN_SPLIT = """\
error|ggml_vulkan: Device memory allocation of size 1054534656 failed.
error|ggml_vulkan: Requested buffer size exceeds device memory allocation limit: ErrorOutOfDeviceMemory
error|alloc_tensor_range: failed to allocate Vulkan0 buffer of size 4054534656
"""
RAM_MAPPED = """\
error|llama_model_load: error loading model: mmap failed: Cannot allocate memory
error|llama_model_load_from_file_impl: failed to load model
"""
RAM_BUFFER = """\
error|alloc_tensor_range: failed to allocate CPU buffer of size 17179869184
error|llama_model_load: error loading model: unable to allocate CPU buffer
"""
PINNED = """\
warning|ggml_cuda_host_malloc: failed to allocate 263.15 MiB of pinned memory: out of memory
error|alloc_tensor_range: failed to allocate CUDA_Host buffer of size 275934412
error|llama_model_load: error loading model: unable to allocate CUDA_Host buffer
"""
OUTPUT = """\
error|output_reserve: failed to allocate output buffer of size 593.00 MiB
"""
NOT_MEMORY = """\
error|llama_model_load: error loading model: error loading model architecture: unknown model architecture: 'xyz'
"""


def lines(text: str) -> list[tuple[str, str]]:
    return [tuple(line.split("|", 1)) for line in text.splitlines()]  # type: ignore[misc]


@pytest.mark.parametrize(
    ("text", "shortage"),
    [
        (CUDA_WEIGHTS, MemoryShortage("CUDA0", 12009091072, "weights")),
        (CUDA_KV, MemoryShortage("CUDA1", 3072 * MIB, "kv")),
        (CUDA_COMPUTE, MemoryShortage("CUDA0", 479178752, "compute")),
        (CUDA_ONLY, MemoryShortage("CUDA1", 100 * MIB, "")),
        (VULKAN_WEIGHTS, MemoryShortage("Vulkan0", 1054534656, "weights")),
        (VULKAN_SPLIT, MemoryShortage("Vulkan0", 4054534656, "")),
        (RAM_MAPPED, MemoryShortage("RAM", None, "weights")),
        (RAM_BUFFER, MemoryShortage("RAM", 17179869184, "weights")),
        (PINNED, MemoryShortage("RAM", 275934412, "weights")),
        (OUTPUT, MemoryShortage("RAM", 593 * MIB, "compute")),
        (NOT_MEMORY, None),
        ("", None),
    ],
)
def test_what_was_refused(text: str, shortage: MemoryShortage | None) -> None:
    gpus = ["Vulkan0"] if "Vulkan0" in text else ["CUDA0", "CUDA1"]
    assert memory_shortage(lines(text), gpus) == shortage


@pytest.mark.vulkan
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limit on address space")
def test_a_load_that_the_device_refuses_for_real(tmp_path, session_cache) -> None:
    environment = vulkan_environment(require_vulkan_build(), session_cache / "shaders")
    failed, again = run_probe(environment, "refused", str(tmp_path))
    assert failed["error"].startswith("There is not enough memory")
    assert failed["shortage"]["device"] == "Vulkan0"
    assert failed["shortage"]["part"] == "weights"
    assert failed["shortage"]["asked_bytes"] > 100 * MIB
    assert again["error"] == "", "the engine goes on, and what fits is loaded"
    assert again["mismatches"] == []
