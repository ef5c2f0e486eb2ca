"""Decode rate of a built bundle against the program from this checkout, in turns.

    python -m tests.benchmarks.bench_bundle build/linux/dist/moelauncher/moelauncher

Both answer the same question with the sample model, greedily, one after the other, so that what
else the machine does weighs on both. Wanted: the bundle at 0.97 of the checkout or more. The
checkout runs a llama.cpp compiled for this very processor, the bundle its best variant.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
QUESTION = "Count from one to one hundred in words, a number a line."
WANTED = 0.97


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints each pair and the verdict; 1 where the bundle is slower than wanted."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", type=Path)
    parser.add_argument("--tokens", type=int, default=160)
    parser.add_argument("--repeat", type=int, default=8)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args(arguments)
    checkout = [sys.executable, "-m", "moelauncher"]
    bundle = [str(options.program.resolve())]
    ratios = []
    with tempfile.TemporaryDirectory() as base:
        for command in (checkout, bundle):  # builds the sample, fills the file cache
            rate_of(command, base, options.tokens, options.threads)
        for number in range(options.repeat):
            # Who is first in a pair takes turns too.
            pair = [checkout, bundle] if number % 2 == 0 else [bundle, checkout]
            rates = [rate_of(command, base, options.tokens, options.threads) for command in pair]
            source, built = rates if number % 2 == 0 else rates[::-1]
            ratios.append(built / source)
            print(f"checkout {source:6.1f}  bundle {built:6.1f} tok/s  ratio {built / source:.3f}")
    ratio = statistics.median(ratios)
    print(f"median ratio {ratio:.3f} of {len(ratios)} pairs, wanted {WANTED}")
    return 0 if ratio >= WANTED else 1


def rate_of(command: Sequence[str], base: str, n_tokens: int, threads: int) -> float:
    """Tokens a second of one answer."""
    asked = ["-p", QUESTION, "--max-tokens", str(n_tokens), "--temp", "0", "--ctx", "1024"]
    asked += ["--threads", str(threads), "--basedir", base, "--json"]
    answer = subprocess.run(
        [*command, "chat", "--demo", *asked],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    return float(json.loads(answer.stdout)["tok_s"])


if __name__ == "__main__":
    sys.exit(main())
