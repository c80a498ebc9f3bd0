"""Limits that are likely kept or not: harm, shrunk from network to AS to all."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from scipy.special import ndtri

from learn_worlds import SETTINGS, World, world
from uncork.experiment import guard
from uncork.experiment.decide.guardrails import in_limits
from uncork.experiment.measures import parse_limit
from uncork.experiment.rows import Settings as Judged
from uncork.learn import guardrails
from uncork.learn.decide import decide
from uncork.learn.decisions import Decision
from uncork.learn.entries import PreviousArms, State, View
from uncork.learn.evidence import Counts, Section
from uncork.learn.harm import AT_LIMIT, Margins, margin, margins
from uncork.learn.lift import NORMAL, Estimate, hierarchy, shrink
from uncork.learn.settings import Overrides, Settings
from uncork.measure.cubes import BUCKETS, RatioCube

WORLD = world(networks=60, systems=6, seed=3)
SYSTEMS = np.array(WORLD.section.system)
BAD = WORLD.section.system[0]
"""An AS in which the treated arm sends more bytes again."""
EMPTY, FILLED = (int(at) for at in np.flatnonzero(SYSTEMS == BAD)[:2])
"""Networks of it, without and with records."""


def flows(
    networks: list[int], rng: np.random.Generator, *, harm: float, records: int, days: int = 7
) -> dict[str, list[np.ndarray]]:
    """Records of networks: a control that sends 1 % again, and a treated arm that sends `harm` more. Few
    connections send much again.
    """
    network = np.repeat(networks, 2 * records)
    arm = np.tile([0, 1], len(networks) * records)
    sent = rng.integers(3_000_000, 12_000_000, len(network))
    share = (0.01 + harm * arm) * rng.exponential(1, len(network))
    return {
        "network": [network],
        "arm": [arm],
        "day": [SETTINGS.as_of - 1 - rng.integers(0, days, len(network))],
        "bucket": [rng.integers(0, 100, len(network))],
        "numerator": [(share * sent).astype(np.int64)],
        "denominator": [sent],
    }


def counts(*parts: dict[str, list[np.ndarray]]) -> Counts:
    columns = {name: np.concatenate([part[name][0] for part in parts]) for name in parts[0]}
    none = np.zeros(len(columns["network"]), dtype=np.int64)
    return Counts(**columns, propensity=none, bin=none, n=none)


@cache
def bad_in_one(harm: float = 0.04, records: int = 8) -> Section:
    """In one AS the treated arm sends more again, by too few records of each network for it to be sure."""
    rng = np.random.default_rng(7)
    bad = np.flatnonzero(SYSTEMS == BAD)
    good = np.flatnonzero(SYSTEMS != BAD)
    some = counts(
        flows(bad[1:].tolist(), rng, harm=harm, records=records),
        flows(good.tolist(), rng, harm=0.0, records=80),
    )
    return replace(WORLD.section, metrics={"retransmitted": some})


def view(section: Section, lift: float = 0.2, with_margins: bool = True, of: World = WORLD) -> View:
    """All networks gain as much."""
    tree = hierarchy(section)
    raw = {at: Estimate(lift, 0.02) for at in range(len(of.share))}
    return View(
        section,
        shrink(tree, raw, ({}, {}, None)),
        guardrails.of_section(section, SETTINGS, tree),
        margins(section, SETTINGS, tree) if with_margins else (),
    )


def decided(
    one: View, before: PreviousArms | None = None, settings: Settings = SETTINGS
) -> dict[str, Decision]:
    return {d.key: d for d in decide([one], settings, Overrides(), before or PreviousArms({}), 1.0)}


def test_a_limit_that_is_likely_broken_keeps_an_entry_off_before_any_bound_is_sure() -> None:
    section = bad_in_one()
    found, without = decided(view(section)), decided(view(section, with_margins=False))
    for at, name in enumerate(section.networks):
        assert without[name].arm == "bbr", "no guardrail is broken"
        is_bad = section.system[at] == BAD
        assert (found[name].arm, found[name].p_kept > 0.5) == (
            ("control", False) if is_bad else ("bbr", True)
        )
    one = found[section.networks[FILLED]]
    assert one.reason == "likely breaks its limit: retransmitted:ratio"
    assert one.limit == "retransmitted:ratio"
    assert 0.02 < one.harm < 0.06
    assert found[BAD].arm == "control", "for networks of the AS that were not seen yet"


def test_a_network_without_records_is_like_its_as() -> None:
    section = bad_in_one()
    (harm,) = margins(section, SETTINGS, hierarchy(section))
    mean, variance = harm.lifts.network.mean, harm.lifts.network.variance
    assert not harm.lifts.raw.keys() & {EMPTY, FILLED}, "neither has enough by itself"
    assert mean[EMPTY] == pytest.approx(mean[FILLED], rel=0.1)
    assert mean[EMPTY] < AT_LIMIT
    assert variance[EMPTY] > 0


@pytest.mark.parametrize(
    ("p_kept", "arm", "expected", "reason"),
    [
        (0.55, "control", "bbr", "switched on"),
        (0.55, "bbr", "bbr", "stays on"),
        (0.45, "control", "control", "likely breaks its limit: retransmitted:ratio"),
        (0.45, "bbr", "control", "switched off, likely breaks its limit: retransmitted:ratio"),
    ],
)
def test_no_entry_is_on_where_a_limit_is_likely_broken(
    p_kept: float, arm: str, expected: str, reason: str
) -> None:
    one = view(WORLD.section)
    networks = len(WORLD.share)
    mean = AT_LIMIT + float(ndtri(p_kept)) * 0.05
    lifts = shrink(one.lifts.hierarchy, dict.fromkeys(range(networks), Estimate(mean, 1e-3)), ({}, {}, None))
    known = replace(lifts.network, mean=np.full(networks, mean), variance=np.full(networks, 0.05**2))
    limit = parse_limit("retransmitted=2pp")
    first = WORLD.section.networks[0]
    before = PreviousArms.states({("large", first): State(arm, SETTINGS.as_of - 9)})
    settings = replace(SETTINGS, kinds_of_harm=False)
    found = decided(replace(one, margins=(Margins(limit, replace(lifts, network=known)),)), before, settings)
    assert (found[first].arm, found[first].reason) == (expected, reason)
    assert found[first].p_kept == pytest.approx(p_kept)


def test_an_as_without_harm_is_not_taken_for_the_average() -> None:
    """As with a window that overflows the buffers of some accesses: nothing is sent again, or a fourth."""
    rng = np.random.default_rng(5)
    of = world(networks=3600, systems=30, seed=4)
    system = np.array(of.section.system)
    bad = np.isin(system, np.unique(system)[::2])
    good_ones, bad_ones = np.flatnonzero(~bad).tolist(), np.flatnonzero(bad).tolist()
    good, some = (
        flows(ones, rng, harm=harm, records=1) for ones, harm in ((good_ones, 0.0), (bad_ones, 0.2))
    )
    good["numerator"] = [np.zeros_like(good["numerator"][0])]
    each = counts(good, some)
    # The network is the unit: it has one arm.
    section = replace(of.section, metrics={"retransmitted": each.where(each.arm == each.network % 2)})
    found = decided(view(section, of=of))
    kept = np.array([found[name].p_kept > 0.5 for name in section.networks])
    assert kept[~bad].mean() > 0.95
    assert not kept[bad].any()


def test_a_limit_may_be_relative() -> None:
    settings = replace(SETTINGS, guardrails=("retransmitted=50%",))
    section = bad_in_one(harm=0.04, records=80)
    (harm,) = margins(section, settings, hierarchy(section))
    of_bad = harm.lifts.network.mean[FILLED] / harm.scale
    assert of_bad == pytest.approx(np.log(5), abs=0.7), "1 % with the control arm, 5 % with the other"
    assert harm.lifts.network.mean[SYSTEMS != BAD].min() > AT_LIMIT


@pytest.mark.parametrize("control", [0.0, 0.002])
def test_a_relative_limit_is_broken_from_zero(control: float) -> None:
    """Nothing, or next to nothing, is sent again with control, and a twentieth with the treated arm."""
    some = counts(flows([FILLED], np.random.default_rng(7), harm=0.04, records=200, days=2))
    is_few = (some.arm == 0) & (some.bucket > (5 if control else -1))
    some = replace(some, numerator=np.where(is_few, 0, some.numerator))
    limit = parse_limit("retransmitted=50%")
    found = margin(limit, some, np.ones(len(some.arm), dtype=np.int64))
    assert found is not None
    assert found.lift + NORMAL * found.error < AT_LIMIT
    assert margin(limit, some, np.ones(len(some.arm), dtype=np.int64), from_zero=False) is None
    section = replace(WORLD.section, metrics={"retransmitted": some})
    settings = replace(SETTINGS, guardrails=("retransmitted=50%",))
    name = WORLD.section.networks[FILLED]
    (watched,) = guardrails.of_section(section, settings, hierarchy(section)).of(name)
    assert watched.state == "broken"


def test_a_relative_limit_says_nothing_where_neither_arm_has_events() -> None:
    some = counts(flows([FILLED], np.random.default_rng(7), harm=0.04, records=200))
    none = replace(some, numerator=np.zeros_like(some.numerator))
    assert margin(parse_limit("retransmitted=50%"), none, np.ones(len(none.arm), dtype=np.int64)) is None


def of_days(again: dict[int, tuple[float, float]], dealt: dict[int, int]) -> Section:
    """Records of a network. By age in days: what each arm sends again, and its records in a hundred treated
    ones.
    """
    rng = np.random.default_rng(5)
    parts = []
    for age, shares in again.items():
        for arm, percent in ((0, 100 - dealt[age]), (1, dealt[age])):
            count = 20 * percent
            sent = rng.integers(3_000_000, 12_000_000, count)
            parts.append(
                {
                    "network": [np.full(count, FILLED)],
                    "arm": [np.full(count, arm)],
                    "day": [np.full(count, SETTINGS.as_of - 1 - age)],
                    "bucket": [rng.integers(0, 100, count)],
                    "numerator": [(shares[arm] * rng.exponential(1, count) * sent).astype(np.int64)],
                    "denominator": [sent],
                    "propensity": [np.full(count, 100 * percent)],
                }
            )
    columns = {name: np.concatenate([part[name][0] for part in parts]) for name in parts[0]}
    none = np.zeros(len(columns["network"]), dtype=np.int64)
    return replace(WORLD.section, metrics={"retransmitted": Counts(**columns, bin=none, n=none)})


@pytest.mark.parametrize(
    ("again", "before", "now"),
    [
        # The last day is bad for both arms, and most of it is of the treated arm.
        ({2: (0.01, 0.01), 1: (0.01, 0.01), 0: (0.08, 0.08)}, "broken", "holds"),
        # The treated arm is bad, and most of it is of the day that is good for both.
        ({2: (0.09, 0.14), 1: (0.09, 0.14), 0: (0.01, 0.06)}, "holds", "broken"),
    ],
)
def test_guardrails_of_the_last_days_count_by_propensity(
    again: dict[int, tuple[float, float]], before: str, now: str
) -> None:
    section = of_days(again, {2: 10, 1: 10, 0: 90})

    def state(as_dealt: bool) -> str:
        settings = replace(SETTINGS, guardrails=("retransmitted=2pp",), recent=(3,), as_dealt=as_dealt)
        found = guardrails.of_section(section, settings, hierarchy(section))
        (watched,) = found.of(WORLD.section.networks[FILLED])
        return watched.state

    assert state(False) == before
    assert state(True) == now


def test_a_limit_of_nothing_is_kept_where_less_is_sent_again() -> None:
    settings = replace(SETTINGS, guardrails=("retransmitted=0pp",))
    section = bad_in_one(harm=0.04, records=80)
    (harm,) = margins(section, settings, hierarchy(section))
    assert harm.lifts.network.mean[FILLED] < AT_LIMIT


def test_limits_without_evidence_hold_no_network_back() -> None:
    one = view(WORLD.section)
    assert one.margins == ()
    found = decided(one)[WORLD.section.networks[0]]
    assert (found.arm, found.limit, found.p_kept) == ("bbr", "", 1.0)


def test_truths_lie_around_the_expected_harm_as_far_as_it_says() -> None:
    rng = np.random.default_rng(5)
    system = [int(name[2:]) - 64_000 for name in SYSTEMS]
    truth = np.maximum(rng.normal(0.01, 0.02, 6)[system] + rng.normal(0, 0.006, 60), -0.009).tolist()
    some = counts(
        *(flows([at], rng, harm=harm, records=int(rng.integers(5, 200))) for at, harm in enumerate(truth))
    )
    section = replace(WORLD.section, metrics={"retransmitted": some})
    (harm,) = margins(section, SETTINGS, hierarchy(section))
    error = harm.lifts.network.mean / harm.scale - np.array(truth)
    z = error / (np.sqrt(harm.lifts.network.variance) / -harm.scale)
    assert 0.6 < z.std() < 1.3
    assert abs(z.mean()) < 0.5


POINTS = parse_limit("retransmitted=2pp")
POINTS_OF_LIMIT = 0.02


def records_of(again: list[int], *, buckets: int, share: float = 0.02) -> Counts:
    """Records of one network, one in each bucket and arm. `again`: places of treated records that send a
    share again; the others send nothing again.
    """
    arm = np.tile([0, 1], buckets)
    numerator = np.zeros(2 * buckets, dtype=np.int64)
    numerator[2 * np.array(again, dtype=np.int64) + 1] = int(share * 1_000_000)
    return counts(
        {
            "network": [np.full(2 * buckets, FILLED)],
            "arm": [arm],
            "day": [np.full(2 * buckets, SETTINGS.as_of - 1)],
            "bucket": [np.repeat(np.arange(buckets), 2)],
            "numerator": [numerator],
            "denominator": [np.full(2 * buckets, 1_000_000)],
        }
    )


def by_analyze(some: Counts) -> tuple[float, float]:
    """Harm and its error in limits, as `uncork experiment analyze` takes them."""
    sums = np.zeros((2, 2, BUCKETS))
    for at, values in enumerate((some.numerator, some.denominator)):
        np.add.at(sums[at], (some.arm, some.bucket), values)
    [state] = guard.states({"retransmitted": RatioCube(*sums)}, Judged(guardrails=(POINTS,)), "A/B")
    return in_limits(guard.guardrail(state), 0.95)


@pytest.mark.parametrize(
    "some",
    [
        pytest.param(records_of([], buckets=60), id="no events"),
        pytest.param(records_of([7], buckets=60), id="one event"),
        pytest.param(records_of([7], buckets=60, share=1.0), id="one event of all bytes"),
        pytest.param(records_of(list(range(60)), buckets=60, share=0.08), id="an event in each record"),
        pytest.param(records_of([], buckets=10), id="20 records"),
        pytest.param(records_of([7], buckets=10), id="20 records, one event"),
        pytest.param(records_of([], buckets=1), id="one unit"),
        pytest.param(records_of([0], buckets=1), id="one unit with an event"),
    ],
)
def test_learn_and_analyze_take_harm_in_points_by_one_rule(some: Counts) -> None:
    one = margin(POINTS, some, np.ones(len(some.arm), dtype=np.int64))
    assert one is not None
    assert (one.lift / AT_LIMIT, one.error / -AT_LIMIT) == pytest.approx(by_analyze(some))
    assert one.error > 0


@pytest.mark.parametrize("records", [20, 60, 600])
def test_without_events_the_error_is_that_of_the_rule_of_three(records: int) -> None:
    """Of n units without an event at most 3.7 / n have one, at the 95 % level."""
    some = counts(flows([FILLED], np.random.default_rng(3), harm=0.0, records=records))
    one = margin(POINTS, replace(some, numerator=np.zeros_like(some.arm)), np.ones_like(some.arm))
    assert one is not None
    assert one.lift == 0
    reach = NORMAL * POINTS_OF_LIMIT * one.error / -AT_LIMIT
    assert reach == pytest.approx(3.7 / records, rel=0.6)


def test_twenty_records_leave_a_network_what_it_inherits() -> None:
    """Ten in each arm are no estimate of the network's own; by themselves they are hardly any evidence."""
    section = replace(WORLD.section, metrics={"retransmitted": records_of([], buckets=10)})
    (harm,) = margins(section, SETTINGS, hierarchy(section))
    assert not harm.lifts.raw
    assert harm.lifts.network.variance[FILLED] == harm.lifts.network.variance[EMPTY]
    sure = harm.lifts.network.mean[FILLED] - AT_LIMIT
    assert sure < 2 * np.sqrt(harm.lifts.network.variance[FILLED]), "no harm is not proven"


def test_records_without_responses_are_no_evidence_of_aborted_ones() -> None:
    """Those of the kernel: how many there were is 0."""
    some = bad_in_one().metrics["retransmitted"]
    nothing = replace(some, numerator=np.zeros_like(some.n), denominator=np.zeros_like(some.n))
    half = replace(some, denominator=np.where(np.arange(len(some.n)) % 2, some.denominator, 0))
    tree = hierarchy(WORLD.section)

    def known(aborted: Counts) -> list[Margins]:
        both = {"retransmitted": some, "aborted": aborted}
        return list(margins(replace(WORLD.section, metrics=both), SETTINGS, tree))

    [alone] = known(nothing)
    assert alone.limit.measure.metric == "retransmitted"
    without = some.where(half.denominator > 0)
    for one, other in zip(known(half), known(without), strict=True):
        assert one.lifts.network.mean.tolist() == other.lifts.network.mean.tolist()
