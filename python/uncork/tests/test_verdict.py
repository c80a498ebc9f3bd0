"""How the decision is said: losses first, few names, nothing against the table."""

from dataclasses import replace

import pytest

from made import FACTS, analysis, cell, effect, guarded, row
from uncork.experiment.decisions import decided
from uncork.experiment.result import Analysis, Designed, Finding, Guarded, Measure, Place, Verdict
from uncork.experiment.rows import Settings
from uncork.experiment.terminal import scorecard
from uncork.experiment.verdict import decide
from uncork.measure.stats.switchback import CARRY_OVER

SETTINGS = Settings()


def judged(of: Analysis) -> Verdict:
    return decide(decided(of, SETTINGS), SETTINGS)


def whole(ratio: float, error: float = 0.01) -> tuple[object, ...]:
    one = effect(ratio, error)
    sign = "better" if ratio > 1 else "worse"
    return (replace(row(ratio, sign if one.p_value < 0.05 else "inconclusive"), effect=one),)


def test_losses_come_first_then_enable_then_wait() -> None:
    cells = (cell("Asia", 1.1), cell("Europe", 0.9), cell("Africa", 1.02, 0.1, days=9))
    verdict = judged(analysis(cells))
    assert verdict.decision == "enable some"
    assert verdict.sentence == (
        "With bbr, p50 throughput is worse in Europe (−10.0 %): keep cubic there. "
        "Enable bbr for Asia; not enough data for Africa (about 9 more days)."
    )
    assert (verdict.enable, verdict.keep, verdict.wait) == (("Asia",), ("Europe",), ("Africa",))
    assert (verdict.worse, verdict.exit_status) == ((Place("region", "Europe"),), 1)


def test_equal_cells_follow_the_whole() -> None:
    cells = tuple(cell(f"AS{n}", 1.05, 0.03, key="asn") for n in range(40))
    verdict = judged(analysis(cells))
    assert verdict.decision == "enable"
    assert verdict.sentence.startswith("Enable bbr: p50 throughput is 5.0 % higher")
    assert verdict.sentence.endswith("; no network differs from that by more than chance.")
    assert verdict.exit_status == 0


def test_a_chance_cell_does_not_turn_the_headline() -> None:
    """One of 40 networks looks 8 % worse by chance; the whole is better."""
    cells = tuple(cell(f"AS{n}", 1.025 if n else 0.92, 0.05, key="asn") for n in range(40))
    verdict = judged(analysis(cells))
    assert verdict.decision == "enable"
    assert "not shown to be better" not in verdict.sentence


def test_one_bad_network_among_many_is_named() -> None:
    cells = tuple(cell(f"AS{n}", 1.05 if n != 7 else 0.92, 0.015, key="asn") for n in range(40))
    verdict = judged(analysis(cells))
    assert verdict.worse == (Place("asn", "AS7"),)
    assert "AS7 (−8.0 %)" in verdict.sentence
    assert len(verdict.enable) == 39
    assert verdict.exit_status == 1


def test_the_only_region_with_a_proven_loss_is_named_where_nothing_is_enabled() -> None:
    cells = (cell("Africa", 0.18, 0.2), cell("Europe", 1.05, 0.1), cell("Asia", 1.08, 0.12))
    verdict = judged(analysis(cells, scorecard=whole(1.069, 0.06)))  # type: ignore[arg-type]
    assert verdict.sentence.startswith(
        "With bbr, p50 throughput is worse in Africa (−82 %): keep cubic there."
    )
    assert (verdict.decision, verdict.exit_status) == ("wait", 1)


def test_at_most_five_names() -> None:
    cells = tuple(cell(f"AS{n}", 1.2 if n % 2 else 0.8, 0.01, key="asn") for n in range(40))
    sentence = judged(analysis(cells)).sentence
    assert sentence.count("AS") == 10
    assert "15 more" in sentence


def test_harm_in_another_key_is_in_the_sentence() -> None:
    cells = (
        cell("Asia", 1.1),
        *(cell(f"AS6460{n}", 0.5 if n == 0 else 1.1, 0.02, key="asn") for n in range(6)),
    )
    verdict = judged(analysis(cells))
    assert "AS64600 (−50 %)" in verdict.sentence
    assert verdict.exit_status == 1


def test_all_worse_keeps_the_control() -> None:
    cells = (cell("Asia", 0.9), cell("Europe", 0.91))
    verdict = judged(analysis(cells, scorecard=whole(0.9)))  # type: ignore[arg-type]
    assert verdict.sentence.startswith("Keep cubic: with bbr, p50 throughput is 10.0 % lower")
    assert (verdict.decision, verdict.exit_status) == ("keep", 1)


def test_no_gain_left_keeps_the_control() -> None:
    verdict = judged(analysis((cell("Asia", 1.0, 0.002),), scorecard=whole(1.0, 0.002)))  # type: ignore[arg-type]
    assert verdict.decision == "keep"
    assert verdict.sentence == "Keep cubic: bbr makes no difference of 1 % or more."


def test_keep__loss_of_more_than_worth_not_excluded__is_named() -> None:
    scorecard = (replace(row(0.99, "inconclusive"), effect=replace(effect(0.99, 0.009), p_value=0.27)),)
    verdict = judged(analysis((cell("Asia", 0.99, 0.009),), scorecard=scorecard))
    assert verdict.decision == "keep"
    assert verdict.sentence == (
        "Keep cubic: bbr brings no gain of 1 % or more, and p50 throughput may be up to 2.8 % lower."
    )


def test_broken_guardrail_stops_with_status_1_at_any_gain() -> None:
    cells = (cell("Asia", 1.5),)
    found = decided(analysis(cells, guardrails=(guarded("broken"),)), SETTINGS)
    verdict = decide(found, SETTINGS)
    assert (verdict.decision, verdict.exit_status) == ("stop", 1)
    assert "retransmitted 5.00 % against 1.00 %, the limit is at most +2.00 pp" in verdict.sentence
    assert [one.advice for one in found.cells] == ["keep"]
    assert "enable" not in scorecard(found, verdict, 100)


def test_guardrail_that_is_broken_in_one_cell_is_named() -> None:
    good = tuple(cell(name, 1.05, guardrails=(guarded("holds"),)) for name in ("Asia", "Europe", "Oceania"))
    cells = (*good, cell("Africa", 1.05, guardrails=(guarded("broken", 0.08),)))
    verdict = judged(analysis(cells, guardrails=(guarded("holds"),)))
    assert verdict.sentence.startswith(
        "Bbr breaks a guardrail in Africa (retransmitted 5.00 % against 1.00 %"
    )
    assert verdict.enable == ("Asia", "Europe", "Oceania")
    assert (verdict.broken, verdict.exit_status) == ((Place("region", "Africa"),), 1)


def test_likely_broken_guardrail_is_not_enabled() -> None:
    verdict = judged(analysis((cell("Asia", 1.5),), guardrails=(guarded("likely broken"),)))
    assert (verdict.decision, verdict.exit_status) == ("wait", 0)
    assert "a guardrail is likely broken: retransmitted" in verdict.sentence


def test_open_guardrail_does_not_stop_and_is_said() -> None:
    verdict = judged(analysis((cell("Asia", 1.5),), guardrails=(guarded("open"),)))
    assert (verdict.decision, verdict.exit_status) == ("enable", 0)
    assert any(reason.startswith("Not shown to hold: retransmitted") for reason in verdict.reasons)


def test_guardrail_that_likely_holds_says_how_many_units_would_show_it() -> None:
    verdict = judged(analysis((cell("Asia", 1.5),), guardrails=(guarded("likely holds"),)))
    assert any("more units" in reason for reason in verdict.reasons)


@pytest.mark.parametrize("kind", ["blocked", "refused", "A/A"])
def test_cells_inherit_every_block(kind: str) -> None:
    health = (Finding("sample ratio", "blocks", "Sample-ratio mismatch.", "Find the cause."),)
    one = analysis(
        (cell("Asia", 1.5), cell("Europe", 0.5)),
        scorecard=(row(1.5, "better", source="log" if kind == "refused" else "acked"),),
        health=health if kind == "blocked" else (),
        facts=replace(FACTS, controllers=("cubic", "cubic")) if kind == "A/A" else FACTS,
    )
    found = decided(one, SETTINGS)
    verdict = decide(found, SETTINGS)
    assert (verdict.decision, verdict.exit_status) == (kind, 4)
    assert {cell.advice for cell in found.cells} == {"none"}
    text = scorecard(found, verdict, 120)
    assert "enable" not in text
    assert "+50 %" in text


@pytest.mark.parametrize(
    ("windows", "decision"),
    [((10, 40), "enable"), ((10, 10), "A/A"), ((10, None), "A/A"), ((None, None), "A/A")],
)
def test_arms_with_other_initial_windows_are_no_a_a_test(
    windows: tuple[int | None, int | None], decision: str
) -> None:
    facts = replace(FACTS, controllers=("cubic", "cubic"), windows=windows)
    assert judged(analysis((cell("Asia", 1.5),), facts=facts)).decision == decision


def test_sample_ratio_mismatch_blocks_before_a_guardrail() -> None:
    health = (
        Finding("sample ratio", "blocks", "Sample-ratio mismatch: 900 and 1,100 units.", "Find the cause."),
    )
    verdict = judged(analysis(guardrails=(guarded("broken"),), health=health))
    assert (verdict.decision, verdict.exit_status) == ("blocked", 4)
    assert verdict.sentence == "No verdict: sample-ratio mismatch: 900 and 1,100 units."
    assert "Find the cause." in verdict.reasons


def test_plain_log_is_refused_with_reason_and_remedy() -> None:
    verdict = judged(analysis(scorecard=(row(1.5, "better", source="log"),)))
    assert (verdict.decision, verdict.exit_status) == ("refused", 4)
    assert "send buffer" in verdict.sentence
    assert "tcp_notsent_lowat" in verdict.reasons[0]


def test_log_with_lowat_is_used_with_a_warning() -> None:
    verdict = judged(analysis(scorecard=(row(1.5, "better", source="log_lowat"),)))
    assert verdict.decision == "enable"
    assert any("biased" in reason for reason in verdict.reasons)


def test_same_controller_is_an_aa_test() -> None:
    facts = replace(FACTS, controllers=("cubic", "cubic"))
    quiet = judged(analysis(scorecard=(row(1.0, "inconclusive"),), facts=facts))
    assert quiet.sentence.endswith("Nothing differs by more than chance.")
    loud = judged(analysis(scorecard=(row(1.1, "better"),), facts=facts))
    assert "find the fault of the pipeline" in loud.sentence
    assert (quiet.exit_status, loud.exit_status) == (0, 4)


def test_unknown_controllers_are_not_equal_and_arms_stand_for_them() -> None:
    facts = replace(FACTS, controllers=("", ""))
    found = decided(analysis((cell("Asia", 1.1),), facts=facts), SETTINGS)
    verdict = decide(found, SETTINGS)
    assert verdict.decision == "enable"
    assert verdict.sentence.startswith("Enable bbr")
    assert scorecard(found, verdict, 100).startswith("bbr against control")


def test_no_verdict_without_an_interval() -> None:
    empty = replace(
        row(1.0, "no interval"), effect=None, reason="the control arm has data in 3 of the buckets"
    )
    verdict = judged(analysis(scorecard=(empty,)))
    assert (verdict.decision, verdict.exit_status) == ("wait", 0)
    assert "3 of the buckets" in verdict.sentence


def test_a_cell_held_back_by_a_guardrail_is_not_said_to_lack_data() -> None:
    good = tuple(cell(f"AS{n}", 1.05, guardrails=(guarded("holds"),)) for n in range(7))
    held = cell("AS7", 1.05, guardrails=(guarded("likely broken", 0.021),))
    verdict = judged(analysis((*good, held), guardrails=(guarded("holds"),)))
    assert verdict.wait == ("AS7",)
    assert verdict.sentence.startswith("Enable bbr in 7 of 8 cells: ")
    assert verdict.sentence.endswith("; not yet for AS7 (guardrail likely broken: retransmitted).")
    assert "elsewhere" not in verdict.sentence
    assert "not enough data" not in verdict.sentence


def test_cells_that_hold_back_all_others_are_named_with_the_way_to_leave_them_out() -> None:
    good = tuple(cell(name, 1.05, guardrails=(guarded("holds"),)) for name in ("Asia", "Europe"))
    cells = (*good, cell("Africa", 1.05, guardrails=(guarded("broken", 0.08),)))
    verdict = judged(analysis(cells, guardrails=(guarded("likely broken", 0.021),)))
    assert verdict.enable == ()
    assert verdict.reasons[0].endswith('without these cells: --exclude "region=Africa".')
    enabled = judged(analysis(cells, guardrails=(guarded("holds"),)))
    assert not any("--exclude" in reason for reason in enabled.reasons)


LISTENERS = (
    cell("x", 1.05, key="listener", guardrails=(guarded("broken", 0.06),)),
    cell("y", 1.05, key="listener", guardrails=(guarded("holds"),)),
)
REGIONS = (
    cell("Africa", 1.05, guardrails=(guarded("broken", 0.08),)),
    *(cell(name, 1.05, guardrails=(guarded("holds"),)) for name in ("Asia", "Europe", "Oceania")),
)


def test_broken_cells_of_two_keys_are_both_named() -> None:
    verdict = judged(analysis((*REGIONS, *LISTENERS), guardrails=(guarded("holds"),)))
    assert verdict.broken == (Place("region", "Africa"), Place("listener", "x"))
    assert verdict.sentence.startswith("Bbr breaks a guardrail in Africa (retransmitted")
    assert "Bbr breaks a guardrail in listener x (retransmitted" in verdict.sentence


def test_losses_of_two_keys_are_both_named() -> None:
    networks = (cell(f"AS{n}", 0.5 if n == 0 else 1.1, 0.02, key="asn") for n in range(6))
    verdict = judged(analysis((cell("Asia", 1.1), cell("Europe", 0.9), *networks)))
    assert verdict.worse == (Place("region", "Europe"), Place("asn", "AS0"))
    assert "worse in Europe (−10.0 %)" in verdict.sentence
    assert "worse in network AS0 (−50 %)" in verdict.sentence


def test_stop_is_proven_only_in_cells_that_break_the_same_guardrail() -> None:
    other = replace(
        guarded("broken"), row=replace(guarded("broken").row, measure=Measure("aborted", "ratio"))
    )
    other = replace(other, row=replace(other.row, title="aborted"))
    cells = (
        cell("Asia", 1.05, guardrails=(guarded("broken"), guarded("holds"))),
        cell("Europe", 1.05, guardrails=(other,)),
    )
    sentence = judged(analysis(cells, guardrails=(guarded("broken"),))).sentence
    assert "This is proven in Asia." in sentence
    assert "Bbr breaks a guardrail in Europe (aborted 5.00 % against 1.00 %" in sentence


def test_stop_is_not_proven_again_in_a_cell_that_is_the_whole() -> None:
    cells = (replace(cell("unknown", 1.05, guardrails=(guarded("broken"),)), share=1.0),)
    assert "proven in" not in judged(analysis(cells, guardrails=(guarded("broken"),))).sentence


AA = replace(FACTS, controllers=("cubic", "cubic"))


def test_aa_test_that_breaks_a_guardrail_is_a_difference() -> None:
    same = (replace(row(1.0, "inconclusive"), effect=effect(1.0)),)
    verdict = judged(analysis(scorecard=same, guardrails=(guarded("broken"),), facts=AA))
    assert (verdict.decision, verdict.exit_status) == ("A/A", 4)
    assert "bbr breaks a guardrail (retransmitted 5.00 % against 1.00 %" in verdict.sentence
    assert "find the fault of the pipeline first." in verdict.sentence


def test_aa_test_that_breaks_a_guardrail_in_a_cell_of_the_second_key_names_it() -> None:
    same = (replace(row(1.0, "inconclusive"), effect=effect(1.0)),)
    cells = (cell("Asia", 1.0, guardrails=(guarded("holds"),)), *LISTENERS)
    verdict = judged(analysis(cells, scorecard=same, guardrails=(guarded("holds"),), facts=AA))
    assert "a guardrail is broken in listener x" in verdict.sentence
    assert (verdict.broken, verdict.exit_status) == ((Place("listener", "x"),), 4)


def test_aa_test_where_a_secondary_measure_differs_has_the_status_of_its_sentence() -> None:
    rows = (
        replace(row(1.0, "inconclusive"), effect=effect(1.0)),
        row(1.3, "better", "secondary", "completion"),
    )
    verdict = judged(analysis(scorecard=rows, facts=AA))
    assert "differs: find the fault" in verdict.sentence
    assert verdict.exit_status == 4


def test_guardrail__cells_of_another_key__are_tests_too() -> None:
    """Harm with p 0.004: proven among two cells, not among 42."""
    row_ = guarded("holds").row
    risky = Guarded(row_, "at most +2.00 pp", "open", 0.0304, -0.05, 0.1, 0.0226, 0.0382, 0.02, p=0.004)
    cells = (cell("Asia", 1.1, guardrails=(guarded("holds"),)), cell("Europe", 1.1, guardrails=(risky,)))
    others = tuple(cell(f"AS{n}", 1.1, key="asn", guardrails=(guarded("holds"),)) for n in range(40))
    assert judged(analysis(cells, guardrails=(guarded("holds"),))).broken == (Place("region", "Europe"),)
    assert judged(analysis((*cells, *others), guardrails=(guarded("holds"),))).broken == ()


def test_guardrail__each_client_counts_once__says_so() -> None:
    once = replace(guarded("broken"), per_client=True)
    verdict = judged(analysis((cell("Asia", 1.5),), guardrails=(once,)))
    assert "breaks a guardrail: retransmitted (per client) 5.00 % against 1.00 %" in verdict.sentence


@pytest.mark.parametrize(
    ("ratio", "sentence"),
    [
        (1.04, "p50 throughput is at least 5.0 % higher"),
        (0.96, "The effect falls within a window (−4.0 % from the first half of a window to the second)"),
    ],
)
def test_switchback__carry_over_found__qualifies_the_headline(ratio: float, sentence: str) -> None:
    measure = row(1.05, "better").measure
    carried = Designed("switchback", measure, "throughput", CARRY_OVER, effect(ratio), "")
    verdict = judged(replace(analysis(), designed=(carried,)))
    assert verdict.decision == "enable"
    assert sentence in verdict.sentence
    assert ("still acts after the burn-in" in verdict.sentence) == (ratio > 1)
