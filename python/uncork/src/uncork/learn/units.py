"""Client-days of a section, by arm and bucket: what checks of the arms count.

A unit counts once a day, by inverse propensity and less the older the day is, as in the evidence of lifts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from uncork.experiment.health.ratio import Planned
from uncork.learn.decisions import Texts, coded, texts
from uncork.learn.evidence import UNITS, of_metric, section_name
from uncork.learn.lift import faded, with_enough_buckets
from uncork.learn.settings import Settings
from uncork.measure.cubes import BUCKETS

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Rows:
    """Rows of one section: all arrays have the shape (rows,)."""

    arm: Ints
    bucket: Ints
    weight: Floats
    """Inverse propensity, less for old days, of each unit."""
    n: Floats
    records: Floats
    """Of these units."""
    network: Texts
    system: Texts

    def where(self, rows: Bools | Ints) -> Rows:
        """Some of the rows."""
        return Rows(*(getattr(self, name)[rows] for name in self.__dataclass_fields__))

    def sums(self, amount: Floats) -> Floats:
        """An amount of each row by arm and bucket: shape (2, buckets)."""
        found = np.zeros((2, BUCKETS))
        np.add.at(found, (self.arm, self.bucket), amount)
        return found

    def groups(self, names: Texts) -> Iterator[tuple[str, Rows]]:
        """The rows of each name, of those with enough buckets for an interval. No name: None or empty."""
        some, named = self.where(names.astype(np.bool_)), names[names.astype(np.bool_)]
        code, words = coded(named)
        enough = with_enough_buckets(code, some.arm, some.bucket)
        rows = np.flatnonzero(np.isin(code, enough))
        rows = rows[np.argsort(code[rows], kind="stable")]
        for part in np.split(rows, np.flatnonzero(np.diff(code[rows])) + 1):
            if len(part):
                yield str(words[code[part[0]]]), some.where(part)


def planned(evidence: pa.Table, settings: Settings) -> Planned:
    """What the arms' units are compared with, as `uncork experiment analyze` does it."""
    if settings.share is not None:
        return Planned(settings.share, "declared")
    if settings.checked and _of_arms(evidence, settings)["propensity"].null_count:
        return Planned(0.5, "assumed")
    return Planned(None, "recorded")


def client_days(evidence: pa.Table, settings: Settings) -> Mapping[str, Rows]:
    """By section. Earlier versions have no units."""
    rows, plan = _of_arms(evidence, settings), planned(evidence, settings)
    if plan.share is None:
        rows = rows.filter(pc.greater(rows["propensity"], 0))
    arm = np.asarray(pc.equal(rows["arm"].cast(pa.string()), settings.treated), dtype=np.int64)
    columns = {name: np.asarray(rows[name]) for name in ("day", "bucket", "n")}
    dealt = (
        np.asarray(rows["propensity"]) if plan.share is None else np.where(arm, plan.share, 1 - plan.share)
    )
    system = pc.binary_join_element_wise("AS", rows["asn"].cast(pa.string()), "")
    names = {"network": rows["client"], "system": system}
    named = {name: texts(column.combine_chunks()) for name, column in names.items()}
    records = np.asarray(pc.fill_null(rows["numerator"], 0), dtype=np.float64)
    weight = faded(columns["day"], settings) / dealt
    whole = Rows(arm, columns["bucket"], weight, columns["n"].astype(np.float64), records, **named)
    place, of_class = (texts(rows[name].combine_chunks()) for name in ("place", "class"))
    return {
        section_name(at, of): whole.where((place == at) & (of_class == of))
        for at, of in {*zip(place.tolist(), of_class.tolist(), strict=True)}
    }


def _of_arms(evidence: pa.Table, settings: Settings) -> pa.Table:
    rows = of_metric(evidence, UNITS)
    is_of_arm = pc.is_in(rows["arm"].cast(pa.string()), pa.array([settings.control, settings.treated]))
    return rows.filter(pc.and_(pc.is_valid(rows["class"]), is_of_arm))
