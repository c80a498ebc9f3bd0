"""The error of logs without a record: a line as it is, and the format that the mapping reads."""

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from uncork.measure.errors import InputError
from uncork.measure.sources.mapping import Mapping, expected

SHOWN: Final = 200
"""Characters of a line in a message."""

REASONS: Final = 3

_TCPLOG: Final = re.compile(r" -?\d+/-?\d+/\+?\d+ \+?\d+ \S\S \d+/\d+/\d+/\d+/\d+ \d+/\d+")
"""HAProxy's lines of connections, which have three times."""

_LOOKS: Final = (
    (re.compile(r"^#(Version|Software|Fields|Date)"), "w3c"),
    (re.compile(r'^\{.*"http\.log'), "caddy"),
    (re.compile(r'^\{.*"DownstreamStatus"'), "traefik"),
    (re.compile(r'^\{.*"downstream_remote_address"'), "envoy"),
    (re.compile(r"haproxy\[\d+\]:.* \d+/\d+/\d+/\d+/\d+ "), "haproxy-http"),
    (re.compile(r"CMCD=", re.IGNORECASE), "cmcd"),
    (re.compile(r'^\ufeff?"?\w+"?([,;\t])("?\w+"?\1)+"?\w+"?$'), "csv"),
)
"""By what a line shows, the mapping that may read it."""

_COMMON: Final = re.compile(r'^\S+ \S+ \S+ \[[^\]]+\] "[^"]*" \d{3} (?:\d+|-)(?P<more>.*)$')
_COMBINED: Final = re.compile(r'(?: "[^"]*" "[^"]*")?\s*')
"""What the combined format has more than the common one."""


_REAL_TIME: Final = re.compile(r"^\d{10}\.\d+\t")


def error(paths: Sequence[Path], mapping: Mapping, rejected: Counter[str], sample: str) -> InputError:
    """What was wrong with the lines, the first of them, and what to do."""
    place = ", ".join(map(str, paths[:3])) + (" …" if len(paths) > 3 else "")
    if not rejected:
        return InputError(place, "no lines: the files are empty")
    reasons = "; ".join(f"{reason} ({count:,})" for reason, count in rejected.most_common(REASONS))
    problem = f"none of {rejected.total():,} lines is a record: {reasons}\n  {sample}\nhelp: "
    return InputError(place, problem + _remedy(mapping, sample))


def _remedy(mapping: Mapping, sample: str) -> str:
    line = sample.partition(": ")[2]
    better = next((name for looks, name in _LOOKS if looks.search(line) and name != mapping.name), None)
    if _TCPLOG.search(line):
        better = None
    lines = [f"these lines look like those of --mapping {better}"] if better else []
    if common := _COMMON.match(line):
        lines.append(_of_common(common["more"]))
    if _TCPLOG.search(line):
        lines.append(
            "this is HAProxy's option tcplog, a line for each connection: log responses, with option httplog "
            "and --mapping haproxy-http, or with the log-format of --mapping haproxy"
        )
    if _REAL_TIME.match(line):
        lines.append(
            'a CloudFront real-time log has no header: copy the mapping and write format = "csv", '
            'delimiter = "\\t" and header = ["timestamp", …], the fields of your configuration'
        )
    lines.append(f"--mapping {mapping.name} reads\n  " + expected(mapping).replace("\n", "\n  "))
    return "; ".join(lines)


def _of_common(more: str) -> str:
    """About a line of the common format with more fields behind it."""
    if _COMBINED.fullmatch(more):
        return "this is the combined format, which has no duration: no mapping can get one from it"
    return (
        "this begins as the common format does, with more fields behind it: if one of them is the duration, "
        'write a mapping with format = "pattern"'
    )
