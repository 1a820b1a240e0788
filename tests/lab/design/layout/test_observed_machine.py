# SPDX-License-Identifier: Apache-2.0
"""Facts read from the machine itself: sysfs, mounts, superblocks and extents."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from layout_fault_kinds import find_kinds

from sonde.design.layout.geometry import GIB, KIB, MIB
from sonde.design.layout.live import inspection
from sonde.design.layout.live.extents import read_file_extents
from sonde.design.layout.live.inspection import inspect_storage
from sonde.design.layout.live.superblocks import read_superblock
from sonde.design.layout.live.sysfs_disks import read_block_device_tree
from sonde.model.errors import MachineError
from sonde.model.mounts import MountEntry, find_mount_of_path, parse_mountinfo


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
    assert find_kinds(storage) == {
        "unequal members of a stripe", "stripe cache too small", "read-ahead too short",
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
