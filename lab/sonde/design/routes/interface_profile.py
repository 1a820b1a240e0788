# SPDX-License-Identifier: Apache-2.0
"""The interface that a configuration file is for."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class InterfaceProfile:
    """One configuration file of an interface: the program that reads it, the device or the pattern of devices (""
    where it names none), the option with the link address that the device must have, and that address ("": any),
    whether it is applied at the start, whether it gives the device another link address, and the addresses that it
    sets, with prefix ("dhcp": one by DHCP), whether it asks for one of IPv4 by DHCP besides, the gateways of its
    default routes, and the options of [Match] in systemd.network(5) that choose its adapter where no name does."""

    origin: str
    manager: str
    device: str
    address_option: str = ""
    link_address: str = ""
    is_started: bool = True
    has_other_link_address: bool = False
    addresses: tuple[str, ...] = ()
    priority: int = 0
    asks_dhcp: bool = False
    gateways: tuple[str, ...] = ()
    selectors: tuple[tuple[str, str], ...] = ()

    @property
    def versions(self) -> tuple[int, ...]:
        """The IP versions of its addresses; DHCP counts as IPv4."""
        return tuple(sorted({6 if ":" in address else 4 for address in self.addresses}))
