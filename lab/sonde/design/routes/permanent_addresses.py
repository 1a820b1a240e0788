# SPDX-License-Identifier: Apache-2.0
"""Which interface has which link address from its maker."""

from __future__ import annotations

from sonde.design.routes.host_tables import HostTables
from sonde.design.routes.interface_details import LinkDetails

# Adapters of InfiniBand keep the last 8 bytes of their 20 only.
_FIXED_INFINIBAND_CHARACTERS = 23
_INFINIBAND_BYTES = 20


def get_permanent_address(device: str, host_tables: HostTables) -> str:
    """The link address that an adapter has from its maker; "" where it is unknown, as of a port of a bond, which has
    the address of the bond, and of a virtual device."""
    details = host_tables.link_details.get(device, LinkDetails())
    address = host_tables.permanent_addresses.get(device, "") or details.permanent_address
    is_virtual = bool(details.kind and details.kind != "ipoib")
    if not address and not details.is_bond_port and not is_virtual:
        address = details.link_address
    return address.lower() if address.strip("0:") else ""


def find_owner_of_address(link_address: str, host_tables: HostTables) -> str:
    """The interface whose adapter has a link address; "" for none."""
    expected = shorten_link_address(link_address)
    devices = dict.fromkeys((*host_tables.link_details, *host_tables.permanent_addresses))
    return next(
        (each for each in devices if shorten_link_address(get_permanent_address(each, host_tables)) == expected), ""
    )


def shorten_link_address(link_address: str) -> str:
    """The part of a link address that its adapter keeps."""
    return link_address[-_FIXED_INFINIBAND_CHARACTERS:] if is_infiniband_address(link_address) else link_address


def is_infiniband_address(link_address: str) -> bool:
    """Whether a link address is one of IPoIB, by its length."""
    return len(link_address.split(":")) == _INFINIBAND_BYTES
