# SPDX-License-Identifier: Apache-2.0
"""Two servers that see the same drives: storage that one of them uses is no fault of its partner."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from sonde.design.layout.check import check_layout
from sonde.design.layout.check_hosts import check_hosts
from sonde.design.layout.check_partner_storage import exclude_undecided_storage, list_mounts_of_pairs
from sonde.design.layout.live.observations import (
    FstabEntry,
    ObservedDisk,
    ObservedFileSystem,
    ObservedPath,
    ObservedStorage,
)
from sonde.design.layout.live.observations import ObservedVdev as Vdev
from sonde.design.layout.plan import plan_layout
from sonde.design.layout.written_attributes import list_written_attributes
from sonde.model.system import make_system

DRIVES = 6
ROOT = ObservedFileSystem("/", "xfs", "/dev/nvme0n1", options=("rw",))


def describe_servers(kind: str) -> dict[str, Any]:
    """A pair of servers with one file system for homes on six maps."""
    return {
        "schema": "sonde-system/2", "id": "pair",
        "servers": [{"id": "nfs[1-2]", "roles": ["nfs"], "failover": "pairs"}],
        "enclosures": [{"id": "e", "slots": 60}],
        "drives": [{"id": f"js[0-{DRIVES - 1}]", "kind": "hdd", "enclosure": "e", "capacity": "2 TB",
                    "rate": "200 MB/s", "device": f"/dev/mapper/js[0-{DRIVES - 1}]"}],
        "raid_groups": [{"id": "g", "level": "6", "data": 4, "parity": 2, "segment": "128 KiB",
                         "drives": f"js[0-{DRIVES - 1}]", "device": "/dev/md/g"}],
        "file_systems": [{"id": "proj", "kind": kind, "device": "g", "purpose": "home"}],
        "mounts": [{"id": "m", "file_system": "proj", "path": "/proj", "on": "nfs1", "through": "local"}],
    }  # fmt: skip


def observe(kind: str, serves: bool, prefix: str = "35000c500a00000") -> ObservedStorage:
    """A server that sees the maps, and serves the file system or not. Paths have another scheduler than maps."""
    disks = {"nvme0n1": ObservedDisk("nvme0n1", flash=True, settings={"fs_kind": "xfs", "name": "nvme0n1"})}
    member = {"fs_kind": "zfs_member", "fs_label": "proj"} if kind == "zfs" else {"fs_kind": "linux_raid_member"}
    scheduler = "none" if kind == "zfs" else "mq-deadline"
    for number in range(DRIVES):
        name, paths = f"dm-{number}", [f"sd{side}{'abcdef'[number]}" for side in "xy"]
        settings = {"name": f"js{number}", "uuid": f"{prefix}{number:03}", "product": "ACME,DISK", **member}
        disks[name] = ObservedDisk(
            name, "multipath", members=tuple(paths), settings=settings, queue={"scheduler": f"[{scheduler}]"},
            paths=tuple(ObservedPath(path, True, True, adapter=str(host)) for host, path in enumerate(paths)),
        )  # fmt: skip
        disks |= {path: ObservedDisk(path, flash=False, queue={"scheduler": "[kyber]"}) for path in paths}
    names = [f"dm-{number}" for number in range(DRIVES)]
    file_systems = [ROOT]
    if serves and kind == "zfs":
        vdevs = [Vdev(f"js{number}", "drive", "", parent="raidz2-0", state="ONLINE") for number in range(DRIVES)]
        file_systems.append(
            ObservedFileSystem("proj", "zfs", vdevs=(Vdev("raidz2-0", "raidz2", "", "", "ONLINE"), *vdevs))
        )
    elif serves:
        settings = {"array_name": "g", "fs_kind": "xfs", "fs_label": "proj"}
        disks["md127"] = ObservedDisk("md127", "md", members=tuple(names), level="raid6", geometry="4+2", data=4,
                                      unit=128 << 10, settings=settings)  # fmt: skip
        file_systems.append(ObservedFileSystem("/proj", "xfs", "/dev/md127", options=("rw", "logbsize=256k")))
    return ObservedStorage(tuple(file_systems), disks)


def find_faults(kind: str, second: ObservedStorage) -> list[tuple[str, str]]:
    """Kinds and locations of faults about the use of storage, and of planned values."""
    plan = plan_layout(make_system(describe_servers(kind), "pair.toml"))
    layout = plan.get_layout("proj")
    written = list_written_attributes(plan.system, layout)
    hosts = {"nfs1": observe(kind, serves=True), "nfs2": second}
    kinds = ("pool not imported", "array not assembled", "not mounted", "not mounted at a start")
    return [(fault.kind, fault.location) for fault in check_hosts(hosts, layout, ["/proj"], written).faults
            if fault.kind in kinds or "scheduler" in fault.attributes or "sda" in fault.location
            or ": /" in fault.location]  # fmt: skip


@pytest.mark.parametrize("kind", ["zfs", "xfs"])
def test_storage_of_the_partner_is_sound(kind: str) -> None:
    assert find_faults(kind, observe(kind, serves=False)) == []


def test_storage_on_drives_of_one_host_is_reported() -> None:
    """The second server sees other drives. They hold another array, which does not run."""
    faults = find_faults("xfs", observe("xfs", serves=False, prefix="35000c500b00000"))
    assert ("array not assembled", "nfs2: /dev/md/g") in faults or ("not mounted", "nfs2: proj") in faults


def test_scheduler_of_map_is_compared_with_the_plan() -> None:
    sound = observe("xfs", serves=False)
    plan = plan_layout(make_system(describe_servers("xfs"), "pair.toml"))
    layout = plan.get_layout("proj")
    written = list_written_attributes(plan.system, layout)
    wrong = observe("xfs", serves=True)
    disks = {name: disk if disk.kind != "multipath" else ObservedDisk(
        name, "multipath", members=disk.members, settings=disk.settings, paths=disk.paths,
        queue={"scheduler": "[bfq]"}) for name, disk in wrong.disks.items()}  # fmt: skip
    hosts = {"nfs1": ObservedStorage(wrong.file_systems, disks), "nfs2": sound}
    faults = [each for each in check_hosts(hosts, layout, ["/proj"], written).faults if "scheduler" in each.attributes]
    assert [each.problem for each in faults if each.kind == "not as planned"] == [
        "scheduler is bfq; planned is mq-deadline"
    ]


@pytest.mark.parametrize("has_partner", [True, False])
@pytest.mark.parametrize("serves", [True, False])
def test_storage_of_one_server_of_a_pair_is_unknown(has_partner: bool, serves: bool) -> None:
    document = describe_servers("xfs")
    if not has_partner:
        document["servers"][0] = {"id": "nfs[1-2]", "roles": ["nfs"]}
    plan = plan_layout(make_system(document, "pair.toml"))
    layout = plan.get_layout("proj")
    storage = replace(observe("xfs", serves), fstab=(FstabEntry("/dev/nvme0n1", "/", "xfs", ("defaults",)),))
    check = check_layout(storage, layout, (), ["/proj"], list_written_attributes(plan.system, layout))
    decided = exclude_undecided_storage(check, list_mounts_of_pairs(plan.system, "proj"))
    kinds = ("array not assembled", "not mounted", "not mounted at a start")
    faults = [fault for fault in decided.faults if fault.kind in kinds]
    texts = [text for text in decided.unknown if "where the cluster of nfs1 and nfs2 mounts it" in text]
    assert (bool(faults), bool(texts)) == (not has_partner, has_partner)
