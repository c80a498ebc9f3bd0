"""The page that explains interference in five minutes, with pictures."""

from __future__ import annotations

import re
from html import escape

from uncork.experiment import words
from uncork.experiment.interference import DesignResult, Lesson, by_share
from uncork.experiment.report import svg, tables
from uncork.experiment.report.figures import Figure, percent
from uncork.experiment.report.page import document, figure
from uncork.measure.stats.effect import Effect

ANSWERS = {True: "yes", False: "no"}


def page(lessons: tuple[Lesson, ...], command: str) -> str:
    """One HTML file."""
    first = lessons[0]
    naive = [result.outcome for result in first.results if result.kind == "A/B"][1]
    seen = words.change(naive.ratio) if isinstance(naive, Effect) else "–"
    body = [
        header("Five minutes, three made-up worlds in which the truth is known."),
        _in_short(seen),
        "<h2>1. How the link is divided</h2>\n",
        paragraph(
            "A full link has a fixed capacity. A treated user takes twice what a control user takes. The "
            "more users are treated, the less is left for each: both curves fall, and their gap stays. With "
            "no user treated and with all users treated each user gets the same."
        ),
        figure(_division(first), 1),
        "<h2>2. What each design says</h2>\n",
        paragraph(
            "The line is the truth: all treated against none. Each row is what a design would have reported, "
            "labelled with what it estimates. By chance one interval in twenty misses what it is for."
        ),
    ]
    for n, lesson in enumerate(lessons, 2):
        body += [figure(_forest(lesson, n), n), _table(lesson)]
    body += ["<h2>3. What to do</h2>\n", advice(), _footer(command)]
    return document("uncork experiment: interference", "".join(body))


def header(question: str) -> str:
    title = "When an A/B test of congestion control lies"
    return (
        f'<header>\n<p class="kind">uncork experiment · interference</p>\n<h1>{title}</h1>\n'
        f'<p class="question">{escape(question)}</p>\n</header>\n'
    )


def _in_short(seen: str) -> str:
    sentence = f"Where both arms share a full link, the A/B test says {seen}, and no user gains."
    why = (
        "A faster arm takes its bandwidth from the other arm. The difference between the arms is real, but "
        "it is "
        "gone once all clients have the faster controller. A gap that stays the same at every share does not "
        "show the absence of interference: only the level of the control arm, a switchback or paired links "
        "can show it."
    )
    return in_short(sentence, why)


def in_short(sentence: str, why: str) -> str:
    return (
        f'<section class="verdict" aria-label="In short">\n<p class="sentence">{escape(sentence)}</p>\n'
        f"<p>{escape(why)}</p>\n</section>\n"
    )


def paragraph(text: str) -> str:
    return f"<p>{escape(text)}</p>\n"


def _division(lesson: Lesson) -> Figure:
    world = lesson.world
    caption = (
        f"{world.name.capitalize()} of {world.capacity / 1000:g} Gbit/s with {world.users} users. By "
        "arithmetic, without chance."
    )

    def draw(width: float) -> str:
        shares = [n / 50 for n in range(51)]
        pairs = [(100 * share, by_share(world, share)) for share in shares]
        control = [(at, both[0]) for at, both in pairs if at < 100]
        treated = [(at, both[1]) for at, both in pairs if at > 0]
        x = svg.Axis("share of users in the treated arm, %", 0, 100)
        y = svg.around(
            "throughput of a user, Mbit/s", [v for _, both in pairs for v in both], zero=True, most=5
        )
        fair = by_share(world, 0.0)[0]
        lines = [svg.Line("control", "s0 d0", control), svg.Line("treated", "s1 d0", treated)]
        rules = [(fair, "none treated, or all: the same")]
        return svg.Chart("Throughput by share", caption, x, y, lines, rules=rules).render(width)

    return Figure("division", "Both arms against the share that is treated", caption, draw)


def _forest(lesson: Lesson, number: int) -> Figure:
    truth = 100 * (lesson.truth - 1)
    rows = [_row(result, lesson.truth) for result in lesson.results]
    ends = [end for row in rows for end in (row.low, row.high) if end is not None] + [truth]
    caption = (
        f"{lesson.world.name.capitalize()}: the true total effect is {words.change(lesson.truth)}. "
        f"{_typeset(lesson.control)} "
        "Blue: the interval holds the truth. Orange: it does not. Grey: another quantity."
    )

    def draw(width: float) -> str:
        axis = svg.around("change of the mean throughput", ends, zero=True, shown=percent)
        return svg.Forest(
            f"Designs in {lesson.world.name}", caption, axis, truth, rows, sides=("", "truth")
        ).render(width)

    return Figure(
        f"world-{number}",
        f"{lesson.world.name.capitalize()}: truth {words.change(lesson.truth)}",
        caption,
        draw,
    )


def _typeset(sentence: str) -> str:
    """A minus for each hyphen before a number."""
    return re.sub(r"(?<![\w])-(?=\d)", words.MINUS, sentence)


def _row(result: DesignResult, truth: float) -> svg.ForestRow:
    outcome = result.outcome
    if not isinstance(outcome, Effect):
        return svg.ForestRow(result.design, None, None, None, "open", "no interval")
    low, value, high = (100 * (ratio - 1) for ratio in (outcome.ratio_low, outcome.ratio, outcome.ratio_high))
    tone = {True: "hit", False: "miss", None: "open"}[result.covers(truth)]
    return svg.ForestRow(result.design, value, low, high, tone, words.change(outcome.ratio))


def _table(lesson: Lesson) -> str:
    rows = []
    for result in lesson.results:
        outcome = result.outcome
        covers = result.covers(lesson.truth)
        reach = (
            words.interval(outcome.ratio_low, outcome.ratio_high)
            if isinstance(outcome, Effect)
            else outcome.reason
        )
        estimate = words.change(outcome.ratio) if isinstance(outcome, Effect) else "–"
        judged = ANSWERS[covers] if covers is not None else "another quantity"
        rows.append(
            [escape(result.design), escape(outcome.estimand), escape(estimate), escape(reach), judged]
        )
    headings = ["design", "what it estimates", "estimate", "95 % interval", "holds the total effect"]
    return (
        f"<details>\n<summary>In numbers</summary>\n{tables.table(headings, rows, '', (0, 1, 4))}</details>\n"
    )


def advice() -> str:
    rows = [
        [
            "A/B test by client",
            "difference between the arms at this share",
            "a first look, and a guard against harm; never the gain of a rollout",
        ],
        [
            "steps of the share (5, 50, 95 %) in random order",
            "spill-over: how the control arm moves",
            "whether the arms share bottlenecks at all",
        ],
        [
            "switchback: a whole place changes each hour, at random",
            "total effect",
            "the decision, where one place is enough; leave out the first minutes of each block",
        ],
        [
            "paired links: 95 % on one, 5 % on the other, swapped",
            "total effect and spill-over",
            "the decision, where two links are alike",
        ],
    ]
    table = tables.table(
        ["design", "estimates", "use it for"], [[escape(cell) for cell in row] for row in rows], "", (0, 1, 2)
    )
    source = "After Spang et al., “Unbiased experiments in congested networks”, IMC 2021."
    return table + f'<p class="soft">{source}</p>\n'


def _footer(command: str) -> str:
    return (
        "<footer>\n<p>Made up, by arithmetic and chance with a seed: no network was measured. Repeat it "
        "with</p>\n"
        f'<pre><code class="command">{escape(command)}</code></pre>\n</footer>\n'
    )
