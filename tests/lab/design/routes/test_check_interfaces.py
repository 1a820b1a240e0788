# SPDX-License-Identifier: Apache-2.0
"""Addresses, prefixes and ports of bonds of a server with IPv4 and IPv6."""

from __future__ import annotations

from pathlib import Path

import pytest
from dual_stack_host import check_outputs, print_server_outputs

ADDRESS = "    inet 10.160.0.1/20 brd 10.160.15.255 scope global bond0\n"
OTHER = "    inet 10.160.0.3/20 scope global secondary bond0\n"
OTHER6 = "    inet6 fd00:160::3/64 scope global\n"
PORT = "mtu 9000 qdisc mq master bond0 state UP"


@pytest.mark.parametrize("name", ["nsd1", "stores"])
def test_healthy_server_has_no_fault(tmp_path: Path, name: str) -> None:
    verdict = check_outputs(tmp_path, print_server_outputs(), name)
    assert verdict.faults == ()
    assert sum(item.subject == "a port of a bond" for item in verdict.comparisons) == 2


@pytest.mark.parametrize("name", ["nsd1", "stores"])
@pytest.mark.parametrize(
    ("old", "new", "fault_kind", "location"),
    [
        (ADDRESS, ADDRESS + OTHER, "address of another host", "10.160.0.3"),
        ("    inet6 fe80", f"{OTHER6}    inet6 fe80", "address of another host", "fd00:160::3"),
        ("brd 10.160.15.255", "brd 10.160.0.255", "wrong broadcast address", "10.160.0.1"),
        ("lo: <LOOPBACK,UP,LOWER_UP> mtu 65536 qdisc noqueue state UNKNOWN",
         "lo: <LOOPBACK> mtu 65536 qdisc noqueue state DOWN", "interface down", "lo"),
        ("10.160.0.1/20", "10.160.0.1/16", "prefix too short", "10.160.0.1/16"),
        ("fd00:160::1/64", "fd00:160::1/48", "prefix too short", "fd00:160::1/48"),
        (f"eth3: <BROADCAST,MULTICAST,SLAVE,UP,LOWER_UP> {PORT}",
         f"eth3: <NO-CARRIER,BROADCAST,MULTICAST,SLAVE,UP> {PORT.replace('UP', 'DOWN')}", "bond port down", "eth3"),
        (f"eth2: <BROADCAST,MULTICAST,SLAVE,UP,LOWER_UP> {PORT}",
         f"eth2: <BROADCAST,MULTICAST,SLAVE,UP,LOWER_UP> {PORT.replace('9000', '1500')}", "MTU mismatch", "eth2"),
    ],
)  # fmt: skip
def test_wrong_interface_is_reported(
    tmp_path: Path, name: str, old: str, new: str, fault_kind: str, location: str
) -> None:
    outputs = print_server_outputs()
    assert old in outputs["addr"]
    outputs["addr"] = outputs["addr"].replace(old, new)
    if fault_kind == "address of another host":
        outputs["route"] += "local 10.160.0.3 dev bond0 table local proto kernel\n"
        outputs["route6"] += "local fd00:160::3 dev bond0 table local proto kernel\n"
    faults = check_outputs(tmp_path, outputs, name).faults
    assert [(fault.kind, fault.location) for fault in faults] == [(fault_kind, location)]


def test_wrong_mtu_of_a_bond_is_a_fault_of_the_bond_alone(tmp_path: Path) -> None:
    outputs = print_server_outputs()
    bond = next(line for line in outputs["addr"].splitlines() if "bond0: <" in line)
    outputs["addr"] = outputs["addr"].replace(bond, bond.replace("mtu 9000", "mtu 1500"))
    assert [(fault.kind, fault.location) for fault in check_outputs(tmp_path, outputs).faults] == [
        ("MTU mismatch", "bond0")
    ]


def test_address_on_another_device_is_not_removed(tmp_path: Path) -> None:
    outputs = print_server_outputs()
    outputs["addr"] = outputs["addr"].replace(ADDRESS, "").replace("4: eth3", f"{ADDRESS}4: eth3")
    (fault,) = check_outputs(tmp_path, outputs).faults
    assert (fault.kind, fault.location) == ("wrong interface", "eth2")
    assert fault.remedy.startswith("move 10.160.0.1 to bond0")


def test_longer_prefix_is_reported_by_family(tmp_path: Path) -> None:
    outputs = print_server_outputs()
    outputs["addr"] = (
        outputs["addr"].replace("10.160.0.1/20", "10.160.0.1/24").replace("fd00:160::1/64", "fd00:160::1/120")
    )
    outputs["route"] = outputs["route"].replace(
        "10.160.0.0/20 dev bond0 proto kernel", "10.160.0.0/24 dev bond0 proto kernel"
    )
    outputs["route6"] = outputs["route6"].replace(
        "fd00:160::/64 dev bond0 proto kernel", "fd00:160::/120 dev bond0 proto kernel"
    )
    faults = check_outputs(tmp_path, outputs).faults
    assert [fault.location for fault in faults if fault.kind == "hosts out of reach"] == [
        "10.160.0.1/24", "fd00:160::1/120"
    ]  # fmt: skip


def test_interface_without_carrier_is_not_switched_on_again(tmp_path: Path) -> None:
    outputs = print_server_outputs("bond0")
    bond = "5: bond0: <BROADCAST,MULTICAST,MASTER,UP,LOWER_UP> mtu 9000 qdisc noqueue state UP"
    assert bond in outputs["addr"]
    ports = outputs["addr"][outputs["addr"].index("3: eth2") : outputs["addr"].index("5: bond0")]
    alone = "5: bond0: <NO-CARRIER,BROADCAST,MULTICAST,UP> mtu 9000 qdisc mq state DOWN"
    spare = "6: bond1: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 9000 qdisc mq state UP qlen 1000\n"
    outputs["addr"] = outputs["addr"].replace(ports, "").replace(bond, alone) + spare
    (fault,) = [fault for fault in check_outputs(tmp_path, outputs).faults if fault.kind == "interface down"]
    assert fault.remedy.startswith(
        "look at the cable, the transceiver and the port of the switch: bond0 is switched on, but has no carrier;"
        " bond1 has a link and no address, the cable may be there"
    )
    switched_off = outputs["addr"].replace("<NO-CARRIER,BROADCAST,MULTICAST,UP>", "<BROADCAST,MULTICAST>")
    faults = check_outputs(tmp_path, outputs | {"addr": switched_off}).faults
    assert [fault.remedy.startswith("ip link set bond0 up") for fault in faults if fault.kind == "interface down"]
