"""The checks of the records that a plan makes, and what follows from them."""

from dataclasses import replace
from pathlib import Path

import ibis
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from learning import FIRST_DAY, KEY, NOW, SETTINGS
from test_learn_weights import changed, of_clients
from uncork.learn import demo, evidence
from uncork.learn.cli import main
from uncork.learn.decide import SEVERAL_ARMS, UNLIKE
from uncork.learn.defaults import GUARDRAILS
from uncork.learn.explain import explain
from uncork.learn.page import page
from uncork.learn.settings import Settings
from uncork.learn.store import Store
from uncork.measure.reduce import to_arrow

ONE_DAY = replace(SETTINGS, as_of=FIRST_DAY + 1, only="large", changed=1.0, guardrails=("retransmitted=2pp",))


def planned(directory: Path, table: pa.Table, settings: Settings = ONE_DAY) -> Store:
    """A directory with one version, which is active and can be computed again."""
    store = Store(directory)
    store.plan(settings, evidence.collect(ibis.memtable(table), settings, to_arrow), NOW)
    store.apply(1, NOW)
    assert main(["verify", str(directory)]) == 0
    return store


def findings(store: Store, name: str) -> dict[str, str]:
    """The severity of a check by section."""
    return {
        section: one.severity for section, of in store.findings(1).items() for one in of if one.name == name
    }


def uneven(more: int) -> pa.Table:
    """Every other client resends 6 % of its bytes; in the treated arm it has `more` times the downloads."""
    is_lossy = np.arange(6000) % 2 == 0
    usual = 1 + np.arange(6000) % 3
    downloads = np.stack([usual, np.where(is_lossy, more * usual, usual)], axis=1)
    table = of_clients(downloads, np.full(6000, 0.3), np.full(6000, 16.6))
    again = np.where(np.array(table["arm_unit"]) % 2 == 0, 300_000, 0)
    table = changed(table, "bytes_retransmitted", again)
    return changed(table, "bytes_sent", again + 5_000_000)


@pytest.mark.parametrize("more", [1, 6])
def test_guardrails_count_each_client_once_where_an_arm_brings_some_back(more: int, tmp_path: Path) -> None:
    """No client resends more with the treated arm. Of its bytes it resends 4.9 % against 2.9 %."""
    store = planned(tmp_path / "learned", uneven(more))
    own = next(one for one in store.decisions(1).networks)
    assert (own.limit, own.arm) == ("retransmitted:ratio", "bbr")
    assert own.harm == pytest.approx(0, abs=0.005)
    assert findings(store, "records per unit") == {"large": "ok" if more == 1 else "warning"}
    texts = [store.text(1, "changes.txt"), explain(store, "198.18.0.7", None, None), page(store)]
    said = [("Records per unit differ between the arms: " in text) for text in texts]
    assert said == [more > 1] * 3


def with_made_up_cookies(count: int) -> pa.Table:
    """Twelve networks that gain; in the first one a client makes up this number of cookies of one arm."""
    gains = demo.table((demo.System(64501, "PE", 6, 0.3), demo.System(64502, "PE", 6, 0.3)), days=2)
    first = gains.filter(pc.equal(gains["service_client"], "198.18.0.0/24"))
    rng, of_arm = np.random.default_rng(1), first.filter(pc.equal(first["arm"], "bbr"))
    made_up = of_arm.take(pa.array(rng.integers(0, len(of_arm), count)))
    made_up = changed(made_up, "arm_unit", rng.integers(0, 2**63, len(made_up), dtype=np.uint64))
    return pa.concat_tables([gains, changed(made_up, "arm_bucket", rng.integers(0, 100, len(made_up)))])


@pytest.mark.parametrize("count", [0, 600])
def test_a_network_with_clients_that_are_not_as_dealt_is_not_switched_on(count: int, tmp_path: Path) -> None:
    settings = replace(ONE_DAY, as_of=FIRST_DAY + 2, harmed=1.0)
    store = planned(tmp_path / "learned", with_made_up_cookies(count), settings)
    arms = {one.key: (one.arm, one.reason) for one in store.decisions(1).networks}
    assert arms.pop("198.18.0.0/24") == (("control", UNLIKE) if count else ("bbr", "switched on"))
    assert {arm for arm, _ in arms.values()} == {"bbr"}, "no other network is held back"
    assert findings(store, "sample ratio by cell") == {"large": "warning" if count else "ok"}
    said = explain(store, "198.18.0.7", None, None)
    assert ("by a guardrail alone until the sample ratio is as dealt" in said) == (count > 0)
    assert ("1 of 14 networks and ASes: client-days of 198.18.0.0/24 (" in said) == (count > 0)


def dealt(share: float, propensity: bool = False) -> pa.Table:
    """Four networks in which this share of the clients has the treated arm. Records may not say so."""
    table = demo.table((demo.System(64501, "PE", 4, 0.3),), days=1, daily=900)
    rng = np.random.default_rng(4)
    is_kept = np.array(table["arm"].to_pylist()) == "control"
    is_kept |= rng.random(table.num_rows) < share / (1 - share)
    table = table.filter(pa.array(is_kept))
    return table if propensity else changed(table, "arm_propensity", pa.nulls(table.num_rows, pa.float64()))


@pytest.mark.parametrize(
    ("table", "share", "severity", "words"),
    [
        (dealt(0.5), "", "ok", "as assigned to equal arms (assumed: --share declares another share)"),
        (dealt(0.2), "", "blocks", "If another share was planned, declare it: --share 30%."),
        (dealt(0.2), "20%", "ok", "as assigned by --share, 20 % treated"),
        (dealt(0.5, propensity=True), "", "ok", "as assigned by each unit's recorded propensity"),
        (dealt(0.5).drop_columns(["arm_unit"]), "", "not run", "The records name no unit."),
    ],
    ids=["equal", "another", "declared", "recorded", "no units"],
)
def test_a_plan_says_what_the_sample_ratio_is_compared_with(
    table: pa.Table, share: str, severity: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pq.write_table(table, tmp_path / "records.parquet")
    options = ["--until", "2026-11-03", "--only", "large", "--key", KEY, "--harmed", "100%"]
    learned = tmp_path / "learned"
    more = ["--share", share] if share else []
    assert main(["plan", str(tmp_path / "records.parquet"), "-o", str(learned), *options, *more]) == 0
    printed, store = capsys.readouterr(), Store(learned)
    [found] = [one for one in store.findings(1)["large"] if one.name == "sample ratio"]
    assert found.severity == severity
    assert words in f"{found.sentence} {found.remedy}"
    assert severity != "blocks" or not any(one.arm == "bbr" for one in store.decisions(1))
    assert (words in printed.out) == (severity in ("blocks", "not run"))
    is_assumed = "assumed" in words or severity == "blocks"
    assert ("compared to equal arms (assumed" in printed.out) == is_assumed
    store.apply(1, NOW)
    assert "The records name no unit." in page(store) or severity != "not run"


def in_both_arms(units: int, policies: int = 1) -> pa.Table:
    """1,800 clients of two records a day. This number of units has the second record in the other arm."""
    table = demo.table((demo.System(64501, "PE", 2, 0.3),), days=1, daily=900)
    second = table.slice(0, units)
    is_bbr = np.array(second["arm"].to_pylist()) == "bbr"
    second = changed(second, "arm", np.where(is_bbr, "control", "bbr"))
    parts = [table, second, table.slice(units)]
    names = ["p1", f"p{policies}", "p1"]
    return pa.concat_tables(
        part.append_column("choice_policy", pa.array([name] * part.num_rows))
        for part, name in zip(parts, names, strict=True)
        if part.num_rows
    )


@pytest.mark.parametrize(
    ("units", "policies", "severity"), [(0, 1, "ok"), (10, 1, "warning"), (100, 1, "blocks"), (100, 2, "ok")]
)
def test_units_in_several_arms_are_reported_and_hold_back(
    units: int, policies: int, severity: str, tmp_path: Path
) -> None:
    """Unless the policy changed: it may assign a unit to another arm."""
    store = planned(tmp_path / "learned", in_both_arms(units, policies), replace(ONE_DAY, harmed=1.0))
    assert findings(store, "one arm per unit") == {"large": severity}
    arms = {(one.arm, one.reason) for one in store.decisions(1).networks}
    assert arms == ({("control", SEVERAL_ARMS)} if severity == "blocks" else {("bbr", "switched on")})
    sentence = f"{units} of 1800 units are in more than one arm"
    for text in (store.text(1, "changes.txt"), explain(store, "198.18.0.7", None, None), page(store)):
        assert (sentence in text) == (severity in ("warning", "blocks"))


def test_error_pages_are_a_guardrail_by_default_as_in_analyze(tmp_path: Path) -> None:
    """The treated arm answers 5 % of the requests with an error page. Without a status that is not known."""
    table = demo.table((demo.System(64501, "PE", 6, 0.3),), days=2)
    is_bbr, at = np.array(table["arm"].to_pylist()) == "bbr", np.arange(table.num_rows)
    status = pa.array(np.where(is_bbr & (at % 20 == 0), 503, 200))
    settings = replace(ONE_DAY, as_of=FIRST_DAY + 2, harmed=1.0, guardrails=GUARDRAILS)
    without = planned(tmp_path / "without", table, settings)
    assert {one.arm for one in without.decisions(1).networks} == {"bbr"}
    said = "Guardrails not run, because no record has it: error pages."
    assert said in without.text(1, "changes.txt")
    store = planned(tmp_path / "with", table.append_column("service_status", status), settings)
    assert {one.arm for one in store.decisions(1).networks} == {"control"}
    assert said not in store.text(1, "changes.txt")
