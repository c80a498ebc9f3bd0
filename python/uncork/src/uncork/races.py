"""`race`: flows over one path at the same time, with controllers of uncork and of your own."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Protocol, TypeAlias

from uncork import _native
from uncork.laboratory import Table
from uncork.measure.errors import InputError
from uncork.options import texts, unicode

Ack: TypeAlias = _native.Ack
Decision: TypeAlias = float | tuple[float, float] | None
"""A window in bytes, or window and pacing rate in bit/s. None keeps both."""


class Controller(Protocol):
    """A controller of your own."""

    def on_ack(self, ack: Ack) -> Decision:
        """Called for each acknowledgement, and when a timer declares packets lost. Nothing is sent before it
        returns.
        """


class Race:
    """The result of a race. As an Arrow stream it is the table `flows`."""

    def __init__(self, ran: _native.Race, names: Sequence[str]) -> None:
        self._ran, self._names = ran, names

    @cached_property
    def flows(self) -> Table:
        """A row for each flow."""
        return self._ran.flows()

    @cached_property
    def series(self) -> Table:
        """The state of the flows over time: 500 points for each."""
        return self._ran.series()

    def __repr__(self) -> str:
        return f"<uncork.Race: {', '.join(self._names)}>"

    def __arrow_c_schema__(self) -> object:
        return self.flows.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.flows.__arrow_c_stream__(requested_schema)


def race(
    flows: Sequence[str | Controller],
    *,
    preset: str | None = None,
    rate: str | None = None,
    rtt: str | None = None,
    loss: str | None = None,
    loss_position: str | None = None,
    buffer: str | None = None,
    queue: str | None = None,
    jitter: str | None = None,
    host_jitter: str | None = None,
    duration: str = "30s",
    seed: int | None = None,
) -> Race:
    """Sends flows of unlimited data over one path for `duration`. They start together. `flows` has names of
    controllers, such as `cubic`, and objects with a method `on_ack`.

    An object keeps its state: give each race a new one.

    The path has the options and defaults of `uncork.compare`. Raises `InputError`, with `place`, `problem`
    and `remedy`. An exception of a controller ends the race.
    """
    given = {name: value for name, value in locals().items() if name != "flows"}
    if isinstance(flows, str) or not isinstance(flows, Sequence) or not flows:
        raise InputError(
            f"flows={flows!r}", "is not a list of controllers", "write ['cubic', MyController()]"
        )
    for nth, flow in enumerate(flows):
        if not isinstance(flow, str) and any(flow is other for other in flows[:nth]):
            problem = "this object has another flow, and both would share its state"
            raise InputError(f"flows[{nth}]", problem, "make an object for each flow")
    named = [_named(nth, flow) for nth, flow in enumerate(flows)]
    return Race(_native.race(texts(given), named), [name for name, _ in named])


def _named(nth: int, flow: str | Controller) -> tuple[str, Controller | None]:
    place = f"flows[{nth}]"
    if isinstance(flow, str):
        return unicode(place, flow), None
    if isinstance(flow, type):
        raise InputError(place, f"{flow.__name__} is a class", f"write {flow.__name__}()")
    if not callable(getattr(flow, "on_ack", None)):
        raise InputError(place, f"{type(flow).__name__} has no method on_ack", "write on_ack(self, ack)")
    return type(flow).__name__, flow
