"""Where records are: paths, and addresses of object stores. Light, for the command line."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

SCHEMES: Final = ("s3://", "gs://", "az://")


@dataclass(frozen=True)
class Address:
    """Where objects are: all below a prefix, or one."""

    text: str

    def __str__(self) -> str:
        return self.text


Source = Path | Address


def source(text: str | os.PathLike[str]) -> Source:
    """A path, or the address of a store."""
    name = os.fspath(text)
    return Address(name) if name.startswith(SCHEMES) else Path(name)
