"""Options that several commands share: where records are, and where results go."""

from __future__ import annotations

import argparse
from pathlib import Path

ENGINES = ("duckdb", "spark", "clickhouse")


def add_output(parser: argparse.ArgumentParser, directory: str, files: str) -> None:
    """Options of commands that write `files` into a directory, by default `directory`."""
    group = parser.add_argument_group("output")
    group.add_argument(
        "-o",
        "--output",
        default=directory,
        type=Path,
        metavar="DIR",
        help=f"directory of {files} [default: {directory}]",
    )
    group.add_argument(
        "--format", choices=("text", "json"), default="text", help="what stdout gets [default: text]"
    )
    group.add_argument("--open", action="store_true", help="open the report in a browser")


def add_reading(parser: argparse.ArgumentParser) -> None:
    """Options about where records are."""
    group = parser.add_argument_group("records")
    group.add_argument(
        "--mapping",
        metavar="NAME|FILE",
        help="read logs or tables with this mapping: nginx, haproxy, varnish, w3c, "
        "csv, cmcd ... or a TOML file of your own",
    )
    group.add_argument(
        "--networks",
        metavar="FILE",
        type=Path,
        help="names of client networks, lines such as 203.0.113.0/24,Lima: the key region",
    )
    group.add_argument(
        "--rejected",
        metavar="FILE",
        type=Path,
        help="write rows that could not be read to FILE, with reasons",
    )
    group.add_argument(
        "--unit-columns",
        metavar="COLUMNS",
        help="the columns that make a unit, such as user_id; of the laboratory seed",
    )
    group.add_argument(
        "--where",
        action="append",
        default=[],
        metavar="COLUMN=VALUE",
        help="only records with this value of a column or key; may be repeated",
    )
    group.add_argument(
        "--exclude",
        action="append",
        default=[],
        metavar="COLUMN=VALUE",
        help="without records of this value, such as of a crawler; may be repeated",
    )
    group.add_argument(
        "--engine", choices=ENGINES, default="duckdb", help="what runs the queries [default: duckdb]"
    )
    group.add_argument(
        "--spark-master", default="local-cluster[2,1,1024]", metavar="URL", help=argparse.SUPPRESS
    )
    group.add_argument(
        "--memory",
        default="3GB",
        metavar="SIZE",
        help="maximum memory of duckdb; beyond it spills [default: 3GB]",
    )
