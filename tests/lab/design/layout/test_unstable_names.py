# SPDX-License-Identifier: Apache-2.0
"""Drives that pools and mdadm.conf name as the kernel does are named with the reason."""

from __future__ import annotations

import pytest
from planted_layout_faults import Outputs, check_outputs, make_server_outputs

from sonde.design.layout.faults import LayoutFault


def name_drives_by_wwn(outputs: Outputs) -> Outputs:
    """The outputs with lasting names of the data drives of the pool, and the links of one."""
    for letter in "abcdefgh":
        outputs["zpool"] = outputs["zpool"].replace(f"sdb{letter}  ", f"wwn-0x5000c500000000{ord(letter):x}  ")
    outputs["links"] = "lrwxrwxrwx 1 root root 9 Nov 1 10:00 /dev/disk/by-id/wwn-0x5000c50000000062 -> ../../sdbb\n"
    return outputs


def find_faults(outputs: Outputs) -> list[LayoutFault]:
    return list(check_outputs(outputs).faults)


def test_pool_with_lasting_names_is_sound() -> None:
    assert find_faults(name_drives_by_wwn(make_server_outputs())) == []


@pytest.mark.parametrize("kernel_name", ["sdbb", "sdbb1", "nvme3n1"])
def test_drive_of_pool_by_kernel_name_is_reported(kernel_name: str) -> None:
    outputs = name_drives_by_wwn(make_server_outputs())
    outputs["zpool"] = outputs["zpool"].replace("wwn-0x5000c50000000062", kernel_name)
    (fault,) = find_faults(outputs)
    assert (fault.kind, fault.location) == ("unstable name of a drive", "tank")
    assert fault.problem.startswith(f"{kernel_name} is named as the kernel does; the other 7 drives")
    assert "zpool import -d /dev/disk/by-id tank" in fault.remedy
    assert ("is /dev/disk/by-id/wwn-0x5000c50000000062" in fault.remedy) == kernel_name.startswith("sd")


def test_failed_drive_by_kernel_name_is_one_fault() -> None:
    outputs = name_drives_by_wwn(make_server_outputs())
    outputs["zpool"] = outputs["zpool"].replace("wwn-0x5000c50000000062    ONLINE ", "sdbb    UNAVAIL")
    assert [fault.kind for fault in find_faults(outputs)] == ["degraded"]


@pytest.mark.parametrize(("devices", "kinds"), [
    ("/dev/sd*", []), ("partitions", []), ("/dev/sd[a-z]", []),
    (" ".join(f"/dev/sd{letter}" for letter in "abcdefghijklmnoz"), ["unstable names in mdadm.conf"]),
    ("/dev/sda /dev/sdb", ["drives left out by mdadm.conf"]),
])  # fmt: skip
def test_kernel_names_in_mdadm_conf_are_reported(devices: str, kinds: list[str]) -> None:
    outputs = make_server_outputs()
    outputs["mdadm.conf"] = f"MAILADDR root\nDEVICE {devices}\nARRAY /dev/md5 UUID=aaaa\nARRAY /dev/md6 UUID=bbbb\n"
    assert [fault.kind for fault in find_faults(outputs)] == kinds


def test_pool_of_kernel_names_with_lasting_links_is_reported() -> None:
    outputs = make_server_outputs()
    outputs["links"] = "".join(
        f"lrwxrwxrwx 1 root root 9 Nov 1 10:00 /dev/disk/by-id/wwn-0x5000c500000000{ord(letter):x} -> "
        f"../../sdb{letter}\n"
        for letter in "abcdefgh"
    )
    (fault,) = find_faults(outputs)
    assert (fault.kind, fault.location) == ("unstable name of a drive", "tank")
    assert fault.problem.endswith("are named as the kernel does")
    assert "zpool import -d /dev/disk/by-id tank" in fault.remedy
