# SPDX-License-Identifier: Apache-2.0
"""A pair of object servers of Lustre that see the same drives: each runs its own arrays of md."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sonde.design.layout.check_hosts import check_hosts
from sonde.design.layout.faults import LayoutCheck
from sonde.design.layout.live.saved_output import read_hosts
from sonde.design.layout.plan import plan_layout
from sonde.design.layout.written_attributes import list_written_attributes
from sonde.model.system import make_system

DRIVES_OF_ARRAY = 6
NODES = ("10.0.0.11@o2ib", "10.0.0.12@o2ib")


def describe_md_pair(lnet: str = "o2ib") -> dict[str, Any]:
    """Two object servers in a pair with two targets each, on arrays 4+2 of drives that both see."""
    network = {"id": "ib", "kind": "infiniband", "addresses": ["10.0.0.0/24"]} | ({"lnet": lnet} if lnet else {})
    return {
        "schema": "sonde-system/2", "id": "pair", "networks": [network],
        "servers": [
            {"id": f"{role}[1-2]", "roles": [role, *["mgs"] * (role == "mds")], "failover": "pairs",
             "interfaces": [{"network": "ib", "addresses": f"10.0.0.[{first}-{first + 1}]"}]}
            for role, first in (("mds", 1), ("oss", 11))
        ],
        "enclosures": [{"id": "e", "slots": 60}],
        "drives": [{"id": "d[10-37]", "kind": "hdd", "enclosure": "e", "capacity": "2 TB", "rate": "200 MB/s",
                    "device": "/dev/disk/by-id/wwn-0x5000c500a00000[10-37]"}],
        "raid_groups": [
            {"id": "raid[0-3]", "level": "6", "data": 4, "parity": 2, "segment": "128 KiB", "drives": "d[10-33]",
             "device": "/dev/md/ost[0-3]"},
            {"id": "mraid", "level": "10", "data": 2, "parity": 2, "segment": "64 KiB", "drives": "d[34-37]",
             "device": "/dev/md/mdt"}],
        "targets": [
            {"id": "mdt0", "kind": "mdt", "index": 0, "file_system": "fs", "server": "mds1", "on": "mraid"},
            {"id": "ost[0-3]", "kind": "ost", "index": 0, "file_system": "fs", "server": "oss[1-2]",
             "on": "raid[0-3]"}],
        "file_systems": [{"id": "fs", "kind": "lustre"}],
    }  # fmt: skip


def make_uuid(array: int) -> str:
    return f"4f21c50{array}:bddb6806:84d79ba4:97b9af32"


@dataclass
class MdServer:
    """What one host runs, has mounted, and sees of the drives; `failover` are the nodes in labels of its targets."""

    arrays: Sequence[int]
    mounted: Sequence[int]
    drives: Sequence[int] = range(24)
    failover: Mapping[int, Sequence[str]] = field(default_factory=dict)
    features: Mapping[int, str] = field(default_factory=dict)
    partner_forms: Sequence[int] = ()  # targets made with --failnode
    inactive: Sequence[int] = ()
    wwn_prefix: str = "0x5000c500a00000"

    def print_outputs(self) -> dict[str, str]:
        outputs = {"lsblk --json": json.dumps({"blockdevices": [self._print_drive(drive) for drive in self.drives]})}
        mounts = [{"target": "/", "source": "/dev/nvme0n1p2", "fstype": "ext4", "options": "rw"}]
        mounts += [{"target": f"/mnt/ost{array}", "source": f"/dev/md12{array}", "fstype": "lustre",
                    "options": f"rw,svname=fs-OST000{array}"} for array in self.mounted]  # fmt: skip
        outputs["findmnt"] = json.dumps({"filesystems": mounts})
        outputs["blkid"] = "".join(f'/dev/md12{array}: LABEL="fs-OST000{array}" TYPE="ext4"\n' for array in self.arrays)
        outputs |= {f"mdadm --detail /dev/md12{array}": self._print_detail(array) for array in self.arrays}
        for array in self.inactive:
            outputs[f"mdadm --detail /dev/md11{array}"] = (
                f"/dev/md11{array}:\n           Version : 1.2\n        Raid Level : raid6\n     Total Devices : 1\n"
                f"             State : inactive\n              Name : host{array // 2}:ost{array}\n"
                f"              UUID : {make_uuid(array)}\n\n    Number   Major   Minor   RaidDevice\n\n"
                f"       -       8        0        -        /dev/{self.name_drive(DRIVES_OF_ARRAY * array)}\n"
            )
        for array in self.mounted:
            form = " no_primnode" * (array not in self.partner_forms)
            nodes = " ".join(f"failover.node={node}" for node in self.failover.get(array, NODES))
            outputs[f"tunefs.lustre --dryrun /dev/md12{array}"] = (
                f"   Read previous values:\nTarget:     fs-OST000{array}\nIndex:      {array}\nLustre FS:  fs\n"
                f"Mount type: ldiskfs\nFlags:      0x2\n              (OST{form} )\n"
                "Persistent mount opts: ,errors=remount-ro\n"
                f"Parameters: mgsnode=10.0.0.1@o2ib mgsnode=10.0.0.2@o2ib {nodes}\n"
            )
            outputs[f"dumpe2fs -h /dev/md12{array}"] = (
                f"Filesystem volume name:   fs-OST000{array}\nFilesystem magic number:  0xEF53\n"
                f"Filesystem features:      has_journal extent {self.features.get(array, 'mmp')} flex_bg project\n"
                "Filesystem state:         clean\nBlock count:              1953125000\n"
                "Block size:               4096\nInode size:               512\nFlex block group size:    256\n"
                "RAID stride:              32\nRAID stripe width:        128\n"
            )
        return {command: text for command, text in outputs.items() if text}

    def _print_drive(self, drive: int) -> dict[str, Any]:
        array = drive // DRIVES_OF_ARRAY
        entry: dict[str, Any] = {
            "name": self.name_drive(drive), "type": "disk", "size": 2_000_000_000_000, "rota": True,
            "wwn": f"{self.wwn_prefix}{10 + drive}", "fstype": "linux_raid_member",
            "uuid": make_uuid(array).replace(":", "-"), "label": f"host:ost{array}",
        }  # fmt: skip
        return entry

    def name_drive(self, drive: int) -> str:
        """The kernel's name of a drive, which differs on both hosts."""
        number = drive if self.arrays and self.arrays[0] < 2 else 23 - drive
        return f"sd{chr(ord('a') + number)}"

    def _print_detail(self, array: int) -> str:
        rows = "".join(
            f"   {slot:4}  8  {slot}  {slot:6}      active sync   "
            f"/dev/{self.name_drive(DRIVES_OF_ARRAY * array + slot)}\n" for slot in range(DRIVES_OF_ARRAY)
        )  # fmt: skip
        return (
            f"/dev/md12{array}:\n           Version : 1.2\n        Raid Level : raid6\n      Raid Devices : 6\n"
            "     Total Devices : 6\n     Intent Bitmap : Internal\n             State : clean\n"
            "    Active Devices : 6\n            Layout : left-symmetric\n        Chunk Size : 128K\n"
            f"Consistency Policy : bitmap\n              Name : host:ost{array}\n"
            f"              UUID : {make_uuid(array)}\n\n    Number   Major   Minor   RaidDevice State\n{rows}"
        )


def make_md_pair() -> dict[str, MdServer]:
    return {"oss1": MdServer((0, 1), (0, 1)), "oss2": MdServer((2, 3), (2, 3))}


def check_md_pair(servers: Mapping[str, MdServer], folder: Path, lnet: str = "o2ib") -> LayoutCheck:
    paths = []
    for host, server in servers.items():
        paths.append(folder / f"{host}.txt")
        paths[-1].write_text("".join(f"=== sonde layout collect: {command} ===\n{text}\n"
                                     for command, text in server.print_outputs().items()))  # fmt: skip
    plan = plan_layout(make_system(describe_md_pair(lnet), "pair.toml"))
    layout = plan.get_layout("fs")
    return check_hosts(read_hosts(paths), layout, ["/fs"], list_written_attributes(plan.system, layout))
