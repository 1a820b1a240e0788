# SPDX-License-Identifier: Apache-2.0
"""Ranges of IPv4 and IPv6 addresses: one address, brackets as in names, or ``FIRST .. LAST``.

``10.100.0.[91-96]`` is six addresses; ``10.128.0.1 .. 10.128.39.16`` is ten thousand; so is
``fd00:128::1 .. fd00:128::2710``.
"""

from __future__ import annotations

import ipaddress
from functools import cache

from sonde.model.errors import UserError
from sonde.model.ranges import MAX_EXPANDED_NAMES, expand_name_range

IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address
IpNetwork = ipaddress.IPv4Network | ipaddress.IPv6Network


class AddressError(UserError):
    """A malformed address or address range."""


def parse_address(address_text: str) -> IpAddress:
    """Parses one address. Raises AddressError."""
    try:
        return ipaddress.ip_address(address_text.strip())
    except ValueError:
        raise AddressError(
            f'"{address_text}" is not an IPv4 or IPv6 address; write it like 10.100.0.91 or fd00::91.'
        ) from None


@cache
def parse_network(network_text: str) -> IpNetwork:
    """Parses an address range in prefix form, like ``10.100.0.0/16``. Raises AddressError."""
    try:
        return ipaddress.ip_network(network_text.strip())
    except ValueError:
        pass
    try:
        enclosing = ipaddress.ip_network(network_text.strip(), strict=False)
    except ValueError:
        raise AddressError(
            f'"{network_text}" is not an address range; write it like 10.100.0.0/16 or fd00:100::/64.'
        ) from None
    raise AddressError(f'"{network_text}" is an address inside a range, not a range; write {enclosing}.')


@cache
def expand_address_range(range_text: str) -> tuple[str, ...]:
    """Returns every address of a range in order, in canonical form. Raises AddressError, RangeError."""
    if ".." not in range_text:
        return tuple(str(parse_address(name)) for name in expand_name_range(range_text))
    first_text, _, last_text = range_text.partition("..")
    first, last = parse_address(first_text), parse_address(last_text)
    if first.version != last.version:
        raise AddressError(f'"{range_text}" runs from IPv{first.version} to IPv{last.version}; write both ends in one.')
    count = int(last) - int(first) + 1
    if count < 1:
        raise AddressError(f'"{range_text}" runs downwards; write the smaller address first.')
    if count > MAX_EXPANDED_NAMES:
        raise AddressError(
            f'"{range_text}" stands for {count:,} addresses; more than {MAX_EXPANDED_NAMES:,} cannot be meant.'
        )
    kind = type(first)
    return tuple(str(kind(number)) for number in range(int(first), int(last) + 1))
