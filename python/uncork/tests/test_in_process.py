"""The laboratory in this process: the bytes of the program, tables for data frames, progress, figures."""

import dataclasses
import json
import os
import signal
import subprocess
import sys
import threading
import time
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import pyarrow as pa
import pytest

import uncork
from capability import not_run
from uncork import toml

pytestmark = pytest.mark.module

SMALL = {"size": "200kB", "seeds": 3}
SCENARIO = """\
title = "Two"
[run]
seeds = 2
sample = "10ms"
[path]
rate = "20mbit"
rtt = "20ms"
[flow.main]
transfer = "50kB"
cc = "cubic"
[matrix]
"flow.main.cc" = ["cubic", "bbr3"]
"path.loss" = ["0%", "1%"]
"""
DATA = {
    "title": "Two",
    "run": {"seeds": 2, "sample": "10ms"},
    "path": {"rate": "20mbit", "rtt": "20ms"},
    "flow": {"main": {"transfer": "50kB", "cc": "cubic"}},
    "matrix": {"flow.main.cc": ["cubic", "bbr3"], "path.loss": ("0%", "1%")},
}


def printed(*arguments: str) -> str:
    """What the program prints."""
    try:
        program = uncork.find_bin()
    except uncork.InputError:
        not_run("programs", "build it (cargo build --release --features full), or set UNCORK to its path")
    wide = {**os.environ, "COLUMNS": "100"}
    done = subprocess.run([program, *arguments], capture_output=True, text=True, check=False, env=wide)
    assert done.returncode in (0, 1), done.stderr
    return done.stdout


@cache
def small() -> Any:
    return uncork.compare(**SMALL)  # type: ignore[arg-type]


@cache
def two() -> uncork.Result:
    return uncork.run(SCENARIO)


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({}, ""),
        (
            {"cc": ["cubic", "bbr3:loss_floor+cubic"], "flows": 2},
            "--cc cubic,bbr3:loss_floor+cubic --flows 2",
        ),
        ({"rate": ["5mbit", "20mbit"], "loss": ("0%", "1%")}, "--rate 5mbit,20mbit --loss 0%,1%"),
        ({"preset": "lte", "rtt": "30ms", "queue": "codel"}, "--preset lte --rtt 30ms --queue codel"),
        (
            {"loss": "gilbert:mean=1%,burst=5", "loss_position": "before", "jitter": "1ms"},
            "--loss gilbert:mean=1%,burst=5 --loss-position before --jitter 1ms",
        ),
        (
            {"host_jitter": "none", "buffer": "50p", "start": "together", "seed": 7},
            "--host-jitter none --buffer 50p --start together --seed 7",
        ),
    ],
)
def test_a_comparison_has_the_bytes_of_the_program(options: dict[str, Any], line: str) -> None:
    found = uncork.compare(**{**SMALL, **options})
    words = ["compare", "--size", "200kB", "--seeds", "3", *line.split()]
    assert found.json == printed(*words, "--format", "json")
    assert found.csv == printed(*words, "--format", "csv")
    assert printed(*words, "-q").endswith(str(found))


def test_a_duration_has_the_bytes_of_the_program() -> None:
    found = uncork.compare(duration="2s", cc="bbr1+cubic", seeds=1, jobs=1)
    words = ["compare", "--duration", "2s", "--cc", "bbr1+cubic", "--seeds", "1"]
    assert found.json == printed(*words, "--format", "json")


@pytest.mark.parametrize("engine", ["sim", "quic-sim"])
def test_a_scenario_has_the_bytes_of_the_program(
    engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("it's two.toml").write_text(SCENARIO)
    words = ["lab", "run", "it's two.toml", "--set", "path.rtt=30ms", "--set", "run.seeds=1", "--on", engine]
    changed: dict[str, object] = {"path.rtt": "30ms", "run.seeds": 1}
    for given in ("it's two.toml", Path("it's two.toml")):
        found = uncork.run(given, set=changed, on=engine)
        assert found.json == printed(*words, "--format", "json", "-q")
        assert str(found) == printed(*words, "-q")


def test_a_built_in_scenario_has_the_bytes_of_the_program() -> None:
    words = ["lab", "run", "litespeed-latency", "--set", "run.seeds=1", "--format", "json", "-q"]
    assert uncork.run("litespeed-latency", set={"run.seeds": 1}).json == printed(*words)


def test_saved_files_have_the_bytes_of_the_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("scenario.toml").write_text(SCENARIO)
    printed("lab", "run", "scenario.toml", "-o", "by-program", "-q")
    report = uncork.run(SCENARIO).save("in-process")
    assert report == Path("in-process/report.html")
    files = sorted(path.name for path in Path("in-process").iterdir())
    assert len(files) == 7
    for name in files:
        assert Path("in-process", name).read_bytes() == Path("by-program", name).read_bytes(), name


def test_saved_comparisons_have_the_bytes_of_the_program(tmp_path: Path) -> None:
    printed("compare", "--size", "200kB", "--seeds", "3", "-o", str(tmp_path / "by-program"), "-q")
    small().save(tmp_path / "in-process")
    for path in (tmp_path / "in-process").iterdir():
        assert path.read_bytes() == (tmp_path / "by-program" / path.name).read_bytes(), path.name
    assert len(small().series) > 10


def test_toml_dicts_and_dataclasses_are_the_same_scenario() -> None:
    @dataclasses.dataclass
    class Link:
        rate: str
        rtt: str

    @dataclasses.dataclass
    class Scenario:
        title: str
        run: dict[str, Any]
        path: Link
        flow: dict[str, Any]
        matrix: dict[str, Any]
        about: str | None = None

    of_class = Scenario(**{**DATA, "path": Link("20mbit", "20ms")})  # type: ignore[arg-type]
    cells = [uncork.run(one).document["cells"] for one in (DATA, of_class)]
    assert cells == [two().document["cells"]] * 2


def test_data_are_the_toml_of_the_same_values() -> None:
    import tomllib

    data = {
        "text": 'quote " back \\ tab \t line \n del \x7f emoji \N{ROCKET} \N{SNOWMAN}',
        "numbers": [1, -2, 0.1, 1e-7, 1e22, True],
        "a.b c": {"x": {"y": []}, "inline": [{"k": "v", "n": {"m": 1}}]},
    }
    assert tomllib.loads(toml.document(data)) == data


def test_tables_are_arrow_streams() -> None:
    result = two()
    cells = pa.table(result)
    assert cells.num_rows == len(result.csv.splitlines()) - 1
    assert cells.column_names == result.cells.column_names == result.csv.splitlines()[0].split(",")
    assert cells.schema.field("value").type == pa.float64()
    assert pa.schema(result) == cells.schema
    flows = pa.table(result.flows)
    assert flows.num_rows == 2 * 2 * 2 == len(result.flows)
    assert set(flows["cc"].to_pylist()) == {"cubic", "bbr3"}
    assert pa.table(result.series).num_rows > 10
    assert pa.table(result.objects).num_rows == 8


def test_tables_have_the_values_of_the_csv() -> None:
    from io import StringIO

    import pandas as pd

    numbers = {name: [""] for name in ("value", "low", "high")}
    csv = pd.read_csv(StringIO(two().csv), keep_default_na=False, na_values=numbers)
    pd.testing.assert_frame_equal(pd.DataFrame.from_arrow(two()), csv, check_dtype=False)


def test_data_frames_read_the_tables() -> None:
    import duckdb
    import pandas as pd

    frame = pd.DataFrame.from_arrow(small())
    assert frame.query("metric == 'completion_p50'")["cc"].tolist() == ["cubic", "bbr1", "bbr3"]
    flows = small().flows
    assert duckdb.sql("SELECT count(*) FROM flows").fetchall() == [(9,)], flows


def test_the_laboratory_needs_no_other_package() -> None:
    code = "import uncork; print(uncork.compare(size='10kB', seeds=1, cc='cubic').flows.column_names[0])"
    done = subprocess.run(
        [sys.executable, "-S", "-c", code], capture_output=True, text=True, check=False, env=ALONE
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.strip()


ALONE = {**os.environ, "PYTHONPATH": str(Path(uncork.__file__).parents[1])}


def test_importing_the_package_loads_no_module() -> None:
    code = "import sys, uncork; uncork.InputError; uncork.find_bin; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-S", "-c", code], capture_output=True, text=True, check=True, env=ALONE
    )
    assert not {"uncork._native", "uncork.laboratory", "numpy"} & set(done.stdout.split())


def test_a_missing_module_is_an_exception_with_the_remedy() -> None:
    code = (
        "import sys; sys.modules['uncork._native'] = None\n"
        "import uncork; uncork.find_bin\n"
        "try: uncork.compare()\nexcept uncork.InputError as it: print(it.place, '|', it.remedy)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("uncork._native | run: pip install --force-reinstall uncork")


@pytest.mark.parametrize(
    ("package", "call", "extra"),
    [("gymnasium", "import uncork.gym", "gym"), ("matplotlib", "uncork.compare(size='1kB').plot()", "plot")],
)
def test_a_missing_extra_is_an_exception_with_the_remedy(package: str, call: str, extra: str) -> None:
    code = (
        f"import sys; sys.modules[{package!r}] = None\n"
        f"import uncork\ntry: {call}\nexcept uncork.InputError as it: print(it)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert f"{package} is not installed; run: pip install 'uncork[{extra}]'" in done.stdout


def test_a_notebook_shows_the_table() -> None:
    assert small()._repr_html_().startswith("<pre>200 kB over 20 Mbit/s")
    assert "200 kB" in repr(small())


def test_progress_is_reported_and_ends_with_all() -> None:
    calls: list[tuple[int, int]] = []
    uncork.compare(**SMALL, progress=lambda done, total: calls.append((done, total)))  # type: ignore[arg-type]
    assert calls == sorted(calls)
    assert calls[-1] == (9, 9)


def test_a_notebook_has_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    class ZMQInteractiveShell:
        pass

    class ProgressBar:
        bars: ClassVar[list[Any]] = []

        def __init__(self, total: int) -> None:
            self.total, self.progress, self.shown = total, 0, False
            self.bars.append(self)

        def display(self) -> None:
            self.shown = True

    notebook, display = ModuleType("IPython"), ModuleType("IPython.display")
    vars(notebook).update(get_ipython=ZMQInteractiveShell, display=display)
    vars(display).update(ProgressBar=ProgressBar)
    monkeypatch.setitem(sys.modules, "IPython", notebook)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    uncork.compare(**SMALL)  # type: ignore[arg-type]
    (bar,) = ProgressBar.bars
    assert (bar.total, bar.progress, bar.shown) == (9, 9, True)
    uncork.compare(**SMALL, progress=False)  # type: ignore[arg-type]
    assert len(ProgressBar.bars) == 1


def test_an_exception_of_progress_ends_the_call() -> None:
    def fails(done: int, total: int) -> None:
        raise RuntimeError(f"{done} of {total}")

    with pytest.raises(RuntimeError, match="of 9"):
        uncork.compare(**SMALL, progress=fails)  # type: ignore[arg-type]


def test_an_interrupt_ends_a_long_run() -> None:
    # Another test in this process may have started Spark, which takes the signal.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        uncork.compare(duration="20s", rate="100mbit", seeds=200)
    # All runs together take minutes.
    assert time.monotonic() - began < 30


def test_other_threads_work_while_it_runs() -> None:
    ticks: list[float] = []
    ended = threading.Event()

    def tick() -> None:
        while not ended.wait(0.005):
            ticks.append(time.monotonic())

    thread = threading.Thread(target=tick)
    thread.start()
    uncork.compare(seeds=20)
    ended.set()
    thread.join()
    assert len(ticks) > 3


def test_a_doubt_is_a_warning() -> None:
    with pytest.warns(UserWarning, match="scenario: "):
        uncork.run(SCENARIO, set={"run.end": "10ms"})


def test_the_document_is_json() -> None:
    assert json.loads(small().json) == small().document
    assert small().command.startswith("uncork compare --rate 20mbit --rtt 50ms")


def test_a_plot_is_one_call() -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    axes = small().plot()
    assert axes.get_ylabel() == "completion_p50"
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["cubic", "bbr1", "bbr3"]
    assert two().plot("timeouts_mean").get_ylabel() == "timeouts_mean"
    with pytest.raises(uncork.InputError, match="metric=speed"):
        small().plot("speed")
