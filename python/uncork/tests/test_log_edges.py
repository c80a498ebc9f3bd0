"""Lines at the edges of what a format allows: each costs itself at most, and says why."""

import json
from pathlib import Path
from typing import Any

import pytest

from test_logs import Rows, nginx, records
from uncork.measure.errors import InputError
from uncork.measure.sources import built_in, import_files
from uncork.measure.sources import identity as identity_of
from uncork.measure.sources.identity import Occurrences
from uncork.measure.sources.lines import CUT
from uncork.measure.sources.mapping import parse

TSV = """format = "csv"
delimiter = "\\t"
header = ["t", "bytes", "ua", "arm"]
[columns]
service_start_unix_ns = { from = "t", time = "unix_s" }
bytes_delivered = "bytes"
arm = "arm"
"""
CSV = """format = "csv"
[columns]
bytes_delivered = "bytes"
arm = "arm"
"""
IIS = "#Fields: date time c-ip cs-method sc-status sc-bytes cs-host {more}time-taken\n"
IIS_LINE = "2026-11-02 12:40:24 192.0.2.1 GET 200 5012 a {more}{took}\n"


def arms(tmp_path: Path, mapping: str, text: str | bytes) -> list[Any]:
    return [row["arm"] for row in records(tmp_path, parse(mapping, "own.toml"), text)[0]]


def test_tsv__fields_begin_with_a_quotation_mark__each_line_is_a_row(tmp_path: Path) -> None:
    lines = [f"{n}\t5\t{ua}\tbbr" for n, ua in enumerate(('"Mozilla', "x", '"', '"a', "y", '""'), 1)]
    rows, left_out = records(tmp_path, parse(TSV, "own.toml"), "\n".join(lines) + "\n")
    assert [row["service_start_unix_ns"] // 10**9 for row in rows] == [1, 2, 3, 4, 5, 6]
    assert left_out == {}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('bytes,arm\n5,"x\n6,y\n7,"z\n', ['"x', "y", '"z']),
        ('bytes,arm\n5,"x\ny"\n6,"a ""b"", c"\n', ["x\ny", 'a "b", c']),
        ('bytes,arm\n5,"x\n6,y\n7,z"\n', ['"x', "y", 'z"']),
        ("bytes, arm\n5, x\n", ["x"]),
        ('bytes, arm\n5, "x, y"\n', ["x, y"]),
        ("bytes,arm\r5,x\r6,y\r", ["x", "y"]),
        (f"bytes,arm\n5,{'x' * 200_000}\n", ["x" * 200_000]),
        ("bytes,arm\n5,x\nbytes,arm\n6,y\n", ["x", "y"]),
    ],
)
def test_csv__unusual_but_readable__rows(tmp_path: Path, text: str, expected: list[str]) -> None:
    assert arms(tmp_path, CSV, text) == expected


def test_csv__row_with_a_comma_in_quotation_marks_and_a_field_too_few__is_left_out(tmp_path: Path) -> None:
    rows, left_out = records(tmp_path, parse(CSV, "own.toml"), 'bytes,arm\n"5,x"\n6,y\n')
    assert ([row["arm"] for row in rows], sum(left_out.values())) == (["y"], 1)


@pytest.mark.parametrize(
    ("mapping", "text", "problem"),
    [
        (CSV, "bytes,arm,bytes\n5,x,6\n", r"the header has 'bytes' twice; rename"),
        ('leave_out = [{ from = "methd", is = ["HEAD"] }]\n' + CSV, "bytes,arm,method\n5,x,GET\n",
         "'methd'.*method"),
        ('id = "rid"\n' + CSV, "bytes,arm\n5,x\n", "lacks 'rid'"),
        (CSV + 'service_broken_off = { any = [{ from = "abortd", is = ["1"] }] }\n',
         "bytes,arm,aborted\n5,x,1\n", "'abortd'.*aborted"),
    ],
)  # fmt: skip
def test_csv_header__does_not_fit_the_mapping__is_refused(
    tmp_path: Path, mapping: str, text: str, problem: str
) -> None:
    with pytest.raises(InputError, match=problem):
        arms(tmp_path, mapping, text)


def iis(tmp_path: Path, text: str, mapping: str = "iis") -> tuple[Rows, dict[str, int]]:
    return records(tmp_path, mapping, text)


def test_w3c__marks_blanks_and_a_cut_last_line(tmp_path: Path) -> None:
    fields, line = IIS.format(more=""), IIS_LINE.format(more="", took=4021)
    swapped = fields.replace("sc-status sc-bytes", "sc-bytes sc-status")
    rows, left_out = iis(tmp_path, f"\ufeff{fields}{line}\ufeff{swapped}{line}")
    assert [row["bytes_delivered"] for row in rows] == [5012, 200]
    rows, _ = iis(tmp_path, fields.replace("\n", " \n") + line.replace("\n", " \n"))
    assert [row["completion_ns"] for row in rows] == [4_021_000_000]
    rows, left_out = iis(tmp_path, fields + line + line[:-3])
    assert (len(rows), left_out) == (1, {CUT: 1})


@pytest.mark.parametrize(
    ("mapping", "more", "took", "remedy"),
    [
        ("w3c", "sc-win32-status ", "4021", "use --mapping iis"),
        ("w3c", "s-ip ", "4021", "use --mapping iis"),
        ("iis", "x-edge-location ", "0.037", "use --mapping w3c"),
        ("iis", "cs-uri-stem ", "0.037", "has a fraction.*use --mapping w3c"),
    ],
)
def test_time_taken__in_another_unit_than_the_mapping_reads__is_refused(
    tmp_path: Path, mapping: str, more: str, took: str, remedy: str
) -> None:
    with pytest.raises(InputError, match=remedy):
        iis(tmp_path, IIS.format(more=more) + IIS_LINE.format(more="0 ", took=took), mapping)
    own = 'format = "w3c"\n[columns]\ncompletion_ns = { from = "time-taken", unit = "UNIT" }\n'
    copy = parse(own.replace("UNIT", "s" if mapping == "w3c" else "ms"), "copy.toml")
    with pytest.raises(InputError, match=r"copy\.toml"):
        records(tmp_path, copy, IIS.format(more=more) + IIS_LINE.format(more="0 ", took=took))


def test_log__truncated_while_its_writer_went_on__is_read_behind_the_zeros(tmp_path: Path) -> None:
    rows, _ = records(tmp_path, "nginx", b"\0" * 5000 + nginx().encode())
    assert len(rows) == 1


def test_equal_lines__in_several_batches__are_as_many_responses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("uncork.measure.sources.importing.BATCH", 3)
    rows, _ = records(tmp_path, "nginx", nginx() * 8)
    assert len({row["log_id"] for row in rows}) == 8


def test_occurrences__more_lines_than_a_generation__equal_ones_still_differ(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(identity_of, "GENERATION", 4)
    of = Occurrences()
    ids = [of.id(f"{n}") for n in range(6) for _ in range(3)]
    assert len(set(ids)) == len(ids)


def test_an_error_in_the_second_file__leaves_no_records_of_the_first(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("bytes,arm\n5,x\n")
    (tmp_path / "b.csv").write_text("byts,arm\n5,x\n")
    with pytest.raises(InputError, match="lacks 'bytes'"):
        import_files([tmp_path / "a.csv", tmp_path / "b.csv"], parse(CSV, "own.toml"), tmp_path / "out")
    assert not list((tmp_path / "out").iterdir())


def test_fields_that_no_line_has__are_named(tmp_path: Path) -> None:
    text = '{"bytes": 5, "arm": "x"}\n'
    (tmp_path / "a.json").write_text(text)
    own = parse(CSV.replace("csv", "json") + 'completion_ns = "req_time"\n', "own.toml")
    imported = import_files([tmp_path / "a.json"], own, tmp_path / "out")
    assert (imported.unseen, imported.losses.unseen) == (("req_time",), ("req_time",))
    (tmp_path / "a.csv").write_text("bytes,arm\n5,x\n")
    own = parse("optional = true\n" + CSV + 'completion_ns = "req_time"\n', "own.toml")
    assert import_files([tmp_path / "a.csv"], own, tmp_path / "out").unseen == ("req_time",)
    (tmp_path / "a.log").write_text(nginx())
    imported = import_files([tmp_path / "a.log"], built_in("nginx"), tmp_path / "out")
    assert imported.unseen == ("method",)


def test_a_number_with_several_values__is_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="content_length: no number, but several values"):
        records(tmp_path, "nginx", nginx(content_length="5, 5"))


def test_losses__know_the_arm_where_the_row_could_be_read(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text(
        nginx() * 3 + nginx(arm="cubic", time="x") + "no JSON\n" + nginx(status="304")
    )
    imported = import_files([tmp_path / "a.log"], built_in("nginx"), tmp_path / "out")
    assert dict(imported.losses.lost) == {"cubic": 1, "": 1}
    assert dict(imported.losses.read) == {"bbr": 3}
    assert imported.losses.share() == 2 / 5


HAPROXY = (
    "{time} lb haproxy[9]: 192.0.2.7:33317 [02/Nov/2026:12:00:00.000] f b/bbr "
    '1/0/3/9/{took} 200 {bytes} - - ---- 1/1/1/1/0 0/0 "GET / HTTP/1.1"\n'
)


def test_haproxy__logged_before_the_end__is_left_out(tmp_path: Path) -> None:
    lines = HAPROXY.format(time="Nov  2", took="+109", bytes="+212") + HAPROXY.format(
        time="Nov  2", took="109", bytes="212"
    )
    rows, left_out = records(tmp_path, "haproxy-http", lines)
    assert (len(rows), left_out) == (1, {"not a download: logasap": 1})
    line = {
        "end_us": "1795747651544000",
        "client": "192.0.2.7",
        "bytes": "9",
        "took_ms": "+9",
        "state": "----",
    }
    whole = line | {"took_ms": "9"}
    rows, left_out = records(tmp_path, "haproxy", json.dumps(line) + "\n" + json.dumps(whole) + "\n")
    assert (len(rows), left_out) == (1, {"not a download: took_ms": 1})


def test_time_without_an_offset__is_of_the_zone(tmp_path: Path) -> None:
    own = 'format = "json"\n[columns]\n'
    own += 'service_start_unix_ns = { from = "t", time = "clf", zone = "Asia/Kolkata" }\n'
    lines = '{"t": "06/Feb/2026:12:00:00"}\n{"t": "06/Feb/2026:12:00:00 +0000"}\n'
    rows, _ = records(tmp_path, parse(own, "own.toml"), lines)
    noon = 1_770_379_200 * 10**9
    assert [row["service_start_unix_ns"] for row in rows] == [noon - 19_800 * 10**9, noon]
    with pytest.raises(InputError, match=r"zone: no time zone 'Kolkata'; write a name such as"):
        parse(own.replace("Asia/", ""), "own.toml")


COMMON = '192.0.2.7 - - [02/Nov/2026:12:00:00 +0000] "GET /a HTTP/1.1" 200 5 '
TCPLOG = "haproxy[1]: 192.0.2.7:3 [02/Nov/2026:12:00:00.655] f b/s 0/0/5007 212 -- 0/0/0/0/3 0/0"


@pytest.mark.parametrize(
    ("line", "remedy"),
    [
        (TCPLOG, "option tcplog"),
        (COMMON + "81234 + bbr", 'format = "pattern"'),
        (COMMON + '"-" "curl"', "no duration"),
    ],
)
def test_lines_of_another_format__are_named(tmp_path: Path, line: str, remedy: str) -> None:
    with pytest.raises(InputError, match=remedy):
        records(tmp_path, "nginx", line + "\n")


ENVOY = {"start_time": "2026-11-27T00:00:00Z", "duration": "9", "bytes_sent": "5",
         "downstream_remote_address": "192.0.2.7:5"}  # fmt: skip
TRAEFIK = {
    "StartUTC": "2026-11-27T00:00:00Z",
    "Duration": 9,
    "DownstreamStatus": 200,
    "ClientHost": "192.0.2.7",
}


@pytest.mark.parametrize(
    ("mapping", "line", "expected"),
    [
        ("envoy", ENVOY | {"response_code": "200", "response_flags": "DownstreamConnectionTermination"}, 1),
        ("envoy", ENVOY | {"response_code": "200", "response_flags": "UpstreamRemoteReset"}, 1),
        ("envoy", ENVOY | {"response_code": "503", "response_flags": "UpstreamRemoteReset"}, 0),
        ("envoy", ENVOY | {"response_code": "200"}, None),
        ("traefik", TRAEFIK | {"DownstreamContentSize": 1021, "OriginContentSize": 5000}, 1),
        ("traefik", TRAEFIK | {"DownstreamContentSize": 5000, "OriginContentSize": 5000}, 0),
        ("traefik", TRAEFIK | {"DownstreamContentSize": 5000, "OriginContentSize": 0}, None),
        ("traefik", TRAEFIK | {"DownstreamContentSize": 1021}, None),
        ("traefik", TRAEFIK | {"DownstreamContentSize": 1021, "DownstreamStatus": 499}, 1),
    ],
)  # fmt: skip
def test_broken_off__is_null_where_the_line_does_not_show_the_end(
    tmp_path: Path, mapping: str, line: dict[str, Any], expected: int | None
) -> None:
    rows, _ = records(tmp_path, mapping, json.dumps(line) + "\n")
    assert [row["service_broken_off"] for row in rows] == [expected]


def test_nginx__without_completion_and_length__proves_nothing_about_the_end(tmp_path: Path) -> None:
    line = json.loads(nginx())
    for name in ("completed", "content_length"):
        del line[name]
    rows, _ = records(
        tmp_path, "nginx", json.dumps(line) + "\n" + json.dumps(line | {"status": "499"}) + "\n"
    )
    assert [row["service_broken_off"] for row in rows] == [None, 1]


def cmcd(**fields: object) -> str:
    return json.dumps({"time": "2026-11-02T00:00:00Z", "client": "192.0.2.7", "arm": "bbr"} | fields) + "\n"


CHUNK = (1_601_600, 504_440_945)


@pytest.mark.parametrize(
    "url",
    [
        "/a.m4v?CMCD=br%253D3200%252Cd%253D4004%252Cmtp%253D25400%252Csid%253D%25226e%2522",
        '{"br":3200,"d":4004,"mtp":25400,"sid":"6e"}',
        "/a.m4v?CMCD=%7B%22br%22%3A3200%2C%22d%22%3A4004%2C%22mtp%22%3A25400%2C%22sid%22%3A%226e%22%7D",
    ],
)
def test_cmcd__encoded_twice_or_json__is_read(tmp_path: Path, url: str) -> None:
    rows, left_out = records(tmp_path, "cmcd", cmcd(url=url))
    assert (rows[0]["bytes_delivered"], rows[0]["completion_ns"], left_out) == (*CHUNK, {})


@pytest.mark.parametrize(
    "fields",
    [
        {"CMCD-Object": ["br=3200,d=4004"], "CMCD-Request": ["mtp=25400"], "CMCD-Session": ['sid="6e"']},
        {
            "CMCD-Object": {"br": 3200, "d": 4004},
            "CMCD-Request": {"mtp": 25400},
            "CMCD-Session": {"sid": "6e"},
        },
    ],
)
def test_cmcd__headers_as_lists_or_objects__are_read(tmp_path: Path, fields: dict[str, object]) -> None:
    names = ["CMCD-Object", "CMCD-Request", "CMCD-Session"]
    own = (
        f'format = "json"\ncmcd = {names}\n[columns]\ncompletion_ns = {{ from = "chunk.ms", unit = "ms" }}\n'
    )
    rows, left_out = records(tmp_path, parse(own, "own.toml"), cmcd(**fields))
    assert (rows[0]["completion_ns"], left_out) == (CHUNK[1], {})


def test_cmcd__in_a_nested_field__is_found(tmp_path: Path) -> None:
    own = 'format = "json"\nflat = true\ncmcd = "request.uri"\n[columns]\n'
    own += 'completion_ns = { from = "chunk.ms", unit = "ms" }\n'
    line = cmcd(request={"uri": "/a?CMCD=br%3D3200%2Cd%3D4004%2Cmtp%3D25400%2Csid%3D%226e%22"})
    rows, _ = records(tmp_path, parse(own, "own.toml"), line)
    assert rows[0]["completion_ns"] == CHUNK[1]


def test_cmcd__audio_and_video_apart__a_second_and_a_stall_count_once(tmp_path: Path) -> None:
    chunk = 'br=3200,d=4000,mtp=25400,sid="a",ot={kind}{more}\n'
    kinds = [("v", ""), ("a", ""), ("v", ",bs"), ("a", ",bs"), ("tt", "")]
    lines = "".join(chunk.format(kind=kind, more=more) for kind, more in kinds)
    rows, _ = records(tmp_path, "cmcd-log", lines)
    assert (rows[-1]["playback_played_ns"], rows[-1]["playback_stutters"]) == (8_000_000_000, 1)


SIZES = """
format = "csv"
[columns]
service_start_unix_ns = { from = "t", time = "unix_s" }
bytes_delivered = { from = "bytes", unit = "bytes" }
completion_ns = { from = "ms", unit = "ms" }
"""


def test_csv__another_order_of_columns_in_the_middle__is_followed(tmp_path: Path) -> None:
    log = "t,bytes,ms\n1795747651,5000000,1600\nt,ms,bytes\n1795747652,1700,6000000\n"
    rows, left_out = records(tmp_path, parse(SIZES, "own.toml"), log)
    assert [(row["bytes_delivered"], row["completion_ns"]) for row in rows] == [
        (5_000_000, 1_600_000_000),
        (6_000_000, 1_700_000_000),
    ]
    assert left_out == {"the header again": 1}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1234.0", 1234),
        ("2.5e+06", 2_500_000),
        ("1.234", None),
        ("2.000", None),
        ("12.5", None),
        ("1_000", None),
    ],
)
def test_csv__bytes_with_separators__are_refused(tmp_path: Path, text: str, expected: int | None) -> None:
    log = f"t,bytes,ms\n1795747651,{text},1600\n1795747651,7,1600\n"
    rows, left_out = records(tmp_path, parse(SIZES, "own.toml"), log)
    assert [row["bytes_delivered"] for row in rows] == ([7] if expected is None else [expected, 7])
    assert sum(left_out.values()) == (expected is None)


@pytest.mark.parametrize("text", ["NULL", "\\N", "<NA>", "N/A", "undefined"])
def test_csv__words_for_nothing__are_no_values(tmp_path: Path, text: str) -> None:
    log = f"t,bytes,ms\n1795747651,7,{text}\n"
    rows, _ = records(tmp_path, parse(SIZES, "own.toml"), log)
    assert [row["completion_ns"] for row in rows] == [None]


def test_cmcd__a_failed_request_does_not_count_and_a_bad_throughput_does_not_matter(tmp_path: Path) -> None:
    event = 'e=rr,ts=1764475559123,sid="a",v=2,br=(3200;v),d=4004,ttlb=500,rc={code},mtp=(none)\n'
    rows, left_out = records(tmp_path, "cmcd-log", event.format(code=200) + event.format(code=404))
    assert [row["completion_ns"] for row in rows] == [500_000_000, None]
    assert rows[-1]["playback_played_ns"] == 4_004_000_000
    assert left_out == {}


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        ("columns = 5\n", r"columns: 5 is not a table; write \[columns\]"),
        ('delimiter = "tab"\n', r"delimiter: 'tab' is not one character; write"),
        ('leave_out = { from = "a", is = ["b"] }\n', "leave_out: .* is not a list; write"),
        ('header = "a"\n', "header: 'a' is not a list of names; write"),
        ("[columns]\narm = { from = 'a', pattern = 5 }\n", "columns.arm.pattern: 5 is not a text"),
        (
            "[columns]\narm = { from = 'a', pattern = '^[a-z]+$' }\n",
            "has no group; put what counts into brackets",
        ),
        ("[columns]\narm = { from = 'a', names = ['b'] }\n", "columns.arm.names: .* is not a table; write"),
        ("[columns]\narm = { from = 5 }\n", "columns.arm.from: 5 is not a name"),
        (
            "[columns]\narm = { from = 'a', is = ['b'], names = { b = 'c' } }\n",
            "has no names; leave out names",
        ),
        ("[columns]\narm = { value = 1, is = ['b'] }\n", "has no value; leave out value"),
        ("[unit]\nfrom = ['a', 'b']\nkind = 'cookie'\n", "unit: needs from"),
    ],
)
def test_mapping__value_of_another_type__is_refused(more: str, problem: str) -> None:
    with pytest.raises(
        InputError, match=f"^own.toml, {problem}" if not problem.startswith("has") else problem
    ):
        parse(f'format = "csv"\n{more}', "own.toml")


def test_mapping__names_that_its_pattern_or_header_lacks__are_refused() -> None:
    own = "format = 'pattern'\npattern = '^(?P<us>\\d+)$'\n[columns]\ncompletion_ns = 'usec'\n"
    with pytest.raises(
        InputError, match=r"columns.completion_ns: no group of the pattern is 'usec'; did you mean us"
    ):
        parse(own, "own.toml")
    with pytest.raises(InputError, match="unit: no name in header is 'who'"):
        parse(TSV + '[unit]\nfrom = "who"\nkind = "cookie"\n', "own.toml")
