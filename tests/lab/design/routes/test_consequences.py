# SPDX-License-Identifier: Apache-2.0
"""Faults that follow from another one are not reported beside it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from dual_stack_host import VLAN, check_outputs, make_files_of_format, print_server_outputs

ROUTERS = ("10.160.15.1", "10.160.15.2", "10.160.15.3")


def print_neighbors(states: tuple[str, str, str]) -> str:
    texts = {"REACHABLE": "lladdr 52:54:00:bb:00:0{} REACHABLE", "FAILED": "FAILED"}
    return "".join(
        f"{address} dev {VLAN} {texts[state].format(number)}\n"
        for number, (address, state) in enumerate(zip(ROUTERS, states, strict=True), start=1)
    )


@pytest.mark.parametrize(
    ("states", "kinds"),
    [
        (("FAILED", "FAILED", "FAILED"), ["another VLAN"]),
        (("REACHABLE", "FAILED", "REACHABLE"), ["another VLAN", "router does not answer"]),
    ],
)
def test_silent_routers_behind_a_wrong_vlan_are_one_fault(
    tmp_path: Path, states: tuple[str, str, str], kinds: list[str]
) -> None:
    outputs = print_server_outputs(VLAN) | {"neigh": print_neighbors(states)}
    outputs["addr"] = outputs["addr"].replace("vlan protocol 802.1Q", "vlan protocol 802.1ad")
    assert sorted({fault.kind for fault in check_outputs(tmp_path, outputs, device=VLAN).faults}) == kinds


def test_silent_router_alone_is_still_reported(tmp_path: Path) -> None:
    outputs = print_server_outputs(VLAN) | {"neigh": print_neighbors(("FAILED", "FAILED", "FAILED"))}
    kinds = [fault.kind for fault in check_outputs(tmp_path, outputs, device=VLAN).faults]
    assert kinds == ["router does not answer"] * 3


def test_table_of_a_diverting_rule_is_one_fault(tmp_path: Path) -> None:
    outputs = print_server_outputs()
    outputs["rule"] = outputs["rule"].replace("32766:", "900:\tfrom 10.160.0.1 lookup 200\n32766:", 1)
    outputs["route"] += "default via 10.160.15.200 dev bond0 table 200\n"
    (fault,) = check_outputs(tmp_path, outputs).faults
    assert (fault.kind, "into table 200" in fault.problem) == ("traffic diverted", True)


def test_diverting_route_that_expires_is_one_fault(tmp_path: Path) -> None:
    outputs = print_server_outputs()
    outputs["route6"] += "fd00:150::/64 via fe80::1 dev bond0 proto ra metric 100 expires 1799sec pref high\n"
    (fault,) = check_outputs(tmp_path, outputs).faults
    assert fault.kind == "traffic diverted"


def test_long_neighbor_lifetime_is_one_fault_per_setting(tmp_path: Path) -> None:
    outputs = print_server_outputs()
    outputs["sysctl"] += "net.ipv4.neigh.bond0.base_reachable_time_ms = 400000\n"
    (fault,) = check_outputs(tmp_path, outputs).faults
    assert fault.location == "net.ipv4.neigh.bond0.base_reachable_time_ms = 400000"


def check_kinds(folder: Path, outputs: dict[str, str]) -> list[str]:
    return [fault.kind for fault in check_outputs(folder, outputs).faults]


def test_route_on_the_link_of_a_short_prefix_is_one_fault(tmp_path: Path) -> None:
    outputs = print_server_outputs()
    outputs["addr"] = outputs["addr"].replace("10.160.0.1/20", "10.160.0.1/8")
    outputs["route"] = outputs["route"].replace("10.160.0.0/20 dev bond0 proto", "10.0.0.0/8 dev bond0 proto")
    assert check_kinds(tmp_path, outputs) == ["prefix too short"]


def test_route_behind_a_discarding_route_is_one_fault(tmp_path: Path) -> None:
    outputs = print_server_outputs()
    outputs["route6"] = f"unreachable fd00:150::/64 dev lo metric 512\n{outputs['route6']}"
    assert check_kinds(tmp_path, outputs) == ["traffic discarded"]


def test_router_address_on_a_host_is_one_fault(tmp_path: Path) -> None:
    outputs = print_server_outputs()
    for name in ("addr", "route"):
        outputs[name] = outputs[name].replace("10.160.0.1", "10.160.15.3")
    (fault,) = check_outputs(tmp_path, outputs).faults
    assert fault.kind == "address of a router"
    assert "10.160.15.3, the address of gw3 and not its own, 10.160.0.1" in fault.problem
    assert fault.remedy == "replace it by 10.160.0.1"


def test_small_ring_with_missed_packets_is_one_fault(tmp_path: Path) -> None:
    outputs = print_server_outputs()
    ring = "Ring parameters for eth2:\nPre-set maximums:\nRX:\t\t8192\nCurrent hardware settings:\nRX:\t\t{}\n"
    counters = "NIC statistics:\n     rx_packets_phy: 900000000\n     rx_discards_phy: 90000\n"
    (fault,) = check_outputs(tmp_path, outputs | {"ethtool-g": ring.format(256), "ethtool-S-eth2": counters}).faults
    assert "the ring of eth2 holds 256" in fault.problem
    assert "90000 of 900000000 packets were dropped" in fault.problem
    assert fault.remedy == "ethtool -G eth2 rx 8192"


def test_file_and_drop_in_for_another_interface_are_one_fault(tmp_path: Path) -> None:
    folder = "etc/systemd/network"
    files = {name.replace("50-bond0", "50-eth7"): text.replace("@bond0", "@eth7")
             for name, text in make_files_of_format("networkd").items()}  # fmt: skip
    files[f"{folder}/50-eth7.network"] = (
        "[Match]\nName=eth7\n\n[Link]\nMTUBytes=9000\n\n[Network]\nAddress=10.160.0.1/20\nAddress=fd00:160::1/64\n"
    )
    (fault,) = check_outputs(tmp_path, print_server_outputs() | files).faults
    assert (fault.kind, fault.location) == ("file for another interface", "50-eth7.network, eth7")
    assert fault.remedy.endswith("in 50-eth7.network, and in routes-4.conf and routes-6.conf")


GUID = "ec:0d:9a:03:00:02:00:01"
IBSTAT = """CA 'mlx5_0'
\tCA type: MT4123
\tPort 1:
\t\tState: Initializing
\t\tPhysical state: LinkUp
\t\tRate: 100
\t\tSM lid: 0
\t\tPort GUID: 0xec0d9a0300020001
\t\tLink layer: InfiniBand
"""


@pytest.mark.parametrize(("guid", "kinds"), [
    (GUID, ["no subnet manager"]), (GUID.replace("02", "03"), ["interface down", "no subnet manager"]),
])  # fmt: skip
def test_ipoib_interface_without_a_subnet_manager_is_one_fault(tmp_path: Path, guid: str, kinds: list[str]) -> None:
    outputs = print_server_outputs() | {"ibstat": IBSTAT}
    bond, link = "5: bond0: <BROADCAST,MULTICAST,MASTER,UP,LOWER_UP>", "link/ether 52:54:00:a0:00:01"
    head, tail = outputs["addr"].split(bond)
    tail = tail.replace("state UP", "state DOWN").replace(link, f"link/infiniband 00:00:10:29:fe:80:{'00:' * 6}{guid}")
    outputs["addr"] = f"{head}5: bond0: <NO-CARRIER,BROADCAST,MULTICAST,UP>{tail}"
    for name in ("route", "route6"):
        outputs[name] = re.sub(r"(dev bond0 weight \d+)", r"\1 dead linkdown", outputs[name])
    assert sorted(check_kinds(tmp_path, outputs)) == kinds


@pytest.mark.parametrize(("neighbors", "kinds"), [
    ("10.160.15.2 dev mgmt FAILED\n", ["wrong device"]),
    ("10.160.15.2 dev bond0 FAILED\n", ["router does not answer", "wrong device"]),
    ("10.160.15.2 dev mgmt FAILED\n10.160.15.3 dev bond0 FAILED\n", ["router does not answer", "wrong device"]),
])  # fmt: skip
def test_router_sought_on_a_wrong_device_is_one_fault(tmp_path: Path, neighbors: str, kinds: list[str]) -> None:
    outputs = print_server_outputs()
    hop = "nexthop via 10.160.15.2 dev bond0 weight 1"
    assert hop in outputs["route"]
    outputs["route"] = outputs["route"].replace(hop, hop.replace("bond0", "mgmt") + " onlink")
    outputs["neigh"] = neighbors
    assert sorted(fault.kind for fault in check_outputs(tmp_path, outputs).faults) == kinds
