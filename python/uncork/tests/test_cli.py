"""The command line, from the outside."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb
import jsonschema
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from demos import demo
from made import analysis, cell, guarded
from uncork.experiment import demo as generator
from uncork.experiment import terminal
from uncork.experiment.cli import main
from uncork.experiment.rows import Settings
from uncork.experiment.verdict import decide

COMMANDS = ["", "analyze", "demo", "design", "import", "export growthbook", "interference"]

DESIGN_SCHEMA = Path(__file__).parents[3] / "docs/schemas/experiment-design-1.json"


def records() -> str:
    return str(demo() / "records")


def failed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The last line on stderr of a command that exits with 2. On a busy machine, steps come before it."""
    capsys.readouterr()
    assert main(list(arguments)) == 2
    lines = capsys.readouterr().err.strip().splitlines()
    nth = next(nth for nth, line in enumerate(lines) if line.startswith("error: "))
    error = "\n".join(lines[nth:])
    assert all(re.match(r" *\d+ s  ", line) for line in lines[:nth]), lines
    assert "Traceback" not in error
    return error


@pytest.mark.parametrize("command", COMMANDS)
def test_help_begins_with_examples(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([*command.split(), "--help"])
    assert ended.value.code == 0
    text = capsys.readouterr().out
    assert text.startswith("Examples:\n  uncork experiment")
    assert max(map(len, text.splitlines())) <= 120


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["analyze"], ["PATH", "uncork experiment demo"]),
        (["analyze", "/nowhere"], ["/nowhere", "no such file"]),
        (["analyze", "RECORDS", "--control", "cubik"], ["--control", "'cubik'", "control"]),
        (["analyze", "RECORDS", "--treated", "bbr9"], ["--treated", "'bbr9'", "bbr"]),
        (["analyze", "RECORDS", "--by", "planet"], ["'planet'", "region"]),
        (
            ["analyze", "RECORDS", "--where", "planet=earth"],
            ["planet=earth", "'planet'", "COLUMN="],
        ),
        (["analyze", "RECORDS", "--where", "cc"], ["--where cc", "no value"]),
        (["analyze", "RECORDS", "--look", "3/2"], ["--look 3/2", "K/N"]),
        (["analyze", "RECORDS", "--primary", "speed"], ["--primary speed", "throughput"]),
        (["analyze", "RECORDS", "--primary", "throughput:p5"], ["throughput:p50"]),
        (["analyze", "RECORDS", "--guardrail", "retransmitted=2"], ["10%", "2pp"]),
        (["analyze", "RECORDS", "--guardrail", "first_byte:p90=1pp"], ["not a share", "first_byte:p90=10%"]),
        (
            ["analyze", "RECORDS", "--guardrail", "aborted=1pp", "--guardrail", "aborted=9pp"],
            ["--guardrail aborted=9pp", "has the limit 1pp already", "once"],
        ),
        (
            ["analyze", "RECORDS", "--guardrail", "early_resent=2pp"],
            ["early_resent", "no record", "leave it out"],
        ),
        (["analyze", "RECORDS", "--by", "arm"], ["--by arm", "depends on the arm", "--by country"]),
        (["analyze", "RECORDS", "--show-sql", "duckdb", "--by", "arm"], ["--by arm", "depends on the arm"]),
        (
            ["analyze", "RECORDS", "--unit-columns", "service_country", "--by", "service_country"],
            ["--by service_country", "names units"],
        ),
        (
            ["analyze", "RECORDS", "--since", "2026-11-09", "--until", "2026-11-02"],
            ["--since 2026-11-09", "not before --until 2026-11-02"],
        ),
        (["analyze", "RECORDS", "--worth", "0.01"], ["--worth 0.01", "2%"]),
        (["analyze", "RECORDS", "--since", "yesterday"], ["--since yesterday", "2026-11-02"]),
        (["analyze", "RECORDS", "--experiment", "other"], ["other"]),
        (["analyze", "RECORDS", "--mapping", "apache"], ["apache", "nginx"]),
        (["design"], ["-o DIR"]),
        (["design", "-o", "OUT"], ["--key", "openssl rand -hex 16"]),
        (["design", "-o", "OUT", "--key", "0" * 32, "--kind", "switchback"], ["--places"]),
    ],
)
def test_errors_name_place_and_remedy(
    arguments: list[str], words: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    real = {"RECORDS": records(), "OUT": str(tmp_path / "out")}
    error = failed(capsys, *(real.get(word, word) for word in arguments))
    assert all(word in error for word in words), error


def test_a_bug_is_not_the_status_of_proven_harm(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("uncork.experiment.commands.analyze.read_records", lambda *_: 1 / 0)
    assert main(["analyze", records()]) == 5
    assert "a bug of uncork: ZeroDivisionError" in capsys.readouterr().err


def test_unknown_option_exits_with_2(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["analyze", "--colour"])
    assert ended.value.code == 2
    assert "--help" in capsys.readouterr().err


def test_damaged_file_is_named(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(b"PAR1 but no table")
    assert "a.parquet" in failed(capsys, "analyze", str(tmp_path))


def test_output_that_cannot_be_written_exits_with_3(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    assert main(["interference", "-o", str(tmp_path / "file" / "below")]) == 3
    assert "file" in capsys.readouterr().err


def test_same_records_give_the_same_bytes_and_a_broken_guardrail_status_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["analyze", records(), "--by", "region", "-o", str(tmp_path), "--format", "json"]
    outputs, pages = [], []
    for _ in range(2):
        assert main([*command, "--guardrail", "retransmitted=1%"]) == 1
        outputs.append(capsys.readouterr().out)
        pages.append((tmp_path / "report.html").read_bytes())
    assert outputs[0] == outputs[1] == (tmp_path / "result.json").read_text(encoding="utf-8")
    assert pages[0] == pages[1]
    assert json.loads(outputs[0])["verdict"]["decision"] == "stop"


@pytest.mark.parametrize("width", [40, 60, 100])
def test_scorecard_stays_within_the_terminal(width: int) -> None:
    cells = (cell("Latin America", 1.1), cell("Africa", 1.0))
    made = analysis(cells, guardrails=(guarded("open"),))
    text = terminal.scorecard(made, decide(made, Settings()), width)
    assert max(map(len, text.splitlines())) <= width
    assert "Latin America" in text
    assert "(in the report:" in text


def test_follow_sees_records_grow_and_stops_for_a_guardrail(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = pq.read_table(demo() / "records/records.parquet")
    day = pc.divide(table["start_ns"], 86_400_000_000_000)
    growing = tmp_path / "growing"
    growing.mkdir()
    # Days without a treatment first; the treated days, with their retransmissions, come while it watches.
    pq.write_table(table.filter(pc.less(day, 3)), growing / "first.parquet")

    def grow() -> None:
        time.sleep(3)
        pq.write_table(table.filter(pc.greater_equal(day, 3)), growing / ".second.parquet")
        os.replace(growing / ".second.parquet", growing / "second.parquet")

    writer = threading.Thread(target=grow)
    writer.start()
    command = ["analyze", str(growing), "--follow", "--every", "0.5", "--rounds", "9", "--by", "region"]
    status = main([*command, "--guardrail", "retransmitted=5%", "-o", str(tmp_path / "out")])
    writer.join()
    lines = capsys.readouterr().out.splitlines()
    assert status == 1
    assert len([line for line in lines if " records, " in line]) >= 2
    assert any(line.startswith("Stop: bbr breaks a guardrail: retransmitted") for line in lines)


def test_follow_ends_at_the_planned_look_that_has_a_verdict(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    records()  # makes them, if no test has
    soon = datetime.now(UTC) + timedelta(seconds=4)
    looks = f"{soon.isoformat(timespec='seconds')},{(soon + timedelta(days=1)).isoformat(timespec='seconds')}"
    command = ["analyze", records(), "--by", "region", "--primary", "throughput:p10", "-o", str(tmp_path)]
    # It would go on until tomorrow, but for --rounds. The default guardrails are not the subject here.
    command += [
        "--guardrail",
        "aborted=50pp",
        "--follow",
        "--every",
        "600",
        "--rounds",
        "2",
        "--look-at",
        looks,
    ]
    begin = time.monotonic()
    assert main(command) == 0
    # It woke for the look: not after --every, and not without the look.
    assert 2 < time.monotonic() - begin < 300
    lines = capsys.readouterr().out.splitlines()
    assert len([line for line in lines if " records, " in line]) == 2
    assert any(line.startswith("Enable ") for line in lines)
    assert json.loads((tmp_path / "result.json").read_text())["settings"]["look"] == "1/2"


def test_follow_ends_at_the_last_look_without_a_verdict(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    few = pq.read_table(demo() / "records/records.parquet").slice(0, 200)
    pq.write_table(few, tmp_path / "few.parquet")
    command = ["analyze", str(tmp_path / "few.parquet"), "--by", "region", "--follow", "--every", "600"]
    assert main([*command, "--look-at", "2026-01-01", "-o", str(tmp_path / "out")]) in (0, 4)
    assert "No verdict" in capsys.readouterr().out


def test_follow__block__is_in_the_line_and_json_has_a_line_for_each_look(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    few = pq.read_table(demo() / "records/records.parquet").slice(0, 200)
    pq.write_table(pa.concat_tables([few, few]), tmp_path / "twice.parquet")
    command = ["analyze", str(tmp_path / "twice.parquet"), "--by", "region", "--follow", "--rounds", "1"]
    assert main([*command, "-o", str(tmp_path / "out")]) == 4
    (line,) = [line for line in capsys.readouterr().out.splitlines() if " records, " in line]
    assert "; No verdict: " in line
    assert "are there more than once" in line
    assert main([*command, "--format", "json", "-o", str(tmp_path / "out")]) == 4
    (line,) = capsys.readouterr().out.splitlines()
    assert json.loads(line)["verdict"]["decision"] == "blocked"


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (["--look-at", "2026-01-01"], "need --follow"),
        (["--follow", "--look-at", "2026-01-02,2026-01-01"], "do not rise"),
        (["--follow", "--look-at", "2026-01-02", "--look", "1/2"], "--look names a look as well"),
        (["--follow", "--look-at", "noon"], "--look-at noon: not a time"),
    ],
)
def test_wrong_planned_looks(wrong: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["analyze", records(), *wrong]) == 2
    assert words in capsys.readouterr().err


def test_show_sql_needs_no_records(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["analyze", "--show-sql", "trino", "--by", "country"]) == 0
    text = capsys.readouterr().out
    assert "-- throughput" in text
    assert "GROUP BY" in text


def test_plain_log_gets_no_verdict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The same transfers, in a plain log: refused, with the remedy."""
    table = pq.read_table(demo() / "records/records.parquet")
    table = table.append_column("source", pa.array(["log"] * len(table)))
    pq.write_table(table, tmp_path / "log.parquet")
    assert (
        main(["analyze", str(tmp_path / "log.parquet"), "--by", "region", "-o", str(tmp_path / "out")]) == 4
    )
    text = capsys.readouterr().out
    assert "No verdict: throughput ≥ 3 MB comes from a plain log" in " ".join(text.split())
    assert "tcp_notsent_lowat" in text


def test_objects_of_the_laboratory_are_timed_by_the_client(tmp_path: Path) -> None:
    """objects.parquet names no engine: a rate is what came, over the time until the last byte."""
    objects = 600
    noise = np.exp(np.random.default_rng(1).normal(0, 0.1, objects))
    treated = np.arange(objects) % 2 == 1
    columns = {
        "path.loss": ["0.1%"] * objects,
        "group": ["main"] * objects,
        "cc": np.where(treated, "bbr1", "cubic"),
        "seed": np.arange(objects) // 4,
        "flow": np.arange(objects) % 4,
        "start_ns": np.zeros(objects, dtype=np.int64),
        "first_byte_ns": np.full(objects, 10**8),
        "completion_ns": (np.where(treated, 1e9, 2e9) * noise).astype(np.int64),
        "size_bytes": np.full(objects, 4_000_000),
        "bytes_delivered": np.full(objects, 4_000_000),
    }
    pq.write_table(pa.table(columns), tmp_path / "objects.parquet")
    command = ["analyze", str(tmp_path / "objects.parquet"), "--unit-columns", "seed", "--by", "group"]
    assert main([*command, "-o", str(tmp_path / "out")]) == 0
    result = json.loads((tmp_path / "out" / "result.json").read_text())
    row = next(row for row in result["scorecard"] if row["role"] == "primary")
    assert (row["measure"], row["source"]) == ("throughput:p50", "client")
    assert row["control"] == pytest.approx(16e6, rel=0.05)
    assert row["effect"]["ratio"] == pytest.approx(2.0, rel=0.05)


def test_results_of_the_laboratory_are_analysed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Flows without a time, an arm or a country: the controller is the arm, an axis of the matrix the key."""
    rng = np.random.default_rng(1)
    flows = 240
    treated = np.arange(flows) % 2 == 1
    rate = 1e7 * np.exp(rng.normal(0, 0.2, flows)) * np.where(treated, 1.5, 1.0)
    columns = {
        "path.loss": ["0.1%" if n % 4 < 2 else "1%" for n in range(flows)],
        "engine": ["sim"] * flows,
        "group": ["main"] * flows,
        "cc": np.where(treated, "bbr1", "cubic"),
        "seed": np.arange(flows) // 4,
        "flow": np.zeros(flows, dtype=np.int64),
        "completion_ns": (4e6 * 8e9 / rate).astype(np.int64),
        "busy_ns": (4e6 * 8e9 / rate).astype(np.int64),
        "size_bytes": np.full(flows, 4_000_000),
        "bytes_delivered": np.full(flows, 4_000_000),
        "bytes_acked": np.full(flows, 4_000_000),
    }
    pq.write_table(pa.table(columns), tmp_path / "flows.parquet")
    command = ["analyze", str(tmp_path), "--by", "path.loss", "-o", str(tmp_path / "out")]
    assert main(command) == 0
    text = capsys.readouterr().out
    assert "Enable bbr1: " in text, "the regions do not differ, so all clients decide"
    assert "0.1%" in text


def test_only_records_with_a_value_are_analysed(tmp_path: Path) -> None:
    """An axis of several places has commas in its name."""
    flows = pq.read_table(Path(__file__).parent / "data/lab/flows.parquet")
    rates = pa.array(["1mbit", "1mbit", "2mbit", "2mbit"] * (len(flows) // 4))
    axis = "path.europe.rate,path.europe.buffer"
    pq.write_table(flows.add_column(0, axis, rates), tmp_path / "flows.parquet")
    out = tmp_path / "out"
    command = ["analyze", str(tmp_path / "flows.parquet"), "-o", str(out), "--by", f'"{axis}",group']
    assert main([*command, "--where", f"{axis}=2mbit", "--where", "group=europe"]) == 0
    result = json.loads((out / "result.json").read_text())
    assert result["facts"]["rows"] == len(flows) // 4 // 2
    cells = [(cell["key"], cell["value"]) for cell in result["cells"]]
    assert cells == [(axis, "2mbit"), ("group", "europe")]


def test_missing_units_block_the_verdict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = pq.read_table(demo() / "records/records.parquet")
    lost = pc.and_(pc.equal(table["arm"], "bbr"), pc.less(table["arm_bucket"], 40))
    pq.write_table(table.filter(pc.invert(lost)), tmp_path / "lost.parquet")
    assert (
        main(["analyze", str(tmp_path / "lost.parquet"), "--by", "region", "-o", str(tmp_path / "out")]) == 4
    )
    assert "No verdict: sample-ratio mismatch" in capsys.readouterr().out


def test_demo_is_the_same_for_a_seed() -> None:
    assert generator.table(3, 0.02).equals(generator.table(3, 0.02))
    assert not generator.table(3, 0.02).equals(generator.table(4, 0.02))


def test_growthbook_export_has_responses_alone(tmp_path: Path) -> None:
    """A connection has all of its responses once more."""
    table = pq.read_table(records()).slice(0, 500)
    at = table.column_names.index("service_scope")
    connections = table.set_column(at, "service_scope", pa.array(["connection"] * len(table)))
    pq.write_table(pa.concat_tables([table, connections]), tmp_path / "both.parquet")
    assert main(["export", "growthbook", str(tmp_path / "both.parquet"), "-o", str(tmp_path)]) == 0
    assert pq.read_metadata(tmp_path / "facts.parquet").num_rows == len(table)


def test_growthbook_export_can_be_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["export", "growthbook", records(), "-o", str(tmp_path), "--datasource", "ds_1"]
    assert main([*command, "--primary", "throughput:p50"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 5
    engine = duckdb.connect()
    engine.sql(f"create view assignments as from '{tmp_path}/assignments.parquet'")
    engine.sql(f"create view facts as from '{tmp_path}/facts.parquet'")
    assigned = engine.sql((tmp_path / "assignment.sql").read_text())
    assert assigned.columns == ["user_id", "timestamp", "experiment_id", "variation_id"]
    units = engine.sql("select count(*), count(distinct user_id) from assignments").fetchall()[0]
    assert units[0] == units[1] > 1000
    definitions = json.loads((tmp_path / "bulk-import-facts.json").read_text())
    assert definitions["factTables"][0]["data"]["datasource"] == "ds_1"
    columns = set(engine.sql("from facts").columns)
    for metric in definitions["factMetrics"]:
        assert metric["id"].startswith("fact__")
        parts = [metric["data"][part] for part in ("numerator", "denominator") if part in metric["data"]]
        assert {part["column"] for part in parts} <= columns
    experiment = json.loads((tmp_path / "experiment.json").read_text())
    assert [one["key"] for one in experiment["variations"]] == ["control", "bbr"]
    known = {metric["id"] for metric in definitions["factMetrics"]}
    assert set(experiment["metrics"]) | set(experiment["guardrailMetrics"]) <= known
    # The same numbers as our own analysis: the ratio of sums.
    own = json.loads((demo() / "result.json").read_text())["scorecard"]
    sent = next(row for row in own if row["measure"] == "retransmitted:ratio")
    total = engine.sql(
        "select sum(retransmitted) / sum(retransmitted_per) from facts join assignments using (user_id) "
        "where variation_id = 'control' and facts.timestamp >= timestamp '2026-11-05'"
    ).fetchall()[0]
    assert total[0] == pytest.approx(sent["control"], rel=1e-6)


def test_design_prints_days_and_writes_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["design", records(), "--until", "2026-11-05", "--share", "20%"]) == 0
    text = capsys.readouterr().out
    assert "days to find 5%" in text
    assert "A/A check of p50 throughput" in text
    files = ["design", "-o", str(tmp_path), "--key", "0" * 31 + "1"]
    assert main([*files, "--kind", "switchback", "--places", "lima", "--start", "2026-12-01"]) == 0
    assert (tmp_path / "policy.toml").read_text().count("[[rule]]") > 100
    schedule = (tmp_path / "schedule.csv").read_text().splitlines()
    assert schedule[0].startswith("since,until,place,treated")
    assert len(schedule) == 1 + 14 * 24


def test_design_compares_units(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A client network is distinguished from a cookie, and computed where a cookie was assigned."""
    table = pq.read_table(demo() / "records/records.parquet")
    prefixes = [f"10.{unit % 200}.{unit % 7}.0/24" for unit in table["arm_unit"].to_pylist()]
    one = [
        f"10.{code >> 8}.{code & 255}.0/24"
        for code in table["arm_unit"].dictionary_encode().combine_chunks().indices.to_pylist()
    ]
    for name, clients, units in (
        ("cookie", prefixes, {"cookie or header", "client network", "PoP x hour"}),
        ("network", one, {"client network", "PoP x hour"}),
    ):
        records = tmp_path / f"{name}.parquet"
        pq.write_table(table.append_column("service_client", pa.array(clients)), records)
        assert main(["design", str(records), "--until", "2026-11-05", "--format", "json"]) == 0
        document = json.loads(capsys.readouterr().out)
        jsonschema.validate(document, json.loads(DESIGN_SCHEMA.read_text(encoding="utf-8")))
        by_unit = {one["unit"]: one for one in document["by_unit"]}
        assert set(by_unit) == units
        assert 72 < by_unit["PoP x hour"]["units"] <= 2 * 72
        assert by_unit["client network"]["units"] <= len(set(clients))
        assert by_unit["client network"]["units_needed"] > 100
        assert document["measures"][0]["days_needed"] is None or document["measures"][0]["days_needed"] > 1


def test_interrupt_is_status_130(tmp_path: Path) -> None:
    # A test that was started in the background inherits an ignored SIGINT.
    code = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
        "from uncork.experiment.cli import main; sys.exit(main(sys.argv[1:]))"
    )
    command = ["analyze", records(), "--by", "region", "--follow", "--every", "60", "-o", str(tmp_path)]
    with subprocess.Popen(
        [sys.executable, "-c", code, *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        assert running.stdout is not None
        assert " records, " in running.stdout.readline()
        running.send_signal(signal.SIGINT)
        try:
            _, error = running.communicate(timeout=60)
        finally:
            running.kill()
    assert running.returncode == 130
    assert "Traceback" not in error


def test_engine_draws_no_progress_bar_into_the_results() -> None:
    """DuckDB does in a process with a `__main__` without file, once a query takes 2 s: the test before this
    one read its carriage return as an empty line, on a busy machine.
    """
    code = (
        "from uncork.measure.engines import duckdb\n"
        "setting = duckdb.connect().backend.con.sql(\"select current_setting('enable_progress_bar')\")\n"
        "assert setting.fetchall() == [(False,)]"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
