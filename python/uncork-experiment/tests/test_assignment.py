"""Assignment is the policy's own: compared with what the Rust code answers for the same units."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from uncork_experiment.measure.assignment import (
    BUCKETS,
    SLOTS,
    Assigned,
    Experiment,
    assign,
    client,
    cookie,
    header,
)

DATA = Path(__file__).parent / "data"
REPOSITORY = Path(__file__).parents[3]
KEY = bytes(range(16))
EXPERIMENTS = {
    "ip": Experiment("networks-2026", ("control", "bbr", "bbr1"), 4007, (3, 2, 7), KEY),
    "cookie": Experiment("users", ("control", "bbr"), 7000, (), KEY, "größer"),
    "header": Experiment("devices", ("bbr", "control"), SLOTS, (1, 9), KEY),
}


def units(count: int) -> list[str]:
    """Units of all kinds, as the program `assignments` reads them."""
    rng = np.random.default_rng(18)
    kinds = [
        lambda: "ip " + ".".join(map(str, rng.integers(0, 256, 4))),
        lambda: "ip " + ":".join(f"{int(word):x}" for word in [0x2001, *rng.integers(0, 65536, 7)]),
        lambda: "ip ::ffff:" + ".".join(map(str, rng.integers(0, 256, 4))),
        lambda: "cookie uid=" + "u" * int(rng.integers(0, 20)) + str(rng.integers(0, 2**62)),
        lambda: f"header x-device={rng.integers(0, 2**62):x}",
    ]
    return [kinds[number % len(kinds)]() for number in range(count)]


def answers(listed: list[str]) -> list[str]:
    """The answers that the Rust program should give."""
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


def not_run(capability: str, why: str) -> None:
    """Skips loudly, or fails where UNCORK_REQUIRE names the capability."""
    required = os.environ.get("UNCORK_REQUIRE", "").split(",")
    assert not {capability, "all"} & set(required), f"UNCORK_REQUIRE demands {capability}: {why}"
    os.write(2, f"\n*** NOT RUN ({capability}): {why} ***\n\n".encode())
    pytest.skip(why)


def program() -> Path | None:
    target = Path(os.environ.get("CARGO_TARGET_DIR", REPOSITORY / "target"))
    places = [target / profile / "examples" / "assignments" for profile in ("release", "debug")]
    return next((place for place in places if place.is_file()), None)


def test_units_are_assigned_as_the_policy_explains() -> None:
    recorded = (DATA / "assignments.txt").read_text().splitlines()
    assert len(recorded) == 240
    assert len({line.split()[0] for line in recorded}) == 4, "all experiments, and units outside them"
    assert [pair for pair in zip(answers(units(240)), recorded, strict=True) if not same(*pair)] == []


def test_a_hundred_thousand_units_are_assigned_as_the_policy_does() -> None:
    built = program()
    if built is None:
        not_run("programs", "build it: cargo build --release -p uncork-policy --example assignments")
    listed = units(100_000)
    text = "".join(f"{unit}\n" for unit in listed)
    command = [str(built), str(DATA / "assignments.toml")]
    run = subprocess.run(command, input=text.encode(), capture_output=True, check=True)
    wrong = [
        pair
        for pair in zip(answers(listed), run.stdout.decode().splitlines(), strict=True)
        if not same(*pair)
    ]
    assert wrong == []


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


if __name__ == "__main__":
    sys.stdout.write("".join(f"{unit}\n" for unit in units(int(sys.argv[1]))))
