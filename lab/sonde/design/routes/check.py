# SPDX-License-Identifier: Apache-2.0
"""What is wrong with the rules, routes and settings of a host, compared with the fabrics that it belongs to.

Nothing here sends packets: `check_host_routes` evaluates the tables that it gets, counts what it compared, and lists
the parts that it did not get.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from sonde.design.checked_items import CheckedItem, split_faults_and_comparisons
from sonde.design.routes.check_directions import check_both_directions
from sonde.design.routes.check_links import find_link_faults
from sonde.design.routes.check_paths import find_path_faults
from sonde.design.routes.check_planned import OTHER_SETTING, find_differences_from_plan
from sonde.design.routes.check_routes import find_route_faults
from sonde.design.routes.check_rules import find_rule_faults, find_table_faults
from sonde.design.routes.check_settings import check_router_tables, find_setting_faults
from sonde.design.routes.check_written import list_options_not_compared
from sonde.design.routes.fabric import Fabric
from sonde.design.routes.faults import RouteCheck, RouteFault, list_unknown
from sonde.design.routes.host_tables import HostTables
from sonde.design.routes.host_view import ROUTERS, HostView, find_host_views
from sonde.design.routes.plan import plan_all_routes


def check_host_routes(
    fabrics: Sequence[Fabric], host_or_class: str, host_tables: HostTables, other_tables: HostTables | None = None
) -> RouteCheck:
    """Checks a host, a class of hosts, or "routers"; `other_tables` are those of a host of the other network. Raises
    UserError when no fabric has the name."""
    views = find_host_views(fabrics, host_or_class)
    host_tables = _select_rules_by_version(views, host_tables)
    results = (
        check_router_tables(fabrics, host_tables)
        if host_or_class == ROUTERS
        else _check_fabrics_of_host(views, host_tables)
    )
    unknown = list_unknown(host_tables)
    both_sides: Iterator[RouteFault | CheckedItem] = iter(())
    if other_tables is not None:
        both_sides = _check_directions(views, host_tables, other_tables)
    else:
        unknown = (*unknown, "the other side, so whether replies return the same way")
    all_faults, comparisons = split_faults_and_comparisons((*results, *both_sides))
    explained = {fault.location for fault in all_faults if fault.kind != OTHER_SETTING}
    faults = tuple(fault for fault in all_faults if fault.kind != OTHER_SETTING or fault.location not in explained)
    class_name = views[0].host_class.name if views else None
    not_compared = list_options_not_compared(plan_all_routes(fabrics), class_name, host_tables.formats, comparisons)
    return RouteCheck(host_or_class, faults, unknown, comparisons, not_compared)


def _check_directions(
    host_views: Sequence[HostView], host_tables: HostTables, other_tables: HostTables
) -> Iterator[RouteFault | CheckedItem]:
    for view in host_views:
        is_near = view.own_side is view.fabric.near
        sides = (host_tables, other_tables) if is_near else (other_tables, host_tables)
        yield from check_both_directions(view.fabric, *sides)


def _select_rules_by_version(host_views: Sequence[HostView], host_tables: HostTables) -> HostTables:
    """The tables without rules that are for another IP version than the fabrics of the host."""
    versions = {None, *(view.fabric.version for view in host_views)}
    if host_tables.rules is None or not host_views:
        return host_tables
    return replace(host_tables, rules=tuple(rule for rule in host_tables.rules if rule.version in versions))


def _check_fabrics_of_host(
    host_views: Sequence[HostView], host_tables: HostTables
) -> Iterator[RouteFault | CheckedItem]:
    for view in host_views:
        yield from find_link_faults(view, host_tables)
        if host_tables.routes is not None:
            yield from find_path_faults(view, host_tables)
            yield from find_route_faults(view, host_views, host_tables)
        yield from find_setting_faults(view, host_tables)
        yield from find_differences_from_plan(view, host_tables)
    yield from find_table_faults(host_views, host_tables)
    yield from find_rule_faults(host_views, host_tables)
