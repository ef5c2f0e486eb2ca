"""How good and how cheap the search is, on a thousand noisy machines a curve.

    python -m tests.benchmarks.bench_sweep [RUNS]

Prints, for each recorded curve and two noises: the share of runs whose choice is within 3 %
of the best, visits used (of a quarter of a full sweep), and how often it said "equal".
"""

from __future__ import annotations

import statistics
import sys

from tests.helpers.sweep_machines import CURVES, Noise, is_good, play


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    print("curve      noise   good  visits   most  of  equal")
    for load in (0.013, 0.026):
        for name, curve in CURVES.items():
            sweeps = [play(curve, seed, Noise(load=load)) for seed in range(runs)]
            decisions = [sweep.decision() for sweep in sweeps]
            good = sum(is_good(curve, decision.best) for decision in decisions) / runs
            visits = [sweep.n_visits for sweep in sweeps]
            ties = sum(decision.is_tie for decision in decisions) / runs
            print(
                f"{name:10} {load:.3f}  {good:5.3f}  {statistics.mean(visits):6.1f}"
                f"  {max(visits):5}  {3 * len(curve) // 4}  {ties:5.2f}"
            )


if __name__ == "__main__":
    main()
