"""What Spotify and Verizon published, and the part of an analysis that it is compared with.

Sources: "Smoother Streaming with BBR", Spotify Engineering, 31 August 2018; "BBR evaluation at a large CDN",
Verizon Media, APNIC blog, 1 November 2019.
"""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Figure:
    """A published figure, and where its counterpart is in the result."""

    what: str
    published: str
    measure: str
    cell: str | None = None
    """The value of the cell's key; all records if ``None``."""
    range: tuple[float, float] | None = None
    """What counts as agreement, as a ratio of BBR to CUBIC."""
    is_factor: bool = False
    """Shown as a factor, not as a change in percent."""


@dataclass(frozen=True)
class Look:
    """One analysis of a story's flows."""

    title: str
    options: tuple[str, ...]
    figures: tuple[Figure, ...]


@dataclass(frozen=True)
class Story:
    """A scenario, its runs, and the analyses of them."""

    name: str
    title: str
    about: str
    lab: tuple[str, ...]
    """The scenario and what is set in it."""
    seeds: int
    looks: tuple[Look, ...]


REGIONS = ("asia-pacific", "latin-america", "europe", "north-america")
SLOWER = (1.15, 1.25)
NONE = (0.98, 1.02)


def _songs() -> tuple[Figure, ...]:
    """Spotify's figures: of all listeners, then by region."""
    everywhere = (
        Figure("stutters, all", "−6 to −10 %", "stutters:ratio", None, (0.90, 0.94)),
        Figure("bandwidth p50, all", "+5 to +7 %", "bandwidth:p50", None, (1.05, 1.07)),
        Figure("bandwidth p10, all", "+10 to +15 %", "bandwidth:p10", None, (1.10, 1.15)),
        Figure("bandwidth p01, all", "+10 to +15 %", "bandwidth:p01", None, (1.10, 1.15)),
        *(
            Figure(f"playback latency {at}, all", "no difference", f"playback_latency:{at}", None, NONE)
            for at in ("p50", "p90", "p99")
        ),
    )
    regions: list[Figure] = []
    for name in REGIONS:
        gains_much = name in ("asia-pacific", "latin-america")
        middle = ("around +10 %", (1.07, 1.13)) if gains_much else ("around +5 %", (1.03, 1.07))
        slower = ("+15 to +25 %", SLOWER) if gains_much else middle
        regions += [
            Figure(f"bandwidth p50, {name}", middle[0], "bandwidth:p50", name, middle[1]),
            Figure(f"bandwidth p10, {name}", slower[0], "bandwidth:p10", name, slower[1]),
        ]
    return (*everywhere, *regions)


SONGS = ("--by", "group", "--primary", "bandwidth:p50")


def _deep() -> list[str]:
    """No random loss, and 512 kB of buffer for all."""
    return [
        word
        for region in REGIONS
        for setting in ("loss=0%", "buffer=512kB")
        for word in ("--set", f"path.{region}.{setting}")
    ]


RATE = '"link.upstream.rate,link.upstream.buffer"'


def peru(cell: str) -> tuple[Figure, ...]:
    """While the upstream was congested: a rounded factor stands for half a unit to either side."""
    return (
        Figure(f"slower downloads (p10), {cell}", "4 times", "bandwidth:p10", cell, (3.5, 4.5), True),
        Figure(f"median download, {cell}", "twice", "bandwidth:p50", cell, (1.5, 2.5), True),
        Figure(f"stutters, {cell}", "a fifth", "stutters:ratio", cell, (1 / 5.5, 1 / 4.5), True),
    )


HALVES = (
    f'matrix.{RATE}=[{{ name = "all there", values = ["200mbit", "2MB"] }}, '
    '{ name = "a tenth left", values = ["20mbit", "200kB"] }, '
    '{ name = "a twentieth left", values = ["10mbit", "100kB"] }]'
)
HALF = 'matrix."flow.listeners.cc"=[{ name = "half and half", values = [["cubic", "bbr1"]] }]'
CONTROLLERS = "flow.client.cc,flow.pop.cc,flow.intra.cc,flow.background.cc"
LOSSES = 'matrix."path.client.loss,path.pop.loss"=[{ name = "0.1 % to clients", values = ["0.1%", "0.01%"] }]'


def _edge(background: int) -> Look:
    """All with BBR against all with CUBIC, by kind of traffic."""
    room = "has room" if background == 10 else "is full"
    half = (0.4, 0.6)
    clients = (
        Figure("to clients, 3 MB and more", "+6 to +8 %", "throughput:p50", "client", (1.06, 1.08)),
        Figure("to clients, smaller: time", "marginally less", "completion:p50", "client", (0.9, 1.0)),
    )
    inside = (
        Figure("between sites, 3 MB and more", "about half", "throughput:p50", "pop", half, True),
        Figure("within the site, 3 MB and more", "about half", "throughput:p50", "intra", half, True),
    )
    return Look(
        f"The card {room}: {background} downloads in the background.",
        (
            *("--arm", CONTROLLERS, "--control", "cubic for all", "--treated", "bbr1 for all"),
            *("--unit-columns", "seed", "--by", "group", "--where", f"flow.background.count={background}"),
        ),
        (*(clients if background == 10 else ()), *inside),
    )


STORIES = (
    Story(
        "spotify-streaming",
        "Spotify: songs to four regions",
        "`spotify-streaming`: listeners of four regions on links of their own, the same links with CUBIC and "
        "with BBRv1. All regions have the same number of listeners; Spotify's shares are not published.",
        ("spotify-streaming",),
        10,
        (Look("As assumed.", SONGS, _songs()),),
    ),
    Story(
        "spotify-streaming-deep",
        "Spotify: the same with deep buffers and no random loss",
        "`spotify-streaming` with 512 kB of buffer for all and without random loss: one of the four variants "
        "that its own page compares.",
        ("spotify-streaming", *_deep()),
        10,
        (Look("Deep buffers, no random loss.", SONGS, _songs()),),
    ),
    Story(
        "spotify-mobile",
        "Spotify: stutters on mobile links that fail",
        "On links of constant rate hardly a song stutters. `bench/spotify-mobile.toml` has made-up links "
        "that fail for 10 s in a minute. A run is the unit.",
        (str(Path(__file__).parent / "spotify-mobile.toml"),),
        300,
        (
            Look(
                "Links that fail.",
                ("--unit-columns", "seed", "--by", "group", "--primary", "stutters"),
                (
                    Figure("stutters", "−6 to −10 %", "stutters:ratio", None, (0.90, 0.94)),
                    Figure("stutters, against Asia-Pacific", "−17 %", "stutters:ratio", None, (0.81, 0.85)),
                    Figure("bandwidth p50", "+5 to +7 %", "bandwidth:p50", None, (1.05, 1.07)),
                    Figure("bandwidth p10", "+10 to +15 %", "bandwidth:p10", None, (1.10, 1.15)),
                ),
            ),
        ),
    ),
    Story(
        "spotify-incident",
        "Spotify: the congested upstream of Peru",
        "`spotify-incident`: 80 listeners, half of them with BBRv1, and 30 downloads of others share an "
        "upstream with reduced capacity. A run is the unit, because all of its flows share the link.",
        ("spotify-incident", "--set", HALVES, "--set", HALF),
        30,
        (
            Look(
                "Half of the listeners with BBRv1.",
                (
                    *("--unit-columns", "seed", "--by", RATE, "--primary", "bandwidth:p10"),
                    *("--where", "group=listeners"),
                ),
                (*peru("a tenth left"), *peru("a twentieth left")),
            ),
        ),
    ),
    Story(
        "cdn-edge",
        "Verizon: the edge of a CDN",
        "`cdn-edge`: traffic to clients, between sites and within the site behind one network card of 1 "
        "Gbit/s, everything with BBRv1 against everything with CUBIC, in runs of their own. A run is the "
        "unit. Losses are 0.1 % to clients and 0.01 % between sites.",
        ("cdn-edge", "--set", LOSSES),
        30,
        (_edge(10), _edge(30)),
    ),
)
