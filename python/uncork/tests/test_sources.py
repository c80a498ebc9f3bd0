"""Logs of others to canonical records: values, units, and what is rejected."""

import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from uncork.experiment.cli import main
from uncork.measure.assignment import Experiment, assign, client, cookie
from uncork.measure.errors import InputError
from uncork.measure.mappings import MAPPINGS
from uncork.measure.reduce import ReducePlan, reduce
from uncork.measure.schema import arrow_schema
from uncork.measure.sources import Mapping, built_in, import_files, load, read
from uncork.measure.sources.mapping import parse

NGINX = (
    '{"time":"1793577600.123","request_time":"4.512","remote_addr":"198.51.100.7","host":"a.example","status":"200",'
    '"body_bytes_sent":"10485760","bytes_sent":"10486010","content_length":"10485760","completed":"OK",'
    '"protocol":"HTTP/2.0","server":"edge","rtt":"24900","arm":"bbr"}'
)
HAPROXY = (
    "Nov  2 12:14:14 lb haproxy[14389]: 2001:db8::1:33317 [02/Nov/2026:00:00:00.655] edge media/bbr "
    '10/0/30/69/109 200 2750 - - CD-- 1/1/1/1/0 0/0 "GET /index.html HTTP/1.1"'
)
HAPROXY_JSON = (
    '{"end_us":"1793577600923456","client":"203.0.113.9","frontend":"edge","status":"200","bytes":"4000000",'
    '"took_ms":"800","first_byte_ms":"20","state":"----","rtt_us":"24900","retrans":"3","lost":"2",'
    '"length":"4000000","arm":"cubic"}'
)
VARNISH = (
    '{"time":"1793577600","took_us":"812345","client":"203.0.113.9","host":"a.example","status":"206",'
    '"bytes":"512000","length":"512000","rtt_us":"31000","retrans":"1","cc":"bbr","arm":"bbr"}'
)
W3C = """#Version: 1.0
#Fields: date time c-ip cs(Host) sc-status sc-bytes time-taken
2026-11-02 00:00:00 203.0.113.9 bbr.example 200 5000000 1.25
#Fields: time date c-ip cs(Host) sc-status sc-bytes time-taken
00:00:01 2026-11-02 203.0.113.9 cubic.example 200 - 0.5
"""


def imported(
    tmp_path: Path, mapping: Mapping | str, text: str
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Rows and rejected rows of a log."""
    log, rejected = tmp_path / "access.log", tmp_path / "rejected.jsonl"
    log.write_text(text, "utf-8")
    of = built_in(mapping) if isinstance(mapping, str) else mapping
    result = import_files([log], of, tmp_path / "out", rejected)
    table = pq.read_table(result.files[0])
    assert table.schema.equals(arrow_schema())
    bad = [json.loads(line) for line in rejected.read_text().splitlines()] if rejected.exists() else []
    assert sum(result.rejected.values()) == len(bad)
    assert result.rows == table.num_rows
    rows = [{k: v for k, v in row.items() if v is not None and k != "log_id"} for row in table.to_pylist()]
    return rows, bad


def test_nginx_json_with_tcpinfo(tmp_path: Path) -> None:
    rows, bad = imported(tmp_path, "nginx", NGINX + "\n")
    bucket = assign(Experiment("", ("",)), [client("198.51.100.7")])
    assert bad == []
    assert rows == [
        {
            "service_start_unix_ns": 1793577595611000000,
            "completion_ns": 4512000000,
            "bytes_delivered": 10485760,
            "size_bytes": 10485760,
            "service_client": "198.51.100.0/24",
            "service_host": "a.example",
            "service_listener": "edge",
            "service_status": 200,
            "service_broken_off": 0,
            "service_responses": 1,
            "rtt_p50_ms": 24.9,
            "arm": "bbr",
            "arm_unit": int(bucket.hash[0]),
            "arm_bucket": int(bucket.bucket[0]),
            "source": "log",
        }
    ]


def test_haproxy_json_and_its_own_format(tmp_path: Path) -> None:
    rows, bad = imported(tmp_path, "haproxy", HAPROXY_JSON + "\n")
    assert bad == []
    assert rows[0]["service_start_unix_ns"] == 1793577600123456000
    assert (rows[0]["rtt_p50_ms"], rows[0]["packets_lost"], rows[0]["service_broken_off"]) == (24.9, 2, 0)
    rows, bad = imported(tmp_path, "haproxy-http", HAPROXY + "\nnoise\n")
    assert rows[0]["service_start_unix_ns"] == 1793577600655000000
    assert (rows[0].get("completion_ns"), rows[0]["bytes_delivered"]) == (None, 2750)
    assert (rows[0]["service_client"], rows[0]["arm"]) == ("2001:db8::/48", "bbr")
    assert rows[0]["service_broken_off"] == 1
    assert [(it["line"], it["reason"], it["text"]) for it in bad] == [
        (2, "the line does not match the pattern", "noise")
    ]


def test_varnish(tmp_path: Path) -> None:
    rows, _ = imported(tmp_path, "varnish", VARNISH + "\n")
    assert (rows[0]["completion_ns"], rows[0]["rtt_p50_ms"], rows[0]["cc"]) == (812345000, 31.0, "bbr")


def test_w3c_fields_may_change_in_the_middle(tmp_path: Path) -> None:
    rows, bad = imported(tmp_path, "w3c", W3C)
    assert rows[0]["service_start_unix_ns"] == 1793577598750000000
    assert (rows[0]["completion_ns"], rows[0]["bytes_delivered"]) == (1250000000, 5000000)
    assert (rows[0]["arm"], len(rows)) == ("bbr.example", 1)
    assert [(it["line"], it["reason"]) for it in bad] == [(5, "sc-bytes: missing")]


def test_iis_has_milliseconds(tmp_path: Path) -> None:
    fields = "#Fields: date time c-ip cs-host sc-status sc-bytes time-taken\n"
    rows, _ = imported(tmp_path, "iis", fields + "2026-11-02 00:00:00 203.0.113.9 a 200 7 1250\n")
    assert rows[0]["completion_ns"] == 1250000000


def test_csv_with_canonical_names(tmp_path: Path) -> None:
    header = "engine,arm,arm_bucket,bytes_acked,busy_ns,rtt_p50_ms\n"
    text = 'serve,bbr,7,"5000000",1000,20.5\nserve,bbr,7,1\n'
    rows, bad = imported(tmp_path, "csv", header + text)
    expected = {"engine": "serve", "arm": "bbr", "arm_bucket": 7, "bytes_acked": 5000000, "busy_ns": 1000}
    assert rows == [expected | {"rtt_p50_ms": 20.5}]
    assert [(it["line"], it["reason"]) for it in bad] == [(3, "the row has not as many fields as the header")]


CMCD_1 = [
    'br=3200,bl=21300,d=4000,mtp=25600,ot=v,sid="a",cid="film"',
    'br=3200,bs,bl=100,d=4000,mtp=12800,ot=v,sid="a",cid="film"',
    'br=3200,d=4000,ot=v,sid="b"',
    "bl=1",
    'br=fast,sid="c"',
]


def test_cmcd_1_gives_chunks_and_sessions(tmp_path: Path) -> None:
    rows, bad = imported(tmp_path, "cmcd-log", "\n".join(CMCD_1) + "\n")
    chunks = [row for row in rows if "playback_items" not in row]
    assert [(row["bytes_delivered"], row["completion_ns"]) for row in chunks] == [
        (1_600_000, 500_000_000),
        (1_600_000, 1_000_000_000),
    ]
    sessions = [row for row in rows if "playback_items" in row]
    assert [(row["playback_stutters"], row["playback_played_ns"]) for row in sessions] == [
        (1, 8_000_000_000),
        (0, 4_000_000_000),
    ]
    assert sessions[0]["arm_bucket"] == assign(Experiment("", ("",)), [cookie("a")]).bucket[0]
    assert sessions[0]["source"] == "client"
    assert [(it["line"], it["reason"]) for it in bad] == [
        (4, "CMCD: no sid"),
        (5, "CMCD br: no whole number"),
    ]


def test_cmcd_2_in_the_query_of_a_log(tmp_path: Path) -> None:
    def line(payload: str) -> str:
        from urllib.parse import quote

        row = {"time": "2026-11-02T00:00:00Z", "client": "203.0.113.9", "host": "a.example", "arm": "bbr",
               "url": f"/seg.m4s?x=1&CMCD={quote(payload)}"}  # fmt: skip
        return json.dumps(row)

    payloads = [
        'br=(3200),d=4000,mtp=(25600),sid="s",cid="c",v=2,msd=812',
        'e=rr,br=(3200),d=4000,rc=200,sid="s",cid="c",ttfb=29,ttlb=274,v=2,bsa=2,bsda=700',
    ]
    rows, bad = imported(tmp_path, "cmcd", "\n".join(map(line, payloads)) + "\n")
    assert bad == []
    assert [row.get("completion_ns") for row in rows] == [500_000_000, 274_000_000, None]
    assert rows[1]["first_byte_ns"] == 29_000_000
    session = rows[2]
    assert session["playback_startup_ns"] == 812_000_000
    assert (session["playback_stutters"], session["playback_stalled_ns"]) == (2, 700_000_000)
    assert (session["arm"], session["service_client"]) == ("bbr", "203.0.113.0/24")


BAD_ROWS = [
    ("not json", "the line is not JSON"),
    ("[1]", "the line is not a JSON object"),
    (NGINX.replace("4.512", "soon"), "request_time: no number"),
    (NGINX.replace("4.512", "-1"), "request_time: negative"),
    (NGINX.replace("4.512", "NaN"), "request_time: not finite"),
    (NGINX.replace("24900", "nan"), "rtt: not finite"),
    (NGINX.replace("24900", "-24900"), "rtt: negative"),
    (NGINX.replace("198.51.100.7", "localhost"), "remote_addr: no address"),
    (NGINX.replace("198.51.100.7", "-"), "remote_addr: missing, and it is the unit"),
    (NGINX.replace('"10485760","bytes', '"-","bytes'), "body_bytes_sent: missing"),
    (NGINX.replace("1793577600.123", "yesterday"), "time: no number"),
    (NGINX.replace("1793577600.123", "17935776001793577600"), "time: too large"),
]


@pytest.mark.parametrize(("line", "reason"), BAD_ROWS)
def test_a_bad_row_is_kept_apart_with_reason_and_line(tmp_path: Path, line: str, reason: str) -> None:
    rows, bad = imported(tmp_path, "nginx", f"{NGINX}\n{line}\n{NGINX}\n")
    assert len(rows) == 2
    assert bad == [{"file": "access.log", "line": 2, "reason": reason, "text": line}]


def test_bytes_that_are_no_text_reject_a_row_only(tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    log.write_bytes(
        b"\xff\xfe garbage\n" + NGINX.encode() + b"\n" + NGINX.replace("a.example", "\x00").encode()
    )
    result = import_files([log], built_in("nginx"), tmp_path / "out", tmp_path / "bad.jsonl")
    assert (result.rows, dict(result.rejected)) == (1, {"the line is not JSON": 2})
    assert len((tmp_path / "bad.jsonl").read_text().splitlines()) == 2


def test_batches_progress_and_gzip(tmp_path: Path) -> None:
    log = tmp_path / "access.log.gz"
    with gzip.open(log, "wt") as file:
        file.write((NGINX + "\n") * 45_000 + "broken\n")
    seen: list[tuple[str, int, int, int]] = []
    result = import_files([log], built_in("nginx"), tmp_path / "out", progress=lambda *at: seen.append(at))
    assert (result.rows, dict(result.rejected)) == (45_000, {"the line is not JSON": 1})
    assert [at[3] for at in seen] == [20_000, 40_000, 45_000]
    assert pq.ParquetFile(result.files[0]).num_row_groups == 3


def test_a_log_without_lines_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no lines"):
        imported(tmp_path, "nginx", "")


def test_arms_by_the_policys_hash(tmp_path: Path) -> None:
    key = "000102030405060708090a0b0c0d0e0f"
    text = f"""format = "json"
[columns]
bytes_delivered = "bytes"
[unit]
from = "uid"
kind = "cookie"
salt = "bbr-2026"
key = "{key}"
arms = ["control", "reno"]
share = "80%"
"""
    lines = "".join(f'{{"bytes":1,"uid":"u{n}"}}\n' for n in range(200))
    rows, _ = imported(tmp_path, parse(text, "mine.toml"), lines)
    experiment = Experiment("bbr-2026", ("control", "reno"), 8000, key=bytes.fromhex(key))
    expected = assign(experiment, [cookie(f"u{n}") for n in range(200)])
    names = {-1: None, 0: "control", 1: "reno"}
    assert [row.get("arm") for row in rows] == [names[int(arm)] for arm in expected.arm]
    assert {row.get("arm_experiment") for row in rows} == {"bbr-2026", None}
    assert {row["arm_propensity"] for row in rows} == {0.4, 0.0}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("format = json", "mine.toml: no TOML"),
        ('format = "xml"', "mine.toml, format: 'xml' is none of json, csv"),
        (
            'format = "json"\n[columns]\nbyte_acked = "x"',
            "columns.byte_acked: no such column; did you mean bytes_acked?",
        ),
        ('format = "json"\ncolums = 1', "unknown key 'colums'; did you mean columns?"),
        (
            'format = "json"\n[columns]\nbusy_ns = { from = "x", unit = "kB" }',
            "columns.busy_ns, unit: 'kB' is none of s, ms, us, ns",
        ),
        ('format = "json"\n[columns]\ncc = { from = "x", unit = "s" }', "columns.cc, unit"),
        ('format = "json"\n[columns]\ncc = 1', 'write cc = "FIELD"'),
        ('format = "json"\n[columns]\ncc = { unit = "s" }', "needs either from or value"),
        ('format = "json"\n[columns]\ncc = { from = "x", time = "noon" }', "time: 'noon' is none of iso"),
        ('format = "pattern"', "go together"),
        ('format = "pattern"\npattern = "("', "no regular expression"),
        ('format = "json"\nrequired = ["cc"]', "required names 'cc'"),
        ('format = "json"\nsource = "guess"', "source: 'guess' is none of client, acked"),
        ('format = "json"\n[unit]\nkind = "cookie"', "needs from"),
        ('format = "json"\n[unit]\nfrom = "x"\nkind = "user"', "kind: 'user' is none of prefix"),
        (
            'format = "json"\n[unit]\nfrom = "x"\nkind = "cookie"\nkey = "abc"',
            "has not 32 hexadecimal digits",
        ),
        ('format = "json"\n[unit]\nfrom = "x"\nkind = "cookie"\nshare = "half"', "is not a share"),
    ],
)
def test_a_wrong_mapping_is_an_error_with_place_and_remedy(text: str, message: str) -> None:
    with pytest.raises(InputError) as error:
        parse(text, "mine.toml")
    assert message in str(error.value)


def test_mappings_by_name_or_file(tmp_path: Path) -> None:
    assert {load(name).name for name in MAPPINGS} == set(MAPPINGS)
    with pytest.raises(InputError, match="no file"):
        load(tmp_path / "none.toml")
    with pytest.raises(InputError, match="no built-in mapping"):
        built_in("apache")


def test_a_log_can_be_reduced(tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    arms = ("cubic", "bbr")
    log.write_text(
        "".join(NGINX.replace("bbr", arms[n % 2]).replace(".7", f".{n}") + "\n" for n in range(200))
    )
    loaded = read([log], load("nginx"))
    reduced = reduce(loaded.table, ReducePlan(control="cubic"))
    assert reduced.rows == 200
    assert all(units.sum() > 0 for units in reduced.units.values())
    assert sum(int(records.sum()) for records in reduced.records.values()) == 200


@pytest.mark.parametrize("depth", [600, 980, 100_000])
def test_deep_json_is_a_rejected_row_not_the_end(depth: int, tmp_path: Path) -> None:
    """Also where the parser takes it, but what follows goes down the same levels."""
    log, rejected = tmp_path / "a.log", tmp_path / "rejected.jsonl"
    deep = '{"a":' * depth + "1" + "}" * depth
    log.write_text("\n".join([NGINX, deep, NGINX]))
    imported = import_files([log], built_in("nginx"), tmp_path / "out", rejected)
    assert imported.rows == 2
    assert json.loads(rejected.read_text())["line"] == 2


def test_an_imported_directory_can_be_analyzed_although_rows_were_rejected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.log").write_text("\n".join([NGINX, "nonsense", NGINX.replace("bbr", "cubic")]))
    assert main(["import", "a.log", "--mapping", "nginx", "-o", "records/"]) == 0
    assert read([Path("records")]).table.count().execute() == 2
    assert json.loads(Path("records.rejected.jsonl").read_text())["line"] == 2


def test_a_log_that_is_cut_leaves_no_records(tmp_path: Path) -> None:
    log = tmp_path / "a.log.gz"
    log.write_bytes(gzip.compress("\n".join([NGINX] * 1000).encode())[:-20])
    with pytest.raises(InputError, match=r"a\.log\.gz: cannot be read to its end"):
        import_files([log], built_in("nginx"), tmp_path / "out")
    assert list((tmp_path / "out").iterdir()) == []
