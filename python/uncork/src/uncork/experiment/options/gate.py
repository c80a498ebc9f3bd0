"""Options of `gate`."""

from __future__ import annotations

import argparse
from pathlib import Path


def add_gate(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("result", type=Path, metavar="RESULT", help="result.json of analyze")
    parser.add_argument(
        "--version", required=True, metavar="N", help="version of the fleet that the records are about"
    )
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="verdict file [default: stdout]")
