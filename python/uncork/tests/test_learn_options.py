"""Options of plans that are out of their range: an error names them before records are read."""

import argparse

import pytest

from learning import KEY
from uncork.experiment.cli import main as experiment
from uncork.learn.defaults import DEFAULTS
from uncork.learn.proposal import settings_of
from uncork.measure.errors import InputError


def options(**given: object) -> argparse.Namespace:
    return argparse.Namespace(**{**DEFAULTS, "networks": None, **given})


@pytest.mark.parametrize(
    ("given", "place"),
    [
        ({"half_life": 0.0}, "--half-life"),
        ({"half_life": -1.0}, "--half-life"),
        ({"half_life": float("nan")}, "--half-life"),
        ({"half_life": float("inf")}, "--half-life"),
        ({"ttl": 0}, "--ttl"),
        ({"ttl": 10**9}, "--ttl"),
        ({"dwell": -3}, "--dwell"),
        ({"sure": "100%"}, "--sure 100%"),
        ({"tolerate": "100%"}, "--tolerate 100%"),
        ({"random": "99%"}, "--holdback 1%"),
    ],
)
def test_plan__an_option_out_of_its_range__is_named(given: dict[str, object], place: str) -> None:
    with pytest.raises(InputError, match=place):
        settings_of(options(**given), 20_000, KEY)


def test_plan__options_at_the_end_of_their_range__are_taken() -> None:
    found = settings_of(options(half_life=0.5, ttl=1, dwell=0, random="98%"), 20_000, KEY)
    assert (found.half_life, found.ttl, found.dwell, found.random) == (0.5, 1, 0, 0.98)


def test_design__no_look__is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert experiment(["design", "--looks", "0"]) == 2
    assert "--looks" in capsys.readouterr().err
