"""What clients get by the policies of several versions, as a server reads them."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import ibis
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from learning import FIRST_DAY, KEY, NOW, SETTINGS, check, decision
from uncork.learn import demo, evidence
from uncork.learn.cli import main
from uncork.learn.loop import Loop
from uncork.learn.settings import HOLDBACK, Overrides, Settings
from uncork.learn.store import Store
from uncork.measure.errors import InputError
from uncork.measure.reduce import to_arrow

OTHER_KEY = "f" * 32
GAINS, LOSES = (
    replace(one, networks=3, lift=lift) for one, lift in zip(demo.SYSTEMS[:2], (0.4, -0.4), strict=True)
)


@pytest.fixture(scope="module")
def records() -> pa.Table:
    return demo.table((GAINS, LOSES), days=9)


def plan(store: Store, records: pa.Table, settings: Settings) -> int:
    number, _ = store.plan(settings, evidence.collect(ibis.memtable(records), settings, to_arrow), NOW)
    return number


def clients(unit: str) -> list[list[str]]:
    """An address and a cookie each, which differ in what the unit is."""
    if unit == "prefix":
        return [[f"198.18.{at}.9"] for at in range(32)]
    return [["198.18.0.9", "--cookie", f"uid={at}"] for at in range(32)]


def experiments(policy: Path, unit: str) -> dict[int, tuple[str, str]]:
    """By client: the experiment that it is in, and the controller that it gets."""
    check(policy)
    found = {}
    for at, client in enumerate(clients(unit)):
        chosen = decision(policy, *client, "--size", "5MB")
        if chosen["arm"] is not None:
            found[at] = (chosen["arm"]["experiment"], chosen["tcp"])
    return found


def members(found: Mapping[int, tuple[str, str]], experiment: str) -> dict[int, str]:
    return {at: controller for at, (name, controller) in found.items() if name == experiment}


@pytest.mark.parametrize("unit", ["cookie:uid", "prefix"])
def test_the_holdback_never_moves(unit: str, tmp_path: Path, records: pa.Table) -> None:
    """Over versions that decide otherwise, have other shares and arms, after a rollback, and through the kill
    switch: the same clients, and all have the control arm. But not with another key.
    """
    store, current = Store(tmp_path / "learned"), tmp_path / "learned/current/policy.toml"
    first = replace(SETTINGS, unit=unit, holdback=0.2, random=0.2, changed=1.0)
    later = replace(first, as_of=FIRST_DAY + 8)
    store.apply(plan(store, records, first), NOW)
    found = [experiments(current, unit)]
    held, random = members(found[0], HOLDBACK), members(found[0], first.experiment)
    assert len(held) >= 3
    assert set(held.values()) == {"cubic"}
    assert set(random.values()) == {"cubic", "bbr"}

    store.override(Overrides({"*": "bbr"}))
    store.apply(plan(store, records, later), NOW)
    found.append(experiments(current, unit))
    unseen = decision(current, "192.0.2.1", "--asn", "AS64500", "--country", "PE", "--size", "5MB")
    assert unseen["tcp"] == "bbr", "who is in neither"
    store.override(Overrides())
    more = replace(later, random=0.4, half_life=7.0, only="large")
    store.apply(plan(store, records, more), NOW)
    found.append(experiments(current, unit))
    assert len(members(found[-1], first.experiment)) > len(random)
    assert main(["rollback", str(store.root), "1"]) == 0
    found.append(experiments(current, unit))
    assert found[-1] == found[0]

    def propose(_: datetime) -> int:
        return plan(store, records, later)

    loop = Loop(store, propose, check=check, every=0.0, now=lambda: NOW)
    store.stop_file.touch()
    loop.run(1)
    found.append(experiments(current, unit))
    assert members(found[-1], first.experiment) == {}, "the random share has the control arm, too"
    store.stop_file.unlink()
    loop.run(2)
    found.append(experiments(current, unit))
    assert members(found[-1], first.experiment) == random, "nor did the random share move"
    assert [members(one, HOLDBACK) for one in found] == [held] * 6

    store.apply(plan(store, records, replace(first, key=OTHER_KEY)), NOW)
    assert members(experiments(current, unit), HOLDBACK).keys() != held.keys()


def test_a_key_that_moves_the_holdback_is_warned_of(
    tmp_path: Path, records: pa.Table, capsys: pytest.CaptureFixture[str]
) -> None:
    """Once, in one line; not at the first key, nor at the same."""
    pq.write_table(records, tmp_path / "r.parquet")
    out = str(tmp_path / "out")

    def warnings(*key: str) -> list[str]:
        capsys.readouterr()
        assert main(["plan", str(tmp_path / "r.parquet"), "-o", out, "--until", "2026-11-09", *key]) == 0
        return [line for line in capsys.readouterr().err.splitlines() if line.startswith("warning:")]

    assert warnings("--key", KEY) == []
    assert main(["apply", out]) == 0
    assert warnings() == []
    assert warnings("--key", KEY) == []
    assert warnings("--key", OTHER_KEY) == [
        "warning: --key is not the key of the active version: it draws other clients for the holdback "
        "and the random share; leave it out to keep them"
    ]
    assert Store(tmp_path / "out").settings(4).key == OTHER_KEY
    assert main(["plan", str(tmp_path / "r.parquet"), "-o", out, "--key", "short"]) == 2
    assert "--key: it needs 32 hexadecimal digits" in capsys.readouterr().err


def test_a_key_of_the_environment_is_in_no_list_of_processes(
    tmp_path: Path, records: pa.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    pq.write_table(records, tmp_path / "r.parquet")
    command = ["plan", str(tmp_path / "r.parquet"), "-o", str(tmp_path / "out"), "--until", "2026-11-09"]
    monkeypatch.setenv("UNCORK_KEY", OTHER_KEY)
    assert main(command) == 0
    assert Store(tmp_path / "out").settings(1).key == OTHER_KEY
    assert main([*command, "--key", KEY]) == 0
    assert Store(tmp_path / "out").settings(2).key == KEY


def at(place: str | None, records: pa.Table, column: str = "service_listener") -> pa.Table:
    """The records, of this listener or host."""
    values = pa.array([place] * records.num_rows, pa.string())
    if column not in records.column_names:
        return records.append_column(column, values)
    return records.set_column(records.column_names.index(column), column, values)


def planned(tmp_path: Path, place: str, *tables: pa.Table, more: Sequence[str] = ()) -> Path:
    """The policy of a plan through the command."""
    pq.write_table(pa.concat_tables(tables), tmp_path / "r.parquet")
    out = tmp_path / "out"
    options = ["--place", place, "--key", KEY, "--changed", "100%", "--harmed", "5%", "--until", "2026-11-09"]
    assert main(["plan", str(tmp_path / "r.parquet"), "-o", str(out), *options, *more]) == 0
    assert main(["verify", str(out)]) == 0
    return out / "versions/0001/policy.toml"


FIRST, SECOND = ("198.18.0.9", "--asn", "AS64501"), ("198.18.8.9", "--asn", "AS64502")


@pytest.mark.parametrize(
    ("place", "names"),
    [("listener", ("edge", "core * 2")), ("host", ("audio.example.com", "[2001:db8::1]"))],
)
def test_each_place_has_a_table_of_its_own(place: str, names: tuple[str, str], tmp_path: Path) -> None:
    """What gains at one place loses at the other. A third place has the control arm."""
    swapped = replace(GAINS, lift=LOSES.lift), replace(LOSES, lift=GAINS.lift)
    tables = [demo.table(systems, days=7) for systems in ((GAINS, LOSES), swapped)]
    pairs = zip(names, tables, strict=True)
    policy = planned(tmp_path, place, *(at(name, table, f"service_{place}") for name, table in pairs))
    check(policy)
    for size, of_class in (("5MB", "large"), ("1MB", "small")):
        for name, arms in zip(names, (("bbr", "cubic"), ("cubic", "bbr")), strict=True):
            for client, arm in zip((FIRST, SECOND), arms, strict=True):
                chosen = decision(policy, *client, f"--{place}", name, "--size", size)
                assert (chosen["name"], chosen["tcp"]) == (f"learned, {name}/{of_class}", arm)
        chosen = decision(policy, *FIRST, f"--{place}", "core x 2", "--size", size)
        assert (chosen["name"], chosen["tcp"]) == (None, "cubic")


def test_a_client_cannot_spoil_the_policy_with_a_host(tmp_path: Path) -> None:
    """Without a host, or with an invalid one: its records decide nothing, and the policy is accepted."""
    good = at("www.example.com", demo.table((LOSES,), days=7), "service_host")
    fake = demo.table((GAINS,), days=7)
    hosts = (None, "", "*", "www.example.*", "a/b", "a:b", "\\", "ä.example", "a\nb")
    policy = planned(tmp_path, "host", good, *(at(host, fake, "service_host") for host in hosts))
    check(policy)
    # Each class has a rule for clients with the unit, and one for those without.
    assert policy.read_text().count("\nhost = ") == 4
    for size in ("5MB", "1MB"):
        chosen = decision(policy, *FIRST, "--host", "www.example.com", "--size", size)
        assert chosen["tcp"] == "cubic"


def test_a_client_that_makes_up_hosts_makes_no_tables(tmp_path: Path) -> None:
    """Only the hosts with most bytes have tables. Names of the others come first by the alphabet."""
    tables = [at(name, demo.table((GAINS,), days=7), "service_host") for name in ("www.example", "x.example")]
    fake = demo.table((LOSES,), days=1)
    hosts = [at(f"a{n}.example", fake.slice(40 * n, 40), "service_host") for n in range(7)]
    policy = planned(tmp_path, "host", *tables, *hosts, more=("--places", "2"))
    known = re.findall(r'^host = "(.*)"', policy.read_text(), flags=re.M)
    assert known == ["www.example"] * 4 + ["x.example"] * 4
    changes = (policy.parent / "changes.txt").read_text()
    assert "7 more hosts without a table: only the 2 with most bytes have one (--places)." in changes
    check(policy)
    for host, cc in (("www.example", "bbr"), ("a1.example", "cubic")):
        assert decision(policy, *FIRST, "--host", host, "--size", "5MB")["tcp"] == cc


def test_versions_without_a_limit_of_places_have_them_all() -> None:
    document = SETTINGS.document()
    assert Settings.from_document(document).places == 100
    del document["places"]
    assert Settings.from_document(document).places is None


def test_places_without_a_name_are_said_to_be_none(records: pa.Table) -> None:
    settings = replace(SETTINGS, place="listener")
    counts = evidence.collect(ibis.memtable(at(None, records)), settings, to_arrow)
    with pytest.raises(InputError, match="no record has the name of a listener"):
        list(evidence.sections(counts, settings))
