# SPDX-License-Identifier: Apache-2.0
"""Reads the parameters of XFS and ext4 from their superblocks, and of a mounted XFS with its ioctl.

Formats: fs/xfs/libxfs/xfs_format.h (struct xfs_dsb, big endian), xfs_fs.h (struct xfs_fsop_geom_v1 and later),
fs/ext4/ext4.h (struct ext4_super_block, little endian, at byte 1024). Devices are opened read-only.
"""

from __future__ import annotations

import fcntl
import os
import struct

from sonde.design.layout.live.observations import ObservedFileSystem

_EXT4_AT, _EXT4_SIZE = 1024, 1024
# XFS_IOC_FSGEOMETRY_V1: _IOR('X', 100, 112 bytes). Every kernel with XFS has it.
_XFS_GEOMETRY, _XFS_GEOMETRY_SIZE = 0x80705864, 112


def read_superblock(device_path: str) -> ObservedFileSystem | None:
    """The file system on a device; None unless it is XFS or ext2, ext3 or ext4. Raises OSError."""
    with open(device_path, "rb", buffering=0) as file:
        head = file.read(4096)
    return parse_xfs_superblock(head, device_path) or parse_ext4_superblock(
        head[_EXT4_AT : _EXT4_AT + _EXT4_SIZE], device_path
    )


def parse_xfs_superblock(first_block: bytes, device_path: str) -> ObservedFileSystem | None:
    """Parses the first block of an XFS."""
    if len(first_block) < 264 or first_block[:4] != b"XFSB":
        return None
    block, data_blocks = struct.unpack_from(">IQ", first_block, 4)
    (log_start,) = struct.unpack_from(">Q", first_block, 48)
    group, count = struct.unpack_from(">II", first_block, 84)
    (log_blocks,) = struct.unpack_from(">I", first_block, 96)
    unit, width = struct.unpack_from(">II", first_block, 184)
    (log_unit,) = struct.unpack_from(">I", first_block, 196)
    return ObservedFileSystem(
        device_path, "xfs", device_path, block, data_blocks, unit * block, width * block, count, group,
        log_blocks * block,
        "internal" if log_start else "external", origin="superblock",
        facts={"log_unit": str(log_unit)} | _read_label(first_block[108:120]),
    )  # fmt: skip


def parse_ext4_superblock(superblock: bytes, device_path: str) -> ObservedFileSystem | None:
    """Parses the superblock of an ext2, ext3 or ext4."""
    if len(superblock) < 512 or superblock[56:58] != b"\x53\xef":
        return None
    inodes, low = struct.unpack_from("<II", superblock, 0)
    (shift,) = struct.unpack_from("<I", superblock, 24)
    if shift > 6:  # blocks of more than 64 KiB: this is no ext4
        return None
    (per_group,) = struct.unpack_from("<I", superblock, 32)
    compatible, incompatible = struct.unpack_from("<II", superblock, 92)
    (stride,) = struct.unpack_from("<H", superblock, 0x164)
    (width,) = struct.unpack_from("<I", superblock, 0x170)
    (high,) = struct.unpack_from("<I", superblock, 0x150)
    block = 1024 << shift
    blocks = low | (high << 32 if incompatible & 0x80 else 0)
    # s_jnl_blocks holds a copy of the journal's inode; its last two words are the size (kind 1)
    journal, kind = None, superblock[0xFD]
    if compatible & 0x4 and kind == 1:
        size_high, size_low = struct.unpack_from("<II", superblock, 0x10C + 15 * 4)
        journal = size_low | size_high << 32
    log_device = (
        None if not compatible & 0x4 else "external" if struct.unpack_from("<I", superblock, 0xE4)[0] else "internal"
    )
    groups = -(-blocks // per_group) if per_group else None
    name = "ext4" if incompatible & 0x40 else "ext3" if compatible & 0x4 else "ext2"
    return ObservedFileSystem(
        device_path, name, device_path, block, blocks, stride * block, width * block, groups,
        per_group, journal, log_device, origin="superblock",
        facts={"inodes": str(inodes)} | _read_label(superblock[0x78:0x88]),
    )  # fmt: skip


def _read_label(label_field: bytes) -> dict[str, str]:
    label = label_field.partition(b"\0")[0].decode("utf-8", "replace")
    return {"label": label} if label else {}


def query_xfs_geometry(mount_path: str) -> ObservedFileSystem | None:
    """A mounted XFS by ioctl, which needs no access to its device; None when the path is on another file system."""
    handle = os.open(mount_path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        buffer = bytearray(_XFS_GEOMETRY_SIZE)
        fcntl.ioctl(handle, _XFS_GEOMETRY, buffer)
    except OSError:
        return None
    finally:
        os.close(handle)
    return parse_xfs_geometry(bytes(buffer), mount_path)


def parse_xfs_geometry(geometry_bytes: bytes, mount_path: str) -> ObservedFileSystem:
    """Parses the answer of XFS_IOC_FSGEOMETRY_V1."""
    block, _, group, count, log_blocks = struct.unpack_from("=IIIII", geometry_bytes, 0)
    (data_blocks,) = struct.unpack_from("=Q", geometry_bytes, 32)
    (log_start,) = struct.unpack_from("=Q", geometry_bytes, 56)
    unit, width = struct.unpack_from("=II", geometry_bytes, 80)
    return ObservedFileSystem(
        mount_path, "xfs", "", block, data_blocks, unit * block, width * block, count, group, log_blocks * block,
        "internal" if log_start else "external", origin="ioctl XFS_IOC_FSGEOMETRY",
    )  # fmt: skip
