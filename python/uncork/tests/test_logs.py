"""Logs as people post them. With each kind of line, an import has lost rows, taken the wrong time, or taken
an aborted download for a fast one.
"""

import bz2
import gzip
import json
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from uncork.experiment.cli import main
from uncork.measure.errors import InputError
from uncork.measure.reduce import ReducePlan, reduce
from uncork.measure.sources import Mapping, built_in, import_files, read
from uncork.measure.sources.mapping import parse

Rows = list[dict[str, Any]]


def records(tmp_path: Path, mapping: str | Mapping, data: str | bytes) -> tuple[Rows, dict[str, int]]:
    """Records and counts of left-out rows."""
    log = tmp_path / "access.log"
    log.write_bytes(data if isinstance(data, bytes) else data.encode())
    of = built_in(mapping) if isinstance(mapping, str) else mapping
    result = import_files([log], of, tmp_path / "out")
    return pq.read_table(result.files[0]).to_pylist(), dict(result.rejected)


def nginx(**fields: str) -> str:
    line = {
        "time": "1795747651.544", "request_time": "1.998", "remote_addr": "192.0.2.7", "host": "h",
        "status": "200", "body_bytes_sent": "2000000", "bytes_sent": "2000246", "content_length": "2000000",
        "completed": "OK", "protocol": "HTTP/1.1", "server": "a", "rtt": "111", "arm": "bbr",
    }  # fmt: skip
    return json.dumps(line | fields) + "\n"


def zstd(data: bytes) -> bytes:
    return bytes(pa.compress(data, codec="zstd", asbytes=True))


def outcome(row: dict[str, Any]) -> tuple[Any, Any]:
    return row["service_broken_off"], row["completion_ns"]


BROKEN = (1, None)


def test_nginx_gave_up_is_broken_off_with_status_200(tmp_path: Path) -> None:
    rows, left_out = records(
        tmp_path,
        "nginx",
        nginx()
        + nginx(completed="", body_bytes_sent="557056")
        + nginx(completed="", content_length="", body_bytes_sent="557056")
        + nginx(status="499", completed="", body_bytes_sent="0", content_length="")
        + nginx(body_bytes_sent="0", request_time="0.000")
        + nginx(status="304", body_bytes_sent="0", content_length="")
        + nginx(method="HEAD", body_bytes_sent="0"),
    )
    assert [outcome(row) for row in rows] == [(0, 1_998_000_000), BROKEN, BROKEN, BROKEN]
    assert sum(left_out.values()) == 3
    assert all(reason.startswith("not a download") for reason in left_out)


def test_the_end_that_nginx_logs_becomes_a_start(tmp_path: Path) -> None:
    rows, _ = records(tmp_path, "nginx", nginx() + nginx(completed="", body_bytes_sent="5"))
    assert [row["service_start_unix_ns"] for row in rows] == [1_795_747_649_546_000_000] * 2


def test_broken_off_counts_as_slowest_and_as_aborted(tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    log.write_text(
        "".join(
            nginx(
                remote_addr=f"10.{n % 2}.{n}.7",
                arm=("cubic", "bbr")[n % 2],
                **(
                    {"completed": "", "request_time": "0.5", "body_bytes_sent": "2000"} if n % 10 == 1 else {}
                ),
            )
            for n in range(200)
        )
    )
    cubes = reduce(read([log], built_in("nginx")).table, ReducePlan(control="cubic")).cells[()]
    aborted, completion = cubes["aborted"], cubes["completion"]
    assert aborted.numerator.sum(axis=1).tolist() == [0, 20]  # type: ignore[union-attr]
    slowest = completion.counts[:, :, -1].sum(axis=1) / completion.whole  # type: ignore[union-attr]
    assert slowest.tolist() == [0, 20], "given up after 0.5 s, counted as an hour"


HAPROXY = (
    "Nov  2 12:14:14 lb haproxy[14389]: 192.0.2.7:33317 [02/Nov/2026:00:00:00.655] edge media/bbr "
    '10/0/30/69/{ta} {status} 2750 - - {state} 1/1/1/1/0 0/0 "{method} /index.html HTTP/1.1"\n'
)


def test_haproxy_minus_one_means_no_status_and_no_time(tmp_path: Path) -> None:
    def line(state: str, ta: str = "109", status: str = "200", method: str = "GET") -> str:
        return HAPROXY.format(state=state, ta=ta, status=status, method=method)

    rows, left_out = records(
        tmp_path,
        "haproxy-http",
        line("----") + line("CD--") + line("SD--") + line("cD--") + line("CH--", "-1", "-1")
        + line("----", method="HEAD"),
    )  # fmt: skip
    assert [outcome(row) for row in rows] == [(0, 109_000_000), BROKEN, BROKEN, BROKEN, BROKEN]
    assert rows[4]["service_status"] is None
    assert left_out == {"not a download: method": 1}


def test_haproxy_clients_that_leave_in_the_queue_gave_up_and_connections_without_a_request_did_not(
    tmp_path: Path,
) -> None:
    def line(state: str, status: str) -> str:
        return HAPROXY.format(state=state, ta="9", status=status, method="GET")

    rows, left_out = records(
        tmp_path,
        "haproxy-http",
        "".join(line(*of) for of in (("----", "200"), ("CC--", "-1"), ("CQ--", "-1"), ("sH--", "504")))
        + "".join(line(*of) for of in (("CR--", "400"), ("cR--", "408"), ("PR--", "403"))),
    )
    assert [row["service_broken_off"] for row in rows] == [0, 1, 1, 0]
    assert left_out == {"not a download: state": 3}


CLOUDFRONT = (
    "#Version: 1.0\n#Fields: date time sc-bytes c-ip cs-method cs(Host) sc-status x-edge-request-id "
    "time-taken x-edge-detailed-result-type sc-content-len\n"
)


def test_cloudfront_client_errors_and_times(tmp_path: Path) -> None:
    rows, _ = records(
        tmp_path,
        "w3c",
        CLOUDFRONT
        + "2026-11-02\t12:00:02\t4000300\t192.0.2.9\tGET\ta\t200\ti1\t1.500\tHit\t4000000\n"
        + "2026-11-02\t12:00:02\t3999999\t192.0.2.9\tGET\ta\t200\ti2\t1.500\tClientCommError\t-\n"
        + "2026-11-02\t12:00:02\t0\t192.0.2.9\tGET\ta\t000\ti3\t1.500\tClientCommError\t-\n"
        + "2026-11-02\t12:00:02\t512\t192.0.2.9\tHEAD\ta\t200\ti4\t0.001\tHit\t4000000\n",
    )
    assert [outcome(row) for row in rows] == [(0, 1_500_000_000), BROKEN, BROKEN]
    assert {row["service_start_unix_ns"] for row in rows} == {1_793_620_800_500_000_000}


def test_two_viewers_of_one_network_in_one_second_are_two_and_a_file_read_twice_is_not(
    tmp_path: Path,
) -> None:
    line = "2026-11-02\t12:00:02\t812\t192.0.2.{n}\tGET\ta\t200\ti{n}\t0.001\tHit\t512\n"
    log = CLOUDFRONT + "".join(line.format(n=n) for n in range(50)) + line.format(n=1)
    rows, _ = records(tmp_path, "w3c", log)
    ids = {row["log_id"] for row in rows}
    assert len(ids) == 51
    again, _ = records(tmp_path, "w3c", log)
    assert {row["log_id"] for row in again} == ids


def test_iis_advanced_logging_quotes_and_win32_status(tmp_path: Path) -> None:
    fields = "#Fields: date time c-ip cs(User-Agent) sc-status sc-win32-status sc-bytes cs-host time-taken\n"
    good = '2026-11-02 12:40:24.190 192.0.2.1 "Mozilla/5.0 (Windows NT 6.2; WOW64)" 200 {} 5012 a 2036\n'
    text = "\ufeff" + fields + "".join(map(good.format, (0, 64, 2147942464)))
    rows, left_out = records(tmp_path, "iis", text)
    assert [outcome(row) for row in rows] == [(0, 2_036_000_000), BROKEN, BROKEN]
    assert left_out == {}
    with pytest.raises(InputError, match=r"milliseconds.*use --mapping iis"):
        records(tmp_path, "w3c", text)


def test_a_log_of_iis_is_refused_where_seconds_are_expected(tmp_path: Path) -> None:
    text = "#Software: Microsoft Internet Information Services 10.0\n"
    text += "#Fields: date time c-ip sc-status sc-bytes cs(Host) time-taken\n"
    text += "2026-11-02 12:40:24 192.0.2.1 200 5012 a 2036\n"
    with pytest.raises(InputError, match=r"log: IIS writes time-taken in milliseconds.*use --mapping iis"):
        records(tmp_path, "w3c", text)
    assert not list((tmp_path / "out").glob("*.parquet"))


def test_a_record_that_may_be_broken_off_counts_as_a_response(tmp_path: Path) -> None:
    header = "arm,completion_ns,bytes_delivered,size_bytes,service_responses\n"
    rows, _ = records(tmp_path, "csv", header + "bbr,9,5,5,\nbbr,9,4,5,\nbbr,9,5,5,3\n")
    assert [(row["service_broken_off"], row["service_responses"]) for row in rows] == [(0, 1), (1, 1), (0, 3)]


CSV = "service_start_unix_ns,completion_ns,bytes_delivered,arm,source\n"
CSV += "1764000000000000000,1000,5000,bbr,client\n"


@pytest.mark.parametrize(
    "data",
    [
        CSV.encode("utf-8-sig"),
        CSV.encode("utf-16"),
        CSV.encode("utf-16-le"),
        CSV.encode("utf-16-be"),
        CSV.replace(",", ";").encode(),
        CSV.replace(",", "\t").encode(),
    ],
)
def test_csv_of_windows(tmp_path: Path, data: bytes) -> None:
    rows, _ = records(tmp_path, "csv", data)
    row = rows[0]
    assert (row["service_start_unix_ns"], row["completion_ns"], row["arm"]) == (
        1764000000000000000,
        1000,
        "bbr",
    )
    assert row["service_broken_off"] is None


def test_a_header_that_lacks_mapped_columns_is_named(tmp_path: Path) -> None:
    mine = parse('format = "csv"\n[columns]\narm = "variant"\ncompletion_ns = "took"\n', "my.toml")
    with pytest.raises(InputError, match=r"the header lacks 'variant'.*did you mean varian"):
        records(tmp_path, mine, "varian,took\nbbr,1\n")
    with pytest.raises(InputError, match=r"^access.log: the header has none of the columns of --mapping csv"):
        records(tmp_path, "csv", "a,b\n1,2\n")


@pytest.mark.parametrize(
    ("compress", "cut"),
    [(gzip.compress, 40), (bz2.compress, 40), (lzma.compress, 40), (zstd, 20)],
    ids=["gzip", "bz2", "xz", "zstd"],
)
def test_a_compressed_log_is_read_under_any_name_and_named_where_it_is_cut(
    tmp_path: Path, compress: Callable[[bytes], bytes], cut: int
) -> None:
    log = compress(nginx().encode("utf-16"))
    rows, _ = records(tmp_path, "nginx", log)
    assert [outcome(row) for row in rows] == [(0, 1_998_000_000)]
    with pytest.raises(InputError, match=r"access\.log: cannot be read to its end"):
        records(tmp_path, "nginx", log[:-cut])


def test_csv_without_a_header(tmp_path: Path) -> None:
    mine = parse(
        'format = "csv"\ndelimiter = "\\t"\nheader = ["t", "arm"]\n[columns]\narm = "arm"\n', "my.toml"
    )
    rows, _ = records(tmp_path, mine, "1\tbbr\n2\tcubic\n")
    assert [row["arm"] for row in rows] == ["bbr", "cubic"]


def cmcd(url: str) -> str:
    return (
        json.dumps({"time": "2026-11-02T00:00:00Z", "client": "192.0.2.7", "arm": "bbr", "url": url}) + "\n"
    )


@pytest.mark.parametrize(
    "url",
    [
        "/a.m4v?CMCD=br%3D3200%2Ccom.example-myNumericKey%3D500%2Cd%3D4004%2Cmtp%3D25400%2Csid%3D%226e%22",
        "/a.m4v?x=a+b&cmcd=br%3D3200%2Cd%3D4004%2Cmtp%3D25400%2Csid%3D%226e%22&y=1",
        "/a.m4v?CMCD=br=3200.4,d=4004,mtp=25400,sid=%226e%22",
        "cmcd=//1.0@V/br=3200,d=4004,mtp=25400,sid=%226e%22,st=v%22",
        'br=(3200;v),d=4004,mtp=(25400),sid="6e",v=2,8x="broken, key"',
    ],
)
def test_cmcd_in_all_its_clothes(tmp_path: Path, url: str) -> None:
    rows, left_out = records(tmp_path, "cmcd", cmcd(url))
    assert left_out == {}
    assert (rows[0]["bytes_delivered"], rows[0]["completion_ns"]) == (1_601_600, 504_440_945)
    assert rows[0]["service_broken_off"] is None


def test_a_plus_sign_in_cmcd_is_itself(tmp_path: Path) -> None:
    text = '192.0.2.7 - - [10/May/2023:17:07:15 -0300] "GET /a?CMCD=d%3D1%2Csid%3D%22a+b%22 HTTP/2" 200 7\n'
    rows, _ = records(tmp_path, "cmcd-log", text)
    same, _ = records(tmp_path, "cmcd-log", 'd=1,sid="a+b"\n')
    assert rows[0]["arm_unit"] == same[0]["arm_unit"]


@pytest.mark.parametrize("address", ["203.0.113.93:39849", "203.0.113.93", "[::ffff:203.0.113.93]:443"])
def test_addresses_with_ports(tmp_path: Path, address: str) -> None:
    line = {
        "start_time": "2026-11-02T00:00:00Z",
        "bytes_sent": "770",
        "duration": "26",
        "response_code": "200",
    }
    rows, _ = records(tmp_path, "envoy", json.dumps(line | {"downstream_remote_address": address}))
    assert rows[0]["service_client"] == "203.0.113.0/24"


def test_envoy_knows_that_the_client_left(tmp_path: Path) -> None:
    line = {"start_time": "2026-11-02T00:00:00Z", "bytes_sent": "770", "duration": "26",
            "response_code": "200", "downstream_remote_address": "203.0.113.93:1"}  # fmt: skip
    text = "\n".join(json.dumps(line | {"response_flags": flags}) for flags in ("DC", "UT,DR", "-"))
    rows, _ = records(tmp_path, "envoy", text)
    assert [outcome(row) for row in rows] == [BROKEN, BROKEN, (0, 26_000_000)]


def test_a_unit_by_a_pattern(tmp_path: Path) -> None:
    mine = parse('format = "json"\n[columns]\narm = "a"\n[unit]\nfrom = "who"\nkind = "cookie"\n'
                 "pattern = '^user-(.*)$'\n", "my.toml")  # fmt: skip
    rows, left_out = records(tmp_path, mine, '{"a":"x","who":"user-7"}\n{"a":"x","who":"guest"}\n')
    other, _ = records(tmp_path, mine, '{"a":"y","who":"user-7"}\n')
    assert rows[0]["arm_unit"] == other[0]["arm_unit"]
    assert left_out == {"who: missing, and it is the unit": 1}


def test_caddy_headers_are_lists(tmp_path: Path) -> None:
    line = {"ts": 1743353452.5, "request": {"client_ip": "192.0.2.7", "method": "GET", "host": "h"},
            "duration": 0.5, "size": 1000, "status": 200,
            "resp_headers": {"Content-Length": ["39666"]}}  # fmt: skip
    rows, _ = records(tmp_path, "caddy", json.dumps(line))
    assert rows[0]["size_bytes"] == 39666
    assert outcome(rows[0]) == BROKEN
    assert rows[0]["service_start_unix_ns"] == 1743353452 * 10**9


@pytest.mark.parametrize(
    ("time", "expected"),
    [
        ("06/Feb/2026:12:00:00 +05:30", 1_770_359_400_000_000_000),
        ("06/Feb/2026:12:00:00 +0530", 1_770_359_400_000_000_000),
        ("[06/Feb/2026:12:00:00.5 UTC]", 1_770_379_200_500_000_000),
        ("06/Feb/2026:12:00:00 CET", None),
        ("Fri, 06 Feb 2026 12:00:00 GMT", None),
    ],
)
def test_clf_offsets_are_read_or_refused(tmp_path: Path, time: str, expected: int | None) -> None:
    mine = parse(
        'format = "json"\n[columns]\nservice_start_unix_ns = { from = "t", time = "clf" }\n', "my.toml"
    )
    if expected is None:
        with pytest.raises(InputError, match="t: no time of the form clf"):
            records(tmp_path, mine, json.dumps({"t": time}))
        return
    rows, _ = records(tmp_path, mine, json.dumps({"t": time}))
    assert rows[0]["service_start_unix_ns"] == expected


def test_no_record_at_all_is_an_error_that_shows_the_format(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "access.log"
    log.write_text('192.0.2.7 - - [02/Nov/2026:00:00:00 +0000] "GET / HTTP/1.1" 200 7 "-" "curl"\n' * 3)
    assert main(["import", str(log), "--mapping", "nginx", "-o", str(tmp_path / "out")]) == 2
    said = capsys.readouterr().err
    for part in (
        "none of 3 lines is a record",
        "the line is not JSON (3)",
        "line 1: 192.0.2.7",
        "log_format uncork",
    ):
        assert part in said
    assert not list((tmp_path / "out").glob("*.parquet"))


def test_a_table_with_a_header_names_the_mapping_for_csv(tmp_path: Path) -> None:
    for separator in ",;\t":
        with pytest.raises(InputError, match=r"these lines look like those of --mapping csv"):
            records(tmp_path, "nginx", separator.join(["unit", "arm", "seconds"]) + "\n")


def test_a_log_of_another_server_names_its_mapping(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--mapping w3c"):
        records(tmp_path, "nginx", CLOUDFRONT)
    with pytest.raises(InputError, match=r"sc-bytes: missing.*\n.*\nhelp: .*\n.*Turn sc-bytes on"):
        records(
            tmp_path, "iis", "#Fields: date time c-ip cs-host time-taken\n2026-11-02 00:00:00 192.0.2.1 a 7\n"
        )
