"""Which of several treated arms an entry asks for, and what is monotone in the window."""

from dataclasses import replace

import numpy as np
import pytest

from learn_worlds import SETTINGS
from test_learn_decide import FIRST, SMALL, all_at, by_key, view
from uncork.learn import choice, monotone
from uncork.learn.choice import Known
from uncork.learn.decide import BETTER, _spared, decide
from uncork.learn.decisions import NAMES, Decision, Decisions
from uncork.learn.entries import PreviousArms, State
from uncork.learn.guardrails import Guardrails, Watched
from uncork.learn.settings import Overrides, Settings

SEVERAL = replace(SETTINGS, treated="w20", others=("w40",))


def known(lift: float, *, sd: float = 0.01, arm: str = "control", broken: str | None = None) -> Known:
    """One entry."""
    values = dict.fromkeys(NAMES, np.array([0.0]))
    values |= {"arm": np.array([arm], dtype=object), "about": np.array([""], dtype=object)}
    values |= {"lift": np.array([lift]), "sd": np.array([sd])}
    values |= {name: np.array([1.0 if lift > 0 else 0.0]) for name in ("p_gain", "p_safe", "p_kept")}
    why = np.array([broken], dtype=object)
    return Known(Decisions(**values), why, np.array([None], dtype=object), np.array([True]))


@pytest.mark.parametrize(
    ("lifts", "arm", "asked", "why"),
    [
        ((0.1, 0.3), "control", "w40", "the larger gain"),
        ((0.3, -0.5), "control", "w20", "the other one loses"),
        ((-0.5, -0.1), "control", "w40", "none may come in: the nearest"),
        ((0.3, 0.3), "w20", "w20", "no gain by a move"),
        ((0.1, 0.3), "w20", "w40", "the move is worth it"),
        ((-0.1, 0.3), "w20", "w20", "first it leaves the arm that loses"),
        ((0.2, -0.1), "w40", "w40", "first it leaves the arm that loses"),
    ],
)
def test_an_entry_asks_for_one_arm(lifts: tuple[float, float], arm: str, asked: str, why: str) -> None:
    found = choice.asked([known(one, arm=arm) for one in lifts], SEVERAL)
    assert SEVERAL.candidates[found[0]] == asked, why


def test_a_move_that_may_be_a_loss_waits() -> None:
    each = [known(0.2, sd=0.01, arm="w20"), known(0.22, sd=0.1, arm="w20")]
    assert choice.asked(each, SEVERAL)[0] == 0
    each[1] = known(0.22, sd=0.001, arm="w20")
    assert choice.asked(each, SEVERAL)[0] == 1


def test_a_broken_arm_is_not_asked_for_but_left() -> None:
    each = [known(0.2), known(0.4, broken="limit")]
    assert choice.asked(each, SEVERAL)[0] == 0
    on = [known(0.2, arm="w40"), known(0.4, arm="w40", broken="limit")]
    assert choice.asked(on, SEVERAL)[0] == 1, "so that the rules switch it off"


def test_who_is_frozen_or_pinned_asks_for_that_arm() -> None:
    each = [known(0.1, arm="w20"), known(0.4, arm="w20")]
    assert choice.asked(each, SEVERAL, frozen=np.array([True]))[0] == 0
    pinned = np.array(["w40"], dtype=object)
    assert choice.asked(each, SEVERAL, pinned, np.array([True]))[0] == 1


def windows(control: str = "10p", **arms: str) -> Settings:
    settings = {name: {"tcp": "cubic", "initial_window": window} for name, window in arms.items()}
    treated, *others = arms
    both = {"control": {"tcp": "cubic", "initial_window": control}, **settings}
    return replace(SETTINGS, arms=both, treated=treated, others=tuple(others))


def test_windows_of_one_controller_are_in_order() -> None:
    assert monotone.chains(windows(w64="64p", w4="4p", w20="20p")) == [(("w4", "w20", "w64"), 1)]
    mixed = windows(w20="20p", w40="40p")
    mixed = replace(mixed, arms={**mixed.arms, "w40": {"tcp": "bbr", "initial_window": "40p"}})
    assert monotone.chains(mixed) == [(("w20",), 1 - 1), (("w40",), -1)], (
        "windows of another controller have an order of their own"
    )
    assert monotone.chains(windows(w20="20p", kb="60kB")) == [(("w20",), 0), (("kb",), -1)]
    assert monotone.chains(SETTINGS) == []


def test_a_larger_window_is_never_safer_and_none_is_safer_than_control() -> None:
    margins = [np.array([0.05, -0.1]), np.array([-0.3, -0.4]), np.array([-0.1, -0.2])]
    found = monotone.pooled(margins, [np.ones(2), np.ones(2), np.ones(2)], below=0)
    assert np.allclose(np.stack(found).T, [[0.0, -0.2, -0.2], [-0.1, -0.3, -0.3]])
    precise = monotone.pooled(margins, [np.ones(2), np.ones(2), np.full(2, 1e-9)], below=-1)
    assert np.allclose(np.stack(precise).T, [[0.05, -0.1, -0.1], [-0.1, -0.2, -0.2]])


def test_pooled_margins_are_those_of_isotonic_regression() -> None:
    optimize = pytest.importorskip("scipy.optimize")
    rng = np.random.default_rng(1)
    means, variances = rng.normal(0, 1, (5, 40)), rng.uniform(0.1, 2, (5, 40))
    found = np.stack(monotone.pooled(list(means), list(variances), below=-1))
    for at in range(40):
        exact = optimize.isotonic_regression(means[:, at], weights=1 / variances[:, at], increasing=False)
        assert np.allclose(found[:, at], exact.x)


def test_what_a_window_breaks_larger_ones_break_too() -> None:
    broken = Watched("start_resent:ratio", "at most +2.00 pp", "broken", 0.1, 0.05, 0.2, 1)
    other = Watched("aborted:ratio", "at most +0.50 pp", "broken", 0.1, 0.05, 0.2, 1)
    of = {
        "w20": Guardrails({}, {}),
        "w40": Guardrails({"N": (broken, other)}, {}),
        "w64": Guardrails({"N": ()}, {}),
    }
    each = [replace(view({}), arm=arm, guardrails=guardrails) for arm, guardrails in of.items()]
    w20, w40, w64 = monotone.with_smaller(each, windows(w20="20p", w40="40p", w64="64p"))
    assert w20.guardrails.of("N") == ()
    assert w40.guardrails.of("N") == (broken, other)
    assert w64.guardrails.of("N") == (replace(broken, limit="at most +2.00 pp with w40"),)


def decided(
    lifts: tuple[float, float], arm: str, days: int = 9, changed: float = 1.0, harmed: float = 0.002
) -> Decision:
    """What is decided for one network, if all networks have these lifts by the two arms."""
    settings = replace(SEVERAL, changed=changed, harmed=harmed)
    each = [replace(view(all_at(one)), arm=name) for one, name in zip(lifts, ("w20", "w40"), strict=True)]
    before = PreviousArms.states({("large", FIRST): State(arm, settings.as_of - days)})
    return by_key(decide(each, settings, Overrides(), before, changed))[FIRST]


@pytest.mark.parametrize(
    ("lifts", "arm", "days", "expected", "reason"),
    [
        ((0.1, 0.3), "control", 9, "w40", "switched on"),
        ((0.1, 0.3), "w20", 9, "w40", BETTER),
        ((0.1, 0.3), "w20", 2, "w20", "changed too recently"),
        ((0.3, 0.1), "w20", 9, "w20", "stays on"),
        ((0.1, -0.2), "w40", 9, "control", "switched off"),
        ((-0.1, -0.2), "control", 9, "control", "not sure enough"),
    ],
)
def test_the_rules_of_two_arms_decide_for_each(
    lifts: tuple[float, float], arm: str, days: int, expected: str, reason: str
) -> None:
    found = decided(lifts, arm, days)
    assert (found.arm, found.reason) == (expected, reason)
    if expected != "control":
        assert found.about == expected
        assert found.lift == pytest.approx(lifts[0] if expected == "w20" else lifts[1], abs=0.01)


def test_a_move_that_waits_has_the_figures_of_the_arm_that_stays() -> None:
    waits = decided((0.1, 0.3), "w20", changed=0.0)
    assert (waits.arm, waits.reason, waits.about) == ("w20", "deferred: daily change budget used", "w20")
    assert waits.lift == pytest.approx(0.1, abs=0.01)


def test_the_risk_of_an_arm_that_may_have_to_stay_counts_in_the_budget_of_harm() -> None:
    now = Decisions.concat([known(0.2).now] * 2)
    now = replace(now, share=np.array([0.1, 0.1]), p_safe=np.array([0.99, 0.99]))
    may, off = np.array([True, True]), np.array([False, False])
    assert _spared(now, off, may, 0.06, 0.95).all()
    moving = replace(now, p_safe=np.array([0.6, 0.6]))
    assert not _spared(now, off, may, 0.06, 0.95, moving).any()


def test_arms_have_their_section_together_and_traffic_counts_once() -> None:
    each = [replace(view(all_at(0.3)), arm=name) for name in ("w20", "w40")]
    found = decide(each, SEVERAL, Overrides(), PreviousArms({}), 1.0)
    networks = found.networks
    assert len(networks) == len(SMALL.share)
    assert networks.share.sum() == pytest.approx(1.0)
    assert Decisions.from_bytes(found.to_bytes()).about.tolist() == found.about.tolist()


def test_an_arm_that_resumes_has_no_order_with_windows() -> None:
    both = windows(w20="20p", w40="40p")
    arms = {**both.arms, "resume": {"tcp": "cubic", "resume": "true"}}
    assert monotone.chains(replace(both, arms=arms, others=("w40", "resume"))) == [(("w20", "w40"), 0)]
