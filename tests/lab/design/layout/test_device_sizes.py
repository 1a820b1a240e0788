# SPDX-License-Identifier: Apache-2.0
"""The size of a file system against that of its device."""

from __future__ import annotations

import json

import pytest
from planted_layout_faults import check_outputs

_TIB = 2**40
LSBLK = json.dumps({"blockdevices": [
    {"name": "md0", "kname": "md0", "type": "raid6", "size": 8 * _TIB, "fstype": "ext4", "label": "fs-OST0000"},
    {"name": "md1", "kname": "md1", "type": "raid6", "size": 8 * _TIB, "fstype": "xfs", "mountpoint": "/data"},
]})  # fmt: skip
DUMPE2FS = """Filesystem volume name:   fs-OST0000
Filesystem magic number:  0xEF53
Filesystem features:      has_journal extent flex_bg
Filesystem state:         clean
Inode count:              7630336
Block count:              {blocks}
Block size:               4096
Blocks per group:         32768
"""
XFS_INFO = """meta-data=/dev/md1 isize=512 agcount=32, agsize={group} blks
data     = bsize=4096 blocks={blocks}, imaxpct=5
         = sunit=64 swidth=512 blks
log      =internal log bsize=4096 blocks=521728, version=2
"""
BLOCKS = 8 * _TIB // 4096


@pytest.mark.parametrize(("blocks", "fault_kind"), [
    (BLOCKS, ""), (BLOCKS - 16384, ""), (BLOCKS // 2, "device partly unused"),
    (BLOCKS * 2, "larger than its device")])  # fmt: skip
@pytest.mark.parametrize("location", ["fs-OST0000", "/dev/md1"])
def test_size_is_compared_with_the_device(location: str, blocks: int, fault_kind: str) -> None:
    is_target = location.startswith("fs-")
    text = DUMPE2FS.format(blocks=blocks) if is_target else XFS_INFO.format(blocks=blocks, group=blocks // 32)
    verdict = check_outputs({"lsblk": LSBLK, "more": text})
    sizes = [fault for fault in verdict.faults if "device" in fault.kind]
    assert [fault.kind for fault in sizes] == [fault_kind] * bool(fault_kind)
    assert all("8 TiB" in fault.problem and ("md0" if is_target else "md1") in fault.problem for fault in sizes)
    assert "the size of its device" in {item.subject for item in verdict.checked_items}


@pytest.mark.parametrize(("excess", "kinds"), [(0, []), (4096, ["partition beyond its disk"])])
def test_partition_ends_within_its_disk(excess: int, kinds: list[str]) -> None:
    partition = {"name": "sdb1", "kname": "sdb1", "type": "part", "start": 2048, "size": _TIB - 2048 * 512 + excess}
    lsblk = {"blockdevices": [{"name": "sdb", "kname": "sdb", "type": "disk", "size": _TIB, "children": [partition]}]}
    verdict = check_outputs({"lsblk": json.dumps(lsblk)})
    faults = [fault for fault in verdict.faults if "beyond" in fault.kind]
    assert [fault.kind for fault in faults] == kinds
    assert all("4 KiB behind the end of sdb, which has 1 TiB" in fault.problem for fault in faults)
    assert "the end of a partition" in {item.subject for item in verdict.checked_items}
