# ruff: noqa: E501 - llama.cpp's lines are as long as they are
"""Real lines of llama.cpp's log, and what they say."""

import pytest

from moelauncher.core.engine_protocol import BufferReport
from moelauncher.engine.load_log import is_telling, parse_load_log

MIB = 1 << 20

# The sample model on Mesa's software Vulkan device: two layers and the output on it (27 more
# layers like the first are left out here).
VULKAN = """
info|llama_prepare_model_devices: using device Vulkan0 (llvmpipe (LLVM 15.0.6, 256 bits)) (unknown id) - 2048 MiB free
info|load_tensors: loading model tensors, this can take a while... (load_mode = mmap)
debug|load_tensors: layer   0 assigned to device CPU, is_swa = 0
debug|load_tensors: layer  28 assigned to device Vulkan0, is_swa = 0
debug|load_tensors: layer  29 assigned to device Vulkan0, is_swa = 0
debug|load_tensors: layer  30 assigned to device Vulkan0, is_swa = 0
warning|llama_model_loader: tensor overrides to CPU are used with mmap enabled - consider using --load-mode none for better performance
info|load_tensors: offloading output layer to GPU
info|load_tensors: offloading 2 repeating layers to GPU
info|load_tensors: offloaded 3/31 layers to GPU
info|load_tensors:   CPU_Mapped model buffer size =   103.70 MiB
info|load_tensors:      Vulkan0 model buffer size =    29.79 MiB
info|llama_context: constructing llama_context
info|llama_context: n_seq_max             = 1
info|llama_context: n_ctx                 = 4096
info|llama_context: n_ctx_seq             = 4096
info|llama_context: flash_attn            = auto
info|llama_context: n_ctx_seq (4096) < n_ctx_train (8192) -- the full capacity of the model will not be utilized
info|llama_context: Vulkan_Host  output buffer size =     0.19 MiB
debug|llama_kv_cache: layer   0: dev = CPU
debug|llama_kv_cache: layer  28: dev = Vulkan0
debug|llama_kv_cache: layer  29: dev = Vulkan0
info|llama_kv_cache:        CPU KV buffer size =    84.00 MiB
info|llama_kv_cache:    Vulkan0 KV buffer size =     6.00 MiB
info|llama_kv_cache: size =   90.00 MiB (  4096 cells,  30 layers,  1/1 seqs), K (f16):   45.00 MiB, V (f16):   45.00 MiB
info|llama_kv_cache: attn_rot_k = 0, n_embd_head_k_all = 64
info|sched_reserve: reserving ...
info|resolve_fused_ops: Flash Attention enabled
info|resolve_fused_ops: resolving fused DeepSeek V4 HC support:
info|resolve_fused_ops: fused DeepSeek V4 HC pre enabled
info|sched_reserve:    Vulkan0 compute buffer size =     1.52 MiB
info|sched_reserve: Vulkan_Host compute buffer size =     0.41 MiB
"""

# gpt-oss-20b on an RTX 3070 (build 6699): two caches, one of sliding windows.
GPT_OSS = """
info|load_tensors: offloaded 25/25 layers to GPU
info|load_tensors:   CPU_Mapped model buffer size = 10949.38 MiB
info|load_tensors:        CUDA0 model buffer size =  1242.03 MiB
info|llama_context: constructing llama_context
info|llama_context: n_ctx         = 131072
info|llama_context: n_ctx_per_seq = 131072
info|llama_context: flash_attn    = enabled
info|llama_context:  CUDA_Host  output buffer size =     0.77 MiB
info|llama_kv_cache_iswa: creating non-SWA KV cache, size = 131072 cells
info|llama_kv_cache:      CUDA0 KV buffer size =  3072.00 MiB
info|llama_kv_cache: size = 3072.00 MiB (131072 cells,  12 layers,  1/1 seqs), K (f16): 1536.00 MiB, V (f16): 1536.00 MiB
info|llama_kv_cache_iswa: creating     SWA KV cache, size = 768 cells
info|llama_kv_cache:      CUDA0 KV buffer size =    18.00 MiB
info|llama_kv_cache: size =   18.00 MiB (   768 cells,  12 layers,  1/1 seqs), K (f16):    9.00 MiB, V (f16):    9.00 MiB
info|llama_context:      CUDA0 compute buffer size =   456.98 MiB
info|llama_context:  CUDA_Host compute buffer size =   263.15 MiB
"""

# Qwen3.5-35B-A3B without allocation: the caches' own lines are the only true sizes.
HYBRID_DRY = """
info|load_tensors:      Vulkan0 model buffer size =     0.00 MiB
info|llama_context: constructing llama_context
info|llama_context: n_ctx                 = 32768
info|llama_context: flash_attn            = disabled
debug|llama_kv_cache: layer   3: dev = Vulkan0
debug|llama_kv_cache: layer   7: dev = Vulkan0
info|llama_kv_cache:    Vulkan0 KV buffer size =     0.00 MiB
info|llama_kv_cache: size =  640.00 MiB ( 32768 cells,  10 layers,  1/1 seqs), K (f16):  320.00 MiB, V (f16):  320.00 MiB
debug|llama_memory_recurrent, layer   0: dev = Vulkan0
debug|llama_memory_recurrent: layer   3: skipped
info|llama_memory_recurrent:    Vulkan0 RS buffer size =    62.81 MiB
info|llama_memory_recurrent: size =   62.81 MiB (     1 cells,  40 layers,  1 seqs), R (f32):    2.81 MiB, S (f32):   60.00 MiB
info|sched_reserve:    Vulkan0 compute buffer size =    90.61 MiB
"""


def lines(text: str) -> list[tuple[str, str]]:
    return [tuple(line.split("|", 1)) for line in text.strip().splitlines()]


def mib(number: float) -> int:
    return round(number * MIB)


def test_a_placed_load_on_vulkan():
    log = parse_load_log(lines(VULKAN))
    assert log.buffers == (
        BufferReport("CPU_Mapped", "weights", mib(103.70)),
        BufferReport("Vulkan0", "weights", mib(29.79)),
        BufferReport("Vulkan_Host", "output", mib(0.19)),
        BufferReport("CPU", "kv", mib(84)),
        BufferReport("Vulkan0", "kv", mib(6)),
        BufferReport("Vulkan0", "compute", mib(1.52)),
        BufferReport("Vulkan_Host", "compute", mib(0.41)),
    )
    assert log.offloaded == (3, 31)
    assert log.n_ctx == 4096
    assert log.flash_attention is True
    assert log.layer_devices == {0: "CPU", 28: "Vulkan0", 29: "Vulkan0", 30: "Vulkan0"}
    (cache,) = log.caches
    assert (cache.kind, cache.n_bytes, cache.n_layers) == ("kv", mib(90), 30)
    assert cache.layer_devices == {0: "CPU", 28: "Vulkan0", 29: "Vulkan0"}
    assert log.warnings == ()


def test_two_caches_of_a_model_with_sliding_windows_on_cuda():
    log = parse_load_log(lines(GPT_OSS))
    assert [cache.n_bytes for cache in log.caches] == [mib(3072), mib(18)]
    assert log.bytes_of("weights") == {"CPU_Mapped": mib(10949.38), "CUDA0": mib(1242.03)}
    assert log.bytes_of("kv") == {"CUDA0": mib(3090)}
    assert log.bytes_of("compute") == {"CUDA0": mib(456.98), "CUDA_Host": mib(263.15)}
    assert (log.offloaded, log.n_ctx, log.flash_attention) == ((25, 25), 131072, True)


def test_a_load_without_allocation_tells_by_its_caches():
    log = parse_load_log(lines(HYBRID_DRY))
    assert [(cache.kind, cache.n_bytes) for cache in log.caches] == [
        ("kv", mib(640)),
        ("recurrent", mib(62.81)),
    ]
    assert log.caches[0].layer_devices == {3: "Vulkan0", 7: "Vulkan0"}
    assert log.bytes_of("recurrent") == {"Vulkan0": mib(62.81)}
    assert log.flash_attention is False


@pytest.mark.parametrize(
    ("line", "device", "kind", "n_bytes"),
    [
        ("load_tensors:   CPU_REPACK model buffer size =    61.17 MiB",
         "CPU_REPACK", "weights", mib(61.17)),
        ("llm_load_tensors:      CUDA1 model buffer size =   648.66 MiB",
         "CUDA1", "weights", mib(648.66)),
        ("llama_kv_cache_init:      CUDA0 KV buffer size =   384.00 MiB", "CUDA0", "kv", mib(384)),
        ("llama_new_context_with_model:  CUDA_Host compute buffer size =   132.01 MiB",
         "CUDA_Host", "compute", mib(132.01)),
        ("llama_dsv4_state:      CUDA0 DSV4 CSA state buffer size =     3.50 MiB",
         "CUDA0", "recurrent", mib(3.5)),
        ("load_tensors:      ROCm0 model buffer size = 63980.86 MiB",
         "ROCm0", "weights", mib(63980.86)),
    ],
)  # fmt: skip
def test_one_buffer(line, device, kind, n_bytes):
    assert parse_load_log([("info", line)]).buffers == (BufferReport(device, kind, n_bytes),)


@pytest.mark.parametrize(
    ("line", "resolved"),
    [
        ("llama_context: flash_attn            = auto", None),
        ("llama_context: flash_attn            = disabled", False),
        ("llama_context: flash_attn    = 1", True),
        ("resolve_fused_ops: Flash Attention enabled", True),
        ("resolve_fused_ops: Flash Attention not supported, set to disabled", False),
        ("llama_context: Flash Attention was auto, set to enabled", True),
    ],
)
def test_flash_attention(line, resolved):
    assert parse_load_log([("info", line)]).flash_attention is resolved


def test_weights_in_several_buffers_of_one_device_add_up():
    line = ("info", "load_tensors:        CUDA0 model buffer size =  100.00 MiB")
    assert parse_load_log([line, line]).bytes_of("weights") == {"CUDA0": mib(200)}


def test_a_second_context_replaces_the_first():
    first, second = lines(VULKAN), lines(VULKAN)
    start = next(i for i, (_, text) in enumerate(second) if "constructing" in text)
    log = parse_load_log([*first, *second[start:]])
    assert log == parse_load_log(first)


def test_a_compute_buffer_reserved_again_counts_once():
    again = [
        ("info", "sched_reserve:        CPU compute buffer size =    98.25 MiB"),
        ("info", "sched_reserve:        CPU compute buffer size =    49.13 MiB"),
    ]
    assert parse_load_log(again).bytes_of("compute") == {"CPU": mib(49.13)}


def test_what_is_freed_at_the_end_is_no_buffer():
    line = "~llama_context: CPU compute buffer size is  49.1260 MiB, matches expectation of 49.1260"
    assert parse_load_log([("debug", line)]).buffers == ()


def test_texts_of_the_file_are_not_taken_for_llama_cpps_own():
    log = parse_load_log(
        [
            ("info", "llama_model_loader: - kv   2: general.name str = CUDA0 model buffer size = 9 MiB"),
            ("info", "print_info: general.name = offloaded 7/7 layers to GPU"),
        ]
    )  # fmt: skip
    assert (log.buffers, log.offloaded) == ((), None)


def test_warnings_are_kept_once():
    log = parse_load_log(
        [
            ("warning", "load: special_eos_id is not in special_eog_ids"),
            ("warning", "load: special_eos_id is not in special_eog_ids"),
            ("error", "llama_model_load: error loading model: missing tensor 'output_norm.weight'"),
        ]
    )
    assert log.warnings == ("load: special_eos_id is not in special_eog_ids",)


def test_nothing_said_is_unknown():
    log = parse_load_log([])
    assert (log.buffers, log.offloaded, log.n_ctx, log.flash_attention) == ((), None, None, None)


@pytest.mark.parametrize(
    ("level", "text", "telling"),
    [
        ("debug", "create_tensor: loading tensor blk.0.attn_q.weight", False),
        ("debug", "llama_kv_cache: layer   0: dev = Vulkan0", True),
        ("info", "load_tensors: offloaded 31/31 layers to GPU", True),
        ("info", "print_info: general.name = offloaded 7/7 layers to GPU", False),
    ],
)
def test_which_lines_tell(level, text, telling):
    assert is_telling(level, text) is telling
