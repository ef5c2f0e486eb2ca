"""How the next token is drawn: llama.cpp's sampler chain for a :class:`Sampling`.

In: :class:`Sampling` and the end of the prompt (for the repeat penalty). Out: a native
chain, freed when the ``with`` block ends, and what is called with it at each token. Engine
thread.
"""

from __future__ import annotations

import ctypes
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from moelauncher.core.engine_protocol import Sampling
from moelauncher.core.errors import LauncherError
from moelauncher.core.translate import tr
from moelauncher.engine.native import Native

#: Called with (chain, context, index of the logits); the token.
Sample = Callable[[Any, Any, int], int]


def sample_function(native: Native, sampling: Sampling, n_vocab: int) -> Sample:
    """What draws a token. Where the most probable one is all that is wanted, it is found in the
    logits themselves: the chain would first copy a whole vocabulary, which costs some per cent
    of a small model's speed.
    """
    if sampling.temperature > 0.0 or _penalises(sampling):
        sample: Sample = native.sample_at_once
        return sample
    # Here, not at the top: a process that draws nothing needs none of it.
    import numpy as np

    logits_at = native.logits_at_once
    arrays: dict[int, Any] = {}  # llama.cpp keeps its buffer in one place, mostly

    def most_probable(_chain: Any, context: Any, index: int) -> int:
        address = logits_at(context, index)
        logits = arrays.get(address)
        if logits is None:
            if not address:
                raise LauncherError(tr("llama.cpp gave no distribution of the next token."))
            arrays.clear()
            buffer = (ctypes.c_float * n_vocab).from_address(address)
            logits = arrays[address] = np.ctypeslib.as_array(buffer)
        return int(logits.argmax())

    return most_probable


def _penalises(sampling: Sampling) -> bool:
    return sampling.repeat_penalty != 1.0 and sampling.repeat_last_n != 0


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
        penalised = _penalises(sampling)
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
