"""`design`: duration and size of an experiment, from past records; and the files that start it."""

from __future__ import annotations

import argparse
import re
import shutil
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import ibis
import numpy as np

from uncork.experiment import design, measures, policyfile, schedules, terminal, words
from uncork.experiment.commands.common import (
    Progress,
    Records,
    instant,
    read_records,
    share,
    values,
)
from uncork.experiment.document import to_json
from uncork.experiment.estimate import pooled
from uncork.experiment.result import Measure
from uncork.experiment.units import candidates
from uncork.measure import console
from uncork.measure.assignment import FLAGS, QUIC_CONTROLLERS, SETTINGS
from uncork.measure.cubes import Reduced
from uncork.measure.errors import InputError
from uncork.measure.errors import available as any_of
from uncork.measure.files import write
from uncork.measure.metrics import available
from uncork.measure.reduce import ReducePlan, reduce_views
from uncork.measure.stats.switchback import DAY, WEEK

SCHEMA = "experiment-design-1"
DAYS = (7, 14, 28)
SECONDS = {"s": 1, "min": 60, "h": 3600, "d": 86400}
SHOWN = tuple(
    measures.parse(name, "")
    for name in (
        "throughput:p50",
        "throughput:p10",
        "completion:p90",
        "bandwidth:p10",
        "retransmitted",
        "stutters",
    )
)


def run_design(arguments: argparse.Namespace, _: str) -> int:
    if arguments.looks < 1:
        raise InputError("--looks", f"`{arguments.looks}` is not a number of looks", "write 1 or more")
    if not arguments.paths and not arguments.output:
        raise InputError(
            "design", "neither records nor -o are given", "give past records, -o DIR for the files, or both"
        )
    if arguments.paths:
        progress = Progress()
        records = read_records(arguments, progress)
        _check_settings(arguments, records)
        forecast = _forecast(arguments, records, progress)
        if arguments.format == "json":
            console.data(to_json(forecast.document()))
        else:
            console.text(forecast.text())
    if arguments.output:
        console.text(_files(arguments))
    return 0


@dataclass(frozen=True)
class Forecast:
    """What past records predict of an experiment on such traffic."""

    days: int
    units: int
    share: float
    detect: float
    measures: tuple[tuple[Measure, design.Precision | design.NoPrecision], ...]
    goal: design.Goal
    by_unit: tuple[design.UnitChoice, ...]
    check: str

    def text(self) -> str:
        width = max(shutil.get_terminal_size((100, 24)).columns, terminal.NARROWEST)
        detect = f"{100 * self.detect:g}%"
        first = (
            f"{words.counted(self.days, 'day')} of the past, {words.counted(self.units, 'unit')}; "
            f"{100 * self.share:g} % of the units take part, half of them treated. Smallest change that is "
            "found four times out of five:"
        )
        headings = ["measure", *(f"{days} days" for days in DAYS), f"days to find {detect}", "now"]
        rows = [_row(measure, known, self.goal) for measure, known in self.measures]
        unit_headings = ["unit", "in the past", f"{self.days} days", f"days to find {detect}", "or an arm"]
        by_unit = [_unit_row(one) for one in self.by_unit]
        name = measures.name(self.measures[0][0])
        blocks = [terminal.wrapped(first, width), terminal.table(headings, rows, width, left=1)]
        if by_unit:
            blocks += [
                terminal.wrapped(f"Which unit? The same for {name}, by what is assigned:", width),
                terminal.table(unit_headings, by_unit, width, left=1),
                "\n".join(terminal.wrapped(f"{one.unit}: {one.sentence}", width) for one in self.by_unit),
            ]
        return "\n\n".join([*blocks, terminal.wrapped(self.check, width)]) + "\n"

    def document(self) -> dict[str, object]:
        """The same for programs."""
        found: list[dict[str, object]] = []
        for measure, known in self.measures:
            if isinstance(known, design.NoPrecision):
                found.append({"measure": str(measure), "reason": known.reason})
                continue
            found.append({
                "measure": str(measure), "value": known.value,
                "mde": {str(days): design.mde(known, self.goal, days) for days in DAYS},
                "days_needed": design.days_needed(known, self.goal),
                "units_needed": design.units_needed(known, self.goal),
            })  # fmt: skip
        return {
            "schema": SCHEMA,
            "days": self.days,
            "units": self.units,
            "share": self.share,
            "detect": self.detect,
            "measures": found,
            "by_unit": [asdict(one) for one in self.by_unit],
            "aa_check": self.check,
        }


def _check_settings(arguments: argparse.Namespace, records: Records) -> None:
    """``--control`` and ``--treated`` are settings in the files, not arms of the records."""
    for name in {"control", "treated"} & vars(arguments).get("_given", set()):
        option, text = f"--{name}", getattr(arguments, name)
        try:
            connection_settings(text, option)
            problem = "it is of the policy, and -o DIR is not given"
        except InputError as error:
            problem = error.problem
        else:
            if arguments.output:
                continue
        remedy = "write quic=bbr3,tcp=bbr and -o DIR"
        if "arm" in records.table.columns:
            arms = values(records.table, "arm", records.run)
            remedy += f", or --where arm=NAME for the past of an arm: {arms}"
        raise InputError(f"{option} {text}", problem, remedy)


def _forecast(arguments: argparse.Namespace, records: Records, progress: Progress) -> Forecast:
    """What an experiment on such traffic would find, and when."""
    wanted = measures.parse(arguments.primary, "--primary") if arguments.primary else None
    have = available(set(records.table.columns), [wanted.metric] if wanted else [])
    shown = [one for one in dict.fromkeys([*([wanted] if wanted else []), *SHOWN]) if one.metric in have]
    if not shown or (wanted and wanted not in shown):
        raise InputError(
            "records", f"they have no {wanted.metric if wanted else 'metric'}", f"there are {', '.join(have)}"
        )
    plan = ReducePlan(
        control="*",
        arm="everyone",
        metrics=tuple(dict.fromkeys(one.metric for one in shown)),
        window=(instant(arguments.since, "--since"), instant(arguments.until, "--until")),
    )
    progress("counting")
    table = records.table.mutate(everyone=ibis.literal("*"))
    views = reduce_views(table, plan, [(), ("day",)], records.run)
    days = [cells for _, cells in sorted(views[("day",)].cells.items())]
    units = sum(int(counts.sum()) for counts in views[()].units.values())
    part = share(arguments.share, "--share") if arguments.share else 1.0
    detect = share(arguments.detect, "--detect")
    goal = design.Goal(detect, shares=(part / 2, part / 2), looks=arguments.looks)
    progress("comparing units")
    first = shown[0]
    by_unit = design.compare_units(
        candidates(
            table,
            replace(plan, metrics=(first.metric,)),
            arguments.place_is,
            records.run,
            has_memory_tables=arguments.engine == "duckdb",
        ),
        first.metric,
        measures.quantile(first.statistic),
        goal,
    )
    progress("estimating")
    known = tuple(
        (one, design.precision(days, one.metric, measures.quantile(one.statistic), units)) for one in shown
    )
    forecast = Forecast(len(days), units, part, detect, known, goal, by_unit, _aa(views[()], first))
    progress.done()
    return forecast


def _row(measure: Measure, known: design.Precision | design.NoPrecision, goal: design.Goal) -> list[str]:
    name = measures.name(measure)
    if isinstance(known, design.NoPrecision):
        return [name, *("–" for _ in DAYS), known.reason, "–"]
    found = [f"{100 * design.mde(known, goal, days):.1f} %" for days in DAYS]
    days = design.days_needed(known, goal)
    more = f"no: {design.units_needed(known, goal):,} units an arm"
    needed = more if days is None or days > 365 else f"{days:.0f}"
    return [name, *found, needed, words.quantity(known.value, measures.unit(measure.metric))]


def _unit_row(one: design.UnitChoice) -> list[str]:
    if one.mde is None:
        return [one.unit, f"{one.units:,}", "–", "–", "–"]
    days = "never" if one.days is None else f"{one.days:.0f}"
    return [one.unit, f"{one.units:,}", f"{100 * one.mde:.1f} %", days, f"{one.units_needed:,} units"]


def _aa(whole: Reduced, measure: Measure) -> str:
    """Whether the intervals hold where nothing was changed."""
    cube = pooled(list(whole.cells.values()), [measure.metric]).get(measure.metric)
    if cube is None:
        return ""
    check = design.aa_check(cube, measures.quantile(measure.statistic), np.random.default_rng(1), splits=400)
    if isinstance(check, design.NoPrecision):
        return f"A/A check of {measures.name(measure)}: none ({check.reason})."
    return f"A/A check of {measures.name(measure)}: {check.sentence}"


def _files(arguments: argparse.Namespace) -> str:
    directory: Path = arguments.output
    plan = _plan(arguments)
    if arguments.kind == "ab":
        write(directory / "policy.toml", policyfile.ab_policy(plan))
        return _next_steps(directory, [])
    calendar = _calendar(arguments)
    write(directory / "policy.toml", policyfile.calendar_policy(plan, calendar, arguments.place_is))
    write(directory / "schedule.csv", schedules.to_csv(calendar))
    first, last = calendar.spans[0].since, calendar.spans[-1].until
    about = (
        f"{calendar.kind}: {words.counted(len(calendar.spans), 'span')} from {schedules.utc(first)} to "
        f"{schedules.utc(last)}"
    )
    return _next_steps(directory, [about])


def _next_steps(directory: Path, lines: list[str]) -> str:
    return "\n".join(
        [
            *lines,
            f"wrote {directory}/policy.toml",
            "check it:    uncork policy check " + f"{directory}/policy.toml",
            f"start it:    uncork serve --root public --policy {directory}/policy.toml --records records/",
            "",
        ]
    )


def _plan(arguments: argparse.Namespace) -> policyfile.PolicyPlan:
    part = share(arguments.share, "--share") if arguments.share else (0.1 if arguments.kind == "ab" else 1.0)
    if not arguments.key:
        remedy = "make one of your own with: openssl rand -hex 16"
        raise InputError(
            "--key", "the policy needs a secret, so that clients cannot compute their arm", remedy
        )
    return policyfile.PolicyPlan(
        name=arguments.name,
        control=policyfile.Arm("control", connection_settings(arguments.control, "--control")),
        treated=policyfile.Arm(
            "bbr" if "bbr" in arguments.treated else "treated",
            connection_settings(arguments.treated, "--treated"),
        ),
        key=arguments.key,
        unit=arguments.unit,
        share=part,
        conditions={"listener": arguments.listener} if arguments.listener else {},
    )


def connection_settings(text: str, option: str) -> dict[str, str]:
    """`quic=bbr3,tcp=bbr` as the keys of a policy. QUIC has the built-in controllers, TCP any name that a
    kernel may have.
    """
    pairs = [one.partition("=") for one in text.split(",")]
    if not all(key.strip() in SETTINGS and equals and value.strip() for key, equals, value in pairs):
        raise InputError(f"{option} {text}", "not settings", "write quic=bbr3,tcp=bbr")
    settings = {key.strip(): value.strip() for key, _, value in pairs}
    quic, tcp = settings.get("quic", QUIC_CONTROLLERS[0]), settings.get("tcp", "")
    if quic.partition(":")[0] not in QUIC_CONTROLLERS:
        remedy = any_of(quic.partition(":")[0], QUIC_CONTROLLERS)
        raise InputError(f"{option} {text}", f"unknown controller {quic!r} of QUIC", remedy)
    for key in FLAGS:
        if settings.get(key, "true") not in ("true", "false"):
            raise InputError(
                f"{option} {text}", f"{key} is not {settings[key]!r}", f"write {key}=true or {key}=false"
            )
    if tcp and not re.fullmatch(r"[A-Za-z0-9_-]{1,15}", tcp):
        raise InputError(f"{option} {text}", f"{tcp!r} is not a name of a controller", "write tcp=bbr")
    return settings


def _calendar(arguments: argparse.Namespace) -> schedules.Calendar:
    places = [place for place in (arguments.places or "").split(",") if place]
    if len(set(places)) < len(places):
        raise InputError(f"--places {arguments.places}", "a place is named twice", "name each once")
    if not places:
        raise InputError(
            "--places",
            f"a {arguments.kind} design moves places",
            "name listeners or hosts: --places lima,quito",
        )
    start = instant(arguments.start, "--start")
    today = int(datetime.now(UTC).timestamp()) // DAY * DAY
    since = start // 1_000_000_000 if start is not None else today + DAY
    if arguments.kind == "switchback":
        block = span(arguments.block, "--block")
        return schedules.switchback(
            places,
            since,
            block=block,
            periods=arguments.periods or 2,
            seed=arguments.seed,
            period=WEEK,
            burn_in=min(600, block // 4),
        )
    if arguments.kind == "paired-links":
        if len(places) != 2:
            raise InputError(
                "--places", f"there are {len(places)}", "paired links are two: --places link-a,link-b"
            )
        return schedules.paired_links(
            (places[0], places[1]), since, periods=arguments.periods or 8, seed=arguments.seed
        )
    return schedules.steps(places, since, seed=arguments.seed)


def span(text: str, option: str) -> int:
    """A span of time in seconds."""
    found = re.fullmatch(r"([1-9]\d*)\s*(s|min|h|d)", text)
    if not found:
        raise InputError(f"{option} {text}", "not a duration", "write 15min, 1h or 1d")
    return int(found[1]) * SECONDS[found[2]]
