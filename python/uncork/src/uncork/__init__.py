"""Congestion control that you can choose, prove and ship."""

from __future__ import annotations

from typing import Any

__all__ = ["__version__", "find_bin"]

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """Imports what is asked for: the engines take a second."""
    if name == "find_bin":
        from uncork.program import find_bin

        return find_bin
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
