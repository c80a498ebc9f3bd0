"""The whole page: decision, table, health, scorecard, pictures, words."""

from __future__ import annotations

from functools import cache
from html import escape
from importlib.resources import files

from uncork import __version__
from uncork.experiment import measures, words
from uncork.experiment.report import palette, tables
from uncork.experiment.report.figures import Figure, all_of
from uncork.experiment.result import Analysis, Verdict
from uncork.experiment.verdict import SOURCES, key_words
from uncork.measure.metrics import METRICS

BROAD, NARROW = 680.0, 372.0
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def page(analysis: Analysis, verdict: Verdict, command: str) -> str:
    """The report as one HTML file, which is also well-formed XML. It needs no script and no network."""
    facts = analysis.facts
    title = f"{facts.names[1]} against {facts.names[0]}"
    sections = [
        _header(analysis, title),
        _doubts(analysis),
        _verdict(verdict),
        _guardrails(analysis),
        _cells(analysis),
        _setting(analysis),
        _health(analysis),
        _scorecard(analysis),
        _estimands(analysis),
        _figures(all_of(analysis)),
        _glossary(analysis),
        _footer(command),
    ]
    return document(f"uncork experiment: {facts.experiment}: {title}", "".join(sections))


def document(title: str, body: str) -> str:
    """A whole page around `body`."""
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8"/>\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}"/>\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"/>\n'
        '<meta name="color-scheme" content="light '
        f'dark"/>\n<title>{escape(title)}</title>\n<style>\n{style()}</style>\n'
        f"</head>\n<body>\n<main>\n{body}</main>\n</body>\n</html>\n"
    )


@cache
def style() -> str:
    """The laboratory's style sheets, word for word, and what this page has beyond them."""
    names = ("laboratory.css", "experiment.css")
    shared, own = (files(__package__).joinpath(name).read_text(encoding="utf-8") for name in names)
    _, _, sheets = shared.partition("\n")  # Without the comment that says who wrote it.
    return sheets + palette.style() + own


def _header(analysis: Analysis, title: str) -> str:
    facts = analysis.facts
    units = facts.total_units
    question = (
        f"Did it help, for whom, and can the answer be trusted? {words.counted(facts.days, 'day')}, "
        f"{words.counted(units, 'unit')}, {words.counted(facts.rows, 'record')}."
    )
    return (
        '<header>\n<p class="kind">uncork experiment · '
        f"{escape(facts.experiment)}</p>\n<h1>{escape(title)}</h1>\n"
        f'<p class="question">{escape(question)}</p>\n</header>\n'
    )


def _doubts(analysis: Analysis) -> str:
    doubts = []
    if analysis.facts.made_up:
        doubts.append(
            "<strong>Made up:</strong> these records come from a small generator, to show what a report "
            "looks like. "
            "No network, client or controller was measured."
        )
    doubts += [escape(note) for note in analysis.notes]
    if analysis.not_guarded:
        text = words.not_guarded(analysis.not_guarded)
        doubts.append(escape(f"{text[:1].upper()}{text[1:]}."))
    return "".join(f'<p class="doubt">{doubt}</p>\n' for doubt in doubts)


def _verdict(verdict: Verdict) -> str:
    kind = verdict.decision if verdict.decision in ("blocked", "refused", "stop") else ""
    reasons = "".join(f"<p>{escape(reason)}</p>\n" for reason in verdict.reasons)
    return (
        f'<section id="decision" class="verdict {kind}" aria-label="Decision">\n'
        f'<p class="sentence">{escape(verdict.sentence)}</p>\n{reasons}</section>\n'
    )


def _guardrails(analysis: Analysis) -> str:
    guards = analysis.guardrails
    if not guards:
        return ""
    control, treated = analysis.facts.names
    broken = [one for one in guards if one.state == "broken"]
    risky = [one for one in guards if one.state == "likely broken"]
    open_ones = [one for one in guards if one.state in ("open", "likely holds")]
    mark, kind = ("✗", "failed") if broken else ("✓", "passed")
    if broken:
        words_ = f"{words.counted(len(broken), 'guardrail')} of {len(guards)} broken: " + words.listed(
            [one.name for one in broken]
        )
    elif risky:
        mark, kind = "!", "failed"
        words_ = f"{words.counted(len(risky), 'guardrail')} of {len(guards)} likely broken: "
        words_ += words.listed([one.name for one in risky])
    elif open_ones:
        mark, kind = "?", ""
        words_ = f"No guardrail is broken; {len(open_ones)} of {len(guards)} are not shown to hold: "
        words_ += words.listed([one.name for one in open_ones])
    else:
        words_ = "The guardrail holds" if len(guards) == 1 else f"All {len(guards)} guardrails hold"
    summary = f'<span aria-hidden="true">{mark}</span> {escape(words_)}.'
    return (
        f'<section id="guardrails" class="verdict {kind}" aria-label="Guardrails">\n<p '
        f'class="count">{summary}</p>\n'
        "<details>\n<summary>Limits and "
        f"bounds</summary>\n{tables.guardrails(guards, control, treated)}</details>\n</section>\n"
    )


def _cells(analysis: Analysis) -> str:
    out = []
    for n, key in enumerate(dict.fromkeys(cell.key for cell in analysis.cells)):
        heading = "What to do" if n == 0 else f"By {key_words(key)}"
        body = tables.decisions(analysis, key)
        out.append(f'<section id="cells-{escape(key)}">\n<h2>{escape(heading)}</h2>\n{body}</section>\n')
    return "".join(out)


def _setting(analysis: Analysis) -> str:
    facts, settings = analysis.facts, analysis.settings
    source = next((row.source for row in analysis.scorecard if row.role == "primary"), "")
    rejected = sum(facts.rejected.values())
    first, second = (name or "controller unknown" for name in facts.controllers)
    entries = {
        "Control": f"{facts.control}: {first}, {facts.units[0]:,} units",
        "Treated": f"{facts.treated}: {second}, {facts.units[1]:,} units, "
        f"{100 * facts.share:g} % {facts.share_is}",
        "Time": f"{facts.since} to {facts.until}, {words.counted(facts.days, 'day')}",
        "Primary measure": settings.get("primary", ""),
        "Means and quantiles": facts.weighting,
        "Source": SOURCES.get(source, source),
        "Records": f"{facts.rows:,}" + (f", {rejected:,} left out" if rejected else ""),
        "Policy": words.listed(facts.policies) or "none recorded",
        "Look": settings.get("look", "") or "one, at the end",
        "Least gain worth it": settings.get("worth", ""),
    }
    items = "".join(
        f"<div><dt>{escape(term)}</dt><dd>{escape(value)}</dd></div>\n"
        for term, value in entries.items()
        if value
    )
    return f'<h2>The experiment</h2>\n<dl class="path" aria-label="Experiment">\n{items}</dl>\n'


def _health(analysis: Analysis) -> str:
    if not analysis.health:
        return ""
    bad = [one for one in analysis.health if one.severity in ("warning", "blocks")]
    idle = [one for one in analysis.health if one.severity == "not run"]
    good = [one for one in analysis.health if one.severity == "ok"]
    first = tables.health(bad) if bad else f"<p>All {len(good)} checks of the records passed.</p>\n"
    rest = f"<h3>Not run</h3>\n{tables.health(idle)}" if idle else ""
    if good:
        rest += (
            f"<details>\n<summary>{words.counted(len(good), 'check')} "
            f"passed</summary>\n{tables.health(good)}</details>\n"
        )
    return f'<section id="health">\n<h2>Can the records be trusted?</h2>\n{first}{rest}</section>\n'


def _scorecard(analysis: Analysis) -> str:
    return (
        f'<section id="scorecard">\n<h2>Scorecard</h2>\n{tables.scorecard(analysis)}</section>\n'
        if analysis.scorecard
        else ""
    )


def _estimands(analysis: Analysis) -> str:
    """Three different quantities, and which of them this test estimates."""
    found = analysis.interference
    if found is None:
        return ""
    body = tables.estimands(analysis, found)
    return (
        '<section id="estimands">\n<h2>Is it what a rollout would '
        f"bring?</h2>\n<p>{escape(found.sentence)}</p>\n"
        f"{body}</section>\n"
    )


def _figures(figures: list[Figure]) -> str:
    if not figures:
        return ""
    links = "".join(f'<li><a href="#{one.id}">{escape(one.title)}</a></li>\n' for one in figures)
    contents = f'<nav aria-label="Figures">\n<ol class="contents">\n{links}</ol>\n</nav>\n'
    return f"<h2>Figures</h2>\n{contents}" + "".join(figure(one, n) for n, one in enumerate(figures, 1))


def figure(one: Figure, number: int) -> str:
    """A figure, drawn for a wide page and for a phone."""
    return (
        f'<figure id="{escape(one.id)}">\n<h3>{escape(one.title)}</h3>\n<div class="picture">\n'
        f'<div class="broad-only">{one.draw(BROAD)}</div>\n<div class="narrow" '
        f'aria-hidden="true">{one.draw(NARROW)}</div>\n</div>\n'
        f"<figcaption><b>Figure {number}.</b> {escape(one.caption)}</figcaption>\n{one.below}</figure>\n"
    )


WORDS = {
    "estimand": "What a number estimates. “A/B at share p”: the difference between the arms while the share "
    "p is treated. "
    "“Spill-over”: how the control arm moves because others are treated. “Total effect”: all treated against "
    "none. "
    "Only a switchback or paired links estimate the last.",
    "interval": "95 % interval by the delete-one-bucket jackknife: 100 buckets of the units that were "
    "assigned, not of requests.",
    "q": "The p-value after the correction of Benjamini and Hochberg: of all rows called better or worse, at "
    "most 5 % are "
    "expected to be wrong.",
    "MDE": "Minimum detectable effect: the change that this much data finds with a power of 80 %.",
    "guardrail": "What must not get worse than its limit. Judged by a bound that holds at every look, so it "
    "may be watched.",
}


def _glossary(analysis: Analysis) -> str:
    metrics = dict.fromkeys(row.measure.metric for row in analysis.scorecard)
    entries = {measures.title(name): _about(name) for name in metrics} | WORDS
    items = "".join(f"<dt>{escape(term)}</dt><dd>{escape(about)}</dd>\n" for term, about in entries.items())
    return (
        '<section id="glossary">\n<h2>What the words mean</h2>\n<dl '
        f'class="glossary">\n{items}</dl>\n</section>\n'
    )


def _about(name: str) -> str:
    metric = METRICS[name]
    return f"{metric.title}. {metric.about}".strip()


def _footer(command: str) -> str:
    return (
        f"<footer>\n<p>Made by uncork {__version__}. All figures are in the result "
        "document. "
        f'Repeat it with</p>\n<pre><code class="command">{escape(command)}</code></pre>\n</footer>\n'
    )
