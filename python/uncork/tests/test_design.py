"""Design: experiments show what the past promises; the server accepts the files."""

import csv
import io
import math
import os
import shutil
import subprocess
import tomllib
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from capability import not_run
from populations import BINS, FIRST_BIN, GAMMA
from uncork.experiment import design, schedules
from uncork.experiment.policyfile import Arm, PolicyPlan, ab_policy, calendar_policy
from uncork.measure.cubes import DistributionCube, RatioCube
from uncork.measure.errors import InputError
from uncork.measure.stats.effect import Effect
from uncork.measure.stats.jackknife import quantile_effect, ratio_effect
from uncork.measure.stats.switchback import DAY, WEEK

USERS = 2_000
REPOSITORY = Path(__file__).parents[3]


def days(
    count: int, rng: np.random.Generator, *, returning: bool, shift: float = 0.0
) -> list[dict[str, RatioCube | DistributionCube]]:
    """Days of one arm: users with levels of their own, who return or do not."""
    level, bucket = rng.normal(shift, 0.6, USERS), rng.integers(0, 100, USERS)
    found = []
    for _ in range(count):
        if not returning:
            level, bucket = rng.normal(shift, 0.6, USERS), rng.integers(0, 100, USERS)
        user = np.repeat(np.arange(USERS), rng.poisson(1.5, USERS))
        logs = level[user] + rng.normal(0, 0.6, len(user))
        bins = np.ceil(logs / math.log(GAMMA)).astype(int) - FIRST_BIN
        counts = np.bincount(bucket[user] * BINS + bins, minlength=100 * BINS).reshape(1, 100, BINS)
        sums = np.bincount(bucket[user], np.exp(logs), 100)[None], counts.sum(axis=2).astype(float)
        found.append({"throughput": DistributionCube(counts, FIRST_BIN, GAMMA), "size": RatioCube(*sums)})
    return found


def known(past: design.Precision | design.NoPrecision) -> design.Precision:
    assert isinstance(past, design.Precision), past
    return past


@pytest.mark.parametrize(("metric", "q"), [("throughput", 0.5), ("throughput", 0.1), ("size", None)])
def test_the_promised_error_is_that_of_experiments(metric: str, q: float | None) -> None:
    rng = np.random.default_rng(1)
    past = known(design.precision(days(4, rng, returning=True), metric, q, USERS))
    goal = design.Goal(relative=0.05)
    promised = design.mde(past, goal, 4)
    seen = []
    for _ in range(25):
        # Half of the past's users in each arm: the same number in all, so twice the scatter.
        arms = [design._sum([day[metric] for day in days(4, rng, returning=True)]) for _ in range(2)]
        if q is None:
            parts = [part for arm in arms for part in (arm.numerator[0], arm.denominator[0])]
            effect = ratio_effect(*parts)
        else:
            low = min(arm.first_bin for arm in arms)
            wide = [np.pad(arm.counts[0], ((0, 0), (arm.first_bin - low, 600))) for arm in arms]
            size = min(part.shape[1] for part in wide)
            effect = quantile_effect(wide[0][:, :size], wide[1][:, :size], q, first_bin=low, gamma=GAMMA)
        assert isinstance(effect, Effect)
        seen.append(math.log(effect.ratio_high / effect.ratio_low) / 2 / 1.984 * math.sqrt(2))
    assert math.log1p(promised) == pytest.approx(goal.reach() * float(np.mean(seen)), rel=0.25)


def test_variance_falls_with_days_as_far_as_users_are_new() -> None:
    rng = np.random.default_rng(2)
    new, same = (
        known(design.precision(days(12, rng, returning=back), "size", None, USERS)) for back in (False, True)
    )
    assert new.fall_is_measured
    assert same.fall_is_measured
    assert new.fall > 0.75
    assert same.fall < 0.6
    short = known(design.precision(days(2, rng, returning=True), "size", None, USERS))
    assert not short.fall_is_measured
    assert short.fall == design.ASSUMED_FALL


def test_the_proposed_duration_finds_the_effect_and_half_of_it_does_not() -> None:
    past = design.Precision(1.0, 0.02, 10_000, 14, 0.8, True)
    goal = design.Goal(relative=0.05, looks=30)
    needed = design.days_needed(past, goal)
    assert needed is not None
    assert design.mde(past, goal, needed) == pytest.approx(0.05)
    assert design.mde(past, goal, needed / 2) > 0.05
    assert design.days_needed(replace(past, fall=0.0), goal) is None, "the same users forever"
    assert design.days_needed(past, design.Goal(relative=5.0)) == 1.0
    small = design.days_needed(past, replace(goal, shares=(0.05, 0.05)))
    assert small is None or small > needed
    assert design.units_needed(past, goal) == pytest.approx(
        2 * (goal.reach() * 0.02 * 100 / math.log(1.05)) ** 2, abs=1
    )
    with pytest.raises(ValueError, match="cannot be looked for"):
        design.days_needed(past, design.Goal(relative=0))


def test_units_are_compared_by_precision() -> None:
    rng = np.random.default_rng(3)
    whole = days(1, rng, returning=True)[0]["throughput"]
    assert isinstance(whole, DistributionCube)
    # The same records by request instead of user: the error looks smaller than it is.
    spread = rng.multinomial(whole.counts.sum(axis=1)[0], np.full(100, 0.01)).T.reshape(1, 100, -1)
    few = whole.counts * (np.arange(100) < 7)[None, :, None]
    candidates = {
        design.CLIENT_NETWORK: ([{"throughput": whole}], 2000),
        "request": ([{"throughput": replace(whole, counts=spread)}], 3000),
        design.BLOCK: ([{"throughput": replace(whole, counts=few)}], 7),
    }
    goal = design.Goal()
    found = design.compare_units(candidates, "throughput", 0.5, goal)
    assert [one.unit for one in found] == ["request", "client network", "PoP x hour"]
    assert found[0].mde is not None
    assert found[1].mde is not None
    assert found[1].mde > found[0].mde
    known = design.precision(*candidates[design.CLIENT_NETWORK][:1], "throughput", 0.5, 2000)
    assert isinstance(known, design.Precision)
    assert found[1].days == design.days_needed(known, goal)
    assert found[1].units_needed == design.units_needed(known, goal)
    assert found[2].mde is None
    assert "7 buckets" in found[2].sentence
    assert "switchback" in found[2].sentence


def test_every_hour_of_a_place_is_a_new_unit() -> None:
    """Half of the change needs four times the hours, even if the past's days are alike."""
    some = days(8, np.random.default_rng(5), returning=True)
    needed = []
    for relative in (0.1, math.sqrt(1.1) - 1):
        goal = design.Goal(relative)
        one = design.compare_units({design.BLOCK: (some, 192)}, "throughput", 0.5, goal)[0]
        assert one.days is not None
        needed.append(one.days)
    assert needed[1] == pytest.approx(4 * needed[0])


def test_the_a_a_check_holds_where_users_are_many_and_not_where_one_has_half_of_the_traffic() -> None:
    rng = np.random.default_rng(4)
    one = days(2, rng, returning=True)
    for metric, q in (("throughput", 0.5), ("size", None), ("throughput", None)):
        check = design.aa_check(one[0][metric], q, rng)
        assert isinstance(check, design.AaCheck)
        assert check.holds, check
        assert "as it should" in check.sentence
    cube = one[0]["size"]
    assert isinstance(cube, RatioCube)
    heavy = cube.numerator.copy(), cube.denominator.copy()
    heavy[0][0, 5] += 20 * heavy[0].sum()
    heavy[1][0, 5] += heavy[1].sum()
    check = design.aa_check(RatioCube(*heavy), None, rng)
    assert isinstance(check, design.AaCheck)
    assert not check.holds, check
    assert "do not hold" in check.sentence


def test_a_past_without_data_gives_a_reason() -> None:
    empty = RatioCube(np.zeros((1, 100)), np.zeros((1, 100)))
    for outcome in (
        design.precision([], "size", None, 0),
        design.precision([{"size": empty}], "size", None, 0),
        design.aa_check(empty, None, np.random.default_rng(1)),
    ):
        assert isinstance(outcome, design.NoPrecision)
        assert outcome.reason


PLAN = PolicyPlan(
    "bbr-2026",
    Arm("control", {"quic": "cubic", "tcp": "cubic"}),
    Arm("bbr", {"quic": "bbr3:loss_floor", "tcp": "bbr"}),
    key="000102030405060708090a0b0c0d0e0f",
)
START = 1_796_083_200
CALENDARS = {
    "switchback": schedules.switchback(["lima", "quito"], START, block=3_600, periods=2, seed=7),
    "paired": schedules.paired_links(("lima", "quito"), START, periods=8, seed=7),
    "steps": schedules.steps(["lima", "quito", "cuzco"], START, seed=7, shares=(0, 0.05, 0.5, 1)),
}


def policies() -> dict[str, str]:
    made = {name: calendar_policy(PLAN, calendar) for name, calendar in CALENDARS.items()}
    made["ab"] = ab_policy(
        replace(PLAN, share=0.0725, unit="cookie:uid", conditions={"listener": "öffentlich"})
    )
    return made | {"hosts": calendar_policy(replace(PLAN, name="ein Name"), CALENDARS["paired"], "host")}


def uncork() -> str | None:
    target = Path(os.environ.get("CARGO_TARGET_DIR", REPOSITORY / "target"))
    built = [target / profile / "uncork" for profile in ("release", "debug")]
    named = os.environ.get("UNCORK")
    return named or next((str(path) for path in built if path.is_file()), None) or shutil.which("uncork")


@pytest.mark.parametrize("name", [*CALENDARS, "ab", "hosts"])
def test_the_server_takes_the_policies(name: str, tmp_path: Path) -> None:
    program = uncork()
    if program is None:
        not_run("programs", "build it (cargo build --release --features full), or set UNCORK to its path")
    path = tmp_path / "policy.toml"
    path.write_text(policies()[name])
    run = subprocess.run([program, "policy", "check", str(path)], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert "experiment" in run.stdout


def test_a_policy_of_paired_links_treats_as_its_calendar_says() -> None:
    policy = tomllib.loads(policies()["paired"])
    assert policy["experiment"]["bbr-2026-95"]["arm"]["bbr"]["weight"] == 9_500
    assert policy["experiment"]["bbr-2026-5"]["arm"]["control"] == {
        "quic": "cubic",
        "tcp": "cubic",
        "weight": 9_500,
    }
    assert {one["salt"] for one in policy["experiment"].values()} == {"bbr-2026"}
    for span in CALENDARS["paired"].spans:
        (rule,) = (
            rule
            for rule in policy["rule"]
            if rule["listener"] == span.place
            and rule["time"]["since"].timestamp() <= span.since < rule["time"]["until"].timestamp()
        )
        assert rule["experiment"] == f"bbr-2026-{span.treated * 100:g}"


def test_calendars_are_reproducible_and_balanced() -> None:
    for kind in ("switchback", "paired", "steps"):
        spans = CALENDARS[kind].spans
        for place in {span.place for span in spans}:
            own = [span for span in spans if span.place == place]
            assert all(one.until == other.since for one, other in pairwise(own)), "no gap"
    again = schedules.switchback(["lima", "quito"], START, block=3_600, periods=2, seed=7)
    assert again == CALENDARS["switchback"]
    assert again != schedules.switchback(["lima", "quito"], START, block=3_600, periods=2, seed=8)
    lima, quito = (
        [span.treated for span in again.spans if span.place == place] for place in ("lima", "quito")
    )
    assert lima != quito, "each place has coins of its own"
    assert sum(lima) == sum(quito) == 168
    assert sorted(span.treated for span in CALENDARS["steps"].spans) == sorted([0, 0.05, 0.5, 1] * 3)


def test_a_calendar_as_csv() -> None:
    rows = list(csv.DictReader(io.StringIO(schedules.to_csv(CALENDARS["paired"]))))
    assert len(rows) == 16
    assert rows[0]["since"] == "2026-12-01T00:00:00Z"
    assert rows[0]["counts_from"] == "2026-12-01T01:00:00Z"
    assert {row["treated"] for row in rows} == {"0.05", "0.95"}
    assert DAY * 7 == WEEK


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"key": "secret"}, "openssl rand -hex 16"),
        ({"unit": "ip"}, "prefix, cookie:NAME or header:NAME"),
        ({"share": 0.12345}, "steps of 0.01 %"),
        ({"share": 0.0}, "steps of 0.01 %"),
        ({"treated": PLAN.control}, "both arms are called `control`"),
        ({"name": ""}, "have names"),
    ],
)
def test_bad_plans_are_refused_with_a_remedy(change: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        ab_policy(replace(PLAN, **change))


def test_bad_calendars_are_refused() -> None:
    with pytest.raises(InputError, match="even number"):
        schedules.switchback(["a"], START, block=3_600, periods=3, seed=1)
    with pytest.raises(InputError, match="leave nothing"):
        schedules.switchback(["a"], START, block=600, periods=2, seed=1)
    with pytest.raises(InputError, match="even number"):
        schedules.paired_links(("a", "b"), START, periods=3, seed=1)
    with pytest.raises(InputError, match="name two links"):
        schedules.paired_links(("a", "a"), START, periods=2, seed=1)
    with pytest.raises(InputError, match="leave the share out"):
        calendar_policy(replace(PLAN, share=0.5), CALENDARS["paired"])
    with pytest.raises(InputError, match="listener or host"):
        calendar_policy(PLAN, CALENDARS["paired"], "path")
