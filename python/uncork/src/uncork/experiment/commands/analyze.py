"""`analyze` and `demo`: from records to scorecard, result document and page."""

from __future__ import annotations

import argparse
import re
import shutil
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property, partial
from itertools import pairwise
from pathlib import Path

import ibis.expr.types as ir

from uncork.experiment import demo, health, measures, terminal, words
from uncork.experiment.commands.common import (
    Progress,
    Records,
    instant,
    names,
    read_records,
    selected,
    share,
    show,
)
from uncork.experiment.document import document, to_json, to_line
from uncork.experiment.intime import read_calendar
from uncork.experiment.needed import TIMES
from uncork.experiment.options.analyze import add_analyze
from uncork.experiment.report import page
from uncork.experiment.result import Analysis, Finding, Verdict
from uncork.experiment.rows import Settings
from uncork.experiment.run import Request, run
from uncork.experiment.verdict import HARM, NO_VERDICT, decide
from uncork.measure import console
from uncork.measure.address import Address, Source
from uncork.measure.errors import InputError
from uncork.measure.files import write
from uncork.measure.keys import has_key, key_column
from uncork.measure.reduce import ReducePlan, sql
from uncork.measure.sources import stores
from uncork.measure.stats import sequential

DEFAULT_KEYS = ("region", "asn", "size_class")


@dataclass(frozen=True)
class Outcome:
    """An analysis with its verdict and document."""

    analysis: Analysis
    verdict: Verdict
    document: Mapping[str, object]

    @cached_property
    def text(self) -> str:
        return to_json(self.document)


def settings_of(arguments: argparse.Namespace, keys: tuple[str, ...]) -> Settings:
    _check_keys(arguments, keys)
    guards = measures.parse_limits(arguments.guardrail or ())
    return Settings(
        keys=keys,
        primary=measures.parse(arguments.primary, "--primary") if arguments.primary else None,
        guardrails=guards or (*measures.GUARDRAILS, *measures.own_guardrails()),
        are_limits_named=bool(guards),
        worth=share(arguments.worth, "--worth"),
        detect=share(arguments.detect, "--detect"),
        look=_look(arguments.look),
    )


def _check_keys(arguments: argparse.Namespace, keys: tuple[str, ...]) -> None:
    """A cell of an arm or of a unit has one arm: there is nothing to compare."""
    units = names(arguments.unit_columns or "")
    for key in keys:
        if key in TIMES:
            remedy = "the report shows days and hours; compare times with --since and --until"
            raise InputError(f"--by {key}", "no decision is made by time", remedy)
        if key in (arguments.arm, "arm", "arm_unit", "arm_bucket", *units):
            what = "names units" if key in units or key == "arm_unit" else "depends on the arm"
            problem = f"{key} {what}: its cells cannot be compared"
            raise InputError(f"--by {key}", problem, "decide by a place, such as --by country")


def _look(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    found = re.fullmatch(r"(\d+)/(\d+)", text)
    if not found or not 1 <= int(found[1]) <= int(found[2]):
        raise InputError(f"--look {text}", "not a look", "write K/N with K from 1 to N, such as 2/4")
    return int(found[1]), int(found[2])


def keys_of(text: str | None, records: ir.Table) -> tuple[str, ...]:
    """The keys that were asked for, or the usual ones that the records have."""
    columns = set(records.columns)
    if text is not None:
        keys = names(text)
        for key in keys:
            key_column(key, columns)
            if key in columns and records[key].type().is_nested():
                problem = f"the column {key!r} has several values for a record ({records[key].type()})"
                raise InputError("--by", problem, "name a column with one value for each record")
        return keys
    return tuple(key for key in DEFAULT_KEYS if has_key(key, columns))


def request_of(arguments: argparse.Namespace, settings: Settings) -> Request:
    since, until = instant(arguments.since, "--since"), instant(arguments.until, "--until")
    if since is not None and until is not None and since >= until:
        problem = f"not before --until {arguments.until}"
        raise InputError(f"--since {arguments.since}", problem, "name the earlier time with --since")
    return Request(
        settings=settings,
        control=arguments.control,
        treated=arguments.treated,
        arm=arguments.arm,
        experiment=arguments.experiment,
        since=since,
        until=until,
        past=not arguments.no_past,
        scope=arguments.scope,
        calendar=read_calendar(arguments.calendar) if arguments.calendar else None,
        place=arguments.place,
        share=share(arguments.share, "--share") if arguments.share else None,
        where=tuple(arguments.where),
        exclude=tuple(arguments.exclude),
    )


def run_analyze(arguments: argparse.Namespace, command: str) -> int:
    if arguments.show_sql:
        return _show_sql(arguments)
    if arguments.follow:
        return follow(arguments, command)
    if arguments.look_at:
        raise InputError("--look-at", "planned looks need --follow", "add it, or name this look: --look K/N")
    progress = Progress()
    records = read_records(arguments, progress)
    keys = () if arguments.calendar else keys_of(arguments.by, records.table)
    settings = settings_of(arguments, keys)
    outcome = analysed(records, request_of(arguments, settings), command, progress)
    return finish(outcome, arguments, command)


def run_demo(arguments: argparse.Namespace, command: str) -> int:
    progress = Progress()
    with tempfile.TemporaryDirectory(prefix="uncork-") as temporary:
        progress("making records up")
        path = demo.write(arguments.records or Path(temporary), arguments.seed, arguments.scale)
        parser = argparse.ArgumentParser()
        add_analyze(parser)
        options = parser.parse_args([str(path)])
        records = read_records(options, progress)
        settings = settings_of(options, keys_of(None, records.table))
        request = Request(settings=settings, made_up=True)
        outcome = analysed(records, request, command, progress)
    finish(outcome, arguments, command)
    return 0  # Harm in an example does not call for action.


def analysed(records: Records, request: Request, command: str, progress: Progress) -> Outcome:
    analysis, verdict = concluded(records, request, progress)
    return Outcome(analysis, verdict, document(analysis, verdict, command))


def concluded(records: Records, request: Request, progress: Progress) -> tuple[Analysis, Verdict]:
    """The analysis with its checks, and its verdict."""
    now = time.time_ns()

    def checks(plan: ReducePlan) -> tuple[Finding, ...]:
        return health.check(records.table, plan, records.run, now, records.unit_columns, records.losses)

    analysis = run(
        records.table,
        request,
        query=records.run,
        progress=progress,
        health=checks,
        rejected=records.rejected,
        keep=records.keep,
    )
    verdict = decide(analysis, request.settings)
    progress.done()
    return analysis, verdict


def finish(outcome: Outcome, arguments: argparse.Namespace, command: str) -> int:
    """Stdout, files and the exit status: what cannot be kept has been seen, and the other way round."""
    try:
        if arguments.format == "json":
            console.data(outcome.text)
        else:
            width = shutil.get_terminal_size((100, 24)).columns
            console.text(terminal.scorecard(outcome.analysis, outcome.verdict, width))
    finally:
        report = save(outcome, arguments.output, command)
    console.note(f"report: {report}")
    if arguments.open:
        show(report)
    return outcome.verdict.exit_status


def save(outcome: Outcome, directory: Path, command: str) -> Path:
    report = directory / "report.html"
    write(directory / "result.json", outcome.text)
    write(report, page(outcome.analysis, outcome.verdict, command))
    return report


def _show_sql(arguments: argparse.Namespace) -> int:
    keys = names(arguments.by or ",".join(DEFAULT_KEYS))
    _check_keys(arguments, keys)
    since, until = instant(arguments.since, "--since"), instant(arguments.until, "--until")
    plan = ReducePlan(
        control=arguments.control or "control",
        arm=arguments.arm,
        experiment=arguments.experiment,
        by=keys,
        window=(since, until),
        scope=arguments.scope,
    )
    among = partial(selected, where=arguments.where, exclude=arguments.exclude, run=None)
    console.data(sql(plan, arguments.show_sql, among=among))
    return 0


def follow(arguments: argparse.Namespace, command: str) -> int:
    """Analyses again whenever files have changed, and at the planned looks. The bounds of what it prints hold
    at every look. Records that cannot be analysed yet are waited for; in the last round they are an error.
    """
    looks = _planned(arguments)
    seen, decision = None, ""
    rounds, taken, status, wait = 0, 0, 0, 0.0
    while arguments.rounds is None or rounds < arguments.rounds:
        time.sleep(wait)
        due = sum(look <= time.time_ns() for look in looks)
        wait = _until_next(looks[due:], arguments.every)
        state = _state(arguments.paths)
        if state == seen and due == taken:
            continue
        seen = state
        rounds += 1
        stamp = datetime.now(UTC).strftime("%H:%M:%SZ")
        try:
            records = read_records(arguments, Progress(is_terminal=False))
            settings = settings_of(arguments, keys_of(arguments.by, records.table))
            if due > taken:
                settings = replace(settings, look=(due, len(looks)))
            elif settings.look is None:
                settings = replace(settings, is_watched=True)
            outcome = analysed(records, request_of(arguments, settings), command, Progress())
        except InputError as error:
            if rounds == arguments.rounds or not _waits(arguments, f"{stamp}  waiting: {error}"):
                raise
            continue
        status = outcome.verdict.exit_status
        is_end = status == HARM or _is_faulty(outcome) or (due > taken and _is_reached(outcome, settings))
        is_news = status == NO_VERDICT or outcome.verdict.decision != decision
        is_read = _says(arguments, outcome, f"{stamp}  {_line(outcome, is_news and not is_end)}")
        decision = outcome.verdict.decision
        report = save(outcome, arguments.output, command)
        if not is_read:
            return status
        if is_end:
            _ends(arguments, outcome, report)
            return status
        taken = due
    return status


def _waits(arguments: argparse.Namespace, line: str) -> bool:
    """Says what is waited for. False: no one reads any more."""
    if arguments.format != "json":
        return console.line(line)
    console.note(line)
    return True


def _says(arguments: argparse.Namespace, outcome: Outcome, line: str) -> bool:
    """One look on one line: in words, or the document."""
    return console.data(to_line(outcome.document)) if arguments.format == "json" else console.line(line)


def _ends(arguments: argparse.Namespace, outcome: Outcome, report: Path) -> None:
    if arguments.format == "json":
        console.note(f"report: {report}")
    else:
        console.line(f"{outcome.verdict.sentence}\nreport: {report}")


def _planned(arguments: argparse.Namespace) -> list[int]:
    """The times of the planned looks, in nanoseconds since 1970."""
    looks = [found for text in names(arguments.look_at or "") if (found := instant(text, "--look-at"))]
    if looks and arguments.look:
        raise InputError("--look-at", "--look names a look as well", "leave one of them out")
    if any(later <= earlier for earlier, later in pairwise(looks)):
        raise InputError(f"--look-at {arguments.look_at}", "the times do not rise", "name the earliest first")
    return looks


def _until_next(looks: list[int], every: float) -> float:
    """How long to wait, in seconds: until the next planned look, if that comes sooner."""
    return min([every, *(max(0.0, (look - time.time_ns()) / 1e9) for look in looks[:1])])


def _is_reached(outcome: Outcome, settings: Settings) -> bool:
    """Whether a planned look ends the experiment: it is the last one, or its boundary is crossed."""
    assert settings.look is not None
    primary = next((row for row in outcome.analysis.scorecard if row.role == "primary"), None)
    is_crossed = primary is not None and primary.verdict in ("better", "worse")
    decided = outcome.verdict.decision in ("enable", "enable some", "keep")
    return settings.look[0] == settings.look[1] or (is_crossed and decided)


def _is_faulty(outcome: Outcome) -> bool:
    """Whether an A/A test breaks a guardrail, by a bound that holds at every look."""
    guards = outcome.analysis.guardrails
    is_broken = bool(outcome.verdict.broken) or any(one.state == "broken" for one in guards)
    return outcome.verdict.decision == "A/A" and is_broken


def _state(sources: list[Source]) -> object:
    """A value that differs if files have changed."""
    objects = [stores.state(it) for it in sources if isinstance(it, Address)]
    paths = [it for it in sources if isinstance(it, Path)]
    files = sorted(
        it for path in paths for it in (path.rglob("*") if path.is_dir() else [path]) if it.is_file()
    )
    return objects, [
        (str(it), it.stat().st_size, it.stat().st_mtime_ns) for it in files if not it.name.startswith(".")
    ]


def _line(outcome: Outcome, with_verdict: bool) -> str:
    """The state in one line: data, primary measure with an interval that holds at every look, guardrails,
    verdict.
    """
    analysis = outcome.analysis
    row = next((row for row in analysis.scorecard if row.role == "primary"), None)
    parts = [
        f"{words.counted(analysis.facts.rows, 'record')}, {words.counted(analysis.facts.total_units, 'unit')}"
    ]
    if row is not None and row.effect is not None:
        low, high = sequential.always_valid(row.effect)
        parts.append(
            f"{row.name} {words.change(row.effect.ratio)} ({words.interval(low, high)} at every look)"
        )
    elif row is not None:
        parts.append(f"{row.name}: {row.reason}")
    states = [guarded.state for guarded in analysis.guardrails]
    order = ("holds", "likely holds", "open", "likely broken", "broken")
    counts = [f"{states.count(state)} {state}" for state in order if state in states]
    parts.append(", ".join(counts))
    broken = [guarded.name for guarded in analysis.guardrails if guarded.state == "broken"]
    parts[-1] += f": {words.listed(broken)}" if broken else ""
    parts += [outcome.verdict.sentence] if with_verdict else []
    return "; ".join(part for part in parts if part)
