"""The environment of Gymnasium."""

from typing import Any

import numpy as np
import pytest

import uncork

pytest.importorskip("gymnasium")
pytestmark = pytest.mark.module


def env(**options: Any) -> Any:
    from uncork.gym import CongestionEnv

    return CongestionEnv(**{"rate": "20mbit", "rtt": "40ms", "loss": "0%", "duration": "5s", **options})


def episode(of: Any, action: float, seed: int = 1) -> list[Any]:
    """Steps with the same action to the end."""
    of.reset(seed=seed)
    steps = []
    while not steps or not steps[-1][3]:
        steps.append(of.step(np.array([action], np.float32)))
    return steps


def test_it_is_an_environment() -> None:
    from gymnasium.utils.env_checker import check_env

    check_env(env(rivals=["cubic"]), skip_render_check=True)


def test_episodes_end_with_their_duration() -> None:
    steps = episode(env(), 0)
    assert steps[-1][4]["time"] == pytest.approx(5, abs=0.05)
    assert not any(terminated for _, _, terminated, _, _ in steps)


def test_a_higher_rate_delivers_more_until_the_link_is_full() -> None:
    kept = episode(env(), 0)
    grown = episode(env(), 0.2)
    assert grown[20][4]["delivered"] > 2 * kept[20][4]["delivered"]
    last = grown[-1][4]
    assert last["delivered"] < 20e6
    assert last["rtt"] > 0.05


def test_equal_seeds_give_equal_episodes() -> None:
    drawn = {"rate": lambda rng: f"{rng.uniform(5, 50):.1f}mbit", "rivals": ["bbr3"]}
    first, same, other = (episode(env(**drawn), 0.05, seed) for seed in (1, 1, 2))
    assert [step[1] for step in first] == [step[1] for step in same]
    assert [step[1] for step in first[:20]] != [step[1] for step in other[:20]]


@pytest.mark.parametrize(
    ("options", "place"),
    [
        ({"rate": "20"}, "rate=20"),
        ({"rivals": ["bbr4"]}, "rivals=bbr4"),
        ({"speed": "1"}, "speed"),
        ({"loss": "0%,1%"}, "path"),
        ({"rtt": lambda _: 40}, "rtt=40"),
    ],
)
def test_wrong_options_are_exceptions_with_place(options: dict[str, Any], place: str) -> None:
    with pytest.raises(uncork.InputError) as caught:
        env(**options).reset(seed=1)
    assert caught.value.place == place
    assert caught.value.remedy
