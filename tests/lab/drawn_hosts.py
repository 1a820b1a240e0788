# SPDX-License-Identifier: Apache-2.0
"""Hosts and routers of random fabrics: the planner routes them, and this prints what their tools would say."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from fabric_builders import build_fabric
from planted_route_faults import CONFS, DEFAULT_SYSCTLS

from sonde.design.routes.check import check_host_routes
from sonde.design.routes.fabric import Fabric, find_fabrics
from sonde.design.routes.faults import RouteCheck
from sonde.design.routes.host_tables import HostTables
from sonde.design.routes.plan import HostPlan, plan_all_routes
from sonde.design.routes.scripts import make_route_arguments
from sonde.design.routes.table_reader import parse_host_tables
from sonde.model.shell import quote_command
from sonde.model.system import make_system

_LINK = "<BROADCAST,MULTICAST,UP,LOWER_UP> mtu 9000 qdisc mq state UP"


@dataclass
class DrawnHost:
    """A host or router (`name` is its class) and what its tools print. `gateways` are the addresses of the routers on
    its side, those of the standby last."""

    fabrics: Sequence[Fabric]
    name: str
    device: str
    gateways: list[str]
    has_standby: bool
    outputs: dict[str, str] = field(default_factory=dict)

    @property
    def version(self) -> int:
        """The IP version."""
        return self.fabrics[0].version

    @property
    def far_range(self) -> str:
        """The network behind the routers."""
        fabric = self.fabrics[0]
        return fabric.near.ranges[0] if self.name == "stores" else fabric.far.ranges[0]

    @property
    def active(self) -> list[str]:
        """The routers that carry traffic."""
        return self.gateways[:-1] if self.has_standby else self.gateways

    def replace_text(self, output: str, old: str, new: str, count: int = -1) -> None:
        """Replaces a text of one output, which must be there."""
        assert old in self.outputs[output], (output, old)
        self.outputs[output] = self.outputs[output].replace(old, new, count)

    def add(self, output: str, *lines: str) -> None:
        """Adds lines to one output."""
        self.outputs[output] = self.outputs.get(output, "") + "".join(f"{line}\n" for line in lines)

    def remove_lines(self, output: str, pattern: str) -> None:
        """Removes lines that a pattern matches, at least one."""
        lines = self.outputs[output].splitlines()
        remaining = [line for line in lines if not re.search(pattern, line)]
        assert len(remaining) < len(lines), pattern
        self.outputs[output] = "".join(f"{line}\n" for line in remaining)

    def set_sysctl(self, setting: str, value: object) -> None:
        """Sets one setting."""
        self.add("settings", f"{setting} = {value}")

    def edit_main_route(self, old: str, new: str) -> None:
        """Changes a text of the multipath route."""
        lines = self.outputs["routes"].splitlines()
        index = next(number for number, line in enumerate(lines) if "nexthop" in line and " table " not in line)
        assert re.search(old, lines[index]), (old, lines[index])
        lines[index] = re.sub(old, new, lines[index], count=1)
        self.outputs["routes"] = "".join(f"{line}\n" for line in lines)

    def check(self) -> RouteCheck:
        """Checks the outputs as `route check` does."""
        tables = HostTables()
        for origin, text in self.outputs.items():
            if text:
                tables = tables.merge_tables(parse_host_tables(text, origin))
        return check_host_routes(self.fabrics, self.name, tables)


def draw_host(random: Random, host_kind: str) -> DrawnHost:
    """A host of a kind: "4" and "6" are clients by IP version, "router4" and "router6" routers, "site" a server that
    belongs to two fabrics."""
    if host_kind == "site":
        return _draw_site_server(random)
    version = int(host_kind[-1])
    count = random.randint(3, 8)
    fabric = build_fabric(count, clients=random.randint(2, 40), servers=random.randint(2, 8), ip_version=version)
    has_standby = random.random() < 0.5
    if has_standby:
        fabric = replace(fabric, routers=(*fabric.routers[:-1], replace(fabric.routers[-1], priority=1)))
    if host_kind.startswith("router"):
        return _draw_router(fabric, random)
    host = DrawnHost([fabric], "clients", "eth0", [router.near_address for router in fabric.routers], has_standby)
    host_plan = plan_all_routes([fabric])[0].find_host_plan("clients")
    host.outputs = _print_host(host, [host_plan], ["10.1.0.100/16" if version == 4 else "fd01::64/64"], random)
    return host


def _print_host(host: DrawnHost, plans: Sequence[HostPlan], addresses: Sequence[str], random: Random) -> dict[str, str]:
    version, device = host.version, host.device
    rules = "".join(f"{rule.preference}:\tfrom all fwmark {hex(rule.mark)} lookup {rule.table}\n"
                    for plan in plans for rule in plan.rules)  # fmt: skip
    routes = "".join(f"{quote_command(make_route_arguments(route, plan.mtu))}\n"
                     for plan in plans for route in plan.routes)  # fmt: skip
    settings = {name: value for plan in plans for name, value in plan.settings.items()}
    for each in ("all", device):
        for name, value in CONFS.items():
            if version == 4 or name == "accept_redirects":
                settings.setdefault(f"net.ipv{version}.conf.{each}.{name}", str(value))
    first_address = addresses[0].partition("/")[0]
    near = host.fabrics[0].far.ranges[0] if host.name == "stores" else host.fabrics[0].near.ranges[0]
    management = (
        ("192.168.9.0/24", "192.168.9.7", "192.168.9.1") if version == 4 else ("fd09::/64", "fd09::7", "fd09::1")
    )
    family = "inet" if version == 4 else "inet6"
    scope = f"scope link src {first_address}" if version == 4 else "metric 256"
    states = ["REACHABLE", "STALE", "DELAY"]
    return {
        "rules": f"0:\tfrom all lookup local\n{rules}32766:\tfrom all lookup main\n"
        + ("32767:\tfrom all lookup default\n" if version == 4 else ""),
        "routes": f"{routes}{near} dev {device} proto kernel {scope}\n"
        f"default via {management[2]} dev mgmt\n{management[0]} dev mgmt proto kernel metric 256\n"
        f"local {first_address} dev {device} table local proto kernel\n",
        "addresses": f"1: lo: <LOOPBACK,UP,LOWER_UP> mtu 65536 qdisc noqueue state UNKNOWN\n    {family} "
        f"{'127.0.0.1/8' if version == 4 else '::1/128'} scope host lo\n2: {device}: {_LINK}\n"
        f"    link/ether 52:54:00:00:00:64 brd ff:ff:ff:ff:ff:ff\n"
        + "".join(f"    {family} {address} scope global {device}\n" for address in addresses)
        + f"3: mgmt: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc mq state UP\n    {family} {management[1]}/24"
        " scope global mgmt\n",
        "neighbors": "".join(f"{gateway} dev {device} lladdr 52:54:00:00:01:{number:02x} {random.choice(states)}\n"
                             for number, gateway in enumerate(host.gateways)),
        "settings": DEFAULT_SYSCTLS + "".join(f"{name} = {value}\n" for name, value in settings.items()),
    }  # fmt: skip


def _draw_router(fabric: Fabric, random: Random) -> DrawnHost:
    router = random.choice(fabric.routers)
    host = DrawnHost([fabric], "routers", "eth0", [], has_standby=False)
    version, family = fabric.version, "inet" if fabric.version == 4 else "inet6"
    settings = {"net.ipv4.ip_forward": "1"} if version == 4 else {"net.ipv6.conf.all.forwarding": "1"}
    if version == 4:
        settings |= {f"net.ipv4.conf.{device}.{name}": str(value) for device in ("all", "eth0", "eth1")
                     for name, value in CONFS.items()}  # fmt: skip
    sides = [("eth0", router.near_address, fabric.near.ranges[0]), ("eth1", router.far_address, fabric.far.ranges[0])]
    host.outputs = {
        "rules": "0:\tfrom all lookup local\n32766:\tfrom all lookup main\n",
        "routes": "".join(
            f"{network} dev {device} proto kernel scope link\nlocal {address} dev {device} table local proto kernel\n"
            for device, address, network in sides
        ),
        "addresses": "".join(
            f"{number}: {device}: {_LINK}\n    {family} {address}/{network.rpartition('/')[2]} scope global {device}\n"
            for number, (device, address, network) in enumerate(sides, start=2)
        ),
        "settings": DEFAULT_SYSCTLS + "".join(f"{name} = {value}\n" for name, value in settings.items()),
    }
    return host


def _draw_site_server(random: Random) -> DrawnHost:
    """A server on a storage network that the routers of two compute networks lead to."""
    counts = [random.randint(2, 5), random.randint(2, 5)]
    networks = [{"id": f"net{number}", "kind": "ethernet", "addresses": [f"10.{number}.0.0/16"], "mtu": "9000 B"}
                for number in (1, 2, 3)]  # fmt: skip
    nodes = [{"id": f"n{number}-[1-4]", "group": f"compute{number}",
              "interfaces": [_describe_interface(f"net{number}", "eth0", number, 100, 4)]}
             for number in (1, 2)]  # fmt: skip
    routers = [
        {"id": f"r{number}-[1-{count}]", "group": f"gateways{number}", "protocol": "ip",
         "between": [f"net{number}", "net3"],
         "interfaces": [_describe_interface(f"net{number}", "eth0", number, 1, count),
                        _describe_interface("net3", "ib0", 3, 10 * number, count)]}
        for number, count in zip((1, 2), counts, strict=True)
    ]  # fmt: skip
    servers = [{"id": "store[1-2]", "group": "stores", "interfaces": [_describe_interface("net3", "ib0", 3, 100, 2)]}]
    document: dict[str, Any] = {"schema": "sonde-system/2", "id": "site", "networks": networks, "nodes": nodes,
                                "servers": servers, "routers": routers}  # fmt: skip
    fabrics = find_fabrics(make_system(document, "site.toml"))
    gateways = [router.far_address for fabric in fabrics for router in fabric.routers]
    host = DrawnHost(fabrics, "stores", "ib0", gateways, has_standby=False)
    plans = [plan.find_host_plan("stores") for plan in plan_all_routes(fabrics)]
    host.outputs = _print_host(host, plans, ["10.3.0.100/16"], random)
    return host


def _describe_interface(
    network: str, device: str, network_number: int, first_host: int, host_count: int
) -> dict[str, Any]:
    return {
        "network": network,
        "device": device,
        "addresses": f"10.{network_number}.0.[{first_host}-{first_host + host_count - 1}]",
    }
