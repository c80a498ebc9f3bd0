"""The rules of the decision, one by one."""

from dataclasses import replace

from made import FACTS, analysis, cell, guarded, row
from uncork_experiment.result import Finding
from uncork_experiment.rows import Settings
from uncork_experiment.verdict import decide

SETTINGS = Settings()


def test_enable_where_it_helps_keep_where_it_hurts_wait_elsewhere() -> None:
    cells = (
        cell("Asia", "enable", 1.1, "better"),
        cell("Europe", "keep", 0.9, "worse"),
        cell("Africa", "wait", 1.02, "inconclusive", 9),
    )
    verdict = decide(analysis(cells), SETTINGS)
    assert verdict.decision == "enable some"
    assert verdict.sentence == (
        "Enable bbr for Asia; keep cubic for Europe; not enough data for Africa (about 9 more days)."
    )
    assert (verdict.enable, verdict.keep, verdict.wait) == (("Asia",), ("Europe",), ("Africa",))
    assert verdict.exit_status == 0


def test_days_that_cannot_help_are_said() -> None:
    cells = (cell("Asia", "enable", 1.1, "better"), cell("Africa", "wait", 1.0, "inconclusive", None))
    assert "Africa (more units needed)" in decide(analysis(cells), SETTINGS).sentence


def test_harm_in_another_key_is_told() -> None:
    cells = (cell("Asia", "enable", 1.1, "better"), cell("AS64600", "keep", 0.5, "worse", key="asn"))
    verdict = decide(analysis(cells), SETTINGS)
    assert "It hurts, by network: AS64600 (−50 %)." in verdict.reasons


def test_nothing_better_anywhere_keeps_the_control() -> None:
    verdict = decide(analysis((cell("Asia", "keep", 1.0, "equivalent"),)), SETTINGS)
    assert verdict.decision == "keep"
    assert verdict.sentence.startswith("Keep cubic")


def test_broken_guardrail_stops_with_status_1_whatever_the_gain() -> None:
    cells = (cell("Asia", "enable", 1.5, "better"),)
    verdict = decide(analysis(cells, guardrails=(guarded("broken"),)), SETTINGS)
    assert (verdict.decision, verdict.exit_status) == ("stop", 1)
    assert "retransmitted 5.00 % against 1.00 %, the limit is at most +2.00 pp" in verdict.sentence


def test_open_guardrail_does_not_stop() -> None:
    verdict = decide(
        analysis((cell("Asia", "enable", 1.5, "better"),), guardrails=(guarded("open"),)), SETTINGS
    )
    assert verdict.exit_status == 0
    assert verdict.decision == "enable"


def test_sample_ratio_mismatch_blocks_before_a_guardrail() -> None:
    health = (
        Finding("sample ratio", "blocks", "Sample-ratio mismatch: 900 and 1,100 units.", "Find the cause."),
    )
    verdict = decide(analysis(guardrails=(guarded("broken"),), health=health), SETTINGS)
    assert (verdict.decision, verdict.exit_status) == ("blocked", 4)
    assert verdict.sentence == "No verdict: sample-ratio mismatch: 900 and 1,100 units."
    assert "Find the cause." in verdict.reasons


def test_plain_log_is_refused_with_reason_and_remedy() -> None:
    verdict = decide(analysis(scorecard=(row(1.5, "better", source="log"),)), SETTINGS)
    assert (verdict.decision, verdict.exit_status) == ("refused", 4)
    assert "send buffer" in verdict.sentence
    assert "tcp_notsent_lowat" in verdict.reasons[0]


def test_log_with_lowat_is_used_with_a_warning() -> None:
    verdict = decide(analysis(scorecard=(row(1.5, "better", source="log_lowat"),)), SETTINGS)
    assert verdict.decision == "enable"
    assert any("biased" in reason for reason in verdict.reasons)


def test_same_controller_is_an_aa_test() -> None:
    facts = replace(FACTS, controllers=("cubic", "cubic"))
    quiet = decide(analysis(scorecard=(row(1.0, "inconclusive"),), facts=facts), SETTINGS)
    assert quiet.sentence.endswith("Nothing differs by more than chance.")
    loud = decide(analysis(scorecard=(row(1.1, "better"),), facts=facts), SETTINGS)
    assert "find the fault of the pipeline" in loud.sentence
    assert (quiet.exit_status, loud.exit_status) == (0, 4)


def test_without_an_interval_there_is_no_verdict() -> None:
    empty = replace(
        row(1.0, "no interval"), effect=None, reason="the control arm has data in 3 of the buckets"
    )
    verdict = decide(analysis(scorecard=(empty,)), SETTINGS)
    assert (verdict.decision, verdict.exit_status) == ("wait", 0)
    assert "3 of the buckets" in verdict.sentence
