"""Options of `analyze` and `demo`."""

from __future__ import annotations

import argparse
from pathlib import Path

from uncork.experiment.options.reading import add_output, add_reading
from uncork.measure.address import source

DIALECTS = (
    "duckdb",
    "pyspark",
    "databricks",
    "clickhouse",
    "trino",
    "athena",
    "bigquery",
    "snowflake",
    "postgres",
)


def add_analyze(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "paths",
        nargs="*",
        metavar="PATH",
        type=source,
        help="records: Parquet, JSON lines, logs, directories, or s3://, gs://, az://BUCKET/PREFIX",
    )
    parser.add_argument(
        "--by",
        metavar="KEYS",
        help="decide by these, most important first: region, country, asn, size_class, "
        "protocol, host, listener ... or any column [default: region,asn,size_class]",
    )
    add_comparison(parser)
    add_rules(parser)
    add_reading(parser)
    add_output(parser, "experiment", "result.json and report.html")
    following = parser.add_argument_group("records that grow")
    following.add_argument(
        "--follow",
        action="store_true",
        help="analyse again as records arrive; stop when a guardrail breaks, or at a look of --look-at",
    )
    following.add_argument(
        "--look-at",
        metavar="TIME,...",
        help="planned looks, evenly spaced: --follow ends at the first that has a verdict, at the latest at "
        "the last",
    )
    following.add_argument(
        "--every", default=30.0, type=float, metavar="SECONDS", help="look this often [default: 30]"
    )
    following.add_argument("--rounds", type=int, metavar="N", help="end after N analyses [default: go on]")
    parser.add_argument(
        "--show-sql",
        metavar="DIALECT",
        choices=DIALECTS,
        help="print the queries for your own engine, and end: " + ", ".join(DIALECTS),
    )


SHARE = "planned share of treated units, of both arms [default: arm_propensity, else equal arms]"


def add_comparison(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("what is compared")
    group.add_argument(
        "--control", metavar="ARM", help="the arm to compare with [default: control, or the one with CUBIC]"
    )
    group.add_argument("--treated", metavar="ARM", help="the other arm [default: the only other one]")
    group.add_argument("--experiment", metavar="NAME", help="where records have several")
    group.add_argument(
        "--share",
        metavar="SHARE",
        help=SHARE,
    )
    group.add_argument(
        "--arm", default="arm", metavar="COLUMN", help="column of the arms; cc where no policy assigned any"
    )
    group.add_argument(
        "--calendar", type=Path, metavar="FILE", help="schedule.csv of a switchback, paired links or steps"
    )
    group.add_argument(
        "--place",
        default="listener",
        metavar="KEY",
        help="what the calendar calls a place [default: listener]",
    )
    group.add_argument(
        "--since", metavar="TIME", help="from this time on, such as 2026-11-02 or 2026-11-02T18:00Z"
    )
    group.add_argument("--until", metavar="TIME", help="before this time")
    group.add_argument(
        "--scope", choices=("response", "connection"), default="response", help=argparse.SUPPRESS
    )


def add_rules(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("rules, to be declared before the data is looked at")
    group.add_argument("--primary", metavar="METRIC:STATISTIC", help="what decides [default: throughput:p50]")
    group.add_argument(
        "--guardrail",
        action="append",
        metavar="METRIC[:STATISTIC]=LIMIT",
        help="how much worse something may "
        "get: retransmitted=2pp, first_byte:p90=10%%; may be repeated, and replaces the default ones",
    )
    group.add_argument(
        "--worth", default="1%", metavar="SHARE", help="least gain that is worth a change [default: 1%%]"
    )
    group.add_argument(
        "--detect", default="5%", metavar="SHARE", help="change that must not be missed [default: 5%%]"
    )
    group.add_argument(
        "--look", metavar="K/N", help="this is look K of N planned ones: O'Brien-Fleming boundaries"
    )
    group.add_argument(
        "--no-past", action="store_true", help="do not adjust by the time before the switch (CUPED)"
    )


def add_demo(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seed", type=int, default=1, help="of the made-up records [default: 1]")
    parser.add_argument(
        "--scale", type=float, default=1.0, help="more or fewer clients; 1 is about 330,000 records"
    )
    parser.add_argument("--records", type=Path, metavar="DIR", help="keep the made-up records in DIR")
    add_output(parser, "experiment", "result.json and report.html")
