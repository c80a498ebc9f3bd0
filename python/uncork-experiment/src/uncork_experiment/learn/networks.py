"""Client networks as text, in the order and form that tables have."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from functools import lru_cache

from uncork_experiment.errors import InputError

Parsed = ipaddress.IPv4Network | ipaddress.IPv6Network


@lru_cache(maxsize=2_000_000)
def parse(text: str) -> Parsed:
    """A network or an address. Raises ValueError for what is neither."""
    network = ipaddress.ip_network(text, strict=True)
    mapped = network.network_address.ipv4_mapped if isinstance(network, ipaddress.IPv6Network) else None
    if mapped and network.prefixlen >= 96:
        return ipaddress.ip_network(f"{mapped}/{network.prefixlen - 96}")
    return network


def order(text: str) -> tuple[int, int, int]:
    """Sorts by family, address and length."""
    network = parse(text)
    return network.version, int(network.network_address), network.prefixlen


@lru_cache(maxsize=64)
def _sites(sites: Sequence[str]) -> tuple[Parsed, ...]:
    try:
        return tuple(parse(site) for site in sites)
    except ValueError as error:
        raise InputError("--site", str(error), "write networks, such as 10.0.0.0/8") from None


def is_client(text: str, sites: tuple[str, ...]) -> bool:
    """Whether this is a network, and not one between sites."""
    try:
        network = parse(text)
    except ValueError:
        return False
    return not any(site.version == network.version and network.subnet_of(site) for site in _sites(sites))  # type: ignore[arg-type]


def of_address(text: str, known: Sequence[str]) -> str | None:
    """The longest of the known networks that contains the address."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        raise InputError(text, "is no address", "write one such as 203.0.113.7") from None
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped:
        address = address.ipv4_mapped
    around = [name for name in known if address in parse(name)]
    return max(around, key=lambda name: parse(name).prefixlen, default=None)
