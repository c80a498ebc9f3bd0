"""The checks of the records that a plan makes, and what follows from them."""

from dataclasses import replace
from pathlib import Path

import ibis
import numpy as np
import pyarrow as pa
import pytest

from learning import FIRST_DAY, NOW, SETTINGS
from test_learn_weights import changed, of_clients
from uncork.learn import evidence
from uncork.learn.cli import main
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
