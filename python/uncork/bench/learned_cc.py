"""The protocol of "Learning-Based vs Human-Derived Congestion Control" (arXiv 2510.25105) as scenarios.

    python bench/learned_cc.py write           # docs/learned-cc/*.toml
    python bench/learned_cc.py run             # the table of docs/evidence/learned-cc.md

M. Mazilu, L. Giacomoni, G. Parisis, October 2025. The paths, times and seeds are those of the authors'
published experiments (github.com/Aruuni/mininettestbed, commit 147d8ac of 6 October 2025, run_experiments.sh
and experiments/), as they stood before the paper. The paper's text was read in excerpts only. Left out: the
parking lots, the queues other than FIFO, and the learned controllers, which are not in uncork.
"""

from __future__ import annotations

import argparse
import random
import sys
from pathlib import Path
from typing import Any

import pandas

import uncork
from uncork import toml

FOLDER = Path(__file__).parents[3] / "docs/learned-cc"
BUFFERS = [0.2, 1, 4]
"""In BDP."""
RTTS = range(20, 201, 20)
"""In ms. The schedule of a run follows from its RTT."""
RATES = [*range(10, 101, 10), *range(150, 501, 50)]
"""In Mbit/s."""
SEEDS = 5
DRAWS = 50
PERIOD = 10
"""Seconds between changes of the path."""
TESTED = ["cubic", "bbr3"]

Scenario = dict[str, Any]


def bdp(rate: float, rtt: float) -> int:
    """In bytes, of Mbit/s and ms. The experiments count 2 to the power of 20 bits as a Mbit."""
    return int(rate * 2**20 * rtt / 8e3)


def buffers(rate: float, rtt: float) -> list[str]:
    return [f"{max(int(of * bdp(rate, rtt)), 1500)}B" for of in BUFFERS]


def by_rtt(title: str, first: Scenario, second: Scenario, both: bool) -> Scenario:
    """Two flows: the second starts after a quarter of the run, and the last quarter counts. That begins at
    300 s for each RTT, because the warm-up is that of the scenario.
    """
    rows = []
    for rtt in RTTS:
        quarter = rtt // 2
        for of, buffer in zip(BUFFERS, buffers(100, rtt), strict=True):
            near = f"{rtt}ms" if both else "20ms"
            times = [f"{300 + quarter}s", f"{300 - 3 * quarter}s", f"{300 - 2 * quarter}s"]
            values = [near, f"{rtt}ms", buffer, *times]
            rows.append({"name": f"{rtt} ms, {of} BDP", "values": values})
    keys = "flow.first.rtt,flow.second.rtt,path.buffer,run.end,flow.first.start,flow.second.start"
    return {
        "title": title,
        "run": {"end": "310s", "warmup": "300s", "seeds": SEEDS},
        "path": {"rate": "100mbit", "rtt": "20ms", "buffer": "1bdp"},
        "flow": {
            "first": {"rtt": "20ms", "start": "270s", "bulk": "end", **first},
            "second": {"rtt": "20ms", "start": "280s", "bulk": "end", **second},
        },
        "matrix": {keys: rows},
    }


def fairness_by_rtt() -> Scenario:
    made = by_rtt("Two flows of equal RTT", {"cc": "bbr3"}, {"cc": "bbr3"}, both=True)
    made["matrix"]["flow.first.cc,flow.second.cc"] = [[cc, cc] for cc in TESTED]
    return made


def fairness_between_rtts() -> Scenario:
    made = by_rtt("A flow of 20 ms and one of a longer RTT", {"cc": "bbr3"}, {"cc": "bbr3"}, both=False)
    made["matrix"]["flow.first.cc,flow.second.cc"] = [[cc, cc] for cc in TESTED]
    return made


def next_to_cubic() -> Scenario:
    made = by_rtt("CUBIC first, the tested controller second", {"cc": "cubic"}, {"cc": "bbr3"}, both=True)
    made["matrix"]["flow.second.cc"] = TESTED
    return made


def fairness_by_rate() -> Scenario:
    rows = [
        {"name": f"{rate} Mbit/s, {of} BDP", "values": [f"{rate}mbit", buffer]}
        for rate in RATES
        for of, buffer in zip(BUFFERS, buffers(rate, 40), strict=True)
    ]
    return {
        "title": "Two flows of 40 ms",
        "run": {"end": "100s", "warmup": "25s", "seeds": SEEDS},
        "path": {"rate": "100mbit", "rtt": "40ms", "buffer": "1bdp"},
        "flow": {
            "first": {"cc": "bbr3", "bulk": "end"},
            "second": {"cc": "bbr3", "start": "25s", "bulk": "end"},
        },
        "matrix": {
            "path.rate,path.buffer": rows,
            "flow.first.cc,flow.second.cc": [[cc, cc] for cc in TESTED],
        },
    }


def next_to_many() -> Scenario:
    return {
        "title": "One flow next to CUBIC flows that start later",
        "run": {"end": "60s", "warmup": "15s", "seeds": SEEDS},
        "path": {"rate": "100mbit", "rtt": "30ms", "buffer": "1bdp"},
        "flow": {
            "tested": {"cc": "bbr3", "bulk": "end"},
            "cubic": {"cc": "cubic", "count": 2, "start": "1s", "spread": "14s", "bulk": "end"},
        },
        "matrix": {
            "flow.cubic.count": list(range(2, 21, 2)),
            "path.buffer": buffers(100, 30),
            "flow.tested.cc": TESTED,
        },
    }


def convergence() -> Scenario:
    flows = {f"flow{nth}": {"cc": "bbr3", "start": f"{25 * nth}s", "bulk": "100s"} for nth in range(4)}
    return {
        "title": "Four flows, 25 s apart",
        "run": {"end": "175s", "seeds": SEEDS},
        "path": {"rate": "100mbit", "rtt": "20ms", "buffer": "1bdp"},
        "flow": flows,
        "matrix": {
            "path.rtt,path.buffer": [
                {"name": f"{rtt} ms, {of} BDP", "values": [f"{rtt}ms", buffer]}
                for rtt in (20, 200)
                for of, buffer in zip(BUFFERS, buffers(100, rtt), strict=True)
            ],
            ",".join(f"flow.{name}.cc" for name in flows): [[cc] * 4 for cc in TESTED],
        },
    }


def drawn_changes(seed: int) -> tuple[list[list[str]], list[list[str]], list[list[str]], list[list[str]]]:
    """Steps of rate and RTT of one experiment, and of rate and loss of the other: the experiments' own draws,
    which Python's generator repeats.
    """
    times = [f"{PERIOD * nth}s" for nth in range(300 // PERIOD)]
    one, other = random.Random(seed), random.Random(seed)
    paths = [(at, one.randint(1, 100), one.randint(20, 200)) for at in times]
    lossy = [(at, other.randint(1, 100), round(other.uniform(0, 5), 2)) for at in times]
    return (
        [[at, f"{rate}mbit"] for at, rate, _ in paths],
        [[at, f"{rtt}ms"] for at, _, rtt in paths],
        [[at, f"{rate}mbit"] for at, rate, _ in lossy],
        [[at, f"{loss}%"] for at, _, loss in lossy],
    )


def responsive(title: str, key: str, first: int, second: int) -> Scenario:
    """A flow for 300 s over a path that changes every 10 s. Its queue has the BDP of 50 Mbit/s and 100 ms."""
    rows = []
    for seed in range(1, DRAWS + 1):
        steps = drawn_changes(seed)
        initial = [steps[first][0][1], steps[second][0][1], steps[first][1:], steps[second][1:]]
        rows.append({"name": f"draw {seed}", "values": initial})
    return {
        "title": title,
        "run": {"end": "300s", "seeds": 1},
        "path": {"rate": "50mbit", "rtt": "100ms", "buffer": f"{bdp(50, 100)}B"},
        "flow": {"main": {"cc": "bbr3", "bulk": "end"}},
        "matrix": {f"path.rate,path.{key},path.rate_steps,path.{key}_steps": rows, "flow.main.cc": TESTED},
    }


def changes_of_rtt() -> Scenario:
    return responsive("Rate and RTT change every 10 s", "rtt", 0, 1)


def changes_of_loss() -> Scenario:
    return responsive("Rate and loss change every 10 s", "loss", 2, 3)


ALL = {
    make.__name__.replace("_", "-"): make
    for make in (
        fairness_by_rtt,
        fairness_between_rtts,
        fairness_by_rate,
        next_to_cubic,
        next_to_many,
        convergence,
        changes_of_rtt,
        changes_of_loss,
    )
}
HEAD = """\
# An experiment of arXiv 2510.25105, written by `python bench/learned_cc.py write` of the Python package.
# docs/evidence/learned-cc.md says where its values are from, and what was measured.

"""


def written() -> dict[str, str]:
    """The scenario files by name."""
    return {f"{name}.toml": HEAD + toml.document(make()) for name, make in ALL.items()}


def mean_rate(steps: list[list[str]]) -> float:
    """In Mbit/s."""
    return sum(float(rate.removesuffix("mbit")) for _, rate in steps) / len(steps)


def quartiles(result: uncork.Result, tested: str) -> pandas.DataFrame:
    """The second flow's rate by that of the first, over all cells and seeds."""
    cells = pandas.DataFrame.from_arrow(result)
    shares = cells[cells.metric == "share_mean"]
    axes = list(shares.columns[: list(shares.columns).index("class")])
    table = shares.set_index([*axes, "class"])["value"].unstack("class")
    return (
        (table["second"] / table["first"])
        .groupby(level=tested)
        .describe()[["min", "25%", "50%", "75%", "max"]]
    )


def run(seeds: int, draws: int) -> None:
    """Prints what the page has."""
    for name, key in (("changes-of-rtt", 0), ("changes-of-loss", 2)):
        scenario = ALL[name]()
        rows = next(iter(scenario["matrix"].values()))
        del rows[draws:]
        cells = pandas.DataFrame.from_arrow(uncork.run(scenario))
        goodput = cells[cells.metric == "goodput_sum"]
        rates = [mean_rate(drawn_changes(seed)[key]) for seed in range(1, draws + 1)]
        for cc, runs in goodput.groupby("cc"):
            print(f"{name}: {cc} {runs['value'].mean() / 1e6:.1f} of {sum(rates) / draws:.1f} Mbit/s")
    for name in ("fairness-by-rtt", "fairness-between-rtts", "next-to-cubic"):
        result = uncork.run(ALL[name](), set={"run.seeds": seeds})
        print(f"{name}:\n{quartiles(result, 'flow.second.cc').round(2)}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("command", choices=["write", "run"])
    parser.add_argument("--seeds", type=int, default=SEEDS, help="of each cell with two flows")
    parser.add_argument("--draws", type=int, default=DRAWS, help="of each experiment with changes")
    given = parser.parse_args()
    if given.command == "run":
        run(given.seeds, given.draws)
        return 0
    FOLDER.mkdir(exist_ok=True)
    for name, text in written().items():
        (FOLDER / name).write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
