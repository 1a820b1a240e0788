# SPDX-License-Identifier: Apache-2.0
"""The plan as commands: a script for iproute2, and the rule- and route- files of the older network scripts."""

from __future__ import annotations

import re
from collections.abc import Mapping

from sonde.design.routes.fabric import Fabric
from sonde.design.routes.plan import HostPlan, PlannedIpRoute, RoutePlan, Rule
from sonde.model.directives import require_word_without_quotes
from sonde.model.shell import ShellScript

# Protocol number of these routes in the kernel's tables, which distinguishes them from others; unassigned in rt_protos.
PROTOCOL = "77"

_DISPATCH = """
case "${1:-}" in
apply | remove | show) "$1" ;;
*) sed -n 2,3p "$0"; exit 2 ;;
esac
"""


def make_host_script(route_plan: RoutePlan, host_plan: HostPlan, script_name: str) -> str:
    """A script that applies and removes the routes of a class of hosts; applying twice changes nothing."""
    ip = ("ip", "-6") if host_plan.version == 6 else ("ip",)
    script = _make_script_head(
        f"Routes of {host_plan.name} on {host_plan.network}: {route_plan.fabric.name}.", script_name
    )
    for note in route_plan.notes:
        script.add_comment(note)
    with script.define_function("apply"):
        _add_sysctl_commands(script, host_plan.settings)
        for route in host_plan.routes:
            script.add_command(*ip, "route", "replace", *make_route_arguments(route, host_plan.mtu))
        for rule in host_plan.rules:
            # A rule has no "replace": the same one goes first. Another rule of this preference is the site's and stays.
            script.add_loop_until_failure(*ip, "rule", "del", *make_rule_arguments(rule))
            script.add_command(*ip, "rule", "add", *make_rule_arguments(rule))
    with script.define_function("remove"):
        for rule in host_plan.rules:
            script.add_loop_until_failure(*ip, "rule", "del", *make_rule_arguments(rule))
        for route in host_plan.routes:
            # Not all routes of this protocol: those of another fabric are in the same table.
            script.add_command(*ip, "route", "del", *_make_route_key(route), hides_output=True)
    with script.define_function("show"):
        script.add_command(*ip, "rule", "show")
        script.add_command(*ip, "route", "show", "table", "all", "proto", PROTOCOL)
    script.add_literal_lines(_DISPATCH)
    return str(script)


def make_router_script(route_plan: RoutePlan, script_name: str) -> str:
    """The script for routers: they need settings only."""
    script = _make_script_head(f"Settings of the routers of {route_plan.fabric.name}.", script_name)
    script.add_comment(
        f"Both networks are on links of {', '.join(route_plan.router_plan.routers)}: they need no route."
    )
    with script.define_function("apply"):
        _add_sysctl_commands(script, route_plan.router_plan.settings)
    with script.define_function("remove"):
        script.add_literal_lines("echo 'Settings stay until the next boot; nothing else was changed.'")
    with script.define_function("show"):
        script.add_command("sysctl", *route_plan.router_plan.settings)
    script.add_literal_lines(_DISPATCH)
    return str(script)


def _make_script_head(script_title: str, script_name: str) -> ShellScript:
    script = ShellScript()
    script.add_comment(script_title)
    script.add_comment(
        f'Run as root: "sh {script_name} apply" (may be repeated), "sh {script_name} remove", "sh {script_name} show".'
    )
    script.add_literal_lines("set -eu")
    return script


def _add_sysctl_commands(script: ShellScript, settings: Mapping[str, str]) -> None:
    """Commands for sysctls; the script names one that the kernel does not have, and continues."""
    for name, value in settings.items():
        script.add_command(
            "sysctl", "-qw", f"{name}={value}", warning_text=f"This kernel does not take {name}: it stays."
        )


def make_route_arguments(route: PlannedIpRoute, mtu: int | None = None) -> list[str]:
    """A route as arguments of `ip route`. Only routes through a router name the MTU."""
    arguments = _make_route_key(route)
    if mtu is not None and route.hops:
        arguments += ["mtu", str(mtu)]
    if not route.hops:
        return [*arguments, "dev", route.device, "scope", "link"]
    if len(route.hops) == 1:
        (hop,) = route.hops
        return [*arguments, "via", hop.via, "dev", hop.device]
    for hop in route.hops:
        arguments += ["nexthop", "via", hop.via, "dev", hop.device, "weight", str(hop.weight)]
    return arguments


def _make_route_key(route: PlannedIpRoute) -> list[str]:
    """Arguments of `ip route` that identify a route, without its next hops, which may have changed."""
    arguments = [route.destination, "proto", PROTOCOL]
    if route.table != "main":
        arguments += ["table", route.table]
    if route.metric is not None:
        arguments += ["metric", str(route.metric)]
    return arguments


def make_rule_arguments(rule: Rule) -> list[str]:
    """A rule as arguments of `ip rule add`."""
    return ["pref", str(rule.preference), "fwmark", str(rule.mark), "table", rule.table]


def make_network_script_files(host: HostPlan) -> dict[str, str]:
    """The two files of the network scripts, by name; the package NetworkManager-dispatcher-routing-rules reads them.

    Their names follow from the device, so the texts of several fabrics of one device belong into the same files.
    """
    device = require_word_without_quotes(host.host_class.device)
    suffix = "6" if host.version == 6 else ""
    rules = [" ".join(make_rule_arguments(rule)) for rule in host.rules]
    routes = [_format_legacy_route(route, host.mtu) for route in host.routes]
    folder = "etc/sysconfig/network-scripts"
    return {
        f"{folder}/rule{suffix}-{device}": "\n".join(rules) + "\n",
        f"{folder}/route{suffix}-{device}": "\n".join(routes) + "\n",
    }


def _format_legacy_route(route: PlannedIpRoute, mtu: int | None) -> str:
    """A route in the order of such files: the range, the next hops, the table last."""
    to, device = (
        require_word_without_quotes(route.destination),
        require_word_without_quotes(route.device) if route.device else "",
    )
    table_suffix = f" table {route.table}" if route.table != "main" else ""
    metric = f" metric {route.metric}" if route.metric is not None else ""
    metric += f" mtu {mtu}" if mtu is not None and route.hops else ""
    if not route.hops:
        return f"{to} dev {device} scope link{table_suffix}"
    if len(route.hops) == 1:
        via, via_device = (
            require_word_without_quotes(route.hops[0].via),
            require_word_without_quotes(route.hops[0].device),
        )
        return f"{to} via {via} dev {via_device}{metric}{table_suffix}"
    weighted = len({hop.weight for hop in route.hops}) > 1
    hops = " \\\n".join(
        f"nexthop dev {require_word_without_quotes(hop.device)} via {require_word_without_quotes(hop.via)}"
        + (f" weight {hop.weight}" if weighted else "")
        for hop in route.hops
    )
    return f"{to} scope global{metric} \\\n{hops}"


def make_route_scripts(plan: RoutePlan) -> dict[str, str]:
    """Every script of a plan, by file name."""
    files = {}
    for host in plan.host_plans:
        name = make_script_name(plan.fabric, host)
        files[name] = make_host_script(plan, host, name)
    name = f"{_make_script_file_name(plan.fabric, f'routers{plan.router_plan.qualifier}')}.sh"
    return files | {name: make_router_script(plan, name)}


def make_script_name(fabric: Fabric, host: HostPlan) -> str:
    """The name of the script of a class of hosts."""
    return f"{_make_script_file_name(fabric, f'{host.name}{host.qualifier}')}.sh"


def _make_script_file_name(fabric: Fabric, class_name: str) -> str:
    version = "-ipv6" if fabric.version == 6 else ""
    return re.sub(r"[^A-Za-z0-9_-]", "-", f"routes-{class_name}{version}")
