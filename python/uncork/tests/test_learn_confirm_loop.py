"""A switchback by `uncork learn run`: several rounds a day, on a clock that the test turns, while records
arrive that follow the active policy. Counts of records are drawn.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from learn_worlds import SETTINGS
from learning import FIRST_DAY, KEY
from uncork.learn import arms, confirm, evidence, proposal
from uncork.learn.cli import parser
from uncork.learn.confirm import CONFIRMED, LOOKS, OPEN, REFUTED, Blocks, Trial
from uncork.learn.evidence import COLUMNS, STEERED, TEXT, TRAFFIC
from uncork.learn.loop import Loop
from uncork.learn.saved_options import complete
from uncork.learn.settings import Settings
from uncork.learn.store import Store
from uncork.measure import rollups
from uncork.measure.bins import bin_of

DAY, HOUR = 86_400, 3_600
GAINS, LOSES = 64_501, 64_502
TOTAL = {GAINS: 0.3, LOSES: -0.15}
"""What all clients of the AS get more if all have BBR, in log units. Between the arms it is `LIFT`."""
LIFT = 0.3
NETWORKS = {f"198.18.{at}.0/24": asn for at, asn in enumerate([GAINS] * 3 + [LOSES] * 3)}
HOURLY = 8
"""Records of a network in an hour; half of them are of the random share."""
ROUNDS = (1, 9, 17)
"""Hours of the day with a round. The first hour of a day runs on the policy of the day before."""
WARM_UP = 6
"""Days of records before the first round."""


def table(**columns: object) -> pa.Table:
    """Evidence of large objects; columns that are not given are null."""
    count = len(columns["n"])  # type: ignore[arg-type]
    known = {"class": ["large"] * count, "place": [""] * count, **columns}
    arrays = {}
    for name, kind in COLUMNS.items():
        values = pa.array(known[name]) if name in known else pa.nulls(count, pa.string())
        is_text = kind == TEXT
        arrays[name] = values.cast(pa.string()).dictionary_encode() if is_text else values.cast(kind)
    return pa.table(arrays).cast(pa.schema(list(COLUMNS.items())))


TRAFFIC_OF_ALL = table(
    metric=[TRAFFIC] * len(NETWORKS),
    client=list(NETWORKS),
    asn=list(NETWORKS.values()),
    n=[10_000] * len(NETWORKS),
    numerator=[10**10] * len(NETWORKS),
)


@dataclass
class Site:
    """Servers that follow the active policy, and the loop that makes it."""

    store: Store
    clock: int = FIRST_DAY * DAY
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(3))
    counts: list[pa.Table] = field(default_factory=list)
    """Of each time between two rounds."""

    def serve(self, until: int) -> None:
        """Adds the records from now until then. All are of one day, and of the active policy."""
        rng, day = self.rng, self.clock // DAY
        count = HOURLY * len(NETWORKS) * (until - self.clock) // HOUR
        assert (until - 1) // DAY == day
        self.clock = until
        current = self.store.current()
        decisions = self.store.decisions(current).networks if current is not None else []
        on = {one.key for one in decisions if one.arm == "bbr"}
        names, systems = np.array(list(NETWORKS)), np.array(list(NETWORKS.values()))
        is_on = np.isin(names, list(on))
        shared = {asn: TOTAL[asn] * is_on[systems == asn].mean() + rng.normal(0, 0.02) for asn in TOTAL}
        at, is_random = rng.integers(0, len(names), count), rng.random(count) < 0.5
        bbr = np.where(is_random, rng.random(count) < 0.5, is_on[at])
        level = np.array([shared[asn] for asn in systems.tolist()])[at] + np.where(is_random, LIFT * bbr, 0)
        rate = np.exp(16 + level + rng.normal(0, 0.3, count))
        rows = table(
            metric=np.where(is_random, "throughput", STEERED),
            client=pa.array(names[at], mask=~is_random),
            asn=systems[at],
            propensity=pa.array(np.full(count, 5_000), mask=~is_random),
            day=np.full(count, day),
            arm=np.where(bbr, "bbr", "control"),
            bucket=pa.array(rng.integers(0, 100, count), mask=~is_random),
            bin=bin_of(rate),
            n=np.ones(count, dtype=np.int64),
        )
        self.counts.append(rows)

    def evidence(self, settings: Settings, on_trial: Sequence[str]) -> pa.Table:
        """What the query would find."""
        rows = pa.concat_tables(self.counts).unify_dictionaries()
        asked = pc.is_in(rows["asn"], pa.array([int(name[2:]) for name in on_trial], pa.int64()))
        is_steered = pc.equal(rows["metric"].cast(pa.string()), STEERED)
        since = pc.greater_equal(rows["day"], settings.as_of - settings.window)
        until = pc.less(rows["day"], settings.as_of)
        rows = rows.filter(pc.and_(pc.and_(since, until), pc.or_(pc.invert(is_steered), asked)))
        return pa.concat_tables([rows, TRAFFIC_OF_ALL]).unify_dictionaries()

    def round(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """One round of the loop, by the clock. Only the reading of records is replaced."""
        latest = self.counts[-1]["day"][-1].as_py()
        none = SimpleNamespace(table=None, run=None, rejected={})
        monkeypatch.setattr(proposal, "read_records", lambda *_: none)
        monkeypatch.setattr(proposal, "_rolled_up", lambda _: None)
        monkeypatch.setattr(arms, "of_records", lambda *_: {})
        monkeypatch.setattr(rollups, "folded", lambda _: (0, 0))
        monkeypatch.setattr(rollups, "has_rollups", lambda _: False)
        monkeypatch.setattr(evidence, "last_day", lambda *_: latest)
        monkeypatch.setattr(
            evidence, "collect", lambda _, settings, __, tried: self.evidence(settings, tried)
        )
        words = ["plan", "records", "-o", str(self.store.root), "--key", KEY, "--confirm", "50%"]
        given = parser().parse_args([*words, "--changed", "100%", "--harmed", "10%", "--only", "large"])
        options = complete(given, self.store.root)
        loop = Loop(
            self.store,
            propose=lambda now: proposal.propose(options, self.store, now)[0],
            check=lambda _: None,
            every=0.0,
            now=lambda: datetime.fromtimestamp(self.clock, UTC),
        )
        loop.run(1)
        assert "failed" not in loop.results

    def day(self, monkeypatch: pytest.MonkeyPatch, rounds: Sequence[int] = ROUNDS) -> None:
        """A day with rounds at these hours."""
        midnight = self.clock - self.clock % DAY
        for hour in rounds:
            self.serve(midnight + hour * HOUR)
            self.round(monkeypatch)
        self.serve(midnight + DAY)

    def trials(self) -> dict[int, Trial]:
        """By number of the AS."""
        found = self.store.trials(self.store.need_current())
        return {int(name[2:]): trial for (_, name), trial in found.items()}


def test_a_loop_confirms_a_total_gain_and_refutes_a_total_loss(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With three rounds a day. On the day of the first look there is none: the look is made the day after."""
    site = Site(Store(tmp_path))
    for _ in range(WARM_UP):
        site.serve(site.clock + DAY)
    first = WARM_UP + FIRST_DAY + 1
    for day in range(30):
        site.day(monkeypatch, () if WARM_UP + FIRST_DAY + day == first + LOOKS[0] else ROUNDS)
        trials = site.trials()
        if day < LOOKS[0]:
            assert min(trial.since for trial in trials.values()) == first, "the first whole day"
            assert all(trial.verdict == OPEN for trial in trials.values())
    assert {asn: trial.verdict for asn, trial in trials.items()} == {GAINS: CONFIRMED, LOSES: REFUTED}
    for asn, trial in trials.items():
        print(f"AS{asn}: day {trial.decided - trial.since}, {trial.low} {trial.ratio} {trial.high}")
        assert trial.ratio is not None
        # An hour of a day may have the other arm, which makes the effect smaller.
        assert 0.6 < np.log(trial.ratio) / TOTAL[asn] < 1.2
        assert trial.decided - trial.since in (LOOKS[0] + 1, LOOKS[1])
    assert [number for number in site.store.numbers() if site.store.differences(number)] == []


EVERY = ("large", "AS1")
"""The AS of the tests below."""
HALF = replace(SETTINGS, confirm=0.5)


def after(days: int, effect: float, *, late: float = 0.0, looked: int = 0, **changed: object) -> Trial:
    """A plan's verdict on a trial that began `days` before. Each day runs for `late` of it on the arm
    of the day before. `looked`: the day of the last look.
    """
    since = HALF.as_of - days
    trial = Trial(since, decided=since + looked if looked else 0)
    day = since + np.arange(days)
    on = np.array([confirm.is_on_today(trial, EVERY, HALF, one) for one in range(since - 1, HALF.as_of)])
    share = on[1:] * (1 - late) + on[:-1] * late
    level = np.exp(effect * share + np.random.default_rng(2).normal(0, 0.003, days))
    settings = replace(HALF, **changed)  # type: ignore[arg-type]
    return confirm.judged(trial, EVERY, Blocks(day, share, level), settings)


@pytest.mark.parametrize("days", [28, 29, 35])
def test_a_trial_ends_though_no_plan_is_made_on_its_last_day(days: int) -> None:
    assert after(days, 0.2, looked=14).verdict == CONFIRMED
    assert after(days, 0.2).verdict == CONFIRMED, "no look was made before"
    assert after(days, -0.1, looked=14).verdict == REFUTED
    never_on = confirm.judged(Trial(HALF.as_of - days), EVERY, None, HALF)
    assert never_on.verdict == REFUTED


def test_a_look_is_made_once() -> None:
    """By the first plan on its day or later. More looks would err more often than is said."""
    assert after(13, 0.2).verdict == OPEN
    for days in (14, 15, 27):
        assert after(days, 0.2).verdict == CONFIRMED, days
        assert after(days, 0.2, looked=14) == Trial(HALF.as_of - days, decided=HALF.as_of - days + 14)


def test_days_on_a_mix_of_arms_are_no_evidence() -> None:
    """An hour does not matter, half of the day does. The reported effect is smaller than the true one."""
    for late in (0.0, 1 / 24, 0.25):
        found = after(28, 0.2, late=late)
        assert found.verdict == CONFIRMED
        assert found.ratio is not None
        assert np.exp(0.2 * (1 - 2 * late)) - 0.01 < found.ratio < np.exp(0.2) + 0.01
        assert after(28, -0.1, late=late).verdict == REFUTED
    for late in (0.35, 0.5, 0.625, 1.0):
        found = after(28, 0.2, late=late)
        assert (found.verdict, found.ratio) == (REFUTED, None), late


def test_the_day_of_the_plan_turns_the_coin() -> None:
    """Not the day before which records are, which is tomorrow while they arrive."""
    share = np.full(2, 0.5)
    systems = confirm.Systems("large", ["AS1"], np.zeros(2, np.int64), share, share < 0, share > 0, share)
    since = HALF.as_of - 6
    trials = {EVERY: Trial(since)}
    for day in range(since - 1, since + 6):
        settings = replace(HALF, as_of=day + 1, today=day)
        (gate,) = confirm.gates(systems, trials, {}, settings)
        assert gate.arm_on is not None
        if day < since:
            assert gate.reason == "waits: the switchback of AS1 begins tomorrow"
            assert not gate.arm_on.any(), "nothing changes before"
        else:
            assert gate.arm_on.all() == confirm.is_on_today(trials[EVERY], EVERY, settings, day)


def test_earlier_versions_are_computed_as_they_were() -> None:
    document = {name: value for name, value in HALF.document().items() if name not in ("today", "whole_days")}
    old = Settings.from_document(document)
    assert (old.day, old.whole_days) == (HALF.as_of, False)
    assert after(29, 0.2, whole_days=False).verdict == OPEN
    assert after(28, 0.2, late=0.35, looked=14, whole_days=False).ratio is not None
    share = np.full(2, 0.5)
    systems = confirm.Systems("large", ["AS1"], np.zeros(2, np.int64), share, share < 0, share > 0, share)
    (gate,) = confirm.gates(systems, {}, {}, old)
    assert gate.trial == Trial(HALF.as_of)
    assert gate.reason.startswith("switchback of AS1: ")
