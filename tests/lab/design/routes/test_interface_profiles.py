# SPDX-License-Identifier: Apache-2.0
"""Configuration files for the link address of another adapter, and files that compete for one interface."""

from __future__ import annotations

from pathlib import Path

import pytest
from dual_stack_host import check_outputs, print_server_outputs

BOND, PORT, OLD = "52:54:00:a0:00:01", "52:54:00:a0:00:77", "0C:42:A1:5E:77:10"
SCRIPT = "DEVICE={}\nONBOOT=yes\nBOOTPROTO=none\n"
KEYFILE = "[connection]\nid={}\ntype=ethernet\ninterface-name=bond0\n\n[ethernet]\n{}\n[ipv4]\nmethod=manual\n{}\n"
NETWORK = "[Match]\n{}\n\n[Link]\nMTUBytes=9000\n\n[Network]\nDHCP=no\n"


def check_server(folder: Path, files: dict[str, str]) -> list[tuple[str, str, str]]:
    """The faults of a healthy server, whose port eth2 has a permanent link address, with these files."""
    outputs = print_server_outputs()
    port = f"link/ether {BOND} brd ff:ff:ff:ff:ff:ff"
    outputs["addr"] = outputs["addr"].replace(port, f"{port} permaddr {PORT}", 1)
    faults = check_outputs(folder, outputs | files).faults
    return [(fault.kind, fault.location, fault.problem) for fault in faults]


@pytest.mark.parametrize(("name", "text", "location", "expected_sentence"), [
    ("ifcfg-bond0", SCRIPT.format("bond0") + f"HWADDR={OLD}\n", "ifcfg-bond0, HWADDR",
     "which no interface of this host has (an adapter that was replaced?); bond0 has 52:54:00:a0:00:01"),
    ("ifcfg-bond0", SCRIPT.format("bond0") + f"HWADDR={PORT}\n", "ifcfg-bond0, HWADDR", "that of eth2; bond0 has"),
    ("ifcfg-eth2", SCRIPT.format("eth2") + f"HWADDR={OLD}\nMASTER=bond0\n", "ifcfg-eth2, HWADDR",
     f"eth2 has {PORT}: the network service does not apply it to eth2"),
    ("bond0.nmconnection", KEYFILE.format("a", f"mac-address={OLD}\n", ""), "bond0.nmconnection, mac-address",
     "NetworkManager does not apply it to bond0"),
    ("50-bond0.network", NETWORK.format(f"Name=bond0\nMACAddress={OLD}"), "50-bond0.network, MACAddress",
     "systemd-networkd does not apply it to bond0"),
])  # fmt: skip
def test_file_for_another_link_address_is_reported(
    tmp_path: Path, name: str, text: str, location: str, expected_sentence: str
) -> None:
    (fault,) = check_server(tmp_path, {name: text})
    assert fault[:2] == ("not applied at the start", location)
    assert expected_sentence in fault[2]


@pytest.mark.parametrize(("name", "text"), [
    ("ifcfg-eth2", SCRIPT.format("eth2") + f"HWADDR={PORT.upper()}\n"),
    ("ifcfg-eth3", SCRIPT.format("eth3") + f"HWADDR={OLD}\n"),  # of a port whose own address is unknown
    ("ifcfg-mgmt", SCRIPT.format("mgmt") + f"HWADDR={OLD}\n"),  # no interface of the plan
    ("ifcfg-bond0", SCRIPT.format("bond0").replace("yes", "no").replace("bond0", "bond7") + f"HWADDR={OLD}\n"),
    ("ifcfg-bond0", SCRIPT.format("bond0") + f"MACADDR={BOND}\nHWADDR={OLD}\n"),
    ("50-bond0.network", NETWORK.format(f"Name=bond0\nMACAddress={BOND} {OLD}")),
])  # fmt: skip
def test_file_for_a_fitting_link_address_is_no_fault(tmp_path: Path, name: str, text: str) -> None:
    assert check_server(tmp_path, {name: text}) == []


ADDRESS = "IPADDR=10.160.0.1\nPREFIX=20\n"


@pytest.mark.parametrize(("files", "location", "expected_sentence"), [
    ({"ifcfg-bond0": SCRIPT.format("bond0") + ADDRESS, "ifcfg-bond0-old": SCRIPT.format("bond0") + ADDRESS},
     "ifcfg-bond0, ifcfg-bond0-old", "the network service applies one after the other"),
    ({"a.nmconnection": KEYFILE.format("a", "", "address1=10.160.0.1/20"),
      "b.nmconnection": KEYFILE.format("b", "", "address1=10.60.0.1/20")},
     "a.nmconnection, b.nmconnection", "NetworkManager activates one of these profiles"),
    ({"10-all.network": NETWORK.format("Name=bond* eth*"), "50-bond0.network": NETWORK.format("Name=bond0")},
     "10-all.network, 50-bond0.network", "uses the first in the order of names, 10-all.network, and ignores"),
])  # fmt: skip
def test_files_that_compete_for_an_interface_are_reported(
    tmp_path: Path, files: dict[str, str], location: str, expected_sentence: str
) -> None:
    (fault,) = check_server(tmp_path, files)
    assert fault[:2] == ("several files for an interface", location)
    assert expected_sentence in fault[2]


@pytest.mark.parametrize("files", [
    {"ifcfg-bond0": SCRIPT.format("bond0") + ADDRESS, "ifcfg-bond0.bak": SCRIPT.format("bond0") + ADDRESS},
    {"ifcfg-bond0": SCRIPT.format("bond0") + ADDRESS, "ifcfg-bond0:1": SCRIPT.format("bond0:1") + ADDRESS},
    {"a.nmconnection": KEYFILE.format("a", "", "address1=10.160.0.1/20"),
     "b.nmconnection": KEYFILE.format("b", "", "address1=10.60.0.1/20").replace("[ethernet]", "[x]\n[ethernet]")
     .replace("id=b", "id=b\nautoconnect-priority=-9")},
    {"a.nmconnection": KEYFILE.format("a", "", "address1=10.160.0.1/20"),
     "b.nmconnection": KEYFILE.format("b", "", "route1=10.9.0.0/16,10.160.0.9")},
    {"50-bond0.network": NETWORK.format("Name=bond0"), "90-all.network": NETWORK.format("Name=bond* eth*")},
])  # fmt: skip
def test_files_that_do_not_compete_are_no_fault(tmp_path: Path, files: dict[str, str]) -> None:
    faults = check_server(tmp_path, files)
    assert [fault for fault in faults if fault[0] == "several files for an interface"] == []


@pytest.mark.parametrize(("name", "text", "fault_kind", "expected_sentence"), [
    ("ifcfg-bond0", SCRIPT.format("bond0") + ADDRESS.replace(".0.1", ".0.11"), "another address in a file",
     "bond0 has 10.160.0.11/20 after the next start, not 10.160.0.1/20"),
    ("ifcfg-bond0", SCRIPT.format("bond0") + "IPADDR0=10.160.0.1\nNETMASK0=255.255.255.0\n", "another prefix in a file",
     "bond0 has 10.160.0.1/24 after the next start, not 10.160.0.1/20"),
    ("ifcfg-bond0", SCRIPT.format("bond0") + ADDRESS + "IPV6ADDR=fd00:160::2/64\n", "another address in a file",
     "bond0 has fd00:160::2/64 after the next start, not fd00:160::1/64"),
    ("bond0.nmconnection", KEYFILE.format("a", "", "address1=10.160.0.2/20,10.160.0.9"), "another address in a file",
     "bond0 has 10.160.0.2/20 after"),
    ("50-bond0.network", NETWORK.format("Name=bond0") + "Address=10.160.0.2/20\nAddress=fd00:160::1/64\n",
     "another address in a file", "bond0 has 10.160.0.2/20 after"),
])  # fmt: skip
def test_file_with_another_address_is_reported(
    tmp_path: Path, name: str, text: str, fault_kind: str, expected_sentence: str
) -> None:
    (fault,) = check_server(tmp_path, {name: text})
    assert fault[:2] == (fault_kind, f"{name}, bond0")
    assert expected_sentence in fault[2]


@pytest.mark.parametrize(("name", "text"), [
    ("ifcfg-bond0", SCRIPT.format("bond0") + ADDRESS + "IPADDR1=10.9.0.1\nPREFIX1=16\nIPV6ADDR=fd00:160:0::1/64\n"),
    ("ifcfg-bond0", SCRIPT.format("bond0") + "IPADDR=10.160.0.1\n"),
    ("ifcfg-mgmt", SCRIPT.format("mgmt") + ADDRESS.replace(".0.1", ".0.11")),
    ("bond0.nmconnection", KEYFILE.format("a", "", "address1=10.9.0.1/16\naddress2=10.160.0.1/20")),
    ("50-bond0.network", NETWORK.format("Name=bond0") + "Address=10.9.0.1/16\n\n[Address]\nAddress=10.160.0.1/20\n"),
])  # fmt: skip
def test_file_with_the_planned_address_is_no_fault(tmp_path: Path, name: str, text: str) -> None:
    assert check_server(tmp_path, {name: text}) == []


def test_file_of_an_unnamed_member_of_a_class_is_not_compared(tmp_path: Path) -> None:
    text = SCRIPT.format("bond0") + ADDRESS.replace(".0.1", ".0.3")
    assert check_outputs(tmp_path, {"ifcfg-bond0": text}, "stores").faults == ()
