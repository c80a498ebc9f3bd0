"""Options of `design`."""

from __future__ import annotations

import argparse
from pathlib import Path

from uncork.experiment.options.reading import add_reading
from uncork.measure.address import source

KINDS = ("ab", "switchback", "paired-links", "steps")


def add_design(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "paths",
        nargs="*",
        metavar="PATH",
        type=source,
        help="records of the past, also s3://, gs://, az://BUCKET/PREFIX; without any, only files are made",
    )
    goal = parser.add_argument_group("effect to detect")
    goal.add_argument("--primary", metavar="METRIC:STATISTIC", help="what decides [default: throughput:p50]")
    goal.add_argument(
        "--detect", default="5%", metavar="SHARE", help="change that must not be missed [default: 5%%]"
    )
    goal.add_argument("--looks", type=int, default=1, metavar="N", help="planned looks [default: 1]")
    goal.add_argument("--since", metavar="TIME", help="use records from this time on")
    goal.add_argument("--until", metavar="TIME", help="use records before this time")
    goal.add_argument(
        "--format", choices=("human", "json"), default="human", help="what is printed [default: human]"
    )
    add_reading(parser)
    files = parser.add_argument_group("files to activate, in the directory -o")
    files.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="DIR",
        help="write policy.toml, and schedule.csv of a design in time",
    )
    files.add_argument("--kind", choices=KINDS, default="ab", help="[default: ab]")
    files.add_argument("--name", default="bbr", help="of the experiment [default: bbr]")
    files.add_argument(
        "--control",
        default="quic=cubic,tcp=cubic",
        metavar="SETTINGS",
        help="[default: quic=cubic,tcp=cubic]",
    )
    files.add_argument(
        "--treated", default="quic=bbr3,tcp=bbr", metavar="SETTINGS", help="[default: quic=bbr3,tcp=bbr]"
    )
    files.add_argument(
        "--unit",
        default="prefix",
        help="what is assigned: prefix, cookie:NAME, header:NAME [default: prefix]",
    )
    files.add_argument(
        "--share", metavar="SHARE", help="of the units that take part in an A/B experiment [default: 10%%]"
    )
    files.add_argument(
        "--key", metavar="HEX", help="32 hexadecimal digits, of your own (openssl rand -hex 16)"
    )
    files.add_argument("--listener", metavar="NAME", help="only connections of this listener, such as public")
    files.add_argument("--places", metavar="A,B", help="listeners or hosts that a design in time moves")
    files.add_argument(
        "--place-is", choices=("listener", "host"), default="listener", help="[default: listener]"
    )
    files.add_argument(
        "--start", metavar="TIME", help="start of a design in time [default: tomorrow, 00:00 UTC]"
    )
    files.add_argument(
        "--block", default="1h", metavar="TIME", help="of a switchback: 15min, 1h [default: 1h]"
    )
    files.add_argument(
        "--periods", type=int, metavar="N", help="weeks of a switchback, days of paired links [default: 2, 8]"
    )
    files.add_argument(
        "--seed", type=int, default=1, help="of the coins that order a design in time [default: 1]"
    )
