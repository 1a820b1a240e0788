# SPDX-License-Identifier: Apache-2.0
"""The plan as configuration of what manages networks: NetworkManager, systemd-networkd, nmstate, Ansible, LNet."""

from __future__ import annotations

import configparser
import io
from collections.abc import Mapping
from typing import Any

import yaml

from sonde.design.routes.plan import HostPlan, Route, RoutePlan
from sonde.design.routes.scripts import scripts_of
from sonde.model.errors import UserError
from sonde.model.system import System
from sonde.model.system.network import Network, Router

_PATH = "/usr/local/sbin"


def networkd_files(host: HostPlan) -> dict[str, str]:
    """A drop-in of systemd-networkd for the device, and the settings for systemd-sysctl."""
    sections: list[str] = []
    for rule in host.rules:
        family = "ipv6" if host.version == 6 else "ipv4"
        sections.append(
            f"[RoutingPolicyRule]\nFamily={family}\nPriority={rule.preference}\nFirewallMark={rule.mark}\n"
            f"Table={rule.table}\n"
        )
    for route in host.routes:
        lines = ["[Route]", f"Destination={route.to}"]
        if route.table != "main":
            lines.append(f"Table={route.table}")
        if route.metric is not None:
            lines.append(f"Metric={route.metric}")
        if not route.hops:
            lines.append("Scope=link")
        elif len(route.hops) == 1:
            lines.append(f"Gateway={route.hops[0].via}")
        else:
            lines += [f"MultiPathRoute={hop.via}@{hop.device} {hop.weight}" for hop in route.hops]
        if route.hops and host.mtu is not None:
            lines.append(f"MTUBytes={host.mtu}")
        sections.append("\n".join(lines) + "\n")
    device = host.hosts.device
    return {
        f"etc/systemd/network/50-{device}.network.d/routes-{host.version}.conf": "\n".join(sections),
        f"etc/sysctl.d/90-routes-{device}.conf": _sysctl_file(host.settings),
    }


def keyfile_files(host: HostPlan) -> dict[str, str]:
    """A connection profile of NetworkManager (1.40 or later: routes of equal metric with weights are one multipath
    route). Addresses and the device are the site's: the profile holds what must be merged into theirs."""
    section: dict[str, str] = {}
    number = 0
    for route in host.routes:
        for hop in route.hops or (None,):
            number += 1
            gateway = f",{hop.via}" if hop else ""
            section[f"route{number}"] = f"{_explicit(route, host.version)}{gateway}" + (
                f",{route.metric}" if route.metric is not None and hop else ""
            )
            options = [f"table={route.table}"] if route.table != "main" else []
            options += ["scope=253"] if hop is None and host.version == 4 else []
            options += [f"weight={hop.weight}"] if hop and len(route.hops) > 1 else []
            options += [f"mtu={host.mtu}"] if hop and host.mtu is not None else []
            if options:
                section[f"route{number}_options"] = ",".join(options)
    for place, rule in enumerate(host.rules, start=1):
        section[f"routing-rule{place}"] = f"priority {rule.preference} fwmark {rule.mark} table {rule.table}"
    profile = configparser.ConfigParser(interpolation=None, delimiters=("=",))
    profile.optionxform = str  # type: ignore[assignment,method-assign]  # names keep their case
    profile["connection"] = {"id": f"routes-{host.hosts.device}", "type": "generic"}
    profile["connection"]["interface-name"] = host.hosts.device
    profile["ipv6" if host.version == 6 else "ipv4"] = section
    text = io.StringIO()
    profile.write(text, space_around_delimiters=False)
    return {
        f"etc/NetworkManager/system-connections/{host.hosts.device}.nmconnection": text.getvalue().rstrip("\n") + "\n",
        f"etc/sysctl.d/90-routes-{host.hosts.device}.conf": _sysctl_file(host.settings),
    }


def _explicit(route: Route, version: int) -> str:
    if route.to != "default":
        return route.to
    return "::/0" if version == 6 else "0.0.0.0/0"


def nmstate_files(host: HostPlan) -> dict[str, str]:
    """The desired state for ``nmstatectl apply``."""
    routes: list[dict[str, Any]] = []
    for route in host.routes:
        for hop in route.hops or (None,):
            entry: dict[str, Any] = {
                "destination": _explicit(route, host.version),
                "next-hop-interface": hop.device if hop else route.device,
            }
            if hop:
                entry["next-hop-address"] = hop.via
            if route.table != "main":
                entry["table-id"] = int(route.table)
            if route.metric is not None:
                entry["metric"] = route.metric
            if hop and len(route.hops) > 1:
                entry["weight"] = hop.weight
            routes.append(entry)
    rules = [
        {"priority": rule.preference, "fwmark": hex(rule.mark), "route-table": int(rule.table)} for rule in host.rules
    ]
    family = "ipv6" if host.version == 6 else "ipv4"
    state = {
        "routes": {"config": routes},
        "route-rules": {"config": [{"family": family, **rule} for rule in rules]},
    }
    return {f"{host.name}-{host.hosts.device}.yml": _yaml(state)}


def ansible_files(plan: RoutePlan) -> dict[str, str]:
    """A play for each class of hosts: the script is copied and run, and runs again at boot by a unit of its own."""
    files = scripts_of(plan)
    names = {host.name: one for host, one in zip(plan.hosts, files, strict=False)}
    names["routers"] = list(files)[-1]
    plays = []
    for group, script in names.items():
        unit = (
            f"[Unit]\nDescription=Routes of {group}\nAfter=network-online.target\nWants=network-online.target\n\n"
            f"[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/bin/sh {_PATH}/{script} apply\n"
            f"ExecStop=/bin/sh {_PATH}/{script} remove\n\n[Install]\nWantedBy=multi-user.target\n"
        )
        service = script.removesuffix(".sh")
        plays.append(
            {
                "name": f"Routes of {group}",
                "hosts": group,
                "become": True,
                "tasks": [
                    {
                        "name": "The script that applies and removes the routes",
                        "ansible.builtin.copy": {"src": script, "dest": f"{_PATH}/{script}", "mode": "0755"},
                        "register": "script",
                    },
                    {
                        "name": "The unit that runs it",
                        "ansible.builtin.copy": {"content": unit, "dest": f"/etc/systemd/system/{service}.service"},
                        "register": "unit",
                    },
                    {
                        "name": "Routes are applied now and at boot",
                        "ansible.builtin.systemd_service": {
                            "name": service,
                            "enabled": True,
                            "daemon_reload": True,
                            "state": "{{ 'restarted' if script.changed or unit.changed else 'started' }}",
                        },
                    },
                ],
            }
        )
    return {**files, "routes.yml": _yaml(plays)}


def lnet_files(system: System) -> dict[str, str]:
    """``lnetctl import`` files, one for each LNet network that is reached through LNet routers.

    Raises UserError when the system has none, or when a router lacks an LNet id.
    """
    routes: dict[str, list[dict[str, Any]]] = {}
    for name in system.ids("routers"):
        table = system.item(name).table
        if not isinstance(table, Router) or table.protocol != "lnet":
            continue
        ends = [one for one in system.addresses_of(name) if one.nid]
        for here in ends:
            for there in ends:
                if here.network == there.network:
                    continue
                entry: dict[str, Any] = {"net": _lnet_of(system, there.network), "gateway": here.nid}
                if table.hops is not None:
                    entry["hop"] = int(table.hops)
                if table.priority is not None:
                    entry["priority"] = int(table.priority)
                routes.setdefault(here.network, []).append(entry)
    if not routes:
        raise UserError(f'{system.id} has no LNet router with ids on two networks (protocol = "lnet", nids = […]).')
    return {f"lnet-{network}.yaml": _yaml({"route": entries}) for network, entries in routes.items()}


def _lnet_of(system: System, network: str) -> str:
    table = system.item(network).table
    if not isinstance(table, Network) or not table.lnet:
        raise UserError(f'{system.id}: network {network} has no LNet name; write one, like lnet = "o2ib1".')
    return table.lnet


def _sysctl_file(settings: Mapping[str, str]) -> str:
    return "".join(f"{name} = {value}\n" for name, value in settings.items())


def _yaml(data: object) -> str:
    return str(yaml.safe_dump(data, sort_keys=False, default_flow_style=False, allow_unicode=True, width=110))
