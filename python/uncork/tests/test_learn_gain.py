"""The gain of the table over the holdback."""

import math
from dataclasses import replace
from pathlib import Path

import ibis
import numpy as np
import pyarrow as pa
import pytest

from learning import FIRST_DAY, NOW, SETTINGS, check, decision
from uncork.learn import demo, evidence
from uncork.learn.gain import gains
from uncork.learn.settings import HOLDBACK, TABLE_RULE, UNIT_RULE
from uncork.learn.store import Store
from uncork.measure.bins import GAMMA
from uncork.measure.reduce import to_arrow

LIFT = 0.2


def steered(table: pa.Table, part: float = 0.7) -> pa.Table:
    """A part of the records as if not in the random share: the treated by the table, the others held back."""
    rng = np.random.default_rng(5)
    is_it = rng.random(table.num_rows) < part
    is_treated = np.array(table["arm"].to_pylist()) == SETTINGS.treated
    by_table, held = is_it & is_treated, is_it & ~is_treated
    changed = {
        "arm_experiment": np.where(by_table, None, np.where(held, HOLDBACK, SETTINGS.experiment)),
        "arm": np.where(by_table, None, table["arm"].to_pylist()),
        "choice_rule": np.where(by_table, TABLE_RULE + "large", None),
    }
    for name, values in changed.items():
        column = pa.array(values.tolist(), pa.string())
        at = table.column_names.index(name) if name in table.column_names else -1
        table = table.append_column(name, column) if at < 0 else table.set_column(at, name, column)
    # Only units of experiments have a bucket.
    bucket = pa.array(
        [None if one else at for one, at in zip(by_table, table["arm_bucket"].to_pylist(), strict=True)]
    )
    return table.set_column(table.column_names.index("arm_bucket"), "arm_bucket", bucket)


def test_what_the_table_decided_for_is_compared_with_the_holdback() -> None:
    system = demo.System(64_500, "PE", 5, LIFT)
    records = ibis.memtable(steered(demo.table((system,), days=10)))
    settings = replace(SETTINGS, as_of=FIRST_DAY + 10)
    found = gains(evidence.collect(records, settings, to_arrow), settings)
    assert list(found) == ["large", "small"]
    for course in found.values():
        assert [one.day for one in course] == [FIRST_DAY + day for day in range(10)]
        last = course[-1]
        assert last.low < LIFT < last.high
        assert last.high - last.low < 0.3
        # A week; the first days have less.
        assert course[0].holdback < course[6].holdback
        assert course[9].holdback == pytest.approx(course[6].holdback, rel=0.1)


def test_clients_without_the_unit_are_not_compared_with_the_holdback() -> None:
    """Half of the table's clients have no cookie, and are half as fast. The holdback has none of them."""
    table = steered(demo.table((demo.System(64_500, "PE", 5, LIFT),), days=10))
    rule, busy = table["choice_rule"].to_pylist(), np.array(table["busy_ns"])
    is_first = np.array([one is not None for one in rule]) & (np.arange(table.num_rows) % 2 == 0)
    names = [
        one if one is None or is_without else UNIT_RULE + "large"
        for one, is_without in zip(rule, is_first.tolist(), strict=True)
    ]
    for name, values in (("choice_rule", names), ("busy_ns", np.where(is_first, 2, 1) * busy)):
        table = table.set_column(table.column_names.index(name), name, pa.array(values))
    settings = replace(SETTINGS, as_of=FIRST_DAY + 10, unit="cookie:uid")
    last = gains(evidence.collect(ibis.memtable(table), settings, to_arrow), settings)["large"][-1]
    assert last.low < LIFT < last.high


def test_the_policy_names_clients_with_the_unit(tmp_path: Path) -> None:
    table = demo.table((demo.System(64_500, "PE", 5, LIFT),), days=7)
    settings = replace(SETTINGS, unit="cookie:uid", random=0.0)
    store = Store(tmp_path)
    store.plan(settings, evidence.collect(ibis.memtable(table), settings, to_arrow), NOW)
    policy = store.path(1) / "policy.toml"
    check(policy)
    names = {
        decision(policy, "198.18.0.9", *cookie, "--size", "5MB")["name"]
        for cookie in ([], ["--cookie", "other=1"], *(["--cookie", f"uid={at}"] for at in range(9)))
    }
    assert names - {None} == {"learned, large", "learned with unit, large"}


def test_a_holdback_without_a_host_is_of_no_place() -> None:
    """Some clients send no host, or make one up."""
    table = steered(demo.table((demo.System(64_500, "PE", 5, LIFT),), days=7))
    hosts = pa.array([(None, "no/host", "www.example", "www.example")[n % 4] for n in range(table.num_rows)])
    settings = replace(SETTINGS, place="host")
    counts = evidence.collect(ibis.memtable(table.append_column("service_host", hosts)), settings, to_arrow)
    assert list(gains(counts, settings)) == ["www.example/large", "www.example/small"]


def test_nothing_is_measured_without_a_holdback() -> None:
    table = demo.table(demo.SYSTEMS[:1], days=2)
    for records in (table, steered(table.slice(0, 60))):
        found = gains(evidence.collect(ibis.memtable(records), SETTINGS, to_arrow), SETTINGS)
        assert not found


def test_the_interval_covers() -> None:
    """Users come more or less often, in both groups; the table's records have no buckets."""
    rng = np.random.default_rng(7)
    inside = []
    for _ in range(200):
        one = gains(_records(_visits(rng, 400), _visits(rng, 1200)), SETTINGS)["large"][0]
        inside.append(one.low <= 0 <= one.high)
    assert np.mean(inside) > 0.91


Visits = tuple[np.ndarray, np.ndarray]


def _visits(rng: np.random.Generator, count: int) -> Visits:
    """The bucket and the bin of each."""
    often = rng.pareto(2, count) + 1
    user = rng.choice(count, size=count, p=often / often.sum())
    logs = 16 + rng.normal(0, 0.5, count)[user] - rng.exponential(0.5, count)
    return rng.integers(0, 100, count)[user], np.ceil(logs / math.log(GAMMA)).astype(np.int64)


def _records(holdback: Visits, table: Visits) -> pa.Table:
    rows = []
    for arm, (buckets, bins) in ((SETTINGS.control, holdback), (SETTINGS.treated, table)):
        is_held = arm == SETTINGS.control
        rows += [
            {
                "metric": evidence.OF_HOLDBACK,
                "class": "large",
                "place": "",
                "day": FIRST_DAY,
                "arm": arm,
                "bucket": bucket if is_held else None,
                "bin": at,
                "n": 1,
            }
            for bucket, at in zip(buckets.tolist(), bins.tolist(), strict=True)
        ]
    counts = pa.Table.from_pylist(rows)
    at = counts.column_names.index("place")
    return counts.set_column(at, "place", counts["place"].dictionary_encode())
