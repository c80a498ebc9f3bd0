"""An AS is confirmed by a switchback before more than half of it changes. Estimates are drawn."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import ibis
import numpy as np
import pyarrow as pa
import pytest

from learn_worlds import SETTINGS, Evidence, world
from learning import FIRST_DAY, NOW
from uncork.learn import confirm, demo, evidence
from uncork.learn.changes import summary
from uncork.learn.confirm import CONFIRMED, LEVEL, OPEN, REFUTED, Blocks, Trial, Trials
from uncork.learn.decide import decide_with_trials
from uncork.learn.decisions import Decisions
from uncork.learn.entries import PreviousArms, View
from uncork.learn.guardrails import Guardrails
from uncork.learn.lift import shrink
from uncork.learn.settings import Overrides, Settings
from uncork.learn.store import Store
from uncork.measure.reduce import to_arrow

HALF = replace(SETTINGS, confirm=0.5)
GAIN, LOSS = 0.3, -0.15
DRAWS = 400


@dataclass
class Shared:
    """Ten ASes in which bbr's A/B lift is a gain. In the first five, arms share a bottleneck: what bbr gains
    cubic loses, and if all have bbr, all lose.
    """

    systems: Sequence[str]
    contested: frozenset[str]
    levels: dict[str, list[tuple[int, float, float]]] = field(default_factory=dict)

    def day(self, day: int, decisions: Decisions, rng: np.random.Generator) -> None:
        """What each AS gets as a whole, by how much of it is on. A day differs from others by about 5 %."""
        for name in self.systems:
            rows = decisions.parent == name
            share = float(
                decisions.share[rows & (decisions.arm == "bbr")].sum() / decisions.share[rows].sum()
            )
            effect = LOSS if name in self.contested else GAIN
            level = np.exp(effect * share + rng.normal(0, 0.05))
            self.levels.setdefault(name, []).append((day, share, float(level)))

    def blocks(self) -> dict[tuple[str, str], Blocks]:
        return {
            ("large", name): Blocks(*(np.array(column) for column in zip(*days, strict=True)))
            for name, days in self.levels.items()
        }


def test_a_gain_that_is_a_loss_for_all_is_not_rolled_out() -> None:
    one = world(networks=400, systems=10, mean=GAIN, of_systems=0.01, of_networks=0.01)
    systems = sorted(set(one.section.system))
    shared = Shared(systems, frozenset(systems[:5]))
    rng, evidence = np.random.default_rng(5), Evidence(one)
    decisions, trials = Decisions.concat([]), {}
    days_on: dict[str, int] = dict.fromkeys(systems, 0)
    for day in range(40):
        evidence.day(rng, one.lift)
        settings = replace(HALF, as_of=HALF.as_of + day)
        view = View(one.section, shrink(one.tree, *evidence.estimates()), Guardrails({}, {}))
        found = decide_with_trials(
            [view],
            settings,
            Overrides(),
            PreviousArms.from_decisions(decisions),
            1.0,
            trials,
            shared.blocks(),
        )
        decisions, trials = found.decisions, found.trials
        shared.day(settings.as_of, decisions, rng)
        for name in systems:
            share, trial = shared.levels[name][-1][1], trials.get(("large", name))
            is_open = trial is None or trial.verdict == OPEN
            days_on[name] += share > 0.5 and is_open
            if trial is None:
                assert share <= 0.5, "no AS changes by more than half before its switchback"
    verdicts = {name: trials["large", name].verdict for name in systems}
    assert verdicts == {name: REFUTED if name in shared.contested else CONFIRMED for name in systems}
    assert max(days_on.values()) <= confirm.LOOKS[-1] / 2, "days on, while it was tried"
    for name in systems:
        assert shared.levels[name][-1][1] == (0.0 if name in shared.contested else 1.0)
    for name in shared.contested:
        reasons = set(decisions.reason[decisions.parent == name].tolist())
        assert reasons == {f"no total gain of {name}"}
    wide = decisions.where(decisions.level == "AS")
    arms = dict(zip(wide.key.tolist(), wide.arm.tolist(), strict=True))
    assert all(arms[name] == "control" for name in shared.contested), "for networks that were not seen yet"
    # Without confirmation, the same records would have rolled it out.
    alone = decide_with_trials(
        [view], replace(settings, confirm=1.0), Overrides(), PreviousArms({}), 1.0, {}, {}
    ).decisions
    assert (alone.networks.arm == "bbr").all()


@pytest.mark.parametrize("days", confirm.LOOKS)
@pytest.mark.parametrize("truth", [LOSS, 0.0, GAIN])
def test_the_claim_of_a_total_gain_has_a_true_interval(days: int, truth: float) -> None:
    """Days have a rhythm of the week, a drift, and shocks; the effect varies from day to day."""
    rng, hits = np.random.default_rng(days), 0
    for draw in range(DRAWS):
        trial = Trial(SETTINGS.as_of - days - draw)
        settings = replace(HALF, as_of=trial.since + days)
        drift = np.cumsum(rng.normal(0, 0.02, days))
        rhythm = 0.1 * np.sin(np.arange(days) / 7 * 2 * np.pi)
        on = [confirm.is_on_today(trial, ("large", "AS1"), settings, trial.since + n) for n in range(days)]
        effect = truth + rng.normal(0, 0.02, days)
        level = np.exp(rhythm + drift + rng.standard_t(4, days) * 0.05 + np.where(on, effect, 0.0))
        blocks = Blocks(trial.since + np.arange(days), np.where(on, 0.9, 0.05), level)
        found = confirm.total_effect(trial, ("large", "AS1"), blocks, settings)
        assert found is not None
        hits += found.ratio_low <= np.exp(truth) <= found.ratio_high
    # Of a binomial with LEVEL, 1 in 10,000 is further out.
    assert hits / DRAWS >= LEVEL - 0.03, hits / DRAWS


def test_days_of_an_as_are_counted_from_records(tmp_path: Path) -> None:
    """What the table decided, of ASes on trial, by the controller that it gave; and a version keeps it."""
    table = demo.table(days=4)
    steered = table.slice(0, table.num_rows // 2)
    for name in ("arm_experiment", "arm"):
        at = steered.column_names.index(name)
        steered = steered.set_column(at, name, pa.nulls(steered.num_rows, pa.string()))
    settings = replace(
        HALF, as_of=FIRST_DAY + 4, arms={"control": {"tcp": "cubic"}, "bbr": {"tcp": "bbr"}}, changed=1.0
    )
    records = ibis.memtable(pa.concat_tables([table, steered]))
    counts = evidence.collect(records, settings, to_arrow, ["AS64501", "AS64511"])
    found = evidence.blocks(counts, settings)
    assert sorted(found) == [(c, a) for c in ("large", "small") for a in ("AS64501", "AS64511")]
    one = found["large", "AS64501"]
    asn, size = np.array(steered["service_asn"]), np.array(steered["size_bytes"])
    day = np.array(steered["service_start_unix_ns"]) // (86_400 * 10**9)
    mine = (asn == 64_501) & (size >= 3_000_000)
    assert one.day.tolist() == sorted(set(day[mine].tolist()))
    first = mine & (day == one.day[0])
    assert one.share[0] == pytest.approx((np.array(steered["cc"])[first] == "bbr").mean())
    rate = size[first] * 8e9 / np.array(steered["busy_ns"])[first]
    assert one.level[0] == pytest.approx(np.quantile(rate, 0.1), rel=0.05)
    store = Store(tmp_path)
    for later in (0, 1):
        number, _ = store.plan(replace(settings, as_of=settings.as_of + later), counts, NOW)
        store.apply(number, NOW)
    assert {name for _, name in store.trials(number)} >= {"AS64501"}
    assert store.differences(number) == []
    reasons = {one.reason for one in store.decisions(number) if one.parent == "AS64501"}
    assert {text.rpartition(" ")[0] for text in reasons} <= {"switchback of AS64501:"}


@pytest.mark.parametrize("tried_stay", [True, False])
def test_who_is_tried_stays_in_the_trial(tried_stay: bool) -> None:
    """Though it would not be switched on again, as it is worth less than on the first day. Else days of the
    coin go by on which nothing is tried.
    """
    one = world(networks=40, systems=1, mean=GAIN, of_systems=0.01, of_networks=0.01)
    evidence = Evidence(one)
    evidence.day(np.random.default_rng(5), one.lift)
    view = View(one.section, shrink(one.tree, *evidence.estimates()), Guardrails({}, {}))
    decisions, trials = Decisions.concat([]), {}
    for day in range(6):
        worth = HALF.worth if day == 0 else 9.0
        settings = replace(HALF, as_of=HALF.as_of + day, worth=worth, tried_stay=tried_stay)
        found = decide_with_trials(
            [view], settings, Overrides(), PreviousArms.from_decisions(decisions), 1.0, trials, {}
        )
        decisions, trials = found.decisions, found.trials
        ((key, trial),) = trials.items()
        is_on = day > 0 and confirm.is_on_today(trial, key, settings, settings.day)
        assert (decisions.networks.arm == "bbr").all() == (is_on and tried_stay), day


def test_who_is_frozen_keeps_its_arm_though_its_as_is_tried() -> None:
    one = world(networks=40, systems=1, mean=GAIN, of_systems=0.01, of_networks=0.01)
    evidence = Evidence(one)
    evidence.day(np.random.default_rng(5), one.lift)
    view = View(one.section, shrink(one.tree, *evidence.estimates()), Guardrails({}, {}))

    def decided(settings: Settings, frozen: Sequence[str], before: Decisions) -> Decisions:
        overrides = Overrides({}, tuple(frozen))
        return decide_with_trials(
            [view], settings, overrides, PreviousArms.from_decisions(before), 1.0, {}, {}
        ).decisions

    on = decided(replace(HALF, confirm=1.0), (), Decisions.concat([]))
    assert (on.networks.arm == "bbr").all()
    frozen = sorted(on.networks.key.tolist())[:30]
    for tried_stay, arms in ((True, {"bbr"}), (False, {"control"})):
        # Half of its bytes may have it without a trial; of these none is asked for today.
        settings = replace(HALF, as_of=HALF.as_of + 1, confirm=0.1, tried_stay=tried_stay)
        now = decided(settings, frozen, on)
        assert {*now.arm[np.isin(now.key, frozen)].tolist()} == arms


def trial_of(levels: Sequence[float], shares: Sequence[float] | None = None) -> Trial:
    """The verdict after fourteen days: a level and a share of the treated arm, for days on and off."""
    trial = Trial(SETTINGS.as_of - 14)
    days = trial.since + np.arange(14)
    on = np.array([confirm.is_on_today(trial, ("large", "AS1"), HALF, day) for day in days.tolist()])
    rng = np.random.default_rng(1)
    level = np.where(on, *levels) * np.exp(rng.normal(0, 0.003, 14))
    blocks = Blocks(days, np.where(on, *(shares or (1.0, 0.0))), level)
    return confirm.judged(trial, ("large", "AS1"), blocks, HALF)


def test_few_ases_are_tried_at_a_time() -> None:
    """As much as may change in a day, or one, however large."""
    share = np.full(10, 0.1)
    systems = confirm.Systems(
        "large", [f"AS{n}" for n in range(10)], np.arange(10), share, share < 0, share > 0, share
    )
    for changed, count in ((0.25, 2), (0.05, 1), (1.0, 10)):
        trials: dict[tuple[str, str], Trial] = {}
        for day in range(3):
            settings = replace(HALF, as_of=HALF.as_of + day, changed=changed)
            found = list(confirm.gates(systems, trials, {}, settings))
            trials = {("large", f"AS{one.system}"): one.trial for one in found if one.trial is not None}
            assert len(trials) == count, (changed, day)


def test_the_changes_report_verdicts_with_their_intervals() -> None:
    trials = {("large", "AS1"): trial_of((1.2, 1.0)), ("small", "AS2"): Trial(SETTINGS.as_of)}
    text = summary(1, Decisions.concat([]), PreviousArms({}), HALF, trials, {}, 0)
    assert re.search(
        r"Switchback of AS1 \(large\): confirmed, since 2024-09-20; total effect \+(19|20)", text
    ), text
    assert "Switchback of AS2 (small): open, since 2024-10-04." in text


def test_verdicts_and_what_they_rest_on() -> None:
    assert trial_of((1.2, 1.0)).verdict == CONFIRMED
    assert trial_of((0.9, 1.0)).verdict == REFUTED
    assert trial_of((1.0, 1.0)).verdict == REFUTED, "no gain worth it"
    assert trial_of((1.2, 1.0), (0.5, 0.5)).verdict == OPEN, "the servers did not do as the schedule says"
    assert confirm.judged(Trial(HALF.as_of - 28), ("large", "AS1"), None, HALF).verdict == REFUTED
    found: Trials = {("large", "AS1"): trial_of((1.2, 1.0))}
    again = confirm.load_trials(confirm.document(found))
    assert confirm.document(again) == confirm.document(found)
