# SPDX-License-Identifier: Apache-2.0
"""What is wrong with the rules of a host, and with the tables that they lead to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from sonde.design.routes.fabric import Fabric, FabricSide, covers_range, index_gateways, is_covered
from sonde.design.routes.faults import RouteFault
from sonde.design.routes.host_tables import HostTables, ObservedRoute, ObservedRule

# Preference of the rule for the main table; rules of larger preference only count when main has no route.
_MAIN_PREFERENCE = 32766
# Tables that belong to the site or to the kernel.
_COMMON_TABLES = ("main", "local", "default")


def find_table_faults(
    fabric: Fabric, own_side: FabricSide, other_side: FabricSide, host_tables: HostTables
) -> Iterator[RouteFault]:
    """Tables of single routers: each needs a route to the other side, and a rule that leads to the table."""
    gateways = index_gateways(fabric, own_side)
    by_table: dict[str, list[ObservedRoute]] = {}
    for route in host_tables.routes or ():
        if route.table not in _COMMON_TABLES:
            by_table.setdefault(route.table, []).append(route)
    tables_by_gateway: dict[str, list[str]] = {}
    for table, routes in by_table.items():
        far_routes = [
            route
            for route in routes
            if route.hops and any(covers_range(route.destination, address_range) for address_range in other_side.ranges)
        ]
        if not far_routes:
            yield RouteFault(
                "table without a route",
                f"table {table}",
                f"no route of table {table} leads to {other_side.network}: packets that are sent there fall through",
                "add the route through one router",
            )
        for gateway in {hop.via for route in far_routes for hop in route.hops} & set(gateways):
            tables_by_gateway.setdefault(gateway, []).append(table)
        if host_tables.rules is not None and not any(rule.table == table for rule in host_tables.rules):
            yield RouteFault(
                "table without a rule",
                f"table {table}",
                f"no rule leads into table {table}: it is never used",
                "add a rule for it, or remove it",
            )
    for gateway, tables in tables_by_gateway.items():
        if len(tables) > 1:
            yield RouteFault(
                "router in several tables",
                f"tables {', '.join(tables)}",
                f"{gateway} is the next hop of {len(tables)} tables; a router that one of them is for has no table",
                "one table for each router",
            )
    if (
        by_table
        and tables_by_gateway
        and (gateways_without_table := [gateway for gateway in gateways if gateway not in tables_by_gateway])
    ):
        yield RouteFault(
            "router without a table",
            "tables",
            f"{', '.join(gateways_without_table)} has no table of its own, the other routers have",
            "one table for each router",
        )


def find_rule_faults(fabric: Fabric, own_side: FabricSide, host_tables: HostTables) -> Iterator[RouteFault]:
    if host_tables.rules is None:
        return
    gateways = index_gateways(fabric, own_side)
    far_gateways = index_gateways(fabric, fabric.far if own_side is fabric.near else fabric.near)
    used_tables = {route.table for route in host_tables.routes} if host_tables.routes is not None else None
    for rule in host_tables.rules:
        if rule.table in _COMMON_TABLES:
            continue
        if used_tables is not None and rule.table not in used_tables:
            yield RouteFault(
                "rule without a table",
                rule.origin,
                f"the rule leads into table {rule.table}, which has no route",
                "fill the table, or remove the rule",
            )
        source = rule.source.split("/")[0]
        if source in gateways or source in far_gateways:
            yield RouteFault(
                "rule that cannot match",
                rule.origin,
                f"the rule selects packets from the router {source}, but a forwarded packet keeps the address of its"
                " sender: the rule matches nothing on a host, and only the multipath route is used",
                "select by firewall mark, as the plan does",
            )
        elif source != "all" and not is_covered([*fabric.near.ranges, *fabric.far.ranges], source):
            yield RouteFault(
                "rule for an unknown address",
                rule.origin,
                f"{rule.source} is in neither network, nor is it a router of {fabric.name}",
                f"the routers are {', '.join(gateways)} here",
            )
        elif source != "all":
            yield from _find_non_router_rules(rule, source, gateways)
        if rule.preference is not None and rule.preference > _MAIN_PREFERENCE:
            yield RouteFault(
                "rule too late",
                rule.origin,
                f"the rule has preference {rule.preference}: the main table (32766) comes before it",
                "give it a smaller number",
            )
    yield from _find_shared_table(host_tables.rules, host_tables.routes)


def _find_non_router_rules(rule: ObservedRule, source: str, gateways: dict[str, int]) -> Iterator[RouteFault]:
    if rule.mark is None and source not in gateways:
        yield RouteFault(
            "rule for an unknown address",
            rule.origin,
            f"{source} is an address of this fabric, but of no router",
            f"the routers are {', '.join(gateways)} here",
        )


def _find_shared_table(rules: Sequence[ObservedRule], routes: Iterable[ObservedRoute] | None) -> Iterator[RouteFault]:
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
        )
