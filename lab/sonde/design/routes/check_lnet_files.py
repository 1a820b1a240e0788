# SPDX-License-Identifier: Apache-2.0
"""Joins the faults of LNet routes of the running host with those of its configuration files: one cause is one fault,
and its remedy is for what is wrong, the files, the running host or both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sonde.design.routes.check_lnet import LNET_ROUTE_MISSING, UNKNOWN_LNET_ROUTE
from sonde.design.routes.faults import RouteCheck, RouteFault
from sonde.design.routes.host_tables import HostTables


def join_lnet_faults(
    live_check: RouteCheck, configured_check: RouteCheck, configured_tables: HostTables
) -> tuple[RouteCheck, RouteCheck]:
    """The faults of the running host with the files that bring them back at the next start, and those of the files
    alone."""
    files = list(dict.fromkeys(route.origin.partition(",")[0] for route in configured_tables.lnet_routes or ()))
    repeated = {(fault.kind, fault.location) for fault in configured_check.faults}
    unknown = [fault for fault in configured_check.faults if fault.kind == UNKNOWN_LNET_ROUTE]
    live_faults, joined = [], []
    for fault in live_check.faults:
        same = next((other for other in unknown if _is_same_cause(fault, other)), None)
        text = ""
        if same is not None:
            joined.append(same)
            fault = replace(fault, problem=_join_problems(fault, same))
            text = f"; correct {same.location}, which brings this back at the next start"
        elif files and (fault.kind, fault.location) in repeated:
            text = f"; correct {', '.join(files)} too, which brings this back at the next start"
        live_faults.append(replace(fault, remedy=f"{fault.remedy}{text}"))
    lacks_routes = any(fault.kind == LNET_ROUTE_MISSING for fault in live_check.faults)
    return (
        replace(live_check, faults=tuple(live_faults)),
        replace(
            configured_check,
            faults=tuple(
                _correct_file(fault, files, lacks_routes) for fault in configured_check.faults if fault not in joined
            ),
        ),
    )


def _is_same_cause(live_fault: RouteFault, file_fault: RouteFault) -> bool:
    """Whether the running host has the wrong route of a file too, or lacks the route that the file should have."""
    if live_fault.kind == LNET_ROUTE_MISSING:
        network, _, gateways = live_fault.location.partition(" by ")
        return f" to {network} by " in file_fault.problem and file_fault.problem.endswith(f", instead of {gateways}")
    return live_fault.kind == UNKNOWN_LNET_ROUTE and live_fault.problem == file_fault.problem


def _join_problems(live_fault: RouteFault, file_fault: RouteFault) -> str:
    if live_fault.problem == file_fault.problem:
        return live_fault.problem
    return f"{live_fault.problem}; in {file_fault.location} {file_fault.problem}"


def _correct_file(fault: RouteFault, files: Sequence[str], lacks_routes: bool) -> RouteFault:
    """A fault of files alone with the remedy for these."""
    if fault.kind == UNKNOWN_LNET_ROUTE:
        verb = "remove" if fault.remedy.startswith("remove") else "correct"
        return replace(fault, remedy=f"{verb} {fault.location}, which takes effect at the next start")
    if fault.kind == LNET_ROUTE_MISSING and files and not lacks_routes:
        text = f"add the gateways to the routes in {', '.join(files)}; the running host has these routes"
        return replace(fault, problem=f"after the next start {fault.problem}", remedy=text)
    return fault
