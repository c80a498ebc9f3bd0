"""How much of the others' traffic changes if a tenth of all networks fake gains?

    python bench/learn_faked.py --page ../../docs/evidence/learn.md

Estimates are drawn (tests/learn_worlds.py), with a fixed seed: once as they are, once with a tenth of the
networks reporting a gain of BBR that they do not have. Same numbers in, same table out. About one
CPU-minute.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from learn_bars import FURTHER

from faked import Faked, decided, faked, liars
from learn_worlds import World, world

FAKES = (0.15, 0.3, 2.0)
"""In log units: +16 %, +35 % and +640 %."""
SEEDS = range(1, 4)


@dataclass(frozen=True)
class Case:
    """Worlds that differ in their seed."""

    name: str
    mean: float
    of_systems: float
    of_networks: float

    def drawn(self, seed: int) -> World:
        return world(3000, 60, seed, self.mean, self.of_systems, self.of_networks)


CASES = (
    Case("gains differ (+5 % on average)", 0.05, 0.10, 0.05),
    Case("BBR loses everywhere (−5 %)", -0.05, 0.01, 0.01),
    Case("arms are alike", 0.0, 1e-4, 1e-4),
)


class Drawn:
    """A world, and what is on in it if none lies."""

    def __init__(self, world_: World, seed: int) -> None:
        self.world, self.seed, self.calm = world_, seed, decided(world_, seed)

    def faked(self, choice: str, fake: float) -> Faked:
        return faked(self.world, liars(self.world, choice, self.seed), fake, self.seed, self.calm)


def rows() -> Iterator[str]:
    for case in CASES:
        drawn = [Drawn(case.drawn(seed), seed) for seed in SEEDS]
        for choice in ("any", "largest"):
            for fake in FAKES:
                yield row(case, choice, fake, [one.faked(choice, fake) for one in drawn])


def row(case: Case, choice: str, fake: float, found: list[Faked]) -> str:
    def spread(of: str) -> str:
        values = [100 * getattr(one, of) for one in found]
        return f"{np.mean(values):.2f} % ({max(values):.2f})"

    cells = [
        case.name,
        choice,
        f"{100 * np.expm1(fake):+.0f} %",
        *map(spread, ("on", "off", "worse", "worse_before")),
    ]
    return f"| {' | '.join(cells)} |"


TEXT = """
Networks that lie affect others. Most of the others are switched where the arms are alike, but the bound of
harm (0.2 % of the traffic) does not hold: if the largest tenth of each AS lies, up to 2.9 % of the others' traffic has BBR and is more than 2 % worse.
A tenth of the networks with a gain is what a network of two kinds looks like, so the estimates cannot know it for a lie. Guardrails and the
daily budget of changes slow such a change down; they are not part of these worlds.

```sh
cd python/uncork
python bench/learn_faked.py --page ../../docs/evidence/learn.md
```

A plan after seven days, in drawn worlds of 3,000 networks in 60 ASes with Zipf traffic: once as they are, once with a tenth of all
networks that report a gain which they do not have. They are drawn (*any*), or the largest of each AS (*largest*). Percent of the traffic
of the networks that do not lie: mean over three worlds, and in parentheses the largest.

"""  # noqa: E501


def table() -> str:
    head = (
        "| world | networks that lie | faked gain | others switched on | others switched off | others with "
        "BBR and worse by 2 % | the same if none lies |\n|---|---|---:|---:|---:|---:|---:|\n"
    )
    return head + "".join(f"{line}\n" for line in rows())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--page", type=Path, metavar="FILE", help="put the table at the end of this page")
    page = parser.parse_args().page
    text = table()
    if page is None:
        sys.stdout.write(text)
        return
    before = page.read_text("utf-8").partition(FURTHER)[0]
    page.write_text(f"{before}{FURTHER}{TEXT}{text}", "utf-8")


if __name__ == "__main__":
    main()
