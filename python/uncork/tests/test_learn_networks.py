"""Networks as columns: the same as one by one."""

import pyarrow as pa
import pytest

from uncork.learn.networks import parse, parse_all

V4 = ["203.0.113.0/24", "10.0.0.0/8", "198.51.100.7/32"]
V6 = ["2001:db8::/32", "2001:db8:7::/48", "::/0"]
NONE = ["203.0.113.7/24", "256.0.0.0/24", "10.0.0.0/33", "somewhere", ""]


@pytest.mark.parametrize("names", [V4, V6, NONE, [*V4, *V6, *NONE], []])
def test_columns_are_what_each_network_is(names: list[str]) -> None:
    found = parse_all(pa.array(names, pa.string()))
    for at, name in enumerate(names):
        try:
            network = parse(name)
        except ValueError:
            assert found.version[at] == 0, name
            continue
        assert (found.version[at], found.length[at]) == (network.version, network.prefixlen), name
        address = int(found.high[at]) << 64 | int(found.low[at])
        assert address == int(network.network_address), name
