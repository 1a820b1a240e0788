# SPDX-License-Identifier: Apache-2.0
"""Mistakes with local file systems of a drawn server, with the reason that a check must give."""

from __future__ import annotations

import json
import re
from random import Random

from drawn_servers import DrawnServer
from layout_mistake import Mistake, Plant


def _mount(old: str, *options: str) -> Plant:
    def plant(server: DrawnServer, random: Random) -> str:
        server.replace_text("findmnt", old, old + "".join(f",{random.choice(options)}" for _ in range(1)))
        return "/scratch"

    return plant


def _plant_read_only(server: DrawnServer, random: Random) -> str:
    server.replace_text("findmnt", '"rw,', '"ro,')
    return "/scratch"


def _plant_small_log_buffers(server: DrawnServer, random: Random) -> str:
    server.replace_text("findmnt", "logbsize=256k", f"logbsize={random.choice([16, 32])}k")
    return "/scratch"


def _plant_mounted_with_other_stripe(server: DrawnServer, random: Random) -> str:
    width = server.plan.width // 512
    server.replace_text("findmnt", "noatime", f"noatime,sunit={width // 3},swidth={width // 3 * 4}")
    return "/scratch"


def _plant_ext4_other_stripe(server: DrawnServer, random: Random) -> str:
    width = server.plan.width // server.plan.block_bytes
    server.replace_text("findmnt", f"stripe={width}", f"stripe={width + random.randint(1, 9)}")
    return "/scratch"


def _plant_not_grown(server: DrawnServer, random: Random) -> str:
    plan = server.plan
    if plan.groups is not None:
        share = random.choice([0.5, 0.7, 0.9])
        server.replace_text("made", f"blocks={plan.groups.blocks},", f"blocks={int(plan.groups.blocks * share)},")
        server.replace_text("made", f"agcount={plan.groups.count}", f"agcount={int(plan.groups.count * share)}")
    return "/scratch"


def _plant_xfs_version_4(server: DrawnServer, random: Random) -> str:
    server.replace_text("made", "crc=1        finobt=1", "crc=0        finobt=0")
    server.replace_text("made", "bigtime=1", "bigtime=0")
    return "/scratch"


def _plant_large_directory_blocks(server: DrawnServer, random: Random) -> str:
    server.replace_text("made", "lazy-count=1", "lazy-count=0")
    return "/scratch"


def _plant_ext4_with_errors(server: DrawnServer, random: Random) -> str:
    server.replace_text("made", "Filesystem state:         clean", "Filesystem state:         clean with errors")
    return "/scratch"


def _plant_old_log(server: DrawnServer, random: Random) -> str:
    server.outputs["made"] = re.sub(r"(log  [\s\S]*)version=2", r"\1version=1", server.outputs["made"])
    return "/scratch"


def _plant_reserved_blocks(server: DrawnServer, random: Random) -> str:
    blocks = int(re.findall(r"Block count: +(\d+)", server.outputs["made"])[0])
    share = random.choice([5, 10])
    server.outputs["made"] += f"Reserved block count:     {blocks * share // 100}\n"
    return "/scratch"


def _plant_stale_data(server: DrawnServer, random: Random) -> str:
    server.replace_text("findmnt", "noatime", "noatime,data=writeback")
    return "/scratch"


def _plant_covered_mount(server: DrawnServer, random: Random) -> str:
    document = json.loads(server.outputs["findmnt"])
    (row,) = document["filesystems"]
    row["children"] = [{"target": "/scratch", "source": "/dev/sdq1", "fstype": "ext4", "options": "rw,relatime"}]
    server.outputs["findmnt"] = json.dumps(document)
    return "/scratch"


def _plant_no_recovery(server: DrawnServer, random: Random) -> str:
    server.replace_text("findmnt", '"rw,', '"ro,norecovery,')
    return "/scratch"


def _plant_other_kind(server: DrawnServer, random: Random) -> str:
    other = "ext4" if server.plan.table.kind == "xfs" else "xfs"
    for output in ("findmnt", "lsblk"):
        server.outputs[output] = server.outputs[output].replace(f'"{server.plan.table.kind}"', f'"{other}"')
    del server.outputs["made"]
    server.outputs["findmnt"] = re.sub(r'"rw,[^"]*"', '"rw,noatime"', server.outputs["findmnt"])
    return "/scratch"


def _mount_option(option: str) -> Plant:
    def plant(server: DrawnServer, random: Random) -> str:
        server.replace_text("findmnt", "noatime", f"noatime,{option}")
        return "/scratch"

    return plant


def _without_feature(feature: str) -> Plant:
    def plant(server: DrawnServer, random: Random) -> str:
        server.replace_text("made", f" {feature}", "")
        return "/scratch"

    return plant


def _plant_no_index_of_free_inodes(server: DrawnServer, random: Random) -> str:
    server.replace_text("made", "finobt=1", "finobt=0")
    return "/scratch"


def _plant_check_at_mount(server: DrawnServer, random: Random) -> str:
    months = random.choice([1, 6])
    server.outputs["made"] += f"Maximum mount count:      20\nCheck interval:           {months * 2592000} (months)\n"
    return "/scratch"


FILE_SYSTEM_MISTAKES: list[Mistake] = [
    Mistake("mounted without barriers", "mount option", _mount("noatime", "barrier=0", "nobarrier")),
    Mistake("all inodes in the first terabyte", "mount option", _mount("noatime", "inode32"), needs="xfs"),
    Mistake("synchronous directories", "mount option", _mount("noatime", "dirsync", "wsync")),
    Mistake("mounted read-only", "read-only", _plant_read_only),
    Mistake("small buffers of the log", "logbsize|log buffer", _plant_small_log_buffers, needs="xfs"),
    Mistake("mounted with another stripe", "stripe|unit|width", _plant_mounted_with_other_stripe, needs="xfs"),
    Mistake("ext4 mounted with another stripe", "stripe", _plant_ext4_other_stripe, needs="ext4"),
    Mistake("a file system that was not grown", "planned|unused|smaller", _plant_not_grown, ("not as planned",),
            needs="xfs"),
    Mistake("XFS without checksums", "checksum|crc", _plant_xfs_version_4, needs="xfs"),
    Mistake("XFS with counters in the superblock", "lazy|superblock", _plant_large_directory_blocks, needs="xfs"),
    Mistake("ext4 with errors", "error", _plant_ext4_with_errors, needs="ext4"),
    Mistake("a log of version 1", "log", _plant_old_log, needs="xfs"),
    Mistake("space reserved for root", "reserved", _plant_reserved_blocks, needs="ext4"),
    Mistake("old data after a crash", "mount option", _plant_stale_data, needs="ext4"),
    Mistake("a mount that hides another one", "mounted over", _plant_covered_mount, ("not as planned",)),
    Mistake("mounted without recovery", "norecovery", _plant_no_recovery, ("mounted read-only",), needs="xfs"),
    Mistake("another kind of file system", "planned is", _plant_other_kind),
    Mistake("a journal that commits early", "mount option", _mount_option("journal_async_commit"), needs="ext4"),
    Mistake("ext4 without flexible groups", "flex_bg", _without_feature("flex_bg"), needs="ext4"),
    Mistake("XFS without an index of free inodes", "finobt|inode", _plant_no_index_of_free_inodes, needs="xfs"),
    Mistake("checks when it is mounted", "check", _plant_check_at_mount, needs="ext4"),
    Mistake("ext4 without extents", "extent", _without_feature("extent"), needs="ext4"),
]  # fmt: skip
