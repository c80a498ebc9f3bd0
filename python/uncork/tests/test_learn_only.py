"""`plan --only`: one class of objects decides for all connections, for servers that know no sizes."""

from pathlib import Path

import pytest

from learning import KEY
from uncork.learn.cli import main
from uncork.learn.store import Store


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("records")
    assert main(["demo", "-o", str(path)]) == 0
    return path


def planned(records: Path, root: Path, *words: str) -> Store:
    command = ["plan", str(records), "-o", str(root), "--key", KEY, "--unit", "prefix", *words]
    assert main(command) == 0
    return Store(root)


@pytest.mark.parametrize(("of_class", "other"), [("large", "small"), ("small", "large")])
def test_one_class_decides_for_all(of_class: str, other: str, records: Path, tmp_path: Path) -> None:
    store = planned(records, tmp_path / "one", "--only", of_class)
    assert store.decisions(1).sections == [of_class]
    policy = store.text(1, "policy.toml")
    for condition in ("size", "cookie", "header", other):
        assert condition not in policy, "uncork steer would refuse it"
    assert policy.count("table = ") == 1
    assert main(["verify", str(store.root)]) == 0
    both = planned(records, tmp_path / "both")
    assert both.text(1, "policy.toml").count("size = ") == 2
    # What the one class says is the same, with or without the other.
    lifts = {one.key: one.lift for one in both.decisions(1) if one.section == of_class}
    assert {one.key: one.lift for one in store.decisions(1)} == lifts
