"""What `pin` and `explain` print."""

from pathlib import Path

import pytest

from learn_worlds import SETTINGS
from test_learn_decide import FIRST, all_at, by_key, first, had, view
from uncork.learn.cli import main
from uncork.learn.decide import decide
from uncork.learn.entries import PreviousArms, State
from uncork.learn.explain import _bounds
from uncork.learn.settings import Overrides
from uncork.learn.tablefile import table


def test_a_pin_prints_its_effect(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pin", str(tmp_path), "11.2.0.0/16", "bbr"]) == 0
    assert "11.2.0.0/16: pinned to bbr" in capsys.readouterr().out
    assert main(["pin", str(tmp_path), "11.2.0.0/16"]) == 0
    assert "no longer pinned" in capsys.readouterr().out


def test_a_country_that_is_unknown_everywhere_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["pin", str(tmp_path), "XX", "bbr"]) == 2
    assert "is not an entry" in capsys.readouterr().err


def test_a_freeze_prints_its_effect(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["freeze", str(tmp_path), "11.2.0.0/16"]) == 0
    assert "11.2.0.0/16: frozen, with all entries in it" in capsys.readouterr().out


def arms_in_table(lift: float, overrides: Overrides, before: PreviousArms | None = None) -> dict[str, str]:
    """The lines of the table, of networks with this lift."""
    found = decide([view(all_at(lift))], SETTINGS, overrides, before or PreviousArms({}), 1.0)
    lines = (line.split() for line in table(1, found, SETTINGS).splitlines())
    return {words[0]: words[1] for words in lines if len(words) == 2}


@pytest.mark.parametrize(("arm", "lift"), [("control", 0.1), ("bbr", -0.1)])
def test_a_pin_of_a_network_reaches_the_networks_in_it(arm: str, lift: float) -> None:
    other = {"control": "bbr", "bbr": "control"}[arm]
    overrides = Overrides({"10.0.0.0/16": arm, FIRST: other})
    found = by_key(decide([view(all_at(lift))], SETTINGS, overrides, PreviousArms({}), 1.0))
    inner = [one for one in found.values() if one.level == "network" and one.key not in overrides.pins]
    assert {(one.arm, one.reason) for one in inner} == {(arm, "pinned with 10.0.0.0/16")}
    assert (found[FIRST].arm, found[FIRST].reason) == (other, "pinned")
    in_table = arms_in_table(lift, overrides)
    assert (in_table["10.0.0.0/16"], in_table[FIRST]) == (arm, other)


def test_the_narrowest_pin_around_a_network_counts() -> None:
    overrides = Overrides({"10.0.0.0/8": "bbr", "10.0.0.0/16": "control"})
    assert first(view(all_at(0.1)), overrides=overrides).reason == "pinned with 10.0.0.0/16"


def test_a_freeze_of_a_network_reaches_the_networks_in_it() -> None:
    one = first(view(all_at(-0.1)), had("bbr", 9), Overrides(frozen=("10.0.0.0/16",)))
    assert (one.arm, one.reason) == ("bbr", "frozen")


def test_a_network_in_a_frozen_one_keeps_its_own_arm_in_the_table() -> None:
    """Its AS had the arm that the frozen network keeps."""
    states = {("large", "*"): State("bbr", 0), ("large", FIRST): State("control", 0)}
    overrides = Overrides(frozen=("10.0.0.0/16",))
    in_table = arms_in_table(-0.1, overrides, PreviousArms.states(states))
    assert (in_table["10.0.0.0/16"], in_table[FIRST]) == ("bbr", "control")


def test_bounds_have_the_unit_of_their_limit() -> None:
    assert _bounds("at most +20.00 pp", 0.0329, 0.13) == "+3.29 to +13.0 pp"
    assert _bounds("at most 5 % worse", -0.37, 0.117).endswith("%")
