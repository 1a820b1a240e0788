# SPDX-License-Identifier: Apache-2.0
"""What is wrong with the rules, routes and settings of a host, compared with the fabrics that it belongs to.

Nothing here sends packets: `check_host` evaluates the tables that it gets, counts what it compared, and lists the parts
that it did not get.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sonde.design.checked_items import CheckedItem, split_results
from sonde.design.routes.check_links import find_link_faults
from sonde.design.routes.check_paths import find_path_faults
from sonde.design.routes.check_routes import find_route_faults
from sonde.design.routes.check_rules import find_rule_faults, find_table_faults
from sonde.design.routes.check_settings import check_routers, find_setting_faults
from sonde.design.routes.fabric import Fabric
from sonde.design.routes.faults import RouteCheck, RouteFault, list_unknown
from sonde.design.routes.host_tables import HostTables
from sonde.design.routes.host_view import ROUTERS, HostView, find_host_views


def check_host(fabrics: Sequence[Fabric], name: str, tables: HostTables) -> RouteCheck:
    """Checks a host, a class of hosts, or "routers". Raises UserError when no fabric has the name."""
    views = find_host_views(fabrics, name)
    results = check_routers(fabrics, tables) if name == ROUTERS else _check_views(views, tables)
    faults, comparisons = split_results(results)
    return RouteCheck(name, faults, list_unknown(tables), comparisons)


def _check_views(views: Sequence[HostView], tables: HostTables) -> Iterator[RouteFault | CheckedItem]:
    for view in views:
        yield from find_link_faults(view, tables)
        if tables.routes is not None:
            yield from find_path_faults(view, tables)
            yield from find_route_faults(view, views, tables)
        yield from find_setting_faults(view, tables)
    yield from find_table_faults(views, tables)
    yield from find_rule_faults(views, tables)
