"""A join of an access log with records of connections: address, port and time."""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from uncork.experiment.cli import main
from uncork.measure.errors import InputError
from uncork.measure.sources import built_in, import_files, joining

T0 = 1_795_747_600
"""Seconds since 1970."""


def connection(
    arm: str, port: int, begin: float, end: float, client: str = "203.0.113.0/24", has_port: bool = True
) -> dict[str, object]:
    service = {
        "scope": "connection", "start_unix_ns": int((T0 + begin) * 1e9), "protocol": "tcp", "listener": "web",
        "client": client, "responses": 0, "broken_off": 0,
    }  # fmt: skip
    if has_port:
        service |= {"client_port": port, "end_unix_ns": int((T0 + end) * 1e9)}
    assigned = {"experiment": "e", "arm": arm, "unit": 2**63 + port, "bucket": port % 100, "propensity": 0.5}
    choice = {"policy": "p", "rule": "r", "cc": arm, "arm": assigned}
    return {"engine": "watch", "cc": arm, "service": service, "choice": choice}


def records(path: Path, connections: list[dict[str, object]]) -> Path:
    path.write_text("".join(json.dumps(it) + "\n" for it in connections))
    return path


def line(end: float, port: int | None, address: str = "203.0.113.7", took: float = 0.5) -> str:
    fields = {
        "time": f"{T0 + end:.3f}", "request_time": f"{took:.3f}", "remote_addr": address, "status": "200",
        "body_bytes_sent": "5000000", "content_length": "5000000", "completed": "OK", "host": "h",
    }  # fmt: skip
    return json.dumps(fields if port is None else fields | {"remote_port": str(port)}) + "\n"


def joined(
    tmp_path: Path, log: str, connections: list[dict[str, object]]
) -> tuple[list[object], joining.Connections]:
    (tmp_path / "access.log").write_text(log)
    of = joining.load([records(tmp_path / "steer.jsonl", connections)])
    imported = import_files([tmp_path / "access.log"], built_in("nginx"), tmp_path / "out", connections=of)
    return pq.read_table(imported.files[0])["arm"].to_pylist(), of


def test_the_only_response_of_a_connection_has_the_kernels_figures(tmp_path: Path) -> None:
    figures = {
        "busy_ns": 900_000_000,
        "bytes_sent": 5_100_000,
        "bytes_retransmitted": 70_000,
        "rtt_ms": {"min": 20.0},
    }
    start = {"start": {"early_sent_bytes": 100_000, "early_resent_bytes": 20_000, "paced": True}}
    ports = range(50_000, 50_005)
    connections = [connection("cubic", port, 0, 10) | figures | start for port in ports]
    log = [
        line(9, 50_000),
        line(8, 50_001),
        line(9, 50_001),
        line(8, 50_002),
        line(9, 50_002).replace('"OK"', '"OK", "method": "HEAD"'),
        line(9, 50_003).replace('"OK"', '""'),
        line(8, 50_004),
        line(9, 50_004).replace("200", "304"),
    ]
    joined(tmp_path, "".join(log), connections)
    table = pq.read_table(tmp_path / "out")
    assert table["source"].to_pylist() == ["acked", "log", "log", "log", "acked", "log"]
    second = 1_000_000_000
    took = [0.9 * second, 0.5 * second, 0.5 * second, 0.5 * second, None, 0.5 * second]
    assert table["completion_ns"].to_pylist() == took
    assert table["bytes_delivered"].to_pylist() == [5_000_000] * 6
    for name, value in [
        ("bytes_retransmitted", 70_000),
        ("rtt_min_ms", 20.0),
        ("start_early_resent_bytes", 20_000),
        ("start_paced", 1),
    ]:
        assert table[name].to_pylist() == [value, None, None, None, value, None], name


def test_the_connection_says_where_the_client_is(tmp_path: Path) -> None:
    known = connection("cubic", 50_000, 0, 10)
    known["service"] = {**known["service"], "asn": 64_500, "country": "PE"}  # type: ignore[dict-item]
    joined(tmp_path, line(9, 50_000) + line(9, 50_001), [known, connection("bbr", 50_001, 0, 10)])
    table = pq.read_table(tmp_path / "out")
    assert table["service_asn"].to_pylist() == [64_500, None]
    assert table["service_country"].to_pylist() == ["PE", None]


def test_a_response_is_the_only_one_of_all_logs(tmp_path: Path) -> None:
    of = joining.load(
        [records(tmp_path / "steer.jsonl", [connection("cubic", 50_000, 0, 10) | {"busy_ns": 9}])]
    )
    logs = [tmp_path / "a.log", tmp_path / "b.log"]
    for number, log in enumerate(logs):
        log.write_text(line(8 + number, 50_000))
    import_files(logs, built_in("nginx"), tmp_path / "out", connections=of)
    assert pq.read_table(tmp_path / "out")["source"].to_pylist() == ["log", "log"]


def test_lines_get_the_arm_of_their_connection(tmp_path: Path) -> None:
    connections = [
        connection("cubic", 50_000, 0, 10),
        connection("bbr", 50_000, 100, 110),  # the same port later
        connection("bbr", 50_001, 0, 10, client="2001:db8:7::/48"),
        connection("bbr", 50_002, 0, 10, has_port=False),
    ]
    log = [
        line(9, 50_000),
        line(105, 50_000),
        line(3, 50_001, "2001:db8:7::9"),
        line(3, 50_002),
        line(60, 50_000),
    ]
    arms, of = joined(tmp_path, "".join([*log, line(3, None)]), connections)
    assert arms == ["cubic", "bbr", "bbr", None, None, None]
    assert (of.matched, dict(of.unmatched)) == (3, {joining.NO_CONNECTION: 2, joining.NO_PORT: 1})
    [file] = (tmp_path / "out").glob("*-access.log.parquet")
    table = pq.read_table(file)
    first = {name: table[name].to_pylist()[0] for name in joining.JOINED}
    assert first == {
        "cc": "cubic", "choice_policy": "p", "choice_rule": "r", "choice_cc": "cubic", "arm_experiment": "e",
        "arm": "cubic", "arm_unit": 2**63 + 50_000, "arm_bucket": 0, "arm_propensity": 0.5,
    }  # fmt: skip
    assert table["arm_unit"].to_pylist()[3:] == [None] * 3, "no unit of another hash"


def test_two_clients_of_a_network_with_one_port_have_no_arm_unless_it_is_the_same(tmp_path: Path) -> None:
    of_both = [connection("cubic", 50_000, 0, 10), connection("bbr", 50_000, 2, 12)]
    of_one = [connection("bbr", 50_001, 0, 9), connection("bbr", 50_001, 2, 9)]
    arms, of = joined(tmp_path, line(5, 50_000) + line(5, 50_001), of_both + of_one)
    assert arms == [None, "bbr"]
    assert of.unmatched == {joining.SEVERAL: 1}


def test_a_connection_around_a_line_goes_before_one_next_to_it(tmp_path: Path) -> None:
    """A port is used again within the slack."""
    arms, _ = joined(
        tmp_path, line(9, 50_000), [connection("cubic", 50_000, 0, 10), connection("bbr", 50_000, 11, 20)]
    )
    assert arms == ["cubic"]


def test_the_recorder_may_see_a_socket_late(tmp_path: Path) -> None:
    arms, _ = joined(tmp_path, line(1, 50_000), [connection("bbr", 50_000, 1.5, 4)])
    assert arms == ["bbr"]


def test_a_join_that_finds_nothing_is_an_error_and_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no line has a connection: no client port in the line"):
        joined(tmp_path, line(5, None), [connection("cubic", 50_000, 0, 10)])
    assert list((tmp_path / "out").glob("*.parquet")) == []
    with pytest.raises(InputError, match="record with uncork steer record --client-ports"):
        joined(tmp_path, line(5, 1), [connection("cubic", 50_000, 0, 10, has_port=False)])
    of = joining.load([records(tmp_path / "a.jsonl", [connection("cubic", 1, 0, 1)])])
    with pytest.raises(InputError, match="haproxy does not name the client's port"):
        import_files([tmp_path / "access.log"], built_in("haproxy"), tmp_path / "out", connections=of)


@pytest.mark.parametrize("text", ["[1]", "5", "{"])
def test_a_line_that_is_not_an_object_is_named(text: str, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(f"{text}\n")
    with pytest.raises(InputError, match=r"a\.jsonl, line 1: .*name records of uncork steer record"):
        joining.load([tmp_path / "a.jsonl"])


def test_ports_in_the_address() -> None:
    assert joining.key_of("203.0.113.7:39849", None) == ("203.0.113.0/24", 39849)
    assert joining.key_of("[2001:db8:7::9]:39849", None) == ("2001:db8:7::/48", 39849)
    assert joining.key_of("::ffff:203.0.113.7", "443") == ("203.0.113.0/24", 443)
    assert joining.key_of("203.0.113.7", None) is None
    assert joining.key_of("203.0.113.7", "") is None
    assert joining.key_of(None, "1") is None


def test_parquet_and_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    of = joining.load([records(tmp_path / "a.jsonl", [connection("cubic", 50_000, 0, 10)])])
    pq.write_table(of.table, tmp_path / "steer.parquet")
    (tmp_path / "access.log").write_text(line(5, 50_000) + line(50, 50_000))
    command = ["import", str(tmp_path / "access.log"), "--mapping", "nginx", "-o", str(tmp_path / "out")]
    assert main([*command, "--join", str(tmp_path / "steer.parquet")]) == 0
    output = capsys.readouterr().out
    assert "1 lines have a connection" in output
    assert f"1  without arm: {joining.NO_CONNECTION}" in output
