"""The metrics: what each counts, in which records and unit, and which direction is better.

Distributions of positive values are counted in logarithmic bins; values that are often zero (stutters, bytes
sent again) are ratios of sums. Sums are of whole numbers, so that they are exact on every engine.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final, Literal

import ibis
import ibis.expr.types as ir

from uncork.measure.errors import InputError
from uncork.measure.schema import (
    CLIENT_ENGINES,
    LARGE_BYTES,
    NANOS_PER_SECOND,
    SERVER_ENGINES,
    Columns,
)

START_BYTES: Final = 100_000
"""Maximum size of an object that is sent in the first round trips: 69 packets, three round trips from ten."""

CHUNK_BYTES: Final = 500_000
"""Minimum size of a media chunk that counts for the bandwidth."""

SIZE_CLASSES: Final = ("<100 kB", "100 kB-1 MB", "1-3 MB", "3-10 MB", ">=10 MB")
SIZE_LIMITS: Final = (100_000, 1_000_000, 3_000_000, 10_000_000)

CLIENT_LEFT: Final = (460, 499)
"""What servers log as the status where the client left before an answer."""

Expression = Callable[[Columns], ir.Value]


@dataclass(frozen=True)
class Metric:
    """A metric of canonical records."""

    name: str
    title: str
    kind: Literal["distribution", "ratio"]
    unit: str
    """``bit/s``, ``s``, nothing, or that of a metric of one's own."""
    better: Literal["higher", "lower"]
    needs: tuple[str, ...]
    """Columns without which it does not exist."""
    value: Expression
    """Of a distribution the value, of a ratio the numerator. Null: the record has none."""
    per: Expression | None = None
    """The denominator of a ratio."""
    bounds: tuple[float, float] = (0.0, 0.0)
    """Values beyond count as these. What did not finish counts as the upper one."""
    about: str = ""
    statistics: tuple[str, ...] = ()
    """Of a metric of one's own: what the scorecard shows."""
    is_share: bool = False
    """Of a ratio of one's own: whether it is a part of a whole."""
    limit: str = ""
    """Of a metric of one's own: how much worse it may get, as `--guardrail` has it."""
    is_mean: bool = False
    """Of a ratio: whether its denominator is the number of records."""
    is_shown: bool = True
    """Whether analyses have it without being asked."""


def size(t: Columns) -> ir.IntegerValue:
    """What was asked for: known before the controller had any influence. Of a whole connection, what came."""
    return ibis.coalesce(t["size_bytes"], t["bytes_acked"], t["bytes_delivered"])


def _rate(bytes_: ir.Value, nanoseconds: ir.Value) -> ir.Value:
    """In bits per second; null if no time passed."""
    return bytes_.cast("float64") * 8e9 / nanoseconds.nullif(0).cast("float64")


def _seconds(nanoseconds: ir.Value) -> ir.Value:
    return nanoseconds.cast("float64") / float(NANOS_PER_SECOND)


def _only(condition: ir.Value, value: ir.Value) -> ir.Value:
    return ibis.cases((condition, value), else_=ibis.null().cast(value.type()))


def is_unfinished(t: Columns) -> ir.Value:
    """Whether the response was broken off: reported as such, or records of others with fewer bytes than were
    asked for. Records of uncork have no completion time then, and may leave bytes of the warm-up out.
    """
    is_short = ~_is_own(t) & (t["bytes_delivered"] < t["size_bytes"]).fill_null(False)
    return (t["service_broken_off"] > 0).fill_null(False) | is_short


def _is_own(t: Columns) -> ir.Value:
    return t["engine"].fill_null("").isin((*CLIENT_ENGINES, *SERVER_ENGINES, "bpf"))


def _shows_end(t: Columns) -> ir.Value:
    """Whether the bytes of the record show if it is whole: records of others with both sizes."""
    return ~_is_own(t) & t["bytes_delivered"].notnull() & t["size_bytes"].notnull()


def _broken_off(t: Columns) -> ir.Value:
    """Responses broken off: as reported, and one if the record shows it. Throughput leaves these out."""
    none = ibis.literal(0, "int64")
    seen = ibis.greatest(t["service_broken_off"].fill_null(none), is_unfinished(t).cast("int64"))
    return ibis.cases((_shows_end(t), seen), else_=t["service_broken_off"])


def _responses(t: Columns) -> ir.Value:
    """Responses of a record that counts in `aborted`."""
    one = ibis.literal(1, "int64")
    seen = ibis.greatest(t["service_responses"].fill_null(one), is_unfinished(t).cast("int64"))
    return ibis.cases((_shows_end(t), seen), else_=t["service_responses"])


def _is_error(t: Columns) -> ir.Value:
    """Whether the server answered with an error page. Null without a status."""
    status = t["service_status"]
    return (status >= 400) & ~status.isin(CLIENT_LEFT)


def is_download(t: Columns) -> ir.Value:
    """Whether the response had what was asked for, as far as its status says. Error pages and redirects are
    short and come at once: the arm with more of them would look faster.
    """
    status = t["service_status"]
    return ((status < 300) | status.isin(CLIENT_LEFT)).fill_null(True)


def rate(t: Columns) -> ir.Value:
    """Throughput by the best measure that the record has. A player's song is rated while it was fetched; the
    clock of a response that was broken off shows when the client gave up.
    """
    is_timed = (t["source"] != "acked") & t["completion_ns"].notnull() & t["playback_items"].isnull()
    is_timed &= ~is_unfinished(t)
    by_clock = _rate(t["bytes_delivered"], t["completion_ns"])
    return ibis.cases((is_timed, by_clock), else_=_rate(t["bytes_acked"], t["busy_ns"]))


def is_large(t: Columns) -> ir.Value:
    """Whether throughput is about the download."""
    return (size(t) >= LARGE_BYTES) & t["playback_items"].isnull() & is_download(t)


def is_chunk(t: Columns) -> ir.Value:
    """Whether bandwidth is about the download."""
    return ((size(t) >= CHUNK_BYTES) | t["playback_items"].notnull()) & is_download(t)


def is_small(t: Columns) -> ir.Value:
    """Whether completion time is about the download."""
    return (t["size_bytes"] < LARGE_BYTES) & is_download(t)


def _throughput(t: Columns) -> ir.Value:
    return _only(is_large(t), rate(t))


def _bandwidth(t: Columns) -> ir.Value:
    return _only(is_chunk(t), rate(t))


def _completion(t: Columns) -> ir.Value:
    """Of smaller objects. What was asked for and did not arrive took longer than all others."""
    hour = ibis.literal(HOUR, "float64")
    took = ibis.cases((is_unfinished(t), hour), else_=ibis.coalesce(_seconds(t["completion_ns"]), hour))
    return _only(is_small(t), took)


def _playback_latency(t: Columns) -> ir.Value:
    waited = ibis.coalesce(_seconds(t["playback_startup_ns"]), ibis.literal(HOUR, "float64"))
    return _only(t["playback_items"].notnull(), waited)


def _rtt_inflation(t: Columns) -> ir.Value:
    return t["rtt_p50_ms"] / t["rtt_min_ms"].nullif(0.0)


def _queue_delay(t: Columns) -> ir.Value:
    """In seconds. An empty queue counts as the lower bound."""
    delay = (t["rtt_p50_ms"] - t["rtt_min_ms"]).cast("float64") / 1e3
    least = ibis.literal(_DELAYS[0], "float64")
    return ibis.cases((delay.between(0.0, least), least), else_=delay)


def _micros(nanoseconds: ir.Value) -> ir.Value:
    """Sums of nanoseconds of a billion records would not fit into 64 bits."""
    return (nanoseconds.cast("float64") / 1e3).floor().cast("int64")


def _in_start(value: str) -> Expression:
    """Of objects that end within the first round trips."""
    return lambda t: _only(size(t) <= START_BYTES, t[value])


def _thousandths(milliseconds: ir.Value) -> ir.Value:
    return (milliseconds.cast("float64") * 1e3).floor().cast("int64")


HOUR: Final = 3600.0
_SECONDS: Final = (1e-6, HOUR)
_DELAYS: Final = (1e-5, HOUR)
_RATES: Final = (1e3, 1e12)
_ROUNDS: Final = (1.0, 1e4)

BUILT_IN: Final[dict[str, Metric]] = {
    metric.name: metric
    for metric in (
        Metric(
            "throughput",
            "Throughput of objects of 3 MB and more",
            "distribution",
            "bit/s",
            "higher",
            needs=("bytes_acked|bytes_delivered", "busy_ns|completion_ns"),
            value=_throughput,
            bounds=_RATES,
            about="Acknowledged bytes over the time in which data was in flight or waiting; where the client "
            "measured, bytes over the time until it had the last one.",
        ),
        Metric(
            "completion",
            "Completion time of objects below 3 MB",
            "distribution",
            "s",
            "lower",
            needs=("completion_ns", "size_bytes"),
            value=_completion,
            bounds=_SECONDS,
            about="What did not finish counts as slower than all others.",
        ),
        Metric(
            "first_byte",
            "Time to the first byte",
            "distribution",
            "s",
            "lower",
            needs=("first_byte_ns",),
            value=lambda t: _only(is_download(t), _seconds(t["first_byte_ns"])),
            bounds=_SECONDS,
        ),
        Metric(
            "retransmitted",
            "Share of bytes sent again",
            "ratio",
            "",
            "lower",
            needs=("bytes_retransmitted", "bytes_sent"),
            value=lambda t: t["bytes_retransmitted"],
            per=lambda t: t["bytes_sent"],
        ),
        Metric(
            "rtt_inflation",
            "Round-trip time over its minimum",
            "distribution",
            "",
            "lower",
            needs=("rtt_p50_ms", "rtt_min_ms"),
            value=_rtt_inflation,
            bounds=(1e-2, 1e5),
            about="The median of a transfer over the least of its connection: how full queues are.",
        ),
        Metric(
            "queue_delay",
            "Queueing delay",
            "distribution",
            "s",
            "lower",
            needs=("rtt_p50_ms", "rtt_min_ms"),
            value=_queue_delay,
            bounds=_DELAYS,
            about="The median round-trip time of a transfer minus the least of its connection.",
        ),
        Metric(
            "early_resent",
            "Share of bytes of the first two round trips sent again",
            "ratio",
            "",
            "lower",
            needs=("start_early_resent_bytes", "start_early_sent_bytes"),
            value=lambda t: t["start_early_resent_bytes"],
            per=lambda t: t["start_early_sent_bytes"],
            about="What the initial window overflows. Each connection counts once.",
        ),
        Metric(
            "start_lost",
            "Share of bytes of the start lost",
            "ratio",
            "",
            "lower",
            needs=("start_lost_bytes", "start_sent_bytes"),
            value=lambda t: t["start_lost_bytes"],
            per=lambda t: t["start_sent_bytes"],
            about="Of all that was sent before slow start or Startup ended.",
        ),
        Metric(
            "start_rounds",
            "Round trips to 100 kB",
            "distribution",
            "",
            "lower",
            needs=("start_rounds_to_100kb",),
            value=lambda t: t["start_rounds_to_100kb"].cast("float64"),
            bounds=_ROUNDS,
            about="Of connections that delivered as much.",
        ),
        Metric(
            "start_resent",
            "Share of bytes sent again, objects up to 100 kB",
            "ratio",
            "",
            "lower",
            needs=("bytes_retransmitted", "bytes_sent"),
            value=_in_start("bytes_retransmitted"),
            per=_in_start("bytes_sent"),
            about="Such objects are sent in the first round trips: what the start of a connection overflows.",
            is_shown=False,
        ),
        Metric(
            "queued",
            "Share of the round-trip time that is queueing",
            "ratio",
            "",
            "lower",
            needs=("rtt_p50_ms", "rtt_min_ms"),
            value=lambda t: _thousandths(t["rtt_p50_ms"] - t["rtt_min_ms"]),
            per=lambda t: _thousandths(t["rtt_p50_ms"]),
            about="The median round-trip time of a transfer less the least of its connection, over that.",
            is_shown=False,
        ),
        Metric(
            "aborted",
            "Share of responses broken off",
            "ratio",
            "",
            "lower",
            needs=("service_broken_off|bytes_delivered", "service_responses|size_bytes"),
            value=_broken_off,
            per=_responses,
            about="As reported. A record of others with fewer bytes than were asked for counts, too.",
        ),
        Metric(
            "failed",
            "Share of responses that are error pages",
            "ratio",
            "",
            "lower",
            needs=("service_status",),
            value=lambda t: _is_error(t).cast("int64"),
            per=lambda t: _only(t["service_status"].notnull(), ibis.literal(1, "int64")),
            about="Status 400 and above, without 460 and 499: there the client left. Error pages and "
            "redirects have no throughput and no completion time.",
        ),
        Metric(
            "playback_latency",
            "Playback latency",
            "distribution",
            "s",
            "lower",
            needs=("playback_startup_ns", "playback_items"),
            value=_playback_latency,
            bounds=_SECONDS,
            about="From the click to the first sound. Who heard none waited longer than all others.",
        ),
        Metric(
            "stutters",
            "Stutters per song",
            "ratio",
            "",
            "lower",
            needs=("playback_stutters", "playback_items"),
            value=lambda t: t["playback_stutters"],
            per=lambda t: t["playback_items"],
        ),
        Metric(
            "stalled",
            "Share of time that stood still",
            "ratio",
            "",
            "lower",
            needs=("playback_stalled_ns", "playback_played_ns"),
            value=lambda t: _micros(t["playback_stalled_ns"]),
            per=lambda t: _micros(t["playback_stalled_ns"]) + _micros(t["playback_played_ns"]),
        ),
        Metric(
            "bandwidth",
            "Bandwidth of songs and chunks",
            "distribution",
            "bit/s",
            "higher",
            needs=("bytes_acked|bytes_delivered", "busy_ns|completion_ns"),
            value=_bandwidth,
            bounds=_RATES,
            about="Of transfers of 500 kB and more, and of what a player fetched for a song.",
        ),
    )
}

_OWN: ContextVar[Mapping[str, Metric]] = ContextVar("own metrics", default={})  # noqa: B039 (never changed)


class _Registry(Mapping[str, Metric]):
    """The built-in metrics, and those of the records that are analysed."""

    def __getitem__(self, name: str) -> Metric:
        own = _OWN.get()
        return own[name] if name in own else BUILT_IN[name]

    def __iter__(self) -> Iterator[str]:
        return iter((*BUILT_IN, *_OWN.get()))

    def __len__(self) -> int:
        return len(BUILT_IN) + len(_OWN.get())


METRICS: Final[Mapping[str, Metric]] = _Registry()
"""All metrics by name. Those of one's own are there within ``declared``, in this context only."""


@contextmanager
def declared(metrics: Iterable[Metric]) -> Iterator[None]:
    """Metrics of one's own, while the context lasts. A built-in one is never replaced."""
    token = _OWN.set(_checked(metrics))
    try:
        yield
    finally:
        _OWN.reset(token)


def declare(metrics: Iterable[Metric]) -> None:
    """The same until the end of a context (``contextvars.Context.run``), such as of a command."""
    _OWN.set(_checked(metrics))


def _checked(metrics: Iterable[Metric]) -> dict[str, Metric]:
    own = {metric.name: metric for metric in metrics}
    if taken := [name for name in own if name in BUILT_IN]:
        raise InputError(
            f"metric.{taken[0]}", "this is the name of a built-in metric", "give it another name"
        )
    return own


def available(columns: frozenset[str] | set[str], asked: Collection[str] = ()) -> tuple[str, ...]:
    """Names of the metrics that records with these columns have: shown ones, and `asked` ones."""
    return tuple(
        name
        for name, metric in METRICS.items()
        if (metric.is_shown or name in asked) and not missing(metric, columns)
    )


def missing(metric: Metric, columns: frozenset[str] | set[str]) -> tuple[str, ...]:
    """The columns that the metric needs and that are not there; ``a|b`` is one of two."""
    return tuple(need for need in metric.needs if not columns & set(need.split("|")))
