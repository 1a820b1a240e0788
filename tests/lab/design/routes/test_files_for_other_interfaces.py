# SPDX-License-Identifier: Apache-2.0
"""Files that set a host's address or routes on another interface than its own, as after it was renamed."""

from __future__ import annotations

from pathlib import Path

import pytest
from dual_stack_host import check_outputs, make_files_of_format, print_server_outputs

NETWORKD = "[Match]\nName={}\n\n[Link]\nMTUBytes=9000\n\n[Network]\nAddress=10.160.0.1/20\n"
KEYFILE = ("[connection]\nid=storage\ntype=bond\ninterface-name={}\n\n[ipv4]\nmethod=manual\naddress1=10.160.0.1/20\n"
           "\n[bond]\nmode=802.3ad\nmiimon=100\n")  # fmt: skip
IFCFG = "DEVICE={}\nONBOOT=yes\nBOOTPROTO=none\nIPADDR=10.160.0.1\nPREFIX=20\n"
NETPLAN = """network:
  version: 2
  bonds:
    {}:
      addresses: [10.160.0.1/20]
      mtu: 9000
      parameters: {{mode: 802.3ad, mii-monitor-interval: 100}}
"""
INTERFACES = "auto {0}\niface {0} inet static\n    address 10.160.0.1/20\n"


@pytest.mark.parametrize(("name", "text"), [
    ("50-bond0.network", NETWORKD), ("bond0.nmconnection", KEYFILE), ("ifcfg-bond0", IFCFG),
    ("60-site.yaml", NETPLAN), ("interfaces", INTERFACES),
])  # fmt: skip
@pytest.mark.parametrize(("device", "kinds"), [("bond1", ["file for another interface"]), ("bond0", [])])
def test_address_in_a_file_for_another_interface_is_reported(
    tmp_path: Path, name: str, text: str, device: str, kinds: list[str]
) -> None:
    faults = check_outputs(tmp_path, print_server_outputs() | {name: text.format(device)}).faults
    assert [fault.kind for fault in faults] == kinds
    if kinds:
        assert "is for bond1, which this host lacks, and sets the address of bond0" in faults[0].problem


@pytest.mark.parametrize(("link_address", "remedies"), [
    ("52:54:00:A0:00:01", []), ("0C:42:A1:5E:77:10", ["write mac-address=52:54:00:a0:00:01"]),
])  # fmt: skip
def test_keyfile_without_a_name_is_for_its_link_address(tmp_path: Path, link_address: str, remedies: list[str]) -> None:
    text = KEYFILE.replace("interface-name={}\n", "").replace("type=bond", "type=ethernet").partition("\n[bond]")[0]
    outputs = print_server_outputs() | {"storage.nmconnection": f"{text}\n[ethernet]\nmac-address={link_address}\n"}
    faults = check_outputs(tmp_path, outputs).faults
    assert [fault.remedy for fault in faults] == remedies
    assert all("NetworkManager does not apply it to bond0" in fault.problem for fault in faults)


def test_second_file_with_the_address_is_not_reported(tmp_path: Path) -> None:
    files = {"50-bond0.network": NETWORKD.format("bond0"), "60-old.network": NETWORKD.format("bond1")}
    assert check_outputs(tmp_path, print_server_outputs() | files).faults == ()


@pytest.mark.parametrize(("device", "kinds"), [("bond1", ["not applied at the start"]), ("bond0", []), ("bond*", [])])
def test_routes_in_a_folder_for_another_interface_are_reported(tmp_path: Path, device: str, kinds: list[str]) -> None:
    files = {name.rpartition("network/")[2]: text for name, text in make_files_of_format("networkd").items()
             if "/network/" in name}  # fmt: skip
    (folder,) = {name.partition("/")[0] for name in files}
    files[folder.removesuffix(".d")] = f"[Match]\nName={device}\n\n[Network]\nDHCP=yes\n"
    faults = check_outputs(tmp_path, print_server_outputs() | files).faults
    assert [fault.kind for fault in faults] == kinds * 2  # one for each of the files of IPv4 and IPv6
    if kinds:
        assert "its routes are for bond0, but systemd-networkd applies the folder to bond1" in faults[0].problem
