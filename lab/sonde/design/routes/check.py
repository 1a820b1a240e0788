# SPDX-License-Identifier: Apache-2.0
"""What is wrong with the rules, routes and settings of a host, compared with the fabrics that it belongs to.

Nothing here sends packets: `check_host_routes` evaluates the tables that it gets, counts what it compared, and lists
the parts that it did not get.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sonde.design.checked_items import CheckedItem, split_faults_and_comparisons
from sonde.design.routes.check_links import find_link_faults
from sonde.design.routes.check_paths import find_path_faults
from sonde.design.routes.check_routes import find_route_faults
from sonde.design.routes.check_rules import find_rule_faults, find_table_faults
from sonde.design.routes.check_settings import check_router_tables, find_setting_faults
from sonde.design.routes.fabric import Fabric
from sonde.design.routes.faults import RouteCheck, RouteFault, list_unknown
from sonde.design.routes.host_tables import HostTables
from sonde.design.routes.host_view import ROUTERS, HostView, find_host_views


def check_host_routes(fabrics: Sequence[Fabric], host_or_class: str, host_tables: HostTables) -> RouteCheck:
    """Checks a host, a class of hosts, or "routers". Raises UserError when no fabric has the name."""
    views = find_host_views(fabrics, host_or_class)
    results = (
        check_router_tables(fabrics, host_tables)
        if host_or_class == ROUTERS
        else _check_fabrics_of_host(views, host_tables)
    )
    faults, comparisons = split_faults_and_comparisons(results)
    return RouteCheck(host_or_class, faults, list_unknown(host_tables), comparisons)


def _check_fabrics_of_host(
    host_views: Sequence[HostView], host_tables: HostTables
) -> Iterator[RouteFault | CheckedItem]:
    for view in host_views:
        yield from find_link_faults(view, host_tables)
        if host_tables.routes is not None:
            yield from find_path_faults(view, host_tables)
            yield from find_route_faults(view, host_views, host_tables)
        yield from find_setting_faults(view, host_tables)
    yield from find_table_faults(host_views, host_tables)
    yield from find_rule_faults(host_views, host_tables)
