# SPDX-License-Identifier: Apache-2.0
"""Network addresses in ranges, IPv4 and IPv6: one address, brackets as in names, or from one to another.

``10.100.0.[91-96]`` is six addresses; ``10.128.0.1 .. 10.128.39.16`` is ten thousand; so is
``fd00:128::1 .. fd00:128::2710``.
"""

from __future__ import annotations

import ipaddress
from functools import cache

from sonde.model.errors import UserError
from sonde.model.ranges import MOST_NAMES, expand

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class AddressError(UserError):
    """A text that is no address, or a range of them that is none."""


def address(text: str) -> Address:
    """One address. Raises AddressError."""
    try:
        return ipaddress.ip_address(text.strip())
    except ValueError:
        raise AddressError(f'"{text}" is not an IPv4 or IPv6 address; write it like 10.100.0.91 or fd00::91.') from None


@cache
def network(text: str) -> Network:
    """An address range in prefix form, like ``10.100.0.0/16``. Raises AddressError."""
    try:
        return ipaddress.ip_network(text.strip())
    except ValueError:
        pass
    try:
        loose = ipaddress.ip_network(text.strip(), strict=False)
    except ValueError:
        raise AddressError(f'"{text}" is not an address range; write it like 10.100.0.0/16 or fd00:100::/64.') from None
    raise AddressError(f'"{text}" is an address inside a range, not a range; write {loose}.')


@cache
def addresses(text: str) -> tuple[str, ...]:
    """Every address that `text` stands for, in order, as programs print it. Raises AddressError, RangeError."""
    if ".." not in text:
        return tuple(str(address(one)) for one in expand(text))
    first_text, _, last_text = text.partition("..")
    first, last = address(first_text), address(last_text)
    if first.version != last.version:
        raise AddressError(f'"{text}" runs from IPv{first.version} to IPv{last.version}; write both ends in one.')
    count = int(last) - int(first) + 1
    if count < 1:
        raise AddressError(f'"{text}" runs downwards; write the smaller address first.')
    if count > MOST_NAMES:
        raise AddressError(f'"{text}" stands for {count:,} addresses; more than {MOST_NAMES:,} cannot be meant.')
    kind = type(first)
    return tuple(str(kind(number)) for number in range(int(first), int(last) + 1))
