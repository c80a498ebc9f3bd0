"""`interference --lab`: many experiments on simulated users. The true effect is known."""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

from uncork.experiment import words
from uncork.experiment.commands.common import Progress, show
from uncork.experiment.document import to_json
from uncork.experiment.laboratory.proof import Plan, Proof, document, prove
from uncork.experiment.laboratory.worlds import WORLDS
from uncork.experiment.options.others import REPETITIONS
from uncork.experiment.report import laboratory
from uncork.experiment.terminal import table
from uncork.measure import console
from uncork.measure.errors import InputError
from uncork.measure.files import write
from uncork.program import find_bin

MAX_REPETITIONS = 2_000


def run_laboratory(arguments: argparse.Namespace, command: str) -> int:
    """Simulates, carries the designs out, and writes interference.json and interference.html."""
    plan = Plan(_repetitions(arguments), arguments.seed)
    uncork, progress = Path(find_bin()), Progress()
    proofs = tuple(prove(uncork, world, plan, progress) for world in WORLDS)
    progress.done()
    text = to_json(document(proofs, plan))
    html = arguments.output / "interference.html"
    if arguments.format == "json":
        console.data(text)
    else:
        console.text("\n".join(map(_table, proofs)))
    write(arguments.output / "interference.json", text)
    write(html, laboratory.page(proofs, plan, command))
    console.note(f"page: {html}")
    if arguments.open:
        show(html)
    return 0


def _repetitions(arguments: argparse.Namespace) -> int:
    count = REPETITIONS if arguments.repetitions is None else arguments.repetitions
    if not 1 <= count <= MAX_REPETITIONS:
        raise InputError(
            f"--repetitions {count}", "out of range", f"write a number from 1 to {MAX_REPETITIONS}"
        )
    return int(count)


def _table(proof: Proof) -> str:
    truth = proof.truth.ratio
    rows = []
    for design in proof.designs:
        off, covers = laboratory.compare_with_truth(design, truth)
        rows.append([design.name, words.change(design.middle), off, covers or "–", design.estimand])
    heading = f"{proof.world.name}: all treated against none is truly {words.change(truth)}"
    headings = ["design", "mean", "off by", "holds the truth", "estimates"]
    width = shutil.get_terminal_size((100, 24)).columns
    return f"{heading}\n{table(headings, rows, width, left=1)}\n"
