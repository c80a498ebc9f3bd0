"""Options of `import`, `export` and `interference`."""

from __future__ import annotations

import argparse
from pathlib import Path

from uncork.experiment.options.analyze import add_comparison, add_rules
from uncork.experiment.options.reading import add_output, add_reading
from uncork.measure.address import source
from uncork.measure.mappings import MAPPINGS

REPETITIONS = 20


def add_import(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "paths", nargs="+", metavar="LOG", type=Path, help="logs, also compressed ones, or directories"
    )
    parser.add_argument(
        "--mapping", required=True, metavar="NAME|FILE", help=f"{', '.join(MAPPINGS)}, or a TOML file"
    )
    parser.add_argument(
        "-o", "--output", required=True, type=Path, metavar="DIR", help="directory of the Parquet files"
    )
    parser.add_argument(
        "--networks",
        type=Path,
        metavar="FILE",
        help="names of client networks, lines such as 203.0.113.0/24,Lima: the column region",
    )
    parser.add_argument(
        "--join",
        nargs="+",
        type=Path,
        metavar="RECORDS",
        help="records of uncork steer record --client-ports: each line gets the arm of its connection",
    )
    parser.add_argument(
        "--rejected",
        type=Path,
        metavar="FILE",
        help="rows that could not be read, with reasons [default: DIR.rejected.jsonl]",
    )


def add_growthbook(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("paths", nargs="+", metavar="PATH", type=source, help="records, as of analyze")
    parser.add_argument(
        "-o", "--output", default=Path("growthbook"), type=Path, metavar="DIR", help="[default: growthbook]"
    )
    parser.add_argument(
        "--datasource", default="DATASOURCE_ID", metavar="ID", help="id of the data source in GrowthBook"
    )
    add_comparison(parser)
    add_rules(parser)
    add_reading(parser)


def add_interference(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seed", type=int, default=1, help="[default: 1]")
    parser.add_argument(
        "--lab", action="store_true", help="users simulated by `uncork lab`, in place of made-up arithmetic"
    )
    parser.add_argument(
        "--repetitions",
        type=int,
        metavar="N",
        help=f"with --lab: how often each design is carried out [default: {REPETITIONS}]",
    )
    add_output(parser, "interference", "interference.json and interference.html")
