# SPDX-License-Identifier: Apache-2.0
"""A site of IPv4 and IPv6 with LNet routers, and what the tools of one of its servers print."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sonde.design.routes.check_host import check_host
from sonde.design.routes.fabric import find_fabrics
from sonde.design.routes.faults import RouteCheck
from sonde.design.routes.plan import plan_all_routes
from sonde.design.routes.plan_files import make_plan_files
from sonde.design.routes.scripts import make_route_arguments
from sonde.design.routes.setting_names import escape_dots_in_device_names
from sonde.design.routes.table_reader import read_host_sources
from sonde.model.shell import quote_command
from sonde.model.system import System, make_system

LNET_EXPORT = """net:
    - net type: lo
      local NI(s):
        - nid: 0@lo
          status: up
    - net type: tcp
      local NI(s):
        - nid: 10.160.0.1@tcp
          status: up
          interfaces:
              0: bond0
          tunables:
              peer_credits: 8
route:
    - net: kfi
      gateway: 10.160.14.1@tcp
      hop: 1
      priority: 0
      state: up
    - net: kfi
      gateway: 10.160.14.2@tcp
      hop: 1
      priority: 0
      state: up
routing:
    - cpt[0]:
          tiny:
              npages: 0
    - enable: 0
peer:
    - primary nid: 10.160.14.1@tcp
"""
ROUTER_EXPORT = """net:
    - net type: tcp
      local NI(s):
        - nid: 10.160.14.1@tcp
          status: up
          interfaces:
              0: eth0
    - net type: kfi
      local NI(s):
        - nid: 10.150.254.1@kfi
          status: up
          interfaces:
              0: cxi0
routing:
    - enable: 1
"""
ADDRESSES = """1: lo: <LOOPBACK,UP,LOWER_UP> mtu 65536 qdisc noqueue state UNKNOWN qlen 1000
    inet 127.0.0.1/8 scope host lo
    inet6 ::1/128 scope host noprefixroute
2: mgmt: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc mq state UP qlen 1000
    inet 192.168.9.7/24 brd 192.168.9.255 scope global mgmt
3: eth2: <BROADCAST,MULTICAST,SLAVE,UP,LOWER_UP> mtu 9000 qdisc mq master bond0 state UP qlen 1000
    link/ether 52:54:00:a0:00:01 brd ff:ff:ff:ff:ff:ff
4: eth3: <BROADCAST,MULTICAST,SLAVE,UP,LOWER_UP> mtu 9000 qdisc mq master bond0 state UP qlen 1000
    link/ether 52:54:00:a0:00:01 brd ff:ff:ff:ff:ff:ff
5: bond0: <BROADCAST,MULTICAST,MASTER,UP,LOWER_UP> mtu 9000 qdisc noqueue state UP qlen 1000
    link/ether 52:54:00:a0:00:01 brd ff:ff:ff:ff:ff:ff
    inet 10.160.0.1/20 brd 10.160.15.255 scope global bond0
    inet6 fd00:160::1/64 scope global
    inet6 fe80::5054:ff:fea0:1/64 scope link
"""


def _make_interfaces(network: str, device: str, *addresses: str) -> list[dict[str, Any]]:
    return [{"network": network, "device": device, "addresses": address} for address in addresses]


# The same server with its addresses on a VLAN above the bond, as `ip -d addr` prints it.
VLAN_ADDRESSES = ADDRESSES.replace(
    "    inet 10.160.0.1/20",
    """6: bond0.210@bond0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 9000 qdisc noqueue state UP qlen 1000
    link/ether 52:54:00:a0:00:01 brd ff:ff:ff:ff:ff:ff promiscuity 0 minmtu 0 maxmtu 65535
    vlan protocol 802.1Q id 210 <REORDER_HDR> addrgenmode eui64 numtxqueues 1
    inet 10.160.0.1/20""",
).replace("scope global bond0", "scope global bond0.210")
VLAN = "bond0.210"


GPFS: dict[str, Any] = {
    "file_systems": [{"id": "project", "kind": "gpfs", "networks": "storage-net"}],
    "targets": [{"id": "project-nsd[1-4]", "kind": "nsd", "file_system": "project", "server": "nsd[1-4]"}],
}


def build_site(device: str = "bond0", has_gpfs: bool = False) -> System:
    """Compute nodes and servers, with IP routers (one stands by) and LNet routers between them. `device` is the
    servers' interface."""
    document: dict[str, Any] = {
        "schema": "sonde-system/2",
        "id": "site",
        "networks": [
            {"id": "hsn", "kind": "slingshot", "addresses": ["10.150.0.0/16", "fd00:150::/64"], "lnet": "kfi",
             "mtu": "9000 B"},
            {"id": "storage-net", "kind": "ethernet", "addresses": ["10.160.0.0/20", "fd00:160::/64"], "lnet": "tcp",
             "mtu": "9000 B"},
        ],
        "nodes": [{"id": "nid[01-16]", "group": "compute", "interfaces": _make_interfaces(
            "hsn", "hsn0", "10.150.0.[1-16]", "fd00:150::1 .. fd00:150::10")}],
        "servers": [{"id": "nsd[1-4]", "group": "stores", "interfaces": _make_interfaces(
            "storage-net", device, "10.160.0.[1-4]", "fd00:160::1 .. fd00:160::4")}],
        "routers": [
            {"id": "gw[1-3]", "group": "gateways", "protocol": "ip", "between": ["hsn", "storage-net"],
             "interfaces": [
                 *_make_interfaces("hsn", "hsn0", "10.150.255.[1-3]", "fd00:150::f001 .. fd00:150::f003"),
                 *_make_interfaces("storage-net", "eth0", "10.160.15.[1-3]", "fd00:160::f001 .. fd00:160::f003")]},
            {"id": "gwsb", "group": "gateways", "protocol": "ip", "between": ["hsn", "storage-net"], "priority": 1,
             "interfaces": [*_make_interfaces("hsn", "hsn0", "10.150.255.4", "fd00:150::f004"),
                            *_make_interfaces("storage-net", "eth0", "10.160.15.4", "fd00:160::f004")]},
            {"id": "lnet[1-2]", "group": "lnet-routers", "protocol": "lnet", "between": ["hsn", "storage-net"],
             "hops": 1, "priority": 0,
             "interfaces": [*_make_interfaces("hsn", "hsn0", "10.150.254.[1-2]"),
                            *_make_interfaces("storage-net", "eth0", "10.160.14.[1-2]")]},
        ],
    }  # fmt: skip
    return make_system(document | (GPFS if has_gpfs else {}), "site.toml")


def print_server_outputs(device: str = "bond0") -> dict[str, str]:
    """The outputs of a server that has what the plan asks for, by the names of their files."""
    plans = [plan.find_host_plan("stores") for plan in plan_all_routes(find_fabrics(build_site(device)))]
    outputs = {"addr": VLAN_ADDRESSES if device == VLAN else ADDRESSES, "sysctl": "kernel.osrelease = 6.12.0\n"}
    for version, plan in zip((4, 6), plans, strict=True):
        suffix = "" if version == 4 else "6"
        metric = "" if version == 4 else " metric 256"
        network, address = ("10.160.0.0/20", "10.160.0.1") if version == 4 else ("fd00:160::/64", "fd00:160::1")
        marks = "".join(f"{rule.preference}:\tfrom all fwmark {hex(rule.mark)} lookup {rule.table}\n"
                        for rule in plan.rules)  # fmt: skip
        outputs[f"rule{suffix}"] = (
            f"0:\tfrom all lookup local\n{marks}32766:\tfrom all lookup main\n"
            + ("32767:\tfrom all lookup default\n" if version == 4 else "")
        )  # fmt: skip
        outputs[f"route{suffix}"] = (
            "".join(f"{quote_command(make_route_arguments(route, plan.mtu))}\n" for route in plan.routes)
            + f"{network} dev {device} proto kernel{metric}\nlocal {address} dev {device} table local proto kernel\n"
        )
        outputs["sysctl"] += "".join(
            f"{escape_dots_in_device_names(name, [device])} = {value}\n" for name, value in plan.settings.items()
        )
    return outputs


def make_files_of_format(file_format: str) -> dict[str, str]:
    """The files that the plan writes for the server."""
    return make_plan_files(plan_all_routes(find_fabrics(build_site())), file_format, "stores")


def check_outputs(
    folder: Path, outputs: dict[str, str], name: str = "nsd1", device: str = "bond0", has_gpfs: bool = False
) -> RouteCheck:
    """Checks outputs as `route check` does."""
    folder.mkdir(exist_ok=True)
    files = []
    for file, text in outputs.items():
        path = folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        files.append(path)
    sources = read_host_sources(files)
    return check_host(build_site(device, has_gpfs), name, sources.live, configured_tables=sources.configured)
