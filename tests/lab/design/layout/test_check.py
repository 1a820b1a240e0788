# SPDX-License-Identifier: Apache-2.0
"""A check finds every documented fault, finds nothing in what a plan would make, and reads recorded outputs."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from storage_builders import build_lun_system, make_requirement

from sonde.design.layout.block_devices import BlockDevice
from sonde.design.layout.check import check_layout
from sonde.design.layout.file_system_layout import FileSystemLayout
from sonde.design.layout.geometry import GIB, KIB, MIB
from sonde.design.layout.live import inspection
from sonde.design.layout.live.cray_x1_output import read_xfs_info
from sonde.design.layout.live.extents import read_file_extents
from sonde.design.layout.live.inspection import inspect_storage
from sonde.design.layout.live.observations import (
    FileExtents,
    ObservedDisk,
    ObservedFileSystem,
    ObservedPath,
    ObservedSlices,
    ObservedStorage,
)
from sonde.design.layout.live.saved_output import FORMS, read_files, read_saved_output
from sonde.design.layout.live.superblocks import read_superblock
from sonde.design.layout.live.sysfs_disks import read_block_device_tree
from sonde.design.layout.plan import LayoutPlan, plan_layout
from sonde.model.bundled_files import find_system_file
from sonde.model.errors import MachineError, UserError
from sonde.model.mounts import MountEntry, find_mount_of_path, parse_mountinfo
from sonde.model.system import make_system, read_system
from sonde.model.system.storage import RaidGroup, Volume

DATA = Path(__file__).resolve().parents[3] / "data" / "layout"


# ---- a sound machine, and one fault at a time

QUEUE = {"scheduler": "[none] mq-deadline", "read_ahead_kb": "8192", "max_sectors_kb": "2048",
         "max_hw_sectors_kb": "16384", "physical_block_size": "4096"}  # fmt: skip


def sound() -> tuple[ObservedFileSystem, dict[str, ObservedDisk]]:
    """XFS on a volume of two 8+1 arrays in partitions, its log on a mirror; a LUN with four paths."""
    disks = {
        name: ObservedDisk(
            name, "md", 8 * 10**12, level="raid5", geometry="8+1", data=8, unit=256 * KIB, state="optimal",
            queue=QUEUE, settings={"stripe_cache_size": "8192", "sync_action": "idle"},
        )
        for name in ("md1", "md2")
    }  # fmt: skip
    disks |= {
        f"md{number}p1": ObservedDisk(f"md{number}p1", "part", 7 * 10**12, 2 * MIB, f"md{number}", queue=QUEUE)
        for number in (1, 2)
    }
    disks["dm-0"] = ObservedDisk("dm-0", "lvm", 14 * 10**12, members=("md1p1", "md2p1"),
                             member_sizes=(7 * 10**12, 7 * 10**12), level="raid0", data=2, unit=2 * MIB,
                             queue=QUEUE)  # fmt: skip
    disks["sdx"] = ObservedDisk("sdx", "multipath", 10**12, queue=QUEUE, paths=(
        ObservedPath("fc0", True, True, 866_071, 812_707, 0), ObservedPath("fc1", True, True, 865_884, 817_213, 0),
        ObservedPath("fc2", False, False, 0, 0, 0), ObservedPath("fc3", False, False, 0, 0, 0)))  # fmt: skip
    disks["sda"] = ObservedDisk("sda", "disk", 10**12, queue=QUEUE, flash=False, state="running")
    disks["nvme0n1"] = ObservedDisk("nvme0n1", "disk", 10**12, queue=QUEUE, flash=True, state="live")
    group = 268_434_944
    file_system = ObservedFileSystem(
        "/scratch", "xfs", "/dev/dm-0", 4096, 14 * 10**12 // 4096, 2 * MIB, 4 * MIB, 13, group, 2038 * MIB,
        "/dev/sdl1", ("rw", "noatime"),
    )  # fmt: skip
    return file_system, disks


def kinds(storage: ObservedStorage, plan: FileSystemLayout | None = None) -> set[str]:
    return {fault.kind for fault in check_layout(storage, plan).faults}


def test_sound_machine_has_no_faults() -> None:
    file_system, disks = sound()
    assert check_layout(ObservedStorage((file_system,), disks)).faults == ()


Change = Callable[[ObservedFileSystem, dict[str, ObservedDisk]], ObservedFileSystem]


def _fs(**more: Any) -> Change:
    return lambda file_system, disks: replace(file_system, **more)


def _disk(name: str, **more: Any) -> Change:
    def change(file_system: ObservedFileSystem, disks: dict[str, ObservedDisk]) -> ObservedFileSystem:
        disks[name] = replace(disks[name], **more)
        return file_system

    return change


def _queue(name: str, **more: str) -> Change:
    def change(file_system: ObservedFileSystem, disks: dict[str, ObservedDisk]) -> ObservedFileSystem:
        disks[name] = replace(disks[name], queue={**disks[name].queue, **more})
        return file_system

    return change


def _path(index: int, **more: Any) -> Change:
    def change(file_system: ObservedFileSystem, disks: dict[str, ObservedDisk]) -> ObservedFileSystem:
        paths = list(disks["sdx"].paths)
        paths[index] = replace(paths[index], **more)
        disks["sdx"] = replace(disks["sdx"], paths=tuple(paths))
        return file_system

    return change


def _all_paths(active: bool | None) -> Change:
    def change(file_system: ObservedFileSystem, disks: dict[str, ObservedDisk]) -> ObservedFileSystem:
        paths = (replace(path, active=active if path.preferred else active is None) for path in disks["sdx"].paths)
        disks["sdx"] = replace(disks["sdx"], paths=tuple(paths))
        return file_system

    return change


FAULTS: list[tuple[str, Change, str]] = [
    ("sunit 0", _fs(unit=0, width=0), "no stripe unit"),
    ("swidth no multiple", _fs(width=5 * MIB), "width is no multiple of unit"),
    ("a unit of another array", _fs(unit=1664 * KIB, width=1664 * KIB, group_blocks=416 * 645_000),
     "unit does not fit the stripe"),
    ("a width of three", _fs(width=6 * MIB, group_blocks=268_434_432), "width does not fit the stripe"),
    ("a small log", _fs(log=16 * MIB), "log too small"),
    ("the log among the data", _fs(log_device="/dev/md1"), "log on the same disks"),
    ("two groups", _fs(group_count=2), "too few allocation groups"),
    ("thousands of groups", _fs(group_count=13_000, group_blocks=262_144), "too many allocation groups"),
    ("grown from small", _fs(group_count=900, group_blocks=32_768, blocks=900 * 32_768), "too many allocation groups"),
    ("groups between stripes", _fs(group_blocks=268_434_944 - 1), "groups are not aligned"),
    ("groups on one drive", _fs(group_blocks=268_434_944 - 512), "groups begin on one drive"),
    ("blocks as segments", _fs(block=2 * MIB, group_blocks=524_288, blocks=6_000_000), "blocks as large as segments"),
    ("mounted sync", _fs(options=("rw", "sync")), "mount option"),
    ("mounted noalign", _fs(options=("noalign",)), "mount option"),
    ("a slice at 1 MiB", _disk("md1p1", start=MIB), "slice is not aligned"),
    ("a slice within a sector", _disk("md1p1", start=2 * MIB + 512), "slice is not aligned"),
    ("unequal slices", _disk("dm-0", member_sizes=(7 * 10**12, 6 * 10**12)), "unequal members of a stripe"),
    ("unequal geometries", _disk("md2", geometry="4+1", data=4), "unequal members of a stripe"),
    ("one disk twice", _disk("md2p1", on="md1"), "one disk twice in a stripe"),
    ("a volume unit of half a stripe", _disk("dm-0", unit=MIB), "unit does not fit the stripe"),
    ("degraded", _disk("md1", state="degraded", settings={"degraded": "1"}), "degraded"),
    ("rebuilding", _disk("md1", settings={"sync_action": "recover", "stripe_cache_size": "8192"}), "rebuilding"),
    ("a small stripe cache", _disk("md1", settings={"stripe_cache_size": "256"}), "stripe cache too small"),
    ("a LUN that is not optimal", _disk("sda", state="Failed"), "not optimal"),
    ("short requests", _queue("md1", max_sectors_kb="512"), "requests are cut"),
    ("bfq on a disk", _queue("sda", scheduler="none [bfq]"), "scheduler"),
    ("bfq on flash", _queue("nvme0n1", scheduler="none [bfq]"), "scheduler"),
    ("short read-ahead", _queue("md1", read_ahead_kb="128"), "read-ahead too short"),
    ("unbalanced reads", _path(0, blocks_read=300_000), "unbalanced paths"),
    ("unbalanced writes", _path(1, blocks_written=1_000_000), "unbalanced paths"),
    ("a standby path was used", _path(2, blocks_read=50_000), "standby path was used"),
    ("errors on a path", _path(0, errors=3), "path errors"),
    ("a failed path", _path(1, active=False, state="failed"), "path failed"),
    ("one path for all", _path(1, active=False, blocks_read=0, blocks_written=0), "one path for all"),
    ("no path", _all_paths(False), "no active path"),
    ("on the alternate paths", _all_paths(None), "on alternate paths"),
    ("a short queue", _disk("sdx", queue_depth=1), "queue too short"),
    ("an unusual segment", _disk("sda", kind="lun", geometry="8+1", unit=64 * KIB, data=8), "unusual segment"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "kind"), [case[1:] for case in FAULTS], ids=[case[0] for case in FAULTS])
def test_each_fault_is_detected(change: Change, kind: str) -> None:
    file_system, disks = sound()
    file_system = change(file_system, disks)
    faults = check_layout(ObservedStorage((file_system,), disks)).faults
    assert kind in {fault.kind for fault in faults}
    for fault in faults:
        assert fault.location
        assert fault.cost
        assert fault.remedy


def test_faults_of_files_slices_and_volumes_are_detected() -> None:
    pieces = tuple((index * MIB, index * 7 * MIB, MIB) for index in range(100))
    assert "fragmented" in kinds(ObservedStorage(files=(FileExtents("/f", pieces),)))
    together = tuple((index * MIB, index * MIB, MIB) for index in range(100))
    assert kinds(ObservedStorage(files=(FileExtents("/f", together),))) == set()
    table = ObservedSlices("d", ((0, 0.6, None, ""), (0, 0.6, None, "")), None, origin="x.cf")
    assert kinds(ObservedStorage(slices=(table,))) == {"more than the whole", "slice named twice"}
    names = tuple(f"/hw/disk/pm1d1L{number}s11" for number in (1, 7, 10))
    volume = ObservedDisk(
        "v", "xlv", 10**12, members=names, member_sizes=(10**11,) * 3, level="raid0", data=3, unit=2 * MIB
    )
    assert kinds(ObservedStorage(disks={"v": volume})) == {"one controller for all members", "larger than its members"}


# ---- the listings of the talk, and what they say


def test_published_listings_are_parsed_without_faults() -> None:
    storage = read_files([DATA / "csmreport.txt"])
    assert [(disk.geometry, disk.unit, disk.size) for disk in storage.disks.values() if disk.kind == "lun"] == [
        ("4+1", 128 * KIB, 80 * 10**9), ("4+1", 128 * KIB, 211 * 10**9), ("4x2", 128 * KIB, 80 * 10**9),
        ("4x2", 128 * KIB, 211 * 10**9), ("4+1", 256 * KIB, 291 * 10**9), ("8+1", 256 * KIB, 583 * 10**9),
    ]  # fmt: skip
    assert kinds(storage) == set()
    assert kinds(read_files([DATA / "pm.txt", DATA / "pm-ustat.txt", DATA / "xlv0.txt", DATA / "root.cf"])) == set()


def test_garbled_lines_are_reported_not_guessed() -> None:
    storage = read_files([DATA / "csmreport-as-scanned.txt"])
    assert [disk.name for disk in storage.disks.values() if disk.kind == "lun"] == ["01d02_A0_L02"]
    assert len(storage.unread) == 5
    assert any("43&" in line for line in storage.unread)
    large = read_files([DATA / "xfs_growfs-large-as-scanned.txt"])
    (file_system,) = large.file_systems
    assert (file_system.group_count, file_system.group_blocks, file_system.blocks) == (3258, 262_144, 853_951_488)
    assert file_system.unit is None
    assert file_system.log is None
    assert "the stripe unit of /large" in check_layout(large).unknown


def test_published_paths_are_balanced() -> None:
    """The two active ones differ by half a percent."""
    (device,) = read_files([DATA / "pm.txt"]).disks.values()
    reads = [path.blocks_read or 0 for path in device.paths if path.active]
    assert max(reads) - min(reads) < 0.006 * max(reads)
    (detail,) = read_files([DATA / "pm-ustat.txt"]).disks.values()
    assert (detail.size, detail.queue_depth) == (583 * 10**9, 8)


def test_published_file_system_is_parsed() -> None:
    (file_system,) = read_files([DATA / "mkfs-4plus1.txt"]).file_systems
    assert (file_system.unit, file_system.width, file_system.group_count, file_system.group_blocks) == (
        MIB,
        MIB,
        272,
        261_632,
    )
    assert file_system.log == 16 * MIB
    assert file_system.size_bytes == 291_481_059_328
    plan = plan_layout(read_system(find_system_file("cray-x1"))).get_layout("single")
    assert kinds(ObservedStorage((file_system,)), plan) == {"log too small"}  # "not sufficient for > 300 MB/s"
    unset = read_xfs_info((DATA / "mkfs-4plus1.txt").read_text(encoding="utf-8").replace("=256", "=0"), "listing")
    assert "no stripe unit" in kinds(unset)  # mkfs with no options: "works, but not optimal"


def test_published_volume_equals_the_plan() -> None:
    storage = read_files([DATA / "xlv0.txt"])
    volume = storage.disks["xlv0.data.0.0"]
    assert volume.size == 6_831_611_904 * 512 == sum(volume.member_sizes)
    assert volume.unit == 2 * MIB
    plan = plan_layout(read_system(find_system_file("cray-x1"))).get_layout("large")
    assert kinds(storage, plan) == set()


def test_alignment_of_1_mib_is_a_fault_for_13_and_1(tmp_path: Path) -> None:
    text = (DATA / "option-RG11D.cf").read_text(encoding="utf-8")
    assert kinds(read_saved_output(text, "option-RG11D.cf")) == set()
    (fault,) = check_layout(read_saved_output(text.replace("modulo 13M\n", ""), "option-RG11D.cf")).faults
    assert fault.kind == "slice is not aligned"
    assert "modulo 13M" in fault.remedy


# ---- recorded outputs of today's tools


@pytest.mark.parametrize(
    ("file", "names"),
    [
        ("lsblk.json", {"slice is not aligned"}),
        ("mdadm-export.txt", set()),
        ("mdadm-detail.txt", {"degraded", "rebuilding", "no bitmap"}),
        ("lvs.json", set()),
        ("multipathd.json", {"one path for all", "path errors", "path failed"}),
        ("dumpe2fs.txt", set()),
        ("getstripe.txt", {"stripe does not fit RPCs", "objects on one target", "objects are missing"}),
        ("zpool.txt", {"unequal members of a stripe", "degraded", "sectors too small", "too full", "no spare"}),
    ],
)
def test_recorded_outputs_are_parsed(file: str, names: set[str]) -> None:
    assert kinds(read_files([DATA / file])) == names


def test_recorded_outputs_have_the_expected_values() -> None:
    storage = read_files([DATA / name for name in ("lsblk.json", "mdadm-export.txt", "mdadm-detail.txt", "lvs.json")])
    assert storage.disks["md5"].full_stripe_bytes == 1536 * KIB
    assert (storage.disks["md6"].geometry, storage.disks["md6"].unit) == ("8+2", 128 * KIB)
    assert storage.disks["fast-scratch"].members == ("md5", "md6")
    (home,) = read_files([DATA / "dumpe2fs.txt"]).file_systems
    assert (home.unit, home.width, home.log) == (512 * KIB, MIB, GIB)


@pytest.mark.parametrize("form", FORMS)
def test_incomplete_output_is_one_sentence(form: str) -> None:
    heads = {
        "lsblk --json --bytes --output-all": '{"blockdevices": []}', "multipathd show maps json": '{"maps": []}',
        "lvs --segments --reportformat json": '{"report": [{"seg": []}]}',
        "pvs --reportformat json": '{"report": [{"pv": []}]}',
        "xfs_info, mkfs.xfs or xfs_growfs -n": "meta-data=/dev/x agcount=4",
        "mdadm --detail": "MD_LEVEL=\nMD_DEVICES=\n",
        "dumpe2fs -h": "Block count:   7", "lfs getstripe": "lmm_stripe_count: 1", "zpool status": "  pool: ",
        "csmreport": "RS200 starting at Chassis: 1", "xlv_mgr show -long": "VE x [active]\n", "pm": "pm4d7L0\n",
        "parts": "part 1 lots", "sfdisk --json": '{"partitiontable": {"partitions": [{}]}}',
        "findmnt": "TARGET SOURCE FSTYPE OPTIONS\n", "zpool list": "NAME SIZE ALLOC FREE\n",
        "/proc/mdstat": "Personalities : [raid1]\nunused devices: <none>\n", "multipath -ll": "mpatha dm-3 \n",
        "parted": "Number  Start  End  Size\n", "sgdisk --print": "Number  Start (sector)    End (sector)\n",
        "lsblk": "NAME MAJ:MIN RM SIZE RO TYPE\n", "lvs": "LV VG Attr LSize\n", "blkid": '/dev/x UUID="7"\n',
        'grep -H "" /sys/block/*/queue/*': "/sys/block/sda/queue\n", "lctl get_param, lctl dl": "osc.x.y=\n",
        "mdadm --examine": "   Magic : a92b4efc\n", "zpool get, zfs get": "NAME  PROPERTY  VALUE  SOURCE\n",
        "df -i": "Filesystem Inodes IUsed IFree\n", "smartctl -l scterc": "SCT Error Recovery Control:\n",
        "ls -l /dev/disk/by-id": "lrwx a -> ../../\n", "dmsetup table": "vol: 0 8 linear\n",
        "tunefs.lustre --dryrun": "Lustre FS:  fs1\n", "lfs df": "UUID 1K-blocks Used\n",
    }  # fmt: skip
    with pytest.raises(UserError) as reason:
        read_saved_output(heads[form], "saved.txt")
    assert "saved.txt" in str(reason.value)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("hello", "is no output that is known"),
        ('{"blockdevices": [', "is not valid JSON"),
        ("", "is no output that is known"),
    ],
)
def test_unknown_output_is_one_sentence(text: str, sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        read_saved_output(text, "saved.txt")


# ---- sysfs, mounts, extents


def _sysfs(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n", encoding="utf-8")
    return root


def test_md_and_device_mapper_are_read_from_sysfs(tmp_path: Path) -> None:
    block = "class/block"
    files = {
        f"{block}/md5/size": "46874888192",
        f"{block}/md5/md/level": "raid6",
        f"{block}/md5/md/raid_disks": "10",
        f"{block}/md5/md/chunk_size": "131072",
        f"{block}/md5/md/stripe_cache_size": "256",
        f"{block}/md5/md/sync_action": "idle",
        f"{block}/md5/md/degraded": "0",
        f"{block}/md5/queue/max_sectors_kb": "512",
        f"{block}/md5/queue/max_hw_sectors_kb": "4096",
        f"{block}/md5/queue/read_ahead_kb": "128",
        f"{block}/md10/size": "100",
        f"{block}/md10/md/level": "raid10",
        f"{block}/md10/md/raid_disks": "8",
        f"{block}/md10/md/layout": "258",
        f"{block}/md10/md/chunk_size": "524288",
        f"{block}/dm-1/dm/uuid": "LVM-abc",
        f"{block}/dm-1/dm/name": "v-l",
        f"{block}/dm-1/size": "93749772288",
        f"{block}/dm-1/queue/minimum_io_size": "1048576",
        f"{block}/dm-1/queue/optimal_io_size": "2097152",
        f"{block}/dm-3/dm/uuid": "mpath-36",
        f"{block}/dm-3/size": "9",
    }
    root = _sysfs(tmp_path, files)  # fmt: skip
    for holder, slave in (("dm-1", "md5"), ("dm-1", "md10"), ("dm-3", "sdc"), ("dm-3", "sde")):
        (root / block / holder / "slaves" / slave / "device").mkdir(parents=True)
        (root / block / slave).mkdir(parents=True, exist_ok=True)
        (root / block / slave / "size").write_text("46874888192\n", encoding="utf-8")
        (root / block / holder / "slaves" / slave / "size").write_text("46874888192\n", encoding="utf-8")
    for path, state, moved in (("sdc", "running", "866071"), ("sde", "offline", "0")):
        (root / block / "dm-3" / "slaves" / path / "device" / "state").write_text(state, encoding="utf-8")
        (root / block / "dm-3" / "slaves" / path / "stat").write_text(
            f"1 0 {moved} 0 1 0 {moved} 0 0 0 0", encoding="utf-8"
        )
    storage = read_block_device_tree("dm-1", root)
    assert (storage.disks["dm-1"].unit, storage.disks["dm-1"].data, storage.disks["dm-1"].level) == (MIB, 2, "raid0")
    assert (storage.disks["md5"].geometry, storage.disks["md5"].full_stripe_bytes) == ("8+2", MIB)
    assert (storage.disks["md10"].geometry, storage.disks["md10"].full_stripe_bytes) == ("4x2", 2 * MIB)
    assert kinds(storage) == {
        "unequal members of a stripe", "stripe cache too small", "requests are cut", "read-ahead too short",
        "unit does not fit the stripe",
    }  # fmt: skip
    paths = read_block_device_tree("dm-3", root).disks["dm-3"].paths
    assert [(path.name, path.active, path.blocks_read) for path in paths] == [("sdc", True, 866_071), ("sde", False, 0)]
    assert read_block_device_tree("sdq", root).unknown == ("sdq, which sysfs does not have",)


def test_mount_of_a_path_is_its_longest_prefix() -> None:
    root = "22 1 254:0 / / rw,noatime - ext4 /dev/vda rw"
    other_one = "90 22 7:0 / /scratch\\040x rw,relatime - xfs /dev/mapper/v-l rw,logdev=/dev/sdl1,sunit=4096"
    text = f"{root}\n{other_one}\n"
    both = parse_mountinfo(text)
    assert [mount.location for mount in both] == ["/", "/scratch x"]
    assert "logdev=/dev/sdl1" in both[1].options
    inner = find_mount_of_path("/scratch x/run", text)
    assert inner is not None
    assert inner.kind == "xfs"
    other = find_mount_of_path("/scratch", text)
    assert other is not None
    assert other.location == "/"


@pytest.mark.parametrize("unit", [64 * KIB, 128 * KIB])
def test_superblocks_have_the_options_of_mkfs(tmp_path: Path, unit: int) -> None:
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    programs = {name: shutil.which(name, path=path) for name in ("mkfs.xfs", "mke2fs")}
    if None in programs.values():
        pytest.skip("mkfs.xfs or mke2fs is not installed")
    blocks = unit // 4096
    commands = {
        "xfs": [str(programs["mkfs.xfs"]), "-q", "-d", f"su={unit},sw=8", "-l", "size=70m"],
        "ext4": [str(programs["mke2fs"]), "-q", "-t", "ext4", "-b", "4096", "-E",
                 f"stride={blocks},stripe_width={8 * blocks}", "-J", "size=64"],
    }  # fmt: skip
    for kind, command in commands.items():
        disk = tmp_path / kind
        with disk.open("wb") as file:
            file.truncate(2 * GIB)
        subprocess.run([*command, str(disk)], check=True)
        file_system = read_superblock(str(disk))
        assert file_system is not None
        assert (file_system.kind, file_system.unit, file_system.width, file_system.log_device) == (
            kind,
            unit,
            8 * unit,
            "internal",
        )
        assert file_system.log == (70 * MIB if kind == "xfs" else 64 * MIB)
        assert file_system.block == 4096
        assert file_system.group_count is not None
        assert file_system.group_blocks is not None
        assert file_system.blocks is not None
        assert (
            file_system.group_blocks * (file_system.group_count - 1)
            < file_system.blocks
            <= file_system.group_blocks * file_system.group_count
        )
    (tmp_path / "empty").write_bytes(bytes(8192))
    assert read_superblock(str(tmp_path / "empty")) is None


def test_device_missing_in_a_container_is_unknown(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    mount = MountEntry(str(tmp_path), "/dev/none-such", "ext4", "8:1", ("rw", "sync"))
    monkeypatch.setattr(inspection, "find_mount_of_path", lambda path: mount)
    storage = inspect_storage(str(tmp_path))
    assert any("/dev/none-such, which is not there" in text for text in storage.unknown)
    mount = replace(mount, device="overlay", kind="overlay")
    assert "overlay at" in inspect_storage(str(tmp_path)).unknown[0]


def test_extents_cover_the_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x" * (3 * MIB))
    try:
        extents = read_file_extents(str(path))
    except MachineError as reason:
        pytest.skip(str(reason))
    assert sum(length for _, _, length in extents.pieces) >= 3 * MIB
    with pytest.raises(MachineError, match="its extents cannot be read"):
        read_file_extents(str(tmp_path / "none"))


# ---- a plan, made exactly, has no fault


def as_made(layout: FileSystemLayout) -> ObservedStorage:
    """What would be seen after the script of a plan has run: the numbers that mkfs, md and LVM were given."""
    disks: dict[str, ObservedDisk] = {}
    for store in (*layout.devices, *([layout.log] if layout.log is not None else [])):
        _add(store, disks)
    groups = layout.groups if layout.table.kind == "xfs" else None
    blocks = groups.blocks if groups is not None else (layout.capacity or 0) // layout.block_bytes
    file_system = ObservedFileSystem(
        f"/{layout.id}",
        layout.table.kind,
        f"/dev/{layout.first_device.id}",
        layout.block_bytes,
        blocks,
        layout.unit,
        layout.width,
        groups.count if groups else None,
        groups.size if groups else None,
        layout.log_size,
        f"/dev/{layout.log.id}" if layout.log is not None else "internal",
    )
    return ObservedStorage((file_system,), disks)


def _add(store: BlockDevice, disks: dict[str, ObservedDisk]) -> None:
    table, members = store.table, tuple(member.id for member in store.members)
    sizes = tuple(member.capacity or 0 for member in store.members)
    common = {"size": store.capacity, "state": "optimal"}
    if isinstance(table, RaidGroup):
        geometry = store.raid_geometry
        striped = geometry is not None and geometry.data > 1
        disks[store.id] = ObservedDisk(store.id, "md", geometry=str(geometry), data=geometry.data if geometry else None,
                                   unit=store.stripe_unit_bytes if striped else None, level=f"raid{table.level}",
                                   member_sizes=sizes, **common)  # type: ignore[arg-type]  # fmt: skip
    elif store.kind == "slices":
        disks[store.id] = ObservedDisk(store.id, "part", start=store.start, on=members[0], **common)  # type: ignore[arg-type]
    elif isinstance(table, Volume):
        disks[store.id] = ObservedDisk(
            store.id,
            "lvm",
            members=members,
            member_sizes=sizes,
            level="raid0",
            unit=store.stripe_unit_bytes,
            data=len(members),
            **common,  # type: ignore[arg-type]
        )
    else:
        disks[store.id] = ObservedDisk(store.id, "disk", members=members, **common)  # type: ignore[arg-type]
    for member in store.members:
        if member.kind != "drives":
            _add(member, disks)


def clean(plan: LayoutPlan) -> None:
    for layout in plan.file_systems:
        if layout.table.kind in ("xfs", "ext4") and layout.devices:
            # what was right in 2004 is called old: groups of 1 GiB, a log of 16 MiB
            old = {"too many allocation groups", "log too small"} if layout.first_device.is_cray_x1 else set()
            assert [fault for fault in check_layout(as_made(layout), layout).faults if fault.kind not in old] == [], (
                layout.id
            )


@pytest.mark.parametrize("name", ["nvme-enclosure", "cray-x1-requirements", "laptop-md"])
def test_planned_layout_has_no_faults(name: str) -> None:
    clean(plan_layout(read_system(find_system_file(name))))


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["home", "scratch", "archive"]), st.sampled_from(["xfs", "ext4"]),
                          st.integers(2, 60)), min_size=1, max_size=4))  # fmt: skip
def test_any_planned_layout_has_no_faults(requirements_drawn: list[tuple[str, str, int]]) -> None:
    requirements = [
        make_requirement(f"fs{index}", purpose, kind, capacity=f"{size * 200} MB")
        for index, (purpose, kind, size) in enumerate(requirements_drawn)
    ]
    try:
        plan = plan_layout(make_system(build_lun_system(file_systems=requirements), "made"))
    except UserError:
        return
    clean(plan)


def test_differences_from_a_plan_are_reported() -> None:
    layout = plan_layout(read_system(find_system_file("nvme-enclosure"))).get_layout("scratch")
    storage = as_made(layout)
    (file_system,) = storage.file_systems
    assert file_system.blocks is not None
    assert file_system.group_count is not None
    for change in (
        {"unit": 4 * MIB, "width": 4 * MIB}, {"width": 2 * MIB}, {"group_count": file_system.group_count + 1},
        {"block": 8192},
        {"blocks": file_system.blocks // 2}, {"log": 64 * MIB}, {"log_device": "/dev/sdl"}, {"kind": "ext4"},
    ):  # fmt: skip
        changed = replace(file_system, **change)
        assert "not as planned" in kinds(replace(storage, file_systems=(changed,)), layout), change
    volume = storage.disks[layout.first_device.id]
    fewer = {**storage.disks, layout.first_device.id: replace(volume, members=(*volume.members, "more"))}
    assert "not as planned" in kinds(replace(storage, disks=fewer), layout)
