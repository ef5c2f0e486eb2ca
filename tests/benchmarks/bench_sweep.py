"""How good and how cheap the search is, on a thousand noisy machines a kind.

    python -m tests.benchmarks.bench_sweep [RUNS] [KIND ...] [--noise 0.026 ...]

Prints, for each recorded curve and each family of drawn ones, and for several noises: the share
of runs whose choice is within 3 % of the best, visits used (of a quarter of a full sweep: every
stop three times), and how often it said "equal". Noise is from load to load; in every run 3 % of
the visits are disturbed on top of it. All of it takes hours of one core; name a few kinds.
"""

from __future__ import annotations

import argparse
import os
import statistics
from concurrent.futures import ProcessPoolExecutor

from tests.helpers.sweep_machines import CURVES, FAMILIES, Curve, Noise, drawn_curve, is_good, play

NOISES = (0.005, 0.01, 0.02, 0.026, 0.03, 0.05)


def main() -> None:
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    every = [*CURVES, *(f"any {family}" for family in FAMILIES)]
    parser = argparse.ArgumentParser()
    parser.add_argument("runs", nargs="?", type=int, default=1000)
    parser.add_argument("kinds", nargs="*", default=every)
    parser.add_argument("--noise", nargs="+", type=float, default=NOISES)
    wanted = parser.parse_args()
    runs = wanted.runs
    print(f"{'kind':14} noise   good  visits  most of a quarter  equal")
    with ProcessPoolExecutor() as pool:
        for noise in wanted.noise:
            for kind in wanted.kinds:
                cases = [(kind, noise, seed) for seed in range(runs)]
                results = list(pool.map(_one, cases, chunksize=max(runs // 20, 1)))
                good = sum(one[0] for one in results) / runs
                visits = statistics.mean(one[1] for one in results)
                most = max(one[2] for one in results)
                equal = sum(one[3] for one in results) / runs
                row = f"{kind:14} {noise:.3f}  {good:5.3f}  {visits:6.1f}  {most:16.2f}"
                print(f"{row}  {equal:5.2f}", flush=True)


def _one(case: tuple[str, float, int]) -> tuple[bool, int, float, bool]:
    kind, noise, seed = case
    curve: Curve = CURVES[kind] if kind in CURVES else drawn_curve(kind.removeprefix("any "), seed)
    played = play(curve, seed, Noise(load=noise))
    share = len(played.visits) / (3 * len(curve) / 4)
    return is_good(curve, played.decision.best), len(played.visits), share, played.decision.is_tie


if __name__ == "__main__":
    main()
