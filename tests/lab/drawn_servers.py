# SPDX-License-Identifier: Apache-2.0
"""Storage servers of random geometry: the planner lays them out, and this prints what their tools would say."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

from sonde.design.layout.check import check_layout
from sonde.design.layout.commands import list_mount_options
from sonde.design.layout.faults import LayoutCheck
from sonde.design.layout.file_system_layout import FileSystemLayout
from sonde.design.layout.live.joining import join_observations
from sonde.design.layout.live.observations import ObservedStorage, merge_observations
from sonde.design.layout.live.saved_output import read_saved_output
from sonde.design.layout.plan import plan_layout
from sonde.design.layout.written_attributes import WrittenAttribute, list_written_attributes
from sonde.design.layout.xfs import compute_log_unit
from sonde.model.system import make_system

_TIB = 2**40
_GIB = 2**30
_PARITY = {"5": 1, "6": 2}


@dataclass
class DrawnServer:
    """A server and what its tools print. `drives` are the members of its array, `luns` its multipath devices."""

    plan: FileSystemLayout
    level: str
    drives: list[str]
    spare: str
    drive_bytes: int
    luns: list[str] = field(default_factory=list)
    targets: list[str] = field(default_factory=list)
    outputs: dict[str, str] = field(default_factory=dict)
    written: tuple[WrittenAttribute, ...] = ()

    def replace_text(self, output: str, old: str, new: str, count: int = -1) -> None:
        """Replaces a text of one output, which must be there."""
        assert old in self.outputs[output], (output, old)
        self.outputs[output] = self.outputs[output].replace(old, new, count)

    def set_queue(self, disk: str, attribute: str, value: object) -> None:
        """Sets one value of /sys/block; adds it where the server does not print it."""
        beginning = f"/sys/block/{disk}/{attribute}:"
        lines = [line for line in self.outputs["sysfs"].splitlines() if not line.startswith(beginning)]
        self.outputs["sysfs"] = "\n".join([*lines, f"{beginning}{value}"]) + "\n"

    def check(self) -> LayoutCheck:
        """Checks the outputs, joined as `layout check --from --plan` joins them."""
        storage = ObservedStorage()
        for origin, text in self.outputs.items():
            storage = merge_observations(storage, read_saved_output(text, origin))
        return check_layout(join_observations(storage), self.plan, (), ["/scratch"], self.written)


def draw_server(random: Random) -> DrawnServer:
    """A server with one array and its file system, multipath LUNs, a pool, and the targets of a Lustre file system."""
    level = random.choice(["5", "6", "6", "10"])
    parity = _PARITY.get(level)
    data = random.randint(3, 10)
    count = data + parity if parity else 2 * data
    chunk = random.choice([64, 128, 256, 512]) * 1024
    drive_bytes = random.choice([4, 8, 10, 16]) * _TIB
    kind = random.choice(["xfs", "xfs", "ext4"]) if data * drive_bytes < 14 * _TIB else "xfs"
    document = {
        "schema": "sonde-system/2", "id": "drawn", "nodes": [{"id": "host"}],
        "drives": [{"id": f"d[1-{count + 1}]", "kind": "hdd", "server": "host", "capacity": f"{drive_bytes} B",
                    "block": "4096 B", "rate": "200 MB/s"}],
        "raid_groups": [{"id": "md0", "level": level, "data": data, "parity": parity or data, "segment": f"{chunk} B",
                         "drives": f"d[1-{count}]", "spares": f"d{count + 1}"}],
        "file_systems": [{"id": "scratch", "kind": kind, "device": "md0", "purpose": "scratch"}],
        "mounts": [{"id": "scratch-mount", "file_system": "scratch", "path": "/scratch", "on": "host"}],
    }  # fmt: skip
    layout_plan = plan_layout(make_system(document, "drawn"))
    plan = layout_plan.get_layout("scratch")
    names = [f"sd{first}{second}" for first in "bc" for second in "abcdefghijklmnopqrstuvwxyz"]
    drives = sorted(random.sample(names, count + 1))
    spare = drives.pop(random.randrange(len(drives)))
    server = DrawnServer(plan, level, drives, spare, drive_bytes)
    server.written = list_written_attributes(layout_plan.system, plan)
    server.outputs = {
        "lsblk": _print_lsblk(server),
        "mdadm": _print_mdadm(server, chunk),
        "made": _print_xfs(plan) if kind == "xfs" else _print_ext4(plan),
        "findmnt": _print_mounts(plan),
        "sysfs": _print_queues(server),
        "zpool": _print_pool(random),
    }
    _add_luns(server, random)
    _add_lustre(server, random)
    return server


def _print_lsblk(server: DrawnServer) -> str:
    plan, level = server.plan, server.level
    top = {"name": "md0", "kname": "md0", "type": f"raid{level}", "size": plan.capacity, "fstype": plan.table.kind,
           "uuid": "1111", "mountpoint": "/scratch", "min-io": plan.unit,
           "opt-io": plan.width, "rota": True}  # fmt: skip
    rows = [
        {"name": name, "kname": name, "type": "disk", "size": server.drive_bytes, "rota": True, "phy-sec": 4096,
         "log-sec": 512, "fstype": "linux_raid_member", "children": [top]}
        for name in sorted([*server.drives, server.spare])
    ]  # fmt: skip
    return json.dumps({"blockdevices": rows})


def _print_mdadm(server: DrawnServer, chunk: int) -> str:
    count = len(server.drives)
    rows = "".join(f"{number:8}{8:8}{16 * number:9}{number:9}      active sync   /dev/{drive}\n"
                   for number, drive in enumerate(server.drives))  # fmt: skip
    layout = "near=2" if server.level == "10" else "left-symmetric"
    return f"""/dev/md0:
           Version : 1.2
        Raid Level : raid{server.level}
        Array Size : {(server.plan.capacity or 0) // 1024}
      Raid Devices : {count}
     Total Devices : {count + 1}
       Persistence : Superblock is persistent
     Intent Bitmap : Internal
             State : clean
    Active Devices : {count}
   Working Devices : {count + 1}
    Failed Devices : 0
     Spare Devices : 1
            Layout : {layout}
        Chunk Size : {chunk // 1024}K
Consistency Policy : bitmap
              UUID : aaaa:bbbb:cccc:dddd
            Events : 4711

    Number   Major   Minor   RaidDevice State
{rows}{count:8}{8:8}{240:9}        -      spare   /dev/{server.spare}
"""


def _print_xfs(plan: FileSystemLayout) -> str:
    assert plan.groups is not None
    assert plan.log_size is not None
    unit, width = plan.unit // plan.block_bytes, plan.width // plan.block_bytes
    log_unit = compute_log_unit(plan.unit) // plan.block_bytes or 1
    return f"""meta-data=/dev/md0               isize=512    agcount={plan.groups.count}, agsize={plan.groups.size} blks
         =                       sectsz=4096  attr=2, projid32bit=1
         =                       crc=1        finobt=1, sparse=1, rmapbt=0
         =                       reflink=1    bigtime=1 inobtcount=1
data     =                       bsize={plan.block_bytes}   blocks={plan.groups.blocks}, imaxpct=1
         =                       sunit={unit}     swidth={width} blks
naming   =version 2              bsize={plan.block_bytes}   ascii-ci=0, ftype=1
log      =internal log           bsize={plan.block_bytes}   blocks={plan.log_size // plan.block_bytes}, version=2
         =                       sectsz=4096  sunit={log_unit} blks, lazy-count=1
realtime =none                   extsz=4096   blocks=0, rtextents=0
"""


def _print_ext4(plan: FileSystemLayout) -> str:
    return f"""Filesystem volume name:   scratch
Last mounted on:          /scratch
Filesystem UUID:          1111
Filesystem magic number:  0xEF53
Filesystem features:      has_journal ext_attr extent 64bit flex_bg
Filesystem state:         clean
Errors behavior:          Continue
Block count:              {(plan.capacity or 0) // plan.block_bytes}
Block size:               {plan.block_bytes}
Blocks per group:         32768
RAID stride:              {plan.unit // plan.block_bytes}
RAID stripe width:        {plan.width // plan.block_bytes}
Total journal size:       {(plan.log_size or 0) // 2**20}M
"""


def _print_mounts(plan: FileSystemLayout) -> str:
    options = ",".join(["rw", *list_mount_options(plan)])
    rows = [{"target": "/scratch", "source": "/dev/md0", "fstype": plan.table.kind, "options": options}]
    return json.dumps({"filesystems": rows})


def _print_queues(server: DrawnServer) -> str:
    lines = []
    settings = {"queue/scheduler": "[mq-deadline] none", "queue/nr_requests": "256", "queue/max_sectors_kb": "1024",
                "queue/max_hw_sectors_kb": "16384", "queue/rotational": "1", "queue/nomerges": "0",
                "queue/write_cache": "write back", "device/queue_depth": "32"}  # fmt: skip
    for name in [*server.drives, server.spare]:
        lines += [f"/sys/block/{name}/{setting}:{value}" for setting, value in settings.items()]
    ahead = max(4096, 2 * server.plan.width // 1024)
    lines += ["/sys/block/md0/md/sync_action:idle", f"/sys/block/md0/queue/read_ahead_kb:{ahead}"]
    if server.level in _PARITY:
        lines += ["/sys/block/md0/md/stripe_cache_size:8192", "/sys/block/md0/md/group_thread_cnt:4"]
    return "\n".join(lines) + "\n"


def _print_pool(random: Random) -> str:
    parity, width = random.choice([(1, 4), (2, 8), (2, 10), (3, 11)])
    rows = []
    for vdev in range(random.randint(1, 3)):
        rows.append(f"\t  raidz{parity}-{vdev}  ONLINE       0     0     0")
        rows += [f"\t    wwn-{vdev}{drive:02}  ONLINE       0     0     0" for drive in range(width)]
    return """  pool: tank
 state: ONLINE
  scan: scrub repaired 0B in 09:41:22 with 0 errors on Sun Nov  8 10:05:24 2026
config:

\tNAME        STATE     READ WRITE CKSUM
\ttank        ONLINE       0     0     0
{}
\tlogs
\t  mirror-9  ONLINE       0     0     0
\t    nvme2n1 ONLINE       0     0     0
\t    nvme3n1 ONLINE       0     0     0
\tcache
\t  nvme4n1   ONLINE       0     0     0
\tspares
\t  sdzz      AVAIL

errors: No known data errors
tank  ashift      12     local
tank  capacity    {}%   -
tank  fragmentation    {}%   -
""".format("\n".join(rows), random.randint(5, 70), random.randint(0, 20))


def _add_luns(server: DrawnServer, random: Random) -> None:
    texts, queue_lines, letters = list[str](), list[str](), iter("abcdefghijklmnopqrstuvwxyz")
    for number in range(random.randint(3, 5)):
        name = f"mpath{'abcde'[number]}"
        server.luns.append(name)
        paths = [f"sdz{next(letters)}" for _ in range(4)]
        first, second = (2, 3) if number % 2 else (3, 2)
        near, far = number % 2, 1 - number % 2  # the controllers own every second LUN
        rows = [f"| |- {first}:0:{near}:{number} {paths[0]} 65:1 active ready running",
                f"| `- {second}:0:{near}:{number} {paths[1]} 65:2 active ready running"]  # fmt: skip
        others = [f"  |- {first}:0:{far}:{number} {paths[2]} 65:3 active ready running",
                  f"  `- {second}:0:{far}:{number} {paths[3]} 65:4 active ready running"]  # fmt: skip
        lines = [f"{name} (36005{number:04}) dm-{number + 3} HP,HSV210",
                 "size=10T features='1 queue_if_no_path' hwhandler='1 alua' wp=rw",
                 "|-+- policy='service-time 0' prio=50 status=active", *rows,
                 "`-+- policy='service-time 0' prio=10 status=enabled", *others]  # fmt: skip
        texts.append("\n".join(lines) + "\n")
        queue_lines += [f"/sys/block/{path}/queue/{setting}" for path in paths for setting in
                        ("max_sectors_kb:1024", "max_hw_sectors_kb:16384", "rotational:1")]  # fmt: skip
    server.outputs["multipath"] = "".join(texts)
    server.outputs["sysfs"] += "\n".join(queue_lines) + "\n"


def _add_lustre(server: DrawnServer, random: Random) -> None:
    count = random.randint(3, 6)
    server.targets = ["fs1-MDT0000", *(f"fs1-OST{number:04x}" for number in range(count))]
    for target in server.targets:
        kind, flags = ("MDT", "0x1001") if "MDT" in target else ("OST", "0x1002")
        partners = "10.0.0.1@o2ib:10.0.0.2@o2ib" if kind == "MDT" else "10.0.0.3@o2ib:10.0.0.4@o2ib"
        server.outputs[f"tunefs {target}"] = f"""checking for existing Lustre data: found

   Read previous values:
Target:     {target}
Index:      {int(target[-4:], 16)}
Lustre FS:  fs1
Mount type: ldiskfs
Flags:      {flags}
              ({kind} no_primnode )
Persistent mount opts: {"user_xattr,errors=remount-ro" if kind == "MDT" else "errors=remount-ro"}
Parameters:  mgsnode=10.0.0.1@o2ib:10.0.0.2@o2ib failover.node={partners}

exiting before disk write.
"""
    lines = [f"obdfilter.{target}.brw_size=16" for target in server.targets[1:]]
    for target in server.targets[1:]:
        client = f"osc.{target}-osc-ffff8"
        lines += [f"{client}.max_pages_per_rpc=1024", f"{client}.max_rpcs_in_flight=16",
                  f"{client}.max_dirty_mb=512", f"{client}.active=1"]  # fmt: skip
    lines += ["mdc.fs1-MDT0000-mdc-ffff8.max_rpcs_in_flight=16", "mdc.fs1-MDT0000-mdc-ffff8.max_mod_rpcs_in_flight=7",
              "llite.fs1-ffff8.max_read_ahead_mb=256", "llite.fs1-ffff8.max_cached_mb=128000"]  # fmt: skip
    server.outputs["lctl"] = "\n".join(lines) + "\n"
    server.outputs["lctl dl"] = _print_devices(server.targets)
    server.outputs["lfs df"] = _print_free_space(server.targets, random)
    size = 2**20 * random.choice([1, 2, 4])
    server.outputs["getstripe"] = (
        f"/fs1/work\nstripe_count:  4 stripe_size:   {size} pattern:       raid0 stripe_offset: -1\n"
    )


def _print_devices(targets: Sequence[str]) -> str:
    rows = ["  0 UP osd-ldiskfs MGS-osd MGS-osd_UUID 4", "  1 UP mgs MGS MGS 12", "  2 UP mgc MGC10.0.0.1@o2ib 1a2b 4"]
    for number, target in enumerate(targets, start=3):
        rows.append(f"  {number} UP {'mdt' if 'MDT' in target else 'obdfilter'} {target} {target}_UUID 7")
    return "\n".join(rows) + "\n"


def _print_free_space(targets: Sequence[str], random: Random) -> str:
    lines = ["UUID                   1K-blocks        Used   Available Use% Mounted on"]
    level = random.randint(20, 55)
    for target in targets:
        used = level + random.randint(-3, 3)
        total = 30 * _GIB
        lines.append(f"{target}_UUID {total} {total * used // 100} {total * (100 - used) // 100}  {used}% "
                     f"/fs1[{target[4:7]}:{int(target[-4:], 16)}]")  # fmt: skip
    lines.append(f"\nfilesystem_summary: {30 * _GIB} {_GIB} {29 * _GIB} {level}% /fs1")
    return "\n".join(lines) + "\n"
