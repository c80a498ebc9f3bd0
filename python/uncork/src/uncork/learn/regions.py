"""Names of client networks, from a file of the operator's own: a level of the tree without a database."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from ipaddress import ip_network
from pathlib import Path

from uncork.measure.sources import networks

Regions = Mapping[str, str]
"""Name by network. The longest prefix decides."""


def load_regions(file: Path) -> Regions:
    """The names in the file."""
    return {str(network): name for network, name in networks.load(file).names.items()}


def names_of(clients: Iterable[str], regions: Regions) -> list[str]:
    """The name of each address or network; empty if it has none."""
    known = networks.Networks({ip_network(network): name for network, name in regions.items()})
    return [known.name(client) or "" for client in clients]
