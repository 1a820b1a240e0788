# SPDX-License-Identifier: Apache-2.0
"""Physical volumes that two devices hold, and warnings of LVM."""

from __future__ import annotations

import json

import pytest

from sonde.design.layout.check import check_layout
from sonde.design.layout.faults import LayoutCheck
from sonde.design.layout.live.joining import join_observations
from sonde.design.layout.live.saved_output import read_collector_output

_WARNINGS = """  WARNING: Not using device /dev/{} for PV Kf32aB-9dXe.
  WARNING: PV Kf32aB-9dXe prefers device /dev/mapper/lun0 because device is used by LV.
"""


def check_volumes(wwn_of_copy: str = "0x600b", warnings: str = "", uuid_of_copy: str = "Kf32aB-9dXe") -> LayoutCheck:
    """A host with the map lun0, which holds a physical volume and has the path sda, and another drive."""
    top = {"name": "lun0", "kname": "dm-0", "type": "mpath", "fstype": "LVM2_member", "uuid": "Kf32aB-9dXe"}
    path = {"name": "sda", "kname": "sda", "type": "disk", "wwn": f"0x{'6a' * 16}", "fstype": "LVM2_member",
            "uuid": "Kf32aB-9dXe", "children": [top]}  # fmt: skip
    copy = {"name": "sdb", "kname": "sdb", "type": "disk", "wwn": wwn_of_copy, "fstype": "LVM2_member",
            "uuid": uuid_of_copy}  # fmt: skip
    multipath = (
        f"lun0 (3{'6a' * 16}) dm-0 ACME,LUN\nsize=10T features='1 queue_if_no_path' hwhandler='0' wp=rw\n"
        "`-+- policy='service-time 0' prio=50 status=active\n  `- 2:0:0:0 sda 65:1 active ready running\n"
    )
    volumes = "  " + json.dumps({"report": [{"pv": [{"pv_name": "/dev/mapper/lun0", "vg_name": "vg0"}]}]})
    parts = {"lsblk --json --bytes": json.dumps({"blockdevices": [path, copy]}), "multipath -ll": multipath,
             "pvs --reportformat json": warnings + volumes}  # fmt: skip
    text = "".join(f"=== sonde layout collect: {command} ===\n{output}\n" for command, output in parts.items())
    return check_layout(join_observations(read_collector_output(text, "host")))


def find_problems(verdict: LayoutCheck) -> list[tuple[str, str]]:
    return [(fault.location, fault.problem) for fault in verdict.faults if fault.kind == "physical volume twice"]


@pytest.mark.parametrize(("wwn", "warnings"), [
    (f"0x{'6b' * 16}", ""), (f"0x{'6b' * 16}", _WARNINGS.format("sdb")), ("", _WARNINGS.format("sdb"))])  # fmt: skip
def test_clone_of_a_physical_volume_is_reported_once(wwn: str, warnings: str) -> None:
    ((location, problem),) = find_problems(check_volumes(wwn, warnings))
    assert location == "sdb"
    assert "sdb holds the physical volume Kf32aB-9dXe of vg0, which is on lun0 too" in problem


def test_path_that_lvm_looks_at_is_no_clone() -> None:
    ((location, problem),) = find_problems(check_volumes("", _WARNINGS.format("sda"), "other"))
    assert location == "sda"
    assert "on lun0 and on its path sda" in problem


def test_devices_without_identity_are_no_clones() -> None:
    assert find_problems(check_volumes("")) == []
    assert find_problems(check_volumes(f"0x{'6b' * 16}", uuid_of_copy="other")) == []


def test_unparsed_warning_of_lvm_is_unknown() -> None:
    verdict = check_volumes("0x600b", "  WARNING: Device /dev/sdz has size of 1 sectors.\n", "other")
    assert "a line that could not be parsed: WARNING: Device /dev/sdz has size of 1 sectors." in verdict.unknown
