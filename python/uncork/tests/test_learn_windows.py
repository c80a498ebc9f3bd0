"""Initial windows as arms: more treated arms than one, from records to what a server does."""

import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from learning import KEY, check, decision
from uncork.learn.cli import main as learn
from uncork.learn.settings import Settings
from uncork.learn.store import Store
from windows import DSL, FAST, OPTIONS, SAME, SLOW, WINDOWS, System, table

sys.path.insert(0, str(Path(__file__).parents[1] / "bench"))

from learn_windows import held, play
from window_worlds import World, accesses

BUDGET = ["--changed", "100%", "--harmed", "5%", "--random", "1%", "--holdback", "1%"]


def plan(records: Path, out: Path, *more: str) -> Store:
    assert learn(["plan", str(records), "-o", str(out), "--key", KEY, *BUDGET, *OPTIONS, *more]) == 0
    assert learn(["apply", str(out)]) == 0
    return Store(out)


def arms(store: Store, number: int) -> dict[str, str]:
    found = store.decisions(number)
    return dict(zip(found.key.tolist(), found.arm.tolist(), strict=True))


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    path = tmp_path_factory.mktemp("windows")
    pq.write_table(table(), path / "records.parquet")
    return plan(path / "records.parquet", path / "learned")


def test_each_network_gets_the_window_that_its_path_carries(store: Store) -> None:
    found = arms(store, 1)
    assert {found[f"198.18.{n}.0/24"] for n in range(4)} <= {"w40", "w64"}, "fast"
    for second in (19, 20, 21):
        assert {found[f"198.{second}.{n}.0/24"] for n in range(4)} == {"ten"}, "overflows, or gains nothing"
    assert found["AS64501"] in ("w40", "w64"), "for networks that were not seen yet"
    assert found["*"] == "ten"
    assert store.differences(1) == []


def test_a_server_begins_with_the_window_of_the_network(store: Store) -> None:
    policy = store.root / "current" / "policy.toml"
    check(policy)
    text = policy.read_text()
    for name, packets in WINDOWS.items():
        assert f'[table.arm.{name}]\ntcp = "cubic"\ninitial_window = "{packets}p"\n' in text
        assert f"[experiment.explore.arm.{name}]\n" in text
    chosen = WINDOWS[arms(store, 1)["198.18.0.0/24"]]
    # The random share and the holdback have other windows for a few clients.
    fast = [str(decision(policy, f"198.18.0.{n}", "--size", "90kB")) for n in range(1, 6)]
    assert sum(f"'{chosen}p'" in one or f"{chosen} p" in one for one in fast) >= 4, fast


def test_explain_states_each_arm_and_which_one_the_figures_are_of(
    store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    assert learn(["explain", str(store.root), "198.19.1.7"]) == 0
    text = capsys.readouterr().out
    assert "small objects: ten, by the entry 198.19.1.0/24" in text
    assert "  why      guardrail broken: " in text
    assert "  figures  of w" in text
    for name in ("w20", "w40", "w64"):
        assert f"  arm      {name}: " in text
    assert "+2.00 pp" in text


def test_a_network_on_a_slower_path_loses_its_window_within_a_day(tmp_path: Path) -> None:
    systems = (System(64501, "PE", 4, FAST),)
    records = tmp_path / "records"
    records.mkdir()
    pq.write_table(table(systems, days=7), records / "before.parquet")
    store = plan(records, tmp_path / "learned")
    assert arms(store, 1)["198.18.1.0/24"] == "w64"
    # One of the networks is on another path from now on.
    changed = table((System(64501, "PE", 4, DSL),), days=1, first=7, seed=2)
    same = table(systems, days=1, first=7, seed=3)
    is_changed = np.array(changed["service_client"]) == "198.18.1.0/24"
    pq.write_table(changed.filter(is_changed), records / "changed.parquet")
    pq.write_table(same.filter(np.array(same["service_client"]) != "198.18.1.0/24"), records / "same.parquet")
    plan(records, tmp_path / "learned")
    found = arms(store, 2)
    assert found["198.18.1.0/24"] == "ten"
    assert {found[f"198.18.{n}.0/24"] for n in (0, 2, 3)} == {"w64"}, "the others stay"


def test_windows_that_do_nothing_are_not_given(tmp_path: Path) -> None:
    pq.write_table(
        table((System(64501, "PE", 6, SAME), System(64502, "IN", 6, SAME))), tmp_path / "r.parquet"
    )
    store = plan(tmp_path, tmp_path / "learned")
    assert set(arms(store, 1).values()) == {"ten"}


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["--arm", "w20"], "--arm w20"),
        (["--arm", "w 20:tcp=cubic"], "--arm w 20:tcp=cubic"),
        (["--arm", "w20:tcp=cubic,window=3"], "--arm w20:"),
        (["--arm", "ten:tcp=cubic"], "--arm ten:tcp=cubic"),
        (["--arm", "a:tcp=cubic", "--arm", "a:tcp=reno"], "--arm a:tcp=reno"),
        (["--arm", "a:tcp=cubic", "--arm", "b:tcp=reno", "--confirm", "10%"], "--confirm"),
        (["--arm", "a:tcp=cubic", "--arm", "b:tcp=reno", "--prior", "prior.json"], "--prior"),
    ],
)
def test_bad_arms_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str], named: str
) -> None:
    pq.write_table(table(days=1, daily=10), tmp_path / "r.parquet")
    words = ["plan", str(tmp_path / "r.parquet"), "-o", str(tmp_path / "x"), "--key", KEY, "--control", "ten"]
    assert learn([*words, *options]) == 2
    assert named in capsys.readouterr().err
    assert not (tmp_path / "x").exists()


def test_records_without_the_control_arm_are_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = table(days=1, daily=40)
    pq.write_table(found.filter(np.array(found["arm"]) == "w20"), tmp_path / "r.parquet")
    words = ["plan", str(tmp_path / "r.parquet"), "-o", str(tmp_path / "x"), "--key", KEY, *OPTIONS]
    assert learn(words) == 2
    assert "arm ten: no record of the experiment 'explore' has this arm; there are: w20" in (
        capsys.readouterr().err
    )


def test_two_arms_are_written_as_before_there_could_be_more() -> None:
    two = Settings("explore", "control", "bbr", {}, 20_000, KEY)
    assert "others" not in two.document()
    several = Settings("explore", "ten", "w20", {}, 20_000, KEY, others=("w40",))
    assert Settings.from_document(several.document()) == several
    assert several.of("w40").candidates == ("w40",)


def test_a_choice_with_old_evidence_follows_the_networks_around_it(tmp_path: Path) -> None:
    """Five weeks later the network has traffic, but no records of the experiment; its AS loses by windows."""
    fast, slow = System(64501, "PE", 4, FAST), System(64501, "PE", 4, SLOW)
    of_fast, of_slow = (table((one,), days=7, first=-35, seed=n) for n, one in enumerate((fast, slow)))
    own = "198.18.0.0/24"
    before = concat(of_fast, own, of_slow)
    records = tmp_path / "records"
    records.mkdir()
    pq.write_table(before, records / "before.parquet")
    store = plan(records, tmp_path / "learned")
    assert arms(store, 1)[own] in ("w40", "w64")
    of_fast, of_slow = (table((one,), days=7, seed=n) for n, one in enumerate((fast, slow), 5))
    later = concat(of_fast, own, of_slow)
    is_own = np.array(later["service_client"]) == own
    names = np.where(is_own, None, np.array(later["arm_experiment"]))
    at = later.schema.get_field_index("arm_experiment")
    pq.write_table(later.set_column(at, "arm_experiment", pa.array(names)), records / "later.parquet")
    plan(records, tmp_path / "learned")
    assert arms(store, 2)[own] == "ten"


def concat(one: pa.Table, own: str, others: pa.Table) -> pa.Table:
    """The network of the first table, the others of the second one."""
    is_own = [np.array(each["service_client"]) == own for each in (one, others)]
    return pa.concat_tables([one.filter(is_own[0]), others.filter(~is_own[1])])


def test_drawn_worlds_have_what_was_measured_and_learn_harms_no_network_in_a_small_one() -> None:
    """A part of bench/learn_windows.py; the whole is docs/evidence/learn-windows.md."""
    kinds = accesses()
    assert len(kinds) == 11
    assert all((np.diff(one.resent) >= 0).all() and one.lift[0] == 0 for one in kinds)
    drawn, day, decisions = next(play(World("small", 40, 8), 20_000, 11))
    found = held(("small", 20_000, 11), drawn, day, decisions)
    assert found.gain > 0
    assert found.worse == 0
