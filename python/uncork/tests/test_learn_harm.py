"""Limits that are likely kept or not: harm, shrunk from network to AS to all."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from scipy.special import ndtri

from learn_worlds import SETTINGS, World, world
from uncork.experiment.measures import parse_limit
from uncork.learn import guardrails
from uncork.learn.decide import decide
from uncork.learn.decisions import Decision
from uncork.learn.entries import PreviousArms, State, View
from uncork.learn.evidence import Counts, Section
from uncork.learn.harm import AT_LIMIT, Margins, margins
from uncork.learn.lift import Estimate, hierarchy, shrink
from uncork.learn.settings import Overrides
from uncork.measure.stats.jackknife import ratio_difference

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


def decided(one: View, before: PreviousArms | None = None) -> dict[str, Decision]:
    return {d.key: d for d in decide([one], SETTINGS, Overrides(), before or PreviousArms({}), 1.0)}


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
    found = decided(replace(one, margins=(Margins(limit, replace(lifts, network=known)),)), before)
    assert (found[first].arm, found[first].reason) == (expected, reason)
    assert found[first].p_kept == pytest.approx(p_kept)


def test_a_limit_may_be_relative() -> None:
    settings = replace(SETTINGS, guardrails=("retransmitted=50%",))
    section = bad_in_one(harm=0.04, records=80)
    (harm,) = margins(section, settings, hierarchy(section))
    of_bad = harm.lifts.network.mean[FILLED] / harm.scale
    assert of_bad == pytest.approx(np.log(5), abs=0.7), "1 % with the control arm, 5 % with the other"
    assert harm.lifts.network.mean[SYSTEMS != BAD].min() > AT_LIMIT


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


def test_differences_of_ratios_have_an_interval_where_nothing_is_sent_again() -> None:
    sent, none = np.full(30, 1e6), np.zeros(30)
    assert ratio_difference(none, sent, none, sent) == (0.0, 0.0)
    rng = np.random.default_rng(3)
    draws = []
    for _ in range(400):
        again = rng.exponential(0.02, (2, 30)) * 1e6
        draws.append(ratio_difference(again[0], sent, again[1] + 0.03 * 1e6, sent))
    found = np.array(draws)
    assert found[:, 0].mean() == pytest.approx(0.03, abs=0.001)
    covered = np.abs(found[:, 0] - 0.03) <= 1.96 * found[:, 1]
    assert covered.mean() > 0.93


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
