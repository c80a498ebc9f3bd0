"""Conditions of mappings: what a field that is there says, and transfers that were cut."""

import json
from pathlib import Path
from typing import Any

import pytest

from test_logs import nginx, records
from uncork.measure.errors import InputError
from uncork.measure.sources.mapping import parse

LOG = """format = "json"
source = "log"
required = ["service_start_unix_ns", "bytes_delivered"]
[columns]
service_start_unix_ns = { from = "time", time = "unix_s" }
bytes_delivered = "bytes"
service_broken_off = CONDITION
"""


def broken_off(tmp_path: Path, condition: str, *values: object) -> list[Any]:
    mapping = parse(LOG.replace("CONDITION", condition), "own.toml")
    lines = [json.dumps({"time": 1795747651, "bytes": 9, "of": value}) + "\n" for value in values]
    rows, _ = records(tmp_path, mapping, "".join(lines))
    return [row["service_broken_off"] for row in rows]


@pytest.mark.parametrize(
    ("condition", "values", "expected"),
    [
        ('{ from = "of", pattern = "_(ABORTED)", is = ["ABORTED"] }', ["TCP_HIT", "TCP_ABORTED"], [0, 1]),
        ('{ from = "of", is = ["X"] }', ["-", "X", "+", "", None], [0, 1, 0, None, None]),
        ('{ from = "of", is = [false] }', [True, False], [0, 1]),
        ('{ from = "of", is = ["false"] }', [True, False], [0, 1]),
        ('{ from = "of", is = ["1"] }', [True, False], [1, 0]),
        ('{ from = "of", is = ["X"], none = ["-"] }', ["-", "X", "+"], [None, 1, 0]),
        ('{ from = "of", is = [499] }', [499.0, 499, 200], [1, 1, 0]),
        ('{ from = "of", is = [499] }', ["499.0", " 499 ", "200.0", "1.4990"], [1, 1, 0, 0]),
    ],
)
def test_condition__field_is_there__zero_or_one(
    tmp_path: Path, condition: str, values: list[object], expected: list[Any]
) -> None:
    assert broken_off(tmp_path, condition, *values) == expected


@pytest.mark.parametrize("condition", ['{ from = "of", is = "499" }', '{ any = ["of"] }'])
def test_condition__no_list_of_values__is_refused(tmp_path: Path, condition: str) -> None:
    with pytest.raises(InputError, match="is"):
        broken_off(tmp_path, condition, "499")


def test_bytes_that_are_no_text_and_impossible_times_do_not_end_the_import(tmp_path: Path) -> None:
    log = nginx() + nginx(host="caf\\xe9.example") + nginx(host="half \ud83d")
    log = log.encode().replace(b"\\\\xe9", b"\xe9")
    rows, left_out = records(tmp_path, "nginx", log)
    assert [row["service_host"] for row in rows] == ["h", "caf\ufffd.example", "half \ufffd"]
    assert left_out == {}
    traefik = {"StartUTC": "0001-01-01T00:00:00Z", "Duration": 9, "DownstreamContentSize": 9}
    later = traefik | {"StartUTC": "2026-11-27T00:00:00Z", "ClientHost": "192.0.2.7"}
    lines = "".join(json.dumps(one | {"ClientHost": "192.0.2.7"}) + "\n" for one in (traefik, later))
    rows, left_out = records(tmp_path, "traefik", lines)
    assert len(rows) == 1
    assert list(left_out.values()) == [1]


HAPROXY = {"end_us": "1795747651544000", "client": "192.0.2.7", "method": "GET", "frontend": "f",
           "status": "200", "bytes": "5", "took_ms": "9"}  # fmt: skip
ENVOY = {"start_time": "2026-11-27T00:00:00Z", "duration": "9", "bytes_sent": "5", "method": "GET",
         "response_code": "200", "downstream_remote_address": "192.0.2.7:5"}  # fmt: skip


@pytest.mark.parametrize(
    ("mapping", "line", "expected"),
    [
        ("haproxy", HAPROXY | {"state": "KD--"}, 1),
        ("haproxy", HAPROXY | {"state": "PD--"}, 1),
        ("haproxy", HAPROXY | {"state": "----"}, 0),
        ("envoy", ENVOY | {"response_flags": "UC"}, 1),
        ("envoy", ENVOY | {"response_flags": "UC", "response_code": "503"}, 0),
        ("envoy", ENVOY | {"response_flags": "-"}, 0),
    ],
)
def test_transfer__cut_by_a_server_or_further_up__is_broken_off(
    tmp_path: Path, mapping: str, line: dict[str, str], expected: int
) -> None:
    rows, _ = records(tmp_path, mapping, json.dumps(line) + "\n")
    assert [row["service_broken_off"] for row in rows] == [expected]


def test_varnish__dash_for_bytes__a_download_of_0_bytes(tmp_path: Path) -> None:
    line = {"time": "1795747651", "took_us": "900", "client": "192.0.2.7", "method": "GET", "status": "200",
            "bytes": "-", "length": "5000000"}  # fmt: skip
    rows, _ = records(tmp_path, "varnish", json.dumps(line) + "\n")
    assert [row["bytes_delivered"] for row in rows] == [0]


@pytest.mark.parametrize("tunnel", [{"status": "101"}, {"method": "CONNECT"}])
def test_tunnel__does_not_count_as_a_download(tmp_path: Path, tunnel: dict[str, str]) -> None:
    rows, left_out = records(tmp_path, "nginx", nginx() + nginx(**tunnel))
    assert (len(rows), sum(left_out.values())) == (1, 1)
