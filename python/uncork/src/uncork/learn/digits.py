"""Numbers in JSON: six digits, so that a file does not change with the last bits of a sum."""

from __future__ import annotations

from typing import overload


@overload
def rounded(value: float) -> float: ...
@overload
def rounded(value: object) -> object: ...
def rounded(value: object) -> object:
    """A number with a fraction to six significant digits; anything else as it is."""
    return float(f"{value:.6g}") if isinstance(value, float) else value
