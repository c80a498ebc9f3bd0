"""Where the program `uncork` is that this package came with."""

from __future__ import annotations

import os
import shutil
import sysconfig
from pathlib import Path

from uncork.measure.errors import InputError


def find_bin() -> str:
    """The path of the program: what the environment variable `UNCORK` names, else the program installed
    with this package, else the first on the `PATH`.

    Raises `InputError` if there is none.
    """
    if named := os.environ.get("UNCORK"):
        if found := shutil.which(named):
            return found
        raise InputError(f"UNCORK={named}", "program not found", "set UNCORK to its path, or unset it")
    for folder in _folders():
        if found := shutil.which("uncork", path=folder):
            return found
    if found := shutil.which("uncork"):
        return found
    raise InputError("PATH", "program `uncork` not found", "build it, and set UNCORK to its path")


def _folders() -> list[str]:
    """Where installers put programs: of this environment, of the user, and of `pip install --target`."""
    user = sysconfig.get_preferred_scheme("user")
    target = Path(__file__).parent.parent / "bin"
    return [sysconfig.get_path("scripts"), sysconfig.get_path("scripts", user), str(target)]
