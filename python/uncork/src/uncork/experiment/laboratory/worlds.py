"""Two places of simulated users, and what `uncork lab` says each of their users got.

A place has two links, one a tenth faster, with twenty users each, and two halves of the day: a quiet and a
busy one. One run of the simulator is one link in one half of a day. Every run has a seed of its own.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

from uncork.measure.errors import InputError

Floats = NDArray[np.float64]

CONTROL, TREATED = "cubic", "bbr3"
USERS = 20
"""Users of a link, as in the scenario files."""


@dataclass(frozen=True)
class World:
    """A scenario file of this package, and the rates of its two links."""

    name: str
    scenario: str
    about: str
    rates: tuple[str, str]


CONTESTED = World(
    "a contested link",
    "contested.toml",
    "Twenty users share each link, which is full most of the busy half of the day.",
    ("20mbit", "22mbit"),
)
LOSSY = World(
    "lossy last miles",
    "lossy.toml",
    "Each user has a line of his own, and many lines lose packets at random.",
    ("10mbit", "11mbit"),
)
WORLDS = (CONTESTED, LOSSY)


@dataclass(frozen=True)
class Cell:
    """One of the two links in one half of the day: the quiet 0 or the busy 1."""

    link: int
    half: int


CELLS = tuple(Cell(link, half) for link in (0, 1) for half in (0, 1))
PAUSES = ("4s", "2s")
"""Mean pause of a user between two objects, by half of the day."""


def treated_users(share: float) -> int:
    """Users with BBR on a link, of all. They are the first; users differ only by chance."""
    return round(share * USERS)


@dataclass(frozen=True)
class Laboratory:
    """`uncork lab` with one world."""

    uncork: Path
    world: World

    def play(self, cell: Cell, share: float, runs: int, first_seed: int) -> Floats:
        """Throughput of each user in Mbit/s, shape (runs, USERS), the treated ones first.

        A user's throughput is what he got over the time he waited for it: pauses do not count.
        """
        treated = treated_users(share)
        settings = {
            "flow.users.cc": [TREATED] * treated + [CONTROL] * (USERS - treated),
            "flow.users.requests.think": PAUSES[cell.half],
            "path.rate": self.world.rates[cell.link],
        }
        with (
            as_file(files(__package__).joinpath(self.world.scenario)) as scenario,
            tempfile.TemporaryDirectory(prefix="uncork-") as directory,
        ):
            out = Path(directory) / "out"
            command = [str(self.uncork), "lab", "run", str(scenario), "-q", "-o", str(out)]
            command += ["--seed", str(first_seed), "--seeds", str(runs)]
            for place, value in settings.items():
                command += ["--set", f"{place}={json.dumps(value)}"]
            done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            if done.returncode != 0:
                raise InputError(f"{self.uncork} lab run", done.stderr.strip() or f"status {done.returncode}")
            return _throughput(out / "objects.parquet", treated, runs, first_seed)


def _throughput(path: Path, treated: int, runs: int, first_seed: int) -> Floats:
    names = ["seed", "flow", "cc", "start_ns", "completion_ns", "bytes_delivered"]
    table = pq.read_table(path, columns=names)
    seed, flow = (np.array(table[name], dtype=np.int64) for name in ("seed", "flow"))
    if np.any((np.array(table["cc"]) == TREATED) != (flow < treated)):
        raise InputError(str(path), "users do not have the controllers that were asked for")
    finished = ~np.array(table["completion_ns"].is_null())
    if not finished.all():
        # Their time would be cut short, in one arm more than in the other.
        raise InputError(str(path), f"{np.count_nonzero(~finished)} objects did not finish before `run.end`")
    user = (seed - first_seed) * USERS + flow
    waited = np.bincount(user, np.array(table["completion_ns"], dtype=np.float64), runs * USERS)
    got = np.bincount(user, np.array(table["bytes_delivered"], dtype=np.float64), runs * USERS)
    if np.any(waited == 0):
        raise InputError(str(path), f"{np.count_nonzero(waited == 0)} users asked for nothing")
    return np.asarray((8e3 * got / waited).reshape(runs, USERS), dtype=np.float64)
