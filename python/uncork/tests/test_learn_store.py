"""The directory of versions where disks are full, files damaged, and other users present."""

import os
import shutil
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from full_disk import full_disk
from learning import KEY, NOW, program
from uncork.learn import cli, demo, lock
from uncork.learn.settings import Overrides
from uncork.learn.store import Store
from uncork.measure import files
from uncork.measure.errors import InputError, OutputError

OTHER_USER = 65_534


@pytest.fixture(scope="module")
def planned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of a version that is not active."""
    root = tmp_path_factory.mktemp("planned")
    records = demo.write(root / "records", 7)
    options = ["--experiment", "explore", "--key", KEY, "-o", str(root / "store")]
    assert cli.main(["plan", str(records), *options]) == 0
    return root / "store"


@pytest.fixture
def store(planned: Path, tmp_path: Path) -> Store:
    shutil.copytree(planned, tmp_path / "store", symlinks=True)
    return Store(tmp_path / "store")


def done(store: Store) -> list[object]:
    return [line["done"] for line in store.log()][-2:]


def test_intent_and_outcome_are_logged(store: Store) -> None:
    assert store.apply(1, NOW) == ""
    assert done(store) == ["activate", "apply"]


def test_a_version_is_not_active_if_its_intent_cannot_be_written(
    store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before, it was active and the command said that it cannot be written."""
    (store.root / "log.jsonl").unlink()
    (store.root / "log.jsonl").mkdir()
    assert cli.main(["apply", str(store.root)]) == 3
    assert "log.jsonl" in capsys.readouterr().err
    assert store.current() is None


def test_an_active_version_without_a_writable_outcome_is_reported(
    store: Store, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    note = Store.note
    monkeypatch.setattr(Store, "note", lambda *of, **what: full(note, *of, **what))

    def full(note, store, at, what, **more):  # type: ignore[no-untyped-def]
        if what == "apply":
            raise OutputError("log.jsonl: No space left on device")
        note(store, at, what, **more)

    assert cli.main(["apply", str(store.root)]) == 0
    written = capsys.readouterr()
    assert "Version 1 is active" in written.out
    assert "warning: version 1 is active, but not all of it is written" in written.err
    assert done(store)[-1] == "activate"


def test_rollback__a_version_that_never_was_active__is_not_the_one_before(
    store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    """A plan that a person rejected does not become active in an emergency."""
    for _ in range(2):
        store.plan(store.settings(1), store.evidence(1), NOW)
    for number in (1, 3):
        store.apply(number, NOW)
    assert cli.main(["rollback", str(store.root), "2"]) == 2
    assert f"uncork learn apply {store.root} 2" in capsys.readouterr().err
    assert cli.main(["rollback", str(store.root)]) == 0
    assert store.current() == 1
    assert cli.main(["rollback", str(store.root), "3"]) == 0
    assert store.current() == 3


def test_apply__the_kill_switch_is_on__only_the_control_arm_for_all(
    store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    settings, counts = store.settings(1), store.evidence(1)
    store.plan(replace(settings, random=0.0), counts, NOW, Overrides({"*": settings.control}))
    store.apply(1, NOW)
    store.stop_file.touch()
    for command in ("apply", "rollback"):
        assert cli.main([command, str(store.root), "1"]) == 2
        assert "stop: the kill switch is on" in capsys.readouterr().err
    assert cli.main(["apply", str(store.root)]) == 0
    assert store.current() == 2


def test_apply__version_0__is_refused(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["apply", str(store.root), "0"]) == 2
    assert "version 0: there is none; there are: 1" in " ".join(capsys.readouterr().err.split())
    assert store.current() is None


SHADOWED = """
[[rule]]
asn = "AS64500"
use = { tcp = "cubic" }

[[rule]]
asn = "AS64500"
country = "PE"
use = { tcp = "bbr" }
"""


@pytest.mark.parametrize(
    ("rules", "status", "words"),
    [
        (SHADOWED, 0, "this rule never decides: the rule in line"),
        (
            '[[rule]]\nasn = "AS64500"\nuse = { tcp = "bbr", mood = "good" }\n',
            2,
            "`uncork policy check` refuses it",
        ),
    ],
    ids=["shadowed", "refused"],
)
def test_apply__a_policy_that_a_server_warns_of_or_refuses__is_checked_before(
    rules: str, status: int, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program()
    (tmp_path / "rules.toml").write_text(rules)
    records, root = demo.write(tmp_path / "records", 1), tmp_path / "store"
    options = ["--rules", str(tmp_path / "rules.toml"), "--key", KEY, "-o", str(root)]
    assert cli.main(["plan", str(records), *options]) == 0
    assert cli.main(["apply", str(root)]) == status
    assert words in capsys.readouterr().err
    assert Store(root).current() == (1 if status == 0 else None)


def test_a_full_disk_leaves_the_store_as_it_was(store: Store) -> None:
    before = sorted(path.name for path in store.root.rglob("*"))
    counts = store.evidence(1)
    with full_disk():
        with pytest.raises(OutputError, match="too large"):
            store.plan(store.settings(1), counts, NOW)
        with pytest.raises(OutputError):
            store.apply(1, NOW)
        with pytest.raises(OutputError):
            files.write(store.root / "overrides.json", "{}")
    assert store.current() is None
    assert sorted(path.name for path in store.root.rglob("*") if path.name != ".lock") == [
        name for name in before if name != ".lock"
    ]


def test_a_plan_that_cannot_be_written_is_shown(store: Store) -> None:
    shown: list[str] = []
    with full_disk(1000), pytest.raises(OutputError):
        store.plan(store.settings(1), store.evidence(1), NOW, show=shown.append)
    assert shown[0].startswith("Version 2")


def test_a_full_disk_keeps_the_earlier_file(tmp_path: Path) -> None:
    files.write(tmp_path / "a", "one")
    with full_disk(), pytest.raises(OutputError):
        files.write(tmp_path / "a", "two")
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("a", "one")]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "not JSON"),
        ('{"pins": {}}', "'frozen' is missing"),
        ("[]", "not an object"),
        ('{"pins": {"*": 3}, "frozen": []}', "pins"),
        ('{"pins": {}, "frozen": 3}', "frozen"),
        ("[" * 100_000, "not JSON"),
        ('{"pins": "\udcff"}', "not JSON"),
    ],
)
def test_damaged_overrides_are_one_line(
    store: Store, text: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (store.root / "overrides.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    assert cli.main(["pin", str(store.root), "AS64500", "bbr"]) == 2
    error = capsys.readouterr().err
    assert words in error
    assert "overrides.json" in error
    assert "remove it" in error


@pytest.mark.parametrize("name", ["decisions.parquet", "guardrails.json", "inputs.json", "trials.json"])
@pytest.mark.parametrize("damage", ["missing", "cut", "other"])
def test_damaged_files_of_a_version_are_one_line(
    store: Store, name: str, damage: str, capsys: pytest.CaptureFixture[str]
) -> None:
    store.apply(1, NOW)
    file = store.path(1) / name
    if damage == "missing":
        file.unlink()
    else:
        file.write_bytes(file.read_bytes()[:1] if damage == "cut" else b"[3]")
    assert cli.main(["explain", str(store.root), "203.0.113.7"]) == (0 if name == "trials.json" else 2)
    if name == "trials.json":
        with pytest.raises(InputError, match=name):
            store.trials(1)
    else:
        error = capsys.readouterr().err
        assert name in error
        assert error.count("\n") == 1


def test_the_lock_is_of_its_owner_alone_under_any_umask(store: Store) -> None:
    path = store.root / ".lock"
    path.unlink(missing_ok=True)
    before = os.umask(0)
    try:
        store.apply(1, NOW)
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.chmod(0o644)
    store.apply(1, NOW)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.skipif(os.geteuid() != 0, reason="needs another user")
def test_another_user_cannot_hold_the_lock(store: Store) -> None:
    store.apply(1, NOW)
    store.root.chmod(0o755)
    pid = os.fork()
    if pid == 0:
        os.setgid(OTHER_USER)
        os.setuid(OTHER_USER)
        try:
            os.open(store.root / ".lock", os.O_RDONLY)
        except PermissionError:
            os._exit(0)
        os._exit(1)
    assert os.waitpid(pid, 0)[1] == 0


def test_a_link_in_place_of_the_lock_is_refused(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("kept")
    (tmp_path / "store").mkdir()
    (tmp_path / "store/.lock").symlink_to(victim)
    with pytest.raises(OutputError, match=r"\.lock"), lock.alone(tmp_path / "store"):
        pass
    assert victim.read_text() == "kept"


def test_waiting_ends_and_names_the_process(tmp_path: Path) -> None:
    holder = f"process {os.getpid()} changes it"
    with lock.alone(tmp_path), pytest.raises(OutputError, match=holder), lock.alone(tmp_path, 0.2):
        pass
    with lock.alone(tmp_path, max_wait=0.2):
        pass
