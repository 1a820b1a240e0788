# SPDX-License-Identifier: Apache-2.0
"""VLANs of systemd-networkd that the file of the device below must name."""

from __future__ import annotations

from pathlib import Path

import pytest
from dual_stack_host import check_outputs, print_server_outputs

from sonde.design.routes.faults import RouteFault

NETDEV = "[NetDev]\nName=bond0\nKind=vlan\n\n[VLAN]\nId=210\n"
PARENT = "[Match]\nName=team1\n\n[Network]\nLLDP=yes\n"
VLAN_LINE = "VLAN=bond0\n"


def check_vlan_files(folder: Path, files: dict[str, str]) -> tuple[RouteFault, ...]:
    """The faults of a healthy server whose storage interface is a VLAN on team1, with these files."""
    outputs = print_server_outputs()
    assert "5: bond0: " in outputs["addr"]
    outputs["addr"] = outputs["addr"].replace("5: bond0: ", "5: bond0@team1: ")
    return check_outputs(folder, outputs | {"40-vlan.netdev": NETDEV} | files).faults


def test_vlan_that_its_parent_does_not_name_is_reported(tmp_path: Path) -> None:
    (fault,) = check_vlan_files(tmp_path, {"30-team1.network": PARENT})
    assert (fault.kind, fault.location) == ("not applied at the start", "30-team1.network, VLAN")
    assert "does not create it on team1" in fault.problem
    assert "VLAN=bond0" in fault.remedy


@pytest.mark.parametrize("files", [
    {"30-team1.network": PARENT + VLAN_LINE}, {"30-team1.network": PARENT + "VLAN=other\n" + VLAN_LINE},
    {"30-team1.network": PARENT, "vlans.conf": "[Network]\n" + VLAN_LINE}, {},
    {"30-team1.network": PARENT.replace("team1", "eno1")},
    {"30-other.network": PARENT.replace("Name=team1", "Name=*") + VLAN_LINE, "30-team1.network": PARENT},
])  # fmt: skip
def test_vlan_that_may_be_created_is_no_fault(tmp_path: Path, files: dict[str, str]) -> None:
    assert check_vlan_files(tmp_path, files) == ()
