"""The stories of Spotify and Verizon, from the laboratory through `analyze`, against the published figures.

    python bench/stories.py -o stories

Runs the scenarios with `uncork lab run`, analyses the flows with `uncork experiment analyze`, prints a table,
and leaves each report under DIR. Set UNCORK if `uncork` is not on the PATH.
"""

import argparse
import contextlib
import io
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from published import STORIES, Figure, Look, Story

from uncork.experiment import words
from uncork.experiment.cli import main as experiment


@dataclass(frozen=True)
class Comparison:
    """A published figure, and the result of the analysis."""

    figure: Figure
    here: str
    agrees: str


def run(story: Story, directory: Path, seeds: int | None) -> Path:
    """Runs the story's scenario; its directory of results."""
    program, out = os.environ.get("UNCORK", "uncork"), directory / "lab"
    command = [program, "lab", "run", *story.lab, "--seeds", str(seeds or story.seeds), "-o", str(out)]
    print(f"$ {shlex.join(command)}", file=sys.stderr, flush=True)
    # Status 1 says that a threshold of the scenario is missed, which these thresholds do not decide.
    done = subprocess.run([*command, "-q"], stdout=subprocess.DEVNULL, check=False)
    if done.returncode not in (0, 1):
        raise SystemExit(done.returncode)
    return out


def analyse(flows: Path, look: Look, out: Path) -> dict[str, Any]:
    """The result document of one analysis. Its report stays in `out`."""
    command = ["analyze", str(flows), *look.options, "-o", str(out)]
    print(f"$ {shlex.join(['uncork', 'experiment', *command])}", file=sys.stderr, flush=True)
    with contextlib.redirect_stdout(io.StringIO()):
        status = experiment(command)
    if status not in (0, 1):
        raise SystemExit(status)
    found: dict[str, Any] = json.loads((out / "result.json").read_text(encoding="utf-8"))
    return found


def compare(figure: Figure, result: dict[str, Any]) -> Comparison:
    """The figure and its row in the result: a change, or the level of one arm."""
    row = next((row for row in _rows(figure, result) if row["measure"] == figure.measure), None)
    if row is None:
        return Comparison(figure, "not measured", "")
    effect = row["effect"]
    if effect is None:
        arms = [words.quantity(row[arm], row["unit"]) for arm in ("control", "treated")]
        return Comparison(figure, f"{arms[0]} and {arms[1]}: {row['reason']}", "")
    low, high = effect["ratio_low"], effect["ratio_high"]
    if figure.is_factor:
        here = f"{effect['ratio']:.2f} ({low:.2f} to {high:.2f})"
    else:
        here = f"{words.change(effect['ratio'])} ({words.interval(low, high)})"
    return Comparison(figure, here, agrees(figure, low, effect["ratio"], high))


def _rows(figure: Figure, result: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Rows of the figure's cell, or of all records."""
    if figure.cell is None:
        yield from result["scorecard"]
        return
    for cell in result["cells"]:
        if cell["value"] == figure.cell:
            yield from [cell["primary"], *cell["rows"]]


def agrees(figure: Figure, low: float, ratio: float, high: float) -> str:
    """`agrees` if the estimate is in the published range, and no chance result where there is a change;
    `open` if only its interval reaches it.
    """
    if figure.range is None:
        return ""
    least, most = figure.range
    if low > most or high < least:
        return "differs"
    may_be_nothing = low <= 1 <= high and not least <= 1 <= most
    return "agrees" if least <= ratio <= most and not may_be_nothing else "open"


def page(found: Sequence[tuple[Story, list[tuple[dict[str, Any], list[Comparison]]]]]) -> str:
    """The tables in Markdown."""
    lines: list[str] = []
    for story, looks in found:
        lines += [f"## {story.title}", "", story.about, ""]
        for (result, rows), look in zip(looks, story.looks, strict=True):
            lines += table(look, result, rows)
    return "\n".join(lines)


def table(look: Look, result: dict[str, Any], rows: Sequence[Comparison]) -> list[str]:
    """One analysis in Markdown: its verdict, and its results next to the published figures."""
    verdict, records = result["verdict"]["sentence"], result["facts"]["rows"]
    lines = [f"{look.title} {records:,} records. Verdict: *{verdict}*", ""]
    if rows:
        lines += ["| figure | published | here, 95 % interval | comparison |", "|---|---|---|---|"]
        lines += [*(_line(one) for one in rows), ""]
    return lines


def _line(one: Comparison) -> str:
    return f"| {one.figure.what} | {one.figure.published} | {one.here} | {one.agrees} |"


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("-o", "--output", type=Path, default=Path("stories"), metavar="DIR")
    parser.add_argument("--story", action="append", choices=[story.name for story in STORIES])
    parser.add_argument("--seeds", type=int, metavar="N", help="runs of each cell; fewer take less time")
    parser.add_argument("--analyse-only", action="store_true", help="of runs that are there already")
    options = parser.parse_args(arguments)
    found = []
    for story in STORIES:
        if options.story and story.name not in options.story:
            continue
        directory = options.output / story.name
        flows = directory / "lab" if options.analyse_only else run(story, directory, options.seeds)
        looks = []
        for number, look in enumerate(story.looks, 1):
            result = analyse(flows / "flows.parquet", look, directory / f"analysis-{number}")
            looks.append((result, [compare(figure, result) for figure in look.figures]))
        found.append((story, looks))
    print(page(found))


if __name__ == "__main__":
    main()
