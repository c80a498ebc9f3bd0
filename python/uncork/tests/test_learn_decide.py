"""Decisions: when an entry changes, and what holds it back."""

from dataclasses import replace

import numpy as np
import pytest

from learn_worlds import SETTINGS, World, world
from uncork.learn.budget import AT_RISK, TOO_RISKY
from uncork.learn.decide import decide
from uncork.learn.decisions import Decision, Decisions
from uncork.learn.entries import PreviousArms, State, View
from uncork.learn.guardrails import Guardrails, Watched
from uncork.learn.lift import Estimate, hierarchy, shrink
from uncork.learn.proof import log_evidence_of_gain
from uncork.learn.settings import Overrides

SMALL = world(networks=40, systems=4, seed=3)
FIRST = SMALL.section.networks[0]
SYSTEM = SMALL.section.system[0]


def view(
    lifts: dict[int, float],
    error: float = 0.01,
    guardrails: Guardrails | None = None,
    of: World = SMALL,
) -> View:
    raw = {at: Estimate(lift, error) for at, lift in lifts.items()}
    return View(
        of.section, shrink(hierarchy(of.section), raw, ({}, {}, None)), guardrails or Guardrails({}, {})
    )


def all_at(lift: float) -> dict[int, float]:
    return dict.fromkeys(range(len(SMALL.share)), lift)


def by_key(decisions: Decisions) -> dict[str, Decision]:
    return {one.key: one for one in decisions}


def first(
    one: View, before: PreviousArms | None = None, overrides: Overrides | None = None, **settings: object
) -> Decision:
    chosen = replace(SETTINGS, **settings)  # type: ignore[arg-type]
    found = decide([one], chosen, overrides or Overrides(), before or PreviousArms({}), chosen.changed)
    return by_key(found)[FIRST]


def had(arm: str, days: int) -> PreviousArms:
    return PreviousArms.states({("large", FIRST): State(arm, SETTINGS.as_of - days)})


@pytest.mark.parametrize(
    ("lift", "arm", "days", "expected", "reason"),
    [
        (0.10, "control", 9, "bbr", "switched on"),
        (0.10, "control", 2, "control", "changed too recently"),
        (0.008, "control", 9, "control", "not sure enough"),
        (0.008, "bbr", 9, "bbr", "stays on"),
        (-0.05, "bbr", 9, "control", "switched off"),
        (-0.05, "bbr", 2, "bbr", "changed too recently"),
    ],
)
def test_switching_on_needs_more_than_staying_on(
    lift: float, arm: str, days: int, expected: str, reason: str
) -> None:
    one = first(view(all_at(lift)), had(arm, days))
    assert (one.arm, one.reason) == (expected, reason)
    assert one.since == (SETTINGS.as_of if expected != arm else SETTINGS.as_of - days)


def test_a_gain_that_may_be_harm_is_not_taken() -> None:
    """The expected gain is enough, but harm is not excluded."""
    one = first(view(all_at(0.03), error=0.4))
    assert one.lift > 0.01
    assert one.p_safe < SETTINGS.sure
    assert (one.arm, one.reason) == ("control", "not sure enough")


def test_no_network_is_switched_on_while_the_gains_may_be_chance() -> None:
    """Half of the networks at +3 %, the others at -3 %: noise, or not, by the error."""
    lifts = {at: 0.03 if at % 2 else -0.03 for at in range(len(SMALL.share))}
    settings = replace(SETTINGS, harmed=1.0)
    noise = decide([view(lifts, error=0.02)], settings, Overrides(), PreviousArms({}), 1.0)
    assert sum(one.reason == "no significant gain yet" for one in noise) == 20
    assert all(one.arm == "control" for one in noise)
    known = decide([view(lifts, error=0.005)], SETTINGS, Overrides(), PreviousArms({}), 1.0)
    assert sum(one.reason == "switched on" for one in known) == 20


HALF_GAIN_MORE = {at: 0.2 if at % 2 else 0.05 for at in range(len(SMALL.share))}


def reach_of_harm(found: Decisions) -> float:
    """Traffic that is on and harmed, if as much is as in one of 20 worlds."""
    on = found.arm == "bbr"
    share, p = found.share[on], 1 - found.p_safe[on]
    return float((share * p).sum() + 1.645 * np.sqrt((share**2 * p * (1 - p)).sum()))


def test_traffic_that_may_be_harmed_is_bounded() -> None:
    """Each network is sure enough, all of them together are not. The highest gains for the risk go on."""
    one = view(HALF_GAIN_MORE, error=0.04)
    every = decide([one], replace(SETTINGS, harmed=1.0), Overrides(), PreviousArms({}), 1.0)
    assert all(row.arm == "bbr" for row in every.networks)
    assert reach_of_harm(every) > 0.02
    some = decide([one], replace(SETTINGS, harmed=0.005), Overrides(), PreviousArms({}), 1.0)
    assert 0.004 < reach_of_harm(some) <= 0.005
    off = {row.key for row in some.networks if row.reason == AT_RISK}
    assert 0 < len(off) < 20
    assert off <= {SMALL.section.networks[at] for at, lift in HALF_GAIN_MORE.items() if lift == 0.05}


def test_an_entry_that_is_on_leaves_by_its_own_evidence_alone() -> None:
    """The budget of harm limits what comes in: entries that are on beyond it stay, and no other comes in."""
    one = view(HALF_GAIN_MORE, error=0.04)
    half = SMALL.section.networks[::2]
    before = PreviousArms.states({("large", key): State("bbr", 0) for key in half})
    settings = replace(SETTINGS, harmed=0.005)
    found = decide([one], settings, Overrides(), before, 1.0)
    reasons = {row.key: row.reason for row in found.networks}
    assert reach_of_harm(found) > 0.005
    assert {reasons[key] for key in half} == {"stays on"}
    assert {reason for key, reason in reasons.items() if key not in half} == {AT_RISK}
    # A person may want more on.
    pinned = decide([one], settings, Overrides(pins={"*": "bbr"}), before, 1.0)
    assert all(row.arm == "bbr" for row in pinned.networks)


@pytest.mark.parametrize(
    ("lift", "harmed", "reason"),
    [
        (0.04, 0.002, TOO_RISKY),
        (0.04, 0.1, "stays on"),
        (0.3, 1e-9, "stays on"),
        (-0.1, 0.002, "switched off"),
    ],
)
def test_an_entry_that_alone_exceeds_the_budget_leaves(lift: float, harmed: float, reason: str) -> None:
    """It has 2.5 % of the traffic. One that is surely safe stays, though it has more than the budget."""
    one = first(view(all_at(lift), error=0.3), had("bbr", 9), harmed=harmed)
    assert one.reason == reason


def test_a_network_not_seen_yet_gets_what_the_seen_ones_around_it_get() -> None:
    """A wide entry has no traffic of its own, so its own risk is nothing in the budget of harm."""
    one = view(dict.fromkeys(range(len(SMALL.share)), 0.1), error=0.04)
    every = decide([one], replace(SETTINGS, harmed=1.0), Overrides(), PreviousArms({}), 1.0)
    wide = {row.key for row in every if row.level != "network" and row.arm == "bbr"}
    assert wide
    none = decide([one], replace(SETTINGS, harmed=1e-12), Overrides(), PreviousArms({}), 1.0)
    assert all(row.arm == "control" for row in none)
    assert {row.reason for row in none if row.key in wide} == {AT_RISK}


def test_a_large_gain_that_is_known_badly_is_beyond_chance() -> None:
    """Five times as fast, eight standard errors from nothing, of one network among many without any lift."""
    lifts = dict.fromkeys(range(len(SMALL.share)), 0.0)
    one = view({**lifts, 0: 1.67}, error=0.21)
    found = decide([one], SETTINGS, Overrides(), PreviousArms({}), 1.0)
    assert [row.key for row in found.networks if row.reason == "switched on"] == [FIRST]
    # At less than three errors it may still be chance.
    found = decide([view({**lifts, 0: 0.6}, error=0.21)], SETTINGS, Overrides(), PreviousArms({}), 1.0)
    assert not any(row.reason == "switched on" for row in found)


@pytest.mark.parametrize(("errors", "is_shown"), [(1.0, False), (2.3, True)])
def test_gains_of_many_networks_are_beyond_chance_together(errors: float, is_shown: bool) -> None:
    """Half of the networks gain, half lose as much: no single one shows it, nor a mean over an AS."""
    raw = {at: Estimate(errors * (0.06 if at % 2 else -0.06), 0.06) for at in range(len(SMALL.share))}
    evidence = log_evidence_of_gain(shrink(hierarchy(SMALL.section), raw, ({}, {}, None)))
    assert (evidence > np.log(20)) == is_shown


def test_gains_are_seldom_found_where_there_are_none() -> None:
    """30 daily looks at growing evidence of all networks: 120 worlds without a gain, at most 1 of 20."""
    rng = np.random.default_rng(5)
    worlds, days, count = 120, 30, len(SMALL.share)
    tree = hierarchy(SMALL.section)
    ever = 0
    for _ in range(worlds):
        sums = np.zeros(count)
        evidence = []
        for day in range(1, days + 1):
            sums += rng.normal(0, 0.5, count)
            error = 0.5 / np.sqrt(day)
            raw = {at: Estimate(float(lift), error) for at, lift in enumerate(sums / day)}
            evidence.append(log_evidence_of_gain(shrink(tree, raw, ({}, {}, None))))
        ever += max(evidence) >= np.log(20)
    assert ever <= worlds / 20, ever


def broken(name: str) -> Guardrails:
    """By all networks, and by the networks without a verdict of their own."""
    found = {name: (Watched("retransmitted:ratio", "at most +2.00 pp", "broken", 0.05, 0.03, 0.07, 3),)}
    return Guardrails(found, found)


@pytest.mark.parametrize("name", [FIRST, SYSTEM, SMALL.section.country[0], "*"])
def test_a_broken_guardrail_switches_off_at_once(name: str) -> None:
    """Of the network or anything wider; without dwell, limit or freeze."""
    held = Overrides(frozen=("*",))
    one = first(view(all_at(0.1), guardrails=broken(name)), had("bbr", 0), held, changed=1e-9)
    assert one.arm == "control"
    assert one.reason.startswith("guardrail broken: retransmitted")
    again = first(view(all_at(0.1), guardrails=broken(name)), had("control", 9))
    assert again.arm == "control"


def test_a_wide_entry_has_its_own_verdict() -> None:
    """All networks together break it; without the ASes that do so by themselves, none does."""
    all_of = broken("*").entries
    found = decide(
        [view(all_at(0.1), guardrails=Guardrails(all_of, {}))], SETTINGS, Overrides(), PreviousArms({}), 1.0
    )
    arms = {row.key: row for row in found}
    assert arms["*"].reason.startswith("guardrail broken: retransmitted:ratio of all clients")
    assert arms[SYSTEM].arm == arms[FIRST].arm == "bbr"


def test_the_guardrail_of_another_as_holds_no_network_back() -> None:
    other = next(name for name in SMALL.section.system if name != SYSTEM)
    assert first(view(all_at(0.1), guardrails=broken(other)), had("control", 9)).arm == "bbr"


def test_a_person_has_the_last_word() -> None:
    good, bad = view(all_at(0.1)), view(all_at(-0.1))
    assert first(good, None, Overrides({FIRST: "control"})).arm == "control"
    assert first(bad, None, Overrides({SYSTEM: "bbr"})).reason == f"pinned with {SYSTEM}"
    assert first(good, None, Overrides(frozen=(SYSTEM,))).arm == "control"
    assert first(bad, had("bbr", 9), Overrides(frozen=("*",))).arm == "bbr"
    unseen = by_key(decide([good], SETTINGS, Overrides({"192.0.2.0/24": "bbr"}), PreviousArms({}), 1.0))[
        "192.0.2.0/24"
    ]
    assert (unseen.arm, unseen.level, unseen.share) == ("bbr", "network", 0)


def test_traffic_that_changes_in_a_day_is_limited() -> None:
    """Until all has changed, over as many days as that takes; what brings most comes first."""
    one, before = view(all_at(0.1)), PreviousArms({})
    changed = []
    for day in range(12):
        settings = replace(SETTINGS, as_of=SETTINGS.as_of + day)
        found = decide([one], settings, Overrides(), before, 0.3)
        moved = [it for it in found if it.since == settings.as_of and it.level == "network"]
        changed.append(sum(it.share for it in moved))
        before = PreviousArms.from_decisions(found)
    assert max(changed) <= 0.3
    assert sum(changed) == pytest.approx(1)
    assert changed[0] > 0.2, changed


def test_a_network_larger_than_a_day_may_change_changes_alone() -> None:
    section = replace(SMALL.section, bytes=np.array([100] + [1] * (len(SMALL.section.bytes) - 1)))
    one = replace(view(all_at(0.1)), section=section)
    found = decide([one], replace(SETTINGS, changed=0.2), Overrides(), PreviousArms({}), 0.2)
    moved = [it.key for it in found if it.arm == "bbr" and it.share > 0]
    assert moved == [FIRST]
    held = decide([one], replace(SETTINGS, changed=0.2), Overrides(), PreviousArms({}), 0.0)
    assert not any(it.arm == "bbr" and it.share > 0 for it in held)


def test_networks_without_records_follow_their_as() -> None:
    lifts = {at: 0.2 for at, name in enumerate(SMALL.section.system) if name == SYSTEM and at}
    lifts |= {at: -0.2 for at, name in enumerate(SMALL.section.system) if name != SYSTEM}
    decided = by_key(decide([view(lifts)], SETTINGS, Overrides(), PreviousArms({}), 1.0))
    assert decided[FIRST].raw is None
    assert (decided[FIRST].arm, decided[SYSTEM].arm, decided["*"].arm) == ("bbr", "bbr", "control")
    assert decided[FIRST].by == "AS"


def test_equal_evidence_gives_equal_decisions() -> None:
    rng = np.random.default_rng(1)
    lifts = {at: float(rng.normal(0.05, 0.1)) for at in range(40)}
    one = decide([view(lifts)], SETTINGS, Overrides(), PreviousArms({}), 0.2)
    assert (
        one.to_bytes()
        == decide(
            [view(dict(reversed(lifts.items())))], SETTINGS, Overrides(), PreviousArms({}), 0.2
        ).to_bytes()
    )
