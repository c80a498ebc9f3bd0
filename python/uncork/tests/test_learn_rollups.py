"""A plan from roll-ups is the plan from the records that they count."""

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from learning import FIRST_DAY, KEY
from test_rollups import program
from uncork.learn import daily, demo
from uncork.learn.cli import main
from uncork.learn.settings import HOLDBACK, UNIT_RULE
from uncork.learn.store import Store
from uncork.learn.tablefile import date

DAYS = 2
UNTIL = date(FIRST_DAY + DAYS)
WINDOWS = (
    "--control", "ten", "--control-settings", "tcp=cubic,initial_window=10p",
    "--arm", "w20:tcp=cubic,initial_window=20p", "--arm", "w40:tcp=cubic,initial_window=40p",
)  # fmt: skip


def of_a_fleet(days: int = DAYS, daily: int = 80) -> pa.Table:
    """Records of two listeners. A quarter is of clients for which a table decided, a tenth of the holdback;
    of some the AS or the country is unknown. Clients have several records, of a day and of several days.
    """
    table = of_few_clients(demo.table(days=days, daily=daily), 40)
    count = table.num_rows
    draw = np.random.default_rng(3).random(count)
    is_steered, is_held = pa.array(draw < 0.25), pa.array((draw > 0.25) & (draw < 0.35))
    columns = {name: table[name] for name in table.column_names}
    for name in ("arm_experiment", "arm", "arm_unit", "arm_bucket", "arm_propensity"):
        columns[name] = pc.if_else(is_steered, pa.nulls(count, columns[name].type), columns[name])
    columns["arm_experiment"] = pc.if_else(is_held, HOLDBACK, columns["arm_experiment"])
    columns["arm"] = pc.if_else(is_held, "control", columns["arm"])
    for name, every in (("service_country", 7), ("service_asn", 11)):
        some = pa.array(np.arange(count) % every == 0)
        columns[name] = pc.if_else(some, pa.nulls(count, columns[name].type), columns[name])
    rule = pc.if_else(is_steered, f"{UNIT_RULE}large objects", "explore")
    listener = pa.array(np.where(np.arange(count) % 3 == 0, "fra1", "lim1"))
    # A fifth of the objects ends within the first round trips, some with the last byte that does.
    is_tiny = np.arange(count) % 5 == 0
    size = np.where(
        is_tiny, np.where(np.arange(count) % 2 == 0, 100_000, 40_000), np.array(table["size_bytes"])
    )
    again = np.where(is_tiny, size // 50, np.array(table["bytes_retransmitted"]))
    rtt = 20 + 30 * np.random.default_rng(4).random(count)
    columns |= {
        "service_listener": listener,
        "choice_policy": pa.array(["p1"] * count),
        "choice_rule": rule,
        "size_bytes": pa.array(size),
        "bytes_acked": pa.array(size),
        "bytes_delivered": pa.array(size),
        "bytes_sent": pa.array(size + again),
        "bytes_retransmitted": pa.array(again),
        "rtt_min_ms": pa.array(np.full(count, 20.0)),
        "rtt_p50_ms": pa.array(rtt),
        "rtt_p95_ms": pa.array(rtt * 2),
    }
    return pa.table(columns)


def of_few_clients(table: pa.Table, clients: int) -> pa.Table:
    """The records as if each network had this number of clients in each arm."""
    arm = np.array(table["arm"].to_pylist()) == demo.TREATED
    _, network = np.unique(np.array(table["service_client"].to_pylist()), return_inverse=True)
    rng = np.random.default_rng(6)
    unit = (network * 2 + arm) * clients + rng.integers(0, clients, table.num_rows)
    bucket = rng.integers(0, 100, int(unit.max()) + 1)[unit]
    for name, values in (("arm_unit", unit.astype(np.uint64)), ("arm_bucket", bucket)):
        table = table.set_column(table.column_names.index(name), name, pa.array(values))
    return table


def rolled(source: Path, target: Path, *more: str, host: str = "edge1") -> Path:
    command = [program(), "records", "rollup", str(source), "-o", str(target), "--host", host]
    done = subprocess.run([*command, *more], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return target


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("records") / "records.parquet"
    pq.write_table(of_a_fleet(), path)
    return path


@pytest.fixture(scope="module")
def rollups(records: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return rolled(records, tmp_path_factory.mktemp("rollups"), "--period", "30min")


@pytest.fixture(scope="module")
def of_records(records: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    return planned(tmp_path_factory.mktemp("learned") / "a", str(records))


def planned(root: Path, *options: str) -> dict[str, bytes]:
    """All files of a version."""
    assert main(["plan", "-o", str(root), "--key", KEY, "--harmed", "5%", "--until", UNTIL, *options]) == 0
    return {one.name: one.read_bytes() for one in Store(root).path(1).iterdir()}


@pytest.mark.parametrize(
    "options",
    [
        ("--confirm", "50%", "--only", "large"),
        (
            *("--place", "listener", "--guardrail", "retransmitted=2pp"),
            *("--guardrail", "stutters=5%", "--guardrail", "queued=5pp"),
        ),
    ],
    ids=lambda it: " ".join(it) or "defaults",
)
def test_plan__rollups_of_all_records__the_same_bytes(
    options: tuple[str, ...], records: Path, rollups: Path, tmp_path: Path
) -> None:
    of_rollups = planned(tmp_path / "b", str(rollups), *options)
    assert of_rollups == planned(tmp_path / "a", str(records), *options)
    assert main(["verify", str(tmp_path / "b")]) == 0


def test_plan__a_damaged_rollup__is_left_out_until_it_is_whole(
    rollups: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy, root = tmp_path / "rollups", tmp_path / "learned"
    shutil.copytree(rollups, copy)
    path = max(copy.iterdir())
    good = path.read_bytes()
    path.write_bytes(good[:-1] + bytes([good[-1] ^ 1]))
    planned(root, str(copy))
    assert f"left out: {path}: it is damaged" in capsys.readouterr().err
    assert len(list((root / daily.DAYS).iterdir())) == DAYS - 1, "evidence without the file is not kept"
    path.write_bytes(good)
    planned(root, str(copy))
    assert len(list((root / daily.DAYS).iterdir())) == DAYS
    assert "left out" not in capsys.readouterr().err


def test_plan__rollups_without_propensities__say_where_their_arms_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Roll-ups keep whole arms only. The records themselves are compared with equal arms."""
    source = tmp_path / "records.parquet"
    pq.write_table(of_a_fleet(days=1).drop_columns(["arm_propensity"]), source)
    target = rolled(source, tmp_path / "rollups", "--period", "30min")
    options = ["--key", KEY, "--until", date(FIRST_DAY + 1)]
    assert main(["plan", str(target), "-o", str(tmp_path / "a"), *options]) == 2
    said = capsys.readouterr().err
    assert "no roll-up has a client in an arm of the experiment 'explore'" in said
    assert "arms of records without arm_propensity are not in roll-ups" in said
    assert main(["plan", str(source), "-o", str(tmp_path / "b"), *options]) == 0


def test_plan__regions__the_same_bytes(records: Path, rollups: Path, tmp_path: Path) -> None:
    regions = tmp_path / "regions.csv"
    regions.write_text("198.18.0.0/20,Lima\n198.18.16.0/20,Pune\n")
    options = ("--networks", str(regions))
    assert planned(tmp_path / "b", str(rollups), *options) == planned(tmp_path / "a", str(records), *options)


def with_windows(records: Path, to: Path) -> pa.Table:
    """The records as of an experiment with windows of CUBIC, also in this directory."""
    table = pq.read_table(records)
    third = pa.array(np.where(np.arange(table.num_rows) % 2 == 0, "w20", "w40"))
    is_treated = pc.fill_null(pc.equal(table["arm"], "bbr"), False)
    arms = pc.if_else(is_treated, third, pc.if_else(table["arm"].is_valid(), "ten", table["arm"]))
    to.mkdir()
    renamed = table.set_column(table.column_names.index("arm"), "arm", arms)
    cubic = pa.array(["cubic"] * table.num_rows)
    renamed = renamed.set_column(table.column_names.index("cc"), "cc", cubic)
    pq.write_table(renamed, to / "records.parquet")
    return renamed


def test_plan__windows_as_arms__the_same_bytes(records: Path, tmp_path: Path) -> None:
    with_windows(records, tmp_path / "records")
    source = rolled(tmp_path / "records", tmp_path / "rollups", "--period", "30min")
    of_rollups = planned(tmp_path / "b", str(source), *WINDOWS)
    assert of_rollups == planned(tmp_path / "a", str(tmp_path / "records"), *WINDOWS)
    assert b"start_resent" in of_rollups["guardrails.json"]


def test_plan__starts_are_null__small_objects_are_guarded_instead(records: Path, tmp_path: Path) -> None:
    table = with_windows(records, tmp_path / "records")
    expected = planned(tmp_path / "a", str(tmp_path / "records"), *WINDOWS)
    # HTTP/3 has them, with HTTP/1.1 and HTTP/2 the columns are null.
    for name in ("start_early_resent_bytes", "start_early_sent_bytes"):
        table = table.append_column(name, pa.nulls(table.num_rows, pa.int64()))
    pq.write_table(table, tmp_path / "records" / "records.parquet")
    found = planned(tmp_path / "b", str(tmp_path / "records"), *WINDOWS)
    assert found["guardrails.json"] == expected["guardrails.json"]


def test_plan__rollups_and_their_records__nothing_counts_twice(
    records: Path, rollups: Path, of_records: dict[str, bytes], tmp_path: Path
) -> None:
    assert len(of_records) > 5
    assert planned(tmp_path / "b", str(rollups), str(records)) == of_records


@pytest.mark.parametrize(("others", "status"), [(2, 0), (40, 2)])
def test_plan__records_of_hosts_without_rollups__are_reported_or_refused(
    others: int, status: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two hosts have one listener, and one of them has roll-ups."""
    table = demo.table(demo.SYSTEMS[:1], days=1, daily=80)
    (tmp_path / "one").mkdir()
    pq.write_table(table, tmp_path / "one" / "r.parquet")
    source = rolled(tmp_path / "one", tmp_path / "rollups", "--period", "30min")
    pq.write_table(pa.concat_tables([table, table.slice(0, others)]), tmp_path / "all.parquet")
    words = ["plan", str(source), str(tmp_path / "all.parquet"), "-o", str(tmp_path / "o"), "--key", KEY]
    main(words)
    error = " ".join(capsys.readouterr().err.split())
    assert f"{others} records" in error
    assert "roll up the records of all hosts" in error
    # A slow machine prints progress before it.
    assert ("error: records: " in error) == bool(status)


def test_plan__a_new_file__only_its_day_is_read_again(
    rollups: Path, of_records: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    some = tmp_path / "rollups"
    some.mkdir()
    for file in rollups.iterdir():
        if "-20261103T23" not in file.name:
            (some / file.name).symlink_to(file)
    planned(tmp_path / "b", str(some))
    kept = {one.name for one in (tmp_path / "b" / "days").iterdir()}
    assert len(kept) == DAYS
    for file in rollups.glob("*-20261103T23*"):
        (some / file.name).symlink_to(file)
    read = []

    def note(*arguments: object) -> daily.Day:
        read.append(arguments)
        return original(*arguments)  # type: ignore[arg-type]

    original = daily._read
    monkeypatch.setattr(daily, "_read", note)
    shutil.rmtree(tmp_path / "b" / "versions")
    assert planned(tmp_path / "b", str(some)) == of_records
    assert len(read) == 1
    now = {one.name for one in (tmp_path / "b" / "days").iterdir()}
    assert len(now) == DAYS
    assert len(now & kept) == DAYS - 1


def test_plan__rollups_of_some_days_and_records_of_the_others__the_same_bytes(
    records: Path, rollups: Path, of_records: dict[str, bytes], tmp_path: Path
) -> None:
    half = tmp_path / "half"
    half.mkdir()
    first = [it for it in sorted(rollups.iterdir()) if "-20261102T" in it.name]
    assert len(first) == 48
    for file in first:
        (half / file.name).symlink_to(file)
    assert planned(tmp_path / "b", str(half), str(records)) == of_records


def test_plan__what_rollups_do_not_have__is_refused_by_name(
    rollups: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["plan", str(rollups), "-o", str(tmp_path / "a"), "--key", KEY]
    assert main([*options, "--place", "host"]) == 2
    assert "--place host: roll-ups do not have the host of a request" in capsys.readouterr().err
    assert main([*options, "--until", "2027-06-01"]) == 2
    assert "no roll-up is of the 28 days before 2027-06-01" in capsys.readouterr().err


def test_plan__folded_clients__traffic_stays_and_a_warning_says_so(
    records: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = rolled(records, tmp_path / "rollups", "--period", "30min", "--max-rows", "30")
    planned(tmp_path / "b", str(source))
    said = capsys.readouterr().err
    assert "of clients without rows of their own" in said

    def traffic(root: Path) -> int:
        rows = Store(root).evidence(1).to_pylist()
        return sum(row["numerator"] for row in rows if row["metric"] == "traffic")

    planned(tmp_path / "a", str(records))
    assert traffic(tmp_path / "b") == traffic(tmp_path / "a")


def merged(source: Path, target: Path, *more: str) -> Path:
    command = [program(), "records", "merge", str(source), "-o", str(target), "--name", "all", *more]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return target


@pytest.fixture(scope="module")
def of_hosts(records: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Roll-ups of three hosts that served the same clients, in a folder of each."""
    root = tmp_path_factory.mktemp("hosts")
    table = pq.read_table(records)
    for number in range(3):
        part = root / f"part{number}.parquet"
        pq.write_table(table.take(np.arange(number, table.num_rows, 3)), part)
        rolled(part, root / "rollups" / f"edge{number}", "--period", "30min", host=f"edge{number}")
    return root / "rollups"


def test_plan__rollups_of_many_hosts__the_same_bytes(
    of_hosts: Path, of_records: dict[str, bytes], tmp_path: Path
) -> None:
    """A client that two hosts served is one client of the day."""
    assert planned(tmp_path / "b", str(of_hosts)) == of_records


@pytest.mark.parametrize("period", ["1d", "1h", "30min"])
def test_plan__mergers_of_many_hosts__the_same_bytes(
    period: str, of_hosts: Path, of_records: dict[str, bytes], tmp_path: Path
) -> None:
    days = merged(of_hosts, tmp_path / "merged", "--period", period)
    assert len(list(days.glob("rollup-*"))) == DAYS * {"1d": 1, "1h": 24, "30min": 48}[period]
    assert planned(tmp_path / "b", str(days)) == of_records
    # The files of hosts next to it count once.
    assert planned(tmp_path / "c", str(days), str(of_hosts)) == of_records


def test_merge__hosts_to_places_to_days_in_two_rounds__the_same_bytes(
    of_hosts: Path, of_records: dict[str, bytes], tmp_path: Path
) -> None:
    for place, hosts in (("fra", ("edge0", "edge1")), ("lim", ("edge2",))):
        for host in hosts:  # Round by round, as files arrive.
            target = str(tmp_path / place)
            command = [program(), "records", "merge", str(of_hosts / host), "-o", target, "--name", place]
            subprocess.run([*command, "--period", "1h"], check=True, capture_output=True)
    both = tmp_path / "both"
    both.mkdir()
    for place in ("fra", "lim"):
        for file in (tmp_path / place).glob("rollup-*"):
            (both / file.name).symlink_to(file)
    of_places = merged(both, tmp_path / "days")
    of_all = merged(of_hosts, tmp_path / "at-once")
    assert [one.read_bytes() for one in sorted(of_places.glob("rollup-*"))] == [
        one.read_bytes() for one in sorted(of_all.glob("rollup-*"))
    ]
    assert planned(tmp_path / "b", str(of_places)) == of_records


def test_plan__many_files_and_a_condition_on_hosts__only_these_hosts(of_hosts: Path, tmp_path: Path) -> None:
    where = planned(tmp_path / "a", str(of_hosts), "--where", "rollup_host=edge1")
    assert where == planned(tmp_path / "b", str(of_hosts / "edge1"))


def test_plan__a_file_that_was_cut__is_left_out_by_name(
    of_hosts: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(of_hosts, tmp_path / "rollups")
    cut = min((tmp_path / "rollups").rglob("*20261103*.parquet"))
    cut.write_bytes(cut.read_bytes()[:500])
    options = ["plan", str(tmp_path / "rollups"), "-o", str(tmp_path / "a"), "--key", KEY, "--until", UNTIL]
    assert main(options) == 0
    assert f"{cut.name}: it is damaged" in capsys.readouterr().err


def test_plan__two_mergers_with_a_common_file__are_refused_by_name(
    of_hosts: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, hosts in (("one", ("edge0", "edge1")), ("two", ("edge1", "edge2"))):
        sources = [str(of_hosts / host) for host in hosts]
        command = [program(), "records", "merge", *sources, "-o", str(tmp_path / "merged"), "--name", name]
        subprocess.run(command, check=True, capture_output=True)
    options = ["plan", str(tmp_path / "merged"), "-o", str(tmp_path / "a"), "--key", KEY, "--until", UNTIL]
    assert main(options) == 2
    assert "it counts 48 files that another merged file counts, too" in capsys.readouterr().err
