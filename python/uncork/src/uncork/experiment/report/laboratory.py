"""The page about interference in the laboratory: simulated users, and what each design says of them."""

from __future__ import annotations

from html import escape

import numpy as np

from uncork.experiment import words
from uncork.experiment.laboratory.designs import DAYS
from uncork.experiment.laboratory.proof import (
    TOTAL,
    Design,
    Plan,
    Proof,
    Truth,
    share_with_interval,
)
from uncork.experiment.laboratory.worlds import CONTROL, TREATED, USERS
from uncork.experiment.report import palette, svg, tables
from uncork.experiment.report.caterpillar import Caterpillar
from uncork.experiment.report.explain import advice, header, in_short, paragraph
from uncork.experiment.report.figures import Figure, percent
from uncork.experiment.report.page import document, figure

DRAWN = ("ab", "switchback", "links")
CUT = (1.0, 99.0)
"""Percentiles of the intervals' ends that the axis shows: one wild interval must not flatten all others."""


def page(proofs: tuple[Proof, ...], plan: Plan, command: str) -> str:
    """One HTML file. The first world is the one in which the A/B test lies."""
    first = proofs[0]
    body = [
        header(
            f"Five minutes, two places of simulated users, {plan.repetitions} repetitions of each design, "
            "compared with the truth."
        ),
        in_short(_sentence(first), _why(first)),
        "<h2>1. What a user gets, by the share that has BBR</h2>\n",
        paragraph(
            f"{USERS} users of one link fetch objects of up to 1 MB with pauses. A given share of them has "
            f"{TREATED}, the others {CONTROL}. A user's throughput is what he got over the time he waited."
        ),
    ]
    body += [figure(_levels(proof, n), n) for n, proof in enumerate(proofs, 1)]
    body += [
        "<h2>2. What each design says</h2>\n",
        paragraph(
            f"Each design was carried out {plan.repetitions} times, every time on users of its own. An "
            "upright line is one of them: its estimate, and its 95 % interval. The horizontal line is the "
            f"truth, all users with {TREATED} against all with {CONTROL}."
        ),
    ]
    for n, proof in enumerate(proofs, 1):
        body += [figure(_repetitions(proof, n), n + len(proofs)), _table(proof)]
    body += ["<h2>3. What to do</h2>\n", advice(), "<h2>4. How it was made</h2>\n", _made(proofs, plan)]
    return document("uncork experiment: interference in the laboratory", "".join(body) + _footer(command))


def _sentence(proof: Proof) -> str:
    naive = proof.design("ab")
    return (
        f"On {proof.world.name} the A/B test says {words.change(naive.middle)}, and giving all clients the "
        f"faster controller brings {words.change(proof.truth.ratio)}."
    )


def _why(proof: Proof) -> str:
    counts = [
        f"{design.name} in {design.covered(proof.truth.ratio)}"
        for design in map(proof.design, ("ab", *TOTAL))
    ]
    return (
        "A faster arm takes its bandwidth from the other arm: the difference between the arms is real, and "
        f"gone once all clients have the faster controller. Of {proof.design('ab').repetitions} repetitions "
        f"the interval holds the truth: {words.listed(counts)}."
    )


def _levels(proof: Proof, number: int) -> Figure:
    truth = proof.truth
    caption = (
        f"{proof.world.name.capitalize()}: {proof.world.about} Mean throughput of a user by arm. All with "
        f"{CONTROL}: {truth.control:.2f} Mbit/s; all with {TREATED}: {truth.treated:.2f} Mbit/s, which is "
        f"{_truth(truth)}."
    )

    def draw(width: float) -> str:
        control = [(100 * at.share, at.control) for at in proof.levels if at.control is not None]
        treated = [(100 * at.share, at.treated) for at in proof.levels if at.treated is not None]
        everyone = [(100 * at.share, at.everyone) for at in proof.levels]
        inks = palette.inks((CONTROL, TREATED))
        lines = [
            svg.Line(CONTROL, inks[0], control, dots=True),
            svg.Line(TREATED, inks[1], treated, dots=True),
            svg.Line("all users", "s6 d1", everyone),
        ]
        x = svg.Axis(f"share of users with {TREATED}, %", 0, 100)
        ends = [value for line in lines for _, value in line.points]
        y = svg.around("throughput of a user, Mbit/s", ends, zero=True, most=5)
        return svg.Chart(f"Throughput by share: {proof.world.name}", caption, x, y, lines).render(width)

    return Figure(f"levels-{number}", f"Both arms by share: {proof.world.name}", caption, draw)


def _truth(truth: Truth) -> str:
    """The total effect with the error that it has from being simulated."""
    return f"{words.change(truth.ratio)} (± {100 * 1.96 * truth.ratio * truth.error:.1f})"


def _repetitions(proof: Proof, number: int) -> Figure:
    truth = proof.truth.ratio
    designs = [proof.design(key) for key in DRAWN]
    caption = (
        f"{proof.world.name.capitalize()}: {words.counted(designs[0].repetitions, 'repetition')} of each "
        "design, in the order of their estimates. Blue: the interval holds the truth. Orange: it does not."
    )

    def draw(width: float) -> str:
        ends = np.concatenate([np.concatenate([one.low, one.high]) for one in designs if len(one.ratios)])
        shown = [float(value) for value in np.percentile(100 * (ends - 1), CUT)]
        y = svg.around("", [*shown, 100 * (truth - 1)], zero=True, most=5, shown=percent)
        return "".join(_caterpillar(one, truth, y, caption).render(width) for one in designs)

    return Figure(
        f"repetitions-{number}", f"Repetitions against the truth: {proof.world.name}", caption, draw
    )


def _caterpillar(design: Design, truth: float, y: svg.Axis, caption: str) -> Caterpillar:
    hits = design.covered(truth)
    title = f"{design.name}: {words.change(design.middle)}, right in {hits} of {design.repetitions}"
    percents = [(100 * (values - 1)).tolist() for values in (design.ratios, design.low, design.high)]
    intervals = list(zip(*percents, design.covers(truth).tolist(), strict=True))
    return Caterpillar(title, caption, y, 100 * (truth - 1), intervals)


def compare_with_truth(design: Design, truth: float) -> tuple[str, str | None]:
    """How far its mean is off, and the share of intervals that hold the truth; None for another quantity."""
    if not design.is_of_total:
        return "–", None
    share, low, high = share_with_interval(design.covered(truth), design.repetitions)
    off = words.points(design.middle - truth) if len(design.ratios) else "–"
    return off, f"{100 * share:.1f} % ({100 * low:.0f} to {100 * high:.0f} %)"


def _table(proof: Proof) -> str:
    truth = proof.truth.ratio
    rows = []
    for design in proof.designs:
        off, covers = compare_with_truth(design, truth)
        width = float(np.median(100 * (design.high - design.low))) if len(design.ratios) else float("nan")
        cells = [
            design.name,
            design.estimand,
            words.change(design.middle),
            off,
            f"{width:.0f} pp",
            covers or "another quantity",
        ]
        rows.append([escape(cell) for cell in cells])
    headings = ["design", "estimates", "mean", "off by", "width", "holds the total effect"]
    caption = (
        f"{proof.world.name.capitalize()}: the true total effect is {_truth(proof.truth)}. Width: median of "
        "the 95 % intervals. In parentheses: exact 95 % interval of the share."
    )
    return tables.table(headings, rows, caption, (0, 1))


def _made(proofs: tuple[Proof, ...], plan: Plan) -> str:
    items = [
        f"Each run of the simulator is one link in one half of a day, with {USERS} users; the quiet half has "
        "pauses of 4 s, the busy one of 2 s. A place has two links, one a tenth faster.",
        f"A switchback and paired links take {DAYS} days, an A/B test {DAYS // 2}.",
        "Nothing is drawn twice. Every run has a seed of its own, so no two repetitions share a user: "
        f"{plan.runs:,} runs of each place.",
        f"The truth comes from further runs: {proofs[0].truth.runs:,} with all clients on {CONTROL}, and the "
        f"same users on {TREATED}. The number in parentheses is its own 95 % error.",
        "The estimators are those of uncork experiment analyze: the jackknife over users, and the "
        "inversion of the coins' test.",
        "At 5 and 95 % one arm has a single user on each link. A mean of logarithms is too low for so small "
        "groups: it makes the A/B difference at 95 % too large and the spill-over too strong, also where the "
        "arms share nothing. The total effects are means over all users and are free of it.",
        "Blocks are separate runs: nothing carries over from one to the next, which a real switchback has to "
        "leave out by a burn-in. Days differ only by chance.",
        "It is a simulation. What two controllers take from each other depends on rate, buffer and "
        "round-trip time; with less buffer BBR takes more.",
    ]
    listed = "".join(f"<li>{escape(item)}</li>\n" for item in items)
    return f"<ul>\n{listed}</ul>\n"


def _footer(command: str) -> str:
    return (
        "<footer>\n<p>Simulated by <code>uncork lab</code> with a seed. Repeat it with</p>\n"
        f'<pre><code class="command">{escape(command)}</code></pre>\n</footer>\n'
    )
