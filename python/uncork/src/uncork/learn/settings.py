"""Settings that are declared before the records are read. Decisions depend on them and the evidence only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from uncork.experiment import measures
from uncork.experiment.decide.guardrails import MIN_KEPT
from uncork.experiment.result import Limit, Measure
from uncork.learn.defaults import GUARDRAILS, LARGE, SITES, SMALL
from uncork.measure.errors import InputError
from uncork.measure.schema import LARGE_BYTES

LIMIT_TEXT = f"{LARGE_BYTES // 1_000_000}MB"

PRIMARY: Mapping[str, Measure] = {
    LARGE: Measure("throughput", "p10"),
    SMALL: Measure("completion", "p50"),
}
"""What an arm is to improve, by class of objects."""

HOLDBACK = "uncork-learn-holdback"
"""The experiment that keeps its clients on the control arm for good."""
TABLE_RULE = "learned, "
"""How the names of the rules begin by which the table decides."""
UNIT_RULE = "learned with unit, "
"""Likewise, for clients with the cookie or header that is the unit: only they can be in the holdback."""


@dataclass(frozen=True)
class Settings:
    """Written into each version, so that its decisions can be recomputed."""

    experiment: str
    control: str
    treated: str
    arms: Mapping[str, Mapping[str, str]]
    """Settings of the arms' connections, for the policy."""
    as_of: int
    """The day, since 1970, before which the records are: the decisions' date."""
    key: str
    """Of the policy: 32 hexadecimal digits."""
    place: str = ""
    """What names the point of presence: `listener` or `host`; empty: nothing."""
    places: int | None = 100
    """Most places that have sections: those with most bytes. None: all, as before there was a limit."""
    unit: str = "prefix"
    listener: str = ""
    sites: tuple[str, ...] = SITES
    guardrails: tuple[str, ...] = GUARDRAILS
    worth: float = 0.01
    """The least expected lift that is worth a change."""
    tolerated: float = 0.02
    """The tolerated loss: a lift below minus this is harm."""
    sure: float = 0.95
    """Minimum probability to switch an entry on: that it has no such harm, and that the gain of some network
    is beyond chance.
    """
    doubt: float = MIN_KEPT
    """Probability of any lift below which an entry is switched off. It is not on, either, where a limit is
    less likely kept than this.
    """
    harmed: float = 0.002
    """Most of a section's traffic that is harmed, with the probability `sure`."""
    kinds: bool = True
    """Whether siblings may be of several kinds (mixture.py), or are spread normally, as before that."""
    kinds_of_harm: bool = True
    """Likewise, of the harm by which guardrails are judged."""
    calibrated: bool = True
    """Whether errors are widened until they cover days held out (calibration.py)."""
    harm: float = 0.05
    """How much worse the measure may be in the last days, by a bound that holds at every look."""
    recent: tuple[int, ...] = (3, 1)
    """Days that guardrails look at: the longer for small harm, the shorter for large harm, soon."""
    off_in_all: bool = True
    """Whether who breaks a guardrail in some of these days counts no more for wider entries in any. Before,
    each of them was judged alone.
    """
    likely: bool = True
    """Whether an entry is not on either where the interval of one of `guardrails` lies beyond its limit, as
    in `uncork experiment`. Before, only the probability that the limit is kept counted.
    """
    window: int = 28
    """Days of evidence."""
    half_life: float = 14.0
    """Days after which evidence counts half."""
    dwell: int = 3
    """Least days between two changes of an entry."""
    changed: float = 0.2
    """Most of the traffic that may change in a day."""
    confirm: float = 1.0
    """Most of an AS's bytes that may change before a switchback confirms it; 1: it needs none."""
    random: float = 0.1
    """Share of the units that stays random."""
    holdback: float = 0.01
    """Share of the units that always has the control arm."""
    ttl: int = 7
    """Days until the table expires."""
    rules: str = ""
    """Hand-written rules, which come first in the policy."""
    only: str = ""
    """The class of objects that decides for all connections; empty: each decides for its own."""
    prior: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """What a calibrated twin expects of ASes: lift of large objects (log scale) and standard deviation."""
    regions: Mapping[str, str] = field(default_factory=dict)
    """Names of client networks (`--networks`). A name takes the place of the AS."""
    today: int | None = None
    """The day on which the version is made and becomes active. Switchbacks use the coin of this day. While
    records arrive, `as_of` is tomorrow. None: the day is `as_of`.
    """
    whole_days: bool = True
    """Whether a switchback begins with a whole day, counts no day on which both arms were active for long,
    and makes up for a look that was missed. Before, it did not.
    """
    others: tuple[str, ...] = ()
    """More treated arms, where an entry may have one of several."""
    tried_stay: bool = True
    """Whether a network that a switchback tries counts as on, also on days without, when it is asked what it
    wants, and one that is frozen keeps its arm. Before, the former left the trial on each day on which it
    would not have been switched on again, and the latter was switched off.
    """

    inside: bool = True
    """Whether a pin or freeze of a network reaches the networks in it. Before, it was of that entry alone."""

    from_zero: bool = True
    """Whether a relative limit counts where the control arm has few events or none. Before, it was blind."""

    as_dealt: bool = True
    """Whether guardrails of the last days count by inverse propensity if that changed. Before, they did not.
    """

    share: float | None = None
    """Planned share of treated units, of the units of both arms. None: by the propensities of the records,
    else equal arms.
    """

    by_unit: bool = True
    """Whether the holdback is compared with clients that have the unit, too. Before, with all."""

    checked: bool = True
    """Whether the checks of checks.py count. Before, the sample ratio of a section was the only one."""

    @property
    def candidates(self) -> tuple[str, ...]:
        """All treated arms."""
        return (self.treated, *self.others)

    def of(self, candidate: str) -> Settings:
        """The settings of two arms: control and one of the treated arms."""
        return replace(self, treated=candidate, others=()) if self.others else self

    @property
    def day(self) -> int:
        """The day on which the version becomes active."""
        return self.as_of if self.today is None else self.today

    @property
    def unit_condition(self) -> tuple[str, str] | None:
        """The key of a policy's condition, and the name of the cookie or header, that a client with the unit
        meets. None: each client has the unit.
        """
        kind, _, name = self.unit.partition(":")
        return (kind, name) if name and self.by_unit else None

    def limits(self) -> tuple[Limit, ...]:
        """The guardrails; all are ratios, which add up over networks."""
        limits = tuple(measures.parse_limit(text) for text in self.guardrails)
        for limit in limits:
            if limit.measure.statistic != "ratio":
                raise InputError(
                    f"--guardrail {limit.measure}",
                    "is not a ratio",
                    "such as retransmitted=2pp or stutters=5%",
                )
        return limits

    def prior_of(self, of_class: str) -> Mapping[str, tuple[float, float]]:
        """What a twin expects of ASes, for a class of objects."""
        return self.prior if of_class == LARGE else {}

    def document(self) -> dict[str, object]:
        """For JSON. Two arms are written as before there could be more."""
        found = asdict(self)
        if not self.others:
            del found["others"]
        return found

    @staticmethod
    def from_document(document: Mapping[str, object]) -> Settings:
        """The settings that `document` wrote."""
        # Earlier versions had none.
        missing = {
            "harmed": 1.0,
            "kinds": False,
            "kinds_of_harm": False,
            "calibrated": False,
            "whole_days": False,
            "tried_stay": False,
            "places": None,
            "off_in_all": False,
            "likely": False,
            "inside": False,
            "from_zero": False,
            "as_dealt": False,
            "by_unit": False,
            "checked": False,
        }
        values: dict[str, Any] = {**missing, **document}
        for name in ("sites", "guardrails", "recent", "others"):
            values[name] = tuple(values.get(name, ()))
        values["prior"] = {name: (lift, sd) for name, (lift, sd) in values.get("prior", {}).items()}
        return Settings(**values)


@dataclass(frozen=True)
class Overrides:
    """What a person decided: arms of entries, and entries that stay as they are."""

    pins: Mapping[str, str] = field(default_factory=dict)
    """Arm by network, AS, country or `*`."""
    frozen: tuple[str, ...] = ()
    """Networks, ASes, countries; `*` is everything."""
