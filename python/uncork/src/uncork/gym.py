"""Gymnasium: an agent is the controller of a flow, next to rivals.

    env = uncork.gym.CongestionEnv(rate="20mbit", rtt="50ms", rivals=["cubic"])
    envs = gymnasium.make_vec("uncork/Congestion-v0", num_envs=64, rate="20mbit")

Needs the extra `gym`.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, SupportsFloat, TypeAlias

from uncork import _native
from uncork.measure.errors import InputError, available
from uncork.options import number, texts, unicode

try:
    import gymnasium
    import numpy as np
    from gymnasium.utils import seeding
    from gymnasium.vector import AutoresetMode
    from gymnasium.vector.utils import batch_space
    from numpy.typing import NDArray
except ImportError as error:
    raise InputError(
        "uncork.gym", f"{error.name} is not installed", "run: pip install 'uncork[gym]'"
    ) from error

Observation: TypeAlias = NDArray[np.float32]
Value: TypeAlias = str | Callable[[np.random.Generator], str]
"""An option of `uncork.compare`, or a function that draws it for each episode."""
Info: TypeAlias = dict[str, Any]
Flags: TypeAlias = NDArray[np.bool_]

ID = "uncork/Congestion-v0"
REWARD, OVER, *NAMED = _native.Episodes.columns()
COUNTS = ("timeouts", "in_flight", "queue")
"""Whole numbers."""
OPTIONS = (
    "preset",
    "rate",
    "rtt",
    "loss",
    "loss_position",
    "buffer",
    "queue",
    "jitter",
    "host_jitter",
    "duration",
    "seed",
)
"""Of a path: those of `uncork.race`."""
MAX_ENVS = 100_000
MAX_HISTORY = 1_000


class Episodes:
    """Episodes side by side, over paths that are drawn for each of them."""

    def __init__(
        self, count: int, rivals: Iterable[str], history: int, jobs: int, options: Mapping[str, Value]
    ) -> None:
        history = _within("history", history, MAX_HISTORY)
        self._options = _known(options)
        self._native = _native.Episodes(count, _names(rivals), history, jobs)
        self._count = count
        self._stepping = threading.Lock()
        low, high = (np.tile(np.array(ends, np.float32), history) for ends in _native.Episodes.bounds())
        self.observation_space = gymnasium.spaces.Box(low, high, dtype=np.float32)
        self.action_space = gymnasium.spaces.Box(-1, 1, (1,), np.float32)

    def begin(self, nth: int, rng: np.random.Generator, changes: Mapping[str, Value] | None) -> Info:
        """Begins an episode at place `nth`, with an observation of zeros."""
        given = {**self._options, **_known(changes or {})}
        drawn = {name: it(rng) if callable(it) else it for name, it in given.items()}
        drawn.setdefault("seed", int(rng.integers(1, 2**31)))  # type: ignore[arg-type]
        self._native.begin(nth, texts(drawn))
        return {"time": 0.0, "path": drawn}

    def step(self, actions: object, skipped: Flags) -> tuple[Observation, NDArray[np.float64]]:
        """A row of observations and one of `columns` for each place."""
        remedy = f"give an array of shape ({self._count}, 1)"
        try:
            with np.errstate(over="ignore"):
                given = np.ascontiguousarray(actions, np.float32)
        except (TypeError, ValueError) as error:
            raise InputError("actions", f"is not an array of numbers ({error})", remedy) from error
        if given.size != self._count:
            raise InputError("actions", f"an array of shape {given.shape} has no action for each", remedy)
        size = self.observation_space.shape[0]
        observations = np.empty((self._count, size), np.float32)
        rows = np.empty((self._count, 2 + len(NAMED)))
        if not self._stepping.acquire(blocking=False):
            remedy = "give each thread its own environments: `jobs` of them step on threads"
            raise InputError("step", "another thread is in a step of these environments", remedy)
        try:
            self._native.step(given, skipped.view(np.uint8), observations, rows)
        finally:
            self._stepping.release()
        return observations, rows


class CongestionEnv(gymnasium.Env[Observation, Observation]):
    """Each step lasts for one minimum round-trip time. The action, from -1 to 1, multiplies the sending rate
    by a power of two. The observation has, for each of the latest `history` steps: delivered rate by
    sending rate, RTT above the minimum by the minimum, its change, the share of lost bytes. The reward is
    the delivered rate by that of the link, less the second and the last.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012

    def __init__(
        self, *, rivals: Iterable[str] = (), duration: Value = "30s", history: int = 4, **path: Value
    ) -> None:
        self._episodes = Episodes(1, rivals, history, 1, {"duration": duration, **path})
        self._nothing_skipped = np.zeros(1, np.bool_)
        self.observation_space = self._episodes.observation_space
        self.action_space = self._episodes.action_space

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, Value] | None = None
    ) -> tuple[Observation, Info]:
        """Begins an episode. `options` replaces values of the path for this one."""
        super().reset(seed=seed)
        info = self._episodes.begin(0, self.np_random, options)
        return np.zeros(self.observation_space.shape, np.float32), info  # type: ignore[arg-type]

    def step(self, action: Observation) -> tuple[Observation, SupportsFloat, bool, bool, Info]:
        """Sends at the new rate for one round trip."""
        observations, rows = self._episodes.step(action, self._nothing_skipped)
        reward, over, *values = rows[0].tolist()
        info: Info = dict(zip(NAMED, values, strict=True))
        info |= {name: int(info[name]) for name in COUNTS}
        return observations[0], reward, False, over != 0, info


class CongestionVectorEnv(gymnasium.vector.VectorEnv[Observation, Observation, Any]):
    """`num_envs` times `CongestionEnv`, stepped by one call into Rust on `jobs` threads. With equal seeds it
    has the bytes of `SyncVectorEnv`. The step after the end of an episode begins the next one
    (`AutoresetMode.NEXT_STEP`).
    """

    metadata: dict[str, Any] = {"autoreset_mode": AutoresetMode.NEXT_STEP}  # noqa: RUF012

    def __init__(
        self,
        num_envs: int = 1,
        *,
        jobs: int | None = None,
        rivals: Iterable[str] = (),
        duration: Value = "30s",
        history: int = 4,
        **path: Value,
    ) -> None:
        self.num_envs = _within("num_envs", num_envs, MAX_ENVS)
        threads = _within("jobs", jobs, MAX_ENVS) if jobs is not None else os.cpu_count() or 1
        options = {"duration": duration, **path}
        self._episodes = Episodes(self.num_envs, rivals, history, min(threads, self.num_envs), options)
        self.single_observation_space = self._episodes.observation_space
        self.single_action_space = self._episodes.action_space
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self._rngs: list[np.random.Generator | None] = [None] * self.num_envs
        self._over = np.zeros(self.num_envs, np.bool_)

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: Mapping[str, Value] | None = None,
    ) -> tuple[Observation, Info]:
        """Begins all episodes. A number seeds the first environment, and the next numbers the others."""
        for nth, one in enumerate(self._seeds(seed)):
            if one is not None or self._rngs[nth] is None:
                self._rngs[nth] = seeding.np_random(one)[0]
        infos: Info = {}
        for nth in range(self.num_envs):
            infos = self._begin(nth, options, infos)
        self._over[:] = False
        return np.zeros(self.observation_space.shape, np.float32), infos  # type: ignore[arg-type]

    def step(self, actions: Observation) -> tuple[Observation, NDArray[np.float64], Flags, Flags, Info]:
        """Sends at the new rates for one round trip of each path."""
        ended = self._over
        observations, rows = self._episodes.step(actions, ended)
        self._over = rows[:, 1] != 0
        infos = _infos(rows, ~ended)
        for nth in np.flatnonzero(ended):
            infos = self._begin(int(nth), None, infos)
        return observations, rows[:, 0].copy(), np.zeros_like(ended), self._over.copy(), infos

    def _begin(self, nth: int, options: Mapping[str, Value] | None, infos: Info) -> Info:
        rng = self._rngs[nth]
        if rng is None:
            raise InputError("step", "no episode has begun", "call reset first")
        begun = self._episodes.begin(nth, rng, options)
        merged: Info = self._add_info(infos, begun, nth)
        return merged

    def _seeds(self, seed: int | Sequence[int | None] | None) -> Sequence[int | None]:
        if seed is None:
            return [None] * self.num_envs
        if isinstance(seed, int | np.integer):
            return [int(seed) + nth for nth in range(self.num_envs)]
        if not isinstance(seed, Sequence):
            raise InputError(f"seed={seed!r}", "is not a whole number", "write seed=10, or a list of numbers")
        if len(seed) != self.num_envs:
            remedy = f"give one number, or {self.num_envs}"
            raise InputError("seed", f"{len(seed)} seeds for {self.num_envs} environments", remedy)
        return seed


def _infos(rows: NDArray[np.float64], stepped: Flags) -> Info:
    """Columns of all environments, with a mask for the environments that took a step, as in Gymnasium."""
    infos: Info = {}
    if stepped.any():
        for name, column in zip(NAMED, rows.T[2:], strict=True):
            infos[name] = column.astype(np.int64 if name in COUNTS else np.float64)
            infos[f"_{name}"] = stepped.copy()
    return infos


def _names(rivals: Iterable[str]) -> list[str]:
    named = [rivals] if isinstance(rivals, str) else rivals
    several = list(named) if isinstance(named, Iterable) else [named]
    if not all(isinstance(name, str) for name in several):
        raise InputError(f"rivals={rivals!r}", "is not a list of controllers", "write rivals=['cubic']")
    return [unicode("rivals", name) for name in several]


def _known(options: Mapping[str, Value]) -> Mapping[str, Value]:
    if not isinstance(options, Mapping):
        raise InputError(f"options={options!r}", "is not a dict", "write options={'rate': '20mbit'}")
    for name in options:
        if name not in OPTIONS:
            raise InputError(str(name), "is not an option of a path", available(str(name), OPTIONS))
    return options


def _within(option: str, value: object, most: int) -> int:
    given = number(option, value)
    if not 1 <= given <= most:
        raise InputError(f"{option}={given}", "is out of range", f"write 1 to {most:,}")
    return given


if ID not in gymnasium.registry:
    gymnasium.register(
        ID, entry_point="uncork.gym:CongestionEnv", vector_entry_point="uncork.gym:CongestionVectorEnv"
    )
