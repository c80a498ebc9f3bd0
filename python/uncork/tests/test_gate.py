"""From the result of an analysis to the verdict that `uncork fleet publish --stop-if` reads."""

import json
import os
from pathlib import Path

import pytest

from made import analysis, cell
from test_ramp import result
from uncork.experiment.cli import main

GAINS = (cell("PE", 1.1, key="country"), cell("CL", 1.1, key="country"))
LAST = 1794787200
"""The end of the last day of the records. The analysis is later."""
HARMED = (cell("PE", 1.1, key="country"), cell("DE", 0.9, key="country"))


@pytest.mark.parametrize(("cells", "stop"), [(GAINS, False), (HARMED, True)])
def test_harm_in_a_cell_stops_the_version_and_nothing_else_does(
    cells: tuple, stop: bool, tmp_path: Path
) -> None:
    path, out = result(analysis(cells), tmp_path / "result.json"), tmp_path / "verdict.json"
    assert main(["gate", str(path), "--version", "7", "-o", str(out)]) == 0
    found = json.loads(out.read_text(encoding="utf-8"))
    sentence = json.loads(path.read_text(encoding="utf-8"))["verdict"]["sentence"]
    expected = {
        "schema": "uncork.fleet-gate/1",
        "version": 7,
        "unix_s": LAST,
        "stop": stop,
        "reason": sentence,
    }
    assert found == expected


def test_analysis_before_the_end_of_its_last_day_counts_until_it_ended(tmp_path: Path) -> None:
    path, out = result(analysis(GAINS), tmp_path / "result.json"), tmp_path / "verdict.json"
    os.utime(path, (LAST - 7, LAST - 7))
    assert main(["gate", str(path), "--version", "7", "-o", str(out)]) == 0
    assert json.loads(out.read_text(encoding="utf-8"))["unix_s"] == LAST - 7


@pytest.mark.parametrize(("decision", "status"), [("wait", 0), ("keep", 4)])
def test_records_without_a_verdict_write_no_file(decision: str, status: int, tmp_path: Path) -> None:
    path, out = result(analysis(GAINS), tmp_path / "result.json"), tmp_path / "verdict.json"
    document = json.loads(path.read_text(encoding="utf-8"))
    document["verdict"] |= {"decision": decision, "exit_status": status}
    path.write_text(json.dumps(document), encoding="utf-8")
    assert main(["gate", str(path), "--version", "7", "-o", str(out)]) == 4
    assert not out.exists()


@pytest.mark.parametrize(
    ("version", "text", "place"),
    [
        ("seven", None, "--version"),
        ("0", None, "--version"),
        ("7", "[]", "result.json"),
        ("7", '{"verdict": {}}', "result.json"),
    ],
)
def test_wrong_input_names_its_place(
    version: str, text: str | None, place: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = result(analysis(GAINS), tmp_path / "result.json")
    if text is not None:
        path.write_text(text, encoding="utf-8")
    assert main(["gate", str(path), "--version", version]) == 2
    assert place in capsys.readouterr().err
