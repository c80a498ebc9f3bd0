"""Names of arms that are one arm under two names."""

from __future__ import annotations

from collections.abc import Sequence


def same_arm(arms: Sequence[str]) -> str:
    """A remedy where names differ by case or blanks only; else empty."""
    seen: dict[str, str] = {}
    for arm in arms:
        plain = "".join(arm.split()).casefold()
        if plain in seen:
            return (
                f"{seen[plain]!r} and {arm!r} differ by case or blanks only: map them to one name, "
                f'arm = {{ from = "FIELD", names = {{ "{arm}" = "{seen[plain]}" }} }}'
            )
        seen[plain] = arm
    return ""
