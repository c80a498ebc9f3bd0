"""Sample-ratio mismatch in `uncork learn`: lost records are detected, complete ones are not a mismatch."""

from dataclasses import replace
from pathlib import Path

import ibis
import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

import learning
from learning import FIRST_DAY, NOW
from populations import within
from uncork.learn import demo, evidence, metrics
from uncork.learn.cli import main
from uncork.learn.decide import MISMATCH
from uncork.learn.explain import explain
from uncork.learn.sample_ratio import TOGETHER, ratios
from uncork.learn.settings import Settings
from uncork.learn.store import Store
from uncork.measure.reduce import to_arrow
from uncork.measure.stats.effect import Effect
from uncork.measure.stats.jackknife import ratio_effect
from uncork.measure.stats.srm import sample_ratio, watched_ratio

SETTINGS = replace(learning.SETTINGS, changed=1.0)
Counts = NDArray[np.int64]


def visits(
    rng: np.random.Generator, clients: int, days: int, lost: float = 0.0, more: float = 0.0
) -> tuple[Counts, Counts]:
    """Client-days by arm, day and bucket, and downloads by arm and day. A client in five comes on a day, some
    far more often, and has one or two downloads. Of the treated arm's downloads some are lost, or there are
    more.
    """
    arm, bucket = rng.integers(0, 2, clients), rng.integers(0, 100, clients)
    often = np.minimum(0.2 * np.exp(rng.normal(-0.5, 1.0, clients)), 1)
    is_there = rng.random((clients, days)) < often[:, None]
    extra = rng.poisson(0.5 * np.where(arm == 1, 1 + more, 1)[:, None], (clients, days))
    kept = rng.binomial(np.where(is_there, 1 + extra, 0), np.where(arm == 1, 1 - lost, 1)[:, None])
    seen, downloads = np.zeros((2, days, 100), dtype=np.int64), np.zeros((2, days), dtype=np.int64)
    client, day = np.nonzero(kept)
    np.add.at(seen, (arm[client], day, bucket[client]), 1)
    np.add.at(downloads, (arm[client], day), kept[client, day])
    return seen, downloads


def units(
    seen: Counts, place: str = "", propensities: tuple[int, int] = (5000, 5000), network: str = ""
) -> pa.Table:
    """The evidence of these client-days."""
    arm, day, bucket = np.nonzero(seen)
    count = len(arm)
    columns = {name: pa.nulls(count, kind) for name, kind in evidence.COLUMNS.items()}
    columns |= {
        "metric": pa.array([evidence.UNITS] * count).dictionary_encode(),
        "class": pa.array(["large"] * count).dictionary_encode(),
        "place": pa.array([place] * count).dictionary_encode(),
        "client": pa.array([network or None] * count, pa.string()).dictionary_encode(),
        "asn": pa.array([64_500 + len(network) if network else None] * count, pa.int64()),
        "propensity": pa.array(np.array(propensities)[arm], pa.int32()),
        "day": pa.array(FIRST_DAY + day, pa.int32()),
        "arm": pa.array(np.array(["control", "bbr"])[arm]).dictionary_encode(),
        "bucket": pa.array(bucket, pa.int32()),
        "n": pa.array(seen[arm, day, bucket]),
    }
    return pa.table(columns)


def after(days: int) -> Settings:
    return replace(SETTINGS, as_of=FIRST_DAY + days)


def found_on(seen: Counts) -> int | None:
    """The day of the first plan that finds a mismatch."""
    for days in range(1, seen.shape[1] + 1):
        one = ratios(units(seen[:, :days]), after(days), ["large"]).get("large")
        if one is not None and one.is_mismatch:
            return days
    return None


def test_arms_as_dealt_are_no_mismatch_in_a_month_of_plans() -> None:
    """In 50 worlds with clients that differ much. A chi-square test of downloads, at p < 0.001, finds one in
    half of them, because downloads of a client come together.
    """
    alarms, of_downloads = 0, 0
    for seed in range(50):
        seen, downloads = visits(np.random.default_rng(seed), 3000, 30)
        alarms += found_on(seen) is not None
        sums = np.cumsum(downloads, axis=1).T
        of_downloads += any(sample_ratio(row, [0.5, 0.5]).blocks for row in sums)
    print(f"of 50 worlds: {alarms} mismatches; by downloads {of_downloads}")
    assert alarms == 0
    assert of_downloads > 15


def test_the_error_of_the_ratio_is_that_of_clients() -> None:
    """By a single look at a week: one of twenty is beyond the 95 % interval."""
    rng, beyond = np.random.default_rng(1), []
    for _ in range(400):
        seen, _ = visits(rng, 3000, 7)
        effect = ratio_effect(seen[0].sum(axis=0), np.ones(100), seen[1].sum(axis=0), np.ones(100))
        assert isinstance(effect, Effect)
        beyond.append(effect.p_value < 0.05)
    assert within(float(np.mean(beyond)), 400, 0.045, 0.06)


def test_a_tenth_that_is_lost_is_found_within_days() -> None:
    """With 4,000 clients a day in each arm of the random share, of 20,000."""
    found = [found_on(visits(np.random.default_rng(seed), 40_000, 14, lost=0.1)[0]) for seed in range(10)]
    print(f"found on day {found}")
    assert sum(day is not None for day in found) >= 5
    larger = [found_on(visits(np.random.default_rng(seed), 80_000, 7, lost=0.1)[0]) for seed in range(10)]
    print(f"with twice as many: on day {larger}")
    assert all(day is not None for day in larger)


def test_more_downloads_with_a_better_controller_are_no_mismatch() -> None:
    for seed in range(5):
        seen, downloads = visits(np.random.default_rng(seed), 40_000, 14, more=0.5)
        assert found_on(seen) is None
        assert sample_ratio(downloads.sum(axis=1), [0.5, 0.5]).blocks


def test_shares_that_change_are_no_mismatch() -> None:
    """Nine clients of control for one of the treated arm, and later one for nine."""
    rng = np.random.default_rng(2)
    seen, _ = visits(rng, 80_000, 6)
    first, second = rng.binomial(seen[:, :3], [[[0.9]], [[0.1]]]), rng.binomial(seen, [[[0.1]], [[0.9]]])
    second[:, :3] = 0
    both = pa.concat_tables([units(first, "", (9000, 1000)), units(second, "", (1000, 9000))])
    one = ratios(both, after(6), ["large"])["large"]
    assert abs(one.ratio - 1) < 0.05
    assert not one.is_mismatch


def test_a_loss_too_small_to_be_seen_in_each_place_is_seen_in_all() -> None:
    rng = np.random.default_rng(3)
    lost = {f"pop{at}": visits(rng, 10_000, 3, lost=0.1)[0] for at in range(12)}
    table = pa.concat_tables([units(seen, place) for place, seen in lost.items()]).unify_dictionaries()
    names = [f"{place}/large" for place in lost]
    alone = {name: ratios(table, after(3), [name])[name] for name in names}
    assert sum(one.is_mismatch for one in alone.values()) < 2
    together = ratios(table, after(3), names)
    assert all(one.is_mismatch for one in together.values())
    assert {one.of for one in together.values()} >= {TOGETHER}


def of_networks(lost: float, made_up: int) -> pa.Table:
    """Forty networks of 1,000 clients; in one more, made-up cookies of one arm."""
    rng = np.random.default_rng(4)
    some = [units(visits(rng, 1_000, 7, lost)[0], network=f"198.51.{at}.0/24") for at in range(40)]
    attack = np.zeros((2, 7, 100), dtype=np.int64)
    np.add.at(attack[1], (rng.integers(0, 7, made_up), rng.integers(0, 100, made_up)), 1)
    return pa.concat_tables([*some, units(attack, network="203.0.113.0/24")]).unify_dictionaries()


def test_made_up_cookies_of_one_network_stop_no_other() -> None:
    for made_up in (500, 2000, 20_000):
        one = ratios(of_networks(0.0, made_up), after(7), ["large"])["large"]
        assert not one.is_mismatch
        assert one.left_out == ("203.0.113.0/24",)
    lost = ratios(of_networks(0.2, 2000), after(7), ["large"])["large"]
    assert lost.is_mismatch, "what is lost everywhere is found all the same"
    assert lost.ratio < 0.9


def test_too_few_buckets_say_nothing() -> None:
    assert watched_ratio(np.r_[np.ones(19), np.zeros(81)], np.ones(100)) is None
    seen = np.zeros((2, 1, 100), dtype=np.int64)
    seen[:, :, :19] = 5
    assert ratios(units(seen), after(1), ["large"]) == {}
    assert ratios(units(seen).slice(0, 0), after(1), ["large"]) == {}


SYSTEMS = tuple(replace(one, networks=2, retransmits=0.0) for one in demo.SYSTEMS)


def records(days: int, lost: float, of_class: str = "") -> pa.Table:
    """With 1,250 clients of each arm in each network, who return; of some of bbr's no record arrives."""
    table = demo.table(SYSTEMS, days=days, daily=1500)
    rng = np.random.default_rng(9)
    arm, client = np.array(table["arm"]) == "bbr", np.array(table["service_client"])
    names, at = np.unique(client, return_inverse=True)
    number = rng.integers(0, 1250, table.num_rows)
    unit = (at * 2 + arm) * 1250 + number
    bucket = np.random.default_rng(8).integers(0, 100, len(names) * 2500)
    is_lost = arm & (np.random.default_rng(7).random(len(names) * 2500)[unit] < lost)
    if of_class:
        is_lost &= (np.array(table["size_bytes"]) >= 3_000_000) == (of_class == "large")
    for name, values in (("arm_unit", unit.astype(np.uint64)), ("arm_bucket", bucket[unit])):
        table = table.set_column(table.column_names.index(name), name, pa.array(values))
    return table.filter(pa.array(~is_lost))


def planned(store: Store, table: pa.Table, settings: Settings) -> int:
    number, _ = store.plan(settings, evidence.collect(ibis.memtable(table), settings, to_arrow), NOW)
    store.apply(number, NOW)
    return number


def on(store: Store, number: int, section: str = "large") -> set[str]:
    rows = store.decisions(number)
    return {one.key for one in rows if one.section == section and one.arm == "bbr"}


def test_nothing_is_switched_on_by_arms_that_are_not_as_dealt(tmp_path: Path) -> None:
    """A tenth of bbr's clients is lost from the second plan on. What is on stays; the other class of objects
    is decided as ever.
    """
    store = Store(tmp_path)
    first, second = after(5), replace(after(6), worth=0.001)
    planned(store, records(5, lost=0.0), replace(first, harmed=0.001))
    planned(store, records(6, lost=0.1, of_class="large"), replace(second, harmed=0.05))
    before, now = on(store, 1), on(store, 2)
    assert before
    assert now == before, "fewer may be harmed by the first plan, so the second would switch more on"
    waits = [one for one in store.decisions(2) if one.reason == MISMATCH]
    assert waits
    assert {one.section for one in waits} == {"large"}
    assert store.ratios(2)["large"].ratio == pytest.approx(0.9, abs=0.03)
    assert store.mismatches(2).keys() == {"large"}
    assert "Sample-ratio mismatch in large: " in store.text(2, "changes.txt")
    assert on(store, 2, "small") > on(store, 1, "small")
    assert "uncork_learn_sample_ratio_mismatches 1\n" in metrics.text(store, {}, None, 3600, 1)
    address = next(one.key for one in waits if one.level == "network").replace(".0/24", ".7")
    printed = explain(store, address, None, None)
    assert "  ratio    sample-ratio mismatch: " in printed
    assert "  changes  by a guardrail alone until the sample ratio is as dealt; then on at" in printed
    assert main(["verify", str(tmp_path)]) == 0
