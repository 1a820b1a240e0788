# SPDX-License-Identifier: Apache-2.0
"""The verbs of ``sonde route`` that send packets through each router: ``watch`` and ``latency``."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from sonde.cli.options import add_json_option
from sonde.cli.run_selection import open_progress_bar
from sonde.design.routes.fabric import find_fabrics, is_address_in_ranges
from sonde.design.routes.health import HealthCheckTiming, WatchedRoutes
from sonde.design.routes.host_view import HostView, find_host_views
from sonde.design.routes.plan import plan_routes
from sonde.model.addresses import parse_address
from sonde.model.bundled_files import find_system_file
from sonde.model.errors import EXIT_FAILED, EXIT_NOTHING_COMPARED, MachineError, UserError
from sonde.model.system import read_system
from sonde.model.units import format_count_with_noun, format_seconds
from sonde.terminal.screen import get_messages_console, get_results_console, make_plain_table, print_json

if TYPE_CHECKING:
    from sonde.design.routes.path_latency import PathLatency

# Hosts behind the routers that a health check asks.
_PROBED_HOST_COUNT = 3
_system_argument = click.argument("system", metavar="SYSTEM")
_class_option = click.option(
    "--as", "name", metavar="CLASS", required=True, help="The class of hosts that this host is one of."
)
_network_option = click.option(
    "--to", "network", metavar="NETWORK", help="Which other network, where the class has several."
)


@click.command("watch")
@_system_argument
@_class_option
@_network_option
@click.option(
    "--interval",
    type=click.FloatRange(0.05, 60),
    default=HealthCheckTiming.interval_s,
    show_default=True,
    help="Seconds.",
)
@click.option(
    "--down",
    type=click.IntRange(1, 100),
    default=HealthCheckTiming.down,
    show_default=True,
    help="Failed rounds to take out.",
)
@click.option(
    "--up",
    type=click.IntRange(1, 1000),
    default=HealthCheckTiming.up,
    show_default=True,
    help="Good rounds to put back.",
)
def watch_command(system: str, name: str, network: str | None, interval: float, down: int, up: int) -> int:
    """Ask every router of SYSTEM again and again, and take the dead ones out of the multipath route of this host.

    For a service on every host (packaging/systemd). It runs until it is ended; the route is whole again then. The last
    router is never taken out. Needs root.

    \b
    Examples:
      sonde route watch cumulus --as compute
      sonde route watch cumulus --as compute --interval 0.2
    """
    from sonde.design.routes.health import make_route_replacer, watch_routers

    timing = HealthCheckTiming(interval, down, up)
    view, other_views = _choose_probed_fabric(system, name, network)
    if other_views:
        get_messages_console().print(
            f"sonde: only {view.fabric.name} is watched; start another with --to {other_views[0].other_side.network}.",
            soft_wrap=True,
        )
    fabric = view.fabric
    watched = _make_watched_routes(view, _list_far_hosts(view)[:_PROBED_HOST_COUNT])
    plan = watched.plan
    change = make_route_replacer(fabric.version, plan.mtu)
    get_messages_console().print(
        f"Watching {format_count_with_noun(len(fabric.routers), 'router')}: a dead one is out within "
        f"{timing.failover_s:g} s.",
        soft_wrap=True,
    )
    try:
        watch_routers(
            watched,
            timing,
            change,
            lambda message: get_messages_console().print(message, soft_wrap=True, highlight=False),
        )
    finally:
        for route in watched.main_routes:
            with suppress(MachineError):  # the interface is not there: there is no route to restore
                change(route)
    return 0


@click.command("latency")
@_system_argument
@_class_option
@_network_option
@click.option("--host", metavar="ADDRESS", help="The host of the other network to ask (default: the first).")
@click.option(
    "--probes", type=click.IntRange(20, 1000), default=200, show_default=True, help="Requests through each router."
)
@click.option(
    "--interval", type=click.FloatRange(0, 10), default=0.01, show_default=True, help="Seconds between rounds."
)
@add_json_option
def latency_command(
    system: str, name: str, network: str | None, host: str | None, probes: int, interval: float, as_json: bool
) -> int:
    """Measure the round trip through every router of SYSTEM from this host, and name the routers that are slow.

    Requests carry the firewall mark of a router, so the planned rules lead them through it (`sonde route plan`). Each
    round asks every router, and a host behind it through that router, one after the other; a router is compared with
    the median of the others in the same rounds. Needs root. Exit code 1 when a router is slow or loses packets, 6 when
    nothing answered.

    \b
    Examples:
      sonde route latency cumulus --as compute
      sonde route latency cumulus --as compute --host 10.10.1.12 --probes 1000
    """
    from sonde.design.routes.path_latency import describe_latency_fault, measure_paths

    view, other_views = _choose_probed_fabric(system, name, network)
    if other_views:
        networks = ", ".join(item.other_side.network for item in (view, *other_views))
        raise UserError(f"{name} has routes to {networks}; say which to measure with --to.")
    far_hosts = _list_far_hosts(view)
    if host is not None and not is_address_in_ranges(view.other_side.ranges, str(parse_address(host))):
        raise UserError(f"{host} is not in {view.other_side.network} ({', '.join(view.other_side.ranges)}).")
    watched = _make_watched_routes(view, [str(parse_address(host))] if host is not None else far_hosts[:1])
    routers = [route.name for route in view.fabric.routers]
    with open_progress_bar("rounds") as step:
        paths = measure_paths(watched, routers, rounds=probes, interval_s=interval, on_step=step)
    faults = [fault for path in paths if (fault := describe_latency_fault(path))]
    is_any_answered = any(path.lost < path.sent for path in paths)
    if as_json:
        print_json({"host": name, "fabric": view.fabric.name, "paths": [asdict(path) for path in paths],
                    "faults": faults})  # fmt: skip
    else:
        _print_path_latencies(paths, faults, is_any_answered)
    if not is_any_answered:
        return EXIT_NOTHING_COMPARED
    return EXIT_FAILED if faults else 0


def _print_path_latencies(paths: Sequence[PathLatency], fault_sentences: Sequence[str], is_any_answered: bool) -> None:
    console = get_results_console()
    table = make_plain_table()
    for title in ("router", "answer of", "median", "99 %", "lost", "times the others"):
        table.add_column(title, justify="left" if title in ("router", "answer of") else "right")
    for path in paths:
        relative = path.relative
        table.add_row(
            path.router,
            path.target or "the router",
            "" if path.median_s is None else str(format_seconds(path.median_s)),
            "" if path.p99_s is None else str(format_seconds(path.p99_s)),
            f"{path.lost} of {path.sent}",
            "" if relative is None or relative.low is None or relative.high is None
            else f"{relative.value:.2f} ({relative.low:.2f} to {relative.high:.2f})",
        )  # fmt: skip
    console.print(table)
    for fault in fault_sentences:
        console.print(fault, style="bold red", soft_wrap=True, highlight=False)
    if not is_any_answered:
        console.print(
            "No router answered, so no path was measured: are the planned rules in place (sonde route check)?",
            soft_wrap=True,
        )
    elif not fault_sentences:
        console.print(
            f"{format_count_with_noun(len(paths), 'path')} measured: no router is slower or loses more than the others."
        )


def _choose_probed_fabric(system_name: str, fabric_name: str, network: str | None) -> tuple[HostView, list[HostView]]:
    """The fabric to probe from this host, and the others that it belongs to."""
    views = find_host_views(find_fabrics(read_system(find_system_file(system_name))), fabric_name)
    if not views:
        raise UserError(f"A router has no routers to probe; name a class of hosts with --as, not {fabric_name}.")
    (view, *other_views) = [item for item in views if network in (None, item.other_side.network)] or views
    if network is not None and view.other_side.network != network:
        networks = list(dict.fromkeys(item.other_side.network for item in views))
        raise UserError(f"{fabric_name} has no routes to {network}; it has routes to {', '.join(networks)}.")
    return view, other_views


def _list_far_hosts(view: HostView) -> list[str]:
    return [address for item in view.other_side.classes for address in item.addresses]


def _make_watched_routes(view: HostView, far_hosts: Sequence[str]) -> WatchedRoutes:
    plan = next(
        host
        for host in plan_routes(view.fabric).host_plans
        if host.network == view.own_side.network and host.host_class is view.host_class
    )
    return WatchedRoutes(plan, _list_far_addresses(view), tuple(far_hosts))


def _list_far_addresses(view: HostView) -> tuple[str, ...]:
    is_near = view.own_side is view.fabric.near
    return tuple(route.far_address if is_near else route.near_address for route in view.fabric.routers)
