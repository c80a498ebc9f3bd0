"""Trains a small agent as the controller of a flow, and compares it with CUBIC and BBRv3.

    python bench/agent.py train -o agent.json
    python bench/agent.py compare agent.json

The policy is linear in the observation: five weights. The cross-entropy method finds them: it draws
policies, scores each over the same paths, and draws the next ones near the best. Equal options give equal
weights. `compare` uses paths that differ from those of the training in rate, RTT, loss, buffer or rivals.
Needs the extras `gym` and `analysis`.

The paths of the training have no rival. Next to one that fills the queue, the reward of `CongestionEnv` asks
for a short queue that the agent cannot have, and the search found no useful policy.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas
from numpy.typing import NDArray

import uncork
from uncork.gym import CongestionEnv, CongestionVectorEnv

Weights = NDArray[np.float64]
RIVALS: tuple[tuple[str, ...], ...] = ((), ("cubic",), ("bbr3",))
TRAINED: dict[str, Any] = {
    "rate": lambda rng: f"{rng.uniform(2, 8):.2f}mbit",
    "rtt": lambda rng: f"{rng.uniform(20, 60):.1f}ms",
    "buffer": lambda rng: f"{rng.uniform(0.5, 2):.2f}bdp",
    "loss": "0%",
    "host_jitter": "none",
}
UNSEEN: dict[str, dict[str, str]] = {
    "in the range": {"rate": "6mbit", "rtt": "40ms", "loss": "0%", "buffer": "1bdp"},
    "faster and longer": {"rate": "30mbit", "rtt": "100ms", "loss": "0%", "buffer": "1bdp"},
    "1 % of loss": {"rate": "6mbit", "rtt": "40ms", "loss": "1%", "buffer": "1bdp"},
    "deep buffer": {"rate": "6mbit", "rtt": "40ms", "loss": "0%", "buffer": "8bdp"},
    "CoDel": {"rate": "6mbit", "rtt": "40ms", "loss": "0%", "buffer": "8bdp", "queue": "codel"},
}
"""Paths of the comparison. The first is like those of the training, the others are not."""
HISTORY = 1
"""Steps in an observation. With four, 17 weights were to be found, and were not in the same time."""
VALUES = 4 * HISTORY
MAX_ACTION = 0.3
"""The largest change of the rate in a step, as a power of two. With 1, it jumps about the link's rate."""
SEEDS = (101, 102, 103)
SECONDS = 20


@dataclass(frozen=True)
class Training:
    """Options of the cross-entropy method."""

    iterations: int = 25
    population: int = 32
    elite: int = 8
    paths: int = 6
    steps: int = 250
    seed: int = 1


def act(weights: Weights, observations: NDArray[np.float32]) -> NDArray[np.float32]:
    """The action of each row: a weight for each value of the observation, and a constant."""
    inner = (observations.astype(np.float64) * weights[..., :VALUES]).sum(axis=-1) + weights[..., VALUES]
    return (MAX_ACTION * np.tanh(inner))[..., np.newaxis].astype(np.float32)


def train(of: Training, shown: Callable[[str], object] = lambda _: None) -> Weights:
    """The mean of the last elite."""
    rng = np.random.default_rng(of.seed)
    count = of.population * of.paths
    world = CongestionVectorEnv(count, duration="60s", history=HISTORY, **TRAINED)
    mean, spread = np.zeros(VALUES + 1), np.ones(VALUES + 1)
    for iteration in range(of.iterations):
        drawn = mean + spread * rng.standard_normal((of.population, VALUES + 1))
        drawn[0] = mean
        seeds = rng.integers(2**31, size=of.paths).tolist()
        scores = score(world, drawn, seeds, of.steps)
        best = drawn[np.argsort(-scores, kind="stable")[: of.elite]]
        # Without a floor the search ends before it has found much.
        mean, spread = best.mean(axis=0), best.std(axis=0) + 0.2 * 0.93**iteration
        shown(f"{iteration + 1} of {of.iterations}: mean {scores.mean():.3f}, best {scores.max():.3f}")
    return mean


def score(world: CongestionVectorEnv, drawn: Weights, seeds: Sequence[int], steps: int) -> Weights:
    """The mean reward of each policy over the paths of `seeds`, which are the same for all."""
    weights = np.repeat(drawn, len(seeds), axis=0)
    observations, _ = world.reset(seed=[*seeds] * len(drawn))
    total = np.zeros(len(weights))
    for _ in range(steps):
        observations, rewards, *_ = world.step(act(weights, observations))
        total += rewards
    return total.reshape(len(drawn), -1).mean(axis=1) / steps


def of_agent(weights: Weights, path: dict[str, str], rivals: Sequence[str], seed: int) -> list[float]:
    """Share of the link, median RTT by that of the path, and share of lost bytes."""
    env = CongestionEnv(rivals=rivals, duration=f"{SECONDS}s", history=HISTORY, seed=seed, **path)  # type: ignore[arg-type]
    observation, _ = env.reset()
    steps, before = [], 0.0
    over = False
    while not over:
        observation, _, _, over, info = env.step(act(weights, observation))
        length, before = info["time"] - before, info["time"]
        got = info["delivered"] * length
        steps.append((got, got * info["loss"] / max(1 - info["loss"], 1e-9), info["rtt"]))
    got, lost, rtts = np.array(steps).T
    rate, rtt = float(path["rate"].removesuffix("mbit")) * 1e6, float(path["rtt"].removesuffix("ms")) / 1e3
    share = got.sum() / (rate * SECONDS)
    return [share, float(np.median(rtts)) / rtt, lost.sum() / max(got.sum() + lost.sum(), 1)]


def of_controller(cc: str, path: dict[str, str], rivals: Sequence[str], seed: int) -> list[float]:
    """The same of a controller of uncork in the agent's place."""
    race = uncork.race([cc, *rivals], duration=f"{SECONDS}s", seed=seed, **path)
    flow = pandas.DataFrame.from_arrow(race).sort_values("flow").iloc[0]
    rate, rtt = float(path["rate"].removesuffix("mbit")) * 1e6, float(path["rtt"].removesuffix("ms"))
    share = flow["bytes_delivered"] * 8 / (rate * SECONDS)
    return [share, flow["rtt_p50_ms"] / rtt, flow["packets_lost"] / flow["packets_sent"]]


def compare(weights: Weights, seeds: Sequence[int] = SEEDS) -> pandas.DataFrame:
    """A row for each path, rivals and controller: means over the seeds."""
    rows = []
    for name, path in UNSEEN.items():
        for rivals in RIVALS:
            for cc in ("agent", "cubic", "bbr3"):
                runs = [
                    of_agent(weights, path, rivals, seed)
                    if cc == "agent"
                    else of_controller(cc, path, rivals, seed)
                    for seed in seeds
                ]
                share, rtt, loss = np.mean(runs, axis=0)
                rows.append((name, " ".join(rivals) or "none", cc, share, rtt, loss))
    return pandas.DataFrame(rows, columns=["path", "rival", "controller", "share", "rtt", "loss"])


def table(found: pandas.DataFrame) -> str:
    """As Markdown: the share of the link, and (median RTT by that of the path, loss)."""
    lines = ["| path | rival | agent | cubic | bbr3 |", "|---|---|--:|--:|--:|"]
    for (path, rival), rows in found.groupby(["path", "rival"], sort=False):
        cells = [f"{100 * it.share:.0f} % ({it.rtt:.2f}, {100 * it.loss:.1f} %)" for it in rows.itertuples()]
        lines.append(f"| {path} | {rival} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    training = commands.add_parser("train", help="find the weights")
    training.add_argument("-o", "--output", type=Path, required=True, help="file for the weights")
    training.add_argument("--iterations", type=int, default=Training.iterations)
    training.add_argument("--seed", type=int, default=Training.seed)
    comparing = commands.add_parser("compare", help="print the table")
    comparing.add_argument("weights", type=Path, help="file of `train`")
    comparing.add_argument("--seeds", type=int, default=len(SEEDS), help="of each row, at most 3")
    given = parser.parse_args()
    if given.command == "compare":
        weights = np.array(json.loads(given.weights.read_text())["weights"])
        print(table(compare(weights, SEEDS[: given.seeds])))
        return 0
    began, cpu = time.perf_counter(), time.process_time()
    weights = train(
        Training(iterations=given.iterations, seed=given.seed), lambda line: print(line, flush=True)
    )
    print(f"{time.perf_counter() - began:.0f} s, {time.process_time() - cpu:.0f} CPU-s")
    given.output.write_text(json.dumps({"weights": weights.tolist()}) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
