# SPDX-License-Identifier: Apache-2.0
"""Mistakes with arrays, volumes and drives of a drawn server, with the reason that a check must give."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from random import Random
from typing import Any

from drawn_servers import DrawnServer
from layout_mistake import Mistake


def _pick(server: DrawnServer, random: Random) -> str:
    return random.choice(server.drives)


def _plant_short_queue(server: DrawnServer, random: Random) -> str:
    drive = _pick(server, random)
    server.set_queue(drive, "device/queue_depth", random.choice([1, 2]))
    return drive


def _plant_no_merges(server: DrawnServer, random: Random) -> str:
    drive = _pick(server, random)
    server.set_queue(drive, "queue/nomerges", random.choice([1, 2]))
    return drive


def _plant_other_write_cache(server: DrawnServer, random: Random) -> str:
    drive = _pick(server, random)
    server.set_queue(drive, "queue/write_cache", "write through")
    return drive


def _plant_small_spare(server: DrawnServer, random: Random) -> str:
    small = server.drive_bytes * random.choice([1, 2, 3]) // 4
    row = f'"name": "{server.spare}", "kname": "{server.spare}", "type": "disk", "size": '
    server.replace_text("lsblk", f"{row}{server.drive_bytes}", f"{row}{small}")
    return server.spare


def _plant_flash_among_disks(server: DrawnServer, random: Random) -> str:
    drive = _pick(server, random)
    row = f'"name": "{drive}", "kname": "{drive}", "type": "disk", "size": {server.drive_bytes}, "rota": '
    server.replace_text("lsblk", f"{row}true", f"{row}false")
    server.set_queue(drive, "queue/rotational", 0)
    return "md0"


def _plant_one_parity_thread(server: DrawnServer, random: Random) -> str:
    server.set_queue("md0", "md/group_thread_cnt", 0)
    return "md0"


def _plant_slow_rebuild(server: DrawnServer, random: Random) -> str:
    server.set_queue("md0", "md/sync_speed_max", f"{random.choice([500, 1000, 5000])} (local)")
    return "md0"


def _plant_other_level(server: DrawnServer, random: Random) -> str:
    other = {"5": "6", "6": "5", "10": "6"}[server.level]
    server.replace_text("mdadm", f"Raid Level : raid{server.level}", f"Raid Level : raid{other}")
    server.replace_text("lsblk", f'"type": "raid{server.level}"', f'"type": "raid{other}"')
    server.outputs["mdadm"] = server.outputs["mdadm"].replace("near=2", "left-symmetric")
    return "md0"


def _plant_one_drive_less(server: DrawnServer, random: Random) -> str:
    drive = _pick(server, random)
    count = len(server.drives)
    server.outputs["mdadm"] = re.sub(rf"^.*active sync   /dev/{drive}\n", "", server.outputs["mdadm"], flags=re.M)
    for name, change in (("Raid Devices", count), ("Active Devices", count), ("Total Devices", count + 1),
                         ("Working Devices", count + 1)):  # fmt: skip
        server.replace_text("mdadm", f"{name} : {change}", f"{name} : {change - 1}")
    _clear_drive(server, drive)
    return "md0"


def _divide_drive(server: DrawnServer, drive: str, part_count: int, above: Sequence[str]) -> None:
    """Lists partitions of a drive in lsblk, with what lies above each."""
    document = json.loads(server.outputs["lsblk"])
    row = next(row for row in document["blockdevices"] if row["name"] == drive)
    size = (server.drive_bytes - (2 << 20)) // part_count >> 20 << 20
    (top,) = row["children"]
    tops = [top if name == "md0" else {**top, "name": name, "kname": name, "mountpoint": None, "fstype": None}
            for name in above]  # fmt: skip
    row["children"] = [
        {"name": f"{drive}{number}", "kname": f"{drive}{number}", "type": "part", "size": size, "rota": True,
         "start": 2048 + (number - 1) * size // 512, "phy-sec": 4096, "children": [each]}
        for number, each in enumerate(tops, start=1)
    ]  # fmt: skip
    server.outputs["lsblk"] = json.dumps(document)


def _plant_drive_in_two_arrays(server: DrawnServer, random: Random) -> str:
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


def _plant_two_partitions_of_a_drive(server: DrawnServer, random: Random) -> str:
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


def _plant_old_partition_start(server: DrawnServer, random: Random) -> str:
    drive = _pick(server, random)
    start = random.choice([34, 63, 2047])
    server.outputs["sfdisk"] = (
        f'{{"partitiontable": {{"label": "gpt", "device": "/dev/{drive}", "unit": "sectors", "sectorsize": 512,'
        f' "partitions": [{{"node": "/dev/{drive}1", "start": {start}, "size": 1000000}}]}}}}'
    )
    return drive


def _plant_inactive_array(server: DrawnServer, random: Random) -> str:
    state = random.choice(["clean, FAILED", "active, degraded, Not Started", "broken"])
    server.replace_text("mdadm", "State : clean", f"State : {state}")
    return "md0"


def _plant_faulty_spare(server: DrawnServer, random: Random) -> str:
    server.replace_text("mdadm", f"spare   /dev/{server.spare}", f"faulty   /dev/{server.spare}")
    server.replace_text("mdadm", "Failed Devices : 0", "Failed Devices : 1")
    server.replace_text("mdadm", "Spare Devices : 1", "Spare Devices : 0")
    return "md0"


def _plant_other_chunk(server: DrawnServer, random: Random) -> str:
    chunk = re.search(r"Chunk Size : (\d+)K", server.outputs["mdadm"])
    assert chunk is not None
    other = random.choice([size for size in (64, 128, 256, 512, 1024) if size != int(chunk[1])])
    server.replace_text("mdadm", chunk[0], f"Chunk Size : {other}K")
    server.outputs["lsblk"] = re.sub(
        r'"min-io": \d+, "opt-io": \d+', '"min-io": 512, "opt-io": 0', server.outputs["lsblk"]
    )
    return "md0"


def _plant_frozen_array(server: DrawnServer, random: Random) -> str:
    server.set_queue("md0", "md/sync_action", "frozen")
    return "md0"


def _plant_huge_read_ahead(server: DrawnServer, random: Random) -> str:
    server.set_queue("md0", "queue/read_ahead_kb", random.choice([524288, 1048576, 4194304]))
    return "md0"


def _plant_short_timeout(server: DrawnServer, random: Random) -> str:
    drive = random.choice(server.drives)
    server.set_queue(drive, "device/timeout", random.choice([1, 3, 5]))
    return drive


def _plant_offline_drive(server: DrawnServer, random: Random) -> str:
    drive = random.choice([*server.drives, server.spare])
    server.set_queue(drive, "device/state", random.choice(["offline", "blocked", "transport-offline"]))
    return drive


def _plant_old_metadata(server: DrawnServer, random: Random) -> str:
    server.replace_text("mdadm", "Version : 1.2", "Version : 0.90")
    return "md0"


def _plant_parity_on_one_drive(server: DrawnServer, random: Random) -> str:
    server.replace_text("mdadm", "left-symmetric", random.choice(["parity-last", "parity-first"]))
    return "md0"


def _plant_half_of_each_drive(server: DrawnServer, random: Random) -> str:
    part = server.drive_bytes // random.choice([2, 4])
    server.replace_text(
        "mdadm",
        "      Raid Devices",
        f"     Used Dev Size : {part // 1024} ({part / 2**30:.2f} GiB)\n      Raid Devices",
    )
    size = server.plan.capacity or 0
    server.outputs["lsblk"] = server.outputs["lsblk"].replace(f'"size": {size},', f'"size": {size // 2},')
    return "md0"


def _edit_drive(server: DrawnServer, drive: str, **values: Any) -> None:
    document = json.loads(server.outputs["lsblk"])
    next(row for row in document["blockdevices"] if row["name"] == drive).update(values)
    server.outputs["lsblk"] = json.dumps(document)


def _plant_stopped_reshape(server: DrawnServer, random: Random) -> str:
    server.set_queue("md0", "md/reshape_position", random.randint(10**6, 10**9))
    return "md0"


def _plant_small_bitmap_chunks(server: DrawnServer, random: Random) -> str:
    server.set_queue("md0", "md/bitmap/chunksize", random.choice([4096, 65536]))
    return "md0"


def _plant_copies_that_differ(server: DrawnServer, random: Random) -> str:
    server.set_queue("md0", "md/mismatch_cnt", random.choice([128, 4096, 10**6]))
    return "md0"


def _print_volume(server: DrawnServer, devices: str, attributes: str) -> None:
    segment = {"lv_name": "work", "vg_name": "vg0", "lv_attr": attributes, "stripes": "2", "stripe_size": "1048576",
               "seg_size": "1099511627776", "devices": devices}  # fmt: skip
    server.outputs["lvs"] = json.dumps({"report": [{"seg": [segment]}]})


def _plant_volume_twice_on_a_drive(server: DrawnServer, random: Random) -> str:
    drive = f"sdy{random.choice('abcdef')}"
    _print_volume(server, f"/dev/{drive}(0),/dev/{drive}(262144)", "-wi-ao----")
    return "vg0-work"


def _plant_suspended_volume(server: DrawnServer, random: Random) -> str:
    _print_volume(server, "/dev/sdya(0),/dev/sdyb(0)", "-wi-s-----")
    return "vg0-work"


def _plant_cloned_file_system(server: DrawnServer, random: Random) -> str:
    _edit_drive(server, server.spare, fstype=server.plan.table.kind, uuid="1111")
    return server.spare


def _plant_drive_seen_twice(server: DrawnServer, random: Random) -> str:
    first, second = random.sample(server.drives, 2)
    for drive in (*server.drives, server.spare):
        _edit_drive(server, drive, serial=f"WD-{first if drive == second else drive}")
    return second


def _plant_misaligned_drive(server: DrawnServer, random: Random) -> str:
    drive = random.choice(server.drives)
    _edit_drive(server, drive, alignment=3584)
    return drive


ARRAY_MISTAKES: list[Mistake] = [
    Mistake("one command of a drive at a time", "queue", _plant_short_queue),
    Mistake("requests are not merged", "merge", _plant_no_merges),
    Mistake("one write cache off", "write.?cache|unequal", _plant_other_write_cache),
    Mistake("a spare that is too small", "spare", _plant_small_spare),
    Mistake("flash among rotating drives", "unequal", _plant_flash_among_disks, ("scheduler",)),
    Mistake("one thread for parity", "thread", _plant_one_parity_thread, needs="parity"),
    Mistake("a rebuild of months", "rebuild", _plant_slow_rebuild),
    Mistake("another RAID level", "planned", _plant_other_level, (
            "unit does not fit the stripe", "width does not fit the stripe", "read-ahead too short",
            "stripe cache too small")),
    Mistake("an array of one drive less", "planned|width", _plant_one_drive_less, ("width does not fit the stripe",)),
    Mistake("a drive in two arrays", "arrays|twice", _plant_drive_in_two_arrays, ("unequal members of a stripe",)),
    Mistake("two partitions of a drive in an array", "twice|several members", _plant_two_partitions_of_a_drive,
            ("unequal members of a stripe",)),
    Mistake("a partition of old tools", "aligned", _plant_old_partition_start),
    Mistake("an array that failed", "optimal|degraded|FAILED", _plant_inactive_array, ("degraded",)),
    Mistake("a spare that failed", "failed|faulty", _plant_faulty_spare, ("no spare", "not as planned")),
    Mistake("an array made again with another chunk", "planned|unit", _plant_other_chunk, (
        "unit does not fit the stripe", "width does not fit the stripe", "not as planned", "read-ahead too short",
        "requests are cut")),
    Mistake("an array that may not rebuild", "frozen", _plant_frozen_array),
    Mistake("a huge read-ahead", "read.?ahead", _plant_huge_read_ahead),
    Mistake("a short timeout of commands", "timeout", _plant_short_timeout),
    Mistake("a drive that is offline", "offline|blocked", _plant_offline_drive),
    Mistake("metadata of old arrays", "0.90|metadata", _plant_old_metadata),
    Mistake("parity on one drive", "parity", _plant_parity_on_one_drive, needs="parity"),
    Mistake("half of each drive unused", "unused|half", _plant_half_of_each_drive,
            ("not as planned", "larger than its device")),
    Mistake("a reshape that stopped", "reshape", _plant_stopped_reshape, needs="parity"),
    Mistake("a volume twice on a drive", "twice", _plant_volume_twice_on_a_drive, ("unequal members of a stripe",)),
    Mistake("a file system that is there twice", "uuid", _plant_cloned_file_system),
    Mistake("a drive that is listed twice", "serial|twice", _plant_drive_seen_twice),
    Mistake("small chunks of the bitmap", "bitmap", _plant_small_bitmap_chunks),
    Mistake("a suspended volume", "suspended", _plant_suspended_volume),
    Mistake("copies that differ", "mismatch", _plant_copies_that_differ),
    Mistake("a drive with shifted sectors", "align", _plant_misaligned_drive),
]  # fmt: skip
