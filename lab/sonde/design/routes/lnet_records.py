# SPDX-License-Identifier: Apache-2.0
"""Records of LNet: routes, network interfaces, peers and policies."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class LnetRoute:
    """One LNet route: the network that it leads to, its gateway, and whether LNet calls it up (None: unknown)."""

    network: str
    gateway: str
    hops: int | None
    priority: int | None
    is_up: bool | None
    origin: str


@dataclass(frozen=True)
class LnetInterface:
    """One LNet network interface (NI): its NID, the devices below it, whether LNet calls it up (None: unknown), its
    tunables by name, its health (1000 is best), and how many messages it received and dropped (None: unknown)."""

    nid: str
    devices: tuple[str, ...]
    is_up: bool | None
    origin: str
    tunables: tuple[tuple[str, str], ...] = ()
    health: int | None = None
    received_messages: int | None = None
    dropped_messages: int | None = None


@dataclass(frozen=True)
class LnetPeer:
    """One NID of another host as this host knows it: the NID that names the host, whether LNet calls it up (None:
    unknown), the values that it shares with other peers of its kind, its health (1000 is best), how many more messages
    LNet may send to it (negative: so many wait), and the bytes that wait (None: unknown)."""

    nid: str
    primary_nid: str
    is_up: bool | None
    values: tuple[tuple[str, str], ...]
    origin: str
    health: int | None = None
    available_credits: int | None = None
    queued_bytes: int | None = None


@dataclass(frozen=True)
class LnetPolicy:
    """One policy for the choice of NIs and gateways (UDSP): its index, and the ranges of NIDs of its source, its
    destination and its gateways ("": all)."""

    number: int
    source: str
    destination: str
    gateways: str
    origin: str
