"""The total gain of the confirmed ASes by switchbacks, and its place on the page."""

import json
import math
from dataclasses import replace
from xml.etree import ElementTree

import ibis
import pytest

from learning import FIRST_DAY, NOW, SETTINGS
from test_learn_gain import steered
from uncork.learn import confirm, demo, evidence
from uncork.learn.confirm import CONFIRMED, REFUTED, Trial
from uncork.learn.page import page
from uncork.learn.store import Store
from uncork.learn.total import totals
from uncork.measure.reduce import to_arrow

FIRST, SECOND, THIRD = (f"AS{one.asn}" for one in demo.SYSTEMS[:3])
TRIALS = {
    ("large", FIRST): Trial(FIRST_DAY, CONFIRMED, FIRST_DAY + 14, 1.2, 1.1, 1.3),
    ("large", SECOND): Trial(FIRST_DAY, CONFIRMED, FIRST_DAY + 14, 1.4, 1.0, 2.0),
    ("large", THIRD): Trial(FIRST_DAY, REFUTED, FIRST_DAY + 14, 0.5, 0.4, 0.6),
    ("small", THIRD): Trial(FIRST_DAY),
    ("large", "AS1"): Trial(FIRST_DAY, CONFIRMED, FIRST_DAY + 14, 9.0, 8.0, 10.0),
}
"""The last one is of an AS without traffic of late."""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    store = Store(tmp_path_factory.mktemp("learned"))
    records = ibis.memtable(steered(demo.table(demo.SYSTEMS[:3], days=7, daily=60)))
    settings = replace(SETTINGS, as_of=FIRST_DAY + 7, confirm=0.5)
    store.plan(settings, evidence.collect(records, settings, to_arrow), NOW)
    store.apply(1, NOW)
    return store


def test_the_total_gain_is_the_mean_of_confirmed_ases_by_bytes(store: Store) -> None:
    networks = store.decisions(1).networks
    shares = {
        name: sum(one.share for one in networks if (one.section, one.parent) == ("large", name))
        for name in (FIRST, SECOND)
    }
    found = totals(TRIALS, networks)
    assert list(found) == ["large"]
    one, total = found["large"], sum(shares.values())
    assert (one.systems, one.share) == (2, pytest.approx(total))

    def mean(first: float, second: float) -> float:
        return math.exp((shares[FIRST] * math.log(first) + shares[SECOND] * math.log(second)) / total)

    assert one.ratio == pytest.approx(mean(1.2, 1.4))
    assert (one.low, one.high) == (pytest.approx(mean(1.1, 1.0)), pytest.approx(mean(1.3, 2.0)))


def test_the_page_claims_a_total_gain_only_where_a_switchback_found_it(store: Store) -> None:
    before = page(store)
    assert "where it shares bottlenecks with the table" in before
    assert "by switchbacks" not in before
    path = store.path(1) / "trials.json"
    path.write_text(json.dumps(confirm.document(TRIALS)), encoding="utf-8")
    html = page(store)
    ElementTree.fromstring(html.split("\n", 1)[1])
    assert "Total gain, by switchbacks: large objects of 2 ASes with" in html
