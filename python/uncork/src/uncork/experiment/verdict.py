"""The decision in words. The rules are in `decide`; here is how they are said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from uncork.experiment import measures, words
from uncork.experiment.decide import Decision
from uncork.experiment.decisions import (
    aimed,
    decision_of,
    first_key,
    primary_row,
    ratio_interval,
    two_digits,
)
from uncork.experiment.result import Analysis, Cell, Guarded, Place, Row, Verdict
from uncork.experiment.rows import Settings
from uncork.measure.stats import power, switchback
from uncork.measure.stats.effect import Effect

BIASED_SOURCES = ("log_lowat",)
SOURCES = {
    "client": "measured by the client",
    "acked": "acknowledged bytes over busy time",
    "log_lowat": "server's log with tcp_notsent_lowat",
    "log": "plain log",
}
"""How throughput and completion times were measured, best first."""

HARM, NO_VERDICT = 1, 4
"""Exit statuses: harm is proven somewhere; the records give no verdict."""
MAX_NAMES = 5
"""Of cells in a sentence; the others are counted, and stand in the table."""
PLAIN_LOG = (
    "which stops its clock when the last byte is in the send buffer, not at the client. That favours the "
    "controller with more data in flight: on equal paths, BBR."
)
PLAIN_LOG_REMEDY = (
    "Remedy: analyse what clients measured, or acknowledged bytes over busy time (records of uncork serve or "
    "uncork host watch; tcpi_bytes_acked and tcpi_busy_time). As a stopgap set tcp_notsent_lowat=16384 for "
    'both arms and declare source = "log_lowat" in the mapping file.'
)


def decide(analysis: Analysis, settings: Settings) -> Verdict:
    """The decision by the first key, with proven harm in the cells of all keys."""
    keys = list(dict.fromkeys(cell.key for cell in analysis.cells)) or [""]
    found = {key: decision_of(analysis, settings, key) for key in keys}
    first = found[keys[0]]
    worse = [Place(key, name) for key in keys for name in found[key].worse]
    broken = [Place(key, name) for key in keys for name in found[key].broken]
    sentence, reasons = _sentence(analysis, settings, found, worse, broken)
    status = _status(analysis, first, worse, broken)
    return Verdict(
        first.decision,
        sentence,
        reasons,
        first.enable,
        first.keep,
        first.wait,
        status,
        key=first_key(analysis),
        worse=tuple(worse),
        broken=tuple(broken),
        heterogeneous=first.heterogeneous,
    )


def _status(analysis: Analysis, first: Decision, worse: Sequence[Place], broken: Sequence[Place]) -> int:
    if first.decision == "A/A":
        return NO_VERDICT if _differences(analysis, broken) else first.exit_status
    return HARM if (worse or broken) and first.exit_status == 0 else first.exit_status


def _sentence(
    analysis: Analysis,
    settings: Settings,
    by_key: Mapping[str, Decision],
    worse: Sequence[Place],
    broken: Sequence[Place],
) -> tuple[str, tuple[str, ...]]:
    """`by_key`: the decisions by the cells of each key. The first decides."""
    found = next(iter(by_key.values()))
    if found.decision == "blocked":
        return _blocked(analysis)
    if found.decision == "refused":
        row = primary_row(analysis)
        title = row.title if row else "the primary measure"
        return f"No verdict: {title} comes from a plain log, {PLAIN_LOG}", (PLAIN_LOG_REMEDY,)
    if found.decision == "stop":
        return _stopped(analysis, broken, _losses(analysis, by_key, worse))
    if found.decision == "A/A":
        return _same_controller(analysis, broken), ()
    primary = primary_row(analysis)
    if primary is None or primary.effect is None:
        why = primary.reason if primary else _no_primary(settings)
        return f"No verdict yet: {why}.", ()
    lead = [
        *_losses(analysis, by_key, worse),
        *_broken_cells(analysis, broken),
        *_likely_broken_cells(analysis, [*worse, *broken]),
    ]
    main = _by_whole(analysis, settings, found, primary) if _is_pooled(analysis, found) else ""
    sentences = [*lead, main or _by_cells(analysis, found, primary), *_carry_over(analysis, primary)]
    hint = _without(analysis, found, broken)
    return " ".join(f"{_capital(one)}." for one in sentences), hint + _reasons(analysis, primary, settings)


def _no_primary(settings: Settings) -> str:
    if settings.primary is not None:
        return f"no record of the decision has {measures.name(settings.primary)}"
    return "the records have none of throughput, bandwidth and completion"


def price_words(row: Row) -> str:
    """`0.53 % against 0.22 %`."""
    return f"{words.quantity(row.treated, row.unit)} against {words.quantity(row.control, row.unit)}"


def effect_words(row: Row, least: str = "") -> str:
    """`p50 throughput ≥ 3 MB is 3.1 % higher (95 % CI +1.2 to +5.0 %)`. `least`: before the change."""
    effect = row.effect
    if effect is None:
        return f"{row.name}: no interval ({row.reason})"
    percent = f"{100 * effect.level:g} %"
    reach = f"{percent} CI {words.interval(effect.ratio_low, effect.ratio_high)}"
    if row.verdict in ("inconclusive", "equivalent"):
        return f"{row.name} does not differ by more than chance: {words.change(effect.ratio)} ({reach})"
    size = words.change(effect.ratio).lstrip(f"+{words.MINUS}")
    way = "higher" if effect.ratio > 1 else "lower"
    return f"{row.name} is {least}{size} {way} ({reach})"


def _carried(analysis: Analysis, primary: Row) -> Effect | None:
    """By what the effect grows within a window of a switchback, where that is found."""
    found = (one for one in analysis.designed if one.estimand == switchback.CARRY_OVER)
    return next((one.effect for one in found if one.measure == primary.measure), None)


def _grows(carried: Effect, primary: Row) -> bool:
    """Whether the effect is larger late in a window: the arm before made it too small."""
    return primary.effect is not None and (carried.ratio > 1) == (primary.effect.ratio > 1)


def _carry_over(analysis: Analysis, primary: Row) -> list[str]:
    """What carry-over makes of the effect."""
    carried = _carried(analysis, primary)
    if carried is None:
        return []
    change = f"{words.change(carried.ratio)} from the first half of a window to the second"
    if _grows(carried, primary):
        return [f"The arm before still acts after the burn-in ({change}): the effect is too small"]
    return [f"The effect falls within a window ({change}): it may be smaller than it looks"]


def _blocked(analysis: Analysis) -> tuple[str, tuple[str, ...]]:
    blocks = [finding for finding in analysis.health if finding.severity == "blocks"]
    remedies = (finding.remedy for finding in blocks if finding.remedy)
    reasons = (*(finding.sentence for finding in blocks[1:]), *remedies)
    return f"No verdict: {_lower(blocks[0].sentence)}", reasons


def _stopped(
    analysis: Analysis, broken: Sequence[Place], losses: Sequence[str]
) -> tuple[str, tuple[str, ...]]:
    """A cell counts as a proof only if it breaks a guardrail that is broken over all clients."""
    guards = [one for one in analysis.guardrails if one.state == "broken"]
    measures_broken = {one.row.measure for one in guards}
    proofs = [
        place
        for place in broken
        if measures_broken & {one.row.measure for one in _broken_guards(_cell(analysis, place))}
    ]
    others = [place for place in broken if place not in proofs]
    # A cell that is the whole proves nothing more, such as `unknown` where no record has a place.
    proofs = [place for place in proofs if _cell(analysis, place).share < 1]
    which = "a guardrail" if len(guards) == 1 else f"{len(guards)} guardrails"
    where = words.listed([_in_key(analysis, key, names) for key, names in _by_key(proofs).items()])
    sentences = [
        f"Stop: {analysis.facts.names[1]} breaks {which}: {_limits(guards)}",
        *([f"This is proven {where}"] if proofs else []),
        *_broken_cells(analysis, others),
        *losses,
    ]
    row = primary_row(analysis)
    reasons = [f"Over all clients, {effect_words(row)}."] if row else []
    return " ".join(f"{_capital(one)}." for one in sentences), tuple(reasons)


def _limits(guards: Sequence[Guarded]) -> str:
    return words.listed([f"{one.name} {price_words(one.row)}, the limit is {one.limit}" for one in guards])


def _same_controller(analysis: Analysis, broken: Sequence[Place]) -> str:
    """An A/A test: both arms run the same, so any difference is a fault of the pipeline."""
    differ = _differences(analysis, broken)
    same = f"Both arms run {analysis.facts.controllers[0]}: this is an A/A test."
    if differ:
        return f"{same} Yet {'; '.join(differ)}: find the fault of the pipeline first."
    return f"{same} Nothing differs by more than chance."


def _differences(analysis: Analysis, broken: Sequence[Place]) -> list[str]:
    """What differs though both arms run the same: measures, and guardrails over all clients and in cells."""
    differ = [row.name for row in analysis.scorecard if row.verdict in ("better", "worse")]
    guards = [one for one in analysis.guardrails if one.state == "broken"]
    found = [f"{words.listed(differ)} {'differs' if len(differ) == 1 else 'differ'}"] if differ else []
    found += [f"{analysis.facts.names[1]} breaks a guardrail ({_limits(guards)})"] if guards else []
    for key, places in _by_key(broken).items():
        found.append(f"a guardrail is broken {_in_key(analysis, key, places)}")
    return found


def _by_key(places: Sequence[Place]) -> dict[str, list[str]]:
    """Values by key."""
    found: dict[str, list[str]] = {}
    for place in places:
        found.setdefault(place.key, []).append(place.value)
    return found


def _in_key(analysis: Analysis, key: str, names: Sequence[str]) -> str:
    """`in Europe`, of the key that decides; else `in listener b`, because values of two keys may be equal."""
    which = "" if key == first_key(analysis) else f"{key_words(key)} "
    return f"in {which}{_named(names)}"


def _losses(analysis: Analysis, by_key: Mapping[str, Decision], worse: Sequence[Place]) -> list[str]:
    """Proven losses by name and key, the largest first. Where all are alike the headline says it."""
    control, treated = analysis.facts.names
    sentences = []
    for key, names in _by_key(worse).items():
        if by_key[key].state == "worse" and not by_key[key].heterogeneous:
            continue
        cells = [_cell(analysis, Place(key, name)) for name in names]
        row = cells[0].primary
        name = row.name if row else "the primary measure"
        where = _in_key(analysis, key, _with_changes(cells))
        sentences.append(f"With {treated}, {name} is worse {where}: keep {control} there")
    return sentences


def _broken_cells(analysis: Analysis, broken: Sequence[Place]) -> list[str]:
    """Cells that break a guardrail, by key; the first of each key with its limits."""
    control, treated = analysis.facts.names
    sentences = []
    for key, names in _by_key(broken).items():
        limits = _limits(_broken_guards(_cell(analysis, Place(key, names[0]))))
        where = _in_key(analysis, key, [f"{names[0]} ({limits})", *names[1:]])
        sentences.append(f"{treated} breaks a guardrail {where}: keep {control} there")
    return sentences


def _broken_guards(cell: Cell) -> list[Guarded]:
    return [one for one in cell.guardrails if one.state == "broken"]


def _likely_broken_cells(analysis: Analysis, named: Sequence[Place]) -> list[str]:
    """Cells in which the interval of one look is beyond a limit, and that are not named yet."""
    beyond = {
        cell.value: found
        for cell in decision_cells(analysis)
        if Place(cell.key, cell.value) not in named
        and (found := [one for one in cell.guardrails if _is_beyond(one)])
    }
    if not beyond:
        return []
    names = [
        f"{name} ({_limits(found)})" if n == 0 else name for n, (name, found) in enumerate(beyond.items())
    ]
    return [f"A guardrail is likely broken in {_named(names)}"]


def _without(analysis: Analysis, found: Decision, broken: Sequence[Place]) -> tuple[str, ...]:
    """Where cells with a broken guardrail hold back all others: how to decide for those."""
    if not broken or found.enable or all(one.state != "likely broken" for one in analysis.guardrails):
        return ()
    options = " ".join(f'--exclude "{one.key}={one.value}"' for one in broken[:MAX_NAMES])
    rest = " and the other cells of the table" if len(broken) > MAX_NAMES else ""
    return (f"To decide for the others, analyse without these cells: {options}{rest}.",)


def _is_beyond(one: Guarded) -> bool:
    return one.state == "likely broken" and one.low is not None and one.low > one.limit_amount


def _with_changes(cells: Sequence[Cell]) -> list[str]:
    """`Africa (−82 %)`, of cells that have an effect."""
    return [
        f"{cell.value} ({words.change(cell.primary.effect.ratio)})"
        for cell in cells
        if cell.primary and cell.primary.effect
    ]


def _cell(analysis: Analysis, place: Place) -> Cell:
    return next(cell for cell in analysis.cells if Place(cell.key, cell.value) == place)


def _is_pooled(analysis: Analysis, found: Decision) -> bool:
    """Whether the effect over all clients is the headline."""
    return not found.heterogeneous or not decision_cells(analysis)


def _by_whole(analysis: Analysis, settings: Settings, found: Decision, primary: Row) -> str:
    """The headline where cells do not differ."""
    control, treated = analysis.facts.names
    cells = decision_cells(analysis)
    rest = f"; no {key_words(cells[0].key)} differs from that by more than chance" if len(cells) > 1 else ""
    carried = _carried(analysis, primary)
    least = "at least " if carried and _grows(carried, primary) else ""
    if found.decision in ("enable", "enable some"):
        is_everywhere = not cells or len(found.enable) == len(cells)
        where = "" if is_everywhere else f" in {len(found.enable)} of {len(cells)} cells"
        effect = effect_words(primary, least)
        return "; ".join([f"Enable {treated}{where}: {effect}{rest}", *_waits(analysis, found.wait)])
    if found.state == "worse":
        return f"Keep {control}: with {treated}, {effect_words(primary, least)}{rest}"
    if found.decision == "keep" and found.state in ("better", "equivalent", "inconclusive"):
        return f"Keep {control}: {_no_gain(analysis, settings, primary)}{rest}"
    risky = [one for one in analysis.guardrails if one.state == "likely broken"]
    if found.state == "better":
        why = (
            f"a guardrail is likely broken: {_limits(risky)}"
            if risky
            else "a guardrail is likely broken there"
        )
        return f"No verdict yet: {effect_words(primary)}, but {why}"
    more = _more_units(analysis, settings, primary)
    return f"No verdict yet: {effect_words(primary)}{rest}{more}"


def _no_gain(analysis: Analysis, settings: Settings, primary: Row) -> str:
    """`bbr makes no difference of 1 % or more`; where a loss is not excluded, it is named."""
    treated, worth = analysis.facts.names[1], f"{100 * settings.worth:g} %"
    ends = ratio_interval(primary, settings)
    if max(abs(end - 1) for end in ends) < settings.worth:
        return f"{treated} makes no difference of {worth} or more"
    way, loss = ("lower", 1 - ends[0]) if primary.better == "higher" else ("higher", ends[1] - 1)
    if loss <= 0:
        return f"{treated} brings no gain of {worth} or more in any cell"
    size = words.change(1 + loss).lstrip("+")
    return f"{treated} brings no gain of {worth} or more, and {primary.name} may be up to {size} {way}"


def _more_units(analysis: Analysis, settings: Settings, primary: Row) -> str:
    """How many more units an answer over all clients needs."""
    if primary.effect is None:
        return ""
    needed = power.data_needed(primary.effect, aimed(primary, settings.detect))
    more = (needed - 1) * sum(analysis.facts.units)
    if more <= 0:
        return ""
    return f"; a change of {100 * settings.detect:g} % needs about {two_digits(more):,} more units"


def _by_cells(analysis: Analysis, found: Decision, primary: Row) -> str:
    """The headline where cells differ: where to enable, where to keep, where to wait."""
    control, treated = analysis.facts.names
    named = {*found.worse, *found.broken}
    keep = [name for name in found.keep if name not in named]
    parts = [f"enable {treated} for {_named(found.enable)}"] if found.enable else []
    parts += [f"keep {control} for {_named(keep)}"] if keep else []
    parts += _waits(analysis, found.wait)
    if not found.enable and not named:
        start = f"No verdict yet: {effect_words(primary)}, and cells differ"
        return "; ".join([start, *parts])
    return "; ".join(parts) or f"Keep {control}"


def _named(names: Sequence[str]) -> str:
    """At most five names, and how many more there are."""
    if len(names) <= MAX_NAMES:
        return words.listed(list(names))
    return f"{', '.join(names[:MAX_NAMES])} and {len(names) - MAX_NAMES} more (table below)"


def _reasons(analysis: Analysis, primary: Row, settings: Settings) -> tuple[str, ...]:
    facts = analysis.facts
    sentences = [
        f"Over all clients, {effect_words(primary)}; {primary.effect.estimand}." if primary.effect else ""
    ]
    sent = next((g for g in analysis.guardrails if g.row.measure.metric == "retransmitted"), None)
    if sent and sent.row.effect:
        basis = " (per client)" if sent.per_client else ""
        sentences.append(f"The price: {facts.names[1]} retransmits {price_words(sent.row)}{basis}.")
    not_shown = [one for one in analysis.guardrails if one.state in ("open", "likely holds")]
    if not_shown:
        sentences.append(f"Not shown to hold: {words.listed([_open(one) for one in not_shown])}.")
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


def _open(one: Guarded) -> str:
    if one.units_more is not None:
        return f"{one.name} (about {one.units_more:,} more units)"
    return one.name if one.state == "likely holds" else f"{one.name} ({one.row.reason or 'no estimate'})"


def decision_cells(analysis: Analysis, advice: str = "") -> list[Cell]:
    """Cells of the first key that has any, with this advice."""
    first = first_key(analysis)
    return [cell for cell in analysis.cells if cell.key == first and advice in ("", cell.advice)]


HALF_A_YEAR = 180


def needed_words(cell: Cell) -> str:
    """`about 9 more days`; or units, where more days of the same ones cannot help."""
    if cell.days_more is not None and cell.days_more <= HALF_A_YEAR:
        return f"about {words.counted(cell.days_more, 'more day')}"
    if cell.units_more is not None:
        return f"about {cell.units_more:,} more units"
    return "more units needed" if cell.reason in ("", "not enough data", "no interval") else cell.why


def waiting_words(cell: Cell) -> str:
    """Why a cell waits, short enough for a table."""
    if cell.reason == "guardrail likely broken":
        return "a guardrail is likely broken"
    needs = cell.reason in ("", "no interval") or cell.units_more is not None
    return f"not enough data, {needed_words(cell)}" if needs else "not enough data over all clients"


def _waits(analysis: Analysis, names: Sequence[str]) -> list[str]:
    """Cells that wait for more data, and cells that a guardrail holds back: more data may not help these."""
    risky = {cell.value for cell in decision_cells(analysis) if cell.reason == "guardrail likely broken"}
    poor, held = ([name for name in names if (name in risky) == is_held] for is_held in (False, True))
    parts = [f"not enough data for {_with_days(analysis, poor)}"] if poor else []
    if len(held) > MAX_NAMES:
        return [*parts, f"not yet for {_named(held)}, where a guardrail is likely broken"]
    return [*parts, f"not yet for {_with_days(analysis, held)}"] if held else parts


def _with_days(analysis: Analysis, names: Sequence[str]) -> str:
    if len(names) > MAX_NAMES:
        return _named(names)
    needed = {cell.value: needed_words(cell) for cell in decision_cells(analysis)}
    groups = dict.fromkeys(needed[name] for name in names)
    return words.listed(
        [f"{words.listed([name for name in names if needed[name] == when])} ({when})" for when in groups]
    )


def _lower(sentence: str) -> str:
    return sentence[:1].lower() + sentence[1:]


def _capital(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]
