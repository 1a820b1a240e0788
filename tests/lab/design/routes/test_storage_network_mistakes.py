# SPDX-License-Identifier: Apache-2.0
"""Usual mistakes of storage networks in recorded outputs: each is one fault with its reason."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from dual_stack_host import LNET_EXPORT, check_outputs, make_files_of_format, print_server_outputs

from sonde.design.routes.check_interfaces import find_device_faults
from sonde.design.routes.faults import RouteFault
from sonde.design.routes.table_reader import parse_host_tables

BOND_LINE = "    inet 10.160.0.1/20 brd 10.160.15.255 scope global bond0\n"
BOND_MODE = "    bond mode {} miimon {} updelay 0 arp_interval {} arp_validate none\n"


def check_with_line(folder: Path, line: str) -> list[tuple[str, str]]:
    """The faults of a server whose `ip -d addr` prints one more line of bond0."""
    outputs = print_server_outputs()
    assert BOND_LINE in outputs["addr"]
    outputs["addr"] = outputs["addr"].replace(BOND_LINE, line + BOND_LINE)
    return [(fault.kind, fault.location) for fault in check_outputs(folder, outputs).faults]


@pytest.mark.parametrize(("mode", "miimon", "arp_interval", "kinds"), [
    ("802.3ad", 100, 0, []), ("active-backup", 0, 250, []), ("802.3ad", 0, 0, ["bond ports not watched"]),
    ("balance-rr", 100, 0, ["bond mode"]), ("broadcast", 100, 0, ["bond mode"]), ("balance-xor", 100, 0, []),
])  # fmt: skip
def test_mode_of_a_bond_is_compared(
    tmp_path: Path, mode: str, miimon: int, arp_interval: int, kinds: list[str]
) -> None:
    faults = check_with_line(tmp_path, BOND_MODE.format(mode, miimon, arp_interval))
    assert faults == [(kind, "bond0") for kind in kinds]


@pytest.mark.parametrize(("key", "kinds"), [
    ("0xffff", []), ("0x8001", []), ("0x7fff", ["limited partition member"]),
])  # fmt: skip
def test_limited_partition_member_is_reported(tmp_path: Path, key: str, kinds: list[str]) -> None:
    faults = check_with_line(tmp_path, f"    ipoib pkey  {key} mode  connected umcast  0000 numtxqueues 8\n")
    assert faults == [(kind, "bond0") for kind in kinds]


def test_dummy_device_is_one_fault(tmp_path: Path) -> None:
    outputs = print_server_outputs()
    outputs["addr"] = outputs["addr"].replace(BOND_LINE, f"    dummy numtxqueues 1 numrxqueues 1\n{BOND_LINE}")
    outputs["addr"] = outputs["addr"].replace("5: bond0: <BROADCAST,MULTICAST,MASTER", "5: bond0: <BROADCAST,NOARP")
    assert [fault.kind for fault in check_outputs(tmp_path, outputs).faults] == ["no network port"]


def test_json_and_text_of_links_agree() -> None:
    rows = [
        {"ifname": "bond0", "flags": ["UP"], "linkinfo": {"info_kind": "bond", "info_data": {
            "mode": "802.3ad", "miimon": 0, "arp_interval": 0}}, "addr_info": []},
        {"ifname": "ib0", "flags": ["UP"], "linkinfo": {"info_kind": "ipoib", "info_data": {
            "key": "0x8001", "mode": "datagram"}}, "addr_info": []},
        {"ifname": "d0", "flags": ["UP"], "linkinfo": {"info_kind": "dummy"}, "addr_info": []},
    ]  # fmt: skip
    text = (
        f"1: bond0: <UP> mtu 9000\n{BOND_MODE.format('802.3ad', 0, 0)}2: ib0: <UP> mtu 2044\n"
        "    ipoib pkey  0x8001 mode  datagram umcast  0000\n3: d0: <UP> mtu 1500\n    dummy addrgenmode eui64\n"
    )
    members = [
        [(details.kind, details.bond_mode, details.watches_ports, details.partition_key)
         for details in parse_host_tables(output, "addr").link_details.values()]
        for output in (json.dumps(rows), text)
    ]  # fmt: skip
    assert members[0] == members[1] == [
        ("bond", "802.3ad", False, None), ("ipoib", "", None, 0x8001), ("dummy", "", None, None)
    ]  # fmt: skip


def test_empty_link_address_of_a_router_is_reported(tmp_path: Path) -> None:
    neighbor = "10.160.15.1 dev bond0 lladdr 00:00:00:00:00:00 REACHABLE\n"
    outputs = print_server_outputs() | {"neigh": neighbor}
    outputs["addr"] = outputs["addr"].replace(
        "    inet 127.0.0.1/8", "    link/loopback 00:00:00:00:00:00 brd 00:00:00:00:00:00\n    inet 127.0.0.1/8"
    )
    (fault,) = check_outputs(tmp_path, outputs).faults
    assert (fault.kind, fault.location) == ("no link address", "10.160.15.1")


def test_route_past_the_routers_is_to_be_removed(tmp_path: Path) -> None:
    outputs = print_server_outputs()
    outputs["route"] += "10.150.7.0/24 via 192.168.9.1 dev mgmt\n"
    (fault,) = check_outputs(tmp_path, outputs).faults
    assert (fault.kind, fault.remedy) == ("unknown router", "remove this route")
    assert "its next hop 192.168.9.1 is on the network of mgmt and no router of hsn to storage-net" in fault.problem


@pytest.mark.parametrize("line", [
    "fd00:150::7 via fd00:160::f002 dev bond0 proto redirect metric 1024 expires 300sec",
    "fd00:150::/64 via fd00:160::f002 dev bond0 metric 10 mtu 9000",
])  # fmt: skip
def test_route_by_few_routers_is_one_fault(tmp_path: Path, line: str) -> None:
    outputs = print_server_outputs()
    outputs["route6"] += f"{line}\n"
    (fault,) = check_outputs(tmp_path, outputs).faults
    assert fault.kind == "router not used"


def test_router_in_a_route_of_another_metric_is_located(tmp_path: Path) -> None:
    files = {name.rpartition("/")[2]: text for name, text in make_files_of_format("networkmanager").items()}
    profile = re.sub(r"(?m)^(route\d+=10\.150\.0\.0/16,10\.160\.15\.2)$(?=\n.*weight)", r"\1,100",
                     files["bond0.nmconnection"])  # fmt: skip
    assert profile != files["bond0.nmconnection"]
    (fault,) = check_outputs(tmp_path, files | {"bond0.nmconnection": profile}).faults
    assert fault.kind == "router not used"
    (name,) = re.findall(r"(?m)^(route\d+)=.*,100$", profile)
    assert f"(bond0.nmconnection, {name}, metric 100)" in fault.problem
    assert fault.remedy.endswith("name every router once, in this route of metric 0")


def test_equal_metrics_are_one_fault(tmp_path: Path) -> None:
    outputs = print_server_outputs()
    outputs["route"], count = re.subn(r"(?m)^(10\.150\S* proto 77) metric \d+", r"\1", outputs["route"])
    assert count == 1
    assert [fault.kind for fault in check_outputs(tmp_path, outputs).faults] == ["equal metrics"]


def test_dead_next_hops_of_an_interface_are_one_fault(tmp_path: Path) -> None:
    outputs = print_server_outputs()
    outputs["route"] = re.sub(r"(dev bond0 weight \d+)", r"\1 dead linkdown", outputs["route"])
    (fault,) = check_outputs(tmp_path, outputs).faults
    assert fault.problem == "the kernel marks next hops 10.160.15.1, 10.160.15.2, 10.160.15.3 on bond0 as dead"


def test_host_that_forwards_lnet_needs_no_buffers(tmp_path: Path) -> None:
    export = LNET_EXPORT.replace("npages: 0", "npages: 0\n              nbuffers: 0").replace("enable: 0", "enable: 1")
    assert [fault.kind for fault in check_outputs(tmp_path, {"lnet.yaml": export}).faults] == ["LNet routing on"]


def test_interface_on_another_lnet_network_is_exchanged(tmp_path: Path) -> None:
    export = LNET_EXPORT.replace("10.160.0.1@tcp", "10.160.0.1@tcp5").replace("net type: tcp", "net type: tcp5")
    fault = next(each for each in check_outputs(tmp_path, {"lnet.yaml": export}).faults if "NI" in each.kind)
    assert fault.remedy == "lnetctl net del --net tcp5; lnetctl net add --net tcp --if bond0"


def test_missing_comparison_of_link_addresses_is_reported(tmp_path: Path) -> None:
    outputs = print_server_outputs()
    neighbor = {"neigh": "10.160.15.1 dev bond0 lladdr 52:54:00:a0:ff:01 REACHABLE\n"}
    text = "whether the link addresses of neighbors are those of their interfaces"
    assert any(text in item for item in check_outputs(tmp_path, outputs | neighbor).not_examined)
    assert not any(text in item for item in check_outputs(tmp_path, outputs | {"neigh": ""}).not_examined)


@pytest.mark.parametrize(("key", "kinds"), [("0x8001", []), ("0x8003", ["another partition"])])
def test_partition_of_an_interface_fits_its_name(key: str, kinds: list[str]) -> None:
    text = f"2: ib0.8001@ib0: <UP,LOWER_UP> mtu 2044\n    ipoib pkey  {key} mode  datagram umcast  0000\n"
    results = find_device_faults("ib0.8001", parse_host_tables(text, "addr"))
    assert [each.kind for each in results if isinstance(each, RouteFault)] == kinds
