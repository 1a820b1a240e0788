# SPDX-License-Identifier: Apache-2.0
"""Files of netplan: what they set at the next start."""

from __future__ import annotations

from pathlib import Path

import pytest
from dual_stack_host import VLAN, check_outputs, print_server_outputs

from sonde.design.routes.table_reader import parse_host_tables
from sonde.model.errors import UserError

NAME = "60-site.yaml"
NETPLAN = """# written by the installer
network:
  version: 2
  renderer: networkd
  ethernets:
    eth2: {mtu: 9000}
    eth3:
      match:
        macaddress: 52:54:00:10:00:01
      set-name: eth3
      mtu: 9000
    mgmt:
      addresses: [192.168.9.7/24]
      routes:
        - to: default
          via: 192.168.9.1
        - to: 10.0.0.0/8
          via: 192.168.9.2
  bonds:
    bond0:
      interfaces: [eth2, eth3]
      mtu: 9000
      parameters:
        mode: 802.3ad
        mii-monitor-interval: 100
        transmit-hash-policy: layer3+4
        lacp-rate: fast
      addresses:
        - 10.160.0.1/20
        - "fd00:160::1/64": {lifetime: forever}
"""


def check_server(folder: Path, text: str) -> list[tuple[str, str, str]]:
    faults = check_outputs(folder, print_server_outputs() | {NAME: text}).faults
    return [(fault.kind, fault.location, fault.remedy) for fault in faults]


def test_healthy_file_has_no_fault(tmp_path: Path) -> None:
    assert check_server(tmp_path, NETPLAN) == []


@pytest.mark.parametrize(("old", "new", "kind", "location", "remedy"), [
    ("3]\n      mtu: 9000", "3]\n      mtu: 1500", "MTU mismatch", "bond0 in the configuration files",
     f"correct {NAME}, line 22 (network.bonds.bond0.mtu), which does not hold for the running host yet"),
    ("mode: 802.3ad", "mode: balance-rr", "bond mode", "bond0 in the configuration files",
     f"correct {NAME}, line 24 (network.bonds.bond0.parameters.mode), which does not hold for the running host yet"),
    ("mode: 802.3ad\n        mii-monitor-interval: 100", "mode: active-backup", "bond ports not watched",
     "bond0 in the configuration files", "ip link set bond0 type bond miimon 100"),
    ("10.160.0.1/20", "10.160.0.2/20", "another address in a file", f"{NAME}, bond0", f"write 10.160.0.1/20 in {NAME}"),
    ("10.160.0.1/20", "10.160.0.1/24", "another prefix in a file", f"{NAME}, bond0", f"write 10.160.0.1/20 in {NAME}"),
    ("fd00:160::1/64", "fd00:160::2/64", "another address in a file", f"{NAME}, bond0",
     f"write fd00:160::1/64 in {NAME}"),
    ("bond0:\n", "bond0:\n      activation-mode: manual\n", "not applied at the start",
     f"{NAME}, activation-mode: manual in the configuration files", "remove activation-mode"),
])  # fmt: skip
def test_wrong_value_is_reported(
    tmp_path: Path, old: str, new: str, kind: str, location: str, remedy: str
) -> None:  # fmt: skip
    assert NETPLAN.count(old) == 1
    assert check_server(tmp_path, NETPLAN.replace(old, new)) == [(kind, location, remedy)]


def test_file_for_a_replaced_adapter_is_reported(tmp_path: Path) -> None:
    outputs = print_server_outputs() | {NAME: NETPLAN}
    for number, permanent in (("2", "52:54:00:10:00:00"), ("3", "52:54:00:10:00:01")):
        outputs[f"ethtool-P-eth{number}"] = f"Permanent address: {permanent}\n"
    assert check_outputs(tmp_path / "right", outputs).faults == ()
    outputs["ethtool-P-eth3"] = "Permanent address: 52:54:00:10:00:99\n"
    (fault,) = check_outputs(tmp_path / "wrong", outputs).faults
    assert (fault.kind, fault.location) == ("not applied at the start", f"{NAME}, macaddress")
    assert "netplan does not apply it to eth3" in fault.problem


@pytest.mark.parametrize(("number", "kinds"), [("210", []), ("211", ["another VLAN"])])
def test_number_of_a_vlan_is_compared(tmp_path: Path, number: str, kinds: list[str]) -> None:
    text = f"network:\n  vlans:\n    {VLAN}:\n      id: {number}\n      link: bond0\n      addresses: [10.160.0.1/20]\n"
    faults = check_outputs(tmp_path, print_server_outputs(VLAN) | {NAME: text}, device=VLAN).faults
    assert [fault.kind for fault in faults] == kinds
    assert all(f"correct {NAME}, line 4 (network.vlans.{VLAN}.id)" in fault.remedy for fault in faults)


def test_lists_of_two_files_are_joined_by_netplan(tmp_path: Path) -> None:
    other = "network:\n  bonds:\n    bond0:\n      addresses: [10.160.0.9/20]\n"
    outputs = print_server_outputs() | {NAME: NETPLAN, "50-cloud-init.yaml": other}
    (fault,) = check_outputs(tmp_path, outputs).faults
    assert fault.location == f"50-cloud-init.yaml, {NAME}"
    assert "netplan joins their lists" in fault.problem


def test_routes_and_rules_are_read() -> None:
    text = (
        "network:\n  ethernets:\n    hsn0:\n      gateway4: 10.1.0.9\n      routes:\n"
        "      - {to: 10.150.0.0/16, via: 10.1.0.1, table: 101, metric: 5, mtu: 9000}\n"
        "      routing-policy:\n      - {from: 10.1.0.2, table: 101, priority: 70, mark: 4}\n"
    )
    tables = parse_host_tables(text, NAME)
    route, default = tables.routes or ()
    (rule,) = tables.rules or ()
    assert (route.destination, route.table, route.metric, route.mtu) == ("10.150.0.0/16", "101", 5, 9000)
    assert [(hop.via, hop.device) for hop in route.hops] == [("10.1.0.1", "hsn0")]
    assert (default.destination, default.origin) == ("default", f"{NAME}, line 4 (network.ethernets.hsn0.gateway4)")
    assert (rule.preference, rule.source, rule.mark, rule.table) == (70, "10.1.0.2", 4, "101")


def test_route_that_leaves_out_a_router_is_reported(tmp_path: Path) -> None:
    text = NETPLAN + "      routes:\n        - to: 10.150.0.0/16\n          via: 10.160.15.1\n"
    kinds = [kind for kind, _, _ in check_server(tmp_path, text)]
    assert kinds == ["router not used", "standby missing"]


@pytest.mark.parametrize("text", ["network:\n  version: 1\n  config: []\n", "network: [\n"])
def test_other_format_is_rejected_with_a_sentence(text: str) -> None:
    with pytest.raises(UserError, match=f"^{NAME} (has no interface of netplan|is not YAML)"):
        parse_host_tables(text, NAME)


@pytest.mark.parametrize(("name", "text"), [
    ("10-bond0.netdev", "[NetDev]\nName=bond0\nKind=bond\n\n[Bond]\nMode={}\nMIIMonitorSec=0.1s\n"),
    ("bond0.nmconnection", "[connection]\nid=b\ntype=bond\ninterface-name=bond0\n\n[bond]\nmode={}\n"),
])  # fmt: skip
def test_bond_of_other_managers_is_read(tmp_path: Path, name: str, text: str) -> None:
    outputs = print_server_outputs()
    assert check_outputs(tmp_path / "right", outputs | {name: text.format("active-backup")}).faults == ()
    (fault,) = check_outputs(tmp_path / "wrong", outputs | {name: text.format("balance-rr")}).faults
    assert fault.kind == "bond mode"
    assert f"correct {name}, line 6 (" in fault.remedy.replace("line 7", "line 6")


@pytest.mark.parametrize(("name", "text"), [
    ("10-vlan.netdev", f"[NetDev]\nName={VLAN}\nKind=vlan\n\n[VLAN]\nId={{}}\n"),
    ("vlan.nmconnection", f"[connection]\nid=v\ninterface-name={VLAN}\n\n[vlan]\nid={{}}\nparent=bond0\n"),
    (f"ifcfg-{VLAN}", f"DEVICE={VLAN}\nONBOOT=yes\nVLAN=yes\nVLAN_ID={{}}\n"),
])  # fmt: skip
def test_vlan_of_other_managers_is_read(tmp_path: Path, name: str, text: str) -> None:
    outputs = print_server_outputs(VLAN)
    assert check_outputs(tmp_path / "right", outputs | {name: text.format(210)}, device=VLAN).faults == ()
    (fault,) = check_outputs(tmp_path / "wrong", outputs | {name: text.format(12)}, device=VLAN).faults
    assert fault.kind == "another VLAN"
    assert fault.remedy.startswith(f"correct {name}, line ")


def test_default_route_of_another_network_is_no_fault(tmp_path: Path) -> None:
    text = "[Match]\nName=mgmt\n\n[Network]\nAddress=192.168.9.7/24\n\n[Route]\nGateway=192.168.9.1\n"
    assert check_outputs(tmp_path, print_server_outputs() | {"10-mgmt.network": text}).faults == ()


@pytest.mark.parametrize(("route", "kinds"), [
    ("10.0.0.0/8 via 192.168.9.2 dev mgmt", []),
    ("10.150.4.0/24 via 192.168.9.2 dev mgmt", ["unknown router"]),
])  # fmt: skip
def test_wide_route_of_another_network_is_no_fault(tmp_path: Path, route: str, kinds: list[str]) -> None:
    outputs = print_server_outputs()
    outputs["route"] += f"{route}\n"
    faults = check_outputs(tmp_path, outputs).faults
    assert [fault.kind for fault in faults][:1] == kinds
