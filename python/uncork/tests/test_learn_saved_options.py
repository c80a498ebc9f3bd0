"""A plan takes options that are not given from the last plan in its directory."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from uncork.learn import saved_options
from uncork.learn.cli import parser
from uncork.measure.errors import InputError


def completed(directory: Path, *words: str) -> dict[str, object]:
    options = parser().parse_args(["plan", "records", "-o", str(directory), *words])
    return vars(saved_options.complete(options, directory))


def save(directory: Path, *words: str) -> None:
    options = parser().parse_args(["plan", "records", "-o", str(directory), *words])
    saved_options.save(saved_options.complete(options, directory), directory)


def test_the_next_plan_has_the_options_of_the_last_unless_given(tmp_path: Path) -> None:
    save(tmp_path, "--unit", "prefix", "--worth", "3%", "--guardrail", "stutters=5%", "--half-life", "7")
    options = completed(tmp_path, "--worth", "4%")
    assert options["unit"] == "prefix"
    assert options["worth"] == "4%"
    assert options["guardrail"] == ["stutters=5%"]
    assert options["half_life"] == 7.0
    assert options["tolerate"] == "2%"


def test_forgotten_options_are_the_defaults_also_of_later_plans(tmp_path: Path) -> None:
    save(tmp_path, "--unit", "prefix")
    save(tmp_path, "--forget-options", "--ttl", "3")
    options = completed(tmp_path)
    assert options["unit"] == "cookie:uid"
    assert options["ttl"] == 3


def test_an_empty_value_ends_a_saved_one(tmp_path: Path) -> None:
    save(tmp_path, "--listener", "edge")
    save(tmp_path, "--listener", "")
    assert completed(tmp_path)["listener"] == ""
    assert json.loads((tmp_path / "options.json").read_text()) == {}


def test_files_are_saved_with_their_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    save(tmp_path / "learned", "--rules", "mine.toml")
    assert completed(tmp_path / "learned")["rules"] == str(tmp_path / "mine.toml")


def test_the_user_sees_which_options_were_not_given(tmp_path: Path) -> None:
    save(tmp_path, "--unit", "prefix", "--site", "10.0.0.0/8", "--site", "fc00::/7", "--experiment", "my own")
    options = parser().parse_args(["plan", "records", "-o", str(tmp_path), "--unit", "header:id"])
    words = "--experiment 'my own' --site 10.0.0.0/8 --site fc00::/7"
    assert saved_options.described(options, saved_options.complete(options, tmp_path)) == words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[]", "not a table of options"),
        ("{", "not JSON"),
        ('{"wort": "3%"}', "wort: is not an option of a plan"),
        ('{"ttl": "7"}', "ttl: `7` is not a value of --ttl"),
        ('{"ttl": true}', "ttl: `True` is not a value of --ttl"),
        ('{"half_life": false}', "half_life: `False` is not a value of --half-life"),
        ('{"site": [1]}', "site: `[1]` is not a value of --site"),
        ('{"unit": null}', "unit: `None` is not a value of --unit"),
    ],
)
def test_a_damaged_file_is_named_with_the_remedy(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "options.json").write_text(text)
    with pytest.raises(InputError) as error:
        completed(tmp_path)
    assert words in str(error.value)
    assert "--forget-options" in str(error.value)
    assert completed(tmp_path, "--forget-options")["ttl"] == 7


def test_treated_next_to_arm_is_refused(tmp_path: Path) -> None:
    """One of them counted for nothing. So does a treated arm next to the arms of the last plan."""
    arm = ["--arm", "w20:tcp=cubic,initial_window=20p"]
    for treated in (["--treated", "bbr"], ["--treated-settings", "tcp=bbr"]):
        with pytest.raises(
            InputError, match=f"{treated[0]} .*: --arm w20:.* names .*; leave {treated[0]} out"
        ):
            completed(tmp_path, *treated, *arm)
    save(tmp_path, *arm)
    with pytest.raises(InputError, match=r"of the last plan .*reset the other one with --arm ''"):
        completed(tmp_path, "--treated", "bbr")
    options = completed(tmp_path, "--arm", "", "--treated", "bbr2")
    assert (options["arm"], options["treated"]) == ([], "bbr2")
