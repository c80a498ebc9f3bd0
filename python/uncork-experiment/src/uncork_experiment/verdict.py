"""The decision in words. All rules are here, in the order in which they apply."""

from __future__ import annotations

from collections.abc import Sequence

from uncork_experiment import measures, words
from uncork_experiment.result import Analysis, Cell, Guarded, Row, Verdict
from uncork_experiment.rows import Settings

REFUSED_SOURCES = ("log",)
BIASED_SOURCES = ("log_lowat",)
SOURCES = {
    "client": "measured by the client",
    "acked": "acknowledged bytes over busy time",
    "log_lowat": "server's log with tcp_notsent_lowat",
    "log": "plain log",
}
"""How throughput and completion times were measured, best first."""

STOP, NO_VERDICT = 1, 4
"""Exit statuses of a broken guardrail, and of records from which no verdict can be had."""

TIMED = frozenset({"throughput", "completion", "bandwidth"})
"""Metrics that a plain log measures up to the last write: the send buffer, not the network."""


def decide(analysis: Analysis, settings: Settings) -> Verdict:
    """The first rule that applies decides."""
    for rule in (_blocked, _refused, _guardrail, _same_controller, _no_primary):
        found = rule(analysis)
        if found:
            return found
    return _by_cells(analysis, settings)


def price_words(row: Row) -> str:
    """`0.53 % against 0.22 %`."""
    return f"{words.quantity(row.treated, row.unit)} against {words.quantity(row.control, row.unit)}"


def effect_words(row: Row) -> str:
    """`p50 throughput ≥ 3 MB is 3.1 % higher (95 % CI +1.2 to +5.0 %)`."""
    effect = row.effect
    if effect is None:
        return f"{row.name}: no interval ({row.reason})"
    percent = f"{100 * effect.level:g} %"
    reach = f"{percent} CI {words.interval(effect.ratio_low, effect.ratio_high)}"
    if row.verdict in ("inconclusive", "equivalent"):
        return f"{row.name} does not differ by more than chance: {words.change(effect.ratio)} ({reach})"
    size = words.change(effect.ratio).lstrip(f"+{words.MINUS}")
    way = "higher" if effect.ratio > 1 else "lower"
    return f"{row.name} is {size} {way} ({reach})"


def _blocked(analysis: Analysis) -> Verdict | None:
    blocks = [finding for finding in analysis.health if finding.severity == "blocks"]
    if not blocks:
        return None
    first = blocks[0]
    sentence = f"No verdict: {_lower(first.sentence)}"
    remedies = tuple(finding.remedy for finding in blocks if finding.remedy)
    return Verdict(
        "blocked", sentence, (*(f.sentence for f in blocks[1:]), *remedies), (), (), (), NO_VERDICT
    )


def _refused(analysis: Analysis) -> Verdict | None:
    primary = _primary(analysis)
    if primary is None or primary.measure.metric not in TIMED or primary.source not in REFUSED_SOURCES:
        return None
    return Verdict(
        "refused",
        f"No verdict: {primary.title} comes from a plain log, which stops its clock when the last byte is in "
        "the send "
        "buffer, not at the client. That favours the controller with more data in flight: on equal paths, "
        "BBR.",
        (
            "Remedy: analyse what clients measured, or acknowledged bytes over busy time (records of uncork "
            "serve or "
            "uncork host watch; tcpi_bytes_acked and tcpi_busy_time). As a stopgap set "
            "tcp_notsent_lowat=16384 for "
            'both arms and declare source = "log_lowat" in the mapping file.',
        ),
        (),
        (),
        (),
        NO_VERDICT,
    )


def _guardrail(analysis: Analysis) -> Verdict | None:
    broken = [guarded for guarded in analysis.guardrails if guarded.state == "broken"]
    if not broken:
        return None
    sentence = (
        f"Stop: {analysis.facts.controllers[1]} breaks {_a_guardrail(broken)}: {_broken_words(broken)}."
    )
    row = _primary(analysis)
    reasons = (f"Over all clients, {effect_words(row)}.",) if row else ()
    return Verdict("stop", sentence, reasons, (), _names(analysis, "keep"), (), STOP)


def _a_guardrail(broken: Sequence[Guarded]) -> str:
    return "a guardrail" if len(broken) == 1 else f"{len(broken)} guardrails"


def _broken_words(broken: Sequence[Guarded]) -> str:
    return words.listed([f"{g.row.name} {price_words(g.row)}, the limit is {g.limit}" for g in broken])


def _same_controller(analysis: Analysis) -> Verdict | None:
    """An A/A test: both arms run the same, so any difference is a fault of the pipeline."""
    if analysis.facts.controllers[0] != analysis.facts.controllers[1]:
        return None
    differ = [row.name for row in analysis.scorecard if row.verdict in ("better", "worse")]
    same = f"Both arms run {analysis.facts.controllers[0]}: this is an A/A test."
    if differ:
        sentence = f"{same} Yet {words.listed(differ)} differ: find the fault of the pipeline first."
        return Verdict("A/A", sentence, (), (), (), (), NO_VERDICT)
    return Verdict("A/A", f"{same} Nothing differs by more than chance.", (), (), (), (), 0)


def _no_primary(analysis: Analysis) -> Verdict | None:
    row = _primary(analysis)
    if row is not None and row.effect is not None:
        return None
    why = row.reason if row else "the records have none of throughput, bandwidth and completion"
    return Verdict("wait", f"No verdict yet: {why}.", (), (), (), _names(analysis, "wait"), 0)


def _by_cells(analysis: Analysis, settings: Settings) -> Verdict:
    """By the first key: where to enable, where to keep, where to wait."""
    primary = _primary(analysis)
    assert primary is not None
    control, treated = analysis.facts.controllers
    lists = {advice: _names(analysis, advice) for advice in ("enable", "keep", "wait")}
    enable, keep, wait = lists["enable"], lists["keep"], lists["wait"]
    if not (enable or keep or wait):
        decision, sentence = _whole(primary, control, treated, settings)
    elif not enable:
        decision = "keep" if keep else "wait"
        sentence = f"Keep {control}" if keep else "No verdict yet"
        sentence += f": {treated} is not shown to be better anywhere"
        sentence += f". Not enough data for {_with_days(analysis, wait)}" if wait and keep else ""
    else:
        decision = "enable" if not keep and not wait else "enable some"
        sentence = f"Enable {treated} for {words.listed(enable)}"
        sentence += f"; keep {control} for {words.listed(keep)}" if keep else ""
        sentence += f"; not enough data for {_with_days(analysis, wait)}" if wait else ""
    return Verdict(decision, sentence + ".", _reasons(analysis, primary, settings), enable, keep, wait, 0)


def _whole(primary: Row, control: str, treated: str, settings: Settings) -> tuple[str, str]:
    """The decision where there are no cells."""
    if primary.verdict == "better":
        return "enable", f"Enable {treated}: {effect_words(primary)}"
    if primary.verdict == "worse":
        return "keep", f"Keep {control}: with {treated}, {effect_words(primary)}"
    if primary.verdict == "equivalent":
        return "keep", f"Keep {control}: {treated} makes no difference of {100 * settings.worth:g} % or more"
    return "wait", f"No verdict yet: {effect_words(primary)}"


def _reasons(analysis: Analysis, primary: Row, settings: Settings) -> tuple[str, ...]:
    facts = analysis.facts
    sentences = [
        f"Over all clients, {effect_words(primary)}; {primary.effect.estimand}." if primary.effect else ""
    ]
    sent = next((g.row for g in analysis.guardrails if g.row.measure.metric == "retransmitted"), None)
    if sent and sent.effect:
        sentences.append(f"The price: {facts.controllers[1]} retransmits {price_words(sent)}.")
    first = {cell.key for cell in decision_cells(analysis)}
    hurt = [c for c in analysis.cells if c.key not in first and c.primary and c.primary.verdict == "worse"]
    for key in dict.fromkeys(cell.key for cell in hurt):
        where = words.listed(
            [
                f"{cell.value} ({words.change(cell.primary.effect.ratio)})"
                for cell in hurt
                if cell.key == key and cell.primary and cell.primary.effect
            ][:4]
        )
        sentences.append(f"It hurts, by {key_words(key)}: {where}.")
    if settings.look and settings.look[0] < settings.look[1]:
        sentences.append(
            f"This is look {settings.look[0]} of {settings.look[1]}: intervals are as wide as always, "
            f"and a verdict needs the O'Brien-Fleming boundary."
        )
    if primary.source in BIASED_SOURCES:
        sentences.append(
            "Throughput comes from a server's log, which is biased towards the controller with more "
            "data in flight even with tcp_notsent_lowat: confirm it with acknowledged bytes."
        )
    for one in analysis.designed:
        if one.effect is not None:
            reach = words.interval(one.effect.ratio_low, one.effect.ratio_high)
            name = measures.name(one.measure)
            change = words.change(one.effect.ratio)
            sentences.append(f"{_capital(one.estimand)} on {name}, by {one.design}: {change} ({reach}).")
    if any(incident.contested for incident in analysis.incidents):
        where = words.listed([incident.value for incident in analysis.incidents if incident.contested])
        sentences.append(f"A contested link in {where}: the gap there is between arms that shared it.")
    if analysis.interference and analysis.interference.moved:
        sentences.append(analysis.interference.sentence)
    return tuple(sentence for sentence in sentences if sentence)


def key_words(key: str) -> str:
    return {"asn": "network", "size_class": "object size"}.get(key, key)


def _primary(analysis: Analysis) -> Row | None:
    return next((row for row in analysis.scorecard if row.role == "primary"), None)


def decision_cells(analysis: Analysis, advice: str = "") -> list[Cell]:
    """Cells of the first key that has any, with this advice."""
    first = next((cell.key for cell in analysis.cells), "")
    return [cell for cell in analysis.cells if cell.key == first and advice in ("", cell.advice)]


def _names(analysis: Analysis, advice: str) -> tuple[str, ...]:
    return tuple(cell.value for cell in decision_cells(analysis, advice))


HALF_A_YEAR = 180


def needed_words(cell: Cell) -> str:
    """`about 9 more days`; or units, where more days of the same ones cannot help."""
    if cell.days_more is not None and cell.days_more <= HALF_A_YEAR:
        return f"about {words.counted(cell.days_more, 'more day')}"
    if cell.units_more is not None:
        return f"about {cell.units_more:,} more units"
    return "more units needed"


def _with_days(analysis: Analysis, names: Sequence[str]) -> str:
    needed = {cell.value: needed_words(cell) for cell in decision_cells(analysis)}
    groups = dict.fromkeys(needed[name] for name in names)
    return words.listed(
        [f"{words.listed([name for name in names if needed[name] == when])} ({when})" for when in groups]
    )


def _lower(sentence: str) -> str:
    return sentence[:1].lower() + sentence[1:]


def _capital(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]
