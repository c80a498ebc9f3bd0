"""How much evidence an entry has: records and bytes by arm, of a network or of all networks in a wider entry.

Only rows about them are read, in batches: a version may have a million networks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from uncork.learn.decisions import Decision
from uncork.learn.settings import Settings
from uncork.learn.store import EVIDENCE, Store
from uncork.learn.version import DECISIONS

SENT = "retransmitted"
"""The ratio that has all sent bytes, retransmissions included, as its denominator."""


@dataclass(frozen=True)
class Amounts:
    """Plain sums: old records count as much as new ones. Pairs are of the control arm and the treated one."""

    networks: int
    share: float
    """Of the bytes of all clients, in all arms."""
    records: tuple[int, int]
    sent: tuple[int, int]
    """Bytes; both 0 if records do not have them."""


def amounts(store: Store, number: int, entry: Decision, own: Mapping[str, Decision]) -> Amounts:
    """Of an entry. `own`: all wide entries of its section, by key."""
    settings = store.settings(number).of(entry.about)
    evidence = ds.dataset(store.path(number) / EVIDENCE)
    if entry.level == "network":
        sent = _sent(evidence, entry.section, pa.array([entry.key]), settings)
        return Amounts(1, entry.share, (entry.control, entry.treated), sent)
    wanted = (pc.field("section") == entry.section) & (pc.field("level") == "network")
    wanted &= pc.field("parent").isin(_below(entry.key, own))
    columns = ["key", "share", "control", "treated"]
    rows = pq.read_table(store.path(number) / DECISIONS, columns=columns, filters=wanted)
    control, treated, share = (pc.sum(rows[name]).as_py() or 0 for name in ("control", "treated", "share"))
    sent = _sent(evidence, entry.section, rows["key"].cast(pa.string()), settings)
    return Amounts(rows.num_rows, float(share), (control, treated), sent)


def _below(key: str, own: Mapping[str, Decision]) -> list[str]:
    """The entry and all that are narrower, without networks."""
    found, more = {key}, {key}
    while more:
        more = {one.key for one in own.values() if one.level != "network" and one.parent in more} - found
        found |= more
    return sorted(found)


def _sent(file: ds.Dataset, section: str, networks: pa.Array, settings: Settings) -> tuple[int, int]:
    place, _, of_class = section.rpartition("/")
    wanted = (pc.field("metric") == SENT) & (pc.field("class") == of_class)
    wanted &= pc.field("client").isin(networks)
    if place:
        wanted &= pc.field("place") == place
    total = np.zeros(2, dtype=np.int64)
    for batch in file.to_batches(columns=["arm", "denominator"], filter=wanted):
        for at, arm in enumerate((settings.control, settings.treated)):
            of_arm = batch.filter(pc.equal(batch["arm"].cast(pa.string()), arm))
            total[at] += pc.sum(of_arm["denominator"]).as_py() or 0
    return int(total[0]), int(total[1])
