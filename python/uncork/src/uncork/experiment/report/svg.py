"""Charts as SVG text, with the class names of the laboratory's charts: their style sheet draws both.

Own functions, not a plotting library: a library brings its own fonts, colours and inline styles, cannot
follow the reader's dark mode or text size, and needs as many lines to be made to look like the other reports.
Every chart is drawn for a given width, so that a phone gets one of its own with text of the same size.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from html import escape

CHAR = 7.2
"""Width of a character of the 12-pixel font, rather too much."""
Point = tuple[float, float]


@dataclass(frozen=True)
class Axis:
    """One axis. `names` are labels at 0, 1, 2 and so on, instead of numbers."""

    label: str
    low: float
    high: float
    log: bool = False
    names: tuple[str, ...] = ()
    shown: Callable[[float], str] | None = None
    most: int = 6

    def fraction(self, value: float) -> float:
        """Position between the ends, 0 to 1; clamped."""
        if self.log:
            at = math.log(max(value, 1e-300) / self.low) / math.log(self.high / self.low)
        else:
            at = (value - self.low) / (self.high - self.low)
        return min(max(at, 0.0), 1.0)

    def ticks(self) -> list[tuple[float, str]]:
        """Round values within the axis, with labels."""
        if self.names:
            step = -(-len(self.names) // (2 * self.most))
            return [(float(n), name) for n, name in enumerate(self.names) if n % step == 0]
        if self.log:
            decades = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
            steps = (1, 2, 5) if math.log10(self.high / self.low) <= 3.2 else (1,)
            values = [step * 10.0**n for n in decades for step in steps]
            values = [v for v in values if self.low * 0.999 <= v <= self.high * 1.001]
            # A short axis may have none of these.
            if values:
                return [(v, self._text(v, None)) for v in values[:: -(-len(values) // 9)]]
        size = nice_step((self.high - self.low) / self.most)
        first, last = math.ceil(self.low / size - 1e-9), math.floor(self.high / size + 1e-9)
        decimals = max(0, -math.floor(math.log10(size) + 1e-9))
        return [(k * size, self._text(k * size, decimals)) for k in range(first, last + 1)]

    def _text(self, value: float, decimals: int | None) -> str:
        if self.shown:
            return self.shown(value)
        return f"{value:g}" if decimals is None else f"{value:.{decimals}f}"


def nice_step(step: float) -> float:
    """1, 2 or 5 times a power of ten, at least `step`."""
    power = 10.0 ** math.floor(math.log10(step))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= step * 0.999)


def around(
    label: str,
    values: Sequence[float],
    *,
    zero: bool = False,
    most: int = 6,
    shown: Callable[[float], str] | None = None,
) -> Axis:
    """A linear axis that holds all values, rounded outwards to the next ticks."""
    low, high = float(min(values, default=0.0)), float(max(values, default=1.0))
    if zero:
        low, high = min(low, 0.0), max(high, 0.0)
    if high <= low:
        high = low + (abs(low) or 1.0)
    step = nice_step((high - low) / most)
    low, high = math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step
    return Axis(label, low, high, most=most, shown=shown)


def px(value: float) -> str:
    """A coordinate with at most one decimal."""
    return (
        f"{value:.1f}".removesuffix(".0").replace("-0", "0")
        if abs(value) < 0.05
        else f"{value:.1f}".removesuffix(".0")
    )


def text(x: float, y: float, cls: str, words: str) -> str:
    return f'<text class="{cls}" x="{px(x)}" y="{px(y)}">{escape(words)}</text>\n' if words else ""


def path(cls: str, d: str) -> str:
    return f'<path class="{cls}" d="{d}"/>\n' if d else ""


def rect(x: float, y: float, width: float, height: float) -> str:
    return f"M{px(x)} {px(y)}h{px(width)}v{px(height)}h{px(-width)}z"


def width_of(words: str) -> float:
    return len(words) * CHAR


def fitted(words: str, width: float) -> str:
    """`words`, cut to `width` with an ellipsis."""
    room = int(width / CHAR)
    return words if len(words) <= room else words[: max(room - 1, 0)] + "…"


def document(title: str, description: str, width: float, height: float, body: str) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="chart" role="img" viewBox="0 0 {px(width)} '
        f'{px(height)}">\n'
        f"<title>{escape(title)}</title>\n<desc>{escape(description)}</desc>\n{body}</svg>\n"
    )


@dataclass(frozen=True)
class Frame:
    """Where a plot is in its chart."""

    left: float
    right: float
    top: float
    bottom: float

    def x(self, axis: Axis, value: float) -> float:
        return self.left + axis.fraction(value) * (self.right - self.left)

    def y(self, axis: Axis, value: float) -> float:
        return self.bottom - axis.fraction(value) * (self.bottom - self.top)

    def x_axis(self, axis: Axis) -> str:
        ticks = [(self.x(axis, value), label) for value, label in axis.ticks()]
        grid = "".join(f"M{px(x)} {px(self.top)}V{px(self.bottom)}" for x, _ in ticks)
        labels, end = "", -math.inf
        for x, label in ticks:
            if x - width_of(label) / 2 > end:
                labels += text(x, self.bottom + 16, "m q", label)
                end = x + width_of(label) / 2 + 2
        middle = (self.left + self.right) / 2
        line = f"M{px(self.left)} {px(self.bottom)}H{px(self.right)}"
        name = text(
            middle, self.bottom + 34, "m q", fitted(axis.label, 2 * min(middle, self.right - self.left))
        )
        return path("grid", grid) + path("axis", line) + labels + name

    def y_axis(self, axis: Axis) -> str:
        ticks = [(self.y(axis, value), label) for value, label in axis.ticks()]
        grid = "".join(f"M{px(self.left)} {px(y)}H{px(self.right)}" for y, _ in ticks)
        labels = "".join(text(self.left - 8, y + 4, "e q", label) for y, label in ticks)
        return path("grid", grid) + labels + text(0, self.top - 12, "q", axis.label)


@dataclass(frozen=True)
class Line:
    """A curve; `band` is (x, low, high)."""

    name: str
    ink: str
    points: Sequence[Point]
    band: Sequence[tuple[float, float, float]] = ()
    dots: bool = False


@dataclass(frozen=True)
class Mark:
    """A vertical line with a name, or from `x` to `until` a shaded time."""

    name: str
    x: float
    until: float | None = None


@dataclass(frozen=True)
class Chart:
    """Lines over a common axis. `rules` are horizontal lines with names."""

    title: str
    description: str
    x: Axis
    y: Axis
    lines: Sequence[Line]
    marks: Sequence[Mark] = field(default=())
    rules: Sequence[tuple[float, str]] = field(default=())
    legend: bool = True

    def render(self, width: float, height: float = 200) -> str:
        labels = [label for _, label in self.y.ticks()]
        left = max(34.0, max(map(width_of, labels), default=0.0) + 12)
        legend, below = (
            legend_of([(line.ink, line.name) for line in self.lines], width) if self.legend else ("", 0.0)
        )
        right = width - 16
        rows = self._mark_rows(left, right)
        top = below + 26 + 15 * max(rows.values(), default=0)
        frame = Frame(left, right, top, top + height)
        body = [legend, *(self._shade(frame, mark) for mark in self.marks if mark.until is not None)]
        body += [frame.x_axis(self.x), frame.y_axis(self.y)]
        body += [self._rule(frame, at, name) for at, name in self.rules]
        body += [self._mark(frame, mark, row) for mark, row in rows.items()]
        body += [self._band(frame, line) for line in self.lines]
        body += [self._line(frame, line) for line in self.lines]
        return document(
            self.title, self.description, width, frame.bottom + (42 if self.x.label else 24), "".join(body)
        )

    def _line(self, frame: Frame, line: Line) -> str:
        at = [(frame.x(self.x, x), frame.y(self.y, y)) for x, y in line.points]
        dots = "".join(
            f'<circle class="{dot_class(line.ink)}" cx="{px(x)}" cy="{px(y)}" r="2.6"/>\n' for x, y in at
        )
        return path(f"line {line.ink}", trail(at)) + (dots if line.dots else "")

    def _band(self, frame: Frame, line: Line) -> str:
        if not line.band:
            return ""
        over = [(frame.x(self.x, x), frame.y(self.y, high)) for x, _, high in line.band]
        under = [(frame.x(self.x, x), frame.y(self.y, low)) for x, low, _ in reversed(line.band)]
        return path(f"band {dot_class(line.ink)}", trail(over + under) + "z")

    def _rule(self, frame: Frame, at: float, name: str) -> str:
        y = frame.y(self.y, at)
        line = path("rule", f"M{px(frame.left)} {px(y)}H{px(frame.right)}")
        return line + text(frame.right - 4, y + 15, "e q", fitted(name, frame.right - frame.left))

    def _mark_rows(self, left: float, right: float) -> dict[Mark, int]:
        """The line above the plot for each name, clear of the vertical axis's label and of other names."""
        taken = [(0, 0.0, width_of(self.y.label))]
        rows: dict[Mark, int] = {}
        for mark in self.marks:
            if mark.name:
                start, end = self._mark_span(mark, left, right)
                row = next(n for n in range(9) if all(r != n or end < a or start > b for r, a, b in taken))
                taken.append((row, start, end))
                rows[mark] = row
        return rows

    def _mark_span(self, mark: Mark, left: float, right: float) -> Point:
        """Where a name begins and ends: at the right of its line, or at the left near the edge."""
        x = left + self.x.fraction(mark.x) * (right - left)
        needed = width_of(mark.name)
        return (x + 3, x + 3 + needed) if x + needed <= right else (right - needed, right)

    def _mark(self, frame: Frame, mark: Mark, row: int) -> str:
        x, y = frame.x(self.x, mark.x), frame.top - 12 - 15 * row
        start, _ = self._mark_span(mark, frame.left, frame.right)
        line = "" if mark.until is not None else path("mark", f"M{px(x)} {px(y + 3)}V{px(frame.bottom)}")
        return line + text(start, y, "q", mark.name)

    def _shade(self, frame: Frame, mark: Mark) -> str:
        left, right = frame.x(self.x, mark.x), frame.x(self.x, mark.until or mark.x)
        return path("shade", rect(left, frame.top, right - left, frame.bottom - frame.top))


def dot_class(ink: str) -> str:
    """The class that fills with the colour of a line's class."""
    return "f" + ink.split(" ")[0][1:]


def trail(points: Sequence[Point]) -> str:
    return "".join(f"{'L' if n else 'M'}{px(x)} {px(y)}" for n, (x, y) in enumerate(points))


def legend_of(entries: Sequence[tuple[str, str]], width: float, left: float = 0) -> tuple[str, float]:
    """Names next to samples of their lines, and the height that they take."""
    out, x, y = "", left, 12.0
    for ink, name in dict.fromkeys(entries):
        if not name:
            continue
        needed = 34 + width_of(name) + 14
        if x > left and x + needed > width:
            x, y = left, y + 18
        out += path(f"line {ink}", f"M{px(x)} {px(y - 4)}h26") + text(
            x + 32, y, "", fitted(name, width - x - 32)
        )
        x += needed
    return out, y + 6 if out else 0.0


@dataclass(frozen=True)
class ForestRow:
    """A row of a forest plot. `tone` is better, worse or open; without an interval only the note is drawn."""

    label: str
    value: float | None
    low: float | None
    high: float | None
    tone: str
    note: str
    head: bool = False


@dataclass(frozen=True)
class Forest:
    """Effects with intervals, one to a row, against no change."""

    title: str
    description: str
    x: Axis
    none: float
    rows: Sequence[ForestRow]
    sides: tuple[str, str] = ("← worse", "better →")
    """Words at the left and the right of the line."""

    def render(self, width: float) -> str:
        narrow = width < 500
        row_height = 38 if narrow else 24
        notes = 0.0 if narrow else max((width_of(row.note) for row in self.rows), default=0) + 10
        names = max((width_of(row.label) for row in self.rows), default=0) + 20
        left = 24.0 if narrow else min(names, 270.0)
        top = 26.0
        frame = Frame(
            left, width - notes - (24 if narrow else 12), top, top + row_height * len(self.rows) + 4
        )
        body = [frame.x_axis(self.x)]
        zero = frame.x(self.x, self.none)
        body.append(path("axis", f"M{px(zero)} {px(top - 4)}V{px(frame.bottom)}"))
        kinds = ("worse-ink", "better-ink") if "better" in self.sides[1] else ("q", "h")
        body.append(text(zero - 6, top - 10, f"e {kinds[0]}", self.sides[0]))
        body.append(text(zero + 6, top - 10, kinds[1], self.sides[1]))
        for n, row in enumerate(self.rows):
            body.append(self._row(frame, row, top + row_height * n, row_height, width, narrow))
        return document(self.title, self.description, width, frame.bottom + 42, "".join(body))

    def _row(
        self, frame: Frame, row: ForestRow, top: float, height: float, width: float, narrow: bool
    ) -> str:
        y = top + (height - 9 if narrow else height / 2 + 2)
        style = "h" if row.head else ""
        if narrow:
            words = text(0, top + 14, style, fitted(row.label, width - width_of(row.note) - 8))
            words += text(width, top + 14, "e q", row.note)
        else:
            words = text(frame.left - 10, y + 4, f"e {style}", fitted(row.label, frame.left - 10))
            words += text(width, y + 4, "e q", row.note)
        if row.value is None or row.low is None or row.high is None:
            return words
        low, high = frame.x(self.x, row.low), frame.x(self.x, row.high)
        cut = [f"M{px(low)} {px(y)}l6 -4M{px(low)} {px(y)}l6 4"] if row.low < self.x.low else []
        cut += [f"M{px(high)} {px(y)}l-6 -4M{px(high)} {px(y)}l-6 4"] if row.high > self.x.high else []
        line = path(f"reach s-{row.tone}", f"M{px(low)} {px(y)}H{px(high)}" + "".join(cut))
        x = frame.x(self.x, row.value)
        if not self.x.low <= row.value <= self.x.high:
            return words + line
        return (
            words
            + line
            + f'<circle class="f-{row.tone}" cx="{px(x)}" cy="{px(y)}" r="{5 if row.head else 4}"/>\n'
        )


@dataclass(frozen=True)
class HeatMap:
    """Cells (row by row from the top) of (position 0 worse to 1 better, or None for grey; text)."""

    title: str
    description: str
    x: tuple[str, Sequence[str]]
    y: tuple[str, Sequence[str]]
    cells: Sequence[Sequence[tuple[float | None, str] | None]]
    ends: tuple[str, str, str]

    def render(self, width: float) -> str:
        left = max(map(width_of, self.y[1]), default=0) + 12
        height, top = 32.0, 66.0
        step = (width - left - 2) / max(len(self.x[1]), 1)
        body = [self._legend(left, width), text(0, top - 10, "q", self.y[0])]
        for row, name in enumerate(self.y[1]):
            body.append(text(left - 8, top + height * row + height / 2 + 4, "e", name))
            body += [
                self._cell(left + step * n, top + height * row, step, height, cell)
                for n, cell in enumerate(self.cells[row])
            ]
        bottom = top + height * len(self.y[1])
        every = math.ceil(max(map(width_of, self.x[1]), default=1.0) / step)
        body += [
            text(left + step * (n + 0.5), bottom + 17, "m q", name)
            for n, name in enumerate(self.x[1])
            if n % every == 0
        ]
        body.append(text((left + width) / 2, bottom + 35, "m q", self.x[0]))
        return document(self.title, self.description, width, bottom + 43, "".join(body))

    def _cell(
        self, x: float, y: float, width: float, height: float, cell: tuple[float | None, str] | None
    ) -> str:
        at, words = cell or (None, "")
        kind = "none" if cell is None else "grey" if at is None else f"v{round(min(max(at, 0), 1) * 10)}"
        label = text(x + width / 2, y + height / 2 + 4, "m", words if width_of(words) <= width else "")
        return f'<g class="{kind}">{path("cell", rect(x + 1, y + 1, width - 2, height - 2))}{label}</g>\n'

    def _legend(self, left: float, width: float) -> str:
        step = min(20.0, (width - left - 100) / 13)
        scale = "".join(
            f'<g class="v{n}">{path("cell", rect(left + step * n, 4, step, 12))}</g>' for n in range(11)
        )
        grey = left + step * 11 + 22
        ends = [
            text(left + step * 11 * at, 30, cls, words)
            for at, cls, words in zip((0, 0.5, 1), ("q", "m q", "e q"), self.ends, strict=True)
        ]
        sample = f'<g class="grey">{path("cell", rect(grey, 4, step, 12))}</g>'
        return scale + "".join(ends) + sample + text(grey + step + 6, 14, "q", "not significant")


@dataclass(frozen=True)
class Scatter:
    """Points with names and intervals on y: (name, x, y, y low, y high, tone, weight 0 to 1)."""

    title: str
    description: str
    x: Axis
    y: Axis
    points: Sequence[tuple[str, float, float, float, float, str, float]]

    def render(self, width: float, height: float = 230) -> str:
        labels = [label for _, label in self.y.ticks()]
        left = max(map(width_of, labels), default=0) + 14
        frame = Frame(left, width - 12, 28, 28 + height)
        body = [frame.x_axis(self.x), frame.y_axis(self.y)]
        if self.y.low < 0 < self.y.high:
            zero = frame.y(self.y, 0)
            body.append(path("axis", f"M{px(frame.left)} {px(zero)}H{px(frame.right)}"))
        taken: list[tuple[float, float, float]] = []
        for name, x, y, low, high, tone, weight in sorted(self.points, key=lambda point: -point[6]):
            at = frame.x(self.x, x), frame.y(self.y, y)
            body.append(
                path(
                    f"error s-{tone}", f"M{px(at[0])} {px(frame.y(self.y, low))}V{px(frame.y(self.y, high))}"
                )
            )
            body.append(
                f'<circle class="f-{tone} dot" cx="{px(at[0])}" cy="{px(at[1])}" '
                f'r="{px(3 + 6 * weight**0.5)}"/>\n'
            )
            body.append(self._label(frame, at, name, taken))
        return document(self.title, self.description, width, frame.bottom + 42, "".join(body))

    @staticmethod
    def _label(frame: Frame, at: Point, name: str, taken: list[tuple[float, float, float]]) -> str:
        """The name next to its point, left out where another name stands."""
        needed = width_of(name)
        for side in (1, -1):
            x = at[0] + 9 if side > 0 else at[0] - 9 - needed
            inside = frame.left <= x and x + needed <= frame.right + 10
            free = all(abs(at[1] - y) > 12 or x > end or x + needed < start for start, end, y in taken)
            if inside and free:
                taken.append((x, x + needed, at[1]))
                return text(x, at[1] + 4, "q", name)
        return ""
