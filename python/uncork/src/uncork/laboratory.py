"""The simulator in this process: `compare` and `run`, as `uncork compare` and `uncork lab run`."""

from __future__ import annotations

import html
import json
import os
import shlex
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from uncork import toml
from uncork.measure import console
from uncork.measure.errors import InputError
from uncork.options import number, texts, unicode

try:
    from uncork import _native
except ImportError as error:
    raise InputError(
        "uncork._native",
        f"the module cannot be loaded ({error})",
        "run: pip install --force-reinstall uncork, or in a checkout: pip install -e .",
    ) from error

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Table: TypeAlias = _native.Table
"""A table for data frames, by the Arrow PyCapsule interface: `polars.DataFrame(table)`,
`pandas.DataFrame.from_arrow(table)`, `duckdb.sql("FROM table")`."""
Values: TypeAlias = str | Iterable[str]
Progress: TypeAlias = bool | Callable[[int, int], object] | None


class Result:
    """The result of a comparison or a scenario. As an Arrow stream it has a row for each metric of each cell
    and class.
    """

    def __init__(self, run: _native.LabRun, text: str) -> None:
        self._run, self._text = run, text
        for doubt in [*run.warnings(), *self.document["doubts"]]:
            warnings.warn(f"{self.document['name']}: {doubt}", stacklevel=3)

    @cached_property
    def json(self) -> str:
        """The document, byte for byte what `--format json` prints (docs/schemas/lab-2.json)."""
        return self._run.json()

    @cached_property
    def document(self) -> dict[str, Any]:
        """`json` as objects of Python."""
        parsed: dict[str, Any] = json.loads(self.json)
        return parsed

    @property
    def csv(self) -> str:
        """What `--format csv` prints."""
        return self._run.csv()

    @property
    def command(self) -> str:
        """The command that repeats it. A scenario without a file is `scenario.toml`, as `save` writes it."""
        return str(self.document["command"])

    @cached_property
    def cells(self) -> Table:
        """A row for each metric of each cell and class, with the columns of `csv`."""
        return self._run.cells()

    @cached_property
    def flows(self) -> Table:
        """A row for each flow of each run: `flows.parquet`."""
        return self._run.flows()

    @cached_property
    def objects(self) -> Table:
        """A row for each transfer and request: `objects.parquet`."""
        return self._run.objects()

    @cached_property
    def series(self) -> Table:
        """The state of flows over time: `series.parquet`. A scenario samples what its `run.sample` says, a
        comparison the first seed.
        """
        return self._with_series.series()

    @cached_property
    def _with_series(self) -> _native.LabRun:
        return self._run.with_series() or self._run

    def save(self, directory: str | os.PathLike[str]) -> Path:
        """Writes the files of `-o`, and returns the path of the report."""
        folder = Path(directory)
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in self._with_series.files().items():
            (folder / name).write_bytes(content)
        return folder / "report.html"

    def plot(self, metric: str | None = None, ax: Axes | None = None) -> Axes:
        """Draws a metric with its intervals, for each controller and cell; by default the metric that
        decides. Needs matplotlib.
        """
        from uncork.plots import draw

        return draw(self.document, metric, ax)

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"<uncork.Result: {self.document['title']}>"

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self._text)}</pre>"

    def __arrow_c_schema__(self) -> object:
        return self.cells.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.cells.__arrow_c_stream__(requested_schema)


def compare(
    *,
    preset: str | None = None,
    rate: Values | None = None,
    rtt: Values | None = None,
    loss: Values | None = None,
    loss_position: str | None = None,
    buffer: Values | None = None,
    queue: str | None = None,
    jitter: str | None = None,
    host_jitter: str | None = None,
    size: str | None = None,
    duration: str | None = None,
    start: str | None = None,
    initial_window: str | None = None,
    flows: int | None = None,
    cc: Values | None = None,
    seeds: int | None = None,
    seed: int | None = None,
    jobs: int | None = None,
    progress: Progress = None,
) -> Result:
    """Compares congestion controllers over a path, or over every combination of several values.

    The options and their defaults are those of `uncork compare`: 10 MB over 20 Mbit/s, 50 ms and 1 % random
    loss, by CUBIC, BBRv1 and BBRv3, ten times each. Quantities are texts with units. `jobs` is the number of
    threads. `progress` is called with the number of finished runs and of all; True shows a bar, and None
    shows one in notebooks and terminals.

    Raises `InputError`, with `place`, `problem` and `remedy`.
    """
    given = {name: value for name, value in locals().items() if name not in ("jobs", "progress")}
    ran = _native.compare(texts(given), _jobs(jobs), _shown(progress))
    return Result(ran, ran.short_text())


def run(
    scenario: object,
    *,
    set: Mapping[str, object] | None = None,
    on: str = "sim",
    jobs: int | None = None,
    progress: Progress = None,
) -> Result:
    """Runs a scenario: the name of a built-in one, a path that ends in .toml, TOML, a dict or a dataclass.

    `set` overrides values by dotted key, as `--set` does; `on` is the engine, `sim` or `quic-sim`. Raises
    `InputError` with the line as a note.
    """
    given, text = _source(scenario)
    if not isinstance(on, str):
        raise InputError(f"on={on!r}", "is not the name of an engine", "use sim or quic-sim")
    overrides = _settings({} if set is None else set)
    words = ["uncork lab run", _quoted(given), *([f"--on {on}"] if on != "sim" else [])]
    words += [f"--set {_quoted(f'{key}={value}')}" for key, value in overrides]
    ran = _native.run(
        given,
        text=text,
        set=overrides,
        on=on,
        command=" ".join(words),
        jobs=_jobs(jobs),
        progress=_shown(progress),
    )
    return Result(ran, ran.text())


def _jobs(jobs: int | None) -> int | None:
    if jobs is None:
        return None
    threads = number("jobs", jobs)
    if not 1 <= threads <= MAX_JOBS:
        raise InputError(
            f"jobs={threads}", "is not a number of threads", f"write 1 to {MAX_JOBS}, or leave it out"
        )
    return threads


MAX_JOBS = 1_000


def _source(scenario: object) -> tuple[str, str | None]:
    """A scenario as the command line has it, and its TOML if it is not a built-in one."""
    if isinstance(scenario, str) and ("\n" in scenario or "=" in scenario):
        return "scenario.toml", unicode("scenario", scenario)
    if isinstance(scenario, str | os.PathLike):
        given = unicode("scenario", os.fsdecode(scenario))
        return given, _read(given) if given.endswith(".toml") else None
    if toml.is_data(scenario):
        return "scenario.toml", toml.document(scenario)
    remedy = "give a name, a path, TOML, a dict or a dataclass"
    raise InputError("scenario", f"{type(scenario).__name__} is not a scenario", remedy)


def _read(path: str) -> str:
    try:
        return Path(path).read_text("utf-8")
    except (OSError, ValueError) as error:
        reason = "is not UTF-8 text" if isinstance(error, UnicodeError) else "cannot be read"
        detail = getattr(error, "strerror", None) or error
        raise InputError(path, f"{reason} ({detail})", "give the path of a scenario, or its text") from error


def _settings(changes: Mapping[str, object]) -> list[tuple[str, str]]:
    """Texts as they are, as `--set` takes them; other values as TOML."""
    if not isinstance(changes, Mapping):
        raise InputError("set", f"{type(changes).__name__} is not a dict", 'write set={"path.rtt": "30ms"}')
    texts = {key: it if isinstance(it, str) else toml.value(it, f"set {key}") for key, it in changes.items()}
    return [(unicode("set", str(key)), unicode(f"set {key}", text)) for key, text in texts.items()]


def _quoted(word: str) -> str:
    """For a shell, as the program quotes."""
    return shlex.quote(word).replace("""'"'"'""", r"'\''")


def _shown(progress: Progress) -> Callable[[int, int], object] | None:
    if callable(progress):
        return progress
    if progress is not None and not isinstance(progress, bool):
        raise InputError(
            f"progress={progress!r}", "cannot be called", "give a function of two numbers, True or False"
        )
    if progress is False:
        return None
    return _bar() or (_line if progress or console.is_live() else None)


def _line(done: int, total: int) -> None:
    console.live("" if done == total else f"{done} of {total} runs")


def _bar() -> Callable[[int, int], object] | None:
    """A bar, in a notebook."""
    shell = sys.modules.get("IPython")
    if shell is None or type(shell.get_ipython()).__name__ != "ZMQInteractiveShell":
        return None
    from IPython.display import ProgressBar

    bars: list[Any] = []

    def show(done: int, total: int) -> None:
        if not bars:
            bars.append(ProgressBar(total))
            bars[0].display()
        bars[0].progress = done

    return show
