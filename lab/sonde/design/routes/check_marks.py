# SPDX-License-Identifier: Apache-2.0
"""Checks that packets with the firewall mark of a router go through that router, as the kernel evaluates all rules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from sonde.design.routes.fabric import FabricRouter, covers_range
from sonde.design.routes.faults import RouteFault
from sonde.design.routes.host_tables import HostTables, ObservedRule, describe_rule_selectors
from sonde.design.routes.host_view import HostView
from sonde.design.routes.kernel_lookup import (
    MAIN_PREFERENCE,
    IpAddress,
    RouteLookup,
    find_kernel_route,
    find_table_route,
    list_probe_addresses,
)

_MAIN = "main"
_COMMON_TABLES = (_MAIN, "local", "default")
_FULL_MASK = 0xFFFFFFFF


def does_rule_lead_all_packets(host_view: HostView, rule: ObservedRule, firewall_mark: int) -> bool:
    """Whether a rule leads every packet with a mark to the other side into its table."""
    return (
        rule.mark is not None
        and firewall_mark & rule.mask == rule.mark
        and rule.is_for_all_packets
        and rule.source in ("all", "0.0.0.0/0", "::/0")
        and all(rule.destination == "all" or covers_range(rule.destination, far_range)
                for far_range in host_view.other_side.ranges)
        and rule.action == "lookup"
        and rule.jump is None
    )  # fmt: skip


def describe_partial_rules(host_view: HostView, rules: Sequence[ObservedRule], firewall_mark: int) -> str:
    """The rules of a mark that take some of its packets only, as the end of a sentence; "" without any."""
    partial = [
        rule
        for rule in rules
        if rule.mark == firewall_mark and not does_rule_lead_all_packets(host_view, rule, firewall_mark)
    ]
    texts = [
        f"{rule.origin} {'goes to another rule' if rule.jump is not None else 'does nothing with them'}"
        if rule.jump is not None or rule.action == "nop"
        else f"{rule.origin} only takes packets{describe_rule_selectors(rule)}{_describe_addresses(rule)}"
        for rule in partial
    ]
    return "".join(f" ({text})" for text in texts)


def _describe_addresses(rule: ObservedRule) -> str:
    pairs = (("from", rule.source), ("to", rule.destination))
    return "".join(f" {name} {selector}" for name, selector in pairs if selector != "all")


def find_mark_faults(host_views: Sequence[HostView], host_tables: HostTables) -> Iterator[RouteFault]:
    """Rules that lead packets with the mark of one router elsewhere. The views are of one IP version."""
    gateways = {address: router for view in host_views for address, router in view.routers_by_gateway.items()}
    by_mark = {router.mark: router for router in gateways.values()}
    reported: set[str] = set()
    for rule in host_tables.rules or ():
        planned = by_mark.get(rule.mark) if rule.mark is not None else None
        if planned is None or rule.table in _COMMON_TABLES or rule.inverted:
            continue
        if _is_behind_rule_of_same_mark(host_views, host_tables.rules or (), rule):
            continue  # its packets never reach it
        reached = _list_routers_of_table(host_views, host_tables, rule.table, gateways)
        if reached and planned.name not in reached:
            reported.add(rule.origin)
            if rule.table == str(planned.table) and _is_hop_of_several_tables(host_tables, rule.table, gateways):
                continue  # reported with the tables
            yield RouteFault(
                "mark of another router", rule.origin,
                f"mark {rule.mark} is that of {planned.name}, but its table {rule.table} leads to"
                f" {', '.join(reached)}: a health check asks the wrong router",
                "lead each mark into the table of the router it stands for, or state table and mark in the system file",
            )  # fmt: skip
    if host_tables.routes is not None:
        for view in host_views:
            yield from _check_effective_marks(view, host_tables, reported)


def _is_behind_rule_of_same_mark(
    host_views: Sequence[HostView], rules: Sequence[ObservedRule], rule: ObservedRule
) -> bool:
    """Whether an earlier rule takes all packets with the mark of a rule."""
    return any(
        earlier.mark == rule.mark
        and earlier.preference is not None
        and rule.preference is not None
        and earlier.preference < rule.preference
        and all(does_rule_lead_all_packets(view, earlier, rule.mark or 0) for view in host_views)
        for earlier in rules
    )


def _is_hop_of_several_tables(host_tables: HostTables, table_name: str, gateways: Mapping[str, FabricRouter]) -> bool:
    """Whether a router of a table is also that of another table."""
    routes = [route for route in host_tables.routes or () if route.table not in _COMMON_TABLES]
    hops = {hop.via for route in routes if route.table == table_name for hop in route.hops if hop.via in gateways}
    return any(hop.via in hops for route in routes if route.table != table_name for hop in route.hops)


def _list_routers_of_table(
    host_views: Sequence[HostView], host_tables: HostTables, table_name: str, gateways: Mapping[str, FabricRouter]
) -> list[str]:
    """The names of the routers through which a table leads to the other side."""
    far_ranges = [far_range for view in host_views for far_range in view.other_side.ranges]
    hops = {
        hop.via
        for route in host_tables.routes or ()
        if route.table == table_name and any(covers_range(route.destination, far_range) for far_range in far_ranges)
        for hop in route.hops
    }
    return list(dict.fromkeys(gateways[hop].name for hop in sorted(hops) if hop in gateways))


def _check_effective_marks(
    host_view: HostView, host_tables: HostTables, reported_rules: set[str]
) -> Iterator[RouteFault]:
    """Marks whose packets the kernel sends through other routers, or discards. Each rule is reported once."""
    rules = host_tables.rules or ()
    for gateway, router in host_view.routers_by_gateway.items():
        mark_rules = [rule for rule in rules if does_rule_lead_all_packets(host_view, rule, router.mark)]
        if not any(rule.mark == router.mark for rule in rules if rule.mark is not None):
            continue
        tables = {rule.table for rule in rules if rule.mark is not None} | {_MAIN}
        marked = replace(
            host_tables, routes=tuple(route for route in host_tables.routes or () if route.table in tables)
        )
        for far_range in host_view.other_side.ranges:
            for target in list_probe_addresses(marked, far_range):
                lookup = find_kernel_route(host_tables, target, packet_mark=router.mark)
                if lookup is None or lookup.rule.origin in reported_rules:
                    continue
                fault = _check_marked_lookup(host_view, host_tables, gateway, target, lookup)
                fault = fault or _check_bypassed_rule(host_view, host_tables, gateway, target, lookup, mark_rules)
                if fault is not None:
                    reported_rules.add(lookup.rule.origin)
                    yield fault


def _check_marked_lookup(
    host_view: HostView, host_tables: HostTables, gateway: str, target: IpAddress, lookup: RouteLookup
) -> RouteFault | None:
    """A fault of the route that packets with the mark of a router take by a rule on marks. A route that another table
    lacks is reported with that table."""
    router, rule = host_view.routers_by_gateway[gateway], lookup.rule
    if not rule.mark or rule.inverted:  # mark 0 also takes packets without a mark, which is reported with the paths
        return None
    if lookup.is_discarded:
        kind = rule.action if lookup.route is None else lookup.route.kind
        return RouteFault(
            "traffic discarded", lookup.origin,
            f"packets with mark {router.mark} of {router.name} to {target} are discarded ({kind}): a health check calls"
            " that router dead",
            "remove this route or rule, or narrow it",
        )  # fmt: skip
    assert lookup.route is not None
    reached = list(dict.fromkeys(
        host_view.routers_by_gateway[hop.via].name for hop in lookup.route.hops
        if hop.via in host_view.routers_by_gateway
    ))  # fmt: skip
    mask = "" if rule.mask == _FULL_MASK else f" (mask {rule.mask:#x})"
    if reached and router.name not in reached:
        return RouteFault(
            "mark of another router", rule.origin,
            f"packets with mark {router.mark} of {router.name} match this rule{mask} first, which leads to"
            f" {', '.join(reached)}: a health check asks the wrong router",
            "match the whole mark, and give each mark one rule",
        )  # fmt: skip
    extra = [each for each in host_view.fabric.routers if each.name in reached and each is not router]
    if extra and not all(_lacks_route_by_router(host_tables, str(each.table)) for each in extra):
        return RouteFault(
            "mark of several routers", rule.origin,
            f"packets with mark {router.mark} of {router.name} match this rule{mask}, whose table {rule.table} spreads"
            f" them over {', '.join(reached)}: a health check does not ask that router alone",
            f"lead the mark into a table with {router.name} alone: {host_view.rule_command} add pref"
            f" {router.preference} fwmark {router.mark} table {router.table}",
        )  # fmt: skip
    return None


def _lacks_route_by_router(host_tables: HostTables, table_name: str) -> bool:
    """Whether a table has routes, but none with a next hop."""
    routes = [route for route in host_tables.routes or () if route.table == table_name]
    return bool(routes) and not any(route.hops for route in routes)


def _has_route_by_router(host_tables: HostTables, table_name: str) -> bool:
    """Whether a table has a route with a next hop, or nothing but default routes."""
    routes = [route for route in host_tables.routes or () if route.table == table_name]
    return any(route.hops for route in routes) or all(route.destination == "default" for route in routes)


def _check_bypassed_rule(
    host_view: HostView,
    host_tables: HostTables,
    gateway: str,
    target: IpAddress,
    lookup: RouteLookup,
    mark_rules: Sequence[ObservedRule],
) -> RouteFault | None:
    """A rule of a mark whose table is right, and whose packets still take another one."""
    if lookup.rule.mark is not None or lookup.rule.table != _MAIN or lookup.is_discarded:
        return None  # a rule that leads elsewhere takes packets without a mark too, which is reported with the paths
    for rule in mark_rules:
        route = find_table_route(host_tables.routes or (), rule.table, target)
        is_thrown = route is not None and route.kind == "throw"
        if route is None or (gateway not in [hop.via for hop in route.hops] and not is_thrown):
            continue
        if rule.preference is not None and rule.preference > MAIN_PREFERENCE:
            continue  # too late, which is reported with the rules
        router = host_view.routers_by_gateway[gateway]
        is_suppressed = rule.suppressed_prefix is not None
        if is_thrown and not _has_route_by_router(host_tables, rule.table):
            continue  # reported with the table
        if is_thrown:
            return RouteFault(
                "mark without effect", route.origin,
                f"table {rule.table} gives packets to {route.destination} back (throw): with mark {router.mark} they"
                f" take table {lookup.rule.table}, and a health check does not ask {router.name}",
                "remove this route",
            )  # fmt: skip
        reason = (
            f"ignores the route of table {rule.table} (suppress_prefixlength {rule.suppressed_prefix})"
            if is_suppressed
            else f"comes after {lookup.rule.origin}, which takes them into table {lookup.rule.table}"
        )
        return RouteFault(
            "mark without effect", rule.origin,
            f"the rule of mark {router.mark} {reason}: a health check does not ask {router.name}",
            "remove suppress_prefixlength" if is_suppressed else "give the rule of the mark the smaller preference",
        )  # fmt: skip
    return None
