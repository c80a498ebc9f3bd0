"""The fleet's store: one planner at a time publishes into it (docs/reference/fleet.md#planners).

`uncork fleet` reads and writes the store. It may refuse for now (another planner's lease, a version that goes
out): the loop does not fail then, and the next round asks again.
"""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

from uncork.measure.errors import InputError

TIMEOUT_SECONDS = 300
MIN_LEASE = 600.0
"""Seconds of a lease at least: a round must end within it."""
ROUNDS = 3
"""A lease lasts this number of rounds, so that one that fails does not lose it."""


class NotNowError(Exception):
    """The store is as it should be, and takes nothing from this planner at the moment."""


@dataclass(frozen=True)
class Fleet:
    """A store, and the planner that publishes into it."""

    program: str
    store: str
    key: Path
    """The publisher's private key."""
    holder: str
    every: float
    """Seconds from round to round."""
    stages: str = ""
    hold: str = ""

    def take_lease(self) -> None:
        """Takes or renews the lease. `NotNowError` if another planner holds it: who, and until when."""
        seconds = max(MIN_LEASE, ROUNDS * self.every)
        self._run("lease", self.store, "--holder", self.holder, "--for", f"{seconds:.0f}s")

    def publish(self, policy: Path, *, at_once: bool = False) -> str:
        """Publishes the policy, unless the fleet has it: in stages, or for all hosts at once, in place of a
        version that goes out. Says what the store has then.
        """
        given = {"--stages": self.stages, "--hold": self.hold}
        stages = [word for option, value in given.items() if value for word in (option, value)]
        more = ["--at-once"] if at_once else stages
        words = ["publish", self.store, str(policy), "--key", str(self.key), "--holder", self.holder, *more]
        return self._run(*words)

    def release(self) -> None:
        """Ends the lease, so that another planner need not wait for its end."""
        self._run("lease", self.store, "--holder", self.holder, "--release")

    def _run(self, *words: str) -> str:
        command = [self.program, "fleet", *words]
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=False)
        if done.returncode == 0:
            return " ".join(done.stdout.split())
        why = " ".join((done.stderr or done.stdout).split()).removeprefix("error: ")
        if done.returncode == 1:
            raise NotNowError(why)
        raise InputError(f"uncork fleet {words[0]} {self.store}", why)
