"""`uncork learn plan --confirm` in a simulated Internet: its verdicts and claims against the truth.

    python bench/confirm.py --seeds 28,34 --networks 30 --systems 6 --connections 2500 --days 36
    python bench/confirm.py --controllers bbr3,bbr1 --plan "--guardrail retransmitted=20pp" ...

Where an uplink is shared, an A/B test does not measure what a rollout brings. Each trial is compared with the
truth: days that the loop has not seen, with all networks of the trial on, and the same days with none on, as
all clients of the AS get them. The loop's own estimate without `--confirm` is shown too. Each week's gain
over the holdback is compared with the gain over the same connections without the table.

It needs `uncork`: on the PATH, or where UNCORK says.
"""

from __future__ import annotations

import argparse
import itertools
import math
import shlex
import sys
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from pathlib import Path

import internet
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from uncork.experiment import measures, words
from uncork.learn import evidence, tablefile
from uncork.learn.confirm import CONFIRMED, LEVEL, LOOKS, OPEN, REFUTED, Blocks, Floats, Key, Trial
from uncork.learn.gain import DAYS, gains
from uncork.learn.settings import PRIMARY, Settings
from uncork.learn.store import Store
from uncork.learn.total import totals
from uncork.learn.truth import Oracle, learned
from uncork.measure.bins import GAMMA
from uncork.measure.metrics import METRICS
from uncork.measure.reduce import to_arrow
from uncork.measure.sources import read
from uncork.measure.stats.effect import Effect
from uncork.measure.stats.jackknife import log_quantile
from uncork.measure.stats.switchback import DAY, Schedule, level_effect

EPOCH = date(1970, 1, 1)
FIRST = (internet.START - EPOCH).days
FRESH = internet.START + timedelta(364)
"""The first day that no loop has seen."""

Networks = Collection[Key]
"""Section and network."""


@dataclass(frozen=True)
class Verdict:
    """A trial, and the truth about it. Logarithms but for the trial's."""

    key: Key
    kind: str
    trial: Trial
    truth: float
    error: float
    """Standard error of the truth."""
    covers: float
    """By how many of all coins of a first look the interval would have the truth, on days of known truth."""
    alone: float
    """What an A/B test sees: the lift of a client if its neighbours keep the control arm, by traffic."""
    unconfirmed: float
    """Part of the AS's bytes that is on at the end without --confirm."""

    @property
    def is_right(self) -> bool | None:
        """Whether the interval covers the truth; None without an interval."""
        if self.trial.low is None or self.trial.high is None:
            return None
        return self.trial.low <= math.exp(self.truth) <= self.trial.high


@dataclass(frozen=True)
class Claim:
    """The gain over the holdback in a week, and the truth about it: logarithms."""

    section: str
    week: int
    lift: float
    low: float
    high: float
    truth: float
    """What the table's clients got, over what the same clients get on the same days without the table."""
    spill: float
    """What the holdback got, over what it gets without the table."""


@dataclass(frozen=True)
class Site:
    """A world, the loop in it, and where its files are."""

    world: internet.World
    directory: Path
    store: Store
    days: int

    @property
    def settings(self) -> Settings:
        return self.store.settings(self.days)

    def policy(self, name: str, on: Networks, first: date, days: int) -> Path:
        """Writes a policy that gives these networks the treated arm for days, all others the control arm."""
        first_day = (first - EPOCH).days
        settings = replace(self.settings, as_of=first_day, ttl=days)
        known = self.store.decisions(self.days)
        keys = zip(known.section, known.key, strict=True)
        arm = np.array([settings.treated if key in on else settings.control for key in keys], np.object_)
        place = self.directory / name
        place.mkdir(exist_ok=True)
        sections = [(section, "", section) for section in known.sections]
        (place / tablefile.table_name(1)).write_text(
            tablefile.table(1, replace(known, arm=arm), settings), encoding="utf-8"
        )
        path = place / "policy.toml"
        path.write_text(tablefile.policy(1, sections, settings), encoding="utf-8")
        return path

    def simulate(self, name: str, on: Networks, first: date, days: int) -> Path:
        """The records of days under such a policy. Existing records are kept."""
        records = self.directory / f"records-{name}"
        if not records.exists():
            part = self.directory / f"part-{name}"
            self.world.records(first, self.policy(name, on, first, days), part, days)
            part.rename(records)
        return records

    def counts(self, records: Path, as_of: int, window: int, systems: Sequence[str]) -> pa.Table:
        """The evidence of some days."""
        settings = replace(self.settings, as_of=as_of, window=window)
        return evidence.collect(read([records]).table, settings, to_arrow, systems)


def verdicts(site: Site, oracle: Oracle, unconfirmed: internet.Choice, fresh: int) -> list[Verdict]:
    """Each trial against the truth, by a number of `fresh` days that no loop has seen."""
    trials = site.store.trials(site.days)
    on = _switched(site)
    systems = sorted({system for _, system in trials})
    as_of = (FRESH - EPOCH).days + fresh

    def levels(name: str, networks: Networks) -> Mapping[Key, Blocks]:
        records = site.simulate(name, networks, FRESH, fresh)
        return evidence.blocks(site.counts(records, as_of, fresh, systems), site.settings)

    none = levels("none", ())
    some = {
        section: levels(
            section, {(section, network) for key in trials if key[0] == section for network in on[key]}
        )
        for section in sorted({section for section, _ in trials})
    }
    return [
        _verdict(key, trial, some[key[0]][key], none[key], oracle, unconfirmed)
        for key, trial in sorted(trials.items())
        if on[key]
    ]


def _verdict(
    key: Key, trial: Trial, treated: Blocks, control: Blocks, oracle: Oracle, chosen: internet.Choice
) -> Verdict:
    section, system = key
    days = np.intersect1d(treated.day, control.day)
    levels = [some.level[np.isin(some.day, days)] for some in (treated, control)]
    ratios = np.log(levels[0] / levels[1])
    truth = oracle.truths[section]
    own = np.array([one == system for one in truth.system])
    share = truth.share * own
    return Verdict(
        key,
        truth.kind[int(np.flatnonzero(own)[0])],
        trial,
        float(ratios.mean()),
        float(ratios.std(ddof=1)) / math.sqrt(len(ratios)),
        _coverage(*levels),
        float((share * truth.alone).sum() / share.sum()),
        float(share[chosen[section]].sum() / share.sum()),
    )


def _coverage(treated: Floats, control: Floats) -> float:
    """The share of all coins by which the interval covers the truth of days with known levels with and
    without the treatment: up to as many days as a first look has.
    """
    days = min(LOOKS[0], len(treated)) // 2 * 2
    truth = float(np.log(treated / control)[:days].mean())
    pair, hits = np.arange(days) // 2, 0
    for coins in itertools.product((0, 1), repeat=days // 2):
        is_on = np.arange(days) % 2 == np.array(coins)[pair]
        schedule = Schedule(np.arange(days) * DAY, DAY, pair, is_on)
        levels = np.where(is_on, treated[:days], control[:days])
        effect = level_effect(schedule, levels, np.random.default_rng(0), level=LEVEL)
        # No interval rules nothing out.
        hits += not isinstance(effect, Effect) or effect.ratio_low <= math.exp(truth) <= effect.ratio_high
    return hits / 2 ** (days // 2)


def _switched(site: Site) -> Mapping[Key, set[str]]:
    """By trial the networks that were on in at least half of its days with the treated arm."""
    counts: dict[Key, Counter[str]] = defaultdict(Counter)
    days: Counter[Key] = Counter()
    for number in range(1, site.days + 1):
        seen = set()
        for one in site.store.decisions(number).networks:
            if one.reason == f"switchback of {one.parent}: on" and one.arm == site.settings.treated:
                key = one.section, one.parent
                counts[key][one.key] += 1
                seen.add(key)
        days.update(seen)
    return defaultdict(set) | {
        key: {network for network, count in networks.items() if 2 * count >= days[key]}
        for key, networks in counts.items()
    }


def most_unconfirmed(site: Site) -> float:
    """Most of an AS's bytes that had the treated arm without a verdict, outside of a switchback's days."""
    most = 0.0
    for number in range(1, site.days + 1):
        found = site.store.decisions(number).networks
        trials = site.store.trials(number)
        total: Counter[Key] = Counter()
        on: Counter[Key] = Counter()
        for one in found:
            key = one.section, one.parent
            total[key] += one.share
            is_tried = one.reason.startswith("switchback of") or (
                key in trials and trials[key].verdict == CONFIRMED
            )
            on[key] += one.share if one.arm == site.settings.treated and not is_tried else 0.0
        most = max([most, *(on[key] / total[key] for key in total if total[key] > 0)])
    return most


def claims(site: Site) -> list[Claim]:
    """Each whole week's gain over the holdback, against the truth by the same days and users."""
    without = site.simulate("no-table", (), internet.START + timedelta(1), site.days - 1)
    found = []
    for last in range(1 + DAYS, site.days + 1, DAYS):
        settings = site.store.settings(last)
        own, real = site.store.evidence(last), site.counts(without, settings.as_of, DAYS, ())
        for section, course in gains(own, settings).items():
            one = course[-1]
            if one.day != settings.as_of - 1:
                continue
            table, holdback = (
                _level(own, section, one.day, arm) - _level(real, section, one.day, arm)
                for arm in (settings.treated, settings.control)
            )
            found.append(Claim(section, last // DAYS, one.lift, one.low, one.high, table, holdback))
    return found


def _level(counts: pa.Table, section: str, day: int, arm: str) -> float:
    """The logarithm of the primary measure in the week up to a day; more is better."""
    measure = PRIMARY[section]
    q = measures.quantile(measure.statistic)
    assert q is not None
    for name, value in (("metric", evidence.OF_HOLDBACK), ("class", section), ("arm", arm)):
        counts = counts.filter(pc.equal(counts[name].cast(pa.string()), value))
    counts = counts.filter(pc.and_(pc.greater(counts["day"], day - DAYS), pc.less_equal(counts["day"], day)))
    bins, n = np.asarray(counts["bin"]), np.asarray(counts["n"])
    first = int(bins.min())
    level = log_quantile(np.bincount(bins - first, n).astype(np.int64), q, first_bin=first, gamma=GAMMA)
    return level if METRICS[measure.metric].better == "higher" else -level


def render_trials(found: Sequence[Verdict], worth: float) -> str:
    """A table of trials, and what it comes to."""
    lines = [
        f"{'':6}{'AS':9}{'kind':10}{'verdict':10}{'day':>4}{'total effect':>30}{'truth':>18}{'alone':>10}"
        f"{'A/B on':>8}{'coins':>8}"
    ]
    for one in found:
        trial = one.trial
        effect = "none"
        if trial.ratio is not None and trial.low is not None and trial.high is not None:
            effect = f"{words.change(trial.ratio)} ({words.interval(trial.low, trial.high)})"
        day = trial.decided - trial.since if trial.decided else 0
        truth = f"{words.change(math.exp(one.truth))} (±{100 * one.error:.1f})"
        lines.append(
            f"{one.key[0]:6}{one.key[1]:9}{one.kind:10}{trial.verdict:10}{day:4}{effect:>30}{truth:>18}"
            f"{words.change(math.exp(one.alone)):>10}{one.unconfirmed:8.0%}{one.covers:8.1%}"
            f"{'' if one.is_right is None else '' if one.is_right else '  missed'}"
        )
    known = [one for one in found if one.is_right is not None]
    gaining = [one for one in found if one.truth >= math.log1p(worth)]
    others = [one for one in found if one.truth < math.log1p(worth)]
    wrongly = [one for one in others if one.unconfirmed > 0.5]
    lines += [
        "",
        f"intervals with the truth: {sum(bool(one.is_right) for one in known)} of {len(known)}",
        f"total effect {worth:.0%} and more: {len(gaining)}, {_counted(gaining)}",
        f"total effect below: {len(others)}, {_counted(others)}; switched on without --confirm: "
        f"{len(wrongly)}, {_counted(wrongly)}",
    ]
    return "\n".join(lines) + "\n"


def _counted(some: Iterable[Verdict]) -> str:
    count = Counter(one.trial.verdict for one in some)
    return ", ".join(f"{count[name]} {name}" for name in (CONFIRMED, REFUTED, OPEN))


def render_claims(found: Sequence[Claim]) -> str:
    """The gains over the holdback, and how far the holdback itself is from what it would have been."""
    lines = [f"{'':8}{'week':>5}{'gain over the holdback':>32}{'truth':>10}{'holdback':>10}"]
    for one in found:
        gain = f"{words.change(math.exp(one.lift))} ({words.interval(math.exp(one.low), math.exp(one.high))})"
        truth, spill = (words.change(math.exp(value)) for value in (one.truth, one.spill))
        is_right = one.low <= one.truth <= one.high
        lines.append(
            f"{one.section:8}{one.week:5}{gain:>32}{truth:>10}{spill:>10}{'' if is_right else '  missed'}"
        )
    right = sum(one.low <= one.truth <= one.high for one in found)
    lines += ["", f"intervals with the truth: {right} of {len(found)}"]
    return "\n".join(lines) + "\n"


def render_total(site: Site, found: Sequence[Verdict]) -> str:
    """The total gain that the page claims of the confirmed ASes, against the truth."""
    networks = site.store.decisions(site.days).networks
    lines = []
    for section, one in totals(site.store.trials(site.days), networks).items():
        known = [
            (
                float(networks.share[(networks.section == section) & (networks.parent == each.key[1])].sum()),
                each,
            )
            for each in found
            if each.key[0] == section and each.trial.verdict == CONFIRMED
        ]
        truth = sum(share * each.truth for share, each in known) / sum(share for share, _ in known)
        lines.append(
            f"total gain, {section}: {words.change(one.ratio)} ({words.interval(one.low, one.high)}), "
            f"in truth {words.change(math.exp(truth))}"
        )
    return "\n".join(lines) + "\n"


def render_choices(choices: Mapping[str, internet.Choice], oracle: Oracle) -> str:
    """What each of them has at the end, by the oracle."""
    lines = [f"{'':20}{'lift of all':>12}{'worse':>8}{'over':>8}"]
    for name, choice in choices.items():
        for section, on in choice.items():
            truth = oracle.truths[section]
            score = truth.score(on)
            lift = words.change(math.exp(truth.mean_lift(on)))
            lines.append(f"{name:14}{section:6}{lift:>12}{score.harmed:8.2%}{score.over:8.1%}")
    return "\n".join(lines) + "\n"


def arguments() -> argparse.ArgumentParser:
    """The command line."""
    parser = internet.arguments(__doc__ or "", 300)
    parser.add_argument("--plan", default="", metavar="OPTIONS", help="of learn plan [none]")
    parser.add_argument("--confirm", default="50%", metavar="SHARE", help="of learn plan [50%%]")
    parser.add_argument("--others", default="100%", metavar="SHARE", help="that is recorded [100%%]")
    parser.add_argument("--fresh", type=int, default=14, metavar="DAYS", help="of a trial's truth [14]")
    parser.add_argument("--controllers", default="cubic,bbr3", metavar="CC,CC", help="[cubic,bbr3]")
    return parser


def main() -> int:
    """The command line."""
    options = arguments().parse_args()
    control, _, treated = options.controllers.partition(",")
    found: list[Verdict] = []
    weeks: list[Claim] = []
    plan = shlex.split(options.plan)
    for known, directory in internet.worlds(options):
        world = replace(known, others=options.others, controllers=(control, treated))
        home = internet.place(directory, [control, "-", treated, "-", *plan])
        oracle = world.oracle(options.truth, home / f"oracle-{options.truth}.csv")
        internet.follow(world, oracle, options.days, home, [*plan, "--confirm", options.confirm])
        site = Site(world, home, Store(home / "learned"), options.days)
        other = Store(home / "without")
        if not other.numbers():
            internet.learn_from(world, options.days, other, home / "records", plan)
        versions = {"with --confirm": site.store.decisions(site.days), "without": other.decisions(1)}
        choices = {name: learned(one, oracle, internet.ARMS[1]) for name, one in versions.items()}
        trials, gained = verdicts(site, oracle, choices["without"], options.fresh), claims(site)
        print(f"seed {world.seed}, {treated} for {control}\n\n{render_choices(choices, oracle)}")
        print(f"most of an AS without a verdict: {most_unconfirmed(site):.0%}\n")
        print(f"{render_trials(trials, site.settings.worth)}\n{render_total(site, trials)}")
        print(render_claims(gained), flush=True)
        found += trials
        weeks += gained
    print(f"all worlds\n\n{render_trials(found, site.settings.worth)}\n{render_claims(weeks)}", end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
