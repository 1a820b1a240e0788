# SPDX-License-Identifier: Apache-2.0
"""Mistakes with paths, pools and Lustre targets at random places of a drawn server, with the reason that a check must
give."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from random import Random

from drawn_layout_mistakes import Mistake
from drawn_servers import DrawnServer

# ---- multipath


def _edit_lun(server: DrawnServer, name: str, edit: Callable[[str], str]) -> None:
    parts = re.split(r"^(?=mpath)", server.outputs["multipath"], flags=re.M)
    server.outputs["multipath"] = "".join(edit(part) if part.startswith(name) else part for part in parts)


def _lun_with_half_of_paths(server: DrawnServer, random: Random) -> str:
    name = random.choice(server.luns)
    _edit_lun(server, name, lambda part: re.sub(r"^(\| `-|  `-) .*\n", "", part, flags=re.M))
    return f"dm-{server.luns.index(name) + 3}"


def _read_only_lun(server: DrawnServer, random: Random) -> str:
    name = random.choice(server.luns)
    _edit_lun(server, name, lambda part: part.replace("wp=rw", "wp=ro"))
    return f"dm-{server.luns.index(name) + 3}"


def _paths_of_other_sizes(server: DrawnServer, random: Random) -> str:
    name = random.choice(server.luns)
    path = f"sdz{'abcdefghijklmnopqrst'[4 * server.luns.index(name) + random.randrange(4)]}"
    server.set_queue(path, "queue/max_sectors_kb", random.choice([128, 256, 512]))
    return f"dm-{server.luns.index(name) + 3}"


def _all_luns_on_one_controller(server: DrawnServer, random: Random) -> str:
    host = random.choice("23")
    server.outputs["multipath"] = re.sub(r" [23]:0:0:", f" {host}:0:0:", server.outputs["multipath"])
    return "mpath"


def _mounted_path(server: DrawnServer, random: Random) -> str:
    path = f"sdz{random.choice('abcdefgh')}"
    server.replace_text("findmnt", "/dev/md0", f"/dev/{path}")
    server.outputs["made"] = server.outputs["made"].replace("/dev/md0 ", f"/dev/{path}")
    document = json.loads(server.outputs["lsblk"])
    for row in document["blockdevices"]:
        row["children"] = [top | {"fstype": None, "uuid": None, "mountpoint": None} for top in row["children"]]
    server.outputs["lsblk"] = json.dumps(document)
    return path


def _failed_path_that_answers(server: DrawnServer, random: Random) -> str:
    name = random.choice(server.luns)
    _edit_lun(server, name, lambda part: part.replace("active ready", "failed ready", 1))
    return f"dm-{server.luns.index(name) + 3}"


# ---- pools


def _sick_spare(server: DrawnServer, random: Random) -> str:
    server.replace_text("zpool", "sdzz      AVAIL", f"sdzz      {random.choice(['UNAVAIL', 'FAULTED', 'REMOVED'])}")
    return "tank"


def _sick_cache(server: DrawnServer, random: Random) -> str:
    server.replace_text("zpool", "nvme4n1   ONLINE", f"nvme4n1   {random.choice(['UNAVAIL', 'FAULTED'])}")
    return "tank"


def _fragmented_pool(server: DrawnServer, random: Random) -> str:
    percent = random.randint(65, 90)
    server.outputs["zpool"] = re.sub(r"fragmentation    \d+%", f"fragmentation    {percent}%", server.outputs["zpool"])
    return "tank"


def _suspended_pool(server: DrawnServer, random: Random) -> str:
    server.replace_text("zpool", " state: ONLINE", " state: SUSPENDED")
    return "tank"


# ---- Lustre


def _pick_ost(server: DrawnServer, random: Random) -> str:
    return random.choice(server.targets[1:])


def _no_management_node(server: DrawnServer, random: Random) -> str:
    target = random.choice(server.targets)
    server.replace_text(f"tunefs {target}", "mgsnode=10.0.0.1@o2ib:10.0.0.2@o2ib ", "")
    return target


def _other_management_node(server: DrawnServer, random: Random) -> str:
    target = _pick_ost(server, random)
    server.replace_text(
        f"tunefs {target}", "mgsnode=10.0.0.1@o2ib:10.0.0.2@o2ib", f"mgsnode=10.0.0.{random.randint(7, 99)}@o2ib"
    )
    return target


def _no_failover_node(server: DrawnServer, random: Random) -> str:
    target = random.choice(server.targets)
    text = server.outputs[f"tunefs {target}"]
    server.outputs[f"tunefs {target}"] = re.sub(r" failover.node=\S+", "", text)
    return target


def _doubled_index(server: DrawnServer, random: Random) -> str:
    first, second = random.sample(server.targets[1:], 2)
    text = server.outputs[f"tunefs {second}"]
    text = text.replace(second, first)
    server.outputs[f"tunefs {second}"] = re.sub(r"Index:      \d+", f"Index:      {int(first[-4:], 16)}", text)
    return first


def _never_registered(server: DrawnServer, random: Random) -> str:
    target = _pick_ost(server, random)
    server.replace_text(f"tunefs {target}", "0x1002", "0x1062")
    server.replace_text(f"tunefs {target}", "(OST no_primnode", "(OST first_time update no_primnode")
    return target


def _goes_on_after_errors(server: DrawnServer, random: Random) -> str:
    target = random.choice(server.targets)
    server.replace_text(f"tunefs {target}", "errors=remount-ro", "errors=continue")
    return target


def _management_server_down(server: DrawnServer, random: Random) -> str:
    server.replace_text("lctl dl", "1 UP mgs", "1 IN mgs")
    return "MGS"


def _metadata_target_down(server: DrawnServer, random: Random) -> str:
    server.replace_text("lctl dl", "UP mdt", f"{random.choice(['IN', 'ST'])} mdt")
    return "MDT0000"


def _little_dirty_data(server: DrawnServer, random: Random) -> str:
    target = _pick_ost(server, random)
    server.replace_text(
        "lctl", f"{target}-osc-ffff8.max_dirty_mb=512", f"{target}-osc-ffff8.max_dirty_mb={random.choice([0, 1, 2])}"
    )
    return target


def _no_read_ahead(server: DrawnServer, random: Random) -> str:
    server.replace_text("lctl", "max_read_ahead_mb=256", f"max_read_ahead_mb={random.choice([0, 1])}")
    return "fs1"


def _one_other_target(server: DrawnServer, random: Random) -> str:
    target = _pick_ost(server, random)
    server.replace_text("lctl", f"{target}-osc-ffff8.max_rpcs_in_flight=16", f"{target}-osc-ffff8.max_rpcs_in_flight=8")
    return target


def _one_metadata_request(server: DrawnServer, random: Random) -> str:
    server.replace_text("lctl", "mdc-ffff8.max_rpcs_in_flight=16", "mdc-ffff8.max_rpcs_in_flight=1")
    return "MDT0000"


def _files_begin_on_one_target(server: DrawnServer, random: Random) -> str:
    server.replace_text("getstripe", "stripe_offset: -1", f"stripe_offset: {random.randint(0, 3)}")
    return "/fs1/work"


def _full_target(server: DrawnServer, random: Random) -> str:
    target = _pick_ost(server, random)
    percent = random.randint(93, 99)
    server.outputs["lfs df"] = re.sub(
        rf"({target}_UUID \d+ \d+ \d+ ) \d+%", rf"\g<1> {percent}%", server.outputs["lfs df"]
    )
    return target


def _lost_target(server: DrawnServer, random: Random) -> str:
    target = _pick_ost(server, random)
    server.outputs["lfs df"] = re.sub(
        rf"{target}_UUID .*", f"{target}             : inactive device", server.outputs["lfs df"]
    )
    return target


TARGET_MISTAKES: list[Mistake] = [
    Mistake("a LUN with half of the paths", "path", _lun_with_half_of_paths),
    Mistake("a write-protected LUN", "write.?protect|read-only", _read_only_lun),
    Mistake("paths that take other requests", "max_sectors.*paths", _paths_of_other_sizes),
    Mistake("all LUNs on one adapter", "adapter", _all_luns_on_one_controller),
    Mistake("a path is mounted", "path", _mounted_path, ("not as planned",)),
    Mistake("a path that answers, but failed", "path failed", _failed_path_that_answers, ("one path for all",)),
    Mistake("a spare of a pool that is gone", "spare", _sick_spare),
    Mistake("a cache of a pool that failed", "degraded.*nvme4n1|cache", _sick_cache),
    Mistake("a fragmented pool", "fragment", _fragmented_pool),
    Mistake("a pool that is suspended", "suspended", _suspended_pool),
    Mistake("a target without management server", "management|mgsnode", _no_management_node),
    Mistake("a target of another management server", "management|mgsnode", _other_management_node),
    Mistake("a target without failover", "failover", _no_failover_node),
    Mistake("an index used twice", "index|twice", _doubled_index),
    Mistake("a target that never registered", "registered|first_time|first time", _never_registered),
    Mistake("a target that goes on after errors", "errors", _goes_on_after_errors),
    Mistake("a management server that is down", "inactive", _management_server_down),
    Mistake("a metadata target that is down", "inactive", _metadata_target_down),
    Mistake("little dirty data for a target", "max_dirty_mb", _little_dirty_data, ("targets differ",)),
    Mistake("no read-ahead of clients", "read.?ahead", _no_read_ahead),
    Mistake("one target with another setting", "differ", _one_other_target),
    Mistake("one metadata request in flight", "max_rpcs_in_flight", _one_metadata_request, ("parameter too small",)),
    Mistake("all files begin on one target", "offset|begin", _files_begin_on_one_target),
    Mistake("a target that is full", "full", _full_target),
    Mistake("a target that is lost", "inactive", _lost_target),
]  # fmt: skip
