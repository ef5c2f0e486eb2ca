"""How fast headers are read, beside gguf-py's reader, in one run.

    python -m tests.benchmarks.bench_header [MODEL.gguf ...]

Without a path it makes files of its own: a vocabulary of 262,144 tokens (as Gemma has), and one
with 446,000 merges as well (as gpt-oss has). What counts is the ratio; milliseconds depend on
what else the machine does.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from gguf import GGUFReader, GGUFWriter

from moelauncher.core.files.gguf_header import read_header
from moelauncher.core.files.model_facts import facts_of

_REPEATS = 7


def _write_vocabulary(path: Path, n_tokens: int, n_merges: int) -> Path:
    writer = GGUFWriter(str(path), "llama")
    writer.add_block_count(32)
    writer.add_token_list([f"token{number}" for number in range(n_tokens)])
    writer.add_token_scores([0.0] * n_tokens)
    writer.add_token_types([1] * n_tokens)
    if n_merges:
        writer.add_token_merges([f"a{number} b{number}" for number in range(n_merges)])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    writer.close()
    return path


def _median_ms(work: Callable[[], object], repeats: int) -> float:
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append((time.perf_counter() - start) * 1000)
    return statistics.median(times)


def _compare(path: Path) -> None:
    ours = _median_ms(lambda: read_header(path), _REPEATS)
    header = read_header(path)
    facts = _median_ms(lambda: facts_of([header]), _REPEATS)
    theirs = _median_ms(lambda: GGUFReader(str(path)), 1)
    print(
        f"{path.name}: header {ours:.1f} ms, facts {facts:.1f} ms, "
        f"gguf-py {theirs:.0f} ms, {theirs / ours:.0f} times faster"
    )


def main() -> None:
    """Compare on the files named, or on two made here."""
    paths = [Path(argument) for argument in sys.argv[1:]]
    with tempfile.TemporaryDirectory() as folder:
        if not paths:
            paths = [
                _write_vocabulary(Path(folder) / "tokens-262k.gguf", 262_144, 0),
                _write_vocabulary(Path(folder) / "tokens-201k-merges-446k.gguf", 201_088, 446_000),
            ]
        for path in paths:
            _compare(path)


if __name__ == "__main__":
    main()
