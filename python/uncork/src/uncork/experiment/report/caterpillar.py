"""Intervals of many repetitions, side by side in the order of their estimates: which ones hold the truth?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from uncork.experiment.report.svg import Axis, Frame, document, fitted, path, px, text, width_of

HEIGHT = 150.0


@dataclass(frozen=True)
class Caterpillar:
    """An upright line for each interval (estimate, low, high, whether it holds the truth)."""

    title: str
    description: str
    y: Axis
    truth: float
    intervals: Sequence[tuple[float, float, float, bool]]

    def render(self, width: float) -> str:
        left = max(width_of(label) for _, label in self.y.ticks()) + 14
        frame = Frame(left, width - 8, 44, 44 + HEIGHT)
        step = (frame.right - frame.left) / max(len(self.intervals), 1)
        strokes = {"hit": "", "miss": ""}
        dots = ""
        for n, (value, low, high, holds) in enumerate(sorted(self.intervals)):
            tone, x = "hit" if holds else "miss", frame.left + step * (n + 0.5)
            strokes[tone] += f"M{px(x)} {px(frame.y(self.y, low))}V{px(frame.y(self.y, high))}"
            radius = min(1.6, 0.6 * step)
            y = frame.y(self.y, value)
            dots += f'<circle class="f-{tone}" cx="{px(x)}" cy="{px(y)}" r="{radius:.2f}"/>\n'
        truth = frame.y(self.y, self.truth)
        body = [
            text(0, 14, "h", fitted(self.title, width)),
            frame.y_axis(self.y),
            *(path(f"error s-{tone}", d) for tone, d in strokes.items()),
            dots,
            path("axis", f"M{px(frame.left)} {px(truth)}H{px(frame.right)}"),
        ]
        return document(self.title, self.description, width, frame.bottom + 10, "".join(body))
