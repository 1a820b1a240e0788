# SPDX-License-Identifier: Apache-2.0
"""Mistakes with arrays and local file systems at random places of a drawn server, with the reason that a check must
give.

They were written down before the rules that name some of them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

from drawn_servers import DrawnServer

Plant = Callable[[DrawnServer, Random], str]


@dataclass(frozen=True)
class Mistake:
    """A mistake. `reason` must match the kind and the text of a fault that names the place which `plant` returns;
    `consequences` are kinds of faults that also follow from it."""

    name: str
    reason: str
    plant: Plant
    consequences: tuple[str, ...] = ()
    needs: str = ""  # "xfs", "ext4", "parity"


def _pick(server: DrawnServer, random: Random) -> str:
    return random.choice(server.drives)


# ---- arrays and drives


def _short_queue(server: DrawnServer, random: Random) -> str:
    drive = _pick(server, random)
    server.set_queue(drive, "device/queue_depth", random.choice([1, 2]))
    return drive


def _no_merges(server: DrawnServer, random: Random) -> str:
    drive = _pick(server, random)
    server.set_queue(drive, "queue/nomerges", random.choice([1, 2]))
    return drive


def _other_write_cache(server: DrawnServer, random: Random) -> str:
    drive = _pick(server, random)
    server.set_queue(drive, "queue/write_cache", "write through")
    return drive


def _small_spare(server: DrawnServer, random: Random) -> str:
    small = server.drive_bytes * random.choice([1, 2, 3]) // 4
    row = f'"name": "{server.spare}", "kname": "{server.spare}", "type": "disk", "size": '
    server.replace_text("lsblk", f"{row}{server.drive_bytes}", f"{row}{small}")
    return server.spare


def _flash_among_disks(server: DrawnServer, random: Random) -> str:
    drive = _pick(server, random)
    row = f'"name": "{drive}", "kname": "{drive}", "type": "disk", "size": {server.drive_bytes}, "rota": '
    server.replace_text("lsblk", f"{row}true", f"{row}false")
    server.set_queue(drive, "queue/rotational", 0)
    return "md0"


def _one_parity_thread(server: DrawnServer, random: Random) -> str:
    server.set_queue("md0", "md/group_thread_cnt", 0)
    return "md0"


def _slow_rebuild(server: DrawnServer, random: Random) -> str:
    server.set_queue("md0", "md/sync_speed_max", f"{random.choice([500, 1000, 5000])} (local)")
    return "md0"


def _other_level(server: DrawnServer, random: Random) -> str:
    other = {"5": "6", "6": "5", "10": "6"}[server.level]
    server.replace_text("mdadm", f"Raid Level : raid{server.level}", f"Raid Level : raid{other}")
    server.replace_text("lsblk", f'"type": "raid{server.level}"', f'"type": "raid{other}"')
    server.outputs["mdadm"] = server.outputs["mdadm"].replace("near=2", "left-symmetric")
    return "md0"


def _one_drive_less(server: DrawnServer, random: Random) -> str:
    drive = _pick(server, random)
    count = len(server.drives)
    server.outputs["mdadm"] = re.sub(rf"^.*active sync   /dev/{drive}\n", "", server.outputs["mdadm"], flags=re.M)
    for name, change in (("Raid Devices", count), ("Active Devices", count), ("Total Devices", count + 1),
                         ("Working Devices", count + 1)):  # fmt: skip
        server.replace_text("mdadm", f"{name} : {change}", f"{name} : {change - 1}")
    _clear_drive(server, drive)
    return "md0"


def _divide_drive(server: DrawnServer, drive: str, count: int, above: Sequence[str]) -> None:
    """Lists partitions of a drive in lsblk, with what lies above each."""
    document = json.loads(server.outputs["lsblk"])
    row = next(row for row in document["blockdevices"] if row["name"] == drive)
    size = server.drive_bytes // count
    (top,) = row["children"]
    tops = [top if name == "md0" else {**top, "name": name, "kname": name, "mountpoint": None, "fstype": None}
            for name in above]  # fmt: skip
    row["children"] = [
        {"name": f"{drive}{number}", "kname": f"{drive}{number}", "type": "part", "size": size, "rota": True,
         "start": 2048 + (number - 1) * size // 512, "phy-sec": 4096, "children": [each]}
        for number, each in enumerate(tops, start=1)
    ]  # fmt: skip
    server.outputs["lsblk"] = json.dumps(document)


def _drive_in_two_arrays(server: DrawnServer, random: Random) -> str:
    drive = _pick(server, random)
    others = [f"sdy{letter}" for letter in "abc"]
    text = server.outputs["mdadm"].replace("/dev/md0:", "/dev/md7:").replace("aaaa:bbbb", "eeee:ffff")
    rows = "".join(f"      {number}       8        16        {number}      active sync   /dev/{name}\n"
                   for number, name in enumerate([f"{drive}2", *others]))  # fmt: skip
    text = re.sub(r"(RaidDevice State\n)[\s\S]*", rf"\g<1>{rows}", text)
    text = re.sub(r"(Raid|Active) Devices : \d+", r"\1 Devices : 4", text)
    server.outputs["mdadm md7"] = re.sub(r"Raid Level : raid\d+", "Raid Level : raid5", text).replace("near=2", "left")
    server.outputs["mdadm"] = re.sub(rf"/dev/{drive}\n", f"/dev/{drive}1\n", server.outputs["mdadm"])
    _divide_drive(server, drive, 2, ["md0", "md7"])
    return drive


def _two_partitions_of_a_drive(server: DrawnServer, random: Random) -> str:
    first, second = random.sample(server.drives, 2)
    server.outputs["mdadm"] = re.sub(rf"/dev/{first}\n", f"/dev/{first}1\n", server.outputs["mdadm"])
    server.outputs["mdadm"] = re.sub(rf"/dev/{second}\n", f"/dev/{first}2\n", server.outputs["mdadm"])
    _divide_drive(server, first, 2, ["md0", "md0"])
    _clear_drive(server, second)
    return first


def _clear_drive(server: DrawnServer, drive: str) -> None:
    document = json.loads(server.outputs["lsblk"])
    for row in document["blockdevices"]:
        if row["name"] == drive:
            row["children"] = []
    server.outputs["lsblk"] = json.dumps(document)


def _old_partition_start(server: DrawnServer, random: Random) -> str:
    drive = _pick(server, random)
    start = random.choice([34, 63, 2047])
    server.outputs["sfdisk"] = (
        f'{{"partitiontable": {{"label": "gpt", "device": "/dev/{drive}", "unit": "sectors", "sectorsize": 512,'
        f' "partitions": [{{"node": "/dev/{drive}1", "start": {start}, "size": 1000000}}]}}}}'
    )
    return drive


def _inactive_array(server: DrawnServer, random: Random) -> str:
    state = random.choice(["clean, FAILED", "active, degraded, Not Started", "broken"])
    server.replace_text("mdadm", "State : clean", f"State : {state}")
    return "md0"


def _faulty_spare(server: DrawnServer, random: Random) -> str:
    server.replace_text("mdadm", f"spare   /dev/{server.spare}", f"faulty   /dev/{server.spare}")
    server.replace_text("mdadm", "Failed Devices : 0", "Failed Devices : 1")
    server.replace_text("mdadm", "Spare Devices : 1", "Spare Devices : 0")
    return "md0"


# ---- file systems


def _mount(old: str, *options: str) -> Plant:
    def plant(server: DrawnServer, random: Random) -> str:
        server.replace_text("findmnt", old, old + "".join(f",{random.choice(options)}" for _ in range(1)))
        return "/scratch"

    return plant


def _read_only(server: DrawnServer, random: Random) -> str:
    server.replace_text("findmnt", '"rw,', '"ro,')
    return "/scratch"


def _small_log_buffers(server: DrawnServer, random: Random) -> str:
    server.replace_text("findmnt", "logbsize=256k", f"logbsize={random.choice([16, 32])}k")
    return "/scratch"


def _mounted_with_other_stripe(server: DrawnServer, random: Random) -> str:
    width = server.plan.width // 512
    server.replace_text("findmnt", "noatime", f"noatime,sunit={width // 3},swidth={width // 3 * 4}")
    return "/scratch"


def _ext4_other_stripe(server: DrawnServer, random: Random) -> str:
    width = server.plan.width // server.plan.block
    server.replace_text("findmnt", f"stripe={width}", f"stripe={width + random.randint(1, 9)}")
    return "/scratch"


def _not_grown(server: DrawnServer, random: Random) -> str:
    plan = server.plan
    if plan.groups is not None:
        share = random.choice([0.5, 0.7, 0.9])
        server.replace_text("made", f"blocks={plan.groups.blocks},", f"blocks={int(plan.groups.blocks * share)},")
        server.replace_text("made", f"agcount={plan.groups.count}", f"agcount={int(plan.groups.count * share)}")
    return "/scratch"


def _xfs_version_4(server: DrawnServer, random: Random) -> str:
    server.replace_text("made", "crc=1        finobt=1", "crc=0        finobt=0")
    server.replace_text("made", "bigtime=1", "bigtime=0")
    return "/scratch"


def _large_directory_blocks(server: DrawnServer, random: Random) -> str:
    server.replace_text("made", "lazy-count=1", "lazy-count=0")
    return "/scratch"


def _ext4_with_errors(server: DrawnServer, random: Random) -> str:
    server.replace_text("made", "Filesystem state:         clean", "Filesystem state:         clean with errors")
    return "/scratch"


LOCAL_MISTAKES: list[Mistake] = [
    Mistake("one command of a drive at a time", "queue", _short_queue),
    Mistake("requests are not merged", "merge", _no_merges),
    Mistake("one write cache off", "write.?cache|unequal", _other_write_cache),
    Mistake("a spare that is too small", "spare", _small_spare),
    Mistake("flash among rotating drives", "unequal", _flash_among_disks, ("scheduler",)),
    Mistake("one thread for parity", "thread", _one_parity_thread, needs="parity"),
    Mistake("a rebuild of months", "rebuild", _slow_rebuild),
    Mistake("another RAID level", "planned", _other_level, (
            "unit does not fit the stripe", "width does not fit the stripe", "read-ahead too short",
            "stripe cache too small")),
    Mistake("an array of one drive less", "planned|width", _one_drive_less, ("width does not fit the stripe",)),
    Mistake("a drive in two arrays", "arrays|twice", _drive_in_two_arrays, ("unequal members of a stripe",)),
    Mistake("two partitions of a drive in an array", "twice|several members", _two_partitions_of_a_drive,
            ("unequal members of a stripe",)),
    Mistake("a partition of old tools", "aligned", _old_partition_start),
    Mistake("an array that failed", "optimal|degraded|FAILED", _inactive_array, ("degraded",)),
    Mistake("a spare that failed", "failed|faulty", _faulty_spare, ("no spare",)),
    Mistake("mounted without barriers", "mount option", _mount("noatime", "barrier=0", "nobarrier")),
    Mistake("all inodes in the first terabyte", "mount option", _mount("noatime", "inode32"), needs="xfs"),
    Mistake("synchronous directories", "mount option", _mount("noatime", "dirsync", "wsync")),
    Mistake("mounted read-only", "read-only", _read_only),
    Mistake("small buffers of the log", "logbsize|log buffer", _small_log_buffers, needs="xfs"),
    Mistake("mounted with another stripe", "stripe|unit|width", _mounted_with_other_stripe, needs="xfs"),
    Mistake("ext4 mounted with another stripe", "stripe", _ext4_other_stripe, needs="ext4"),
    Mistake("a file system that was not grown", "planned|unused|smaller", _not_grown, ("not as planned",), needs="xfs"),
    Mistake("XFS without checksums", "checksum|crc", _xfs_version_4, needs="xfs"),
    Mistake("XFS with counters in the superblock", "lazy|superblock", _large_directory_blocks, needs="xfs"),
    Mistake("ext4 with errors", "error", _ext4_with_errors, needs="ext4"),
]  # fmt: skip
