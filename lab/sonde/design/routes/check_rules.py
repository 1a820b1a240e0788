# SPDX-License-Identifier: Apache-2.0
"""Finds faults of the rules of a host and of the tables that they lead to."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from sonde.design.checked_items import CheckedItem
from sonde.design.routes.check_marks import find_mark_faults
from sonde.design.routes.fabric import FabricRouter, covers_range, is_address_in_ranges, overlaps_range
from sonde.design.routes.faults import RouteFault
from sonde.design.routes.host_tables import HostTables, ObservedRoute, ObservedRule
from sonde.design.routes.host_view import HostView
from sonde.design.routes.kernel_lookup import MAIN_PREFERENCE
from sonde.design.routes.link_usability import has_usable_link, is_prefix_too_long

# Tables that every host has, of the site or of the kernel, and of no single router: checks of tables skip them.
_COMMON_TABLES = ("main", "local", "default")
_FULL_MASK = 0xFFFFFFFF
# How many missing rules are written out.
_WRITTEN_RULES = 2


def _map_routers_by_gateway(host_views: Sequence[HostView]) -> Mapping[str, FabricRouter]:
    return {address: router for view in host_views for address, router in view.routers_by_gateway.items()}


def find_table_faults(host_views: Sequence[HostView], host_tables: HostTables) -> Iterator[RouteFault | CheckedItem]:
    """Tables of single routers: each needs a route to the other side, and a rule that leads to the table."""
    gateways = _map_routers_by_gateway(host_views)
    by_table: dict[str, list[ObservedRoute]] = {}
    for route in host_tables.routes or ():
        if route.table not in _COMMON_TABLES:
            by_table.setdefault(route.table, []).append(route)
    tables_by_gateway: dict[str, list[str]] = {}
    unused_tables = []
    for table, routes in by_table.items():
        if not do_routes_lead_into_fabric(host_views, routes) or is_table_of_other_device(host_views, table, routes):
            continue  # a table of the site: the lookup of paths finds the packets that its rule diverts
        yield CheckedItem("the table of a router", f"table {table}")
        far_routes = [route for route in routes if route.hops and _leads_to_other_side(host_views, route)]
        narrow_faults = list(_find_narrow_routes(host_views, table, routes))
        if not far_routes and not narrow_faults:
            networks = ", ".join(dict.fromkeys(view.other_side.network for view in host_views))
            thrown = [route.destination for route in routes
                      if route.kind == "throw" and _leads_to_other_side(host_views, route)]  # fmt: skip
            elsewhere = _describe_route_in_other_table(host_views, host_tables, table)
            given_back = f" (the one to {', '.join(thrown)} gives packets back: throw)" if thrown else ""
            yield RouteFault(
                "table without a route", f"table {table}",
                f"no route of table {table} leads to {networks}{given_back}: packets that are sent there fall through"
                f"{elsewhere}",
                f"{'replace it by' if thrown else 'add'} the route through one router",
            )  # fmt: skip
        yield from narrow_faults
        for gateway in sorted({hop.via for route in routes for hop in route.hops} & set(gateways)):
            tables_by_gateway.setdefault(gateway, []).append(table)
        if host_tables.rules is not None and not any(
            rule.table == table for rule in host_tables.rules
        ) and not _is_table_of_planned_mark(host_views, host_tables.rules, table):  # fmt: skip
            unused_tables.append(table)
    if unused_tables and not any(is_prefix_too_long(view, host_tables) for view in host_views):
        yield _describe_unused_tables(host_views, unused_tables)
    yield from _compare_router_tables(host_views, tables_by_gateway, host_tables)


def _describe_unused_tables(host_views: Sequence[HostView], tables: Sequence[str]) -> RouteFault:
    """One fault for all tables without a rule: what removes the rules removes them together."""
    rules = [
        f"{host_views[0].rule_command} add pref {router.preference} fwmark {router.mark} table {router.table}"
        for router in _map_routers_by_gateway(host_views).values()
        if str(router.table) in tables
    ]
    further = ["apply the plan for the others"] if len(rules) > _WRITTEN_RULES else []
    is_single = len(tables) == 1
    text = f"table{'' if is_single else 's'} {', '.join(tables)}"
    return RouteFault(
        "table without a rule", text, f"no rule leads into {text}: {'it is' if is_single else 'they are'} never used",
        "; ".join([*rules[:_WRITTEN_RULES], *further]) if rules
        else f"add a rule for {'it' if is_single else 'each'}, or remove {'it' if is_single else 'them'}",
    )  # fmt: skip


def _describe_route_in_other_table(host_views: Sequence[HostView], host_tables: HostTables, table_name: str) -> str:
    """The end of a sentence that names another table with a route of `table_name`: one through the router that the
    table is for. "" if no other table has one."""
    for gateway, router in _map_routers_by_gateway(host_views).items():
        for route in host_tables.routes or () if str(router.table) == table_name else ():
            if route.table not in (*_COMMON_TABLES, table_name) and gateway in [hop.via for hop in route.hops]:
                return f"; table {route.table} has the one through {router.name} ({gateway})"
    return ""


def _is_table_of_planned_mark(host_views: Sequence[HostView], rules: Sequence[ObservedRule], table_name: str) -> bool:
    """Whether a table belongs to a router of the plan and the rules of this host use a planned mark. A missing rule for
    such a table is reported with its mark elsewhere."""
    routers = _map_routers_by_gateway(host_views).values()
    used_marks = {rule.mark for rule in rules}
    return table_name in [str(router.table) for router in routers] and any(
        router.mark in used_marks for router in routers
    )


def do_routes_lead_into_fabric(host_views: Sequence[HostView], routes: Iterable[ObservedRoute]) -> bool:
    """Whether a table concerns a fabric: it has a route to one of its networks or through one of its routers."""
    gateways = _map_routers_by_gateway(host_views)
    return any(
        any(hop.via in gateways for hop in route.hops)
        or any(
            covers_range(route.destination, address_range) and route.destination != "default"
            for view in host_views
            for address_range in (*view.own_side.ranges, *view.other_side.ranges)
        )
        for route in routes
    )


def is_table_of_other_device(host_views: Sequence[HostView], table: str, routes: Sequence[ObservedRoute]) -> bool:
    """Whether a table is no router's in the plan, names no router, and has no route by a device of a fabric, as that of
    a VPN."""
    routers = _map_routers_by_gateway(host_views)
    devices = {"", *(view.host_class.device for view in host_views)}
    return (
        table not in (*_COMMON_TABLES, *(str(router.table) for router in routers.values()))
        and not any(route.on_link and route.device in devices for route in routes)
        and not any(hop.via in routers or hop.device in devices for route in routes for hop in route.hops)
    )


def _leads_to_other_side(host_views: Sequence[HostView], route: ObservedRoute) -> bool:
    return any(
        covers_range(route.destination, address_range)
        for view in host_views
        for address_range in view.other_side.ranges
    )


def _find_narrow_routes(
    host_views: Sequence[HostView], table: str, routes: Sequence[ObservedRoute]
) -> Iterator[RouteFault]:
    """Routes of a router's table that lead to a part of the other side only."""
    for view in host_views:
        for address_range in view.other_side.ranges:
            narrow = [
                route for route in routes
                if any(hop.via in view.routers_by_gateway for hop in route.hops)
                and overlaps_range(route.destination, address_range)
            ]  # fmt: skip
            if narrow and not any(covers_range(route.destination, address_range) for route in narrow):
                yield RouteFault(
                    "table for a part", f"table {table}",
                    f"table {table} leads to {', '.join(route.destination for route in narrow)} only, a part of"
                    f" {address_range} ({view.other_side.network}): packets to the rest fall through",
                    f"lead to {address_range}",
                )  # fmt: skip


def _compare_router_tables(
    host_views: Sequence[HostView], tables_by_gateway: Mapping[str, list[str]], host_tables: HostTables
) -> Iterator[RouteFault]:
    """Faults of routers that have several tables, and of routers without a table. A table that a rule leads into is
    reported with it."""
    tables_of_rules = {rule.table for rule in host_tables.rules or ()}
    routers = _map_routers_by_gateway(host_views)
    planned_tables = {str(router.table): router for router in routers.values()}
    for gateway, names in tables_by_gateway.items():
        if len(set(names)) > 1:
            others = [f"table {name} is that of {planned_tables[name].name} in the plan" for name in names
                      if name in planned_tables and planned_tables[name] is not routers[gateway]]  # fmt: skip
            yield RouteFault(
                "router in several tables", f"tables {', '.join(names)}",
                f"{gateway} ({routers[gateway].name}) is the next hop of {len(names)} tables; "
                + (", ".join(others) or "a router that one of them is for has no table"),
                "one table for each router",
            )  # fmt: skip
    for view in host_views:
        absent = [
            gateway for gateway, router in view.routers_by_gateway.items()
            if gateway not in tables_by_gateway and str(router.table) not in tables_of_rules
        ]  # fmt: skip
        if absent and len(absent) < len(view.routers_by_gateway):
            yield RouteFault(
                "router without a table", "tables",
                f"{', '.join(absent)} has no table of its own, the other routers have", "one table for each router",
            )  # fmt: skip


def _find_repeated_rules(host_views: Sequence[HostView], rules: Sequence[ObservedRule]) -> Iterator[RouteFault]:
    """Rules of the mark of a router that another rule repeats with another preference: those that are not planned."""
    routers = _map_routers_by_gateway(host_views).values()
    marks, planned = {router.mark for router in routers}, {router.preference for router in routers}
    first_rules: dict[ObservedRule, ObservedRule] = {}
    for rule in sorted(rules, key=lambda rule: rule.preference or 0):
        first = first_rules.setdefault(replace(rule, preference=None, origin=""), rule)
        if rule.mark not in marks or rule.preference == first.preference:
            continue
        remaining, surplus = (first, rule) if first.preference in planned else (rule, first)
        yield RouteFault(
            "rule repeated", surplus.origin,
            f"the rule of mark {rule.mark} with preference {surplus.preference} repeats that with"
            f" {remaining.preference}:"
            " who removes or changes one of them still has the other",
            f"{host_views[0].rule_command} del pref {surplus.preference} fwmark {rule.mark} table {rule.table}",
        )  # fmt: skip


def find_rule_faults(host_views: Sequence[HostView], host_tables: HostTables) -> Iterator[RouteFault | CheckedItem]:
    """Rules that match nothing, lead nowhere or come too late. The lookup of paths finds the packets that they
    divert."""
    if host_tables.rules is None:
        return
    if not any(rule.table == "local" for rule in host_tables.rules) and any(
        rule.preference == MAIN_PREFERENCE and rule.table == "main" for rule in host_tables.rules
    ):
        yield RouteFault(
            "no rule for local addresses", "rules",
            "no rule leads to the table local: the host does not take packets for its own addresses",
            "ip rule add pref 0 from all lookup local",
        )  # fmt: skip
    used_tables = {route.table for route in host_tables.routes} if host_tables.routes is not None else None
    for rule in host_tables.rules:
        if rule.table in _COMMON_TABLES or rule.action != "lookup":
            continue
        yield CheckedItem("a rule", rule.origin)
        if (
            used_tables is not None
            and rule.table not in used_tables
            and _does_rule_concern_fabric(host_views, rule)
            and not _is_table_of_unusable_link(host_views, rule.table, host_tables)
        ):
            yield RouteFault(
                "rule without a table", rule.origin,
                f"the rule leads into table {rule.table}, which has no route", "fill the table, or remove the rule",
            )  # fmt: skip
        table_routes = [route for route in host_tables.routes or () if route.table == rule.table]
        is_unused = not table_routes and (used_tables is not None or _does_rule_concern_fabric(host_views, rule))
        if is_unused or do_routes_lead_into_fabric(host_views, table_routes):
            yield from _check_rule_source(host_views, rule)
        if rule.preference is not None and rule.preference > MAIN_PREFERENCE:
            yield RouteFault(
                "rule too late", rule.origin,
                f"the rule has preference {rule.preference}: the main table (32766) comes before it",
                "give it a smaller number",
            )  # fmt: skip
    yield from _find_repeated_rules(host_views, host_tables.rules)
    yield from _check_rules_share_one_table(host_tables.rules, host_tables.routes)
    yield from find_mark_faults(host_views, host_tables)


def _is_table_of_unusable_link(host_views: Sequence[HostView], table: str, host_tables: HostTables) -> bool:
    """Whether a table is that of a router to which this host has no usable link: the kernel has removed its routes."""
    return any(
        table in [str(router.table) for router in view.fabric.routers] and not has_usable_link(view, host_tables)
        for view in host_views
    )


def _does_rule_concern_fabric(host_views: Sequence[HostView], rule: ObservedRule) -> bool:
    """Whether a rule selects by a whole mark, by the table of a router or by an address of a fabric; other rules belong
    to other programs: VPNs select by masks, VRFs select nothing."""
    routers = _map_routers_by_gateway(host_views).values()
    if rule.table in {str(router.table) for router in routers}:
        return True
    if rule.mark is not None and rule.mask == _FULL_MASK and not rule.inverted:
        return True
    sides = [side for view in host_views for side in (view.own_side, view.other_side)]
    ranges = [address_range for side in sides for address_range in side.ranges]
    return any(
        overlaps_range(selector, address_range)
        for selector in (rule.source, rule.destination) if selector != "all" for address_range in ranges
    )  # fmt: skip


def _check_rule_source(host_views: Sequence[HostView], rule: ObservedRule) -> Iterator[RouteFault]:
    if rule.source == "all":
        return
    try:
        network = ipaddress.ip_network(rule.source, strict=False)
    except ValueError:
        return
    if network.num_addresses > 1:
        return  # a range: the lookup of paths says what it diverts
    source = str(network[0])
    gateways = _map_routers_by_gateway(host_views)
    all_addresses = {
        address for view in host_views for router in view.fabric.routers
        for address in (router.near_address, router.far_address)
    }  # fmt: skip
    known_ranges = [
        address_range
        for view in host_views
        for side in (view.own_side, view.other_side)
        for address_range in side.ranges
    ]
    if source in all_addresses:
        yield RouteFault(
            "rule that cannot match", rule.origin,
            f"the rule selects packets from the router {source}, but a forwarded packet keeps the address of its"
            " sender: the rule matches nothing on a host, and only the multipath route is used",
            "select by firewall mark, as the plan does",
        )  # fmt: skip
    elif not is_address_in_ranges(known_ranges, source):
        yield RouteFault(
            "rule for an unknown address", rule.origin,
            f"{rule.source} is in neither network, nor is it a router of {host_views[0].fabric.name}",
            f"the routers are {', '.join(gateways)} here",
        )  # fmt: skip
    elif rule.mark is None and source not in [address for view in host_views for address in view.addresses]:
        yield RouteFault(
            "rule for an unknown address", rule.origin,
            f"{source} is an address of this fabric, but of no router and of no host of this class",
            f"the routers are {', '.join(gateways)} here",
        )  # fmt: skip


def _check_rules_share_one_table(
    rules: Sequence[ObservedRule], routes: Iterable[ObservedRoute] | None
) -> Iterator[RouteFault]:
    table_rules = [rule for rule in rules if rule.table not in _COMMON_TABLES]
    rule_tables = {rule.table for rule in table_rules}
    tables = {route.table for route in routes or () if route.table not in _COMMON_TABLES}
    if len(table_rules) > 1 and len(rule_tables) == 1 and len(tables) > 1:
        (table,) = rule_tables
        yield RouteFault(
            "all rules in one table",
            ", ".join(dict.fromkeys(rule.origin for rule in table_rules[:2])) + (", …" if len(table_rules) > 2 else ""),
            f"all {len(table_rules)} rules lead into table {table}, although there are tables"
            f" {', '.join(sorted(tables))}",
            "lead each rule into the table of its own router",
        )  # fmt: skip
