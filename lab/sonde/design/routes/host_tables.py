# SPDX-License-Identifier: Apache-2.0
"""Rules, routes, neighbors, addresses and settings of one host. None means unknown, which is not empty."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from sonde.design.routes.adapter_outputs import InfiniBandPort
from sonde.design.routes.counter_outputs import InfiniBandCounters
from sonde.design.routes.file_settings import FileSetting
from sonde.design.routes.firewall_rules import Firewall
from sonde.design.routes.inactive_profile import InactiveProfile
from sonde.design.routes.interface_details import AddressDetails, LinkDetails
from sonde.design.routes.interface_names import InterfaceName
from sonde.design.routes.interface_profile import InterfaceProfile
from sonde.design.routes.lnet_records import LnetInterface, LnetPeer, LnetPolicy, LnetRoute
from sonde.design.routes.queue_outputs import QueueEntry
from sonde.design.routes.security_policies import SecurityPolicy

Item = TypeVar("Item")
Key = TypeVar("Key")
# Kinds of routes and actions of rules that drop packets.
DISCARDING_KINDS = ("blackhole", "unreachable", "prohibit")
# Packets that the host itself sends arrive from here.
LOOPBACK = "lo"
_MAIN_PREFERENCE = 32766
_TABLE_NAMES = {"254": "main", "255": "local", "253": "default"}


@dataclass(frozen=True)
class ObservedHop:
    """One next hop of a route. `dead` says that the kernel marks it as dead or its link as down."""

    via: str
    device: str
    weight: int
    dead: bool = False


@dataclass(frozen=True)
class ObservedRoute:
    """One route. `origin` is the file and line that it was read from; `version` is the IP version of a default route,
    None when it is not known."""

    destination: str
    table: str
    device: str
    hops: tuple[ObservedHop, ...]
    on_link: bool
    mtu: int | None
    origin: str
    kind: str = "unicast"  # or local, blackhole, unreachable, prohibit, throw
    metric: int | None = None
    version: int | None = None
    source: str = ""  # the preferred source address
    service: str = ""  # tos or dsfield: only packets with it take this route
    largest_segment: int | None = None  # advmss, bytes
    attributes: tuple[tuple[str, str], ...] = ()  # those that no other member holds, by name, as ip prints them
    next_hop_id: str = ""  # of the next-hop object or group that its next hops are of


@dataclass(frozen=True)
class ObservedRule:
    """One rule. `source` and `destination` are its selectors ("all", an address or a range), `mark` its firewall mark
    and `mask` the bits of it that count."""

    preference: int | None
    source: str
    mark: int | None
    table: str
    origin: str
    destination: str = "all"
    action: str = "lookup"  # or blackhole, unreachable, prohibit, nop
    mask: int = 0xFFFFFFFF
    interface: str = ""  # of incoming packets
    inverted: bool = False
    suppressed_prefix: int | None = None  # routes with a prefix of at most this length are ignored
    jump: int | None = None  # of the action goto: the preference of the next rule
    version: int | None = None  # the IP version that it is for; None: unknown
    selectors: str = ""  # tos, uidrange, oif, ipproto, sport, … as ip prints them: they select some packets only
    is_detached: bool = False  # a device that it selects is missing, so it matches no packet

    @property
    def is_for_all_packets(self) -> bool:
        """Whether it matches every packet that this host sends with its mark to its destination."""
        return not (self.selectors or self.inverted or self.is_detached) and self.interface in ("", LOOPBACK)


@dataclass(frozen=True)
class ObservedNeighbor:
    """The link address of a neighbor, and the state of the entry: reachable, stale, failed, permanent, …"""

    address: str
    device: str
    link_address: str
    state: str
    is_router: bool = False  # it has said by IPv6 that it forwards packets


@dataclass(frozen=True)
class HostName:
    """A name of a host with its address, and the line of the file that says so."""

    name: str
    address: str
    origin: str


@dataclass(frozen=True)
class HostTables:
    """Everything that is known of one host. None: unknown."""

    rules: tuple[ObservedRule, ...] | None = None
    routes: tuple[ObservedRoute, ...] | None = None
    versions_without_routes: tuple[int, ...] = ()  # of configuration files, as others may have their routes
    addresses: tuple[str, ...] | None = None  # with prefix: 10.100.0.1/16
    settings: Mapping[str, str] | None = None
    setting_files: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # that set each, in their order
    setting_lines: Mapping[str, int] = field(default_factory=dict)  # of a file, that set each last
    unapplied_settings: tuple[str, ...] = ()  # names as a file has them that sysctl does not find
    options: Mapping[str, str] | None = None  # CONFIG_… -> y, m or n
    mtus: Mapping[str, int] = field(default_factory=dict)  # by device, bytes
    links: Mapping[str, str] = field(default_factory=dict)  # by device: "up" or "down"
    transport_modes: Mapping[str, str] = field(default_factory=dict)  # by IPoIB device: "connected" or "datagram"
    address_devices: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # by address, without prefix
    address_details: Mapping[str, AddressDetails] = field(default_factory=dict)  # by address, without prefix
    link_details: Mapping[str, LinkDetails] = field(default_factory=dict)  # by device
    planned_devices: tuple[str, ...] = ()  # of the system file, which settings may name although the host lacks them
    planned_rates: Mapping[str, float] = field(default_factory=dict)  # by planned device, bytes per second
    planned_addresses: frozenset[str] = frozenset()  # of the hosts and routers in the system file
    neighbors: tuple[ObservedNeighbor, ...] | None = None
    all_neighbors: tuple[ObservedNeighbor, ...] = ()  # of both IP versions, which select_version does not reduce
    security_policies: tuple[SecurityPolicy, ...] | None = None  # of IPsec
    next_hop_types: Mapping[str, str] = field(default_factory=dict)  # "resilient", "mpath" or "single", by id
    lnet_routes: tuple[LnetRoute, ...] | None = None
    lnet_interfaces: tuple[LnetInterface, ...] | None = None
    lnet_peers: tuple[LnetPeer, ...] | None = None
    lnet_globals: Mapping[str, str] | None = None  # settings of LNet as a whole
    lnet_module_options: Mapping[tuple[str, str, str], str] = field(default_factory=dict)  # by file, module and name
    lnet_buffers: Mapping[tuple[str, str], int] | None = None  # of a router, by pool and name
    is_lnet_routing: bool | None = None  # whether LNet forwards messages of other hosts
    lnet_policies: tuple[LnetPolicy, ...] = ()  # for the choice of NIs and gateways (UDSP)
    lnet_extras: tuple[str, ...] = ()  # members of an LNet export that no check reads
    formats: tuple[str, ...] = ()  # of configuration files among the sources, by their names in sonde route plan
    inactive_profiles: tuple[InactiveProfile, ...] = ()  # configuration files that do not take effect at the start
    interface_profiles: tuple[InterfaceProfile, ...] = ()  # configuration files of interfaces
    file_settings: tuple[FileSetting, ...] = ()  # values that configuration files set on interfaces
    interface_names: tuple[InterfaceName, ...] = ()  # that files give to adapters by their link addresses
    permanent_addresses: Mapping[str, str] = field(default_factory=dict)  # by device; of outputs other than ip's
    adapters: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # of ethtool, by device and name
    infiniband_ports: tuple[InfiniBandPort, ...] = ()
    infiniband_counters: tuple[InfiniBandCounters, ...] = ()  # of perfquery
    queues: tuple[QueueEntry, ...] = ()  # of tc
    firewalls: tuple[Firewall, ...] = ()
    host_names: tuple[HostName, ...] = ()  # of /etc/hosts
    pictures: tuple[str, ...] = ()  # names of files that hold a picture of a plan, so no tables
    unread_files: tuple[str, ...] = ()  # names of files that were not understood, with the reasons

    @property
    def devices(self) -> tuple[str, ...]:
        """All devices that settings may name: those of the host, then the planned ones."""
        return tuple(dict.fromkeys((*self.mtus, *self.planned_devices)))

    @property
    def has_lnet(self) -> bool:
        """Whether anything is known of LNet."""
        tables = (self.lnet_routes, self.lnet_interfaces, self.is_lnet_routing)
        return any(table is not None for table in tables) or bool(self.lnet_module_options)

    @property
    def has_lnet_states(self) -> bool:
        """Whether the states of interfaces and routes are known: LNet prints them, its configuration files lack
        them."""
        states = [route.is_up for route in self.lnet_routes or ()]
        states += [interface.is_up for interface in self.lnet_interfaces or ()]
        return any(state is not None for state in states)

    def merge_tables(self, other_tables: HostTables) -> HostTables:
        """Both together; sequences are concatenated, and the other value wins in mappings. A route or address of both
        counts once: `ip route show table all` prints the routes of both IP versions, `ip -6 route` some of them
        again."""
        return HostTables(
            rules=_concatenate_known(self.rules, other_tables.rules),
            routes=_join_routes(self.routes, other_tables.routes),
            addresses=_join_known(self.addresses, other_tables.addresses),
            settings=_merge_mappings(self.settings, other_tables.settings),
            setting_files={
                name: tuple(
                    dict.fromkeys((*self.setting_files.get(name, ()), *other_tables.setting_files.get(name, ())))
                )
                for name in {**self.setting_files, **other_tables.setting_files}
            },
            setting_lines={**self.setting_lines, **other_tables.setting_lines},
            unapplied_settings=tuple(dict.fromkeys((*self.unapplied_settings, *other_tables.unapplied_settings))),
            options=_merge_mappings(self.options, other_tables.options),
            mtus={**self.mtus, **other_tables.mtus},
            links={**self.links, **other_tables.links},
            transport_modes={**self.transport_modes, **other_tables.transport_modes},
            address_devices={**self.address_devices, **other_tables.address_devices},
            address_details={**self.address_details, **other_tables.address_details},
            link_details={**self.link_details, **other_tables.link_details},
            planned_devices=tuple(dict.fromkeys((*self.planned_devices, *other_tables.planned_devices))),
            planned_rates={**self.planned_rates, **other_tables.planned_rates},
            planned_addresses=self.planned_addresses | other_tables.planned_addresses,
            neighbors=_join_known(self.neighbors, other_tables.neighbors),
            all_neighbors=(*self.all_neighbors, *other_tables.all_neighbors),
            security_policies=_join_known(self.security_policies, other_tables.security_policies),
            next_hop_types={**self.next_hop_types, **other_tables.next_hop_types},
            lnet_routes=_concatenate_known(self.lnet_routes, other_tables.lnet_routes),
            lnet_interfaces=_concatenate_known(self.lnet_interfaces, other_tables.lnet_interfaces),
            lnet_peers=_join_known(self.lnet_peers, other_tables.lnet_peers),
            lnet_globals=_merge_mappings(self.lnet_globals, other_tables.lnet_globals),
            lnet_module_options={**self.lnet_module_options, **other_tables.lnet_module_options},
            lnet_buffers=_merge_mappings(self.lnet_buffers, other_tables.lnet_buffers),
            is_lnet_routing=self.is_lnet_routing
            if other_tables.is_lnet_routing is None
            else other_tables.is_lnet_routing,
            lnet_policies=tuple(dict.fromkeys((*self.lnet_policies, *other_tables.lnet_policies))),
            lnet_extras=tuple(dict.fromkeys((*self.lnet_extras, *other_tables.lnet_extras))),
            formats=tuple(dict.fromkeys((*self.formats, *other_tables.formats))),
            inactive_profiles=tuple(dict.fromkeys((*self.inactive_profiles, *other_tables.inactive_profiles))),
            interface_profiles=tuple(dict.fromkeys((*self.interface_profiles, *other_tables.interface_profiles))),
            file_settings=tuple(dict.fromkeys((*self.file_settings, *other_tables.file_settings))),
            interface_names=tuple(dict.fromkeys((*self.interface_names, *other_tables.interface_names))),
            permanent_addresses={**self.permanent_addresses, **other_tables.permanent_addresses},
            adapters={
                device: {**self.adapters.get(device, {}), **other_tables.adapters.get(device, {})}
                for device in {**self.adapters, **other_tables.adapters}
            },
            infiniband_ports=tuple(dict.fromkeys((*self.infiniband_ports, *other_tables.infiniband_ports))),
            infiniband_counters=tuple(dict.fromkeys((*self.infiniband_counters, *other_tables.infiniband_counters))),
            queues=tuple(dict.fromkeys((*self.queues, *other_tables.queues))),
            firewalls=tuple(dict.fromkeys((*self.firewalls, *other_tables.firewalls))),
            host_names=(*self.host_names, *other_tables.host_names),
            pictures=tuple(dict.fromkeys((*self.pictures, *other_tables.pictures))),
            unread_files=tuple(dict.fromkeys((*self.unread_files, *other_tables.unread_files))),
        )

    @property
    def own_addresses(self) -> set[str]:
        """The addresses of the host, without prefix."""
        return {address.partition("/")[0] for address in self.addresses or ()}

    def list_devices_with_address(self, address: str, devices: Collection[str]) -> tuple[str, ...]:
        """Those of some devices that have an address."""
        return tuple(device for device in self.address_devices.get(address, ()) if device in devices)

    def select_version(self, version: int) -> HostTables:
        """The tables of one IP version. Rules and addresses are unknown where only those of the other version were
        given, and routes where the kernel's own routes of the other version show that they are a listing: a script
        without routes of one version sets none."""

        def select(items: tuple[Item, ...] | None, find_version: Callable[[Item], int | None]) -> tuple[Item, ...]:
            return tuple(item for item in items or () if find_version(item) in (None, version))

        rules = select(self.rules, lambda rule: rule.version)
        routes = select(self.routes, lambda route: route.version)
        addresses = select(self.addresses, find_ip_version)
        return replace(
            self,
            rules=None if self.rules is None or (self.rules and not rules) else rules,
            routes=None
            if self.routes is None
            or (not routes and is_kernel_listing(self.routes))
            or version in self.versions_without_routes
            else routes,
            addresses=None if self.addresses is None or (self.addresses and not addresses) else addresses,
            neighbors=None
            if self.neighbors is None
            else select(self.neighbors, lambda neighbor: find_ip_version(neighbor.address)),
        )


def is_kernel_listing(routes: Sequence[ObservedRoute]) -> bool:
    """Whether routes are listed by the kernel: it adds routes of addresses, which no plan writes."""
    return any(
        route.kind == "local" or (route.on_link and bool(route.device) and route.table == "main") for route in routes
    )


def _concatenate_known(
    first_items: tuple[Item, ...] | None, second_items: tuple[Item, ...] | None
) -> tuple[Item, ...] | None:
    return None if first_items is None and second_items is None else (first_items or ()) + (second_items or ())


def _join_known(first_items: tuple[Item, ...] | None, second_items: tuple[Item, ...] | None) -> tuple[Item, ...] | None:
    """Both together, each item once."""
    items = _concatenate_known(first_items, second_items)
    return items if items is None else tuple(dict.fromkeys(items))


def _join_routes(
    first_routes: tuple[ObservedRoute, ...] | None, second_routes: tuple[ObservedRoute, ...] | None
) -> tuple[ObservedRoute, ...] | None:
    """Both together, without the routes of the second that the first has too, apart from their origin."""
    if first_routes is None or second_routes is None:
        return _concatenate_known(first_routes, second_routes)
    present = {replace(route, origin="") for route in first_routes}
    return first_routes + tuple(route for route in second_routes if replace(route, origin="") not in present)


def _merge_mappings(
    first_mapping: Mapping[Key, Item] | None, second_mapping: Mapping[Key, Item] | None
) -> Mapping[Key, Item] | None:
    if first_mapping is None and second_mapping is None:
        return None
    return {**(first_mapping or {}), **(second_mapping or {})}


def get_routing_table_name(table_text: str) -> str:
    """Converts the number of a routing table of the kernel to its name; other texts are returned unchanged."""
    return _TABLE_NAMES.get(table_text, table_text)


def set_versions_of_listings(all_tables: Sequence[HostTables]) -> list[HostTables]:
    """Sets the version of rules that `ip rule` printed. A listing of IPv4 has the table default once. One without it is
    of IPv6 if another one is of IPv4; else its version stays unknown."""
    kinds = [_find_listing_version(tables.rules or ()) for tables in all_tables]
    return [
        replace(tables, rules=tuple(replace(rule, version=rule.version or version) for rule in tables.rules))
        if tables.rules and version and 4 in kinds
        else tables
        for tables, version in zip(all_tables, kinds, strict=True)
    ]


def _find_listing_version(rules: Sequence[ObservedRule]) -> int | None:
    """The version of rules that `ip rule` printed: they have the local table or the main one at its preference. None
    for other rules and for listings of both versions in one file."""
    tables = [rule.table for rule in rules]
    has_main = any(rule.table == "main" and rule.preference == _MAIN_PREFERENCE for rule in rules)
    if tables.count("local") > 1 or tables.count("default") > 1 or not (has_main or {"local", "default"} & set(tables)):
        return None
    return 4 if "default" in tables else 6


def describe_rule_selectors(rule: ObservedRule) -> str:
    """Describes the selectors of a rule besides addresses and marks, with a leading space; "" for all packets."""
    texts = [rule.selectors, f"iif {rule.interface}" if rule.interface not in ("", LOOPBACK) else ""]
    selected = " ".join(text for text in texts if text)
    if not selected:
        return ""
    detached = " of a device that is missing" if rule.is_detached else ""
    return f" {'without' if rule.inverted else 'with'} {selected}{detached}"


def find_ip_version(address_or_range: str) -> int | None:
    """The IP version of an address or range; None for other texts."""
    try:
        return ipaddress.ip_interface(address_or_range).version
    except ValueError:
        return None
