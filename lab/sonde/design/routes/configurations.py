# SPDX-License-Identifier: Apache-2.0
"""The plan as files of programs that configure networks: NetworkManager, systemd-networkd, nmstate, Ansible, LNet."""

from __future__ import annotations

import configparser
import io
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import yaml

from sonde.design.grammar import check_names
from sonde.design.routes.plan import HostPlan, PlannedIpRoute, RoutePlan
from sonde.design.routes.scripts import make_route_scripts
from sonde.model.directives import check_sysctl_value, escape_ansible_value, escape_keyfile_value, escape_systemd_value
from sonde.model.errors import UserError
from sonde.model.system import System
from sonde.model.system.network import Network, Router

_SCRIPT_FOLDER = "/usr/local/sbin"


def make_networkd_files(host: HostPlan) -> dict[str, str]:
    """A drop-in of systemd-networkd for the device, and the settings for systemd-sysctl."""
    sections: list[str] = []
    for rule in host.rules:
        family = "ipv6" if host.version == 6 else "ipv4"
        sections.append(
            f"[RoutingPolicyRule]\nFamily={family}\nPriority={rule.preference}\nFirewallMark={rule.mark}\n"
            f"Table={rule.table}\n"
        )
    for route in host.routes:
        lines = ["[Route]", f"Destination={escape_systemd_value(route.destination)}"]
        if route.table != "main":
            lines.append(f"Table={route.table}")
        if route.metric is not None:
            lines.append(f"Metric={route.metric}")
        if not route.hops:
            lines.append("Scope=link")
        elif len(route.hops) == 1:
            lines.append(f"Gateway={escape_systemd_value(route.hops[0].via)}")
        else:
            lines += [
                f"MultiPathRoute={escape_systemd_value(f'{hop.via}@{hop.device}')} {hop.weight}" for hop in route.hops
            ]
        if route.hops and host.mtu is not None:
            lines.append(f"MTUBytes={host.mtu}")
        sections.append("\n".join(lines) + "\n")
    device = host.host_class.device
    return {
        f"etc/systemd/network/50-{device}.network.d/routes{host.qualifier}-{host.version}.conf": "\n".join(sections),
        _make_sysctl_file_name(host): _make_sysctl_file(host.settings),
    }


def _make_sysctl_file_name(host: HostPlan) -> str:
    return f"etc/sysctl.d/90-routes-{host.host_class.device}{host.qualifier}-ipv{host.version}.conf"


def make_keyfile_files(host: HostPlan) -> dict[str, str]:
    """A connection profile of NetworkManager (1.40 or later: routes of equal metric with weights form one multipath
    route). Addresses and the device are the site's: the profile holds what must be merged into theirs."""
    section: dict[str, str] = {}
    route_number = 0
    for route in host.routes:
        for hop in route.hops or (None,):
            route_number += 1
            gateway = f",{hop.via}" if hop else ""
            section[f"route{route_number}"] = f"{_format_destination(route, host.version)}{gateway}" + (
                f",{route.metric}" if route.metric is not None and hop else ""
            )
            options = [f"table={route.table}"] if route.table != "main" else []
            options += ["scope=253"] if hop is None and host.version == 4 else []
            options += [f"weight={hop.weight}"] if hop and len(route.hops) > 1 else []
            options += [f"mtu={host.mtu}"] if hop and host.mtu is not None else []
            if options:
                section[f"route{route_number}_options"] = ",".join(options)
    for rule_number, rule in enumerate(host.rules, start=1):
        section[f"routing-rule{rule_number}"] = f"priority {rule.preference} fwmark {rule.mark} table {rule.table}"
    profile = configparser.ConfigParser(interpolation=None, delimiters=("=",))
    profile.optionxform = str  # type: ignore[assignment,method-assign]  # names keep their case
    device = escape_keyfile_value(host.host_class.device)
    name = f"{host.host_class.device}{host.qualifier}" + ("-ipv6" if host.version == 6 else "")
    profile["connection"] = {"id": f"routes-{escape_keyfile_value(name)}", "type": "generic", "interface-name": device}
    profile["ipv6" if host.version == 6 else "ipv4"] = {
        name: escape_keyfile_value(text) for name, text in section.items()
    }
    text = io.StringIO()
    profile.write(text, space_around_delimiters=False)
    return {
        f"etc/NetworkManager/system-connections/{name}.nmconnection": text.getvalue().rstrip("\n") + "\n",
        _make_sysctl_file_name(host): _make_sysctl_file(host.settings),
    }


def _format_destination(route: PlannedIpRoute, version: int) -> str:
    if route.destination != "default":
        return route.destination
    return "::/0" if version == 6 else "0.0.0.0/0"


def make_nmstate_files(host: HostPlan) -> dict[str, str]:
    """The desired state for ``nmstatectl apply``."""
    routes: list[dict[str, Any]] = []
    for route in host.routes:
        for hop in route.hops or (None,):
            entry: dict[str, Any] = {
                "destination": _format_destination(route, host.version),
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
            if hop and host.mtu is not None:
                entry["mtu"] = host.mtu
            routes.append(entry)
    rules = [
        {"priority": rule.preference, "fwmark": hex(rule.mark), "route-table": int(rule.table)} for rule in host.rules
    ]
    family = "ipv6" if host.version == 6 else "ipv4"
    state = {
        "routes": {"config": routes},
        "route-rules": {"config": [{"family": family, **rule} for rule in rules]},
    }
    name = f"{host.name}{host.qualifier}-{host.host_class.device}"
    return {f"{name}-ipv6.yml" if host.version == 6 else f"{name}.yml": _format_yaml(state)}


def make_ansible_files(plans: Sequence[RoutePlan], class_name: str | None = None) -> dict[str, str]:
    """A play for each class of hosts, or for one: it copies and runs the script, and a systemd unit runs it again at
    boot."""
    files: dict[str, str] = {}
    plays: list[dict[str, Any]] = []
    for plan in plans:
        scripts = make_route_scripts(plan)
        names = [host.name for host in plan.host_plans] + ["routers"]
        chosen = [(name, script) for name, script in zip(names, scripts, strict=True) if class_name in (None, name)]
        files |= {script: scripts[script] for _, script in chosen}
        plays += _make_ansible_plays(chosen)
    return {**files, "routes.yml": _format_yaml(plays)}


def _make_ansible_plays(class_and_file_names: Iterable[tuple[str, str]]) -> list[dict[str, Any]]:
    plays: list[dict[str, Any]] = []
    for class_name, script in class_and_file_names:
        unit = escape_ansible_value(_make_systemd_unit(class_name, script))
        service = script.removesuffix(".sh")
        plays.append(
            {
                "name": f"Routes of {escape_ansible_value(class_name)}",
                "hosts": escape_ansible_value(class_name),
                "become": True,
                "tasks": [
                    {
                        "name": "The script that applies and removes the routes",
                        "ansible.builtin.copy": {"src": script, "dest": f"{_SCRIPT_FOLDER}/{script}", "mode": "0755"},
                        "register": "script",
                    },
                    {
                        "name": "The unit that runs it",
                        "ansible.builtin.copy": {
                            "content": unit,
                            "dest": f"/etc/systemd/system/{service}.service",
                        },
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
    return plays


def _make_systemd_unit(class_name: str, script_name: str) -> str:
    """The systemd unit that applies the routes at boot."""
    return (
        f"[Unit]\nDescription=Routes of {escape_systemd_value(class_name)}\n"
        "After=network-online.target\nWants=network-online.target\n\n"
        f"[Service]\nType=oneshot\nRemainAfterExit=yes\n"
        f"ExecStart=/bin/sh {_SCRIPT_FOLDER}/{escape_systemd_value(script_name)} apply\n"
        f"ExecStop=/bin/sh {_SCRIPT_FOLDER}/{escape_systemd_value(script_name)} remove\n\n"
        "[Install]\nWantedBy=multi-user.target\n"
    )


def make_lnet_files(system: System) -> dict[str, str]:
    """``lnetctl import`` files, one for each LNet network that is reached through LNet routers.

    Raises UserError when the system has none, or when a router lacks an LNet id.
    """
    check_names(system)
    routes: dict[str, list[dict[str, Any]]] = {}
    for name in system.list_part_ids("routers"):
        table = system.get_part(name).table
        if not isinstance(table, Router) or table.protocol != "lnet":
            continue
        addresses = [address for address in system.find_addresses(name) if address.nid]
        for near_address in addresses:
            for far_address in addresses:
                if near_address.network == far_address.network:
                    continue
                entry: dict[str, Any] = {
                    "net": _find_lnet_name(system, far_address.network),
                    "gateway": near_address.nid,
                }
                if table.hops is not None:
                    entry["hop"] = int(table.hops)
                if table.priority is not None:
                    entry["priority"] = int(table.priority)
                routes.setdefault(near_address.network, []).append(entry)
    if not routes:
        raise UserError(f'{system.id} has no LNet router with ids on two networks (protocol = "lnet", nids = […]).')
    return {f"lnet-{network}.yaml": _format_yaml({"route": entries}) for network, entries in routes.items()}


def _find_lnet_name(system: System, network: str) -> str:
    table = system.get_part(network).table
    if not isinstance(table, Network) or not table.lnet:
        raise UserError(f'{system.id}: network {network} has no LNet name; write one, like lnet = "o2ib1".')
    return table.lnet


def _make_sysctl_file(settings: Mapping[str, str]) -> str:
    return "".join(f"{check_sysctl_value(name)} = {check_sysctl_value(value)}\n" for name, value in settings.items())


def _format_yaml(yaml_value: object) -> str:
    return str(yaml.safe_dump(yaml_value, sort_keys=False, default_flow_style=False, allow_unicode=True, width=110))
