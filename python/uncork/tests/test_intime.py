"""Switchback, paired links and steps of the share, from records and calendar to the row that is labelled."""

import json
import re
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from uncork.experiment import schedules
from uncork.experiment.cli import main
from uncork.experiment.intime import read_calendar
from uncork.experiment.schedules import Calendar
from uncork.measure.errors import InputError

SINCE = 1_780_272_000
WEIGHT = 2.0


def records(
    calendar: Calendar, rng: np.random.Generator, gain: float, users: int, carried: float = 0.0
) -> pa.Table:
    """Full links that divide their capacity by weights, or (with a gain) lines of one's own.

    For `carried` seconds after a switch the gain is that of the span before.
    """
    rows: dict[str, list[object]] = {
        name: []
        for name in (
            "arm",
            "arm_unit",
            "arm_bucket",
            "arm_propensity",
            "service_start_unix_ns",
            "service_listener",
            "busy_ns",
            "cc",
        )
    }
    size = 5_000_000
    for number, span in enumerate(calendar.spans):
        before = calendar.spans[max(number - 1, 0)].treated
        hour = span.since / 3600 % 24
        count = int(users * (1 + 0.4 * np.sin(hour / 24 * 6.28)))
        treated = rng.random(count) < span.treated
        parts = np.exp(rng.normal(0, 0.4, count)) * (1.0 if gain else np.where(treated, WEIGHT, 1.0))
        units = rng.integers(0, 4000, count)
        since = rng.uniform(0, span.until - span.since, count)
        gains = np.where(since < carried, before, treated)
        rate = parts * 1e7 * (1 + gain * gains) if gain else parts / parts.sum() * users * 1e7
        rows["arm"] += np.where(treated, "bbr", "control").tolist()
        rows["cc"] += np.where(treated, "bbr", "cubic").tolist()
        rows["arm_unit"] += (units + 1).tolist()
        rows["arm_bucket"] += (units % 100).tolist()
        rows["arm_propensity"] += np.where(treated, span.treated, 1 - span.treated).tolist()
        rows["service_start_unix_ns"] += ((span.since + since) * 1e9).astype(np.int64).tolist()
        rows["service_listener"] += [span.place] * count
        rows["busy_ns"] += (size * 8e9 / rate).astype(np.int64).tolist()
    count = len(rows["arm"])
    return (
        pa.table(rows)
        .append_column("size_bytes", pa.array([size] * count))
        .append_column("bytes_acked", pa.array([size] * count))
        .append_column("engine", pa.array(["serve"] * count))
        .append_column("service_scope", pa.array(["response"] * count))
        .append_column("arm_experiment", pa.array(["e"] * count))
    )


def analysed(
    calendar: Calendar, gain: float, tmp_path: Path, users: int = 60, carried: float = 0.0
) -> dict[str, object]:
    table = records(calendar, np.random.default_rng(1), gain, users, carried)
    pq.write_table(table, tmp_path / "records.parquet")
    (tmp_path / "schedule.csv").write_text(schedules.to_csv(calendar))
    command = ["analyze", str(tmp_path / "records.parquet"), "--calendar", str(tmp_path / "schedule.csv")]
    assert main([*command, "-o", str(tmp_path / "out")]) == 0
    found: dict[str, object] = json.loads((tmp_path / "out/result.json").read_text())
    return found


def primary(document: dict[str, object]) -> dict[str, object]:
    scorecard = document["scorecard"]
    assert isinstance(scorecard, list)
    found: dict[str, object] = next(row for row in scorecard if row["role"] == "primary")
    return found


def designed(document: dict[str, object]) -> dict[str, dict[str, float]]:
    return {one["estimand"]: one["effect"] for one in document["designed"] if one["effect"]}  # type: ignore[attr-defined]


@pytest.mark.parametrize(("gain", "truth"), [(0.0, 1.0), (0.15, 1.15)])
def test_switchback_estimates_the_total_effect(gain: float, truth: float, tmp_path: Path) -> None:
    calendar = schedules.switchback(["lima"], SINCE, block=4 * 3600, periods=2, seed=1)
    document = analysed(calendar, gain, tmp_path)
    effect = primary(document)["effect"]
    assert isinstance(effect, dict)
    assert effect["estimand"] == "total effect"
    assert effect["ratio_low"] < truth < effect["ratio_high"]
    assert effect["ratio_high"] / effect["ratio_low"] < 1.2
    assert document["cells"] == []
    page = (tmp_path / "out/report.html").read_text()
    assert 'id="trace"' in page
    assert "by switchback" in page


@pytest.mark.parametrize("carried", [0.0, 5400.0])
def test_carry_over_beyond_the_burn_in_is_found(carried: float, tmp_path: Path) -> None:
    calendar = schedules.switchback(["lima"], SINCE, block=4 * 3600, periods=2, seed=1)
    document = analysed(calendar, 0.3, tmp_path, users=300, carried=carried)
    found = {name: effect for name, effect in designed(document).items() if name.startswith("carry-over")}
    assert bool(found) == (carried > 0)
    for effect in found.values():
        assert effect["ratio"] > 1.05, "the first half has too little of the gain"


def test_paired_links_show_what_the_ab_difference_hides(tmp_path: Path) -> None:
    calendar = schedules.paired_links(("a", "b"), SINCE, periods=16, seed=1)
    document = analysed(calendar, 0.0, tmp_path, users=500)
    found = designed(document)
    assert found["A/B at share 5 %"]["ratio"] == pytest.approx(WEIGHT, rel=0.15)
    assert found["total effect"]["ratio_low"] < 1.0 < found["total effect"]["ratio_high"]
    assert found["spill-over"]["ratio"] < 0.7
    row = primary(document)
    assert row["effect"]["estimand"] == "total effect"  # type: ignore[index]
    assert row["verdict"] == "inconclusive", "no client gains"
    assert not str(document["verdict"]["sentence"]).startswith("Enable")  # type: ignore[index]


def test_steps_of_the_share_show_the_spill_over(tmp_path: Path) -> None:
    places = [f"pop-{n}" for n in range(8)]
    document = analysed(schedules.steps(places, SINCE, seed=1), 0.0, tmp_path, users=200)
    found = designed(document)
    assert found["spill-over"]["ratio_high"] < 0.8
    assert primary(document)["effect"]["estimand"] == "A/B at shares 5 %, 50 % and 95 %"  # type: ignore[index]


def test_calendar_is_read_back(tmp_path: Path) -> None:
    calendar = schedules.paired_links(("a", "b"), SINCE, periods=2, seed=1)
    (tmp_path / "c.csv").write_text(schedules.to_csv(calendar))
    found = read_calendar(tmp_path / "c.csv")
    assert (found.kind, found.burn_in, found.spans) == (calendar.kind, calendar.burn_in, calendar.spans)


def of_shares(path: Path, places: str, shares: str) -> str:
    """The design of a calendar with days in which the places have these twentieths of treated traffic."""
    lines = ["since,until,place,treated,pair,counts_from"]
    for day, of_day in enumerate(shares.split()):
        for place, share in zip(places, of_day.split("/"), strict=True):
            times = [f"2026-11-{day + at:02d}T{hour}:00Z" for at, hour in ((1, "00"), (2, "00"), (1, "01"))]
            lines.append(f"{times[0]},{times[1]},{place},{int(share) / 20},{day // 2},{times[2]}")
    path.write_text("\n".join(lines) + "\n")
    return read_calendar(path).kind


def test_two_shares_are_paired_links_only_where_two_places_exchange_them(tmp_path: Path) -> None:
    path = tmp_path / "c.csv"
    assert of_shares(path, "ab", "1/19 19/1 19/1 1/19") == "paired links"
    assert of_shares(path, "ab", "1/19 1/19") == "steps of the share"
    assert of_shares(path, "abc", "1/19/1 19/1/19") == "steps of the share"
    assert of_shares(path, "a", "1 19 1 19") == "steps of the share"


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("2026-11-02T01:00Z", "2026-11-02T02:00Z", "line 3: another length or burn-in"),
        ("2026-11-02T00:00Z,2026-11-03T00:00Z", "2026-11-02T06:00Z,2026-11-03T06:00Z", "line 3: "),
        ("2026-11-02T00:00Z,2026-11-03T00:00Z", "2026-10-02T00:00Z,2026-10-03T00:00Z", "line 3: "),
    ],
)
def test_a_calendar_off_its_grid_has_the_line(old: str, new: str, problem: str, tmp_path: Path) -> None:
    """Spans are found by the time since the first one."""
    path = tmp_path / "c.csv"
    of_shares(path, "a", "1 19")
    first, second = path.read_text().rsplit("\n", 2)[:2]
    path.write_text(f"{first}\n{second.replace(old, new)}\n")
    with pytest.raises(InputError, match=problem):
        read_calendar(path)


def test_a_calendar_that_was_cut_has_the_line(tmp_path: Path) -> None:
    path = tmp_path / "c.csv"
    of_shares(path, "a", "1 19")
    path.write_text(path.read_text() + "2026-01-01T00:00:00Z,2026-01-02T00:00:00Z,a\n")
    with pytest.raises(InputError, match="line 4: a value is missing"):
        read_calendar(path)


def test_times_of_a_calendar_without_an_offset_are_utc(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They were of the machine's time zone."""
    monkeypatch.setenv("TZ", "Asia/Kolkata")
    time.tzset()
    try:
        text = schedules.to_csv(schedules.paired_links(("a", "b"), SINCE, periods=2, seed=1))
        (tmp_path / "c.csv").write_text(re.sub(r"(?:Z|\+00:00)(?=[,\n])", "", text))
        assert read_calendar(tmp_path / "c.csv").spans[0].since == SINCE
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize(
    "text", ["", "a,b\n1,2\n", "since,until,place,treated,pair,counts_from\nx,y,z,1,1,w\n"]
)
def test_other_files_are_no_calendar(text: str, tmp_path: Path) -> None:
    (tmp_path / "c.csv").write_text(text)
    with pytest.raises(InputError, match=r"c\.csv"):
        read_calendar(tmp_path / "c.csv")
