# SPDX-License-Identifier: Apache-2.0
"""Hosts and routers whose addresses are on another interface than the system file says: one fault for all effects."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from dual_stack_host import LNET_EXPORT, VLAN, check_outputs, print_server_outputs
from fabric_builders import build_fabric

from sonde.design.routes.check_router import check_router_tables
from sonde.design.routes.faults import RouteFault
from sonde.design.routes.host_tables import HostTables
from sonde.design.routes.moved_ports import describe_child_creation, find_renamed_port

ROUTER_ADDRESSES = """2: hsn0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 9000 qdisc mq state UP qlen 1000
    inet 10.150.255.2/16 scope global hsn0
    inet6 fd00:150::f002/64 scope global
3: eth0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 9000 qdisc mq state UP qlen 1000
    inet 10.160.15.2/20 scope global eth0
    inet6 fd00:160::f002/64 scope global
"""
NEIGHBORS = "".join(
    f"10.160.15.{number} dev bond0 lladdr 52:54:00:a0:ff:0{number} REACHABLE\n"
    f"fd00:160::f00{number} dev bond0 lladdr 52:54:00:a0:ff:0{number} STALE\n"
    for number in range(1, 5)
)
IDLE_BOND = "9: bond0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 9000 qdisc noqueue state UP qlen 1000\n"
DOWN_BOND = "9: bond0: <NO-CARRIER,BROADCAST,MULTICAST,UP> mtu 9000 qdisc noqueue state DOWN qlen 1000\n"


def print_moved_outputs(planned_line: str) -> dict[str, str]:
    """The outputs of a server with the whole plan on bond1; `planned_line` describes bond0 in its addresses."""
    outputs = print_server_outputs() | {"neigh": NEIGHBORS, "lnet.yaml": LNET_EXPORT}
    outputs = {name: text.replace("bond0", "bond1") for name, text in outputs.items()}
    outputs["addr"] += planned_line
    outputs["sysctl"] += "net.ipv4.conf.bond0.accept_redirects = 1\nnet.ipv6.conf.bond0.accept_redirects = 1\n"
    return outputs


@pytest.mark.parametrize(("planned_line", "kind", "location", "sentence"), [
    (IDLE_BOND, "wrong interface", "bond1", "and bond0, which joins this host to storage-net, has no address of it"),
    (DOWN_BOND, "wrong interface", "bond1", "has no address of it and is down"),
    ("", "interface missing", "bond0", "this host has no bond0, which joins it to storage-net"),
])  # fmt: skip
def test_renamed_port_is_one_fault(tmp_path: Path, planned_line: str, kind: str, location: str, sentence: str) -> None:
    (fault,) = check_outputs(tmp_path, print_moved_outputs(planned_line)).faults
    assert (fault.kind, fault.location) == (kind, location)
    assert sentence in fault.problem
    assert "bond1 has 10.160.0.1, fd00:160::1 and its routes through the routers" in fault.problem
    assert "correct the device in the system file" in fault.remedy


@pytest.mark.parametrize("is_moved", [True, False])
def test_remedy_for_a_missing_vlan_makes_it(tmp_path: Path, is_moved: bool) -> None:
    """The addresses are on the bond below the VLAN, or on no device."""
    outputs = {name: text.replace("bond0.210", "bond0") for name, text in print_server_outputs("bond0").items()}
    if not is_moved:
        outputs["addr"] = re.sub(r"    inet6? (10.160|fd00:160).*\n", "", outputs["addr"])
        outputs["route"], outputs["route6"] = "default via 192.168.9.1 dev mgmt\n", "fe80::/64 dev mgmt metric 256\n"
    fault = next(
        fault for fault in check_outputs(tmp_path, outputs, device=VLAN).faults if fault.kind == "interface missing"
    )
    assert "ip link add link bond0 name bond0.210 type vlan id 210" in fault.remedy
    assert ("move 10.160.0.1, fd00:160::1 to bond0.210 and apply the plan" in fault.remedy) == is_moved


@pytest.mark.parametrize(("device", "is_same_port"), [("bond0np0", True), ("bond1", False), ("mgmt", False)])
def test_port_with_a_new_name_is_in_the_fault(tmp_path: Path, device: str, is_same_port: bool) -> None:
    outputs = print_server_outputs()
    outputs["addr"] = re.sub(r"    inet6? (10.160|fd00:160).*\n", "", outputs["addr"]).replace("bond0", device)
    outputs["route"], outputs["route6"] = "default via 192.168.9.1 dev mgmt\n", "fe80::/64 dev mgmt metric 256\n"
    verdict = check_outputs(tmp_path, outputs)
    (fault,) = [each for each in verdict.faults if each.kind == "interface missing"]
    assert ("bond0np0, which is a name of the same port" in fault.problem) == is_same_port
    assert fault.remedy.startswith("give bond0np0 the name bond0 again") == is_same_port
    reasons = [text.partition("because ")[2] for text in verdict.not_compared]
    assert "bond0 is missing or no output shows it" in reasons
    assert "no output shows it" not in reasons


def test_other_port_of_an_adapter_has_another_name() -> None:
    tables = HostTables(links=dict.fromkeys(("ens1f0np1", "ens2f0", "hsn"), "up"))
    names = ("ens1f0np0", "ens1f0", "ens2f0np0", "ens2f1", "hsnnp0")
    assert [find_renamed_port(name, tables) for name in names] == ["", "ens1f0np1", "ens2f0", "", ""]


def test_command_for_a_missing_device_fits_its_kind() -> None:
    tables = HostTables(links={"ib0": "up", "eth0": "up"}, transport_modes={"ib0": "datagram"})
    assert describe_child_creation("ib0.8001", tables) == "ip link add link ib0 name ib0.8001 type ipoib pkey 0x8001"
    assert describe_child_creation("eth0.7", tables) == "ip link add link eth0 name eth0.7 type vlan id 7"
    assert [describe_child_creation(name, tables) for name in ("eth1.7", "eth0.9999", "hsn0", "eth0.80f1")] == [""] * 4


def test_router_without_its_vlan_gets_the_command() -> None:
    fabric = build_fabric(2, clients=1, servers=1)
    routers = tuple(replace(router, far_device="eth1.210") for router in fabric.routers)
    first = routers[0]
    tables = HostTables(
        addresses=(f"{first.near_address}/16",),
        links={"eth1": "up", first.near_device: "up"},
        settings={"net.ipv4.ip_forward": "1"},
    )
    faults = check_router_tables([replace(fabric, routers=routers)], tables, first.name)
    (fault,) = [each for each in faults if isinstance(each, RouteFault) and each.kind == "interface missing"]
    assert fault.remedy == "ip link add link eth1 name eth1.210 type vlan id 210"


def test_settings_of_the_used_port_are_compared(tmp_path: Path) -> None:
    outputs = print_moved_outputs(IDLE_BOND)
    old = "net.ipv4.conf.bond1.accept_redirects = 0"
    assert old in outputs["sysctl"]
    outputs["sysctl"] = outputs["sysctl"].replace(old, old.replace("0", "1"))
    kinds = [(fault.kind, fault.location) for fault in check_outputs(tmp_path, outputs).faults]
    assert kinds == [
        ("wrong interface", "bond1"), ("redirects accepted", "net.ipv4.conf.bond1.accept_redirects = 1"),
    ]  # fmt: skip


def test_neighbors_of_a_port_without_routes_are_no_further_fault(tmp_path: Path) -> None:
    outputs = print_moved_outputs(IDLE_BOND)
    for name in ("route", "route6"):
        outputs[name] = "".join(line for line in outputs[name].splitlines(keepends=True) if "proto 77" not in line)
    outputs["sysctl"] = outputs["sysctl"].replace("redirects = 1", "redirects = 0")
    (fault,) = check_outputs(tmp_path, outputs).faults
    assert (fault.kind, fault.location) == ("wrong interface", "bond1")
    assert fault.remedy.startswith("move 10.160.0.1, fd00:160::1 to bond0 and apply the plan")


def test_routers_that_answer_elsewhere_are_one_fault(tmp_path: Path) -> None:
    outputs = print_server_outputs() | {"neigh": NEIGHBORS.replace("bond0", "mgmt")}
    faults = check_outputs(tmp_path, outputs).faults
    assert [fault.kind for fault in faults] == ["wrong device"] * 2  # IPv4 and IPv6
    assert "gw1 (10.160.15.1), gw2 (10.160.15.2), gw3 (10.160.15.3) and 1 further neighbor" in faults[0].problem


@pytest.mark.parametrize("planned_line", ["", IDLE_BOND.replace("bond0", "hsn0")])
def test_renamed_port_of_a_router_is_one_fault(tmp_path: Path, planned_line: str) -> None:
    sysctl = "net.ipv4.ip_forward = 1\nnet.ipv6.conf.all.forwarding = 1\nnet.ipv4.conf.hsn1.send_redirects = 1\n"
    outputs = {"addr": ROUTER_ADDRESSES.replace("hsn0", "hsn1") + planned_line, "sysctl": sysctl}
    moved, redirects = check_outputs(tmp_path, outputs, "gw2").faults
    assert (moved.kind, moved.location) == ("wrong interface", "gw2")
    assert moved.problem.startswith("gw2 has 10.150.255.2 on hsn1 and fd00:150::f002 on hsn1; the system file says")
    assert ("(it has no hsn0)" in moved.problem) == (not planned_line)
    assert redirects.location == "net.ipv4.conf.hsn1.send_redirects = 1"
