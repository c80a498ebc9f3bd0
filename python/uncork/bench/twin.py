"""A twin of a simulated Internet: its predictions, against measurements and the truth.

    python bench/twin.py --seeds 1,2                      a week in each of two worlds
    python bench/twin.py --seeds 1,2 --days 2 --keep DIR  goes on with what bench/internet.py kept there
    python bench/twin.py --seeds 2 --by-network 20        networks with 20 large responses have lines, too

In each world the loop of bench/internet.py runs for some days. `uncork lab from-records` makes a twin of its
records, `uncork lab run` tries the controllers in it, and `uncork learn calibrate` holds the predictions to
what the experiment measured. The truth is known here, so the lines that the twin has are held to the true
ones, too (`uncork lab internet lines`), and networks' lifts to the true lifts.

It needs `uncork`: on the PATH, or where UNCORK says.
"""

from __future__ import annotations

import argparse
import csv
import math
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import internet
import numpy as np
import pyarrow.parquet as pq
from scipy import stats

from uncork.learn import twin, twinpage
from uncork.learn.lift import Estimate
from uncork.learn.store import Store
from uncork.learn.truth import Oracle
from uncork.measure.errors import InputError

CONTROLLERS = ("cubic", "bbr3")
UNITS = {
    "gbit": 1e9,
    "mbit": 1e6,
    "kbit": 1e3,
    "bdp": 1.0,
    "ms": 1.0,
    "MB": 1e6,
    "kB": 1e3,
    "%": 0.01,
    "s": 1e3,
}
LINES = {"rate": 1e6, "rtt": 1.0, "loss": 0.01, "buffer": 1e3}
"""What a line has, and the unit in which it is shown: Mbit/s, ms, %, kB."""
CLEAR = 0.02
"""Lifts beyond this have a sign that matters."""

Lines = Mapping[str, float]


@dataclass(frozen=True)
class System:
    """An AS: lifts are logarithms."""

    name: str
    kind: str
    share: float
    predicted: Estimate
    measured: Estimate
    true: float
    """Of a client if its neighbours keep the control arm: what an experiment sees."""
    expected: Estimate
    """By the line through the other ASes."""
    estimated: Lines
    """Medians of its lines in the twin,"""
    lines: Lines
    """and the true ones."""


def run(command: Sequence[object]) -> float:
    """Runs it, and returns the processor time that it took."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        sys.exit(done.stderr)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def number(text: str) -> float:
    """A quantity of a scenario, in bit/s, ms, bytes or as a part of 1."""
    unit = next(unit for unit in UNITS if text.endswith(unit))
    return float(text.removesuffix(unit)) * UNITS[unit]


def middle(value: object) -> float:
    """The median of what a scenario draws a value from."""
    if isinstance(value, Mapping):
        return next(number(at) for share, at in value["quantiles"] if share == "50%")
    return number(str(value))


def estimated(scenario: Path) -> dict[str, Lines]:
    """The lines that a twin has, by AS."""
    found = {}
    for name, path in tomllib.loads(scenario.read_text())["path"].items():
        line = {key: middle(path[key]) for key in LINES}
        if path["buffer"].endswith("bdp"):
            line["buffer"] *= line["rate"] / 8 * line["rtt"] / 1e3
        found[name.upper()] = line
    return found


def true_lines(file: Path) -> dict[str, Lines]:
    """The lines that users have, by AS. Behind a policer the rate is the policer's."""
    found: dict[str, list[list[float]]] = defaultdict(list)
    with file.open() as text:
        for row in csv.DictReader(text):
            rate = float(row["policer_bps"]) or float(row["rate_bps"])
            line = [rate, float(row["rtt_ms"]), float(row["loss"]), float(row["buffer_bytes"])]
            found[row["asn"]].append(line)
    return {name: dict(zip(LINES, np.median(rows, axis=0), strict=True)) for name, rows in found.items()}


def systems(found: twin.Trial, oracle: Oracle, scenario: Path, lines: Path) -> list[System]:
    """The ASes that have a prediction and a measurement."""
    truth = oracle.truths["large"]
    weight: dict[str, float] = defaultdict(float)
    total: dict[str, float] = defaultdict(float)
    for name, share, lift in zip(truth.system, truth.share, truth.alone, strict=True):
        weight[name] += share
        total[name] += share * lift
    kinds = dict(zip(truth.system, truth.kind, strict=True))
    of_twin, of_world = estimated(scenario), true_lines(lines)
    pairs = found.calibration.pairs
    rows = []
    for pair in pairs:
        others = [one for one in pairs if one is not pair]
        fit = twin.calibrate(
            {one.name: one.predicted for one in others}, {one.name: one.measured for one in others}
        )
        name = pair.name
        rows.append(
            System(
                name,
                kinds[name],
                weight[name],
                pair.predicted,
                pair.measured,
                total[name] / weight[name],
                fit.prior(pair.predicted),
                of_twin[name],
                of_world[name],
            )
        )
    return sorted(rows, key=lambda one: (one.kind, one.name))


def _percent(lift: float) -> str:
    return f"{math.expm1(lift):+.0%}"


def render(found: twin.Trial, rows: Sequence[System]) -> str:
    """Each AS, and what comes of all."""
    head = f"{'AS':8} {'kind':10}{'traffic':>8}{'predicted':>10}{'measured':>9}{'(95 %)':>14}{'true':>7}"
    names = "".join(f"{key:>16}" for key in LINES)
    lines = [f"{head}{names}   estimated / true, Mbit/s, ms, %, kB"]
    for one in rows:
        low, high = (one.measured.lift + side * twin.NORMAL * one.measured.error for side in (-1, 1))
        cells = "".join(
            f"{f'{one.estimated[key] / unit:.3g} / {one.lines[key] / unit:.3g}':>16}"
            for key, unit in LINES.items()
        )
        lines.append(
            f"{one.name:8} {one.kind:10}{one.share:8.1%}{_percent(one.predicted.lift):>10}"
            f"{_percent(one.measured.lift):>9}{f'({_percent(low)} to {_percent(high)})':>14}"
            f"{_percent(one.true):>7}{cells}"
        )
    return "\n".join([*lines, "", found.summary().rstrip(), *_summary(rows)]) + "\n"


def _summary(rows: Sequence[System]) -> list[str]:
    predicted = np.array([one.predicted.lift for one in rows])
    measured = np.array([one.measured.lift for one in rows])
    true = np.array([one.true for one in rows])
    expected = np.array([one.expected.lift for one in rows])
    spread = np.array([one.expected.error for one in rows])
    error = np.array([one.measured.error for one in rows])
    clear = np.abs(true) > CLEAR
    surely = np.abs(measured) > twin.NORMAL * error
    reach = twin.NORMAL * np.hypot(spread, error)

    def part(holds: np.ndarray) -> str:
        return f"{int(holds.sum())} of {len(holds)}"

    signs = predicted * np.where(surely, measured, true) > 0
    rank = float(stats.spearmanr(predicted, true).statistic)
    off = predicted - true
    return [
        f"against the truth: rank correlation {rank:.2f}, mean off {np.mean(off):+.3f}, root of the mean "
        f"square {math.sqrt(float(np.mean(off**2))):.3f}",
        f"right sign: {part(signs[surely])} ASes that were measured to differ, "
        f"{part((predicted * true > 0)[clear])} with a truth beyond 2 %",
        "the 95 % interval that the line of the other ASes gives has the measurement in "
        f"{part(np.abs(expected - measured) <= reach)}, the truth in "
        f"{part(np.abs(expected - true) <= twin.NORMAL * spread)}",
    ]


def by_kind(rows: Sequence[System]) -> str:
    """How far predictions and lines are off, by kind of AS: medians."""
    kinds = Counter(one.kind for one in rows)
    names = "".join(f"{key:>10}" for key in LINES)
    lines = [f"{'kind':10}{'ASes':>5}{'predicted - true':>18}{names}   estimated over true, medians"]
    for kind, count in sorted(kinds.items()):
        some = [one for one in rows if one.kind == kind]
        off = float(np.median([one.predicted.lift - one.true for one in some]))
        cells = ""
        for key in LINES:
            over = np.median([one.estimated[key] / max(one.lines[key], 1e-9) for one in some])
            cells += f"{float(over):10.2f}"
        lines.append(f"{kind:10}{count:5}{off:18.3f}{cells}")
    return "\n".join(lines) + "\n"


def by_network(flows: Path, oracle: Oracle) -> str:
    """Networks with lines of their own: how far predictions by these, by the lines of their ASes, and by the
    mean of both are from the truth.
    """
    predicted, truth = twin.predicted(pq.read_table(flows), *CONTROLLERS), oracle.truths["large"]
    rows = [
        (predicted[network].lift, predicted[system].lift, lift)
        for network, system, lift in zip(truth.network, truth.system, truth.alone, strict=True)
        if network in predicted and system in predicted
    ]
    if not rows:
        return ""
    own, of_system, true = np.array(rows).T
    lines = [f"{len(rows)} networks against the truth, predicted by"]
    for name, lifts in (
        ("their lines", own),
        ("their ASes'", of_system),
        ("the mean", (own + of_system) / 2),
    ):
        rank, off = float(stats.spearmanr(lifts, true).statistic), lifts - true
        lines.append(
            f"  {name:12} rank correlation {rank:.2f}, median off {np.median(np.abs(off)):.3f}, root of the "
            f"mean square {math.sqrt(float(np.mean(off**2))):.3f}"
        )
    return "\n".join(lines) + "\n"


def prior_plan(directory: Path, days: int, prior: Path) -> str:
    """Whether `learn plan` takes the prior: what it says first."""
    until = (internet.START + timedelta(days)).isoformat()
    with tempfile.TemporaryDirectory() as scratch:
        words = ["plan", directory / "records", "-o", scratch, "--until", until, "--key", internet.KEY]
        said = subprocess.run(
            [sys.executable, "-m", "uncork.learn.cli", *map(str, words), "--prior", str(prior)],
            capture_output=True,
            text=True,
            check=False,
        )
    answer = (said.stderr if said.returncode else said.stdout).strip().splitlines()
    return f"plan --prior: {answer[1] if not said.returncode else answer[-1]}"


def main() -> int:
    """The command line."""
    parser = internet.arguments(__doc__ or "", 150)
    parser.add_argument("--clients", type=int, default=200, help="of the twin's ASes, with each arm [200]")
    parser.add_argument(
        "--by-network", type=int, metavar="N", help="lines of networks with N large responses"
    )
    options = parser.parse_args()
    for world, directory in internet.worlds(options):
        _world(world, directory, options)
    return 0


def _world(world: internet.World, directory: Path, options: argparse.Namespace) -> None:
    oracle = world.oracle(options.truth, directory / f"oracle-{options.truth}.csv")
    internet.follow(world, oracle, options.days, directory)
    scenario, lines, output = (directory / name for name in ("twin.toml", "lines.csv", "twin"))
    shutil.rmtree(output, ignore_errors=True)
    lab = [world.program, "lab"]
    run([*lab, "internet", "lines", *world.arguments(), "-o", lines])
    words = [word for cc in CONTROLLERS for word in ("--cc", cc)]
    if options.by_network is not None:
        words += ["--by-network", str(options.by_network)]
    records = sorted((directory / "records").glob("*.parquet"))
    ends = (internet.START + timedelta(options.days)).strftime("%Y%m%d")
    records = [file for file in records if file.name < f"responses-{ends}"]
    run([*lab, "from-records", *records, *words, "--clients", options.clients, "-o", scenario])
    began = time.monotonic()
    cpu = run([*lab, "run", scenario, "-o", output])
    wall = time.monotonic() - began
    store = Store(directory / "learned")
    evidence, settings = store.evidence(options.days), store.settings(options.days)
    found = twin.trial(evidence, settings, output / "flows.parquet")
    rows = systems(found, oracle, scenario, lines)
    (directory / "twin.html").write_text(twinpage.page(found))
    (directory / "prior.json").write_text(found.prior())
    networks = by_network(output / "flows.parquet", oracle)
    print(
        f"seed {world.seed}, {options.days} days, {options.clients} clients of each AS; the twin's run took "
        f"{cpu:.0f} s of CPU, {wall:.0f} s\n\n{render(found, rows)}\n{by_kind(rows)}\n{networks}",
        flush=True,
    )
    print(prior_plan(directory, options.days, directory / "prior.json") + "\n", flush=True)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except InputError as error:
        sys.exit(f"error: {error}")
