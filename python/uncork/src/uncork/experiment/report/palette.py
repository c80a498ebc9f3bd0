"""Colours: those of the laboratory's reports, which write them (crates/lab/report/src/for_python.rs).

A controller has one colour on every page. Better is green and worse is purple (ColorBrewer PRGn): never the
red of a failed check.
"""

from __future__ import annotations

import json
from importlib.resources import files

_SHARED = json.loads(files(__package__).joinpath("palette.json").read_text(encoding="utf-8"))

COLOURS: tuple[tuple[str, str], ...] = tuple((light, dark) for light, dark in _SHARED["colours"])
"""Okabe and Ito, for light and dark pages. The first five are for controllers."""

CONTROLLERS: list[str] = _SHARED["controllers"]
KERNEL_NAMES = {"bbr": "bbr1"}
"""The kernel's `bbr` is version 1."""
OTHERS: list[int] = _SHARED["others"]
DASHES: list[str] = _SHARED["dashes"]
DIVERGING_LIGHT: list[str] = _SHARED["diverging_light"]
DIVERGING_DARK: list[str] = _SHARED["diverging_dark"]


def colour_of(controller: str) -> int | None:
    """The colour of a controller, with any options: `bbr3:loss_floor` has that of `bbr3`."""
    name = controller.split(":")[0]
    name = KERNEL_NAMES.get(name, name)
    return CONTROLLERS.index(name) if name in CONTROLLERS else None


def inks(controllers: tuple[str, str]) -> tuple[str, str]:
    """CSS classes of both arms' lines: colour by controller; equal colours get different dashes."""
    first, second = (colour_of(controller) for controller in controllers)
    free = [n for n in OTHERS if n not in (first, second)]
    first = free.pop(0) if first is None else first
    second = free.pop(0) if second is None else second
    return f"s{first} d0", f"s{second} d{1 if first == second else 0}"


def fill(ink: str) -> str:
    """The class that fills an area with the colour of a line."""
    return "f" + ink.split(" ")[0][1:]


def style() -> str:
    """The style sheet that the charts need beyond chart.css."""
    light = _rules(0, DIVERGING_LIGHT)
    dark = _rules(1, DIVERGING_DARK)
    dashes = "".join(f".d{n}{{stroke-dasharray:{dash}}}\n" for n, dash in enumerate(DASHES))
    return f"{light}{dashes}@media screen and (prefers-color-scheme:dark){{\n{dark}}}\n"


def _rules(page: int, diverging: list[str]) -> str:
    rules = [f".s{n}{{stroke:{pair[page]}}}.f{n}{{fill:{pair[page]}}}\n" for n, pair in enumerate(COLOURS)]
    for n, colour in enumerate(diverging):
        ink = "#000" if _luminance(colour) > 0.179 else "#fff"
        rules.append(f".v{n} path{{fill:{colour}}}svg.chart .v{n} text{{fill:{ink}}}\n")
    worse, better = (diverging[0], diverging[-1])
    for name, number in (("hit", 0), ("miss", 4)):
        rules.append(
            f".s-{name}{{stroke:{COLOURS[number][page]}}}.f-{name}{{fill:{COLOURS[number][page]}}}\n"
        )
    rules.append(f".worse{{color:{worse}}}.better{{color:{better}}}\n")
    rules.append(
        f".s-worse{{stroke:{worse}}}.f-worse{{fill:{worse}}}.s-better{{stroke:{better}}}"
        f".f-better{{fill:{better}}}\n"
    )
    return "".join(rules)


def _luminance(colour: str) -> float:
    """WCAG 2.1, "relative luminance". Above 0.179 black has the better contrast."""
    channels = [int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
