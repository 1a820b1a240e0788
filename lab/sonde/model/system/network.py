# SPDX-License-Identifier: Apache-2.0
"""Networks, links and paths; nodes, routers and servers: all parts that transfer bytes but do not store them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sonde.model.system import parameters
from sonde.model.tables.members import (
    declare_choice,
    declare_choices,
    declare_flag,
    declare_parameters,
    declare_quantity,
    declare_rates,
    declare_references,
    declare_settings,
    declare_tables,
    declare_text,
    declare_texts,
)
from sonde.model.tables.quantity import SOURCE_STATUSES, Quantity, ReadWriteRates

_PART_ID_PATTERN = r"[A-Za-z0-9][A-Za-z0-9_.:,+\[\]-]*"
NETWORK_KINDS = (
    "aries",
    "gemini",
    "seastar",
    "slingshot",
    "infiniband",
    "omni-path",
    "ethernet",
    "fibre-channel",
    "sas",
    "pcie",
    "nvme-of",
    "other",
)


@dataclass(frozen=True, kw_only=True)
class SystemPart:
    """Members that every part may have."""

    id: str = declare_text(
        "the name of the part, or a range like oss[001-036] for many alike", required=True, pattern=_PART_ID_PATTERN
    )
    group: str = declare_text(
        "a name for all parts of this table together, usable wherever an id is", pattern=r"[^\[\]\s]+"
    )
    title: str = declare_text("words for people")
    source: str = declare_text("where the numbers of this table come from, unless one says otherwise")
    status: str = declare_choice("how sure the numbers of this table are", SOURCE_STATUSES)
    notes: tuple[str, ...] = declare_texts("what a reader must know: contradictions, guesses, conventions")


@dataclass(frozen=True, kw_only=True)
class Network(SystemPart):
    """A network: what its links have in common, the addresses on it, its LNet name."""

    kind: str = declare_choice("technology", NETWORK_KINDS, required=True)
    addresses: tuple[str, ...] = declare_texts("address ranges, like 10.100.0.0/16 or fd00:100::/64")
    lnet: str = declare_text("LNet network, like o2ib1", pattern="[a-z]+[a-z0-9]*?[0-9]*")
    rate: ReadWriteRates | None = declare_rates("of one link")
    latency: Quantity | None = declare_quantity("duration", "one way, of a small message")
    mtu: Quantity | None = declare_quantity("size", "largest packet")
    duplex: str = declare_choice("full: each direction has this rate; half: both share it", ("full", "half"))
    topology: str = declare_text("shape in words: dragonfly, fat tree")
    bisection: Quantity | None = declare_quantity("rate", "rate between two halves")
    settings: Mapping[str, str | int | float | bool] | None = declare_settings(
        "tuning: connected mode, adaptive routing"
    )
    model: Mapping[str, Quantity] | None = declare_parameters(
        "parameters of performance models", parameters.NETWORK_PARAMETERS
    )


@dataclass(frozen=True, kw_only=True)
class Link(SystemPart):
    """A connection between two parts, of any kind: a host channel, a cable, a bus."""

    near: tuple[str, ...] = declare_references("the part at the end that is nearer to the application", required=True)
    far: tuple[str, ...] = declare_references("the part at the other end", required=True)
    network: tuple[str, ...] = declare_references("the network it belongs to", "networks")
    rate: ReadWriteRates | None = declare_rates("of one link")
    count: Quantity | None = declare_quantity("count", "parallel connections", min_value=1)
    latency: Quantity | None = declare_quantity("duration", "one way")
    duplex: str = declare_choice("full: each direction has this rate; half: both share it", ("full", "half"))
    model: Mapping[str, Quantity] | None = declare_parameters(
        "parameters of performance models", parameters.NETWORK_PARAMETERS
    )


@dataclass(frozen=True, kw_only=True)
class StoragePath(SystemPart):
    """A way to a controller, LUN or target: the links it takes and how it is used."""

    to: tuple[str, ...] = declare_references(
        "what is reached", "controllers", "luns", "targets", "drives", required=True
    )
    links: tuple[str, ...] = declare_references("the links, near the application first", "links", allows_several=True)
    controller: tuple[str, ...] = declare_references("the controller it passes", "controllers")
    preference: str = declare_choice(
        "used first, or when the primary ones fail", ("primary", "alternate"), default_word="primary"
    )
    state: str = declare_choice("what it was doing when described", ("active", "standby", "failed"))
    label: str = declare_text("name in the site's tools, like CTLR-A/1 or fc2d0L0")
    model: Mapping[str, Quantity] | None = declare_parameters(
        "parameters of performance models", parameters.NETWORK_PARAMETERS
    )


@dataclass(frozen=True, kw_only=True)
class Interface:
    """A place where a host joins a network."""

    network: tuple[str, ...] = declare_references("the network", "networks", required=True)
    device: str = declare_text("name on the host, like ib0 or ipogif0")
    addresses: tuple[str, ...] = declare_texts("one for each host: 10.100.0.[91-96], or FIRST .. LAST")
    nids: tuple[str, ...] = declare_texts(
        "LNet ids, one for each host, where they do not follow from addresses: [0-5575]@gni"
    )
    prefix: Quantity | None = declare_quantity("count", "length of the prefix in bits, if not that of the network")
    rate: ReadWriteRates | None = declare_rates("if not that of the network")
    count: Quantity | None = declare_quantity("count", "how many of them", min_value=1)
    mtu: Quantity | None = declare_quantity("size", "largest packet, if not that of the network")


@dataclass(frozen=True, kw_only=True)
class Host(SystemPart):
    """Members that nodes, routers and servers share."""

    sockets: Quantity | None = declare_quantity("count", "processors")
    cores: Quantity | None = declare_quantity("count", "processor cores")
    memory: Quantity | None = declare_quantity("size", "main memory")
    memory_rate: Quantity | None = declare_quantity("rate", "memory bandwidth")
    os: str = declare_text("operating system")
    software: tuple[str, ...] = declare_texts("versions that matter: Lustre 2.4.1")
    interfaces: tuple[Interface, ...] = declare_tables("where it joins networks", Interface)
    settings: Mapping[str, str | int | float | bool] | None = declare_settings("tuning: sysctls, Lustre parameters")


@dataclass(frozen=True, kw_only=True)
class Node(Host):
    """Computers that run applications, serve logins or administer."""

    role: str = declare_choice(
        "what they are for", ("compute", "login", "service", "system", "gateway", "management"), default_word="compute"
    )
    model: Mapping[str, Quantity] | None = declare_parameters(
        "parameters of performance models", parameters.HOST_PARAMETERS
    )


@dataclass(frozen=True, kw_only=True)
class Router(Host):
    """Computers that pass messages between networks: IP forwarding or LNet."""

    between: tuple[str, ...] = declare_references(
        "the networks; if absent, all that it joins", "networks", is_shared=True
    )
    protocol: str = declare_choice("what it forwards", ("ip", "lnet"))
    weight: Quantity | None = declare_quantity(
        "count", "share of the traffic relative to the other routers", min_value=1
    )
    priority: Quantity | None = declare_quantity("count", "0 is used first; a higher one only when those fail")
    hops: Quantity | None = declare_quantity("count", "hops to the far network")
    table: Quantity | None = declare_quantity(
        "count", "number of its routing table on hosts; of the first one when several"
    )
    mark: Quantity | None = declare_quantity("count", "firewall mark that chooses it; of the first one when several")
    preference: Quantity | None = declare_quantity(
        "count", "preference of its rule on hosts; of the first one when several"
    )
    rate: ReadWriteRates | None = declare_rates("through one router, if less than its interfaces allow")
    model: Mapping[str, Quantity] | None = declare_parameters(
        "parameters of performance models", parameters.SERVER_PARAMETERS
    )


@dataclass(frozen=True, kw_only=True)
class Server(Host):
    """Computers that keep files for others."""

    roles: tuple[str, ...] = declare_choices("what they serve", ("mds", "mgs", "oss", "nsd", "nfs", "dvs", "other"))
    failover: str = declare_choice(
        "pairs: the 1st and 2nd take over for each other, the 3rd and 4th, and so on", ("pairs", "none")
    )
    partner: tuple[str, ...] = declare_references(
        "the one that takes over, where they are no pairs in order", "servers"
    )
    enclosure: tuple[str, ...] = declare_references("where they sit", "enclosures")
    rate: ReadWriteRates | None = declare_rates("through one server, if less than its interfaces allow")
    model: Mapping[str, Quantity] | None = declare_parameters(
        "parameters of performance models", parameters.SERVER_PARAMETERS
    )
    forward: bool | None = declare_flag("true when they only pass on what others keep (DVS, NFS gateways)")
