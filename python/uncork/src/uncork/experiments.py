"""Experiments as an API: what `uncork experiment analyze` does, with results as data frames and figures.

Options and their defaults are those of the command. Wrong input raises `InputError`, with place, problem and
remedy.
"""

from __future__ import annotations

import argparse
import contextvars
import html
import json
import os
import shlex
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from uncork.experiment.commands.analyze import (
    Outcome,
    analysed,
    keys_of,
    request_of,
    save,
    settings_of,
)
from uncork.experiment.commands.common import Progress, read_records
from uncork.experiment.options.analyze import add_analyze
from uncork.experiment.report import figures
from uncork.experiment.report.page import document, figure
from uncork.experiment.result import Analysis, Finding, Guarded, Row, Verdict
from uncork.experiment.terminal import scorecard
from uncork.measure.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

PathLike: TypeAlias = str | os.PathLike[str]
WIDTH = 100
"""Characters of a text."""


class Experiment:
    """Records of an experiment: files and directories as `uncork serve --records` and `uncork steer record`
    write them, or logs with a `mapping`.

    `networks` names client networks, `where` and `exclude` select records by `COLUMN=VALUE`, and
    `unit_columns` are the columns that make a unit.
    """

    def __init__(
        self,
        records: PathLike | Iterable[PathLike],
        *,
        mapping: PathLike | None = None,
        networks: PathLike | None = None,
        where: Sequence[str] = (),
        exclude: Sequence[str] = (),
        unit_columns: Sequence[str] | None = None,
        engine: Literal["duckdb", "spark", "clickhouse"] = "duckdb",
        memory: str = "3GB",
    ) -> None:
        self._paths = _paths(records)
        self._reading = {
            "--mapping": mapping,
            "--networks": networks,
            "--where": where,
            "--exclude": exclude,
            "--unit-columns": unit_columns,
            "--engine": engine if engine != "duckdb" else None,
            "--memory": memory if memory != "3GB" else None,
        }

    def __repr__(self) -> str:
        return f"Experiment({', '.join(map(repr, self._paths))})"

    def analyze(
        self,
        *,
        by: Sequence[str] | None = None,
        primary: str | None = None,
        guardrails: Sequence[str] = (),
        control: str | None = None,
        treated: str | None = None,
        experiment: str | None = None,
        arm: str | None = None,
        since: str | None = None,
        until: str | None = None,
        share: str | None = None,
        calendar: PathLike | None = None,
        place: str | None = None,
        look: str | None = None,
        worth: str | None = None,
        detect: str | None = None,
        past: bool = True,
    ) -> Report:
        """Compares two arms, as a whole and `by` keys such as region, asn or size_class, most important
        first.

        `primary` decides, such as `throughput:p50`; `guardrails` are limits such as `retransmitted=2pp`.
        `calendar` is the schedule.csv of a switchback. `look` is `K/N` of N planned looks. Without `past` no
        interval is made narrower by the time before the switch.
        """
        options = {
            "--by": by,
            "--primary": primary,
            "--guardrail": guardrails,
            "--control": control,
            "--treated": treated,
            "--experiment": experiment,
            "--arm": arm,
            "--since": since,
            "--until": until,
            "--share": share,
            "--calendar": calendar,
            "--place": place,
            "--look": look,
            "--worth": worth,
            "--detect": detect,
        }
        words = ["analyze", *self._paths, *_words(self._reading), *_words(options)]
        if not past:
            words.append("--no-past")
        try:
            # Metrics that the records declare end with the analysis.
            outcome = contextvars.copy_context().run(_analyse, words)
        except InputError as error:
            is_path = f"./{error.place}" in self._paths
            place = error.place if is_path else _argument(error.place)
            raise InputError(place, error.problem, error.remedy) from error
        return Report(outcome, _command(words))


def _paths(records: PathLike | Iterable[PathLike]) -> list[str]:
    """Paths that no parser takes for options."""
    paths = [records] if isinstance(records, str | os.PathLike) else records
    several = list(paths) if isinstance(paths, Iterable) and not isinstance(paths, bytes) else [paths]
    for path in several:
        if not isinstance(path, str | os.PathLike):
            remedy = "write Experiment('records'), or a list of paths"
            raise InputError(f"records={records!r}", "is not a path, and no list of paths", remedy)
    given = [os.fsdecode(path) for path in several]
    return [f"./{path}" if path.startswith("-") else path for path in given]


REPEATED = ("--where", "--exclude", "--guardrail")
"""Options that are repeated; several values of others have commas between them."""


def _words(options: Mapping[str, Any]) -> list[str]:
    """The options that are given, as words of the command."""
    words = []
    for option, value in options.items():
        if value is None:
            continue
        if isinstance(value, str | os.PathLike):
            if option in REPEATED or option in ("--by", "--unit-columns"):
                raise InputError(
                    f"{option[2:].replace('-', '_')}={value!r}", "not a list", f"write [{value!r}]"
                )
            words.append(f"{option}={os.fspath(value)}")
            continue
        values = [str(one) for one in value] if isinstance(value, Iterable) else [str(value)]
        if option in REPEATED:
            words += [f"{option}={one}" for one in values]
        else:
            words.append(f"{option}={','.join(_named(one) for one in values)}")
    return words


def _argument(place: str) -> str:
    """An option of the command as an argument: `--unit-columns a` is `unit_columns a`."""
    option, space, rest = place.partition(" ")
    return option[2:].replace("-", "_") + space + rest if option.startswith("--") else place


def _named(name: str) -> str:
    """A name in a list with commas."""
    return f'"{name}"' if "," in name else name


def _analyse(words: Sequence[str]) -> Outcome:
    parser = argparse.ArgumentParser(exit_on_error=False)
    add_analyze(parser)
    try:
        options = parser.parse_args(words[1:])
    except argparse.ArgumentError as error:
        raise InputError(error.argument_name or "options", error.message) from error
    progress = Progress()
    records = read_records(options, progress)
    keys = () if options.calendar else keys_of(options.by, records.table)
    settings = settings_of(options, keys)
    return analysed(records, request_of(options, settings), _command(words), progress)


def _command(words: Sequence[str]) -> str:
    return shlex.join(["uncork", "experiment", *words])


class Report:
    """What an analysis found: the verdict, tables as data frames of pandas, and figures as SVG."""

    def __init__(self, outcome: Outcome, command: str) -> None:
        self._outcome = outcome
        self.command = command
        """The command that repeats it."""

    @property
    def verdict(self) -> Verdict:
        """The decision (`enable`, `keep`, `wait`, ...), its sentence and its reasons."""
        return self._outcome.verdict

    @property
    def analysis(self) -> Analysis:
        """All that was found, as dataclasses."""
        return self._outcome.analysis

    @property
    def json(self) -> str:
        """The document, as `--format json` prints it (docs/schemas/experiment-1.json)."""
        return self._outcome.text

    @property
    def document(self) -> dict[str, Any]:
        """`json` as objects of Python."""
        parsed: dict[str, Any] = json.loads(self.json)
        return parsed

    @cached_property
    def scorecard(self) -> pd.DataFrame:
        """A row for each measure over all records: values of both arms, change and its interval."""
        return _frame(_row(row) for row in self.analysis.scorecard)

    @cached_property
    def guardrails(self) -> pd.DataFrame:
        """A row for each guardrail: its limit, the harm with its interval, and its state."""
        return _frame(_guardrail(one) for one in self.analysis.guardrails)

    @cached_property
    def cells(self) -> pd.DataFrame:
        """A row for each value of each key of `by`, with the primary measure and the advice."""
        return _frame(
            {
                "key": cell.key,
                "value": cell.value,
                "control_units": cell.units[0],
                "treated_units": cell.units[1],
                "share": cell.share,
                **_row(cell.primary),
                "advice": cell.advice,
                "why": cell.why,
            }
            for cell in self.analysis.cells
        )

    @cached_property
    def health(self) -> pd.DataFrame:
        """A row for each check of the records."""
        return _frame(_finding(one) for one in self.analysis.health)

    @cached_property
    def figures(self) -> dict[str, Figure]:
        """The figures of the page, by name."""
        return {one.id: Figure(one, n) for n, one in enumerate(figures.all_of(self.analysis), 1)}

    def save(self, directory: PathLike) -> Path:
        """Writes result.json and report.html, and returns the path of the latter."""
        return save(self._outcome, Path(directory), self.command)

    def __str__(self) -> str:
        return scorecard(self.analysis, self.verdict, WIDTH)

    def __repr__(self) -> str:
        return f"<uncork.Report: {self.verdict.sentence}>"

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"


class Figure:
    """A figure of the page. Notebooks show it."""

    def __init__(self, of: figures.Figure, number: int) -> None:
        self._of, self._number = of, number

    @property
    def title(self) -> str:
        """What it shows."""
        return self._of.title

    def html(self) -> str:
        """A page with the drawing and its caption: no script, no network."""
        return document(self.title, figure(self._of, self._number))

    def _repr_html_(self) -> str:
        style = "border: 0; width: 100%; height: 32em"
        return f'<iframe srcdoc="{html.escape(self.html())}" style="{style}"></iframe>'


def _frame(rows: Iterable[dict[str, object]]) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(list(rows))


def _row(row: Row | None) -> dict[str, object]:
    """Measure, values, and the change as a share with its interval: 0.05 is 5 % more."""
    effect = row.effect if row is not None else None
    return {
        "measure": str(row.measure) if row is not None else None,
        "role": row.role if row is not None else None,
        "unit": row.unit if row is not None else None,
        "control": row.control if row is not None else None,
        "treated": row.treated if row is not None else None,
        "change": effect.ratio - 1 if effect else None,
        "low": effect.ratio_low - 1 if effect else None,
        "high": effect.ratio_high - 1 if effect else None,
        "p_value": effect.p_value if effect else None,
        "q_value": row.q_value if row is not None else None,
        "verdict": row.verdict if row is not None else None,
        "reason": row.reason if row is not None else None,
    }


def _guardrail(one: Guarded) -> dict[str, object]:
    return {
        "measure": str(one.row.measure),
        "limit": one.limit,
        "state": one.state,
        "harm": one.harm,
        "low": one.harm_low,
        "high": one.harm_high,
        "control": one.row.control,
        "treated": one.row.treated,
    }


def _finding(one: Finding) -> dict[str, object]:
    return {"check": one.name, "severity": one.severity, "sentence": one.sentence, "remedy": one.remedy}
