"""The environment of Gymnasium."""

from typing import Any

import numpy as np
import pytest

import uncork

pytest.importorskip("gymnasium")
pytestmark = pytest.mark.module


PATH: dict[str, Any] = {"rate": "20mbit", "rtt": "40ms", "loss": "0%", "duration": "5s"}


def env(**options: Any) -> Any:
    from uncork.gym import CongestionEnv

    return CongestionEnv(**{**PATH, **options})


def episode(of: Any, action: float, seed: int = 1) -> list[Any]:
    """Steps with the same action to the end."""
    of.reset(seed=seed)
    steps = []
    while not steps or not steps[-1][3]:
        steps.append(of.step(np.array([action], np.float32)))
    return steps


def vector(count: int, **options: Any) -> Any:
    from uncork.gym import CongestionVectorEnv

    return CongestionVectorEnv(count, **{**PATH, **options})


def test_it_is_an_environment() -> None:
    from gymnasium.utils.env_checker import check_env

    check_env(env(rivals=["cubic"]), skip_render_check=True)
    import gymnasium

    check_env(gymnasium.make("uncork/Congestion-v0", **PATH).unwrapped, skip_render_check=True)


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
        ({"cc": "cubic"}, "cc"),
        ({"flows": "3"}, "flows"),
        ({"size": "1MB"}, "size"),
        ({"rivals": 5}, "rivals=5"),
        ({"rivals": ["cubic", 5]}, "rivals=['cubic', 5]"),
        ({"rivals": ["cubic\ud800"]}, "rivals"),
        ({"rate": "\ud800"}, "rate"),
        ({"rate": lambda _: "20mbit\ud800"}, "rate"),
    ],
)
def test_wrong_options_are_exceptions_with_place(options: dict[str, Any], place: str) -> None:
    with pytest.raises(uncork.InputError) as caught:
        env(**options).reset(seed=1)
    assert caught.value.place == place
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("options", "place"),
    [(5, "options=5"), ({3: "x"}, "3"), ({"cc": "cubic"}, "cc"), ({"rate": "x"}, "rate=x")],
)
def test_wrong_options_of_an_episode__are_exceptions_with_place(options: Any, place: str) -> None:
    with pytest.raises(uncork.InputError) as caught:
        env().reset(seed=1, options=options)
    assert caught.value.place == place
    assert caught.value.remedy


@pytest.mark.parametrize("action", ["up", 1 + 2j, {}, [[0.1], [0.2, 0.3]], [], float("nan"), 1e300, None])
def test_wrong_actions__are_exceptions_with_place(action: Any) -> None:
    of = env()
    of.reset(seed=1)
    with pytest.raises(uncork.InputError) as caught:
        of.step(action)
    assert caught.value.place.startswith("actions")
    assert caught.value.remedy


DRAWN: dict[str, Any] = {
    "rate": lambda rng: f"{rng.uniform(2, 20):.1f}mbit",
    "duration": lambda rng: f"{rng.uniform(0.4, 1):.2f}s",
    "rivals": ["cubic"],
}
"""Episodes of different lengths."""


def returned(of: Any, steps: int = 60) -> list[Any]:
    """All that an environment returns, with arrays as bytes."""

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: plain(one) for key, one in value.items()}
        return (value.dtype.str, value.shape, value.tolist()) if isinstance(value, np.ndarray) else value

    rng = np.random.default_rng(3)
    answers = [plain(value) for value in of.reset(seed=5)]
    for _ in range(steps):
        actions = rng.uniform(-0.5, 1, (of.num_envs, 1)).astype(np.float32)
        answers += [plain(value) for value in of.step(actions)]
    return answers


def test_vector__equal_seeds__has_the_bytes_of_single_environments() -> None:
    from gymnasium.vector import AutoresetMode, SyncVectorEnv

    single = returned(SyncVectorEnv([lambda: env(**DRAWN)] * 5, autoreset_mode=AutoresetMode.NEXT_STEP))
    assert returned(vector(5, jobs=1, **DRAWN)) == single
    assert returned(vector(5, jobs=3, **DRAWN)) == single
    # Some episodes ended within these steps, and others began.
    assert any(any(truncated[2]) for truncated in single[5::5])


def test_vector__made_by_gymnasium__is_the_batch_in_rust() -> None:
    import gymnasium

    import uncork.gym

    made = gymnasium.make_vec("uncork/Congestion-v0", num_envs=3, **PATH)
    assert type(made) is uncork.gym.CongestionVectorEnv
    assert made.metadata["autoreset_mode"] is gymnasium.vector.AutoresetMode.NEXT_STEP
    observation, _ = made.reset(seed=1)
    assert made.observation_space.contains(observation)
    observation, *_ = made.step(made.action_space.sample())
    assert made.observation_space.contains(observation)


def test_vector__end_of_an_episode__next_step_begins_another() -> None:
    of = vector(2, duration="0.3s")
    first, infos = of.reset(seed=1)
    assert not first.any()
    assert infos["path"]["rate"].tolist() == ["20mbit"] * 2
    truncated = np.zeros(2, np.bool_)
    while not truncated.any():
        last, _, _, truncated, _ = of.step(np.zeros((2, 1), np.float32))
    assert last.any()
    observation, reward, _, truncated, infos = of.step(np.ones((2, 1), np.float32))
    assert not observation.any()
    assert reward.tolist() == [0, 0]
    assert not truncated.any()
    assert infos["time"].tolist() == [0, 0]


@pytest.mark.parametrize(
    ("options", "actions", "place"),
    [
        ({}, np.zeros((3, 1), np.float32), "actions"),
        ({}, np.array([[0], [np.nan]], np.float32), "actions[1]=NaN"),
        ({"jobs": 0}, None, "jobs=0"),
        ({"num_envs": -1}, None, "num_envs=-1"),
        ({"history": 0}, None, "history=0"),
        ({"history": 1.5}, None, "history=1.5"),
        ({"rivals": ["bbr4"]}, None, "rivals=bbr4"),
        ({"rate": "20"}, None, "rate=20"),
    ],
)
def test_vector__wrong_input__is_an_exception_with_place(
    options: dict[str, Any], actions: Any, place: str
) -> None:
    def use() -> None:
        of = vector(options.pop("num_envs", 2), **options)
        of.reset(seed=1)
        of.step(actions)

    with pytest.raises(uncork.InputError) as caught:
        use()
    assert caught.value.place == place
    assert caught.value.remedy


@pytest.mark.parametrize(("seed", "place"), [(1.5, "seed=1.5"), ([1], "seed")])
def test_vector__wrong_seeds__are_exceptions_with_place(seed: Any, place: str) -> None:
    with pytest.raises(uncork.InputError) as caught:
        vector(2).reset(seed=seed)
    assert caught.value.place == place
    assert caught.value.remedy


def test_vector__step_within_a_step__is_an_exception_with_place() -> None:
    of = vector(1)
    of.reset(seed=1)
    of._episodes._stepping.acquire()
    with pytest.raises(uncork.InputError, match="another thread") as caught:
        of.step(np.zeros((1, 1), np.float32))
    assert caught.value.place == "step"
    of._episodes._stepping.release()
    of.step(np.zeros((1, 1), np.float32))


def test_vector__step_before_reset__is_an_exception_with_place() -> None:
    for of in (vector(2), env()):
        with pytest.raises(uncork.InputError, match="call reset first"):
            of.step(np.zeros((getattr(of, "num_envs", 1), 1), np.float32))
