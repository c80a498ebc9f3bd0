"""Options of `policy`."""

from __future__ import annotations

import argparse
from pathlib import Path


def add_policy(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("result", type=Path, metavar="RESULT", help="result.json of analyze")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="policy file [default: stdout]")
    parser.add_argument(
        "--step",
        default="1%",
        metavar="SHARE",
        help="share of the treated arm: 1%%, 10%%, 50%% [default: 1%%]",
    )
    parser.add_argument(
        "--key", required=True, metavar="HEX", help="32 hexadecimal digits (openssl rand -hex 16)"
    )
    parser.add_argument(
        "--control", metavar="SETTINGS", help="such as quic=cubic,tcp=cubic [default: tcp=CONTROLLER]"
    )
    parser.add_argument(
        "--treated", metavar="SETTINGS", help="such as quic=bbr3,tcp=bbr [default: tcp=CONTROLLER]"
    )
    parser.add_argument(
        "--unit", default="prefix", help="prefix, cookie:NAME or header:NAME [default: prefix]"
    )
