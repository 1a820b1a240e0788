# SPDX-License-Identifier: Apache-2.0
"""Which router some tables are of, addresses of another router, and forwarding of one IP version."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from dual_stack_host import check_outputs
from fabric_builders import build_fabric

from sonde.design.routes.check_router import check_router_tables
from sonde.design.routes.faults import RouteFault
from sonde.design.routes.host_tables import HostTables
from sonde.model.errors import UserError

ADDRESSES = """2: hsn0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 9000 qdisc mq state UP qlen 1000
    inet 10.150.255.2/16 scope global hsn0
    inet6 fd00:150::f002/64 scope global
3: eth0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 9000 qdisc mq state UP qlen 1000
    inet 10.160.15.2/20 scope global eth0
    inet6 fd00:160::f002/64 scope global
"""
SYSCTL = "net.ipv4.ip_forward = 1\nnet.ipv6.conf.all.forwarding = 1\n"


@pytest.mark.parametrize("name", ["routers", "gw2"])
def test_router_is_checked_by_its_name(tmp_path: Path, name: str) -> None:
    verdict = check_outputs(tmp_path, {"addr": ADDRESSES, "sysctl": SYSCTL}, name)
    assert verdict.faults == ()
    assert ("the addresses of a router", "gw2") in {(item.subject, item.location) for item in verdict.comparisons}


@pytest.mark.parametrize("name", ["routers", "gw2"])
def test_replaced_address_is_a_single_fault(tmp_path: Path, name: str) -> None:
    addresses = ADDRESSES.replace("10.150.255.2/16", "10.150.255.1/16")
    (fault,) = check_outputs(tmp_path, {"addr": addresses, "sysctl": SYSCTL}, name).faults
    assert (fault.kind, fault.location) == ("address of a router", "10.150.255.1")
    assert fault.problem.startswith("gw2 has 10.150.255.1 of gw1 and not its own, 10.150.255.2: ")
    assert fault.remedy == "replace it by 10.150.255.2"


def test_further_address_of_another_router_is_reported(tmp_path: Path) -> None:
    addresses = ADDRESSES.replace(
        "    inet6 fd00:150", "    inet 10.150.255.3/16 scope global hsn0\n    inet6 fd00:150"
    )
    (fault,) = check_outputs(tmp_path, {"addr": addresses, "sysctl": SYSCTL}, "routers").faults
    assert fault.problem.startswith("gw2 has 10.150.255.3 of gw3: ")
    assert fault.remedy.startswith("remove it here")


def test_addresses_of_two_routers_are_of_neither(tmp_path: Path) -> None:
    addresses = "\n".join(line for line in ADDRESSES.splitlines() if "inet6" not in line)
    mixed = {"addr": addresses.replace("10.150.255.2/16", "10.150.255.1/16"), "sysctl": SYSCTL}
    (fault,) = check_outputs(tmp_path, mixed, "routers").faults
    assert fault.kind == "addresses of several routers"
    assert "10.150.255.1 of gw1 and 10.160.15.2 of gw2" in fault.problem
    (named_fault,) = [fault for fault in check_outputs(tmp_path, mixed, "gw2").faults if "10.150" in fault.problem]
    assert "and not its own, 10.150.255.2" in named_fault.problem


def test_tables_of_another_router_are_not_compared(tmp_path: Path) -> None:
    (fault,) = check_outputs(tmp_path, {"addr": ADDRESSES, "sysctl": SYSCTL}, "gw3").faults
    assert (fault.kind, fault.remedy) == ("not a router", "check it as gw2")
    with pytest.raises(UserError, match="no class of hosts"):
        check_outputs(tmp_path, {"addr": ADDRESSES}, "gw9")


@pytest.mark.parametrize(("version", "setting"), [(4, "net.ipv4.ip_forward"), (6, "net.ipv6.conf.all.forwarding")])
def test_fault_states_which_version_is_not_forwarded(tmp_path: Path, version: int, setting: str) -> None:
    sysctl = SYSCTL.replace(f"{setting} = 1", f"{setting} = 0")
    (fault,) = check_outputs(tmp_path, {"addr": ADDRESSES, "sysctl": sysctl}, "gw2").faults
    assert (fault.location, fault.problem) == (f"{setting} = 0", f"no IPv{version} packet passes this router")


def test_addresses_on_exchanged_interfaces_are_one_fault(tmp_path: Path) -> None:
    addresses = ADDRESSES.replace("hsn0", "X").replace("eth0", "hsn0").replace("X", "eth0")
    routes = "10.150.0.0/16 dev eth0 proto kernel scope link\n10.160.0.0/20 dev hsn0 proto kernel scope link\n"
    rules = "0:\tfrom all lookup local\n32766:\tfrom all lookup main\n"
    outputs = {"addr": addresses, "sysctl": SYSCTL, "route": routes, "rule": rules}
    (fault,) = check_outputs(tmp_path, outputs, "gw2").faults
    assert (fault.kind, fault.location) == ("wrong interface", "gw2")
    assert fault.problem == (
        "gw2 has 10.150.255.2 on eth0 and 10.160.15.2 on hsn0 and fd00:150::f002 on eth0 and fd00:160::f002 on hsn0;"
        " the system file says 10.150.255.2 on hsn0 and 10.160.15.2 on eth0 and fd00:150::f002 on hsn0 and"
        " fd00:160::f002 on eth0"
    )


def test_address_of_a_host_on_a_router_is_reported(tmp_path: Path) -> None:
    addresses = ADDRESSES + "    inet 10.160.0.1/20 scope global secondary eth0\n"
    (fault,) = check_outputs(tmp_path, {"addr": addresses, "sysctl": SYSCTL}, "gw2").faults
    assert (fault.kind, fault.location) == ("address of another host", "10.160.0.1")
    assert fault.problem.startswith("gw2 has 10.160.0.1 of nsd1: ")


def test_unset_forwarding_of_a_file_is_no_fault(tmp_path: Path) -> None:
    outputs = {"addr": ADDRESSES, "sysctl": SYSCTL, "99-local.conf": "vm.swappiness = 10\n"}
    assert check_outputs(tmp_path, outputs, "gw2").faults == ()
    outputs["99-local.conf"] += "net.ipv4.ip_forward = 0\n"
    (fault,) = check_outputs(tmp_path, outputs, "gw2").faults
    assert fault.location == "net.ipv4.ip_forward = 0 in the configuration files"


@pytest.mark.parametrize(("mode", "is_fault"), [("datagram", True), ("connected", False)])
def test_ipoib_mode_of_a_router_is_checked(mode: str, is_fault: bool) -> None:
    fabric = build_fabric(1)
    router = fabric.routers[0]
    fabric = replace(fabric, near=replace(fabric.near, mtu=65520))
    tables = HostTables(
        addresses=(f"{router.near_address}/16", f"{router.far_address}/16"),
        transport_modes={router.near_device: mode},
        mtus={router.near_device: 2044},
    )
    kinds = {item.kind for item in check_router_tables([fabric], tables, router.name) if isinstance(item, RouteFault)}
    assert kinds & {"datagram mode", "MTU mismatch"} == {"datagram mode" if is_fault else "MTU mismatch"}


def test_address_removed_without_ipv6_is_a_single_fault(tmp_path: Path) -> None:
    outputs = {"addr": ADDRESSES.replace("    inet6 fd00:150::f002/64 scope global\n", ""), "sysctl": SYSCTL}
    assert [fault.kind for fault in check_outputs(tmp_path / "on", outputs, "gw2").faults] == ["address missing"]
    outputs["sysctl"] += "net.ipv6.conf.hsn0.disable_ipv6 = 1\n"
    assert [fault.kind for fault in check_outputs(tmp_path / "off", outputs, "gw2").faults] == ["IPv6 is off"]
