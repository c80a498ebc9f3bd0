"""Did an arm fall back to another controller? By the controllers in use, where the chosen ones are unknown.

A route may lock its controller, or the kernel lack it. Such an arm is diluted by records of the other one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from uncork.experiment import words
from uncork.experiment.health.judge import AGAINST, graded
from uncork.experiment.result import Finding

NAME: Final = "compliance"


def check_fallback(used: Mapping[str, Mapping[str, int]]) -> Finding | None:
    """`used`: records by arm and controller; those without a controller do not count. None: none has any.

    An arm with the name of one of its controllers was to run that one, so the records of others are a fault.
    Any other arm may mix controllers by its policy.
    """
    known = {arm: {cc: n for cc, n in seen.items() if cc and n} for arm, seen in used.items()}
    known = {arm: seen for arm, seen in known.items() if seen}
    if not known:
        return None
    wanted = {arm: arm if arm in seen else max(seen, key=lambda cc: seen[cc]) for arm, seen in known.items()}
    shares = {arm: 1 - seen[wanted[arm]] / sum(seen.values()) for arm, seen in known.items()}
    worst = max(shares, key=lambda arm: shares[arm])
    numbers = {f"compliant_share_{arm}": 1 - share for arm, share in shares.items()}
    severity = graded(shares[worst], AGAINST)
    if severity == "ok":
        return Finding(NAME, "ok", "Each arm runs one controller.", "", numbers)
    others = words.listed(sorted(set(known[worst]) - {wanted[worst]}))
    what = f"{shares[worst]:.1%} of the records ran another controller than {wanted[worst]}"
    sentence = f"Of the arm {worst}, {what}: {others}."
    if wanted[worst] != worst:
        remedy = "Fine if the policy of the arm mixes controllers; the verdict is then about the arm."
        return Finding(NAME, "warning", sentence, remedy, numbers)
    remedy = "A route may lock its controller (congctl lock), or the kernel lack it: see cc."
    return Finding(NAME, severity, sentence, remedy, numbers)
