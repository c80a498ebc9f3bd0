"""The policy that a verdict says."""

import argparse
import json
import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from full_disk import full_disk
from made import FACTS, analysis, cell, guarded
from uncork.experiment.cli import main
from uncork.experiment.commands.analyze import request_of
from uncork.experiment.decisions import decided
from uncork.experiment.document import document, to_json
from uncork.experiment.options.analyze import add_analyze
from uncork.experiment.result import Analysis
from uncork.experiment.rows import Settings
from uncork.experiment.verdict import decide

KEY = "000102030405060708090a0b0c0d0e0f"
MIXED = (cell("PE", 1.1, key="country"), cell("DE", 0.9, key="country"))


def result(of: Analysis, path: Path) -> Path:
    found = decided(of, Settings())
    path.write_text(to_json(document(found, decide(found, Settings()), "analyze")), encoding="utf-8")
    return path


def checked(path: Path) -> None:
    """By `uncork policy check`, where the program is built."""
    program = os.environ.get("UNCORK") or shutil.which("uncork")
    if program:
        done = subprocess.run(
            [program, "policy", "check", str(path)], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("cells", "says"),
    [
        (MIXED, ['country = ["PE"]', 'country = ["DE"]']),
        ((cell("AS64500", 1.05, key="asn"), cell("AS64501", 1.05, key="asn")), ["bbr for all clients"]),
        (
            (cell("<100 kB", 0.9, key="size_class"), cell(">=10 MB", 1.2, key="size_class")),
            ['min = "10000kB"'],
        ),
        ((cell("Europe", 0.9), cell("North America", 1.2)), ['country = ["BM", "CA", "GL", "PM", "US"]']),
    ],
)
@pytest.mark.parametrize("step", ["1%", "50%"])
def test_policy_of_a_verdict(cells: tuple, says: list[str], step: str, tmp_path: Path) -> None:
    path, out = result(analysis(cells), tmp_path / "result.json"), tmp_path / "policy.toml"
    assert main(["policy", str(path), "-o", str(out), "--key", KEY, "--step", step]) == 0
    text = out.read_text(encoding="utf-8")
    assert all(one in text for one in says)
    assert f'share = "{2 * int(step[:-1])}%"' in text
    checked(out)


@pytest.mark.parametrize(
    ("facts", "says"),
    [
        ({"where": ("service_country=IN",)}, ['country = ["IN"]\nexperiment']),
        ({"where": ("asn=64500", "listener=edge")}, ['asn = ["AS64500"]\nlistener = ["edge"]\nexperiment']),
        ({"where": ("region=North America", "country=US")}, ['country = ["US"]\nexperiment']),
        ({"where": ("size_class=<100 kB",)}, ['size = { below = "100kB" }\nexperiment']),
        ({"exclude": ("asn=AS64600",)}, ['asn = ["AS64600"]\nuse = { tcp = "cubic" }']),
    ],
)
def test_policy__conditions_of_the_analysis__are_conditions_of_the_rules(
    facts: dict, says: list[str], tmp_path: Path
) -> None:
    out = tmp_path / "policy.toml"
    path = result(analysis(facts=replace(FACTS, **facts)), tmp_path / "result.json")
    assert main(["policy", str(path), "-o", str(out), "--key", KEY]) == 0
    text = out.read_text(encoding="utf-8")
    assert all(one in text for one in says)
    assert "# Measured: records of 2026-11-02 to 2026-11-15, --" in text
    checked(out)


def test_analyze__conditions__are_in_its_request() -> None:
    parser = argparse.ArgumentParser()
    add_analyze(parser)
    options = parser.parse_args(["records", "--where", "country=IN", "--exclude", "asn=AS64600"])
    found = request_of(options, Settings())
    assert (found.where, found.exclude) == (("country=IN",), ("asn=AS64600",))


def test_policy__cells_and_a_condition_on_their_key__the_rule_has_what_meets_both(tmp_path: Path) -> None:
    out = tmp_path / "policy.toml"
    cells = (cell("Europe", 0.9), cell("North America", 1.2))
    facts = replace(FACTS, where=("host=a.example",), exclude=("country=US",))
    path = result(analysis(cells, facts=facts), tmp_path / "result.json")
    assert main(["policy", str(path), "-o", str(out), "--key", KEY]) == 0
    rules = out.read_text(encoding="utf-8").split("[[rule]]")[1:]
    assert [("use" in one, "host" in one) for one in rules] == [(True, False), (True, True), (False, True)]
    checked(out)


@pytest.mark.parametrize(
    ("facts", "cells", "why"),
    [
        ({"where": ("service_protocol=h3",)}, (), "key protocol: a policy has no such condition"),
        ({"exclude": ("hour=20",)}, (), "key hour: a policy has no such condition"),
        ({"where": ("country=PE", "country=DE")}, (), "nothing meets both"),
        ({}, (cell("Pune", 0.9), cell("Cusco", 1.2)), "region Pune: is a region of your own"),
    ],
)
def test_policy__a_condition_that_policies_do_not_have__is_refused(
    facts: dict, cells: tuple, why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = result(analysis(cells, facts=replace(FACTS, **facts)), tmp_path / "result.json")
    assert main(["policy", str(path), "--key", KEY]) == 2
    assert why in " ".join(capsys.readouterr().err.split())


def test_policy__a_result_without_the_conditions_of_its_records__is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = result(analysis(), tmp_path / "r.json")
    found = json.loads(path.read_text(encoding="utf-8"))
    del found["facts"]["where"]
    path.write_text(json.dumps(found), encoding="utf-8")
    assert main(["policy", str(path), "--key", KEY]) == 2
    assert "analyse the records again" in capsys.readouterr().err


def test_a_policy_that_cannot_be_written_is_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["policy", str(result(analysis(MIXED), tmp_path / "r.json")), "--key", KEY]
    assert main(command) == 0
    printed = capsys.readouterr().out
    with full_disk():
        assert main([*command, "-o", str(tmp_path / "policy.toml")]) == 3
    assert capsys.readouterr().out == printed
    assert not (tmp_path / "policy.toml").exists()


def test_a_cell_with_harm_is_excluded_first(tmp_path: Path) -> None:
    out = tmp_path / "policy.toml"
    main(["policy", str(result(analysis(MIXED), tmp_path / "r.json")), "-o", str(out), "--key", KEY])
    text = out.read_text(encoding="utf-8")
    assert text.index('country = ["DE"]') < text.index('country = ["PE"]')


def test_cells_with_harm_are_excluded_by_the_keys_of_all_of_them(tmp_path: Path) -> None:
    """`x` is a country and a listener: only the listener breaks a guardrail."""
    cells = (
        cell("PE", 1.1, key="country", guardrails=(guarded("broken", 0.08),)),
        cell("x", 1.1, key="country", guardrails=(guarded("holds"),)),
        cell("DE", 1.1, key="country", guardrails=(guarded("holds"),)),
        cell("x", 1.1, key="listener", guardrails=(guarded("broken", 0.06),)),
        cell("y", 1.1, key="listener", guardrails=(guarded("holds"),)),
    )
    out = tmp_path / "policy.toml"
    path = result(analysis(cells, guardrails=(guarded("holds"),)), tmp_path / "r.json")
    assert main(["policy", str(path), "-o", str(out), "--key", KEY]) == 0
    rules = out.read_text(encoding="utf-8").partition("[[rule]]")[2]
    kept, _, enabled = rules.partition("experiment = ")
    assert 'country = ["PE"]' in kept
    assert 'listener = ["x"]' in kept
    assert 'country = ["x", "DE"]' in kept[kept.index('listener = ["x"]') :] + enabled
    assert 'country = ["PE", "x"]' not in rules


def test_a_result_without_the_keys_of_cells_with_harm_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = result(analysis(MIXED), tmp_path / "r.json")
    found = json.loads(path.read_text(encoding="utf-8"))
    found["verdict"]["worse"] = ["DE"]
    path.write_text(json.dumps(found), encoding="utf-8")
    assert main(["policy", str(path), "--key", KEY]) == 2
    assert "analyse the records again" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("of", "why"),
    [
        (analysis(guardrails=(guarded("broken"),)), "the verdict is `stop`"),
        (
            analysis((cell("a", 1.0, 0.1), cell("b", 1.0, 0.1)), guardrails=(guarded("likely broken"),)),
            "`wait`",
        ),
        (analysis((cell("20", 1.2, key="hour"), cell("21", 0.8, key="hour"))), "no such condition"),
    ],
)
def test_no_policy_without_a_verdict(
    of: Analysis, why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = result(of, tmp_path / "result.json")
    assert main(["policy", str(path), "--key", KEY]) == 2
    assert why in capsys.readouterr().err


def test_a_file_that_is_not_a_result_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x.json"
    path.write_text(json.dumps([1]), encoding="utf-8")
    assert main(["policy", str(path), "--key", KEY]) == 2
    assert "not a result" in capsys.readouterr().err
