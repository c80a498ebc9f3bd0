"""Gymnasium: an agent is the controller of a flow, next to rivals.

    env = uncork.gym.CongestionEnv(rate="20mbit", rtt="50ms", rivals=["cubic"])

Needs the extra `gym`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any, SupportsFloat, TypeAlias

from uncork import _native
from uncork.measure.errors import InputError
from uncork.options import texts

try:
    import gymnasium
    import numpy as np
    from numpy.typing import NDArray
except ImportError as error:
    raise InputError(
        "uncork.gym", f"{error.name} is not installed", "run: pip install 'uncork[gym]'"
    ) from error

Observation: TypeAlias = NDArray[np.float32]
Value: TypeAlias = str | Callable[[np.random.Generator], str]
"""An option of `uncork.compare`, or a function that draws it for each episode."""

LOW, HIGH = (0.0, 0.0, -10.0, 0.0), (10.0, 10.0, 10.0, 1.0)
MIN_RATE = 100e3
"""Of the agent, in bit/s."""
MAX_SHARE = 4
"""Maximum rate of the agent by that of the link. More only costs time."""
BITS = 8


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
        self._rivals = [rivals] if isinstance(rivals, str) else list(rivals)
        self._options = {"duration": duration, **path}
        self._history = history
        low, high = (np.tile(np.array(ends, np.float32), history) for ends in (LOW, HIGH))
        self.observation_space = gymnasium.spaces.Box(low, high, dtype=np.float32)
        self.action_space = gymnasium.spaces.Box(-1, 1, (1,), np.float32)

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begins an episode. `options` replaces values of the path for this one."""
        super().reset(seed=seed)
        given = {**self._options, **(options or {})}
        drawn = {name: it(self.np_random) if callable(it) else it for name, it in given.items()}
        drawn.setdefault("seed", int(self.np_random.integers(1, 2**31)))
        self._episode = _native.Episode(texts(drawn), self._rivals)
        self._min_rtt = self._rtt = self._episode.rtt()
        self._link = self._episode.link_rate()
        # The initial window of RFC 6928, spread over a round trip.
        self._rate = 10 * 1448 * BITS / self._rtt
        self._seen = deque([(0.0, 0.0, 0.0, 0.0)] * self._history, self._history)
        return self._observation(), {"time": 0.0, **drawn}

    def step(self, action: Observation) -> tuple[Observation, SupportsFloat, bool, bool, dict[str, Any]]:
        """Sends at the new rate for one round trip."""
        factor = 2.0 ** float(np.clip(action[0], -1, 1))
        self._rate = max(min(self._rate * factor, MAX_SHARE * self._link), MIN_RATE)
        span = self._min_rtt
        window = int(2 * self._rate * self._min_rtt / BITS)
        time, acked, lost, timeouts, rtt, minimum, in_flight, queue, goes_on = self._episode.step(
            window, self._rate, span
        )
        self._min_rtt = minimum or self._min_rtt
        before, self._rtt = self._rtt, rtt or self._rtt
        delivered = acked * BITS / span
        loss = lost / (acked + lost) if acked + lost else 0.0
        waiting = self._rtt / self._min_rtt - 1
        seen = (delivered / self._rate, waiting, (self._rtt - before) / self._min_rtt, loss)
        self._seen.append(seen)
        info = {"time": time, "rate": self._rate, "delivered": delivered, "rtt": self._rtt, "loss": loss}
        info |= {"timeouts": timeouts, "in_flight": in_flight, "queue": queue}
        reward = delivered / self._link - waiting - loss
        return self._observation(), float(reward), False, not goes_on, info

    def _observation(self) -> Observation:
        flat = np.array(self._seen, np.float32).reshape(-1)
        return np.clip(flat, self.observation_space.low, self.observation_space.high)  # type: ignore[attr-defined]
