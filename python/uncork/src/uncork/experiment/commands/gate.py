"""`gate`: from a verdict to the file that lets a version go on to more hosts, or stops it."""

from __future__ import annotations

import argparse
import json

from uncork.experiment.commands.output import deliver
from uncork.experiment.gate import gate
from uncork.experiment.verdict import NO_VERDICT
from uncork.measure import console
from uncork.measure.errors import InputError
from uncork.measure.files import read_json


def run_gate(arguments: argparse.Namespace, _: str) -> int:
    if not arguments.version.isdecimal() or int(arguments.version) == 0:
        raise InputError("--version", f"{arguments.version!r} is not a version", "write a number, such as 7")
    result = read_json(arguments.result, "name the result.json of analyze")
    # The verdict is as old as the analysis and its records, whenever this file is made.
    ended = int(arguments.result.stat().st_mtime)
    made = gate(result, int(arguments.version), ended, str(arguments.result))
    if made is None:
        console.note(f"{arguments.result}: these records give no verdict yet, so no file is written")
        return NO_VERDICT
    deliver(json.dumps(made) + "\n", arguments.output, "verdict")
    return 0
