"""The options of the commands of `uncork learn`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from uncork.experiment.options.analyze import DIALECTS, SHARE
from uncork.experiment.options.reading import add_reading
from uncork.learn.defaults import CLASSES, DEFAULTS, ROUNDS, TRANSPORTS
from uncork.measure.address import source


def add_plan(one: argparse.ArgumentParser) -> None:
    _add_planning(one)
    one.add_argument(
        "--show-sql",
        metavar="DIALECT",
        choices=DIALECTS,
        help="print the query for your own engine, and end: " + ", ".join(DIALECTS),
    )


def add_run(one: argparse.ArgumentParser) -> None:
    _add_planning(one)
    loop = one.add_argument_group("loop")
    loop.add_argument("--every", default="1h", metavar="TIME", help="30s, 10min, 1h, 1d [default: 1h]")
    loop.add_argument("--rounds", type=int, metavar="N", help="end after N rounds [default: go on]")
    loop.add_argument(
        "--keep",
        type=int,
        default=ROUNDS,
        metavar="N",
        help=f"inputs of the last N rounds that changed nothing, for verify [default: {ROUNDS}]",
    )
    loop.add_argument(
        "--metrics", type=Path, metavar="FILE", help="write metrics for Prometheus's textfile collector"
    )
    fleet = one.add_argument_group("fleet")
    fleet.add_argument(
        "--publish", metavar="STORE", help="publish each active version into this store of `uncork fleet`"
    )
    fleet.add_argument(
        "--publish-key", type=Path, metavar="FILE", help="private key of the fleet's publisher (PEM)"
    )
    fleet.add_argument(
        "--holder", metavar="NAME", help="name of this planner in the store's lease [default: the host's]"
    )
    stages = "of a version [default: 1%%,10%%,50%%,100%%]"
    fleet.add_argument("--stages", default="", metavar="STAGES", help=stages)
    fleet.add_argument("--hold", default="", metavar="TIME", help="least time of a stage [default: 1h]")


def add_apply(one: argparse.ArgumentParser) -> None:
    _add_directory(one)
    one.add_argument("number", metavar="N", type=int, nargs="?", help="[default: the latest]")
    _add_key(one)


def add_rollback(one: argparse.ArgumentParser) -> None:
    _add_directory(one)
    one.add_argument("number", metavar="N", type=int, nargs="?", help="[default: the one before]")
    _add_key(one)
    one.add_argument(
        "--sign",
        metavar="FILE",
        type=Path,
        help="sign it again as a new version with this private key (PEM): servers refuse older ones",
    )


def add_explain(one: argparse.ArgumentParser) -> None:
    _add_directory(one)
    one.add_argument("address", metavar="ADDRESS")
    one.add_argument("--asn", metavar="AS", help="AS of an address without a known network: AS64500")
    one.add_argument("--country", metavar="CC", help="likewise: PE")


def add_history(one: argparse.ArgumentParser) -> None:
    _add_directory(one)


def add_pin(one: argparse.ArgumentParser) -> None:
    _add_directory(one)
    one.add_argument("entry", metavar="ENTRY", help="a network, an AS, a country, a region or '*'")
    one.add_argument("arm", metavar="ARM", nargs="?", help="left out: no longer pinned")


def add_freeze(one: argparse.ArgumentParser) -> None:
    _add_directory(one)
    one.add_argument("entry", metavar="ENTRY", help="a network, an AS, a country, a region or '*'")
    one.add_argument("--off", action="store_true", help="no longer frozen")


def add_verify(one: argparse.ArgumentParser) -> None:
    _add_directory(one)
    one.add_argument(
        "number", metavar="N", type=int, nargs="?", help="this version alone [default: all, and all rounds]"
    )
    _add_key(one)


def add_report(one: argparse.ArgumentParser) -> None:
    _add_directory(one)
    page_file = Path("learned.html")
    one.add_argument(
        "-o", "--output", metavar="FILE", type=Path, default=page_file, help=f"[default: {page_file}]"
    )
    one.add_argument(
        "--oracle",
        metavar="FILE",
        type=Path,
        help="the truth of a simulated Internet (uncork lab internet oracle): shows the regret",
    )


def add_calibrate(one: argparse.ArgumentParser) -> None:
    _add_directory(one)
    one.add_argument("flows", metavar="FLOWS", type=Path, help="flows.parquet of the twin's run")
    one.add_argument("-o", "--output", metavar="FILE", type=Path, default=Path("twin.html"))
    one.add_argument(
        "--transport",
        choices=TRANSPORTS,
        help="transport of the controllers in the records [default: quic, if the arms have such]",
    )
    one.add_argument("--prior", metavar="FILE", type=Path, help="write what it expects of other ASes")


def add_demo(one: argparse.ArgumentParser) -> None:
    one.add_argument("-o", "--output", required=True, metavar="DIR", type=Path)
    one.add_argument("--days", type=int, default=7, metavar="N", help="[default: 7]")


def _add_directory(one: argparse.ArgumentParser) -> None:
    one.add_argument("directory", metavar="DIR", type=Path, help="directory of versions")


def _add_key(one: argparse.ArgumentParser) -> None:
    one.add_argument(
        "--key",
        metavar="FILE",
        type=Path,
        help="versions must be signed by the owner of this public key (PEM)",
    )


def _add_planning(one: argparse.ArgumentParser) -> None:
    """The options of a plan."""
    one.add_argument(
        "paths",
        nargs="*",
        metavar="PATH",
        type=source,
        help="files or directories of records, or s3://, gs://, az://BUCKET/PREFIX",
    )
    one.add_argument("-o", "--output", type=Path, metavar="DIR", help="directory of versions")
    one.add_argument(
        "--evidence",
        type=Path,
        metavar="FILE",
        help="in place of records: the result of the query of plan --show-sql, as Parquet",
    )
    one.add_argument(
        "--forget-options",
        action="store_true",
        help="defaults for all options that are not given, in place of the values of the last plan in DIR",
    )
    what = one.add_argument_group("experiment")
    _add_saved(what, "--experiment", metavar="NAME", help="name of the experiment")
    _add_saved(what, "--control", metavar="ARM", help="the arm that is known")
    _add_saved(what, "--treated", metavar="ARM", help="the arm that may be better")
    several = "one of several arms that may be better, in place of --treated and its settings"
    _add_saved(what, "--arm", metavar="NAME:SETTINGS", help=several)
    _add_saved(what, "--share", metavar="SHARE", help=SHARE)
    what.add_argument("--until", metavar="DAY", help="use records before this day [default: all]")
    rule = one.add_argument_group("decisions")
    _add_saved(rule, "--worth", metavar="SHARE", help="minimum expected lift worth a change")
    _add_saved(rule, "--tolerate", metavar="SHARE", help="maximum loss of any client network")
    _add_saved(rule, "--sure", metavar="P", help="probability to switch on")
    harmed = "maximum traffic that is worse than --tolerate, as sure as --sure"
    _add_saved(rule, "--harmed", metavar="SHARE", help=harmed)
    _add_saved(rule, "--half-life", metavar="DAYS", help="of evidence")
    _add_saved(rule, "--dwell", metavar="DAYS", help="between changes")
    _add_saved(rule, "--changed", metavar="SHARE", help="maximum traffic that changes in a day")
    confirm = "maximum share of an AS that changes before a switchback confirms it; 100%: it needs none"
    _add_saved(rule, "--confirm", metavar="SHARE", help=confirm)
    _add_saved(rule, "--guardrail", metavar="METRIC=LIMIT", help="a ratio that must not get worse")
    prior_help = "what a calibrated twin expects of ASes without data (calibrate --prior)"
    _add_saved(rule, "--prior", metavar="FILE", help=prior_help)
    files = one.add_argument_group("policy")
    secret = "32 hexadecimal digits [default: UNCORK_KEY, or that of the active version]"
    files.add_argument("--key", metavar="HEX", help=secret)
    files.add_argument(
        "--sign", metavar="FILE", type=Path, help="sign versions with this Ed25519 private key (PEM)"
    )
    _add_saved(files, "--control-settings", metavar="SETTINGS", help="of the control arm's connections")
    _add_saved(files, "--treated-settings", metavar="SETTINGS", help="of the treated arm's connections")
    unit = "of the random share: cookie:NAME, header:NAME or prefix, which learns by AS only"
    _add_saved(files, "--unit", metavar="UNIT", help=unit)
    _add_saved(files, "--rules", metavar="FILE", help="rules of your own, which come first")
    _add_saved(files, "--listener", metavar="NAME", help="only connections of this listener")
    _add_saved(files, "--place", choices=("listener", "host"), help="column that names the PoP")
    _add_saved(files, "--places", metavar="N", help="only the N places with most bytes have tables")
    only = "let these objects decide for all connections: for uncork steer, which knows no sizes"
    _add_saved(files, "--only", choices=CLASSES, help=only)
    _add_saved(files, "--random", metavar="SHARE", help="share that stays random")
    _add_saved(files, "--holdback", metavar="SHARE", help="share that never changes")
    _add_saved(files, "--ttl", metavar="DAYS", help="until the table expires")
    site = "between sites, never learned; 'none': there is none"
    _add_saved(files, "--site", metavar="NETWORK", help=site)
    add_reading(one)


def _add_saved(group: argparse._ArgumentGroup, flag: str, help: str, **more: Any) -> None:
    """Adds one of these options. Its value is None unless it is given."""
    default = DEFAULTS[flag.removeprefix("--").replace("-", "_")]
    if isinstance(default, list):
        more["action"] = "append"
    elif not isinstance(default, str):
        more["type"] = type(default)
    if isinstance(default, float):
        help += f" [default: {default:g}]"
    elif default:
        help += f" [default: {', '.join(default) if isinstance(default, list) else default}]"
    group.add_argument(flag, help=help.replace("%", "%%"), **more)
