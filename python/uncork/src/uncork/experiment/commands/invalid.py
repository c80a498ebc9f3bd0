"""Values that no record can have and that would decide unnoticed: `analyze` and `learn` refuse them alike.

Impossible measurements are a finding (health/judge.py): they are left out. These values say which client had
which arm, so nothing can be decided without them.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import ibis.expr.types as ir

from uncork.measure.cubes import BUCKETS
from uncork.measure.errors import InputError
from uncork.measure.reduce import Run, to_arrow
from uncork.measure.sources.reading import read

ROUNDING: Final = 1e-9
MAX_FILES: Final = 1000
"""Files that are searched for the first one with such a value."""


@dataclass(frozen=True)
class Rule:
    """What the values of a column must be."""

    is_valid: Callable[[ir.Value], ir.Value]
    must: str
    remedy: str


RULES: Final = {
    "arm_propensity": Rule(
        # By the bounds of a Parquet file, which leave NaN out, DuckDB concludes that no value is beyond them.
        lambda value: (value > 0.0) & (value <= 1.0 + ROUNDING) & ~value.cast("float64").isnan(),
        "above 0 and at most 1",
        "write the probability of the arm that the record is in, or no value",
    ),
    "arm_bucket": Rule(
        lambda value: (value >= 0) & (value < BUCKETS),
        f"0 to {BUCKETS - 1}",
        f"write the unit's hash modulo {BUCKETS}, or leave the column out",
    ),
    "size_bytes": Rule(lambda value: value >= 0, "0 or more", "write the size, or no value if it is unknown"),
}
CLIENT: Final = "service_client"
USUAL: Final = (".0/24", "::/48")
"""How networks end that servers write."""


def check(table: ir.Table, run: Run, files: Sequence[Path] = ()) -> None:
    """Refuses the first column with such values. `files`: in which the error looks for them."""
    for name, rule in RULES.items():
        if name in table.columns:
            _check_numbers(table, run, name, rule, files)
    if CLIENT in table.columns:
        _check_clients(table, run, files)


def _check_numbers(table: ir.Table, run: Run, name: str, rule: Rule, files: Sequence[Path]) -> None:
    def is_wrong(of: ir.Table) -> ir.BooleanValue:
        return of[name].notnull() & ~rule.is_valid(of[name])

    here = is_wrong(table)
    counts = table.aggregate(n=table.count(where=here), example=table[name].min(where=here))
    row = run(counts).to_pylist()[0]
    if row["n"]:
        problem = f"{row['n']:,} rows have a value such as {row['example']}; it must be {rule.must}"
        raise InputError(_place(files, name, is_wrong), problem, rule.remedy)


def _check_clients(table: ir.Table, run: Run, files: Sequence[Path]) -> None:
    """A network with host bits would be another network for `analyze`, and none for `learn`."""
    clients = run(table.select(CLIENT).distinct())[CLIENT].drop_null().to_pylist()
    wrong = sorted(text for text in clients if not text.endswith(USUAL) and _has_host_bits(text))
    if not wrong:
        return

    def is_wrong(of: ir.Table) -> ir.BooleanValue:
        return of[CLIENT].isin(wrong)

    n = run(table.aggregate(n=table.count(where=is_wrong(table)))).to_pylist()[0]["n"]
    problem = f"{n:,} rows have a client network with host bits, such as {wrong[0]}"
    remedy = f"write {ipaddress.ip_network(wrong[0], strict=False)}, or an address alone"
    raise InputError(_place(files, CLIENT, is_wrong), problem, remedy)


def _has_host_bits(text: str) -> bool:
    """Whether it is a network but for them. Other texts are of no network."""
    try:
        network = ipaddress.ip_network(text, strict=False)
    except ValueError:
        return False
    return str(network.network_address) != str(ipaddress.ip_address(text.partition("/")[0]))


def _place(files: Sequence[Path], name: str, is_wrong: Callable[[ir.Table], ir.BooleanValue]) -> str:
    """The column, and the first file that has such a value."""
    for path in files[:MAX_FILES] if len(files) > 1 else ():
        one = read([str(path)]).table
        if name in one.columns and to_arrow(one.filter(is_wrong(one)).limit(1)).num_rows:
            return f"{path}: column {name}"
    return f"{files[0] if len(files) == 1 else 'records'}: column {name}"
