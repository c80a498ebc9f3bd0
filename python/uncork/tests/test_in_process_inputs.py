"""Wrong input of the laboratory in this process: an exception with place and remedy."""

import itertools
import os
from pathlib import Path
from typing import Any

import pytest

import uncork
from test_in_process import DATA, SCENARIO

pytestmark = pytest.mark.module

WRONG: list[tuple[dict[str, Any], str, str]] = [
    ({"rate": "20"}, "rate=20", "mbit"),
    ({"rate": 20e6}, "rate=20000000.0", "rate='20mbit'"),
    ({"rate": []}, "rate=[]", "rate='20mbit'"),
    ({"rate": {"20mbit": 1}}, "rate={", "rate='20mbit'"),
    ({"rate": b"20mbit"}, "rate=b'20mbit'", "rate='20mbit'"),
    ({"rate": "0mbit"}, "rate=0mbit", ""),
    ({"rtt": "50"}, "rtt=50", "ms"),
    ({"rtt": ["10ms", "-1ms"]}, "rtt=10ms,-1ms", ""),
    ({"rtt": "NaN"}, "rtt=NaN", ""),
    ({"loss": "100%"}, "loss=100%", ""),
    ({"loss": 0.01}, "loss=0.01", "loss='1%'"),
    ({"cc": "bbr4"}, "cc=bbr4", "reno"),
    ({"cc": ["cubic", "cubic"]}, "cc=cubic,cubic", ""),
    ({"cc": "cubic\N{ZERO WIDTH SPACE}"}, "cc=cubic", ""),
    ({"cc": ["cubic", None]}, "cc=['cubic', None]", "cc='bbr3'"),
    ({"seeds": 0}, "seeds=0", ""),
    ({"seeds": -1}, "seeds=-1", ""),
    ({"seeds": True}, "seeds=True", "seeds=10"),
    ({"seeds": "10"}, "seeds='10'", "seeds=10"),
    ({"seeds": 10**30}, "seeds=1000", ""),
    ({"seed": 2**64}, "seed=18446744073709551616", ""),
    ({"flows": 2.5}, "flows=2.5", "flows=10"),
    ({"flows": 10**6}, "flows=1000000", ""),
    ({"jobs": 0}, "jobs=0", "leave it out"),
    ({"jobs": 10**30}, "jobs=1000", "leave it out"),
    ({"size": "10MB", "duration": "1s"}, "duration", "leave one out"),
    ({"size": "0B"}, "size=0B", ""),
    ({"duration": "10000days"}, "duration=10000days", ""),
    ({"start": "later"}, "start=later", "in-turn"),
    ({"start": "iperf3"}, "start=iperf3", ""),
    ({"loss_position": "between"}, "loss_position=between", "after"),
    ({"preset": "5G"}, "preset=5G", "lte"),
    ({"host_jitter": "1h"}, "host_jitter=1h", ""),
    ({"queue": "red"}, "queue=red", "codel"),
    ({"buffer": "lots"}, "buffer=lots", ""),
    ({"rate": "100gbit", "duration": "1h"}, "duration=1h", ""),
    ({"progress": 3}, "progress=3", "True or False"),
    ({"rate": "\ud800"}, "rate", "whole character"),
    ({"cc": ["cubic", "bbr3\udcff"]}, "cc", "whole character"),
    ({"rate": itertools.repeat("20mbit")}, "rate", "fewer"),
    ({"rate": "2" * 200_000}, "rate", "rate='20mbit'"),
    ({"cc": "cubic," * 100_000}, "cc", "cc='bbr3'"),
]


@pytest.mark.parametrize(("options", "place", "remedy"), WRONG, ids=str)
def test_wrong_options_are_exceptions_with_place_and_remedy(
    options: dict[str, Any], place: str, remedy: str
) -> None:
    with pytest.raises(uncork.InputError) as caught:
        uncork.compare(**options)
    found = caught.value
    print(f"{found}  [{found.place!r}, {found.problem!r}, {found.remedy!r}]")
    assert found.place.startswith(place)
    assert found.problem
    assert found.remedy
    assert remedy in found.remedy


def deep(levels: int) -> dict[str, Any]:
    data: dict[str, Any] = {}
    for _ in range(levels):
        data = {"path": data}
    return data


WRONG_SCENARIOS: list[tuple[Any, str]] = [
    ("no-such-scenario", "no-such-scenario: no built-in scenario"),
    ("datacentre-10g", "did you mean"),
    ("rfc9743", "a suite of several scenarios; run one of "),
    ("", "no built-in scenario"),
    ("nowhere/none.toml", "nowhere/none.toml: cannot be read"),
    ("title = ", "scenario.toml, line 1"),
    (SCENARIO.replace("rtt", "rrt"), "did you mean"),
    (SCENARIO.replace('"20mbit"', "20"), "scenario.toml, line 6"),
    (SCENARIO + "\0", "scenario.toml, line"),
    ({}, "scenario.toml, line 1"),
    ({**DATA, "path": {"rate": "20mbit", "rtt": None}}, "scenario.path.rtt: None is not"),
    ({**DATA, "path": {"rate": float("nan")}}, "scenario.path.rate: nan is not"),
    ({**DATA, "matrix": {"path.loss": [0.01, {1, 2}]}}, "scenario.matrix.path.loss[1]: set is not"),
    ({**DATA, 3: "x"}, "scenario.3: a key of type int"),
    ({**DATA, "run": {"seeds": 10**40}}, "scenario.toml, line"),
    (deep(5000), "scenario: too many levels"),
    (SCENARIO + "#\ud800", "scenario: has half a character, '\\ud800'"),
    ("steady\ud800", "scenario: has half a character"),
    (os.fsdecode(b"nowhere/\xff.toml"), "scenario: has half a character, '\\udcff'"),
    ({**DATA, "title": "\ud800"}, "scenario.title: has half a character"),
    (17, "scenario: int is not a scenario"),
    (None, "scenario: NoneType is not a scenario"),
    (["cubic"], "scenario: list is not a scenario"),
    (Path, "scenario: type is not a scenario"),
]


@pytest.mark.parametrize(("scenario", "words"), WRONG_SCENARIOS)
def test_wrong_scenarios_are_exceptions_with_place_and_remedy(scenario: object, words: str) -> None:
    with pytest.raises(uncork.InputError) as caught:
        uncork.run(scenario)
    print(f"{caught.value}  [{caught.value.remedy!r}]")
    assert words in str(caught.value)
    assert caught.value.remedy or caught.value.__notes__


def test_an_error_in_a_scenario_shows_its_line() -> None:
    with pytest.raises(uncork.InputError) as caught:
        uncork.run(SCENARIO.replace("rtt", "rrt"))
    assert caught.value.place == "scenario.toml, line 7"
    assert 'rrt = "20ms"' in caught.value.__notes__[0]


def test_a_file_that_is_not_text_is_named(tmp_path: Path) -> None:
    file = tmp_path / "x.toml"
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(uncork.InputError, match=r"x\.toml: is not UTF-8 text"):
        uncork.run(file)
    folder = tmp_path / "folder.toml"
    folder.mkdir()
    with pytest.raises(uncork.InputError, match=r"\.toml: cannot be read \(Is a directory\)"):
        uncork.run(folder)


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"set": {"path.rtt": "soon"}}, "set path.rtt"),
        ({"set": {"path.rtt": None}}, "set path.rtt"),
        ({"set": {"": "1"}}, "set "),
        ({"set": {"path.rtt": "\ud800"}}, "set path.rtt"),
        ({"set": {"path.\ud800": "1ms"}}, "set"),
        ({"set": ["path.rtt=1ms"]}, "set"),
        ({"on": "moon"}, "on=moon"),
        ({"on": "netns"}, "on=netns"),
        ({"on": 3}, "on=3"),
    ],
)
def test_wrong_arguments_of_a_run_are_named(changes: dict[str, Any], place: str) -> None:
    with pytest.raises(uncork.InputError) as caught:
        uncork.run(SCENARIO, **changes)
    print(f"{caught.value}  [{caught.value.remedy!r}]")
    assert caught.value.place == place
    assert caught.value.remedy or caught.value.__notes__


@pytest.mark.parametrize(
    ("drawing", "place"), [({"metric": 3}, "metric=3"), ({"ax": 7}, "ax=7"), ({"ax": "left"}, "ax='left'")]
)
def test_wrong_arguments_of_a_plot_are_named(drawing: dict[str, Any], place: str) -> None:
    pytest.importorskip("matplotlib")
    with pytest.raises(uncork.InputError) as caught:
        uncork.run(SCENARIO).plot(**drawing)
    assert caught.value.place == place
    assert caught.value.remedy


def test_a_directory_that_cannot_be_written_is_an_error_of_the_system(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(OSError, match="File exists"):
        uncork.run(SCENARIO).save(file)
