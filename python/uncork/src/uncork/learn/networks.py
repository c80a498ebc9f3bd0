"""Client networks as text, in the order and form that tables have."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from uncork.measure.errors import InputError

Parsed = ipaddress.IPv4Network | ipaddress.IPv6Network
Words = NDArray[np.uint64]
V4 = r"^(?P<a>\d{1,3})\.(?P<b>\d{1,3})\.(?P<c>\d{1,3})\.(?P<d>\d{1,3})/(?P<length>\d{1,2})$"


def parse(text: str) -> Parsed:
    """A network or an address. Raises ValueError for what is neither."""
    network = ipaddress.ip_network(text, strict=True)
    mapped = network.network_address.ipv4_mapped if isinstance(network, ipaddress.IPv6Network) else None
    if mapped and network.prefixlen >= 96:
        return ipaddress.ip_network(f"{mapped}/{network.prefixlen - 96}")
    return network


@dataclass(frozen=True)
class Columns:
    """Many networks; all arrays have the same shape (n,)."""

    version: Words
    """4 or 6; 0: not a network."""
    high: Words
    """Upper half of an address of IPv6."""
    low: Words
    length: Words

    def order(self) -> NDArray[np.int64]:
        """What sorts them by family, address and length."""
        return np.lexsort((self.length, self.low, self.high, self.version))

    def within(self, site: Parsed) -> NDArray[np.bool_]:
        """Which of them lie in this one."""
        address, length = int(site.network_address), site.prefixlen
        high, low = np.uint64(address >> 64), np.uint64(address & (2**64 - 1))
        before = 32 - length if site.version == 4 else 128 - length
        is_same = (self.version == site.version) & (self.length >= length)
        if before >= 64:
            is_same &= _shifted(self.high, before - 64) == _shifted(np.array([high]), before - 64)
        else:
            is_same &= self.high == high
            is_same &= _shifted(self.low, before) == _shifted(np.array([low]), before)
        return np.asarray(is_same, dtype=np.bool_)


def _shifted(words: Words, by: int) -> Words:
    return words >> np.uint64(by) if by < 64 else np.zeros_like(words)


def parse_all(names: pa.Array) -> Columns:
    """Each of them as `parse` does. IPv4 in its plain form is read in columns, all else one by one."""
    found = pc.extract_regex(names, V4)
    is_plain = np.asarray(pc.fill_null(found.is_valid(), False))
    # A null has no fields: 0 stands for them.
    fields = {
        name: np.asarray(pc.fill_null(pc.struct_field(found, name).cast(pa.uint64()), 0)) for name in "abcd"
    }
    # Arrow's own values are read-only.
    length = np.array(pc.fill_null(pc.struct_field(found, "length").cast(pa.uint64()), 0))
    low = np.zeros(len(names), dtype=np.uint64)
    for name in "abcd":
        text = pc.struct_field(found, name)
        is_number = pc.or_(pc.not_equal(pc.utf8_slice_codeunits(text, 0, 1), "0"), pc.equal(text, "0"))
        is_plain &= (fields[name] < 256) & np.asarray(pc.fill_null(is_number, False))
        low = low << np.uint64(8) | fields[name]
    is_plain &= length <= 32
    host = (np.uint64(1) << np.where(is_plain, 32 - length, 0)) - np.uint64(1)
    is_plain &= low & host == 0
    version = np.where(is_plain, np.uint64(4), np.uint64(0))
    columns = Columns(version, np.zeros_like(low), np.where(is_plain, low, 0), length)
    for at in np.flatnonzero(~is_plain).tolist():
        try:
            network = parse(str(names[at].as_py()))
        except ValueError:
            continue
        address = int(network.network_address)
        columns.version[at], columns.length[at] = network.version, network.prefixlen
        columns.high[at], columns.low[at] = address >> 64, address & (2**64 - 1)
    return columns


@cache
def _sites(sites: tuple[str, ...]) -> tuple[Parsed, ...]:
    try:
        return tuple(parse(site) for site in sites)
    except ValueError as error:
        raise InputError("--site", str(error), "write networks, such as 10.0.0.0/8") from None


def are_clients(names: pa.Array, sites: tuple[str, ...]) -> NDArray[np.bool_]:
    """Which of them are networks, and not ones between sites."""
    columns = parse_all(names)
    found = columns.version > 0
    for site in _sites(sites):
        found &= ~columns.within(site)
    return found


def around(text: str) -> list[str]:
    """All networks that contain the address, the longest first."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        raise InputError(text, "is not an address", "write one such as 203.0.113.7") from None
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped:
        address = address.ipv4_mapped
    whole = ipaddress.ip_network(address)
    return [str(whole.supernet(new_prefix=length)) for length in range(whole.prefixlen, -1, -1)]
