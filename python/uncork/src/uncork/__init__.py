"""Congestion control that you can choose, prove and ship.

`compare`, `run` and `race` simulate, in this process. `Experiment` analyses records of an experiment.
`find_bin` names the program. Wrong input raises `InputError`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from uncork.experiments import Experiment, Report
    from uncork.laboratory import Result, compare, run
    from uncork.measure.errors import InputError
    from uncork.program import find_bin
    from uncork.races import Race, race

__all__ = [
    "Experiment",
    "InputError",
    "Race",
    "Report",
    "Result",
    "__version__",
    "compare",
    "find_bin",
    "race",
    "run",
]

__version__ = "0.1.0"

_MODULES = {
    "Experiment": "uncork.experiments",
    "InputError": "uncork.measure.errors",
    "Race": "uncork.races",
    "Report": "uncork.experiments",
    "Result": "uncork.laboratory",
    "compare": "uncork.laboratory",
    "find_bin": "uncork.program",
    "race": "uncork.races",
    "run": "uncork.laboratory",
}


def __getattr__(name: str) -> Any:
    """Imports what is asked for: the engines take a second."""
    if name in _MODULES:
        try:
            module = importlib.import_module(_MODULES[name])
        except ModuleNotFoundError as error:
            from uncork.measure.errors import not_installed

            raise not_installed(error) from error
        return getattr(module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
