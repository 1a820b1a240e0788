# SPDX-License-Identifier: Apache-2.0
"""Mistakes with paths and pools of a drawn server, with the reason that a check must give."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from random import Random

from drawn_servers import DrawnServer
from layout_mistake import Mistake, Plant


def _edit_lun(server: DrawnServer, multipath_name: str, edit: Callable[[str], str]) -> None:
    parts = re.split(r"^(?=mpath)", server.outputs["multipath"], flags=re.M)
    server.outputs["multipath"] = "".join(edit(part) if part.startswith(multipath_name) else part for part in parts)


def _plant_lun_with_half_of_paths(server: DrawnServer, random: Random) -> str:
    name = random.choice(server.luns)
    _edit_lun(server, name, lambda part: re.sub(r"^(\| `-|  `-) .*\n", "", part, flags=re.M))
    return f"dm-{server.luns.index(name) + 3}"


def _plant_read_only_lun(server: DrawnServer, random: Random) -> str:
    name = random.choice(server.luns)
    _edit_lun(server, name, lambda part: part.replace("wp=rw", "wp=ro"))
    return f"dm-{server.luns.index(name) + 3}"


def _plant_paths_of_other_sizes(server: DrawnServer, random: Random) -> str:
    name = random.choice(server.luns)
    path = f"sdz{'abcdefghijklmnopqrst'[4 * server.luns.index(name) + random.randrange(4)]}"
    server.set_queue(path, "queue/max_sectors_kb", random.choice([128, 256, 512]))
    return f"dm-{server.luns.index(name) + 3}"


def _plant_all_luns_on_one_controller(server: DrawnServer, random: Random) -> str:
    host = random.choice("23")
    server.outputs["multipath"] = re.sub(r" [23]:0:0:", f" {host}:0:0:", server.outputs["multipath"])
    return "mpath"


def _plant_mounted_path(server: DrawnServer, random: Random) -> str:
    path = f"sdz{random.choice('abcdefgh')}"
    server.replace_text("findmnt", "/dev/md0", f"/dev/{path}")
    server.outputs["made"] = server.outputs["made"].replace("/dev/md0 ", f"/dev/{path}")
    document = json.loads(server.outputs["lsblk"])
    for row in document["blockdevices"]:
        row["children"] = [top | {"fstype": None, "uuid": None, "mountpoint": None} for top in row["children"]]
    server.outputs["lsblk"] = json.dumps(document)
    return path


def _plant_failed_path_that_answers(server: DrawnServer, random: Random) -> str:
    name = random.choice(server.luns)
    _edit_lun(server, name, lambda part: part.replace("active ready", "failed ready", 1))
    return f"dm-{server.luns.index(name) + 3}"


def _plant_sick_spare(server: DrawnServer, random: Random) -> str:
    server.replace_text("zpool", "sdzz      AVAIL", f"sdzz      {random.choice(['UNAVAIL', 'FAULTED', 'REMOVED'])}")
    return "tank"


def _plant_sick_cache(server: DrawnServer, random: Random) -> str:
    server.replace_text("zpool", "nvme4n1   ONLINE", f"nvme4n1   {random.choice(['UNAVAIL', 'FAULTED'])}")
    return "tank"


def _plant_fragmented_pool(server: DrawnServer, random: Random) -> str:
    percent = random.randint(65, 90)
    server.outputs["zpool"] = re.sub(r"fragmentation    \d+%", f"fragmentation    {percent}%", server.outputs["zpool"])
    return "tank"


def _plant_suspended_pool(server: DrawnServer, random: Random) -> str:
    server.replace_text("zpool", " state: ONLINE", " state: SUSPENDED")
    return "tank"


def _plant_no_active_group(server: DrawnServer, random: Random) -> str:
    name = random.choice(server.luns)
    parts = re.split(r"^(?=mpath)", server.outputs["multipath"], flags=re.M)
    server.outputs["multipath"] = "".join(
        part.replace("status=active", "status=enabled") if part.startswith(name) else part for part in parts
    )
    return f"dm-{server.luns.index(name) + 3}"


def _plant_unsafe_pool(server: DrawnServer, random: Random) -> str:
    server.outputs["zpool"] += "tank  sync      disabled     local\n"
    return "tank"


def _plant_deduplicated_pool(server: DrawnServer, random: Random) -> str:
    server.outputs["zpool"] += "tank  dedup      on     local\n"
    return "tank"


def _plant_scrub_with_errors(server: DrawnServer, random: Random) -> str:
    errors = random.randint(1, 40)
    server.replace_text("zpool", "with 0 errors", f"with {errors} errors")
    return "tank"


def _add_property(text: str) -> Plant:
    def plant(server: DrawnServer, random: Random) -> str:
        server.outputs["zpool"] += f"{text}\n"
        return "tank"

    return plant


def _plant_spare_in_use(server: DrawnServer, random: Random) -> str:
    server.replace_text("zpool", "sdzz      AVAIL", "sdzz      INUSE     currently in use")
    return "tank"


def _plant_other_sectors(server: DrawnServer, random: Random) -> str:
    status = "status: One or more devices are configured to use a non-native block size.\n\tExpect reduced performance."
    server.replace_text("zpool", "config:", f"{status}\nconfig:")
    return "tank"


POOL_MISTAKES: list[Mistake] = [
    Mistake("a LUN with half of the paths", "path", _plant_lun_with_half_of_paths),
    Mistake("a write-protected LUN", "write.?protect|read-only", _plant_read_only_lun),
    Mistake("paths that take other requests", "max_sectors.*paths", _plant_paths_of_other_sizes),
    Mistake("all LUNs on one adapter", "adapter", _plant_all_luns_on_one_controller),
    Mistake("a path is mounted", "path", _plant_mounted_path, ("not as planned",)),
    Mistake("a path that answers, but failed", "path failed", _plant_failed_path_that_answers, ("one path for all",)),
    Mistake("a spare of a pool that is gone", "spare", _plant_sick_spare),
    Mistake("a cache of a pool that failed", "degraded.*nvme4n1|cache", _plant_sick_cache),
    Mistake("a fragmented pool", "fragment", _plant_fragmented_pool),
    Mistake("a pool that is suspended", "suspended", _plant_suspended_pool),
    Mistake("no path group is active", "no active path", _plant_no_active_group),
    Mistake("a pool that acknowledges early", "sync", _plant_unsafe_pool),
    Mistake("a pool that deduplicates", "dedup", _plant_deduplicated_pool),
    Mistake("a scrub with errors", "scrub", _plant_scrub_with_errors),
    Mistake("a pool whose writes all wait", "sync", _add_property("tank  sync      always     local")),
    Mistake("a pool that is not mounted", "not mounted|mounted", _add_property(
            "tank  mountpoint  /tank  default\ntank  mounted     no     -")),
    Mistake("a spare that is in use", "spare", _plant_spare_in_use),
    Mistake("a pool without checksums", "checksum", _add_property("tank  checksum  off     local")),
    Mistake("sectors of another size", "block size|sector", _plant_other_sectors),
]  # fmt: skip
