"""`uncork learn` in a simulated Internet, day by day, compared with other rules and an oracle.

    python bench/internet.py                              300 networks, 7 days: some minutes
    python bench/internet.py --seeds 1,2,3 --keep worlds  three worlds, with intervals over them
    python bench/internet.py --networks 20000 --systems 300 --connections 1000000 --days 30 --again 2000
    python bench/internet.py --days 35 --plan "--confirm 50% --harmed 5%"

Each day `uncork lab internet records` simulates connections under the active policy, and `uncork learn`
plans and applies the next one. The oracle is `uncork lab internet oracle`: what each controller is worth
to each group of networks if all clients there have it. The minimum of many figures selects errors, too:
`--again` looks once more, with other users, at the groups that are on and near the limit of harm.

With `--keep` existing files are not made again: a second call goes on, also to more days. Remove the
directory if `uncork` has changed. Other options of `plan` have another loop.

It needs `uncork`: on the PATH, or where UNCORK says.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import math
import os
import resource
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

import numpy as np
from scipy import stats

from uncork.experiment import measures
from uncork.experiment.policyfile import Arm, PolicyPlan, ab_policy
from uncork.learn.cli import main as learn
from uncork.learn.defaults import CLASSES
from uncork.learn.evidence import Section, sections
from uncork.learn.settings import PRIMARY
from uncork.learn.store import Store
from uncork.learn.truth import Choice, Flags, Oracle, Score, Scores, learned
from uncork.measure.metrics import METRICS

START = date(2026, 11, 2)
KEY = "000102030405060708090a0b0c0d0e0f"
ARMS = ("control", "bbr")
BPFTUNE_LOSS = 0.015
"""bpftune changes a host's connections to BBR when more than this is sent again."""
EPSILON = 0.1
NEAR = 2.5
"""Errors of the truth between a lift and the limit of harm."""


@dataclass(frozen=True)
class World:
    """The simulated Internet, and what is done in it."""

    program: str
    seed: int
    networks: int
    systems: int
    connections: int
    others: str = "2%"
    controllers: tuple[str, str] = ("cubic", "bbr3")
    """Of the control arm and of the treated arm."""

    def arguments(self) -> list[str]:
        """Which world."""
        return ["--seed", str(self.seed), "--networks", str(self.networks), "--systems", str(self.systems)]

    def first_policy(self, directory: Path) -> Path:
        """Writes that of the first day, on which nothing has been learned: a tenth of the users are in the
        experiment.
        """
        pairs = zip(ARMS, self.controllers, strict=True)
        control, treated = (Arm(name, {"quic": controller}) for name, controller in pairs)
        plan = PolicyPlan("explore", control, treated, key=KEY, unit="cookie:uid", share=0.1)
        path = directory / "first.toml"
        path.write_text(ab_policy(plan), encoding="utf-8")
        return path

    def records(self, day: date, policy: Path, output: Path, days: int = 1) -> str:
        """Simulates days, and returns their cost."""
        words = ["records", "--from", day.isoformat(), "--days", str(days)]
        words += ["--connections", str(self.connections), "--others", self.others]
        return self._lab([*words, "--policy", str(policy), "-o", str(output)])

    def plan(self) -> list[str]:
        """What `plan` has to know of the world."""
        control, treated = self.controllers
        return [
            "--key",
            KEY,
            "--control-settings",
            f"quic={control}",
            "--treated-settings",
            f"quic={treated}",
        ]

    def oracle(self, connections: int, output: Path) -> Oracle:
        """What both controllers are worth. A file that is there already is read."""
        if not output.exists():
            self._lab(["oracle", *self._pair(), "--connections", str(connections), "-o", str(output)])
        return Oracle.load(output)

    def again(self, groups: Sequence[str], connections: int, output: Path) -> Oracle:
        """What they are worth to these groups, by other users."""
        words = ["--connections", str(connections), "--only", ",".join(groups), "--draw", "1"]
        self._lab(["oracle", *self._pair(), *words, "-o", str(output)])
        return Oracle.load(output)

    def _pair(self) -> list[str]:
        control, treated = self.controllers
        return ["--control", control, "--treated", treated]

    def _lab(self, words: list[str]) -> str:
        command = [self.program, "lab", "internet", words[0], *self.arguments(), *words[1:]]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(done.stderr)
        return done.stderr.strip()


def score(choice: Choice, oracle: Oracle) -> Scores:
    """What a choice brings, by class of objects."""
    return {name: oracle.truths[name].score(on) for name, on in choice.items()}


def signs(evidence: Mapping[str, Section], oracle: Oracle) -> Choice:
    """Each network's own quantiles, however few records they are of: the treated arm if it looks better."""
    return _by_network(evidence, oracle, _looks_better)


def bpftune(evidence: Mapping[str, Section], oracle: Oracle) -> Choice:
    """The treated arm where more than 1.5 % of the control arm's bytes are sent again."""
    return _by_network(evidence, oracle, _loses_much)


def _by_network(evidence: Mapping[str, Section], oracle: Oracle, rule: Callable[[Section], Flags]) -> Choice:
    choice = {}
    for name, truth in oracle.truths.items():
        on = np.zeros(len(truth.network), dtype=np.bool_)
        if (section := evidence.get(name)) is not None:
            place = {network: at for at, network in enumerate(truth.network)}
            where = np.array([place[network] for network in section.networks])
            on[where] = rule(section)
        choice[name] = on
    return choice


def _looks_better(section: Section) -> Flags:
    measure = PRIMARY[section.of_class]
    counts, q = section.metrics[measure.metric], measures.quantile(measure.statistic)
    assert q is not None
    first = int(counts.bin.min())
    cube = np.zeros((len(section.networks), 2, int(counts.bin.max()) - first + 1))
    np.add.at(cube, (counts.network, counts.arm, counts.bin - first), counts.n)
    total = cube.sum(axis=2)
    at = (np.cumsum(cube, axis=2) >= np.maximum(q * total, 1e-9)[:, :, None]).argmax(axis=2)
    is_better = at[:, 1] > at[:, 0] if METRICS[measure.metric].better == "higher" else at[:, 1] < at[:, 0]
    return np.asarray(is_better & (total > 0).all(axis=1))


def _loses_much(section: Section) -> Flags:
    counts = section.metrics["retransmitted"]
    sums = np.zeros((2, len(section.networks)))
    control = counts.where(counts.arm == 0)
    np.add.at(sums[0], control.network, control.numerator)
    np.add.at(sums[1], control.network, control.denominator)
    return np.asarray(sums[0] > BPFTUNE_LOSS * np.maximum(sums[1], 1))


@dataclass(frozen=True)
class Look:
    """The scores of all rules after a day."""

    day: int
    scores: Mapping[str, Scores]
    changed: int
    """Entries of networks that changed since the day before."""
    cost: str


def follow(world: World, oracle: Oracle, days: int, directory: Path, plan: Sequence[str] = ()) -> list[Look]:
    """The loop: each day's records under the policy that the records before it made."""
    store = Store(directory / "learned")
    looks: list[Look] = []
    before: Choice | None = None
    for day in range(days):
        # A day depends on the policy before it, so that of a run that ended early is the same.
        cost = "" if day + 1 in store.numbers() else _live(world, day, store, directory / "records", plan)
        now = learned(store.decisions(day + 1), oracle, "bbr")
        found = sections(store.evidence(day + 1), store.settings(day + 1))
        evidence = {section.of_class: section for section in found}
        changed = sum(int((on != before[of]).sum()) for of, on in now.items()) if before else 0
        looks.append(Look(day + 1, _scores(now, evidence, oracle), changed, cost))
        before = now
    return looks


def _live(world: World, day: int, store: Store, records: Path, plan: Sequence[str]) -> str:
    """A day under the active policy, and the version that its records make. Returns its cost."""
    policy = store.path(day) / "policy.toml" if day else world.first_policy(records.parent)
    cost = world.records(START + timedelta(day), policy, records)
    start, busy = time.perf_counter(), time.process_time()
    learn_from(world, day + 1, store, records, plan)
    seconds, busy = time.perf_counter() - start, time.process_time() - busy
    _learn("apply", store.root, str(day + 1))
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return f"{cost}; plan: {seconds:.1f} s, {busy:.1f} s of processor time, at most {most:.0f} MiB so far"


def learn_from(world: World, days: int, store: Store, records: Path, plan: Sequence[str]) -> None:
    """Adds a version by the records of the first days, made at midnight: its switchbacks use the coins of
    the day on which it is active.
    """
    until = (START + timedelta(days)).isoformat()
    _learn("plan", records, "-o", store.root, "--until", until, *world.plan(), *plan)


def _learn(*words: object) -> None:
    """A command of `uncork learn`, without its output."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        status = learn([str(word) for word in words])
    if status:
        sys.exit(said.getvalue())


def _scores(now: Choice, evidence: Mapping[str, Section], oracle: Oracle) -> dict[str, Scores]:
    all_clients = {name: np.ones(len(truth.share), dtype=np.bool_) for name, truth in oracle.truths.items()}
    sign, all_treated = score(signs(evidence, oracle), oracle), score(all_clients, oracle)
    none = score({name: ~on for name, on in all_clients.items()}, oracle)
    return {
        "learned": score(now, oracle),
        "all CUBIC": none,
        "all BBR": all_treated,
        "bpftune's rule": score(bpftune(evidence, oracle), oracle),
        "sign by network": sign,
        "epsilon-greedy": {
            of: one.mixed(all_treated[of].mixed(none[of], 0.5), EPSILON) for of, one in sign.items()
        },
    }


def _cells(one: Score) -> str:
    gain = "none" if math.isnan(one.gain) else f"{one.gain:.1%}"
    return f"{gain:>10}{one.harmed:8.2%}{one.surely:8.2%}{one.over:8.1%}"


def render(looks: Sequence[Look], oracle: Oracle) -> str:
    """A table of the last look, and the way there."""
    last = looks[-1]
    about = (
        f"After {last.day} days: gain as a part of the oracle's; traffic that is more than 2 % worse, and",
        "surely so by the interval of the truth; traffic that breaks the limit of retransmitted bytes",
        "(2 points), which the oracle keeps",
    )
    lines = [*about, "", f"{'':20}{'large objects':>34}{'small objects':>34}"]
    for name, one in last.scores.items():
        lines.append(f"{name:20}{''.join(_cells(one[of]) for of in CLASSES)}")
    lines += ["", "learned, day by day: the same, and entries that changed", ""]
    for look in looks:
        cells = "".join(_cells(look.scores["learned"][of]) for of in CLASSES)
        lines.append(f"day {look.day:3}{'':13}{cells}{look.changed:8}   {look.cost}")
    lines += ["", "the mean lift of all BBR, of the oracle, of one without that limit; median error", ""]
    for of in CLASSES:
        truth = oracle.truths[of]
        all_clients = np.ones(len(truth.share), dtype=np.bool_)
        means = (truth.mean_lift(on) for on in (all_clients, truth.oracle(), truth.lift > 0))
        cells = "".join(f"{np.expm1(mean):+8.1%}" for mean in means)
        lines.append(f"{of:8}{cells}{np.median(truth.error):8.2%}")
        shared = np.array([kind == "shared" for kind in truth.kind])
        if (weight := float(truth.share[shared].sum())) > 0:
            of_all, alone = (
                float((truth.share * lift)[shared].sum()) / weight for lift in (truth.lift, truth.alone)
            )
            lines.append(
                f"{'':8}on shared uplinks {np.expm1(of_all):+.1%} for all, {np.expm1(alone):+.1%} alone"
            )
    return "\n".join(lines) + "\n"


def render_again(world: World, oracle: Oracle, days: int, connections: int, directory: Path) -> str:
    """Harm to large objects after the last day, with other users in the groups near its limit."""
    on = learned(Store(directory / "learned").decisions(days), oracle, "bbr")["large"]
    truth = oracle.truths["large"]
    groups = truth.near_the_limit(on, NEAR)
    if not groups:
        return "No group that is on is near the limit of harm.\n"
    found = world.again(groups, connections, directory / "again.csv").truths["large"]
    truth = truth.mended(found)
    one = truth.score(on)
    share = truth.share[on & np.isin(truth.group, groups)].sum()
    return (
        f"By up to {connections} connections of other users in {len(groups)} groups near the limit, "
        f"{share:.1%} of the traffic\n(median error {np.median(found.error):.2%}): worse {one.harmed:.2%}, "
        f"surely {one.surely:.2%}; the worst {np.expm1(truth.lift[on].min()):+.1%}\n"
    )


def over_seeds(worlds: Sequence[Sequence[Look]], day: int) -> str:
    """What a day brings in several worlds: the mean and its 95 % interval, or the mean and the worst."""
    looks = [next(look for look in world if look.day == day) for world in worlds]
    lines = [
        f"After {day} days, {len(looks)} worlds, large objects: gain as a part of the oracle's (95 %",
        "interval of the mean); worse, surely worse and over the limit: mean (worst world)",
        "",
    ]
    for name in looks[0].scores:
        of_rule = [look.scores[name]["large"] for look in looks]
        gain, reach = _mean([one.gain for one in of_rule])
        parts = [
            [one.harmed for one in of_rule],
            [one.surely for one in of_rule],
            [one.over for one in of_rule],
        ]
        cells = "".join(f"{f'{np.mean(part):.2%} ({max(part):.1%})':>18}" for part in parts)
        lines.append(f"{name:20}{f'{gain:.1%} ({gain - reach:.1%} to {gain + reach:.1%})':>30}{cells}")
    return "\n".join(lines) + "\n"


def _mean(values: Sequence[float]) -> tuple[float, float]:
    """And how far its 95 % interval reaches (Student's t)."""
    error = float(np.std(values, ddof=1)) / math.sqrt(len(values))
    return float(np.mean(values)), float(stats.t.ppf(0.975, len(values) - 1)) * error


def arguments(about: str, truth: int) -> argparse.ArgumentParser:
    """What worlds need. `truth` is the default of the option."""
    first, _, _ = about.partition("\n")
    parser = argparse.ArgumentParser(description=first)
    parser.add_argument("--seeds", default="1", help="of the worlds: 1,2,3 [1]")
    parser.add_argument("--networks", type=int, default=300, help="client networks [300]")
    parser.add_argument("--systems", type=int, default=30, help="autonomous systems [30]")
    parser.add_argument("--connections", type=int, default=60_000, help="of a day, about [60000]")
    parser.add_argument("--days", type=int, default=7, help="[7]")
    parser.add_argument(
        "--truth", type=int, default=truth, help=f"mean connections of each controller and group [{truth}]"
    )
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep truth, records and versions there")
    return parser


def place(directory: Path, plan: Sequence[str]) -> Path:
    """Of a loop in a world's directory: loops with other options do not mix."""
    found = directory / "".join(plan).strip("-") if plan else directory
    found.mkdir(parents=True, exist_ok=True)
    return found


def program() -> str:
    """Where `uncork` is."""
    found = os.environ.get("UNCORK") or shutil.which("uncork")
    if found is None:
        sys.exit("error: there is no `uncork` on the PATH: build it, and set UNCORK to its path")
    return found


def worlds(options: argparse.Namespace) -> Iterator[tuple[World, Path]]:
    """Each, and its directory, which is kept if asked."""
    uncork = program()
    with contextlib.ExitStack() as stack:
        temporary = tempfile.TemporaryDirectory(prefix="uncork-internet-")
        root = options.keep or Path(stack.enter_context(temporary))
        for seed in map(int, options.seeds.split(",")):
            world = World(uncork, seed, options.networks, options.systems, options.connections)
            directory = root / f"{seed}-{world.networks}-{world.systems}-{world.connections}"
            directory.mkdir(parents=True, exist_ok=True)
            yield world, directory


def main() -> int:
    """The command line."""
    parser = arguments(__doc__ or "", 300)
    parser.add_argument(
        "--again", type=int, metavar="N", help="other connections for groups near the limit of harm [none]"
    )
    parser.add_argument(
        "--plan", default="", metavar="OPTIONS", help="of learn plan: '--confirm 50%%' [none]"
    )
    options = parser.parse_args()
    looks: list[list[Look]] = []
    for world, directory in worlds(options):
        oracle = world.oracle(options.truth, directory / f"oracle-{options.truth}.csv")
        plan = shlex.split(options.plan)
        loop = place(directory, plan)
        looks.append(follow(world, oracle, options.days, loop, plan))
        print(f"seed {world.seed}\n\n{render(looks[-1], oracle)}", flush=True)
        if options.again:
            print(render_again(world, oracle, options.days, options.again, loop), flush=True)
    if len(looks) > 1:
        print(over_seeds(looks, options.days), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
