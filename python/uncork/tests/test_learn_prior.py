"""`plan --prior`: what a calibrated twin expects of ASes without data, and when it is refused."""

import json
import math
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from learning import KEY
from uncork.learn import demo
from uncork.learn.cli import main
from uncork.learn.decisions import Decision
from uncork.learn.entries import ALL_CLIENTS
from uncork.learn.lift import Estimate, Hierarchy, shrink
from uncork.learn.prior import load_prior
from uncork.learn.store import Store

UNTRIED = 64521
"""An AS of the demo with clients outside of any experiment."""
ARM_COLUMNS = ("arm_experiment", "arm", "arm_unit", "arm_bucket", "arm_propensity")
ALL = ("--changed", "100%", "--harmed", "100%")
"""No limit but that of each entry: networks of an AS without data differ as those of others do."""


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> Path:
    table = demo.table()
    is_tried = pc.not_equal(table["service_asn"], UNTRIED)
    for name in ARM_COLUMNS:
        column = pc.if_else(is_tried, table[name], pa.scalar(None, table[name].type))
        table = table.set_column(table.schema.get_field_index(name), name, column)
    path = tmp_path_factory.mktemp("records") / "records.parquet"
    pq.write_table(table, path)
    return path


def prior(directory: Path, **changed: object) -> Path:
    document = {
        "schema": "twin-prior-1",
        "class": "large",
        "control": "cubic",
        "treated": "bbr3",
        "earned": True,
        "rank": [0.9, 0.7, 0.97],
        "skill": 0.8,
        "systems": {f"AS{UNTRIED}": {"lift": 0.5, "sd": 0.1}},
        **changed,
    }
    path = directory / "prior.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def plan(records: Path, store: Path, *words: object) -> int:
    return main([str(word) for word in ("plan", records, "-o", store, "--key", KEY, *words)])


def entries(store: Path, number: int) -> dict[str, Decision]:
    return {one.key: one for one in Store(store).decisions(number) if one.section == "large"}


def test_a_prior_decides_for_its_as_alone(records: Path, tmp_path: Path) -> None:
    store = tmp_path / "learned"
    assert plan(records, store, *ALL) == 0
    assert plan(records, store, *ALL, "--prior", prior(tmp_path)) == 0
    without, given = entries(store, 1), entries(store, 2)
    of_system = [key for key, one in given.items() if f"AS{UNTRIED}" in (key, one.parent)]
    assert len(of_system) == 7, "the AS and its six networks"
    for key in of_system:
        assert without[key].arm == "control"
        assert (given[key].arm, given[key].raw) == ("bbr", None)
        assert given[key].lift == pytest.approx(0.5, abs=1e-6)
        assert given[key].sd > 0.1, "networks differ from their AS"
        if given[key].level == "network":
            assert given[key].by == "twin"
    for key in given.keys() - set(of_system):
        assert (given[key].lift, given[key].sd, given[key].arm) == (
            without[key].lift,
            without[key].sd,
            without[key].arm,
        )
    assert given[ALL_CLIENTS].lift == without[ALL_CLIENTS].lift


def test_its_reason_is_printed_and_computed_again(
    records: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = tmp_path / "learned"
    file = prior(tmp_path)
    assert plan(records, store, "--prior", file) == 0
    file.unlink()
    assert main(["apply", str(store)]) == 0
    capsys.readouterr()
    assert main(["verify", str(store)]) == 0, "the version has the prior among its inputs"
    network = next(one.key for one in Store(store).decisions(1).networks if one.parent == f"AS{UNTRIED}")
    capsys.readouterr()
    assert main(["explain", str(store), network.removesuffix("/24")]) == 0
    printed = capsys.readouterr().out
    large, small = printed[printed.index("large objects") :].split("small objects")
    assert (
        f"twin     calibrated, expects +65 % (+36 to +101 %) of AS{UNTRIED}, in place of its country" in large
    )
    assert "most by the evidence of: twin" in large
    assert "twin" not in small, "a twin has large objects only"


def test_evidence_outweighs_the_prior() -> None:
    """The twin says +50 % of an AS. Its networks have no gain, each known to 5 %."""
    networks, none = 20, np.zeros(20, dtype=np.int64)
    tree = Hierarchy([f"n{at}" for at in range(networks)], ["AS1"], ["PE"], none, none[:1])
    rng = np.random.default_rng(1)
    raw = {at: Estimate(float(rng.normal(0, 0.05)), 0.05) for at in range(networks)}
    found = shrink(tree, raw, ({}, {}, None), {0: (math.log(1.5), 0.1)})
    assert abs(found.system.mean[0]) < 0.06
    assert found.all_clients.mean[0] == shrink(tree, raw, ({}, {}, None)).all_clients.mean[0]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"earned": False, "systems": {}}, "has not earned .*: rank correlation of surely 0.7, skill 0.8"),
        ({"treated": "bbr1"}, "is about bbr1 over cubic, the arms have bbr3 and cubic"),
        ({"schema": "twin-prior-9"}, "not a prior of schema twin-prior-1"),
        ({"systems": {"AS1": {"lift": 0.1, "sd": 0}}}, "AS1 needs a lift and a positive sd"),
        ({"systems": {"AS1": {"lift": "x", "sd": 1}}}, "AS1 needs a lift"),
        ({"systems": None}, "`systems` is missing"),
    ],
)
def test_what_is_not_earned_is_refused(
    changed: dict[str, object],
    message: str,
    records: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    store = tmp_path / "learned"
    assert plan(records, store, "--prior", prior(tmp_path, **changed)) == 2
    error = capsys.readouterr().err
    assert "prior.json" in error
    assert re.search(message, error), error
    assert not store.exists()


def test_a_file_that_is_none_is_refused(tmp_path: Path) -> None:
    broken = tmp_path / "broken.json"
    broken.write_text("{", encoding="utf-8")
    for path, message in ((broken, "not JSON"), (tmp_path / "absent.json", "No such file")):
        with pytest.raises(Exception, match=message):
            load_prior(path, [("cubic", "bbr3")])
