"""Rounds of `uncork learn run` that change nothing: what is kept of them, and how it is computed again."""

import hashlib
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import ibis
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import learning
from learning import NOW
from test_learn_run import key_pair, killed_at, loop_of, results
from uncork.learn import demo, evidence
from uncork.learn.cli import main
from uncork.learn.decisions import Decisions
from uncork.learn.settings import Overrides, Settings
from uncork.learn.store import Store
from uncork.measure.reduce import to_arrow

SETTINGS = replace(learning.SETTINGS, changed=1.0)
Plan = Callable[[], tuple[Settings, pa.Table]]


@pytest.fixture(scope="module")
def records() -> pa.Table:
    return demo.table((replace(demo.SYSTEMS[0], networks=3),), days=8, daily=60)


@pytest.fixture(scope="module")
def plan_of(records: pa.Table) -> Callable[[int], Plan]:
    """The plan of a round with this number of late records. None changes anything."""

    def of(late: int) -> Plan:
        counts = evidence.collect(
            ibis.memtable(pa.concat_tables([records, records.slice(0, late)])), SETTINGS, to_arrow
        )
        return lambda: (SETTINGS, counts)

    return of


@pytest.fixture(scope="module")
def learned(tmp_path_factory: pytest.TempPathFactory, plan_of: Callable[[int], Plan]) -> Path:
    """A version, and two rounds that changed nothing."""
    store = Store(tmp_path_factory.mktemp("learned"))
    loop_of(store, [plan_of(late) for late in (0, 5, 9)]).run(3)
    assert results(store) == ["applied", "unchanged", "unchanged"]
    return store.root


@pytest.fixture
def store(learned: Path, tmp_path: Path) -> Store:
    """The same, for one test."""
    return Store(shutil.copytree(learned, tmp_path / "learned", symlinks=True))


def verified(store: Store, capsys: pytest.CaptureFixture[str], *options: str) -> tuple[int, str]:
    capsys.readouterr()
    return main(["verify", str(store.root), *options]), capsys.readouterr().out


def test_a_round_that_changes_nothing_is_computed_again(
    store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    assert store.numbers() == [1], "it keeps no version"
    last = store.log()[-1]
    assert last["result"] == "unchanged"
    assert last["inputs_sha256"] in store.rounds()
    path = store.round_path(str(last["inputs_sha256"]))
    assert sorted(file.name for file in path.iterdir()) == ["evidence.parquet", "inputs.json"]
    assert verified(store, capsys) == (
        0,
        "version 1: the same bytes\n2 rounds changed nothing: 2 the same bytes, 0 not kept\n",
    )
    assert verified(store, capsys, "1") == (0, "version 1: the same bytes\n")


def test_equal_inputs_are_kept_once(
    store: Store, plan_of: Callable[[int], Plan], capsys: pytest.CaptureFixture[str]
) -> None:
    kept = store.rounds()
    loop_of(store, [plan_of(9), plan_of(5), plan_of(0)]).run(3)
    (new,) = set(store.rounds()) - set(kept)
    assert [file.name for file in store.round_path(new).iterdir()] == ["inputs.json"], (
        "version 1 has the rest"
    )
    status, printed = verified(store, capsys)
    assert status == 0
    assert "5 rounds changed nothing: 5 the same bytes, 0 not kept" in printed


@pytest.mark.parametrize("keep", [3, 2, 1, 0])
def test_the_inputs_of_the_last_rounds_are_kept(
    keep: int, store: Store, plan_of: Callable[[int], Plan], capsys: pytest.CaptureFixture[str]
) -> None:
    loop_of(store, [plan_of(20)], keep=keep).run(1)
    assert sorted(store.rounds()) == sorted(str(name) for name in store.unchanged()[3 - keep :])
    counts = f"3 rounds changed nothing: {keep} the same bytes, {3 - keep} not kept"
    status, out = verified(store, capsys)
    assert (status, counts in out) == (0, True), out


def edited(path: Path, change: Callable[[dict[str, object]], None]) -> None:
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document, ensure_ascii=False, indent=1) + "\n")


def test_inputs_that_were_changed_are_seen(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = store.rounds()
    edited(store.round_path(first) / "inputs.json", lambda it: it["settings"].update(sure=0.6))  # type: ignore[attr-defined]
    other = store.round_path(second) / "evidence.parquet"
    shutil.copy(store.round_path(first) / "evidence.parquet", other)
    status, printed = verified(store, capsys)
    assert status == 1
    assert f"round {first}: differs in what version 1 does, " in printed
    assert "inputs.json" in printed
    assert f"round {second}: differs in evidence.parquet" in printed
    assert "2 rounds changed nothing: 0 the same bytes, 0 not kept" in printed


@pytest.mark.parametrize(
    ("changed", "pins"), [({}, {"*": "control"}), ({"ttl": 8}, {})], ids=["arms", "settings"]
)
def test_a_round_that_did_change_something_is_seen(
    changed: dict[str, int],
    pins: dict[str, str],
    store: Store,
    plan_of: Callable[[int], Plan],
    capsys: pytest.CaptureFixture[str],
) -> None:
    """All its hashes are right, but servers would have done otherwise."""
    settings, counts = plan_of(5)()
    number, _ = store.plan(replace(settings, **changed), counts, NOW, Overrides(pins))  # type: ignore[arg-type]
    name = store.set_aside(number)
    store.note(NOW, "round", result="unchanged", version=1, inputs_sha256=name)
    status, printed = verified(store, capsys)
    assert status == 1
    assert f"round {name}: differs in what version 1 does\n" in printed


def test_decisions_of_another_library_are_held_to_their_texts(
    store: Store, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may write the same values in other bytes; the table, policy, guardrails and changes are the same."""

    def to_bytes(self: Decisions) -> bytes:
        out = pa.BufferOutputStream()
        pq.write_table(self.table(), out, compression="none")
        return out.getvalue().to_pybytes()

    monkeypatch.setattr(Decisions, "to_bytes", to_bytes)
    status, printed = verified(store, capsys)
    assert (status, printed.count("differs in decisions.parquet\n")) == (1, 2)
    monkeypatch.setattr(pa, "cpp_version", "27.0.0")
    assert verified(store, capsys)[0] == 0


def test_a_log_without_kept_inputs_is_not_an_error(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.rmtree(store.root / "rounds")
    lines = [
        {k: v for k, v in line.items() if "result" not in line or k != "inputs_sha256"}
        for line in store.log()
    ]
    (store.root / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    status, printed = verified(store, capsys)
    assert (status, "2 rounds changed nothing: 0 the same bytes, 2 not kept" in printed) == (0, True)
    loop_of(store, []).run(1)
    assert results(store)[-1] == "failed"


def test_history_prints_rounds_that_end_alike_in_one_line(
    store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    (store.root / "stop").touch()
    loop_of(store, []).run(3)
    assert main(["history", str(store.root)]) == 0
    at = "2026-11-09T01:00:00Z "
    log, _, _ = capsys.readouterr().out.partition("\n\n")
    assert log.splitlines() == [
        f"{at} plan 1",
        f"{at} apply 1",
        f"{at} round 1 applied",
        f"{at} round 1 unchanged, 2 times until 2026-11-09T01:00:00Z",
        f"{at} plan 2",
        f"{at} apply 2",
        f"{at} round 2 applied",
        f"{at} round 2 stopped, 2 times until 2026-11-09T01:00:00Z",
    ]


def test_a_crash_at_any_step_leaves_whole_rounds(
    tmp_path: Path, store: Store, plan_of: Callable[[int], Plan]
) -> None:
    """While a plan becomes a round, its line is written, and the rounds before it are removed."""
    late = plan_of(20)
    number, _ = store.plan(*late(), NOW)

    def work(root: Path) -> None:
        name = Store(root).set_aside(number)
        Store(root).note(NOW, "round", result="unchanged", version=1, inputs_sha256=name)
        Store(root).forget_rounds(1)

    for step in range(1, 100):
        root = tmp_path / f"crash{step}"
        shutil.copytree(store.root, root, symlinks=True)
        died = killed_at(step, root, lambda root=root: work(root))  # type: ignore[misc]
        crashed = Store(root)
        assert crashed.numbers() in ([1], [1, 2])
        assert all(not crashed.damaged(number) for number in crashed.numbers()), step
        for name in crashed.rounds():
            files = {file.name: file.read_bytes() for file in crashed.round_path(name).iterdir()}
            assert hashlib.sha256(files["inputs.json"]).hexdigest() == name, step
            assert "evidence.parquet" in files, step
        if step % 6 == 1:
            # The next round finds its way from there.
            loop_of(crashed, [late], keep=1).run(1)
            assert crashed.rounds() == [crashed.unchanged()[-1]]
            assert not list(root.glob("[rv]*/.*"))
            assert main(["verify", str(root)]) == 0
        shutil.rmtree(root)
        if not died:
            break
    assert not died
    assert step > 12, "steps at which it was killed"


@pytest.mark.sign
def test_rounds_are_signed_as_versions_are(
    tmp_path: Path, plan_of: Callable[[int], Plan], capsys: pytest.CaptureFixture[str]
) -> None:
    private, public = key_pair(tmp_path)
    signed = Store(tmp_path / "signed", private_key=private)
    loop_of(signed, [plan_of(0), plan_of(5)]).run(2)
    assert verified(signed, capsys, "--key", str(public))[0] == 0
    (name,) = signed.rounds()
    (signed.round_path(name) / "inputs.sig").unlink()
    status, printed = verified(signed, capsys, "--key", str(public))
    assert (status, f"round {name}: differs in inputs.sig\n" in printed) == (1, True)


def test_a_number_of_rounds_is_not_negative(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "r", "-o", str(tmp_path), "--keep", "-1", "--rounds", "1"]) == 2
    assert "--keep: `-1` is not a number of rounds; write 0 to keep none" in capsys.readouterr().err
