"""`import`, `export` and `interference`."""

from __future__ import annotations

import argparse
import shutil

from uncork.experiment import growthbook
from uncork.experiment.commands import laboratory
from uncork.experiment.commands.analyze import settings_of
from uncork.experiment.commands.common import (
    Progress,
    instant,
    read_records,
    show,
)
from uncork.experiment.document import to_json
from uncork.experiment.facts import traffic
from uncork.experiment.interference import Lesson, document, lessons
from uncork.experiment.report import explain
from uncork.experiment.run import Request, name_arms
from uncork.experiment.terminal import table
from uncork.experiment.words import change, counted, interval, listed
from uncork.measure import console
from uncork.measure.errors import InputError
from uncork.measure.files import write
from uncork.measure.reduce import ReducePlan, in_scope
from uncork.measure.schema import canonical
from uncork.measure.sources import import_files, joining, load, networks
from uncork.measure.sources.reading import find_files
from uncork.measure.stats.effect import Effect

SHOWN_REASONS = 8


def run_import(arguments: argparse.Namespace, _: str) -> int:
    """Logs to canonical records. Bad rows are counted and kept apart."""
    progress = Progress()
    mapping = load(arguments.mapping)
    # Next to the directory, not in it: what is in it are records.
    into = arguments.output.resolve()
    rejected = arguments.rejected or into.with_name(f"{into.name}.rejected.jsonl")
    files = find_files(arguments.paths, True)
    named = networks.load(arguments.networks) if arguments.networks else None
    connections = joining.load(find_files(arguments.join, False)) if arguments.join else None
    imported = import_files(files, mapping, arguments.output, rejected, progress.rows, named, connections)
    progress.done()
    left_out = sum(imported.rejected.values())
    rows, logs = counted(imported.rows, "record"), counted(len(files), "log")
    console.line(f"{rows} in {arguments.output}, from {logs}")
    if left_out:
        console.line(f"{left_out:,} rows left out, in {rejected}:")
        for reason, count in imported.rejected.most_common(SHOWN_REASONS):
            console.line(f"  {count:>8,}  {reason}")
    if imported.unseen:
        console.line(f"no line has {listed(imported.unseen)}, which {mapping.name} reads")
    if connections is not None:
        console.line(f"{connections.matched:,} lines have a connection")
        for reason, count in connections.unmatched.most_common():
            console.line(f"  {count:>8,}  without arm: {reason}")
    return 0


def run_growthbook(arguments: argparse.Namespace, _: str) -> int:
    """Tables and definitions for a GrowthBook on the premises."""
    progress = Progress()
    records = read_records(arguments, progress)
    settings = settings_of(arguments, ())
    request = Request(
        settings, arguments.control, arguments.treated, arguments.arm, experiment=arguments.experiment
    )
    named = name_arms(
        traffic(canonical(records.table), records.run, arm=arguments.arm, experiment=arguments.experiment),
        request,
    )
    since, until = instant(arguments.since, "--since"), instant(arguments.until, "--until")
    progress("writing tables")
    arms = (named.control, named.treated)
    plan = ReducePlan(named.control, experiment=arguments.experiment, window=(since, until))
    files = growthbook.export(
        in_scope(records.table, plan),
        arms,
        named.experiment,
        settings,
        arguments.output,
        arm=arguments.arm,
        datasource=arguments.datasource,
    )
    progress.done()
    console.line("\n".join(str(file) for file in files))
    return 0


def run_interference(arguments: argparse.Namespace, command: str) -> int:
    """Worlds of known truth, and what each design says of them."""
    if arguments.lab:
        return laboratory.run_laboratory(arguments, command)
    if arguments.repetitions is not None:
        raise InputError("--repetitions", "the made-up worlds have one", "add --lab")
    progress = Progress()
    found_ = lessons(arguments.seed, progress)
    progress.done()
    text = to_json(document(found_, arguments.seed))
    html = arguments.output / "interference.html"
    if arguments.format == "json":
        console.data(text)
    else:
        console.text(_lessons(found_))
    write(arguments.output / "interference.json", text)
    write(html, explain.page(found_, command))
    console.note(f"page: {html}")
    if arguments.open:
        show(html)
    return 0


def _lessons(some: tuple[Lesson, ...]) -> str:
    width = shutil.get_terminal_size((100, 24)).columns
    blocks = []
    for lesson in some:
        rows = []
        for result in lesson.results:
            effect = result.outcome if isinstance(result.outcome, Effect) else None
            covers = {True: "yes", False: "NO", None: "–"}[result.covers(lesson.truth)]
            reach = interval(effect.ratio_low, effect.ratio_high) if effect else "–"
            rows.append(
                [
                    result.design,
                    result.outcome.estimand,
                    change(effect.ratio) if effect else "–",
                    reach,
                    covers,
                ]
            )
        heading = f"{lesson.world.name}: all treated against none is truly {change(lesson.truth)}"
        headings = ["design", "estimates", "estimate", "95 % interval", "holds the truth"]
        blocks.append(f"{heading}\n{table(headings, rows, width, left=2)}")
    return "\n\n".join(blocks) + "\n"
