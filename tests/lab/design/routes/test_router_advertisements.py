# SPDX-License-Identifier: Apache-2.0
"""Prefixes and MTUs that IPv6 router advertisements set."""

from __future__ import annotations

from pathlib import Path

import pytest
from dual_stack_host import check_outputs, print_server_outputs

PREFIX_ROUTE = "fd00:150::/64 dev bond0 proto kernel metric 256 expires 2591994sec pref medium\n"
LINK_LOCAL = "    inet6 fe80::5054:ff:fea0:1/64 scope link\n"
ADDRESS = "fd00:150::5054:ff:fea0:1/64"
REMOVAL = "sysctl -w net.ipv6.conf.bond0.accept_ra=0; ip -6 route del fd00:150::/64 dev bond0"


def test_advertised_prefix_of_the_other_side_is_one_fault(tmp_path: Path) -> None:
    outputs = print_server_outputs()
    outputs["route6"] += PREFIX_ROUTE
    outputs["addr"] = outputs["addr"].replace(
        LINK_LOCAL, f"    inet6 {ADDRESS} scope global dynamic mngtmpaddr\n{LINK_LOCAL}"
    )
    (fault,) = check_outputs(tmp_path, outputs).faults
    assert (fault.kind, fault.location) == ("address of the other side", f"bond0: {ADDRESS}")
    assert "(a router advertises its prefix on bond0)" in fault.problem
    assert fault.remedy.startswith(f"{REMOVAL}; ip addr del {ADDRESS} dev bond0; and stop the router")


def test_advertised_route_has_the_remedy_of_advertisements(tmp_path: Path) -> None:
    outputs = print_server_outputs()
    outputs["route6"] += PREFIX_ROUTE
    (fault,) = check_outputs(tmp_path, outputs).faults
    assert fault.kind == "far network on link"
    assert "by a router advertisement (the route has a lifetime)" in fault.problem
    assert "by ND, and gets no answer" in fault.problem
    assert fault.remedy.startswith(REMOVAL)


def test_route_by_a_router_that_expires_is_reported(tmp_path: Path) -> None:
    outputs = print_server_outputs()
    outputs["route6"] = outputs["route6"].replace(" mtu 9000", " expires 300sec mtu 9000", 1)
    (fault,) = check_outputs(tmp_path, outputs).faults
    assert fault.kind == "route expires"


def test_advertised_mtu_is_one_fault(tmp_path: Path) -> None:
    outputs = print_server_outputs()
    assert "mtu 9000" in outputs["route6"]
    outputs["route6"] = outputs["route6"].replace("mtu 9000", "mtu 1500")
    outputs["sysctl"] += "net.ipv6.conf.bond0.mtu = 1500\n"
    (fault,) = check_outputs(tmp_path, outputs).faults
    assert (fault.kind, fault.location) == ("MTU mismatch", "net.ipv6.conf.bond0.mtu = 1500")
    assert fault.remedy.startswith("correct the MTU option of the router that advertises it, the usual cause")
    assert "net.ipv6.conf.bond0.accept_ra_mtu=0; then sysctl -w net.ipv6.conf.bond0.mtu=9000" in fault.remedy


def test_small_mtu_of_routes_alone_is_reported(tmp_path: Path) -> None:
    outputs = print_server_outputs()
    outputs["route6"] = outputs["route6"].replace("mtu 9000", "mtu 1500")
    outputs["sysctl"] += "net.ipv6.conf.bond0.mtu = 9000\n"
    assert {fault.kind for fault in check_outputs(tmp_path, outputs).faults} == {"MTU too small"}


def test_router_that_advertises_a_temporary_address_is_reported(tmp_path: Path) -> None:
    outputs = print_server_outputs()
    temporary = "    inet6 fd00:160::8d3c:51ff:2b07:9e14/64 scope global temporary dynamic\n"
    outputs["addr"] = outputs["addr"].replace(LINK_LOCAL, temporary + LINK_LOCAL)
    outputs["route6"] += "default via fe80::2 dev bond0 proto ra metric 1024 expires 1795sec pref medium\n"
    outputs["neigh"] = "".join(
        f"{address} dev bond0 lladdr {link_address} REACHABLE\n"
        for address, link_address in (("fe80::2", "02:00:00:00:08:02"), ("fd00:160::f002", "02:00:00:00:08:02"),
                                      ("fd00:160::f001", "02:00:00:00:08:01"))
    )  # fmt: skip
    (fault,) = [fault for fault in check_outputs(tmp_path, outputs).faults if fault.kind == "temporary address"]
    assert fault.remedy.endswith(
        "; router advertisements come from fe80::2 (fd00:160::f002): stop them there, or leave the prefix out"
    )


@pytest.mark.parametrize(("line", "neighbor", "kinds"), [
    ("default via fe80::dead dev bond0 metric 100 expires 1700sec", "", ["routes of advertisements"]),
    ("default via fe80::dead dev mgmt metric 100 expires 1700sec", "", []),
    ("default via fe80::dead dev bond0 metric 100", "", []),
    ("default via fe80::dead dev bond0 metric 100 expires 1700sec", "fd00:160::f001", []),
])  # fmt: skip
def test_advertised_default_route_is_reported(tmp_path: Path, line: str, neighbor: str, kinds: list[str]) -> None:
    outputs = print_server_outputs()
    outputs["route6"] += f"{line}\n"
    addresses = ("fe80::dead", neighbor or "fd00:160::2")
    outputs["neigh"] = "".join(f"{each} dev bond0 lladdr 52:54:00:0a:00:99 router REACHABLE\n" for each in addresses)
    assert [fault.kind for fault in check_outputs(tmp_path, outputs).faults] == kinds
