# SPDX-License-Identifier: Apache-2.0
"""Arrays of md that have drives but do not run."""

from __future__ import annotations

import json

from array_host import PrintedArray, print_detail
from planted_layout_faults import check_outputs

from sonde.design.layout.faults import LayoutFault

UUID, OTHER = "11112222:33334444:55556666:77778888", "99992222:33334444:55556666:77778888"
MDSTAT = """Personalities : [raid6]
md125 : inactive sdq[3](S) sdp[1](S)
      23437506560 blocks super 1.2

unused devices: <none>
"""


def print_inactive(name: str, uuid: str) -> str:
    """What mdadm --detail prints of an inactive array of two drives."""
    return f"""/dev/md125:
           Version : 1.2
        Raid Level : raid6
     Total Devices : 2
       Persistence : Superblock is persistent

             State : inactive
   Working Devices : 2

              Name : {name}
              UUID : {uuid}
            Events : 120331

    Number   Major   Minor   RaidDevice

       -       8      240        -        /dev/sdp
       -      65        0        -        /dev/sdq
"""


def find_faults(**outputs: str) -> list[LayoutFault]:
    detail = print_detail(PrintedArray("md0", range(6), [6])) + f"              UUID : {UUID}\n"
    return list(check_outputs({"detail": detail, **outputs}).faults)


def test_inactive_array_of_another_host_is_reported() -> None:
    (fault,) = find_faults(mdstat=MDSTAT, inactive=print_inactive("delta:bulk", OTHER))
    assert (fault.kind, fault.location) == ("array inactive", "md125")
    assert "delta:bulk is inactive; it holds sdp, sdq; their superblocks are of host delta" in fault.problem
    assert "return the drives to delta" in fault.remedy


def test_inactive_array_of_this_host_is_assembled_first() -> None:
    (fault,) = find_faults(inactive=print_inactive("host:home", OTHER))
    assert fault.cost == "what is on it is out of reach"
    assert "mdadm --stop /dev/md125, then mdadm --assemble --scan, never --create" in fault.remedy


def test_inactive_part_of_a_running_array_is_reported() -> None:
    (fault,) = find_faults(mdstat=MDSTAT, inactive=print_inactive("host:md0", UUID))
    assert "which have the UUID of md0" in fault.problem
    assert "mdadm --manage /dev/md0 --re-add" in fault.remedy


def test_inactive_array_in_mdstat_alone_is_reported() -> None:
    (fault,) = find_faults(mdstat=MDSTAT)
    assert fault.problem == "the array is inactive; it holds sdp, sdq"


def test_inactive_array_may_hold_the_device_of_fstab() -> None:
    rows = [{"name": "sda", "type": "disk", "fstype": "xfs", "label": "other", "size": 10**12}]
    faults = find_faults(mdstat=MDSTAT, fstab="LABEL=home /home ext4 noatime 0 0\n",
                         lsblk=json.dumps({"blockdevices": rows}))  # fmt: skip
    (fault,) = [fault for fault in faults if fault.kind == "fstab names no device"]
    assert "it may be on md125, which does not run" in fault.problem
    assert "change fstab only if no device has it then" in fault.remedy
