"""The table of networks: conformance/networks.table, which a server reads, is what this package writes."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from learning import SETTINGS
from uncork.learn import tablefile
from uncork.learn.decisions import KINDS, Decisions
from uncork.learn.entries import level_of

TABLE = Path(__file__).parents[3] / "conformance/networks.table"
MADE = int(datetime(2026, 12, 1, tzinfo=UTC).timestamp()) // 86_400

ENTRIES = [
    # section, entry, arm, the next wider entry
    ("small", "203.0.113.0/24", "bbr", "*"),
    ("small", "*", "control", ""),
    ("large", "2001:db8:1::/48", "bbr", "AS64500"),
    ("large", "203.0.113.0/24", "bbr", "AS64500"),
    ("large", "2001:db8::/48", "control", "AS9"),
    ("large", "198.51.100.0/24", "control", "PE"),
    ("large", "2001:db8:0:1::/64", "bbr", "AS64500"),
    ("large", "9.0.0.0/24", "bbr", "AS64500"),
    # Left out: it has the control arm, and so have all that are wider.
    ("large", "192.0.2.0/24", "control", "AS64500"),
    ("large", "AS4294967295", "bbr", "*"),
    ("large", "AS64500", "control", "CL"),
    ("large", "AS9", "bbr", "PE"),
    ("large", "PE", "bbr", "*"),
    ("large", "CL", "control", "*"),
    ("large", "*", "control", ""),
    ("fra.example large", "9.0.0.0/24", "control", "*"),
    ("fra.example large", "*", "bbr", ""),
]


def decisions() -> Decisions:
    rows = [
        {"section": section, "key": key, "arm": arm, "parent": parent, "level": level_of(key)}
        for section, key, arm, parent in ENTRIES
    ]
    unused = {name: "" if kind == pa.string() else 0 for name, kind in KINDS.items()}
    return Decisions.from_table(pa.Table.from_pylist([unused | row for row in rows], pa.schema(KINDS)))


def test_the_table_that_a_server_reads_is_written_byte_for_byte() -> None:
    if not TABLE.exists():
        pytest.skip(f"*** NOT RUN: {TABLE} is only in the repository ***")
    settings = replace(SETTINGS, as_of=MADE, ttl=7)
    assert tablefile.table(12, decisions(), settings).encode() == TABLE.read_bytes()
