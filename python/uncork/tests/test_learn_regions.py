"""Names of client networks as a level of the tree, without a database of ASes and countries."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from learning import KEY, check, decision
from uncork.learn import demo
from uncork.learn.cli import main as learn
from uncork.learn.regions import names_of
from uncork.learn.store import Store

NAMES = "198.18.0.0/20,Lima\n203.0.113.0/24,Lima\n203.0.113.128/25,Essen\n198.18.16.0/20,Essen\n"
"""Of networks that gain, and of networks that do not. 203.0.113.0/24 has no records."""
SYSTEMS = tuple(demo.System(64501 + n, "PE", 8, lift) for n, lift in enumerate((0.5, 0.5, -0.1, -0.1, 0.0)))
BUDGET = ["--harmed", "100%", "--changed", "100%", "--only", "large", "--random", "1%", "--holdback", "1%"]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """A plan of records without ASes and countries."""
    path = tmp_path_factory.mktemp("regions")
    records = demo.table(SYSTEMS, days=5, daily=120).drop_columns(["service_asn", "service_country"])
    pq.write_table(records, path / "records.parquet")
    (path / "regions.csv").write_text(NAMES)
    words = [
        str(path / "records.parquet"),
        "-o",
        str(path / "learned"),
        "--networks",
        str(path / "regions.csv"),
    ]
    assert learn(["plan", *words, "--key", KEY, *BUDGET]) == 0
    assert learn(["apply", str(path / "learned")]) == 0
    return Store(path / "learned")


def test_a_network_follows_its_region_and_the_region_all_clients(store: Store) -> None:
    found = {one.key: one for one in store.decisions(1)}
    assert (found["Lima"].level, found["Lima"].parent) == ("region", "*")
    assert found["198.18.9.0/24"].parent == "Lima"
    assert found["198.18.17.0/24"].parent == "Essen"
    assert found["198.18.33.0/24"].parent == "*", "it has no name"
    assert (found["Lima"].arm, found["Essen"].arm) == ("bbr", "control")
    assert found["Lima"].lift > 0.1 > found["Essen"].lift
    assert store.differences(1) == []


def test_a_server_gives_clients_that_were_not_seen_the_arm_of_their_region(store: Store) -> None:
    policy = store.root / "current" / "policy.toml"
    check(policy)
    table = next(policy.parent.glob("*.table")).read_text()
    assert "Lima" not in table
    assert "203.0.113.0/24 bbr\n203.0.113.128/25 control\n" in table
    for address, controller in (("203.0.113.7", "bbr"), ("203.0.113.200", "cubic"), ("198.18.15.1", "bbr")):
        assert controller in str(decision(policy, address)), address


def test_explain_and_pin_know_the_name(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    assert learn(["explain", str(store.root), "203.0.113.7"]) == 0
    assert "by the entry Lima" in capsys.readouterr().out
    assert learn(["pin", str(store.root), "Essen", "bbr"]) == 0
    assert store.overrides().pins == {"Essen": "bbr"}
    assert learn(["pin", str(store.root), "Trier", "bbr"]) == 2
    assert "a name of --networks" in capsys.readouterr().err


def test_a_name_may_have_quotes() -> None:
    regions = {"203.0.113.0/24": 'the "north"'}
    assert names_of(["203.0.113.7", "198.51.100.1"], regions) == ['the "north"', ""]


@pytest.mark.parametrize("name", ["PE", "AS64500", "10.0.0.0/8", "*"])
def test_a_name_is_not_written_like_another_entry(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pq.write_table(demo.table(days=1, daily=10), tmp_path / "records.parquet")
    (tmp_path / "regions.csv").write_text(f"198.18.0.0/20,{name}\n")
    words = ["-o", str(tmp_path / "learned"), "--networks", str(tmp_path / "regions.csv"), "--key", KEY]
    assert learn(["plan", str(tmp_path / "records.parquet"), *words]) == 2
    assert "reads like another entry" in capsys.readouterr().err


def test_a_region_has_no_switchback(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    path = store.root.parent
    words = [
        str(path / "records.parquet"),
        "-o",
        str(path / "other"),
        "--networks",
        str(path / "regions.csv"),
    ]
    assert learn(["plan", *words, "--key", KEY, "--confirm", "50%"]) == 2
    assert "a switchback confirms ASes" in capsys.readouterr().err
