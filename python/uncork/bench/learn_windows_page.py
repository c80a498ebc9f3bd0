"""The evidence page of learn_windows.py: from plans to Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from learn_windows import CHANGED, DAYS, ENOUGH, NO_GAIN, Change, Day, Faked
from window_worlds import SLOW, WINDOWS

AIM_GAIN, AIM_WORSE = 0.95, 0.001
LAST = max(DAYS)
COMMAND = "python bench/learn_windows.py --seeds {seeds} --page ../../docs/evidence/learn-windows.md"


def page(days: Sequence[Day], changes: Sequence[Change], fakes: Sequence[Faked], seeds: int) -> str:
    """The whole page."""
    played = [one for one in days if one.world != NO_GAIN.name]
    return "\n".join(
        [
            "# Does the learned policy give each network the window that its path carries?",
            "",
            _conclusion(played, [one for one in days if one.world == NO_GAIN.name], changes, fakes),
            "",
            "```sh",
            "cd python/uncork",
            COMMAND.format(seeds=seeds),
            "```",
            "",
            f"Windows are {', '.join(map(str, WINDOWS[:-1]))} and {WINDOWS[-1]} packets; ten is the default. "
            "What a window does to an object of 100 kB is what the simulator "
            "[measured](start-windows.md) on eleven kinds of access. Networks deviate from their access, and "
            "records are drawn (`bench/window_worlds.py`); connections are not simulated here. All settings "
            "are the defaults of `uncork learn plan`; the guardrail is `start_resent=2pp`. Plans are made on "
            f"the days {', '.join(map(str, DAYS[:-1]))} and {LAST}. "
            "The larger rate has one world and one seed.",
            "",
            "## Gain and harm",
            "",
            "The oracle knows what each window does to each network, and keeps the guardrail. Worse is the "
            "traffic that takes more than 2 % longer than with ten packets. Beyond is the traffic with more "
            f"resent than the guardrail allows. The aims are for {LAST} days: "
            f"{100 * AIM_GAIN:g} % of the gain, at most {100 * AIM_WORSE:g} % worse.",
            "",
            *_table(
                (
                    "world",
                    "random records a day",
                    "seed",
                    "day",
                    "part of the oracle's gain",
                    "traffic with the oracle's window",
                    "worse",
                    "beyond",
                    "networks on",
                ),
                (_row(one) for one in days),
            ),
            "",
            "## A path becomes slow",
            "",
            f"After {LAST} days, {100 * CHANGED:g} % of the networks that have a larger window get the path "
            f"`{SLOW}`, which overflows with it. Seen are networks with {ENOUGH} random records of the first "
            "day in each arm. The aim: all are back within a day.",
            "",
            *_table(
                (
                    "random records a day",
                    "seed",
                    "networks",
                    "not back after 1, 2, 3 days",
                    "seen",
                    "seen, not back after 1, 2, 3 days",
                    "their traffic after 1 day",
                ),
                (
                    (
                        f"{one.rate:,}",
                        str(one.seed),
                        str(one.networks),
                        ", ".join(map(str, one.still)),
                        str(one.seen),
                        ", ".join(map(str, one.still_seen)),
                        _percent(one.share),
                    )
                    for one in changes
                ),
            ),
            "",
            "## A network fakes good starts",
            "",
            "The largest network that loses by 64 packets makes up its records: objects take a tenth of the "
            "time with any larger window, and nothing is resent. All other records are the same as without "
            "it. Moved are other networks with another window by any plan. The aim is none. What moves them "
            "was not traced: all networks share the daily change budget, the budget of harm and the prior.",
            "",
            *_table(
                (
                    "random records a day",
                    "seed",
                    "its traffic",
                    "its window",
                    "other networks moved",
                    "their traffic",
                    "made worse by it",
                ),
                (
                    (
                        f"{one.rate:,}",
                        str(one.seed),
                        _percent(one.share),
                        one.own,
                        str(one.others),
                        _percent(one.moved),
                        _percent(one.worse),
                    )
                    for one in fakes
                ),
            ),
            "",
            "## Limits",
            "",
            "- The worlds have objects of 100 kB alone, and every path has the same noise.",
            "- What a larger window does to other connections of the same network is not in these worlds. "
            "`queued` measures the queue of a client's own transfers; a "
            "[switchback](../howto/switchback.md) measures all of a network.",
            "- The first minute after a change is not resolved: evidence here grows by the day.",
            "",
        ]
    )


def _conclusion(
    played: Sequence[Day], equal: Sequence[Day], changes: Sequence[Change], fakes: Sequence[Faked]
) -> str:
    last = [one for one in played if one.day == LAST]
    gains = sum(one.gain >= AIM_GAIN for one in last)
    worse = sum(one.worse <= AIM_WORSE for one in last)
    on = sum(one.on for one in equal)
    networks, late = sum(one.networks for one in changes), sum(one.still[0] for one in changes)
    seen, late_seen = sum(one.seen for one in changes), sum(one.still_seen[0] for one in changes)
    moved = sum(one.others for one in fakes)
    return (
        f"After {LAST} days the learned windows have {100 * AIM_GAIN:g} % of the oracle's gain in {gains} of "
        f"{len(last)} cases (minimum {_percent(min(one.gain for one in last))}), and at most "
        f"{100 * AIM_WORSE:g} % of the traffic is worse in {worse} of {len(last)} (most "
        f"{_percent(max(one.worse for one in last))}). Where windows do nothing, {on} networks were switched "
        f"on in {len({(one.rate, one.seed) for one in equal})} runs. Of {networks} networks that got a slow "
        f"path, {late} still had a larger window a day later; of {seen} with enough records, {late_seen}. A "
        f"network that fakes good starts moved {moved} others in {len(fakes)} runs, and made "
        f"{_percent(max(one.worse for one in fakes))} of the traffic worse."
    )


def _row(one: Day) -> tuple[str, ...]:
    return (
        one.world,
        f"{one.rate:,}",
        str(one.seed),
        str(one.day),
        _percent(one.gain) if one.world != NO_GAIN.name else "–",
        _percent(one.right),
        _percent(one.worse),
        _percent(one.beyond),
        str(one.on),
    )


def _percent(share: float) -> str:
    return f"{100 * share:.2f} %".replace("-", "−")


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Numbers to the right."""
    left = {"world"}
    marks = ["---" if heading in left else "---:" for heading in headings]
    return [_line(headings), f"|{'|'.join(marks)}|", *(_line(row) for row in rows)]


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
