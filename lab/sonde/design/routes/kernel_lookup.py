# SPDX-License-Identifier: Apache-2.0
"""Looks up the route that the kernel takes to an address: rules by preference, then the longest prefix, then the lowest
metric.

Source: Linux, net/core/fib_rules.c, net/ipv4/fib_trie.c, net/ipv6/route.c; tests compare with ``ip route get``.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache

from sonde.design.routes.host_tables import DISCARDING_KINDS, LOOPBACK, HostTables, ObservedRoute, ObservedRule

IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address
IpNetwork = ipaddress.IPv4Network | ipaddress.IPv6Network

# The metric of a route that states none.
DEFAULT_METRICS = {4: 0, 6: 1024}
# Preference of the rule for the main table; rules of larger preference only count when main has no route.
MAIN_PREFERENCE = 32766


@dataclass(frozen=True)
class RouteLookup:
    """The route that the kernel takes, or a rule that discards the packet."""

    route: ObservedRoute | None
    rule: ObservedRule

    @property
    def is_discarded(self) -> bool:
        return self.route is None or self.route.kind in DISCARDING_KINDS

    @property
    def origin(self) -> str:
        return self.rule.origin if self.route is None else self.route.origin


@cache
def _parse_address_range(range_text: str) -> IpNetwork | None:
    try:
        return ipaddress.ip_network(range_text, strict=False)
    except ValueError:
        return None


def get_metric(route: ObservedRoute, version: int) -> int:
    """The metric of a route, or the kernel's default for the IP version."""
    if route.metric is None or (version == 6 and route.metric == 0):
        return DEFAULT_METRICS[version]
    return route.metric


def find_kernel_route(
    host_tables: HostTables,
    destination_address: IpAddress,
    *,
    packet_mark: int = 0,
    source_address: IpAddress | None = None,
    selecting_rule: ObservedRule | None = None,
    incoming_device: str = LOOPBACK,
) -> RouteLookup | None:
    """The route of a packet that this host sends, or forwards from a device; None when no table has one. `host_tables`
    are those of the IP version of the address, with routes. The packet has none of the properties that rules select by
    tos, port, user and the like, apart from those of `selecting_rule`."""
    jump = 0
    rules = complete_and_sort_rules(host_tables.rules)
    preferences = {rule.preference for rule in rules}
    for rule in rules:
        has_properties = selecting_rule is not None and rule.origin == selecting_rule.origin
        if (rule.preference or 0) < jump or rule.action == "nop":
            continue
        if rule.interface not in ("", incoming_device):
            if not rule.inverted:
                continue
        elif not _does_rule_match(rule, destination_address, packet_mark, source_address, has_properties):
            continue
        if rule.jump is not None:
            jump = rule.jump if rule.jump in preferences else jump  # the kernel skips an unresolved goto
            continue
        if rule.action in DISCARDING_KINDS:
            return RouteLookup(None, rule)
        route = find_table_route(host_tables.routes or (), rule.table, destination_address, rule.suppressed_prefix)
        if route is not None and route.kind != "throw":
            return RouteLookup(route, rule)
    return None


def complete_and_sort_rules(rules: Sequence[ObservedRule] | None) -> list[ObservedRule]:
    """Rules by preference. A list that lacks the kernel's own rules, as scripts do, gets that of the main table; one
    with the local rule is complete. Unknown rules (None) are taken to be the kernel's own. A rule without a preference
    gets one below the lowest of the site, as `ip rule add` chooses it."""
    ordered = [ObservedRule(0, "all", None, "local", "the kernel's own rule")] if rules is None else []
    lowest = MAIN_PREFERENCE
    for rule in rules or ():
        preference = rule.preference if rule.preference is not None else lowest - 1
        lowest = min(lowest, preference) if preference else lowest
        ordered.append(replace(rule, preference=preference))
    is_complete = rules is not None and any(rule.preference == 0 and rule.table == "local" for rule in ordered)
    if not is_complete and not any(rule.preference == MAIN_PREFERENCE for rule in ordered):
        ordered.append(ObservedRule(MAIN_PREFERENCE, "all", None, "main", "the kernel's own rule"))
    return sorted(ordered, key=lambda rule: rule.preference or 0)


def _does_rule_match(
    rule: ObservedRule,
    destination_address: IpAddress,
    packet_mark: int,
    source_address: IpAddress | None,
    has_selected_properties: bool,
) -> bool:
    if rule.is_detached:
        return rule.inverted
    matched = (
        _does_range_cover(rule.destination, destination_address)
        and (
            rule.source in ("all", "0.0.0.0/0", "::/0")
            or (source_address is not None and _does_range_cover(rule.source, source_address))
        )
        and (rule.mark is None or packet_mark & rule.mask == rule.mark)
        and (not rule.selectors or has_selected_properties)
    )
    return matched != rule.inverted


def _does_range_cover(address_range: str, address: IpAddress) -> bool:
    if address_range == "all":
        return True
    network = _parse_address_range(address_range)
    return network is not None and network.version == address.version and address in network


def find_table_route(
    routes: Sequence[ObservedRoute],
    table_name: str,
    destination_address: IpAddress,
    suppressed_prefix: int | None = None,
) -> ObservedRoute | None:
    """The route of one table: the longest prefix, then the lowest metric, then the first."""
    best: tuple[int, int] | None = None
    chosen: ObservedRoute | None = None
    for route in routes:
        if route.table != table_name or route.service:  # packets of storage have no type of service
            continue
        if route.destination == "default":
            length = 0
        else:
            network = _parse_address_range(route.destination)
            if network is None or network.version != destination_address.version or destination_address not in network:
                continue
            length = network.prefixlen
        if suppressed_prefix is not None and length <= suppressed_prefix:
            continue
        rank = (-length, get_metric(route, destination_address.version))
        if best is None or rank < best:
            best, chosen = rank, route
    return chosen


def list_probe_addresses(host_tables: HostTables, address_range: str) -> list[IpAddress]:
    """Addresses of a range that together meet every route and rule: its ends, and both sides of the ends of every
    smaller range that a route or rule names. All addresses between two of these get the same route."""
    network = ipaddress.ip_network(address_range, strict=False)
    points = {int(network[0]), int(network[-1])}
    for text in _iterate_address_selectors(host_tables):
        smaller = _parse_address_range(text)
        if smaller is not None and smaller.version == network.version and smaller.overlaps(network):
            first, last = int(smaller[0]), int(smaller[-1])
            points |= {first - 1, first, last, last + 1}
    inside = sorted(point for point in points if int(network[0]) <= point <= int(network[-1]))
    make = ipaddress.IPv4Address if network.version == 4 else ipaddress.IPv6Address
    return [make(point) for point in inside]


def _iterate_address_selectors(host_tables: HostTables) -> Iterator[str]:
    yield from dict.fromkeys(route.destination for route in host_tables.routes or ())
    yield from dict.fromkeys(rule.destination for rule in host_tables.rules or ())
