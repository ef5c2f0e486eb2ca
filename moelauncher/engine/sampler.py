"""How the next token is drawn: llama.cpp's sampler chain for a :class:`Sampling`.

In: :class:`Sampling` and the end of the prompt (for the repeat penalty). Out: a native
chain, freed when the ``with`` block ends. Engine thread.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from moelauncher.core.engine_protocol import Sampling
from moelauncher.engine.native import Native


@contextmanager
def sampler_chain(
    native: Native, sampling: Sampling, n_vocab: int, prompt: Sequence[int]
) -> Iterator[Any]:
    """The chain for one reply. The repeat penalty also sees the end of ``prompt``."""
    lib = native.lib
    params = lib.llama_sampler_chain_default_params()
    params.no_perf = True
    chain = lib.llama_sampler_chain_init(params)
    try:
        penalised = sampling.repeat_penalty != 1.0 and sampling.repeat_last_n != 0
        if penalised:
            penalties = lib.llama_sampler_init_penalties(
                n_vocab, sampling.repeat_last_n, sampling.repeat_penalty, 0.0, 0.0
            )
            lib.llama_sampler_chain_add(chain, penalties)
        for link in _drawing_links(lib, sampling):
            lib.llama_sampler_chain_add(chain, link)
        if penalised:
            for token in (
                prompt[-sampling.repeat_last_n :] if sampling.repeat_last_n > 0 else prompt
            ):
                lib.llama_sampler_accept(chain, token)
        yield chain
    finally:
        lib.llama_sampler_free(chain)


def _drawing_links(lib: Any, sampling: Sampling) -> Iterator[Any]:
    if sampling.temperature <= 0.0:
        yield lib.llama_sampler_init_greedy()
        return
    if sampling.top_k > 0:
        yield lib.llama_sampler_init_top_k(sampling.top_k)
    if sampling.top_p < 1.0:
        yield lib.llama_sampler_init_top_p(sampling.top_p, 1)
    if sampling.min_p > 0.0:
        yield lib.llama_sampler_init_min_p(sampling.min_p, 1)
    yield lib.llama_sampler_init_temp(sampling.temperature)
    seed = random.getrandbits(32) if sampling.seed is None else sampling.seed & 0xFFFFFFFF
    yield lib.llama_sampler_init_dist(seed)
