# SPDX-License-Identifier: Apache-2.0
"""The interface that a configuration file is for."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class InterfaceProfile:
    """One configuration file of an interface: the program that reads it, the device or the pattern of devices (""
    where it names none), the option with the link address that the device must have, and that address ("": any),
    whether it is applied at the start, whether it gives the device another link address, and whether it sets
    addresses of IPv4 and IPv6."""

    origin: str
    manager: str
    device: str
    address_option: str = ""
    link_address: str = ""
    is_started: bool = True
    has_other_link_address: bool = False
    versions: tuple[int, ...] = ()
    priority: int = 0
