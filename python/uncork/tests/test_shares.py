"""Shares that differ between places or times, and arms one after the other: no trend becomes an effect."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from test_rollups import document, rolled, without_checks

FIRST_NS = 20_400 * 86_400 * 10**9
DAY_NS = 86_400 * 10**9
UNITS = 3_000
PER_UNIT = 2


def records(path: Path, share: np.ndarray, rate: np.ndarray, day: np.ndarray, seed: int = 1) -> str:
    """Records of `UNITS` clients: each is treated with the probability `share`, which is recorded, and has
    the same `rate` (bit/s) in either arm, on its `day`.
    """
    rng = np.random.default_rng(seed)
    treated = np.repeat(rng.random(UNITS) < share, PER_UNIT)
    unit = np.repeat(rng.integers(0, 2**62, UNITS), PER_UNIT)
    count, size = UNITS * PER_UNIT, 4_000_000
    noisy = np.repeat(rate * np.exp(rng.normal(0, 0.6, UNITS)), PER_UNIT) * np.exp(rng.normal(0, 0.3, count))
    shares = np.repeat(share, PER_UNIT)
    times = FIRST_NS + np.repeat(day, PER_UNIT) * DAY_NS + rng.integers(0, DAY_NS, count)
    arm = np.where(treated, "bbr", "cubic")
    columns = {
        "engine": ["serve"] * count,
        "service_scope": ["response"] * count,
        "service_client": np.where(unit % 2 == 0, "198.51.100.0/24", "203.0.113.0/24"),
        "service_listener": np.where(np.repeat(rate, PER_UNIT) > rate.mean(), "fast", "slow"),
        "service_start_unix_ns": times,
        "arm_experiment": ["e"] * count,
        "arm": arm,
        "arm_unit": unit,
        "arm_bucket": ((unit & 0xFFFFFFFF) * 100 >> 32).astype(np.int64),
        "arm_propensity": np.where(treated, shares, 1 - shares),
        "cc": arm,
        "size_bytes": np.full(count, size),
        "bytes_acked": np.full(count, size),
        "bytes_delivered": np.full(count, size),
        "bytes_sent": np.full(count, size),
        "bytes_retransmitted": rng.integers(0, size // 50, count),
        "busy_ns": (size * 8 / noisy * 1e9).astype(np.int64),
    }
    pq.write_table(pa.table(columns), path)
    return str(path)


def drawn(path: Path, world: str, seed: int = 1) -> str:
    """`places`: the fast place has a share of 70 %, the slow one of 20 %. `mirrored`: 70 and 30 %. `ramp`:
    from 10 to 50 % when all become faster. `apart`: the arms have a week each.
    """
    rng = np.random.default_rng(100 + seed)
    second, day = rng.random(UNITS) < 0.5, rng.integers(0, 7, UNITS)
    of_places = {"places": 0.2, "mirrored": 0.3}
    rate = np.where(second, 40e6, 10e6) if world in of_places else np.where(second, 28e6, 20e6)
    share = np.where(second, 0.5, 0.1) if world == "ramp" else None
    if world in of_places:
        share = np.where(second, 0.7, of_places[world])
        return records(path, share, rate, day, seed)
    day = day + 7 * second
    return records(path, second.astype(float) if share is None else share, rate, day, seed)


@pytest.mark.parametrize("world", ["places", "mirrored", "ramp"])
def test_analyze__shares_differ_and_no_effect__finds_none(world: str, tmp_path: Path) -> None:
    ratios = []
    for seed in range(3):
        found = document(tmp_path, drawn(tmp_path / f"{seed}.parquet", world, seed), "--by", "listener")
        assert not found["verdict"]["decision"].startswith("enable")
        primary = next(row for row in found["scorecard"] if row["role"] == "primary")
        ratios.append(primary["effect"]["ratio"])
        assert "inverse" in found["facts"]["weighting"]
        assert not (found["interference"] or {}).get("moved"), "the trend is not that of the share"
    assert 0.9 < np.exp(np.mean(np.log(ratios))) < 1.1, "plain sums: 1.15 of the ramp, 2 of the places"


def test_analyze__shares_differ__the_same_from_rollups(tmp_path: Path) -> None:
    source = drawn(tmp_path / "records.parquet", "ramp")
    rolled(Path(source), tmp_path / "rollups", "--period", "30min")
    of_records = document(tmp_path, source, "--by", "listener")
    assert without_checks(
        document(tmp_path, str(tmp_path / "rollups"), "--by", "listener")
    ) == without_checks(of_records)


def test_analyze__shares_differ_and_records_have_no_unit__finds_no_effect(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    table = pq.read_table(drawn(path, "mirrored")).drop_columns(["arm_unit"])
    pq.write_table(table, path)
    found = document(tmp_path, str(path), "--by", "listener")
    assert sum(cell["share"] for cell in found["cells"]) == pytest.approx(1.0)
    primary = next(row for row in found["scorecard"] if row["role"] == "primary")
    assert 0.85 < primary["effect"]["ratio"] < 1.15
    assert primary["control"] == pytest.approx(primary["treated"], rel=0.15)


def test_analyze__shares_differ_and_one_place_lacks_times__passes_the_check(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    table = pq.read_table(drawn(path, "places"))
    is_slow = np.array(table["service_listener"]) == "slow"
    lacks = is_slow & (np.random.default_rng(5).random(len(table)) < 0.1)
    busy = pa.array(np.array(table["busy_ns"]), mask=lacks)
    table = table.set_column(table.column_names.index("busy_ns"), "busy_ns", busy)
    # A few records have no propensity: they count nothing.
    few = np.flatnonzero(lacks & (np.array(table["arm"]) == "bbr"))[:10]
    share = pa.array(np.array(table["arm_propensity"]), mask=np.isin(np.arange(len(table)), few))
    table = table.set_column(table.column_names.index("arm_propensity"), "arm_propensity", share)
    pq.write_table(table, path)
    found = document(tmp_path, str(path), "--by", "listener")
    (measured,) = [one for one in found["health"] if one["name"] == "measured records"]
    assert measured["severity"] == "ok", measured


def test_analyze__both_arms_grow_alike__records_count_as_they_are(tmp_path: Path) -> None:
    day = np.arange(UNITS) % 14
    table = pq.read_table(records(tmp_path / "a.parquet", np.full(UNITS, 0.5), np.full(UNITS, 2e7), day))
    grown = np.where(np.repeat(day, PER_UNIT) < 7, 0.01, 0.5)
    at = table.column_names.index("arm_propensity")
    pq.write_table(table.set_column(at, "arm_propensity", pa.array(grown)), tmp_path / "a.parquet")
    found = document(tmp_path, str(tmp_path / "a.parquet"))
    assert "inverse" not in found["facts"]["weighting"]
    assert found["verdict"]["decision"] != "blocked"


def test_analyze__arms_one_after_the_other__have_no_verdict(tmp_path: Path) -> None:
    table = pq.read_table(drawn(tmp_path / "records.parquet", "apart")).drop_columns(
        ["arm_propensity", "service_listener"]
    )
    pq.write_table(table, tmp_path / "records.parquet")
    found = document(tmp_path, str(tmp_path / "records.parquet"))
    assert found["verdict"]["decision"] == "blocked"
    assert "cubic and bbr ran at different times" in found["verdict"]["sentence"]


def returning(path: Path, first: float, second: float, salts: int = 1) -> str:
    """Clients that come on two days, with a share on each, by a hash with one salt, or one for each day."""
    rng = np.random.default_rng(7)
    draws = [rng.random(UNITS) for _ in range(salts)]
    parts = []
    for day, share in enumerate((first, second)):
        part = path.with_name(f"{day}.parquet")
        records(part, np.full(UNITS, share), np.full(UNITS, 20e6), np.full(UNITS, day))
        table = pq.read_table(part)
        treated = np.repeat(draws[day % salts] < share, PER_UNIT)
        arm = pa.array(np.where(treated, "bbr", "cubic"))
        propensity = pa.array(np.where(treated, share, 1 - share))
        for name, values in (("arm", arm), ("cc", arm), ("arm_propensity", propensity)):
            table = table.set_column(table.column_names.index(name), name, values)
        parts.append(table)
    pq.write_table(pa.concat_tables(parts), path)
    return str(path)


def one_arm(tmp_path: Path, *words: str) -> dict[str, Any]:
    health = document(tmp_path, *words)["health"]
    return next(check for check in health if check["name"] == "one arm per unit")


def test_analyze__share_raised_and_clients_return__names_the_time_and_the_remedy(tmp_path: Path) -> None:
    source = returning(tmp_path / "records.parquet", 0.1, 0.5)
    found = one_arm(tmp_path, source)
    assert found["severity"] == "blocks"
    assert "the share of bbr changed from 10.0% to 50.0% at 2025-11-09 00:00:" in found["sentence"]
    since = found["remedy"].removeprefix("Analyse the last share alone: --since ").rstrip(".")
    assert one_arm(tmp_path, source, "--since", since)["severity"] == "ok"
    rolled(Path(source), tmp_path / "rollups")
    assert one_arm(tmp_path, str(tmp_path / "rollups")) == found


def test_analyze__salt_changed__no_time_is_named(tmp_path: Path) -> None:
    """Where shares stay equal, records do not show when arms changed."""
    source = returning(tmp_path / "records.parquet", 0.5, 0.5, salts=2)
    found = one_arm(tmp_path, source)
    assert "change weights, key or salt" in str(found["remedy"])


def test_analyze__share_raised_to_all__no_since_is_named(tmp_path: Path) -> None:
    """After it there is one arm."""
    found = one_arm(tmp_path, returning(tmp_path / "records.parquet", 0.5, 1.0))
    assert "--since" not in found["remedy"]


def test_analyze__three_arms_with_shares_by_place__states_the_share_of_all_clients(tmp_path: Path) -> None:
    source = tmp_path / "records.parquet"
    fast = np.random.default_rng(3).random(UNITS) < 0.5
    records(source, np.where(fast, 0.2, 0.4), np.where(fast, 40e6, 10e6), np.zeros(UNITS))
    table = pq.read_table(source)
    # Of the clients without bbr a fourth has a third arm.
    third = np.asarray(table["arm"]) == "cubic"
    third &= np.asarray(table["arm_unit"]) % 4 == 0
    arm = pa.array(np.where(third, "bbr3", np.asarray(table["arm"])))
    for name in ("arm", "cc"):
        table = table.set_column(table.column_names.index(name), name, arm)
    part = np.where(np.asarray(arm) == "cubic", 0.75, np.where(third, 0.25, 1.0))
    propensity = pa.array(np.asarray(table["arm_propensity"]) * part)
    pq.write_table(
        table.set_column(table.column_names.index("arm_propensity"), "arm_propensity", propensity), source
    )
    found = document(tmp_path, str(source), "--treated", "bbr")
    assert found["facts"]["share"] == pytest.approx(0.3, abs=0.02), "the mean over bbr and cubic is 0.41"
