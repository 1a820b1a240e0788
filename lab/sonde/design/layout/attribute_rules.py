# SPDX-License-Identifier: Apache-2.0
"""Rules about single attributes of storage: which values are wrong, what they cost, and what to do.

Every attribute that a tool prints is stored under its name there. A rule names the part, the attribute and the values
that are a fault, so a further one is a row of the table.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from sonde.design.checked_items import CheckedItem
from sonde.design.layout.attribute_rule import AttributeRule
from sonde.design.layout.faults import LayoutFault
from sonde.design.layout.live.observations import ObservedDisk, ObservedFileSystem
from sonde.design.layout.smart_rules import SMART_RULES
from sonde.design.layout.zfs_module_rules import ZFS_MODULE_RULES

_MKFS_XFS_REMEDY = "save the data, then make it again with mkfs.xfs of today"
RULES: Sequence[AttributeRule] = (
    # ---- file systems
    AttributeRule(
        "xfs", "log-version", "1", "old log", "its log has version 1",
        "log buffers have 32 KiB at most, and are not aligned to the stripe",
        f"{_MKFS_XFS_REMEDY}, which writes version 2",
    ),
    AttributeRule(
        "xfs", "crc", "0", "no checksums", "it is XFS without checksums of metadata (crc=0, version 4)",
        "damage of metadata is noticed late; Linux 5.10 announced the end of its support, and times end in 2038",
        f"{_MKFS_XFS_REMEDY}, which writes version 5",
    ),
    AttributeRule(
        "xfs", "lazy-count", "0", "counters in the superblock",
        "it counts free blocks and inodes in the superblock (lazy-count=0)",
        "every create and removal changes the superblock, one after another", "xfs_admin -c 1, while it is not mounted",
    ),
    AttributeRule(
        "xfs", "finobt", "0", "no index of free inodes", "it has no index of free inodes (finobt=0)",
        "creates search ever longer for a free inode when many are used",
        "xfs_repair -c finobt=1, or " + _MKFS_XFS_REMEDY,
        needs={"crc": "1"},
    ),
    AttributeRule(
        "xfs", "ftype", "0", "no types in directories", "its directories hold no types of files (ftype=0)",
        "find and ls read every inode; overlay file systems do not work on it", _MKFS_XFS_REMEDY,
        needs={"crc": "1"},
    ),
    AttributeRule(
        "xfs", "sparse", "0", "no sparse inodes", "it has no sparse inodes (sparse=0)",
        "creates fail when free space is in pieces smaller than 64 inodes, although there is space", _MKFS_XFS_REMEDY,
        needs={"crc": "1"},
    ),
    AttributeRule(
        "xfs", "isize", "256", "small inodes", "its inodes have 256 bytes",
        "extended attributes and extents of most files take a separate block, one more read each", _MKFS_XFS_REMEDY,
        needs={"crc": "[01]"},  # output of today: 256 bytes were the default for long
    ),
    AttributeRule(
        "ext4", "features", r"(?!.*\bextents?\b).+", "no extents", "its files have maps of blocks, not extents",
        "a large file takes thousands of blocks of metadata, and removing it takes long",
        "tune2fs -O extent, then copy the files, or save them and make it again",
    ),
    AttributeRule(
        "ext4", "features", r"(?!.*\bflex_bg\b)(?=.*\bextents?\b).+", "no flexible groups",
        "its groups keep their own bitmaps and inodes (no flex_bg)",
        "metadata are scattered over the drives, and free space is cut every 128 MiB",
        "save the data, then make it again with mke2fs",
    ),
    AttributeRule(
        "ext4", "features", r"(?!.*\bdir_index\b)(?=.*\bfiletype\b).+", "no index of directories",
        "its directories have no index (no dir_index)",
        "creates and lookups in large directories read all of their blocks",
        "tune2fs -O dir_index, then e2fsck -fD while it is not mounted",
    ),
    AttributeRule(
        "ext4", "check_interval", r"[1-9]\d*", "check at mount", "it is checked after {value} s",
        "a restart after that time takes as long as e2fsck does: hours", "tune2fs -i 0, and check it when it suits",
    ),
    AttributeRule(
        "ext4", "max_mounts", r"[1-9]\d*", "check at mount", "it is checked after {value} mounts",
        "one of the next restarts takes as long as e2fsck does: hours", "tune2fs -c 0, and check it when it suits",
    ),
    AttributeRule(
        "ext4", "inode_bytes", "128", "small inodes", "its inodes have 128 bytes",
        "each extended attribute takes a separate block, times have whole seconds and end in 2038",
        "save the data, then make it again with mke2fs -I 256",
    ),
    AttributeRule(
        "ext4", "error_count", r"[1-9]\d*", "file system with errors", "the error count of its superblock is {value}",
        "parts of it are wrong: it may become read-only or lose files", "unmount it, and run e2fsck",
    ),
    # ---- ZFS
    AttributeRule(
        "zfs", "sync", "disabled", "synchronous writes are not",
        "sync is disabled: fsync returns before data is stored",
        "a crash loses seconds of data that programs were told is safe", "zfs inherit sync",
    ),
    AttributeRule(
        "zfs", "sync", "always", "all writes are synchronous",
        "sync is always: every write waits for the log or the drives",
        "writes have the latency of the drives", "zfs inherit sync",
    ),
    AttributeRule(
        "zfs", "dedup", "(?!off|-).*", "deduplication", "dedup is {value}",
        "each write looks up a table that must be in memory: without much memory it is very slow",
        "zfs set dedup=off, unless much of the data is equal",
    ),
    AttributeRule(
        "zfs", "checksum", "off", "no checksums", "checksum is off", "wrong data is returned, and cannot be repaired",
        "zfs inherit checksum, then write the data again",
    ),
    AttributeRule(
        "zfs", "primarycache", "none|metadata", "not cached", "primarycache is {value}",
        "data that is read again comes from the drives, and there is no read-ahead", "zfs inherit primarycache",
    ),
    AttributeRule(
        "zfs", "readonly", "on", "mounted read-only", "readonly is on", "nothing can be written",
        "zfs inherit readonly",
    ),
    AttributeRule(
        "zfs", "mounted", "no", "not mounted", "it is not mounted at its mount point",
        "what is written there goes to the file system below", "zfs mount -a, and look for files below the mount point",
        needs={"mountpoint": "/.*", "canmount": "(on)?"},
    ),
    AttributeRule(
        "zfs", "canmount", "noauto", "not mounted at a start", "it is mounted now, but canmount is noauto",
        "after the next import it is not mounted, and programs write to the file system below",
        "zfs set canmount=on, unless a cluster or a unit of systemd mounts it",
        needs={"mounted": "yes", "mountpoint": "/(?!$|boot).*"},  # boot environments have noauto
    ),
    AttributeRule(
        "zfs", "copies", "[23]", "several copies", "copies is {value}: each block is written {value} times",
        "capacity and the rate of writing are divided by it; a lost vdev loses the pool all the same",
        "zfs inherit copies, then write the data again",
    ),
    AttributeRule(
        "zfs", "redundant_metadata", "none|some", "fewer copies of metadata", "redundant_metadata is {value}",
        "a bad block of metadata may lose files that the default preserves", "zfs inherit redundant_metadata",
    ),
    AttributeRule(
        "zfs", "failmode", "panic", "panic after an error", "failmode is panic",
        "the server stops when the pool loses its drives for a moment", "zpool set failmode=wait",
    ),
    AttributeRule(
        "zfs", "failmode", "continue", "errors without drives", "failmode is continue",
        "writes fail at once when the pool loses its drives for a moment, and programs end",
        "zpool set failmode=wait, unless a cluster must fail over at once",
    ),
    AttributeRule(
        "zfs", "expandsize", r"(?!0B?$)[\d.]+\w*", "partly unused", "{value} of its drives are not used (EXPANDSZ)",
        "capacity is lost", "zpool online -e, or zpool set autoexpand=on",
    ),
    AttributeRule(
        "zfs", "checkpoint", r"(?!0B?$)[\d.]+\w*", "checkpoint of the pool", "it has a checkpoint of {value}",
        "what is deleted frees no space, and drives cannot be removed", "zpool checkpoint -d, when it is not needed",
    ),
    AttributeRule(
        "zfs", "altroot", "/.*", "imported with another root", "it was imported with altroot {value}",
        "its mount points begin there, and it is not in the cache file: after a restart it is missing",
        "zpool export, then zpool import without -R",
    ),
    # ---- Lustre
    AttributeRule(
        "lustre", "sync_journal", "1", "writes wait for the journal", "sync_journal is 1",
        "every write waits until the journal of its target is stored", "lctl set_param obdfilter.*.sync_journal=0",
    ),
    AttributeRule(
        "lustre", "prealloc_status", r"-[1-9]\d*", "no new objects",
        "the metadata server gets no new objects of it (prealloc_status {value})",
        "its space and bandwidth are left out by all new files", "look at its server, its free space and its inodes",
    ),
    AttributeRule(
        "lustre", "debug", r"-1|(?s:.*)\b(?:trace|malloc|rpctrace|vfstrace|dlmtrace|nettrace|page|buffs)\b(?s:.*)",
        "debug messages", "debug messages of many kinds are recorded (debug={value})",
        "each operation takes processor time on this node for messages that nobody reads",
        'lctl set_param debug="ioctl neterror warning error emerg ha config console lfsck"',
    ),
    AttributeRule(
        "lustre", "statahead_max", "0", "no read-ahead of attributes", "statahead_max is 0",
        "ls -l and find wait for one answer after another", "lctl set_param llite.*.statahead_max=32",
    ),
    AttributeRule(
        "lustre", "xattr_cache", "0", "attributes are not cached", "xattr_cache is 0",
        "each look at an attribute asks the metadata server", "lctl set_param llite.*.xattr_cache=1",
    ),
    # ---- arrays, volumes and drives
    AttributeRule(
        "md", "reshape_position", r"\d+", "reshape not finished", "a reshape stands at sector {value}",
        "reads and writes know two layouts; it does not go on by itself after some failures",
        "look at /proc/mdstat; mdadm --grow --continue",
    ),
    AttributeRule(
        "md", "mismatch_cnt", r"[1-9]\d*", "parity or copies differ",
        "the last check found {value} sectors whose parity or copies differ (mismatch_cnt)",
        "after the loss of a drive wrong data may be computed",
        "look for a drive with errors, then echo repair > md/sync_action",
    ),
    AttributeRule(
        "md", "bitmap/chunksize", r"[1-9]\d{0,5}", "small chunks of the bitmap",
        "a bit of its bitmap stands for {value} bytes", "most writes first write the bitmap",
        "mdadm --grow --bitmap=none, then --bitmap=internal --bitmap-chunk=64M",
    ),
    AttributeRule(
        "lvm", "state", "[IS]", "invalid snapshot", "the snapshot is invalid: attribute {value} of lvs",
        "what it preserved is lost: its space was used up",
        "lvremove it, and give the next one more space (lvcreate -s -L)",
    ),
    AttributeRule(
        "lvm", "state", "[mM]", "merge of a snapshot failed",
        "the merge of its snapshot failed: attribute {value} of lvs",
        "the volume is neither that of today nor that of the snapshot",
        "look at the log of the kernel, then at the snapshot",
    ),
    AttributeRule(
        "lvm", "state", "[cC]", "thin pool needs a check",
        "its thin pool has errors in its metadata: attribute {value} of lvs",
        "its volumes are read-only, or do not start after a restart",
        "unmount its volumes, deactivate them, then lvconvert --repair the pool",
    ),
    AttributeRule(
        "lvm", "health", "E", "write cache failed", "its write cache had errors: attribute E of lvs",
        "what the cache holds is not on the drives below", "look at the drive of the cache before anything else",
    ),
    AttributeRule(
        "lvm", "state", "s", "suspended volume", "it is suspended: attribute {value} of lvs",
        "every request waits until it is resumed", "dmsetup resume, after a look at what suspended it",
    ),
    AttributeRule(
        "lvm", "health", "[pX]", "volume lacks a device", "a device of it is missing: attribute {value} of lvs",
        "parts of it cannot be read", "look for the missing physical volume (pvs)",
    ),
    AttributeRule(
        "lvm", "health", "r", "volume needs a refresh", "a device of it had errors: attribute r of lvs",
        "it works without one of its copies", "look at the drive, then lvchange --refresh",
    ),
    AttributeRule(
        "lvm", "health", "m", "copies differ", "its copies differ: attribute m of lvs",
        "after the loss of a drive wrong data may be read", "look for a drive with errors, then lvchange --syncaction"
        " repair",
    ),
    AttributeRule(
        "lvm", "health", "[FDM]", "thin pool failed",
        "its thin pool is out of space or failed: attribute {value} of lvs",
        "writes fail or wait", "lvextend the pool or its metadata, then lvconvert --repair it",
    ),
    AttributeRule(
        "disk", "alignment", r"-?[1-9]\d*", "shifted sectors", "its sectors do not begin at 0 (alignment {value})",
        "requests that are aligned for the kernel touch one sector more",
        "take the jumper or the emulation of the drive away",
    ),
    AttributeRule(
        "disk", "health", r"(?i)(?!no answer|.*TEMPERATURE).*(?:FAIL|EXCEEDED|IMPENDING).*", "drive about to fail",
        "smartctl -H says of it: {value}",
        "it has used up its spare sectors or its life, and may fail at any time",
        "save what is on it, and replace it while its array is whole (mdadm --replace, zpool replace)",
    ),
    AttributeRule(
        "disk", "health", r"(?i)(?!no answer).*TEMPERATURE.*", "drive too hot", "smartctl -H says of it: {value}",
        "hot drives slow down, make errors, and fail early", "look at fans, filters, and empty slots without covers",
    ),
    AttributeRule(
        "disk", "health", "no answer.*", "drive does not answer", "smartctl -H has {value}",
        "it hangs or is gone, and what uses it waits or works without it",
        "look at slot, cable and the log of the kernel, then replace it (mdadm --replace, zpool replace)",
    ),
    AttributeRule(
        "lvm", "permission", "[rR]", "write-protected", "it is read-only: attribute {value} of lvs",
        "every write fails", "lvchange -p rw, after a look at why", needs={"origin": ""},  # a snapshot may be so
    ),
    *(
        AttributeRule(
            part, "read_only", "1", "write-protected", "the kernel may not write to it (ro=1)", "every write fails",
            "blockdev --setrw, after a look at why",
        )
        for part in ("disk", "part", "md", "lvm", "multipath")
    ),
    *SMART_RULES,
    *ZFS_MODULE_RULES,
)  # fmt: skip


def find_attribute_faults(
    file_systems: Sequence[ObservedFileSystem], disks: Sequence[ObservedDisk]
) -> Iterator[LayoutFault | CheckedItem]:
    """The faults of all attributes for which there is a rule."""
    for file_system in file_systems:
        yield from apply_rules(RULES, file_system.kind, file_system.location, file_system.facts)
    for disk in disks:
        yield from apply_rules(RULES, disk.kind, disk.name, {**disk.queue, **disk.settings})


def apply_rules(
    rules: Sequence[AttributeRule], part_name: str, location: str, attributes: Mapping[str, str]
) -> Iterator[LayoutFault | CheckedItem]:
    """The faults of the attributes of one part."""
    for rule in rules:
        if rule.part != part_name:
            continue
        for owner, value in _find_values(rule.attribute, location, attributes):
            suffix = f"@{owner}" if f"{rule.attribute}@{owner}" in attributes else ""
            needs = {f"{name}{suffix}": pattern for name, pattern in (rule.needs or {}).items()}
            if any(not re.fullmatch(pattern, attributes.get(name, "")) for name, pattern in needs.items()):
                continue
            yield CheckedItem(rule.attribute, owner)
            if re.fullmatch(rule.faulty, value):
                problem = rule.problem.format(value=value)
                yield LayoutFault(rule.kind, owner, problem, rule.cost, rule.remedy, (rule.attribute,))


def _find_values(attribute_name: str, location: str, attributes: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """The values of an attribute with the part that has it: "sync@tank/home" is that of a dataset."""
    for name, value in attributes.items():
        stem, _, dataset = name.partition("@")
        if stem == attribute_name and value:
            yield dataset or location, value
