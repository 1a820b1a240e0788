# SPDX-License-Identifier: Apache-2.0
"""Files of the storage interface that also ask for an address by DHCP or set a default route."""

from __future__ import annotations

from pathlib import Path

import pytest
from dual_stack_host import check_outputs, print_server_outputs

from sonde.design.routes.faults import RouteFault

KEYFILE = ("[connection]\nid=storage\ntype=bond\ninterface-name=bond0\n\n[ipv4]\nmethod={}\naddress1=10.160.0.1/20{}\n"
           "\n[bond]\nmode=802.3ad\nmiimon=100\n")  # fmt: skip
NETWORKD = "[Match]\nName=bond0\n\n[Link]\nMTUBytes=9000\n\n[Network]\nAddress=10.160.0.1/20\n{}\n"
IFCFG = "DEVICE=bond0\nONBOOT=yes\nIPADDR=10.160.0.1\nPREFIX=20\n{}\n"
NETPLAN = """network:
  version: 2
  bonds:
    bond0:
      addresses: [10.160.0.1/20]
      mtu: 9000
      parameters: {{mode: 802.3ad, mii-monitor-interval: 100}}
      {}
"""
DEFAULT = "default via 192.168.9.1 dev mgmt\n192.168.9.0/24 dev mgmt proto kernel\n"


def check_file(folder: Path, name: str, text: str, more_routes: str = DEFAULT) -> tuple[RouteFault, ...]:
    outputs = print_server_outputs() | {name: text}
    return check_outputs(folder, outputs | {"route": outputs["route"] + more_routes}).faults


@pytest.mark.parametrize(("name", "text", "option"), [
    ("bond0.nmconnection", KEYFILE.format("auto", ""), "method=manual"),
    ("50-bond0.network", NETWORKD.format("DHCP=yes"), "DHCP=no"),
    ("50-bond0.network", NETWORKD.format("DHCP=ipv4"), "DHCP=no"),
    ("ifcfg-bond0", IFCFG.format("BOOTPROTO=dhcp"), "BOOTPROTO=none"),
    ("60-site.yaml", NETPLAN.format("dhcp4: true"), "dhcp4: false"),
])  # fmt: skip
def test_lease_besides_the_planned_address_is_reported(tmp_path: Path, name: str, text: str, option: str) -> None:
    (fault,) = check_file(tmp_path, name, text)
    assert (fault.kind, fault.location) == ("address by DHCP too", f"{name}, bond0")
    assert fault.remedy == f"write {option} in {name}"


FILES_WITH_GATEWAY = [
    ("bond0.nmconnection", KEYFILE.format("manual", "\ngateway=10.160.15.1")),
    ("bond0.nmconnection", KEYFILE.format("manual", ",10.160.15.1")),
    ("50-bond0.network", NETWORKD.format("Gateway=10.160.15.1")),
    ("ifcfg-bond0", IFCFG.format("GATEWAY=10.160.15.1")),
    ("60-site.yaml", NETPLAN.format("gateway4: 10.160.15.1")),
]


@pytest.mark.parametrize(("name", "text"), FILES_WITH_GATEWAY)
def test_second_default_route_of_a_file_is_reported(tmp_path: Path, name: str, text: str) -> None:
    (fault,) = check_file(tmp_path, name, text)
    assert (fault.kind, fault.location) == ("second default route", f"{name}, bond0")
    assert "sets a default route by 10.160.15.1 on bond0, and that of this host leaves by mgmt" in fault.problem


@pytest.mark.parametrize(("name", "text"), [
    ("bond0.nmconnection", KEYFILE.format("manual", "")), ("50-bond0.network", NETWORKD.format("DHCP=no")),
    ("50-bond0.network", NETWORKD.format("DHCP=ipv6")), ("ifcfg-bond0", IFCFG.format("BOOTPROTO=none")),
    ("ifcfg-bond0", IFCFG.format("GATEWAY=10.160.15.1\nDEFROUTE=no")), ("60-site.yaml", NETPLAN.format("")),
    ("bond0.nmconnection", KEYFILE.format("manual", "\ngateway=10.160.15.1\nnever-default=true")),
])  # fmt: skip
def test_file_without_lease_and_default_route_is_no_fault(tmp_path: Path, name: str, text: str) -> None:
    assert check_file(tmp_path, name, text) == ()


def test_only_default_route_by_the_storage_network_is_no_fault(tmp_path: Path) -> None:
    name, text = FILES_WITH_GATEWAY[0]
    faults = check_file(tmp_path, name, text, "default via 10.160.15.1 dev bond0\n")
    assert "second default route" not in [fault.kind for fault in faults]
