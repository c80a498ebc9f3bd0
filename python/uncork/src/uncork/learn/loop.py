"""`uncork learn run`: plan, check, apply, in a loop, until a signal ends it.

A round that fails changes nothing, and the next one tries again. If all fail, the active table expires, and
its clients get the control arm.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from uncork.learn import metrics
from uncork.learn.defaults import ROUNDS
from uncork.learn.entries import ALL_CLIENTS
from uncork.learn.fleet import Fleet, NotNowError
from uncork.learn.history import ACTIVATED
from uncork.learn.settings import Overrides
from uncork.learn.store import Store
from uncork.measure import console
from uncork.measure.files import write

SWITCH_SECONDS = 1.0
"""How often the kill switch is looked at between rounds."""
RETRY_SECONDS = 60.0
"""Until the kill switch is tried again if it failed."""


@dataclass
class Loop:
    """What a round does, and what it needs."""

    store: Store
    propose: Callable[[datetime], int]
    """Adds a version made of the records of now."""
    check: Callable[[Path], None]
    """Raises if a server would refuse this policy."""
    every: float
    """Seconds from the beginning of a round to that of the next."""
    keep: int = ROUNDS
    """How many rounds without a change keep their inputs."""
    metrics: Path | None = None
    fleet: Fleet | None = None
    """Where versions are published. Without its lease the loop plans nothing."""
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    ended: threading.Event = field(default_factory=threading.Event)
    """Set: the loop ends after the step that it is in."""
    results: Counter[str] = field(default_factory=Counter)
    """Rounds by how they ended."""
    succeeded: datetime | None = None

    def run(self, rounds: int | None = None) -> None:
        """Runs rounds until `ended` is set, or this number of rounds."""
        try:
            self._rounds(rounds)
        finally:
            self._release()

    def _release(self) -> None:
        """Another planner need not wait. If it fails, the lease ends by itself."""
        if self.fleet is None:
            return
        try:
            self.fleet.release()
        except Exception as error:
            self._say(self.now(), f"the lease is not released: {error}")

    def _rounds(self, rounds: int | None) -> None:
        self._log_active_version()
        while not self.ended.is_set():
            began = time.monotonic()
            was_stopped = self.store.is_stopped()
            result = self._round(was_stopped)
            is_urgent = was_stopped and result == "failed"
            wait = min(self.every, RETRY_SECONDS) if is_urgent else self.every
            if rounds is not None and self.results.total() >= rounds:
                return
            while not self.ended.wait(SWITCH_SECONDS):
                is_due = time.monotonic() - began >= wait
                if is_due or self.store.is_stopped() != was_stopped:
                    break

    def _log_active_version(self) -> None:
        """If a crash, or another program, came between a change and its line in the log."""
        current = self.store.current()
        done = [line for line in self.store.log() if line["done"] in ACTIVATED]
        if current is not None and (not done or done[-1].get("version") != current):
            self.store.note(self.now(), "found", version=current)

    def _round(self, is_stopped: bool) -> str:
        began, now = time.monotonic(), self.now()
        inputs: Mapping[str, str] = {}
        try:
            if self.fleet is not None:
                self.fleet.take_lease()
            result, inputs = (self._stop(now), inputs) if is_stopped else self._learn(now)
            self._publish(now, at_once=is_stopped)
            self.succeeded = now
        except NotNowError as reason:
            result = "waiting"
            self._say(now, f"waiting: {reason}")
        except Exception as error:  # Any error: the next round may succeed.
            result = "failed"
            self._say(now, f"failed: {type(error).__name__}: {error}; the active version stays")
        self.results[result] += 1
        seconds = time.monotonic() - began
        try:
            self.store.note(now, "round", result=result, version=self.store.current(), **inputs)
            self.store.forget_rounds(self.keep)
            if self.metrics is not None:
                write(
                    self.metrics, metrics.text(self.store, self.results, self.succeeded, self.every, seconds)
                )
        except Exception as error:
            self._say(now, f"no log or metrics: {type(error).__name__}: {error}")
        return result

    def _learn(self, now: datetime) -> tuple[str, Mapping[str, str]]:
        """Plans by today's records, and applies the plan if it changes anything. If not, logs its inputs."""
        number = self.propose(now)
        if self.store.changes_nothing(number):
            self._say(now, "unchanged: the plan decides as the active version does")
            return "unchanged", {"inputs_sha256": self.store.set_aside(number)}
        return self._apply(number, now), {}

    def _apply(self, number: int, now: datetime) -> str:
        self.check(self.store.path(number) / "policy.toml")
        if self.ended.is_set():
            return "ended"
        if warning := self.store.apply(number, now):
            self._say(now, f"warning: {warning}")
        first = self.store.text(number, "changes.txt").splitlines()
        self._say(now, " ".join(first[:4]))
        return "applied"

    def _publish(self, now: datetime, *, at_once: bool) -> None:
        """The active version into the fleet's store, in each round: a loop that was killed before it goes on
        with it. What the store refuses for now is published by a later round.
        """
        if self.fleet is None or self.store.current() is None:
            return
        try:
            said = self.fleet.publish(self.store.root / "current" / "policy.toml", at_once=at_once)
        except NotNowError as reason:
            said = f"not published: {reason}"
        self._say(now, f"fleet: {said}")

    def _stop(self, now: datetime) -> str:
        """The control arm for all clients, the random share too, by the evidence of the active version."""
        current = self.store.current()
        if current is None:
            return "stopped"
        settings = self.store.settings(current)
        if self.store.gives_all_control(current):
            return "stopped"
        all_clients = Overrides({ALL_CLIENTS: settings.control})
        number, _ = self.store.plan(
            replace(settings, random=0.0), self.store.evidence(current), now, all_clients
        )
        self._say(now, f"stopped by {self.store.stop_file}: {settings.control} for all clients")
        return self._apply(number, now)

    def _say(self, now: datetime, what: str) -> None:
        console.note(f"{now:%Y-%m-%dT%H:%M:%SZ} {what}")
