"""Decisions of an agent per second of CPU time: `python bench/gym_speed.py`. Needs the extra `gym`.

Build the module with optimisations first (`pip install .`). One thread steps 64 environments; the agent
keeps a short queue. A decision costs what the simulator needs for the packets of a round trip, so the packets
are shown, too.
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import Any

import numpy as np

from uncork.gym import CongestionEnv, CongestionVectorEnv

PATHS: dict[str, dict[str, Any]] = {
    "5 Mbit/s, 20 ms": {"rate": "5mbit", "rtt": "20ms"},
    "5 Mbit/s, 20 ms, next to CUBIC": {"rate": "5mbit", "rtt": "20ms", "rivals": ["cubic"]},
    "10 Mbit/s, 40 ms": {"rate": "10mbit", "rtt": "40ms"},
    "20 Mbit/s, 50 ms": {"rate": "20mbit", "rtt": "50ms"},
    "20 Mbit/s, 50 ms, next to CUBIC": {"rate": "20mbit", "rtt": "50ms", "rivals": ["cubic"]},
}
ENVIRONMENTS = 64
MSS_BITS = 1448 * 8


def actions(observations: Any) -> Any:
    """Holds a queue of 0.3 round trips."""
    waiting, change = observations[..., -3], observations[..., -2]
    return np.clip(0.2 * (0.3 - waiting) - 0.5 * change, -1, 1).astype(np.float32)[..., np.newaxis]


def vector(path: dict[str, Any], steps: int, jobs: int) -> tuple[float, float]:
    """Decisions per second of CPU time, and packets of the agent per decision."""
    envs = CongestionVectorEnv(ENVIRONMENTS, jobs=jobs, loss="0%", duration="600s", **path)
    observations, _ = envs.reset(seed=1)
    packets, began = 0.0, time.process_time()
    for _ in range(steps):
        observations, _, _, _, infos = envs.step(actions(observations))
        packets += float((infos["delivered"] * float(path["rtt"][:-2]) / 1e3 / MSS_BITS).sum())
    count = steps * ENVIRONMENTS
    return count / (time.process_time() - began), packets / count


def single(path: dict[str, Any], steps: int) -> float:
    env = CongestionEnv(loss="0%", duration="600s", **path)
    observation, _ = env.reset(seed=1)
    began = time.process_time()
    for _ in range(steps):
        observation, *_ = env.step(actions(observation))
    return steps / (time.process_time() - began)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--steps", type=int, default=300, help="of each environment")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=1, help="threads")
    given = parser.parse_args()
    print("| path | packets of a decision | single | 64 environments |\n|---|--:|--:|--:|")
    for name, path in PATHS.items():
        alone = [single(path, 4 * given.steps) for _ in range(given.runs)]
        batches = [vector(path, given.steps, given.jobs) for _ in range(given.runs)]
        rates = [rate for rate, _ in batches]
        shown = [f"{statistics.median(of):,.0f} ({min(of):,.0f} to {max(of):,.0f})" for of in (alone, rates)]
        print(f"| {name} | {batches[0][1]:.0f} | {' | '.join(shown)} |")


if __name__ == "__main__":
    main()
