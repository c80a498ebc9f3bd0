"""Assignment is the policy's own: conformance/assignments.tsv holds both to the same answers."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from uncork.measure.assignment import (
    BUCKETS,
    SLOTS,
    Assigned,
    Experiment,
    assign,
    client,
    cookie,
    header,
)

VECTORS = Path(__file__).parents[3] / "conformance" / "assignments.tsv"
KEY = bytes(range(16))
EXPERIMENTS = {
    "ip": Experiment("networks-2026", ("control", "bbr", "bbr1"), 4007, (3, 2, 7), KEY),
    "cookie": Experiment("users", ("control", "bbr"), 7000, (), KEY, "größer"),
    "header": Experiment("devices", ("bbr", "control"), SLOTS, (1, 9), KEY),
}


def answers(listed: Sequence[str]) -> list[str]:
    """The answers that the crate uncork-policy should give."""
    lines = [""] * len(listed)
    make = {"ip": client, "cookie": lambda text: cookie(text[4:]), "header": lambda text: header(text[9:])}
    for kind, experiment in EXPERIMENTS.items():
        places = [place for place, unit in enumerate(listed) if unit.startswith(kind + " ")]
        found = assign(experiment, [make[kind](listed[place].split(" ", 1)[1]) for place in places])
        for at, place in enumerate(places):
            lines[place] = answer(experiment, found, at)
    return lines


def answer(experiment: Experiment, found: Assigned, at: int) -> str:
    if found.arm[at] < 0:
        return "-"
    arm = experiment.arms[found.arm[at]]
    propensity = f"{found.propensity[at]:g}"
    return f"{experiment.name} {arm} {found.hash[at]} {found.slot[at]} {found.bucket[at]} {propensity}"


def same(line: str, other: str) -> bool:
    """Whether two answers agree, numbers written as they may (1 and 1.0)."""
    parts = [text.split() for text in (line, other)]
    return parts[0][:-1] == parts[1][:-1] and (line == other or float(parts[0][-1]) == float(parts[1][-1]))


def test_units_are_assigned_as_the_policy_does() -> None:
    lines = VECTORS.read_text(encoding="utf-8").splitlines()
    listed, recorded = zip(*(line.split("\t") for line in lines), strict=True)
    assert len({line.split()[0] for line in recorded}) == 4, "all experiments, and units outside them"
    assert [pair for pair in zip(answers(listed), recorded, strict=True) if not same(*pair)] == []


def test_slots_are_divided_by_weight() -> None:
    def slots(weights: tuple[int, ...], share: int) -> list[tuple[int, int]]:
        return Experiment("x", tuple(map(str, weights)), share, weights).slots()

    assert slots((1, 1), SLOTS) == [(0, 5000), (5000, 5000)]
    assert slots((1, 1), 1000) == [(0, 500), (5000, 500)]
    assert slots((9, 1), SLOTS) == [(0, 9000), (9000, 1000)]
    assert slots((1, 1, 1), SLOTS) == [(0, 3333), (3333, 3333), (6666, 3334)]
    assert slots((1,), 0) == [(0, 0)]


def test_buckets_are_even_and_independent_of_the_arm() -> None:
    experiment = Experiment("even", ("control", "bbr"))
    found = assign(experiment, [cookie(str(number)) for number in range(50_000)])
    table = np.zeros((2, BUCKETS))
    np.add.at(table, (found.arm, found.bucket), 1)
    assert np.all(found.propensity == 0.5)
    # Chi-square with 199 degrees of freedom: its 99.9 % quantile is 267.
    assert np.sum((table - 250) ** 2 / 250) < 267


def test_a_larger_share_moves_no_unit() -> None:
    names = [cookie(str(number)) for number in range(5_000)]
    small, large = (assign(Experiment("x", ("a", "b"), share), names).arm for share in (1_000, 6_000))
    assert np.all(small[small >= 0] == large[small >= 0])
    assert np.count_nonzero(small >= 0) < np.count_nonzero(large >= 0)


@pytest.mark.parametrize("value", ["", b""])
def test_an_empty_value_is_not_a_unit(value: str | bytes) -> None:
    with pytest.raises(ValueError, match="empty"):
        header(value)


def test_bad_experiments_are_refused() -> None:
    with pytest.raises(ValueError, match="10001 slots"):
        Experiment("x", ("a",), 10_001)
    with pytest.raises(ValueError, match="2 arms have 1 weights"):
        Experiment("x", ("a", "b"), weights=(1,))
    with pytest.raises(ValueError, match="weight"):
        Experiment("x", ("a",), weights=(0,))
    with pytest.raises(ValueError, match="does not appear"):
        client("example.com")
