# SPDX-License-Identifier: Apache-2.0
"""The remedy of a fault names the line of the configuration file that sets the wrong value."""

from __future__ import annotations

from pathlib import Path

import pytest
from dual_stack_host import check_outputs, print_server_outputs

SCRIPT = "# site\nDEVICE=bond0\nONBOOT=yes\n{}\n"
KEYFILE = "[connection]\nid=bond0\ntype=bond\ninterface-name=bond0\n\n{}\n"
NETWORK = "[Match]\nName=bond0\n\n{}\n"
TEMPORARY = "    inet6 fd00:160::9c1d:77a2:4f0e:b1c3/64 scope global temporary dynamic\n"
ACCEPTING = "net.ipv6.conf.bond0.accept_ra = {}\nnet.ipv6.conf.bond0.mtu = 1500\n"


def check_server(folder: Path, files: dict[str, str], address_line: str = "", settings: str = "") -> list[str]:
    """Problems and remedies of the faults of a server with configuration files."""
    outputs = print_server_outputs()
    outputs["addr"] += address_line
    outputs["sysctl"] += settings
    faults = check_outputs(folder, outputs | files).faults
    return [f"{fault.kind} | {fault.location} | {fault.problem} | {fault.remedy}" for fault in faults]


@pytest.mark.parametrize(("name", "text", "line"), [
    ("50-bond0.network", NETWORK.format("[Network]\nIPv6MTUBytes=1500"), "line 5 (IPv6MTUBytes=1500)"),
    ("ifcfg-bond0", SCRIPT.format("IPV6_MTU=1500"), "line 4 (IPV6_MTU=1500)"),
    ("bond0.nmconnection", KEYFILE.format("[ipv6]\nmtu=1500"), "line 7 (mtu=1500)"),
])  # fmt: skip
def test_file_that_sets_the_mtu_of_ipv6_is_the_cause(tmp_path: Path, name: str, text: str, line: str) -> None:
    (fault,) = check_server(tmp_path, {name: text}, settings=ACCEPTING.format(1))
    assert fault.startswith("MTU mismatch | net.ipv6.conf.bond0.mtu = 1500 | ")
    assert fault.endswith(
        f"| sysctl -w net.ipv6.conf.bond0.mtu=9000; and correct {name}, {line}, which sets it again at the next start"
    )


@pytest.mark.parametrize(("accepting", "is_blamed"), [("0", False), ("1", True), ("2", True)])
def test_advertisements_are_blamed_where_accepted(tmp_path: Path, accepting: str, is_blamed: bool) -> None:
    faults = check_server(tmp_path, {}, settings=ACCEPTING.format(accepting))
    (fault,) = [fault for fault in faults if fault.startswith("MTU mismatch")]
    assert ("MTU option of the router that advertises it" in fault) == is_blamed


@pytest.mark.parametrize(("name", "text", "line"), [
    ("50-bond0.network", NETWORK.format("[Network]\nIPv6PrivacyExtensions=yes"), "line 5 (IPv6PrivacyExtensions=yes)"),
    ("ifcfg-bond0", SCRIPT.format("IPV6_PRIVACY=rfc3041"), "line 4 (IPV6_PRIVACY=rfc3041)"),
    ("bond0.nmconnection", KEYFILE.format("[ipv6]\nip6-privacy=2"), "line 7 (ip6-privacy=2)"),
    ("bond0.nmconnection", KEYFILE.format("[ipv6]\nip6-privacy=0"), ""),
])  # fmt: skip
def test_file_that_asks_for_temporary_addresses_is_in_the_remedy(
    tmp_path: Path, name: str, text: str, line: str
) -> None:
    (fault,) = check_server(tmp_path, {name: text}, address_line=TEMPORARY)
    assert fault.startswith("temporary address | bond0: ")
    assert ("and correct" in fault) == bool(line)
    assert line in fault


@pytest.mark.parametrize(("name", "text", "line"), [
    ("ifcfg-bond0", SCRIPT.format('MTU="1500"'), 'ifcfg-bond0, line 4 (MTU="1500")'),
    ("ifcfg-bond0", SCRIPT.format('BONDING_OPTS="mode=0 miimon=100"'),
     'line 4 (BONDING_OPTS="mode=0 miimon=100")'),
    ("50-bond0.network", NETWORK.format("[Link]\nMTUBytes=1500"), "50-bond0.network, line 5 (MTUBytes=1500)"),
])  # fmt: skip
def test_wrong_value_in_a_file_alone_changes_the_file_only(tmp_path: Path, name: str, text: str, line: str) -> None:
    (fault,) = check_server(tmp_path, {name: text})
    assert " in the configuration files | after the next start bond0 " in fault
    assert fault.endswith(f"{line}, which does not hold for the running host yet")
    assert "ip link set" not in fault


def test_wrong_value_of_host_and_file_changes_both(tmp_path: Path) -> None:
    outputs = print_server_outputs()
    outputs["addr"] = outputs["addr"].replace("MASTER,UP,LOWER_UP> mtu 9000", "MASTER,UP,LOWER_UP> mtu 1500")
    outputs["ifcfg-bond0"] = SCRIPT.format("MTU=1500")
    remedies = [fault.remedy for fault in check_outputs(tmp_path, outputs).faults if fault.kind == "MTU mismatch"]
    assert remedies == [
        "set mtu 9000; and correct ifcfg-bond0, line 4 (MTU=1500), which sets it again at the next start"
    ]


def test_line_with_another_value_is_not_in_the_remedy(tmp_path: Path) -> None:
    outputs = print_server_outputs()
    outputs["addr"] = outputs["addr"].replace("MASTER,UP,LOWER_UP> mtu 9000", "MASTER,UP,LOWER_UP> mtu 1500")
    outputs["ifcfg-bond0"] = SCRIPT.format("MTU=9000")
    remedies = [fault.remedy for fault in check_outputs(tmp_path, outputs).faults if fault.kind == "MTU mismatch"]
    assert remedies == ["set mtu 9000"]


@pytest.mark.parametrize("match", ["[Match]\nOriginalName=bond0\n\n[Link]\n",
                                   "[Match]\nMACAddress=52:54:00:a0:00:01\n\n[Link]\nName=bond0\n"])  # fmt: skip
@pytest.mark.parametrize(("mtu", "kinds"), [("1500", ["MTU mismatch"]), ("9000", [])])
def test_mtu_of_a_link_file_is_compared(tmp_path: Path, match: str, mtu: str, kinds: list[str]) -> None:
    outputs = print_server_outputs() | {"10-storage.link": f"{match}MTUBytes={mtu}\n"}
    faults = check_outputs(tmp_path, outputs).faults
    assert [fault.kind for fault in faults] == kinds
    assert all(f"10-storage.link, line {5 if 'Orig' in match else 6} (MTUBytes" in fault.remedy for fault in faults)
