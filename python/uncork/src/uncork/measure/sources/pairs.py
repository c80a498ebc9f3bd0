"""Paired flows of the laboratory: the k-th client of each controller has the same path, so both are one
unit.

The scenario's text, which is in the file, says which classes of traffic are paired. A run numbers the flows
of all its classes through, and the controllers of a paired class take turns.
"""

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

SCENARIO: Final = b"uncork.scenario.text"
SEPARATOR: Final = "\x1f"


@dataclass(frozen=True)
class Pairs:
    """Which flows share a path, by run and class."""

    run: tuple[str, ...]
    """The columns of a run."""
    classes: frozenset[str]
    """The paired classes."""
    turns: dict[str, tuple[int, int]]
    """By run and class: its first flow, and how many controllers take turns."""

    @staticmethod
    def from_file(path: Path, run: Sequence[str]) -> "Pairs":
        """Of a file of flows. These columns identify a run."""
        classes = _paired_classes(pq.read_schema(path).metadata or {})
        if not classes:
            return Pairs(tuple(run), classes, {})
        table = pq.read_table(path, columns=[*run, "group", "flow", "cc"])
        keyed = table.append_column("key", joined(table, [*run, "group"]))
        found = keyed.group_by("key").aggregate([("flow", "min"), ("cc", "count_distinct")])
        keys, firsts, counts = (found[name].to_pylist() for name in ("key", "flow_min", "cc_count_distinct"))
        return Pairs(
            tuple(run),
            classes,
            {key: (first, count) for key, first, count in zip(keys, firsts, counts, strict=True)},
        )

    def clients(self, table: pa.Table) -> pa.Array:
        """The client of each flow within run and class: the same in both flows of a pair."""
        flows = table["flow"].to_pylist()
        if not self.classes:
            return pa.array([str(flow) for flow in flows], pa.string())
        keys, groups = joined(table, [*self.run, "group"]).to_pylist(), table["group"].to_pylist()
        return pa.array(
            [
                self._client(key, flow) if group in self.classes else str(flow)
                for key, group, flow in zip(keys, groups, flows, strict=True)
            ],
            pa.string(),
        )

    def _client(self, key: str, flow: int) -> str:
        first, controllers = self.turns[key]
        return f"client {(flow - first) // controllers}"


def joined(table: pa.Table, columns: Sequence[str]) -> pa.ChunkedArray:
    """The columns' values as one text."""
    texts = [pc.fill_null(table[name].cast(pa.string()), "") for name in columns]
    return pc.binary_join_element_wise(*texts, SEPARATOR)


def _paired_classes(metadata: dict[bytes, bytes]) -> frozenset[str]:
    """A client of ``arrivals`` has many flows. Their numbers do not identify the client."""
    flows: dict[str, Any] = tomllib.loads(metadata.get(SCENARIO, b"").decode()).get("flow", {})
    return frozenset(name for name, it in flows.items() if it.get("paired") and "arrivals" not in it)
