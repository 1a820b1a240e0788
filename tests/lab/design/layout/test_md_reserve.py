# SPDX-License-Identifier: Apache-2.0
"""Sizes in the scripts of a plan against the space that mdadm leaves on each drive."""

from __future__ import annotations

import re
from typing import Any

import pytest

from sonde.design.layout.plan import plan_layout
from sonde.design.layout.scripts import make_layout_scripts
from sonde.model.system import make_system

SECTOR, MIB = 512, 1 << 20


def describe_server(drive_bytes: int) -> dict[str, Any]:
    """A server with drives for two arrays of RAID 6 below one striped volume."""
    return {
        "schema": "sonde-system/2", "id": "server",
        "nodes": [{"id": "server", "role": "service", "cores": 32, "memory": "256 GiB"}],
        "drives": [
            {"id": "d[00-21]", "kind": "hdd", "server": "server", "ports": 2, "interface": "SAS",
             "capacity": f"{drive_bytes} B", "block": "4096 B", "rate": "260 MB/s", "operations": "160 op/s",
             "device": "/dev/mapper/slot[00-21]"},
            {"id": "n[0-2]", "kind": "nvme", "server": "server", "capacity": "3840755982336 B", "block": "4096 B",
             "rate": "3.5 GB/s", "operations": "800 kop/s", "device": "/dev/nvme[0-2]n1"}],
        "file_systems": [{"id": "home", "kind": "xfs", "purpose": "home", "requirement": {"capacity": "2 TB"}},
                         {"id": "scratch", "kind": "xfs", "purpose": "scratch",
                          "requirement": {"capacity": f"{14 * drive_bytes} B", "write": "2 GB/s"}}],
    }  # fmt: skip


def compute_data_offset(drive_sectors: int, chunk_sectors: int) -> int:
    """The data offset in sectors that mdadm 4.2 chooses for a drive of more than 200 GiB: headroom, superblock and
    bitmap, up to a whole MiB (validate_geometry1 and choose_bm_space in super1.c)."""
    headroom = 128 * 1024 * 2
    while (headroom << 10) > drive_sectors and headroom // 2 >= 2 * chunk_sectors:
        headroom >>= 1
    return -(-(12 * 2 + 128 * 2 + headroom) // 2048) * 2048


@pytest.mark.parametrize("drive_bytes", [16000900661248, 12000138625024, 20000588955648])
def test_planned_file_system_fits_the_arrays_that_mdadm_makes(drive_bytes: int) -> None:
    (text,) = make_layout_scripts(plan_layout(make_system(describe_server(drive_bytes), "server.toml"))).values()
    (line,) = re.findall(r"^mkfs.xfs -L scratch .*", text, re.MULTILINE)
    (arrays,) = re.findall(r"^pvcreate .*", text, re.MULTILINE)
    (shape,) = {(int(devices), int(chunk) << 10) for devices, chunk in
               re.findall(r"^mdadm .*--level=6 --raid-devices=(\d+) --chunk=(\d+)K", text, re.MULTILINE)}  # fmt: skip
    devices, chunk = shape
    alignment, extent = (int(re.findall(rf"{option} (\d+)k", text)[0]) << 10
                         for option in ("--dataalignment", "--physicalextentsize"))  # fmt: skip
    offset = compute_data_offset(drive_bytes // SECTOR, chunk // SECTOR)
    assert offset == 264192, "mdadm --examine prints this offset of such drives"
    member = (drive_bytes - offset * SECTOR) // chunk * chunk
    volume = arrays.count("/dev/md") * (((devices - 2) * member - max(alignment, MIB)) // extent) * extent
    (blocks,) = re.findall(r"size=(\d+)b,sunit", line)
    assert int(blocks) * 4096 <= volume
    assert int(blocks) * 4096 > 0.999 * volume, "all of it is used"
