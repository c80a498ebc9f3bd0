"""The truth table of verdicts: how often the headline of `experiment analyze` is wrong.

    python bench/verdicts.py --experiments 2000 --page ../../docs/evidence/verdicts.md

Each experiment is drawn with its truth (verdict_worlds.py), written as records and analysed as the command
does it. Same numbers in, same page out. With `--results FILE`, an interrupted run continues.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import ibis.expr.types as ir
import numpy as np
import pyarrow as pa
from verdict_worlds import World, draw, records

from uncork.experiment.commands.analyze import concluded
from uncork.experiment.commands.common import Progress, Records
from uncork.experiment.result import Analysis, Verdict
from uncork.experiment.rows import Settings
from uncork.experiment.run import Request
from uncork.measure.engines.duckdb import Settings as EngineSettings
from uncork.measure.engines.duckdb import connect

WORTH = 0.01
"""The smallest gain that is worth a change: the command's default."""
DETECTABLE = 6.0
"""Standard errors that a broken region's harm must have before it counts as one that data can show."""
ENOUGH_UNITS = 40
"""Clients in each arm below which no broken region is asked for."""
UNFAIR_UNITS = 2_000
"""Clients in each arm from which an unfair assignment must be found."""


@dataclass(frozen=True)
class Judged:
    """What the headline of one experiment was worth."""

    world: World
    decision: str
    sentence: str
    enabled: tuple[str, ...]
    """Cells that the verdict enables; all of them where it enables everywhere."""
    blocked_by: tuple[str, ...]

    @property
    def enables(self) -> bool:
        return self.decision in ("enable", "enable some")

    def enabled_lift(self) -> float:
        """The true effect on the clients who are switched on, as a logarithm."""
        rows = [self.world.names().index(name) for name in self.enabled]
        if not rows:
            return self.world.true_lift()
        share = self.world.share[rows]
        return float(share @ self.world.lift[rows] / share.sum())

    def enabled_harm(self) -> float:
        """Points of retransmission above the limit in the cell that has most, of those switched on."""
        rows = [self.world.names().index(name) for name in self.enabled] or range(len(self.world.share))
        return float(self.world.resent_more[list(rows)].max()) - 0.02

    def is_wrong_enable(self) -> bool:
        """It switches on what does not gain, or what breaks a limit."""
        return self.enables and (
            self.enabled_lift() <= 0 or not self.world.is_limit_kept() or self.enabled_harm() > 0.002
        )

    def why_wrong_enable(self) -> str:
        """The kind of a wrong "enable"."""
        if self.enabled_lift() <= 0:
            return "no effect" if self.world.effects == "none" else "a loss"
        kept = self.world.is_limit_kept()
        return "a limit broken in a region" if kept else "a limit broken over all clients"

    def is_wrong_keep(self) -> bool:
        """It says that nothing is gained, where a gain worth the change is there for all clients."""
        gains = self.world.true_lift() > np.log1p(WORTH) and self.world.is_limit_kept()
        return self.decision == "keep" and gains and self.world.broken_cell() is None

    def is_wrong_stop(self) -> bool:
        return self.decision == "stop" and self.world.is_limit_kept()

    def must_name(self) -> str | None:
        """The broken region that the records can show."""
        at = self.world.broken_cell()
        if at is None or not self.world.is_fair or self.blocked_by or len(self.world.share) == 1:
            return None
        units = self.world.units * self.world.share[at] / 2
        if units < ENOUGH_UNITS:
            return None
        if self.world.effects == "one broken":
            # The median's standard error: 1.25 deviations over the root of the clients, in each arm.
            error = 1.25 * float(np.hypot(self.world.spread, 0.3)) * (2 / units) ** 0.5
            size = -float(self.world.lift[at])
        else:
            error = 0.03 * (2 / units) ** 0.5
            size = float(self.world.resent_more[at]) - LIMIT_POINTS
        return self.world.names()[at] if size > DETECTABLE * error else None

    def line(self) -> str:
        """As a line of JSON. The world follows from its seed."""
        values = (self.world.seed, self.decision, self.sentence, self.enabled, self.blocked_by)
        return json.dumps(values, ensure_ascii=False)

    @staticmethod
    def from_line(text: str) -> Judged:
        seed, decision, sentence, enabled, blocked_by = json.loads(text)
        return Judged(draw(seed), decision, sentence, tuple(enabled), tuple(blocked_by))


LIMIT_POINTS = 0.02
PROGRESS = 100
"""Experiments between lines of progress."""


def judged(seed: int) -> Judged:
    """One experiment, analysed as `uncork experiment analyze --by place` does."""
    world = draw(seed)
    analysis, verdict = analyse_records(world)
    blocks = tuple(one.name for one in analysis.health if one.severity == "blocks")
    return Judged(world, verdict.decision, verdict.sentence, verdict.enable, blocks)


def analyse_records(world: World) -> tuple[Analysis, Verdict]:
    """As the command does, on an engine that compiles each query once."""
    engine = _engine()
    table = engine.load(records(world))
    request = Request(settings=Settings(keys=("place",)))
    return concluded(Records(table, engine.run, {}), request, Progress(False))


class Engine:
    """DuckDB that keeps the text of each query: of thousands of experiments all have the same."""

    def __init__(self) -> None:
        self._backend = connect(EngineSettings(threads=1)).backend
        self._texts: dict[object, str] = {}

    def load(self, rows: pa.Table) -> ir.Table:
        name = f"records_{len(rows.column_names)}"
        self._backend.con.register("loaded", rows)
        self._backend.con.execute(f"create or replace table {name} as select * from loaded")
        return self._backend.table(name)

    def run(self, query: ir.Table) -> pa.Table:
        operation = query.op()
        if operation not in self._texts:
            self._texts[operation] = str(self._backend.compile(query))
        found = self._backend.con.sql(self._texts[operation]).to_arrow_table()
        return found.cast(query.schema().to_pyarrow())


@cache
def _engine() -> Engine:
    return Engine()


@dataclass(frozen=True)
class Rate:
    """One line of the table: what may seldom happen, how often it happened, and its bar."""

    name: str
    count: int
    of: int
    bar: float

    def line(self) -> str:
        share = 100 * self.count / self.of if self.of else 0.0
        is_kept = "yes" if share <= 100 * self.bar else "no"
        return (
            f"| {self.name} | {self.count} | {self.of:,} | {share:.2f} % | {100 * self.bar:g} % | {is_kept} |"
        )


def rates(found: Sequence[Judged]) -> list[Rate]:
    """The bars."""
    fair = [one for one in found if one.world.is_fair]
    unfair = [one for one in found if not one.world.is_fair and one.world.units >= 2 * UNFAIR_UNITS]
    named = [(one, name) for one in fair if (name := one.must_name())]
    return [
        Rate("wrong “enable”", sum(one.is_wrong_enable() for one in fair), len(fair), 0.01),
        Rate("wrong “keep”", sum(one.is_wrong_keep() for one in fair), len(fair), 0.02),
        Rate("wrong “stop”", sum(one.is_wrong_stop() for one in fair), len(fair), 0.01),
        Rate(
            "broken region not named", sum(name not in one.sentence for one, name in named), len(named), 0.01
        ),
        Rate("fair test blocked", sum(bool(one.blocked_by) for one in fair), len(fair), 0.005),
        Rate("unfair test passed", sum(not one.blocked_by for one in unfair), len(unfair), 0.01),
    ]


def decisions(found: Sequence[Judged]) -> list[str]:
    """Headlines by kind of effect, of fair experiments."""
    lines = [
        "| true effect | enable | enable some | keep | stop | wait | blocked |",
        "|---|--:|--:|--:|--:|--:|--:|",
    ]
    kinds = ("enable", "enable some", "keep", "stop", "wait", "blocked")
    for effects in ("none", "equal", "mixed", "one broken"):
        some = [one for one in found if one.world.is_fair and one.world.effects == effects]
        counts = Counter(one.decision for one in some)
        lines.append(f"| {effects} | " + " | ".join(str(counts[kind]) for kind in kinds) + " |")
    return lines


def wrong_enables(found: Sequence[Judged]) -> list[str]:
    """Kinds of wrong "enable" of fair experiments, and what chance gives."""
    fair = [one for one in found if one.world.is_fair]
    kinds = Counter(one.why_wrong_enable() for one in fair if one.is_wrong_enable())
    count = sum(one.world.effects == "none" for one in fair)
    return [
        "| wrong “enable”: true is | count |",
        "|---|--:|",
        *(f"| {kind} | {number} |" for kind, number in kinds.most_common()),
        "",
        "Without any effect, a 95 % interval is above zero in 2.5 % of the experiments:",
        f"{0.025 * count:.0f} of {count}.",
    ]


def page(found: Sequence[Judged], command: str) -> str:
    """The evidence page."""
    lines = rates(found)
    missed = [rate.name for rate in lines if rate.of and rate.count > rate.bar * rate.of]
    conclusion = (
        "No headline is wrong more often than its maximum."
        if not missed
        else f"More often than its maximum: {', '.join(missed)}."
    )
    return "\n".join(
        [
            "# Verdicts against the truth",
            "",
            f"{conclusion} {len(found):,} experiments with a known truth were drawn and analysed.",
            "",
            "| what | count | of | share | maximum | kept |",
            "|---|--:|--:|--:|--:|---|",
            *(rate.line() for rate in lines),
            "",
            "Headlines of fair experiments, by what is true:",
            "",
            *decisions(found),
            "",
            *wrong_enables(found),
            "",
            "Experiments have 20 to 20,000 clients, 1 to 200 regions and effects of −20 to +30 %. A broken",
            "region loses 20 to 85 %. Requests per client follow a Pareto distribution. 15 % of the",
            "experiments have an unfair assignment: 45 of 100 clients are treated.",
            "",
            f"A broken region counts as one that the records can show from {ENOUGH_UNITS} clients in each",
            f"arm and a harm of {DETECTABLE:g} standard errors. An unfair test counts from",
            f"{UNFAIR_UNITS:,} clients in each arm.",
            "",
            f"Command, in `python/uncork`: `{command}`.",
            "",
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--experiments", type=int, default=2_000, help="number of experiments [default: 2000]"
    )
    parser.add_argument("--first", type=int, default=0, help="seed of the first [default: 0]")
    parser.add_argument("--jobs", type=int, default=2, help="processes [default: 2]")
    parser.add_argument("--results", type=Path, help="append each result to this file, and continue from it")
    parser.add_argument("--page", type=Path, help="write the evidence page to this file")
    parser.add_argument("--wrong", action="store_true", help="print each headline that is wrong")
    arguments = parser.parse_args()
    seeds = range(arguments.first, arguments.first + arguments.experiments)
    found = all_judged(seeds, arguments.jobs, arguments.results)
    text = page(found, f"python bench/verdicts.py --experiments {arguments.experiments}")
    if arguments.wrong:
        print_wrong(found)
    sys.stdout.write(text)
    if arguments.page:
        arguments.page.parent.mkdir(parents=True, exist_ok=True)
        arguments.page.write_text(text, encoding="utf-8")


def all_judged(seeds: Sequence[int], jobs: int, results: Path | None) -> list[Judged]:
    """In the order of the seeds, with progress."""
    known = _known(results)
    missing = [seed for seed in seeds if seed not in known]
    with ProcessPoolExecutor(jobs) as pool:
        for count, one in enumerate(pool.map(judged, missing, chunksize=8), 1):
            known[one.world.seed] = one
            if results:
                with results.open("a", encoding="utf-8") as file:
                    file.write(f"{one.line()}\n")
            if count % PROGRESS == 0 or count == len(missing):
                print(f"{count:,} of {len(missing):,} experiments", file=sys.stderr, flush=True)
    return [known[seed] for seed in seeds]


def _known(results: Path | None) -> dict[int, Judged]:
    """By seed."""
    if results is None or not results.exists():
        return {}
    found = map(Judged.from_line, results.read_text(encoding="utf-8").splitlines())
    return {one.world.seed: one for one in found}


def print_wrong(found: Sequence[Judged]) -> None:
    """Each experiment with a wrong headline, and its truth."""
    for one in found:
        if wrong := faults(one):
            world = one.world
            harm = ", ".join(f"{name} {100 * value:+.1f} pp" for name, value in world.true_harm().items())
            print(
                f"{world.seed}: {', '.join(wrong)}: {world.units} clients, {len(world.share)} cells, "
                f"effects {world.effects}, guardrails {world.guardrails}, Simpson {world.is_simpson}, "
                f"lift {100 * np.expm1(world.true_lift()):+.1f} %, {harm}, broken {one.must_name()}\n"
                f"    {one.decision}: {one.sentence} {one.blocked_by}"
            )


def faults(one: Judged) -> list[str]:
    """In what the headline is wrong; empty if it is not."""
    world, broken = one.world, one.must_name()
    found = {
        "wrong enable": world.is_fair and one.is_wrong_enable(),
        "wrong keep": world.is_fair and one.is_wrong_keep(),
        "wrong stop": world.is_fair and one.is_wrong_stop(),
        "not named": broken is not None and broken not in one.sentence,
        "fair blocked": world.is_fair and bool(one.blocked_by),
        "unfair passed": not world.is_fair and world.units >= 2 * UNFAIR_UNITS and not one.blocked_by,
    }
    return [name for name, is_so in found.items() if is_so]


if __name__ == "__main__":
    main()
