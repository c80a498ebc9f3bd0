"""From cubes to rows, cells and advice."""

from dataclasses import replace

import numpy as np
import pytest

from made import FACTS, distribution, reduced, share
from uncork.experiment import needed
from uncork.experiment.analysis import analyse
from uncork.experiment.estimate import total
from uncork.experiment.measures import parse_limit
from uncork.experiment.result import Analysis, Cell, Measure
from uncork.experiment.rows import Settings
from uncork.experiment.terminal import scorecard
from uncork.experiment.verdict import decide
from uncork.measure.cubes import DistributionCube, RatioCube

DAYS = [f"2026-11-{day:02d}" for day in range(2, 16)]
Cubes = dict[str, DistributionCube | RatioCube]


def analysed(
    cells: dict[str, Cubes], settings: Settings | None = None, past: dict[str, Cubes] | None = None
) -> Analysis:
    """One key, `region`, with these cells."""

    def views(some: dict[str, Cubes]) -> dict[tuple[str, ...], object]:
        names = dict.fromkeys(name for cubes in some.values() for name in cubes)
        whole = {name: total([cubes[name] for cubes in some.values() if name in cubes]) for name in names}
        return {
            (): reduced((), {(): whole}),  # type: ignore[dict-item]
            ("region",): reduced(("region",), {(value,): cubes for value, cubes in some.items()}),  # type: ignore[dict-item]
        }

    return analyse(views(cells), {}, views(past) if past else {}, FACTS, settings or Settings())  # type: ignore[arg-type]


def cell(analysis: Analysis, value: str) -> Cell:
    return next(one for one in analysis.cells if one.value == value)


def test_planted_effects_are_found_where_they_are() -> None:
    rng = np.random.default_rng(1)
    analysis = analysed(
        {
            "helped": {"throughput": distribution(rng, 1.15)},
            "hurt": {"throughput": distribution(rng, 0.87)},
            "same": {"throughput": distribution(rng, 1.0, samples=60_000)},
            "small": {"throughput": distribution(rng, 1.0, samples=120)},
        }
    )
    advice = {one.value: one.advice for one in analysis.cells}
    assert advice == {"helped": "enable", "hurt": "keep", "same": "keep", "small": "wait"}
    found = cell(analysis, "helped").primary
    assert found is not None
    assert found.effect is not None
    assert found.effect.ratio_low < 1.15 < found.effect.ratio_high
    assert found.effect.estimand == "A/B at share 50 %"


def test_days_are_an_answer_only_where_there_is_not_enough_data() -> None:
    rng = np.random.default_rng(2)
    few = cell(analysed({"few": {"throughput": distribution(rng, 1.0, samples=1500)}}), "few")
    assert few.advice == "wait"
    assert few.days_more is not None
    # Without records by day the variance counts as falling with the days: four times as many halve the error.
    days = (few.primary.mde / 0.05) ** 2 * FACTS.days - FACTS.days  # type: ignore[operator,union-attr]
    assert few.days_more == pytest.approx(days, rel=0.15)


def test_more_days_of_the_same_units_are_not_promised() -> None:
    """Days that repeat each other bring no information: the variance does not fall."""
    rng = np.random.default_rng(3)
    day = {"throughput": distribution(rng, 1.0, samples=1500)}
    many = {"throughput": total([day["throughput"]] * len(DAYS))}
    window = {(): reduced((), {(): many}), ("region",): reduced(("region",), {("r",): many})}  # type: ignore[dict-item]
    daily = {("region", "day"): reduced(("region", "day"), {("r", name): day for name in DAYS})}  # type: ignore[dict-item]
    analysis = analyse(window, daily, {}, FACTS, Settings())
    assert (analysis.cells[0].advice, analysis.cells[0].days_more) == ("wait", None)


def test_guardrail_is_broken_only_when_its_whole_bound_is_beyond_the_limit() -> None:
    rng = np.random.default_rng(4)
    cubes: Cubes = {"throughput": distribution(rng, 1.1), "retransmitted": share(rng, 0.01, 0.05)}
    states = {}
    for limit in ("retransmitted=2pp", "retransmitted=4pp", "retransmitted=9pp", "retransmitted=100%"):
        settings = Settings(guardrails=(parse_limit(limit),))
        states[limit] = analysed({"r": cubes}, settings).guardrails[0].state
    assert states == {
        "retransmitted=2pp": "broken",
        "retransmitted=4pp": "likely broken",
        "retransmitted=9pp": "holds",
        "retransmitted=100%": "broken",
    }


def test_broken_guardrail_in_a_cell_keeps_the_control_there() -> None:
    rng = np.random.default_rng(5)
    good: Cubes = {"throughput": distribution(rng, 1.15), "retransmitted": share(rng, 0.01, 0.011)}
    bad: Cubes = {"throughput": distribution(rng, 1.15), "retransmitted": share(rng, 0.01, 0.09)}
    also = {f"also {n}": good for n in range(9)}
    analysis = analysed({"good": good, "bad": bad, **also})
    assert cell(analysis, "good").advice == "enable"
    assert cell(analysis, "bad").advice == "keep"
    assert "retransmitted" in cell(analysis, "bad").why


def test_look_needs_the_boundary() -> None:
    rng = np.random.default_rng(6)
    cells: dict[str, Cubes] = {"r": {"throughput": distribution(rng, 1.06, samples=4000)}}
    assert analysed(cells).scorecard[0].verdict == "better"
    assert analysed(cells, Settings(look=(1, 10))).scorecard[0].verdict == "inconclusive"
    assert analysed(cells, Settings(look=(10, 10))).scorecard[0].verdict == "better"


def test_many_cells_without_effect_are_not_called_better_or_worse() -> None:
    rng = np.random.default_rng(7)
    analysis = analysed(
        {f"r{n:02d}": {"throughput": distribution(rng, 1.0, samples=1500)} for n in range(40)}
    )
    raw = sum(
        one.primary.effect.p_value < 0.05 for one in analysis.cells if one.primary and one.primary.effect
    )
    called = sum(one.primary.verdict in ("better", "worse") for one in analysis.cells if one.primary)
    assert raw >= 1, "chance alone gives some at 5 %"
    assert called == 0


def test_past_of_the_same_units_narrows_the_interval() -> None:
    """Buckets that were fast before are fast now; CUPED takes that out."""
    rng = np.random.default_rng(8)
    speed = np.exp(rng.normal(0, 0.4, (2, 100)))

    def cube(ratio: float) -> RatioCube:
        denominator = np.full((2, 100), 1000.0)
        noise = np.exp(rng.normal(0, 0.05, (2, 100)))
        return RatioCube(denominator * speed * noise * np.array([[1.0], [ratio]]), denominator)

    settings = Settings(primary=Measure("stutters", "ratio"), guardrails=())
    now, before = cube(0.9), cube(1.0)
    plain = analysed({"r": {"stutters": now}}, settings).scorecard[0].effect
    adjusted = analysed({"r": {"stutters": now}}, settings, {"r": {"stutters": before}}).scorecard[0].effect
    assert plain is not None
    assert adjusted is not None
    assert np.log(adjusted.ratio_high / adjusted.ratio_low) < 0.5 * np.log(plain.ratio_high / plain.ratio_low)
    assert adjusted.ratio_low < 0.9 < adjusted.ratio_high


def test_a_cell_of_small_objects_is_judged_by_completion_time() -> None:
    rng = np.random.default_rng(9)
    cells: dict[str, Cubes] = {
        "large": {"throughput": distribution(rng, 1.1)},
        "small": {"completion": distribution(rng, 0.8, median=0.2)},
    }
    small = cell(analysed(cells), "small")
    assert small.primary is not None
    assert small.primary.measure == Measure("completion", "p50")
    assert (small.primary.verdict, small.advice) == ("better", "enable")


def series(
    levels: list[float], ratios: list[float], rng: np.random.Generator
) -> dict[tuple[str, ...], Cubes]:
    return {
        ("PE", day): {"throughput": distribution(rng, ratio, samples=3000, median=level)}
        for day, level, ratio in zip(DAYS, levels, ratios, strict=True)
    }


def test_incident_is_found_and_called_contested() -> None:
    rng = np.random.default_rng(10)
    levels = [8e6] * 6 + [2e6] * 2 + [8e6] * 6
    ratios = [1.1] * 6 + [3.0] * 2 + [1.1] * 6
    days = series(levels, ratios, rng)
    whole = {(): {"throughput": total([cubes["throughput"] for cubes in days.values()])}}
    window = {(): reduced((), whole)}  # type: ignore[arg-type]
    daily = {("region", "day"): reduced(("region", "day"), days)}
    analysis = analyse(window, daily, {}, FACTS, Settings())
    incident = analysis.incidents[0]
    assert (incident.value, incident.first, incident.last, incident.contested) == (
        "PE",
        DAYS[6],
        DAYS[7],
        True,
    )
    gaps = {name: rows[0].effect.ratio for name, rows in incident.phases if rows and rows[0].effect}
    assert gaps["during"] > 2.5
    assert max(gaps["before"], gaps["after"]) < 1.3


def by_day(levels: list[float], rng: np.random.Generator) -> Analysis:
    cells = {
        (day,): {"throughput": distribution(rng, 2.0, samples=4000, median=level)}
        for day, level in zip(DAYS, levels, strict=True)
    }
    whole = {(): {"throughput": total([cubes["throughput"] for cubes in cells.values()])}}
    steps = [0.05, 0.5, 0.95] * 5
    shares = dict(zip(DAYS, steps, strict=False))
    views = {("day",): reduced(("day",), cells)}
    return analyse(
        {(): reduced((), whole)}, views, {}, replace(FACTS, share=0.5), Settings(keys=()), (), shares
    )  # type: ignore[arg-type]


def test_control_that_moves_with_the_share_is_reported() -> None:
    rng = np.random.default_rng(11)
    full_link = [1e7 / (1 + share) for share in ([0.05, 0.5, 0.95] * 5)[: len(DAYS)]]
    found = by_day(full_link, rng).interference
    assert found is not None
    assert found.moved
    assert "share bottlenecks" in found.sentence
    assert found.spill_over is not None
    assert found.spill_over.ratio == pytest.approx(0.5, rel=0.1)
    assert [step.share for step in found.steps] == [0.05, 0.5, 0.95]


def test_control_that_does_not_move_is_not_accused() -> None:
    found = by_day([1e7] * len(DAYS), np.random.default_rng(12)).interference
    assert found is not None
    assert not found.moved


def test_one_share_cannot_show_interference_and_says_so() -> None:
    rng = np.random.default_rng(13)
    cubes: Cubes = {"throughput": distribution(rng, 1.1)}
    views = {("day",): reduced(("day",), {(day,): cubes for day in DAYS})}
    shares = dict.fromkeys(DAYS, 0.5)
    analysis = analyse({(): reduced((), {(): cubes})}, views, {}, FACTS, Settings(keys=()), (), shares)
    assert analysis.interference is not None
    assert "cannot show" in analysis.interference.sentence
    assert analysis.interference.spill_over is None


def test_only_what_is_shown_is_counted() -> None:
    metrics = ["throughput", "completion", "retransmitted", "playback_latency", "bandwidth"]
    settings = Settings(keys=("region", "size_class"))
    window = needed.of_window(settings, True, metrics)
    assert list(window) == [(), ("region",), ("size_class",), ("size_class", "hour")]
    assert window[()] == tuple(metrics)
    assert "playback_latency" not in window["region",]
    assert ("size_class", "hour") not in needed.of_window(settings, False, metrics)
    cube = distribution(np.random.default_rng(1), 1.0)
    both: Cubes = {"throughput": cube, "completion": cube}
    small: Cubes = {"completion": cube}
    counted = {
        (): reduced((), {(): both}),
        ("region",): reduced(("region",), {("Europe",): both, ("Africa",): small}),
        ("size_class",): reduced(("size_class",), {("<100 kB",): both}),
    }
    of_past = needed.of_past(settings, counted, metrics)
    assert of_past[()] == ("throughput",)
    assert of_past["region",] == ("throughput", "completion"), "a region has only small objects"
    assert needed.by_day(settings, counted, metrics)["size_class", "day"] == ("throughput", "completion")
    declared = replace(settings, primary=Measure("completion", "p90"))
    assert set(needed.of_past(declared, counted, metrics).values()) == {("completion",)}


def test_declared_primary_that_no_record_has_gives_way_to_completion_over_all_clients_too() -> None:
    rng = np.random.default_rng(31)
    settings = Settings(primary=Measure("throughput", "p50"))
    found = analysed({"r": {"completion": distribution(rng, 0.8)}}, settings)
    assert [str(row.measure) for row in found.scorecard if row.role == "primary"] == ["completion:p50"]
    assert found.notes[0].startswith("No record has p50 throughput")


def test_limits_that_the_records_cannot_show_are_listed() -> None:
    rng = np.random.default_rng(32)
    found = analysed({"r": {"throughput": distribution(rng)}})
    assert found.not_guarded[:2] == ("retransmitted", "resent in 2 RTTs")
    text = scorecard(found, decide(found, Settings()), 200)
    assert "– guardrails not run, because no record has it: retransmitted, " in text


def test_guardrails__ratios_per_client_given__are_decided_by_these() -> None:
    """Clients of the lossy region came more often: 8 against 5 % of all bytes, and no client has more."""
    rng = np.random.default_rng(9)
    cubes: Cubes = {"throughput": distribution(rng, 1.1), "retransmitted": share(rng, 0.05, 0.08)}
    once = {"retransmitted": share(rng, 0.05, 0.05)}
    views = {(): reduced((), {(): cubes}), ("region",): reduced(("region",), {("DE",): cubes})}
    plain = analyse(views, {}, {}, FACTS, Settings())
    assert [one.state for one in plain.guardrails] == ["broken"]
    found = analyse(
        views, {}, {}, FACTS, Settings(), per_client={(): {(): once}, ("region",): {("DE",): once}}
    )
    for (guard,) in (found.guardrails, found.cells[0].guardrails):
        assert (guard.state, guard.per_client) == ("holds", True)
