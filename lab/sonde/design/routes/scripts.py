# SPDX-License-Identifier: Apache-2.0
"""The plan as commands: a script for iproute2, and the rule- and route- files of the older network scripts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sonde.design.routes.fabric import Fabric
from sonde.design.routes.plan import HostPlan, Route, RoutePlan, Rule

# Marks our routes in the kernel's tables, so that they can be told from others; free in rt_protos.
PROTOCOL = "77"

_HEAD = """#!/bin/sh
# {what}
# Run as root: "sh {name} apply" (may be repeated), "sh {name} remove", "sh {name} show".
set -eu
"""


def host_script(plan: RoutePlan, host: HostPlan, name: str) -> str:
    """A script that applies and removes what hosts of a class get; applying twice changes nothing."""
    ip = "ip -6" if host.version == 6 else "ip"
    lines = [_HEAD.format(what=f"Routes of {host.name} on {host.side}: {plan.fabric.name}.", name=name)]
    lines += [f"# {note}" for note in plan.notes]
    lines.append("apply() {")
    lines += [f"    {one}" for one in _setting_lines(host.settings)]
    for route in host.routes:
        lines.append(f"    {ip} route replace {route_words(route, host.mtu)}")
    for rule in host.rules:
        # a rule has no "replace": the old one of the same place goes first
        lines.append(f"    while {ip} rule del pref {rule.preference} 2>/dev/null; do :; done")
        lines.append(f"    {ip} rule add {rule_words(rule)}")
    lines += ["}", "remove() {"]
    lines += [f"    while {ip} rule del pref {rule.preference} 2>/dev/null; do :; done" for rule in host.rules]
    lines += [f"    {ip} route flush table {table} proto {PROTOCOL} 2>/dev/null || :" for table in _tables(host)]
    lines += ["}", *_ending(f"{ip} rule show; {ip} route show table all proto {PROTOCOL}")]
    return "\n".join(lines) + "\n"


def router_script(plan: RoutePlan, name: str) -> str:
    """The same for routers: they need settings only."""
    lines = [_HEAD.format(what=f"Settings of the routers of {plan.fabric.name}.", name=name)]
    lines.append(f"# Both networks are on links of {', '.join(plan.routers.routers)}: they need no route.")
    lines += ["apply() {", *(f"    {one}" for one in _setting_lines(plan.routers.settings)), "}"]
    names = " ".join(plan.routers.settings)
    lines += ["remove() {", "    echo 'Settings stay until the next boot; nothing else was changed.'", "}"]
    return "\n".join([*lines, *_ending(f"sysctl {names}")]) + "\n"


def _ending(show: str) -> list[str]:
    return ['case "${1:-}" in', "apply | remove) $1 ;;", f"show) {show} ;;", '*) sed -n 2,3p "$0"; exit 2 ;;', "esac"]


def _setting_lines(settings: Mapping[str, str]) -> Iterator[str]:
    """Commands for sysctls; one that a kernel does not have is told, and the rest goes on."""
    for name, value in settings.items():
        yield f"sysctl -qw {name}={value} || echo 'This kernel does not take {name}: it stays.' >&2"


def _tables(host: HostPlan) -> list[str]:
    return list(dict.fromkeys(route.table for route in host.routes))


def route_words(route: Route, mtu: int | None = None) -> str:
    """A route as `ip route` takes it. The MTU stands on the routes that leave the network."""
    words = [route.to, "proto", PROTOCOL]
    if route.table != "main":
        words += ["table", route.table]
    if route.metric is not None:
        words += ["metric", str(route.metric)]
    if mtu is not None and route.hops:
        words += ["mtu", str(mtu)]
    if not route.hops:
        return " ".join([*words, "dev", route.device, "scope", "link"])
    if len(route.hops) == 1:
        (hop,) = route.hops
        return " ".join([*words, "via", hop.via, "dev", hop.device])
    for hop in route.hops:
        words += ["nexthop", "via", hop.via, "dev", hop.device, "weight", str(hop.weight)]
    return " ".join(words)


def rule_words(rule: Rule) -> str:
    """A rule as `ip rule add` takes it."""
    return f"pref {rule.preference} fwmark {rule.mark} table {rule.table}"


def legacy_files(host: HostPlan) -> dict[str, str]:
    """The two files of the network scripts, by name; the package NetworkManager-dispatcher-routing-rules reads them."""
    device = host.hosts.device
    suffix = "6" if host.version == 6 else ""
    rules = [rule_words(rule) for rule in host.rules]
    routes = [_legacy_route(route) for route in host.routes]
    folder = "etc/sysconfig/network-scripts"
    return {
        f"{folder}/rule{suffix}-{device}": "\n".join(rules) + "\n",
        f"{folder}/route{suffix}-{device}": "\n".join(routes) + "\n",
    }


def _legacy_route(route: Route) -> str:
    """In the order in which such files are written: the range, the hops, the table last."""
    end = f" table {route.table}" if route.table != "main" else ""
    metric = f" metric {route.metric}" if route.metric is not None else ""
    if not route.hops:
        return f"{route.to} dev {route.device} scope link{end}"
    if len(route.hops) == 1:
        return f"{route.to} via {route.hops[0].via} dev {route.hops[0].device}{metric}{end}"
    weighted = len({hop.weight for hop in route.hops}) > 1
    hops = " \\\n".join(
        f"nexthop dev {hop.device} via {hop.via}" + (f" weight {hop.weight}" if weighted else "") for hop in route.hops
    )
    return f"{route.to} scope global{metric} \\\n{hops}"


def scripts_of(plan: RoutePlan) -> dict[str, str]:
    """Every file of the iproute2 form, by name."""
    files = {}
    for host in plan.hosts:
        name = f"{_file_name(plan.fabric, host.name)}.sh"
        files[name] = host_script(plan, host, name)
    name = f"{_file_name(plan.fabric, 'routers')}.sh"
    return files | {name: router_script(plan, name)}


def _file_name(fabric: Fabric, name: str) -> str:
    version = "-ipv6" if fabric.version == 6 else ""
    return "".join(one if one.isalnum() or one in "-_" else "-" for one in f"routes-{name}{version}")
