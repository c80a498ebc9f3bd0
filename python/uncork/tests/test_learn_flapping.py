"""Daily plans in a world with a known truth: what is on and gains stays on."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "bench"))

from drawn_worlds import FIRST_DAY, REVIEW, Records, draw

from learn_worlds import SETTINGS
from uncork.learn.decide import decide
from uncork.learn.entries import PreviousArms, View
from uncork.learn.guardrails import Guardrails
from uncork.learn.lift import lifts
from uncork.learn.settings import Overrides


def test_a_network_that_gains_is_not_switched_off_by_the_budget_of_harm() -> None:
    """2,000 networks, 25,000 random records a day, ten days. When the budget also switched off, networks that
    gain were off again for 123 network-days in this world.
    """
    drawn = draw(REVIEW, seed=1, days=10)
    records, before = Records(drawn, 25_000, seed=1), PreviousArms({})
    was_on, gained = np.zeros((2, REVIEW.networks), dtype=np.bool_)
    off = 0
    for day in range(10):
        records.day(day)
        settings = replace(SETTINGS, as_of=FIRST_DAY + day + 1, changed=0.2)
        section = records.section()
        known = lifts(section, settings)
        assert known is not None
        view = View(section, known, Guardrails({}, {}))
        found = decide([view], settings, Overrides(), before, settings.changed)
        before = PreviousArms.from_decisions(found)
        is_on = found.arm[found.level == "network"] == "bbr"
        gains = drawn.lift_on(day) > 0.02
        off += int((was_on & ~is_on & gains).sum())
        was_on |= is_on
        gained |= is_on & gains
    print(f"{gained.sum()} networks that gain were on; off again for {off} network-days")
    assert gained.sum() > 100
    assert off == 0
