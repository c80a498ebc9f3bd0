"""Proof on simulated users that share links: pytest -m proof tests/proof_interference.py -s

It takes 8 minutes of CPU time, and proves what docs/evidence/interference.md reports.
"""

from pathlib import Path

import pytest

from capability import not_run
from test_design import uncork
from uncork.experiment.laboratory.proof import Plan, Proof, prove
from uncork.experiment.laboratory.worlds import CONTESTED, LOSSY, World

pytestmark = pytest.mark.proof

REPETITIONS = 200


def proved(world: World) -> tuple[Proof, dict[str, float]]:
    """A world, and the share of the repetitions in which each design holds its truth."""
    program = uncork()
    if program is None:
        not_run("programs", "build it (cargo build --release --features full), or set UNCORK to its path")
    proof = prove(Path(str(program)), world, Plan(REPETITIONS, seed=1))
    truth = proof.truth.ratio
    print(f"\n{world.name}: truth {truth:.4f}")
    for design in proof.designs:
        print(f"{design.name}: mean {design.middle:.4f}, holds {design.covered(truth)} of {REPETITIONS}")
    return proof, {design.key: design.covered(truth) / REPETITIONS for design in proof.designs}


def test_on_a_contested_link_only_the_designs_for_the_total_effect_hold_it() -> None:
    proof, shares = proved(CONTESTED)
    assert proof.truth.ratio < 1 < proof.design("ab").middle
    assert shares["ab"] <= 0.05
    assert shares["switchback"] >= 0.93
    assert shares["links"] >= 0.93


def test_on_lines_of_their_own_all_designs_hold_the_truth() -> None:
    _, shares = proved(LOSSY)
    assert shares["ab"] >= 0.93
    assert shares["switchback"] >= 0.93
    assert shares["links"] >= 0.93
