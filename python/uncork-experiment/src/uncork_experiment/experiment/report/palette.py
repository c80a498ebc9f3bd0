"""Colours: those of the laboratory's reports (crates/lab/report/src/svg/palette.rs, lab/inks.rs,
svg/heat_colours.rs).

A controller has one colour on every page. Better is green and worse is purple (ColorBrewer PRGn): never the
red of a failed check. A test compares these tables with the Rust sources.
"""

from __future__ import annotations

COLOURS = (
    ("#0072b2", "#56b4e9"),
    ("#d55e00", "#e69f00"),
    ("#009e73", "#2fc499"),
    ("#cc79a7", "#cc79a7"),
    ("#e69f00", "#f0e442"),
    ("#56b4e9", "#3d8fc7"),
    ("#666666", "#b0b0b0"),
)
"""Okabe and Ito, for light and dark pages. The first five are for controllers."""

CONTROLLERS = ("cubic", "bbr1", "bbr3", "bbr2", "reno")
KERNEL_NAMES = {"bbr": "bbr1"}
"""The kernel's `bbr` is version 1."""

OTHERS = (5, 6, 4, 3, 2, 1, 0)
DASHES = ("none", "7 4.5", "0.5 4", "9 4.5 0.5 4.5", "14 5.5")

DIVERGING_LIGHT = (
    "#762a83",
    "#90549a",
    "#a97bb0",
    "#c2a3c6",
    "#dbcbdc",
    "#f4f4f2",
    "#cbdbcb",
    "#a2c2a5",
    "#79a980",
    "#4f905b",
    "#1b7837",
)
DIVERGING_DARK = (
    "#d09bdf",
    "#ab83b9",
    "#866b94",
    "#645571",
    "#433f50",
    "#242a31",
    "#334743",
    "#426554",
    "#528566",
    "#61a678",
    "#71c98b",
)
STEPS = len(DIVERGING_LIGHT)


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


def _rules(page: int, diverging: tuple[str, ...]) -> str:
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
