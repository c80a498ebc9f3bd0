"""Names of networks from a file of the operator's own: ``203.0.113.0/24,Lima``. The longest prefix decides.

It is what a database of autonomous systems and countries is for, without one.
"""

import csv
import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from uncork.measure.errors import InputError
from uncork.measure.sources.lines import open_text

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
_Level = tuple[int, int]
"""Version and prefix length."""


@dataclass(frozen=True)
class Networks:
    """Names by network, of IPv4 and IPv6."""

    names: dict[Network, str]
    _levels: list[tuple[_Level, dict[int, str]]] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        levels: dict[_Level, dict[int, str]] = {}
        for network, name in self.names.items():
            level = levels.setdefault((network.version, network.prefixlen), {})
            level[int(network.network_address) >> (network.max_prefixlen - network.prefixlen)] = name
        object.__setattr__(self, "_levels", sorted(levels.items(), key=lambda it: -it[0][1]))

    def name(self, client: str) -> str | None:
        """Of an address or a network such as records have: the name of the smallest network around all of it.

        ``None`` if no network has it, or if the text is not an address.
        """
        try:
            network = ipaddress.ip_network(client, strict=False)
        except ValueError:
            return None
        network = _unmapped(network)
        number, bits = int(network.network_address), network.max_prefixlen
        for (version, length), of_level in self._levels:
            if version == network.version and length <= network.prefixlen:
                name = of_level.get(number >> (bits - length))
                if name is not None:
                    return name
        return None

    def of(self, name: str) -> list[Network]:
        """The networks with this name, in order."""
        return sorted((it for it, named in self.names.items() if named == name), key=_order)


def _unmapped(network: Network) -> Network:
    """IPv4 where it is written as IPv6 (RFC 4291 section 2.5.5.2)."""
    if isinstance(network, ipaddress.IPv6Network) and (mapped := network.network_address.ipv4_mapped):
        return ipaddress.ip_network((mapped, max(0, network.prefixlen - 96)), strict=False)
    return network


def _order(network: Network) -> tuple[int, int, int]:
    return network.version, int(network.network_address), network.prefixlen


def load(path: Path) -> Networks:
    """A CSV file of networks and names; it may have a header, empty lines and comments (``#``)."""
    if not path.is_file():
        raise InputError(f"--networks {path}", "no such file", "write lines such as 203.0.113.0/24,Lima")
    with open_text(path) as text:
        return parse(text, str(path))


def parse(lines: Iterable[str], place: str) -> Networks:
    """The same from lines."""
    names: dict[Network, str] = {}
    is_first = True
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.startswith("#"):
            continue
        may_be_header, is_first = is_first, False
        try:
            fields = [it.strip() for it in next(csv.reader([line]))]
            if may_be_header and not _looks_like_network(fields[0]):
                continue
            network, name = _entry(fields)
        except (ValueError, csv.Error) as error:
            raise InputError(f"{place}, line {number}", str(error), "write 203.0.113.0/24,Lima") from None
        if names.setdefault(network, name) != name:
            raise InputError(
                f"{place}, line {number}", f"{network} is already {names[network]!r}", "leave one of them out"
            )
    if not names:
        raise InputError(place, "no networks", "write lines such as 203.0.113.0/24,Lima")
    return Networks(names)


def _looks_like_network(text: str) -> bool:
    """Also where it is mistyped: the name of a column does not begin with a digit."""
    return text[:1].isdigit() or ":" in text or "/" in text


def _entry(fields: list[str]) -> tuple[Network, str]:
    if len(fields) < 2 or not fields[1]:
        raise ValueError("a network without a name")
    try:
        return _unmapped(ipaddress.ip_network(fields[0])), fields[1]
    except ValueError:
        raise ValueError(f"{fields[0]!r} is not a network") from None
