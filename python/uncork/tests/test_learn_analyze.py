"""`analyze` and `learn` say the same of the same records."""

import json
from pathlib import Path

import pytest

from learning import KEY
from uncork.experiment.cli import main as experiment
from uncork.learn.cli import main as learn
from uncork.learn.store import Store

RECORDS = Path(__file__).parent / "data" / "three_regions.parquet"
"""BBR resends 5.2 points more in DE, 8.6 in PE and 9.1 in IN; the limit is 2 points."""
SYSTEMS = {"DE": "AS64502", "PE": "AS64501", "IN": "AS64503"}


def test_a_region_that_breaks_a_guardrail_is_enabled_by_neither(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--guardrail", "retransmitted=2pp"]
    arms = ["--control", "cubic", "--treated", "bbr", "--experiment", "trial"]
    report = str(tmp_path / "report")
    experiment(["analyze", str(RECORDS), "--by", "country", *words, "-o", report, "--format", "json"])
    verdict = json.loads(capsys.readouterr().out)["verdict"]
    assert (verdict["decision"], sorted(verdict["keep"])) == ("stop", sorted(SYSTEMS))
    store = tmp_path / "learned"
    budget = ["--harmed", "100%", "--changed", "100%", "--unit", "prefix", "--key", KEY]
    assert learn(["plan", str(RECORDS), "-o", str(store), *arms, *words, *budget]) == 0
    decisions = {one.key: one for one in Store(store).decisions(1)}
    for country, system in SYSTEMS.items():
        assert decisions[system].arm == decisions[country].arm == "cubic"
        assert decisions[system].p_kept < 0.5
