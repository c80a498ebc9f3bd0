"""A twin's predictions held to measurements, where the truth is drawn."""

import json
import math
import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pyarrow as pa
import pytest

from pages import WIDTHS, assert_fits
from uncork_experiment.errors import InputError
from uncork_experiment.learn.lift import Estimate
from uncork_experiment.learn.twin import Trial, calibrate, page, predicted


def drawn(
    systems: int, slope: float, noise: float, seed: int = 1
) -> tuple[dict[str, Estimate], dict[str, Estimate], dict[str, float]]:
    """Predictions, measurements and truths of ASes: truth = 0.02 + slope * prediction + noise."""
    rng = np.random.default_rng(seed)
    of_twin, of_records, truth = {}, {}, {}
    for at in range(systems):
        name, prediction = f"AS{64_512 + at}", float(rng.normal(0.2, 0.3))
        true = 0.02 + slope * prediction + float(rng.normal(0, noise))
        of_twin[name] = Estimate(prediction, 0.02)
        of_records[name] = Estimate(true + float(rng.normal(0, 0.05)), 0.05)
        truth[name] = true
    return of_twin, of_records, truth


def test_a_twin_that_predicts_earns_its_prior() -> None:
    of_twin, of_records, _ = drawn(20, slope=0.8, noise=0.05)
    fit = calibrate(of_twin, of_records)
    assert fit.earned
    assert fit.skill > 0.8
    assert fit.rank_low > 0.7
    assert abs(fit.slope - 0.8) < 3 * fit.slope_error < 0.3


@pytest.mark.parametrize(
    ("systems", "slope", "noise"), [(20, 0.0, 0.2), (20, -0.8, 0.05), (7, 0.8, 0.02), (20, 0.3, 0.4)]
)
def test_a_twin_that_does_not_predict_earns_nothing(systems: int, slope: float, noise: float) -> None:
    """Unrelated, misleading, too few ASes, and hardly related."""
    of_twin, of_records, _ = drawn(systems, slope, noise)
    assert calibrate(of_twin, of_records).earned is False, "JSON has it, too"


def test_unrelated_twins_earn_nothing_by_chance() -> None:
    """At most 1 of 100."""
    earned = [calibrate(*drawn(12, 0.0, 0.2, seed)[:2]).earned for seed in range(100)]
    assert sum(earned) <= 1


def test_the_prior_covers_the_truth() -> None:
    """ASes that the line was not fitted to lie around it as far as it says."""
    scores = []
    for seed in range(40):
        of_twin, of_records, truth = drawn(24, 0.8, 0.1, seed)
        names = sorted(of_twin)
        fit = calibrate(of_twin, {name: of_records[name] for name in names[:16]})
        for name in names[16:]:
            expected = fit.prior(of_twin[name])
            scores.append((truth[name] - expected.lift) / expected.error)
    assert 0.9 < np.std(scores) < 1.25


def flows(systems: int, clients: int, gain: float = 1.3) -> pa.Table:
    """A twin's runs of twenty: pairs of clients with the same path."""
    rng = np.random.default_rng(1)
    rows = []
    for at in range(systems):
        for client in range(clients):
            rate = 2e7 * math.exp(rng.normal(0, 0.4))
            for nth, (cc, factor) in enumerate((("cubic", 1.0), ("bbr3", gain), ("bbr3:loss_floor", 1.1))):
                rows.append(
                    {
                        "group": f"as{64_512 + at}",
                        "cc": cc,
                        "seed": 1 + client // 20,
                        "flow": 3 * (client % 20) + nth,
                        "bytes_acked": 5_000_000,
                        "busy_ns": int(5e6 * 8e9 / (rate * factor)),
                        "completion_ns": 1,
                    }
                )
    return pa.Table.from_pylist(rows)


def test_pairs_of_clients_predict() -> None:
    found = predicted(flows(2, 60), "cubic", "bbr3")
    assert sorted(found) == ["AS64512", "AS64513"]
    one = found["AS64512"]
    assert one.lift == pytest.approx(math.log(1.3), abs=1e-6)
    assert one.error < 1e-6, "the same clients have both, so their spread cancels"


def test_too_few_clients_are_refused() -> None:
    with pytest.raises(InputError, match="--clients 40"):
        predicted(flows(1, 30), "cubic", "bbr3")
    of_twin, of_records, _ = drawn(2, 1.0, 0.1)
    with pytest.raises(InputError, match="2 ASes"):
        calibrate(of_twin, of_records)


def trial(slope: float) -> Trial:
    of_twin, of_records, _ = drawn(14, slope, 0.05)
    known = {name: of_records[name] for name in sorted(of_records)[:12]}
    others = {name: Estimate(one.lift / 2, 0.03) for name, one in of_twin.items()}
    fit = calibrate(of_twin, known)
    return Trial("cubic", "bbr3", fit, {"bbr3": of_twin, "bbr3:loss_floor": others})


def test_the_prior_is_of_other_systems_and_only_if_earned() -> None:
    found = json.loads(trial(0.8).prior())
    assert found["earned"]
    assert sorted(found["systems"]) == ["AS64524", "AS64525"]
    assert 0.03 < found["systems"]["AS64524"]["sd"] < 0.2
    assert json.loads(trial(0.0).prior())["systems"] == {}


def test_the_page_shows_predicted_beside_measured() -> None:
    text = page(trial(0.8))
    ElementTree.fromstring(text.split("\n", 1)[1])
    assert not re.search(r"\b(nan|inf|None)\b", re.sub(r"<style>.*?</style>", "", text, flags=re.S))
    for words in ("may stand for", "AS64512", "bbr3:loss_floor", "ASes without data", "rank correlation"):
        assert words in text, words
    assert "may not stand for" in page(trial(0.0))


@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_leaves_the_page(width: int, tmp_path: Path) -> None:
    assert_fits(page(trial(0.8)), width, tmp_path)
