"""Lines that an import lost are a finding, by their share and by arm."""

from collections import Counter

import pytest

from uncork.experiment.health.lost import lost_lines, unread_fields
from uncork.measure.sources.losses import Losses


@pytest.mark.parametrize(
    ("lost", "severity"),
    [
        ({}, "ok"),
        ({"": 5}, "ok"),
        ({"": 30}, "warning"),
        ({"": 300}, "blocks"),
        ({"bbr": 15}, "blocks"),
        ({"bbr": 6}, "ok"),
        ({"bbr": 30, "cubic": 30}, "warning"),
    ],
)
def test_lost_lines__by_share_and_by_arm(lost: dict[str, int], severity: str) -> None:
    losses = Losses(Counter(bbr=1000, cubic=1000), Counter(lost))
    assert lost_lines(losses, ("cubic", "bbr")).severity == severity


def test_unread_fields__are_a_warning_that_names_them() -> None:
    (found,) = unread_fields(Losses(unseen=("req_time",)))
    assert (found.severity, "req_time" in found.sentence) == ("warning", True)
    assert unread_fields(Losses()) == ()
