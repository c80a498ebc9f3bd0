"""What an import lost, as findings: the missing lines may be decisive."""

from typing import Final

from uncork.experiment.health.judge import graded
from uncork.experiment.result import Finding
from uncork.experiment.words import listed
from uncork.measure.sources.losses import Losses

SHARE: Final = (0.01, 0.05)
"""Of all lines, from which their loss warns and blocks. Of a loss it is not known which responses it hits."""

ONE_SIDED: Final = (0.002, 0.01)
"""By how much the arms' shares may differ."""

ORDER: Final = ("ok", "warning", "blocks")

FEWEST: Final = 10
"""Lines of an arm below which a difference is by chance."""


def lost_lines(losses: Losses, arms: tuple[str, ...]) -> Finding:
    """Lines that should be records and could not be read, in all and by arm, where their arm is known."""
    lost, share = losses.lost.total(), losses.share()
    by_arm = {arm: losses.share_of(arm) for arm in arms if losses.read[arm] or losses.lost[arm]}
    numbers = {"lost_lines": float(lost), "lost_share": share} | {
        f"lost_share_{arm}": part for arm, part in by_arm.items()
    }
    if not lost:
        return Finding("left-out lines", "ok", "All lines of the logs could be read.", numbers=numbers)
    total = lost + losses.read.total()
    sentence = f"{lost:,} of {total:,} lines ({share:.2%}) could not be read and are left out."
    apart = max(by_arm.values(), default=0.0) - min(by_arm.values(), default=0.0)
    is_by_chance = max((losses.lost[arm] for arm in by_arm), default=0) < FEWEST
    severity = max(graded(share, SHARE), "ok" if is_by_chance else graded(apart, ONE_SIDED), key=ORDER.index)
    if severity == "ok":
        return Finding("left-out lines", "ok", sentence, numbers=numbers)
    if apart >= ONE_SIDED[0] and not is_by_chance:
        sentence += " Of " + listed([f"{arm} {part:.2%}" for arm, part in by_arm.items()]) + "."
    remedy = (
        "--rejected FILE has them with their reasons: correct the mapping, or remove lines of another kind."
    )
    return Finding("left-out lines", severity, sentence, remedy, numbers)


def unread_fields(losses: Losses) -> tuple[Finding, ...]:
    """Fields that the mapping reads and no line had: a name may be wrong."""
    if not losses.unseen:
        return ()
    sentence = f"No line has {listed(losses.unseen)}, which the mapping reads."
    remedy = "Correct the name in the mapping, or leave its column out."
    return (
        Finding("mapped fields", "warning", sentence, remedy, {"unread_fields": float(len(losses.unseen))}),
    )
