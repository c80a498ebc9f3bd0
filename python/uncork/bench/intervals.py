"""Size of the intervals where they are hardest: A/A tests of few clients, of very different sizes.

    python bench/intervals.py --experiments 2000 --seed 1

Prints a table: how often an effect is found at the 5 %, 1 % and 0.1 % level where there is none, and the
median degrees of freedom. One standard error of 0.1 % from 2,000 experiments is 0.07 points.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

from uncork.measure.stats.effect import Effect, Outcome
from uncork.measure.stats.jackknife import quantile_effects, ratio_effect

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from hard_populations import FIRST_BIN, GAMMA, equal, heavy, lossy, rejected

QUANTILES = (0.1, 0.5, 0.9)


def line(name: str, outcomes: list[Outcome]) -> str:
    """A row of the table."""
    known = [effect for effect in outcomes if isinstance(effect, Effect)]
    if not known:
        return f"| {name} | 0 | – | – | – | – |"
    shares = [f"{100 * rejected(outcomes, alpha):.2f}" for alpha in (0.05, 0.01, 0.001)]
    freedom = float(np.median([effect.degrees_of_freedom for effect in known]))
    return f"| {name} | {100 * len(known) / len(outcomes):.0f} | {' | '.join(shares)} | {freedom:.0f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--experiments", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    repeats = range(options.experiments)
    print("| clients per arm, measure | with interval, % | 5 % | 1 % | 0.1 % | freedom |")
    print("|---|--:|--:|--:|--:|--:|")
    for units in (60, 120, 250, 500, 2_000):
        ratios = [ratio_effect(*lossy(rng, units), *lossy(rng, units)) for _ in repeats]
        print(line(f"{units}, share sent again, 5 % lossy", ratios), flush=True)
    for name, draw in (("Pareto 1.5 requests", heavy), ("each counts once", equal)):
        for units in (50, 100, 200):
            found = [
                quantile_effects(
                    draw(rng, units), draw(rng, units), QUANTILES, first_bin=FIRST_BIN, gamma=GAMMA
                )
                for _ in repeats
            ]
            for q, outcomes in zip(QUANTILES, zip(*found, strict=True), strict=True):
                print(line(f"{units}, p{100 * q:.0f}, {name}", list(outcomes)), flush=True)


if __name__ == "__main__":
    main()
