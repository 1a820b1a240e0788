# SPDX-License-Identifier: Apache-2.0
"""More mistakes at random places of a drawn server, invented after those of `drawn_layout_mistakes` were all named."""

from __future__ import annotations

import json
import re
from random import Random

from drawn_layout_mistakes import Mistake
from drawn_servers import DrawnServer


def _other_chunk(server: DrawnServer, random: Random) -> str:
    chunk = re.search(r"Chunk Size : (\d+)K", server.outputs["mdadm"])
    assert chunk is not None
    other = random.choice([size for size in (64, 128, 256, 512, 1024) if size != int(chunk[1])])
    server.replace_text("mdadm", chunk[0], f"Chunk Size : {other}K")
    server.outputs["lsblk"] = re.sub(
        r'"min-io": \d+, "opt-io": \d+', '"min-io": 512, "opt-io": 0', server.outputs["lsblk"]
    )
    return "md0"


def _old_log(server: DrawnServer, random: Random) -> str:
    server.outputs["made"] = re.sub(r"(log  [\s\S]*)version=2", r"\1version=1", server.outputs["made"])
    return "/scratch"


def _reserved_blocks(server: DrawnServer, random: Random) -> str:
    blocks = int(re.findall(r"Block count: +(\d+)", server.outputs["made"])[0])
    share = random.choice([5, 10])
    server.outputs["made"] += f"Reserved block count:     {blocks * share // 100}\n"
    return "/scratch"


def _stale_data(server: DrawnServer, random: Random) -> str:
    server.replace_text("findmnt", "noatime", "noatime,data=writeback")
    return "/scratch"


def _covered_mount(server: DrawnServer, random: Random) -> str:
    document = json.loads(server.outputs["findmnt"])
    (row,) = document["filesystems"]
    row["children"] = [{"target": "/scratch", "source": "/dev/sdq1", "fstype": "ext4", "options": "rw,relatime"}]
    server.outputs["findmnt"] = json.dumps(document)
    return "/scratch"


def _no_recovery(server: DrawnServer, random: Random) -> str:
    server.replace_text("findmnt", '"rw,', '"ro,norecovery,')
    return "/scratch"


def _no_active_group(server: DrawnServer, random: Random) -> str:
    name = random.choice(server.luns)
    parts = re.split(r"^(?=mpath)", server.outputs["multipath"], flags=re.M)
    server.outputs["multipath"] = "".join(
        part.replace("status=active", "status=enabled") if part.startswith(name) else part for part in parts
    )
    return f"dm-{server.luns.index(name) + 3}"


def _unsafe_pool(server: DrawnServer, random: Random) -> str:
    server.outputs["zpool"] += "tank  sync      disabled     local\n"
    return "tank"


def _deduplicated_pool(server: DrawnServer, random: Random) -> str:
    server.outputs["zpool"] += "tank  dedup      on     local\n"
    return "tank"


def _scrub_with_errors(server: DrawnServer, random: Random) -> str:
    errors = random.randint(1, 40)
    scan = f"  scan: scrub repaired 0B in 05:12:33 with {errors} errors on Sun Nov  8 05:36:34 2026\nconfig:"
    server.replace_text("zpool", "config:", scan)
    return "tank"


def _other_file_system_name(server: DrawnServer, random: Random) -> str:
    target = random.choice(server.targets[1:])
    text = server.outputs[f"tunefs {target}"]
    server.outputs[f"tunefs {target}"] = text.replace("fs1", "sf1")
    return target.replace("fs1", "sf1")


def _forgotten_writeconf(server: DrawnServer, random: Random) -> str:
    target = random.choice(server.targets)
    server.replace_text(f"tunefs {target}", "no_primnode", "writeconf no_primnode")
    return target


def _other_backend(server: DrawnServer, random: Random) -> str:
    target = random.choice(server.targets[1:])
    server.replace_text(f"tunefs {target}", "Mount type: ldiskfs", "Mount type: zfs")
    return target


def _forgotten_degraded(server: DrawnServer, random: Random) -> str:
    target = random.choice(server.targets[1:])
    server.outputs["lctl"] += f"obdfilter.{target}.degraded=1\n"
    return target


def _no_new_objects(server: DrawnServer, random: Random) -> str:
    target = random.choice(server.targets[1:])
    server.outputs["lctl"] += f"osp.{target}-osc-MDT0000.max_create_count=0\n"
    return target


def _small_client_cache(server: DrawnServer, random: Random) -> str:
    server.replace_text("lctl", "max_cached_mb=128000", f"max_cached_mb={random.choice([1, 4, 32])}")
    return "fs1"


def _uneven_use(server: DrawnServer, random: Random) -> str:
    target = random.choice(server.targets[1:])
    server.outputs["lfs df"] = re.sub(rf"({target}_UUID \d+ \d+ \d+ ) \d+%", rf"\g<1> {random.randint(84, 89)}%",
                                      server.outputs["lfs df"])  # fmt: skip
    return target


def _no_inodes(server: DrawnServer, random: Random) -> str:
    percent = random.randint(94, 99)
    lines = ["UUID                      Inodes       IUsed       IFree IUse% Mounted on",
             f"fs1-MDT0000_UUID       1000000      {10000 * percent}       1000  {percent}% /fs1[MDT:0]"]  # fmt: skip
    server.outputs["lfs df -i"] = "\n".join(lines) + "\n"
    return "fs1-MDT0000"


def _frozen_array(server: DrawnServer, random: Random) -> str:
    server.set_queue("md0", "md/sync_action", "frozen")
    return "md0"


def _huge_read_ahead(server: DrawnServer, random: Random) -> str:
    server.set_queue("md0", "queue/read_ahead_kb", random.choice([524288, 1048576, 4194304]))
    return "md0"


def _short_timeout(server: DrawnServer, random: Random) -> str:
    drive = random.choice(server.drives)
    server.set_queue(drive, "device/timeout", random.choice([1, 3, 5]))
    return drive


def _offline_drive(server: DrawnServer, random: Random) -> str:
    drive = random.choice([*server.drives, server.spare])
    server.set_queue(drive, "device/state", random.choice(["offline", "blocked", "transport-offline"]))
    return drive


def _old_metadata(server: DrawnServer, random: Random) -> str:
    server.replace_text("mdadm", "Version : 1.2", "Version : 0.90")
    return "md0"


def _parity_on_one_drive(server: DrawnServer, random: Random) -> str:
    server.replace_text("mdadm", "left-symmetric", random.choice(["parity-last", "parity-first"]))
    return "md0"


def _half_of_each_drive(server: DrawnServer, random: Random) -> str:
    part = server.drive_bytes // random.choice([2, 4])
    server.replace_text(
        "mdadm",
        "      Raid Devices",
        f"     Used Dev Size : {part // 1024} ({part / 2**30:.2f} GiB)\n      Raid Devices",
    )
    size = server.plan.capacity or 0
    server.outputs["lsblk"] = server.outputs["lsblk"].replace(f'"size": {size},', f'"size": {size // 2},')
    return "md0"


def _other_kind(server: DrawnServer, random: Random) -> str:
    other = "ext4" if server.plan.table.kind == "xfs" else "xfs"
    for output in ("findmnt", "lsblk"):
        server.outputs[output] = server.outputs[output].replace(f'"{server.plan.table.kind}"', f'"{other}"')
    del server.outputs["made"]
    server.outputs["findmnt"] = re.sub(r'"rw,[^"]*"', '"rw,noatime"', server.outputs["findmnt"])
    return "/scratch"


LATER_MISTAKES: list[Mistake] = [
    Mistake("an array made again with another chunk", "planned|unit", _other_chunk, (
        "unit does not fit the stripe", "width does not fit the stripe", "not as planned", "read-ahead too short",
        "requests are cut")),
    Mistake("a log of version 1", "log", _old_log, needs="xfs"),
    Mistake("space reserved for root", "reserved", _reserved_blocks, needs="ext4"),
    Mistake("old data after a crash", "mount option", _stale_data, needs="ext4"),
    Mistake("a mount that hides another one", "mounted over", _covered_mount, ("not as planned",)),
    Mistake("mounted without recovery", "norecovery", _no_recovery, ("mounted read-only",), needs="xfs"),
    Mistake("no path group is active", "no active path", _no_active_group),
    Mistake("a pool that acknowledges early", "sync", _unsafe_pool),
    Mistake("a pool that deduplicates", "dedup", _deduplicated_pool),
    Mistake("a scrub with errors", "scrub", _scrub_with_errors),
    Mistake("a target with another file system name", "file system|fsname", _other_file_system_name),
    Mistake("a forgotten writeconf", "writeconf", _forgotten_writeconf),
    Mistake("a target of another backend", "ldiskfs|zfs", _other_backend),
    Mistake("a target that is marked as degraded", "degraded", _forgotten_degraded),
    Mistake("a target that gets no new objects", "new objects|max_create_count", _no_new_objects),
    Mistake("a small cache of clients", "max_cached_mb", _small_client_cache),
    Mistake("a target fuller than the others", "full", _uneven_use),
    Mistake("a metadata target without inodes", "inode", _no_inodes),
    Mistake("an array that may not rebuild", "frozen", _frozen_array),
    Mistake("a huge read-ahead", "read.?ahead", _huge_read_ahead),
    Mistake("a short timeout of commands", "timeout", _short_timeout),
    Mistake("a drive that is offline", "offline|blocked", _offline_drive),
    Mistake("metadata of old arrays", "0.90|metadata", _old_metadata),
    Mistake("parity on one drive", "parity", _parity_on_one_drive, needs="parity"),
    Mistake("half of each drive unused", "unused|half", _half_of_each_drive, ("not as planned",)),
    Mistake("another kind of file system", "planned is", _other_kind),
]  # fmt: skip
