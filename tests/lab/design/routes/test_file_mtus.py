# SPDX-License-Identifier: Apache-2.0
"""Files of interfaces that leave out the MTU which the interface has now."""

from __future__ import annotations

from pathlib import Path

import pytest
from dual_stack_host import check_outputs, print_server_outputs

NETWORK = "[Match]\nName=bond0\n{}\n[Network]\nAddress=10.160.0.1/20\nAddress=fd00:160::1/64\n"
NETPLAN = """network:
  version: 2
  bonds:
    bond0:
      interfaces: [eth2, eth3]
      addresses: ["10.160.0.1/20", "fd00:160::1/64"]{}
      parameters: {{mode: 802.3ad, mii-monitor-interval: 100}}
"""
MTU = "[Link]\nMTUBytes=9000\n"


def check_files(folder: Path, files: dict[str, str], mtu: str = "9000") -> list[tuple[str, str]]:
    outputs = print_server_outputs()
    outputs["addr"] = outputs["addr"].replace("mtu 9000", f"mtu {mtu}")
    faults = check_outputs(folder, outputs | files).faults
    return [(fault.location, fault.remedy) for fault in faults if fault.kind == "MTU not in the files"]


@pytest.mark.parametrize(("name", "text", "remedy"), [
    ("50-bond0.network", NETWORK.format(""), "write MTUBytes=9000 in the section [Link] of 50-bond0.network"),
    ("50-site.yaml", NETPLAN.format(""), "write mtu: 9000 in 50-site.yaml"),
])  # fmt: skip
def test_mtu_that_no_file_sets_is_reported(tmp_path: Path, name: str, text: str, remedy: str) -> None:
    location = f"{name}, bond0 in the configuration files"
    assert check_files(tmp_path / "large", {name: text}) == [(location, remedy)]
    assert check_files(tmp_path / "usual", {name: text}, "1500") == []


def test_mtu_of_routes_is_none_of_the_interface(tmp_path: Path) -> None:
    files = {"50-bond0.network": NETWORK.format("")}
    files["50-bond0.network.d/routes.conf"] = "[Route]\nDestination=10.9.0.0/16\nGateway=10.160.15.9\nMTUBytes=9000\n"
    assert len(check_files(tmp_path, files)) == 1


@pytest.mark.parametrize("files", [
    {"50-bond0.network": NETWORK.format(MTU)},
    {"50-bond0.network": NETWORK.format(""), "50-bond0.network.d/mtu.conf": MTU},
    {"50-bond0.network": NETWORK.format(""), "10-ports.link": f"[Match]\nOriginalName=eth*\n{MTU}"},
    {"50-bond0.network": NETWORK.format(""), "10-bond0.netdev": "[NetDev]\nName=bond0\nKind=bond\nMTUBytes=9000\n"},
    {"50-bond0.network": NETWORK.format("") + "DHCP=yes\n"},
    {"50-bond0.network": "[Match]\nName=bond0\n[Network]\nLLDP=yes\n"},
    {"50-site.yaml": NETPLAN.format("\n      mtu: 9000")},
])  # fmt: skip
def test_mtu_that_a_file_may_set_is_no_fault(tmp_path: Path, files: dict[str, str]) -> None:
    assert check_files(tmp_path, files) == []
