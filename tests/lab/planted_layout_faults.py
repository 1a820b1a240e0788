# SPDX-License-Identifier: Apache-2.0
"""What a sound storage server prints, and single faults that are put into it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from sonde.design.layout.check import check_layout
from sonde.design.layout.faults import LayoutCheck
from sonde.design.layout.live.joining import join_observations
from sonde.design.layout.live.observations import ObservedStorage, merge_observations
from sonde.design.layout.live.saved_output import read_saved_output

Outputs = dict[str, str]
Edit = Callable[[Outputs], None]

_DATA_DRIVES = [f"sd{letter}" for letter in "abcdefghij"]
_HOME_DRIVES = [f"sd{letter}" for letter in "klmno"]
_TIB = 2**40


def _lsblk() -> str:
    def drive(name: str, array: str, kind: str, size: int, uuid: str, mount: str) -> dict[str, object]:
        top = {"name": array, "kname": array, "type": kind, "size": size, "fstype": "xfs" if mount == "/scratch" else
               "ext4", "uuid": uuid, "mountpoint": mount, "min-io": 262144,
               "opt-io": 262144 * (8 if kind == "raid6" else 4), "rota": True}  # fmt: skip
        return {"name": name, "kname": name, "type": "disk", "size": 10 * _TIB, "rota": True, "phy-sec": 4096,
                "log-sec": 512, "fstype": "linux_raid_member", "children": [top]}  # fmt: skip

    data = [drive(name, "md5", "raid6", 80 * _TIB, "1111-xfs", "/scratch") for name in _DATA_DRIVES]
    home = [drive(name, "md6", "raid5", 40 * _TIB, "2222-ext4", "/home") for name in _HOME_DRIVES]
    return json.dumps({"blockdevices": data + home})


def _mdadm(name: str, level: str, drives: list[str], uuid: str) -> str:
    rows = "\n".join(f"      {number}       8        {16 * number}        {number}      active sync   /dev/{drive}"
                     for number, drive in enumerate(drives))  # fmt: skip
    return f"""/dev/{name}:
           Version : 1.2
        Raid Level : {level}
        Array Size : 23441682432 (21.83 TiB 24.00 TB)
      Raid Devices : {len(drives)}
     Total Devices : {len(drives) + 1}
       Persistence : Superblock is persistent
     Intent Bitmap : Internal
             State : clean
    Active Devices : {len(drives)}
   Working Devices : {len(drives) + 1}
    Failed Devices : 0
     Spare Devices : 1
            Layout : left-symmetric
        Chunk Size : 256K
Consistency Policy : bitmap
              UUID : {uuid}
    Number   Major   Minor   RaidDevice State
{rows}
      99      65      240        -      spare   /dev/sdz
"""


_XFS_INFO = """meta-data=/dev/md5               isize=512    agcount=81, agsize=268435392 blks
         =                       sectsz=4096  attr=2, projid32bit=1
         =                       crc=1        finobt=1, sparse=1, rmapbt=0
         =                       reflink=1    bigtime=1 inobtcount=1
data     =                       bsize=4096   blocks=21474836480, imaxpct=1
         =                       sunit=64     swidth=512 blks
naming   =version 2              bsize=4096   ascii-ci=0, ftype=1
log      =internal log           bsize=4096   blocks=521728, version=2
         =                       sectsz=4096  sunit=1 blks, lazy-count=1
realtime =none                   extsz=4096   blocks=0, rtextents=0
"""
_DUMPE2FS = """Filesystem volume name:   home
Last mounted on:          /home
Filesystem UUID:          2222-ext4
Filesystem magic number:  0xEF53
Filesystem features:      has_journal ext_attr extent 64bit flex_bg
Block count:              10737418240
Block size:               4096
Blocks per group:         32768
RAID stride:              64
RAID stripe width:        256
Total journal size:       1024M
"""
_MULTIPATH = """mpatha (3600508b400105e210000900000490000) dm-3 HP,HSV210
size=10T features='1 queue_if_no_path' hwhandler='1 alua' wp=rw
|-+- policy='service-time 0' prio=50 status=active
| |- 2:0:0:1 sdaa 65:160 active ready running
| `- 3:0:0:1 sdab 65:176 active ready running
`-+- policy='service-time 0' prio=10 status=enabled
  |- 2:0:1:1 sdac 65:192 active ready running
  `- 3:0:1:1 sdad 65:208 active ready running
"""
_ZPOOL = """  pool: tank
 state: ONLINE
  scan: scrub repaired 0B in 09:41:22 with 0 errors on Sun Nov  8 10:05:24 2026
config:

\tNAME        STATE     READ WRITE CKSUM
\ttank        ONLINE       0     0     0
\t  raidz2-0  ONLINE       0     0     0
\t    sdba    ONLINE       0     0     0
\t    sdbb    ONLINE       0     0     0
\t    sdbc    ONLINE       0     0     0
\t    sdbd    ONLINE       0     0     0
\t  raidz2-1  ONLINE       0     0     0
\t    sdbe    ONLINE       0     0     0
\t    sdbf    ONLINE       0     0     0
\t    sdbg    ONLINE       0     0     0
\t    sdbh    ONLINE       0     0     0
\tspecial
\t  mirror-2  ONLINE       0     0     0
\t    nvme0n1 ONLINE       0     0     0
\t    nvme1n1 ONLINE       0     0     0
\tlogs
\t  nvme2n1   ONLINE       0     0     0
\tspares
\t  sdbz      AVAIL

errors: No known data errors
tank  ashift      12     local
tank  capacity    41%   -
"""
_GETSTRIPE = """/lustre/out.dat
lmm_stripe_count:  4
lmm_stripe_size:   4194304
lmm_pattern:       raid0
lmm_layout_gen:    0
lmm_stripe_offset: 12
\tobdidx\t\t objid\t\t objid\t\t group
\t    12\t       1843277\t     0x1c204d\t             0
\t    13\t       1843279\t     0x1c204f\t             0
\t    14\t       1843280\t     0x1c2050\t             0
\t    15\t       1843281\t     0x1c2051\t             0
"""
_PFL = """/lustre/pfl.dat
  lcm_layout_gen:    3
  lcm_mirror_count:  1
  lcm_entry_count:   2
    lcme_id:             1
    lcme_extent.e_end:   16777216
      lmm_stripe_count:  1
      lmm_stripe_size:   1048576
      lmm_objects:
      - 0: { l_ost_idx: 3, l_fid: [0x100030000:0x2:0x0] }

    lcme_id:             2
    lcme_extent.e_end:   EOF
      lmm_stripe_count:  2
      lmm_stripe_size:   4194304
      lmm_objects:
      - 0: { l_ost_idx: 4, l_fid: [0x100040000:0x2:0x0] }
      - 1: { l_ost_idx: 5, l_fid: [0x100050000:0x2:0x0] }
"""
_LCTL = """obdfilter.fs1-OST0000.brw_size=16
osc.fs1-OST0000-osc-ffff.max_pages_per_rpc=1024
osc.fs1-OST0000-osc-ffff.max_rpcs_in_flight=8
osc.fs1-OST0000-osc-ffff.active=1
"""
_SGDISK = """Disk /dev/sdq: 19532873728 sectors, 9.1 TiB
Sector size (logical/physical): 512/4096 bytes
Partition table holds up to 128 entries

Number  Start (sector)    End (sector)  Size       Code  Name
   1            4096     19532873694   9.1 TiB     8300  data
"""
_FINDMNT = json.dumps({"filesystems": [
    {"target": "/scratch", "source": "/dev/md5", "fstype": "xfs", "options": "rw,noatime,largeio"},
    {"target": "/home", "source": "/dev/md6", "fstype": "ext4", "options": "rw,noatime"}]})  # fmt: skip


def make_server_outputs() -> Outputs:
    """The outputs of a server: XFS on RAID 6, ext4 on RAID 5, a multipath LUN, a ZFS pool, files of Lustre."""
    settings = {"scheduler": "[mq-deadline] none", "nr_requests": "256", "max_sectors_kb": "2048",
                "max_hw_sectors_kb": "16384", "rotational": "1"}  # fmt: skip
    lines = [f"/sys/block/{disk}/queue/{name}:{value}" for disk in (*_DATA_DRIVES, *_HOME_DRIVES)
             for name, value in settings.items()]  # fmt: skip
    for array in ("md5", "md6"):
        lines += [f"/sys/block/{array}/md/stripe_cache_size:8192", f"/sys/block/{array}/md/sync_action:idle",
                  f"/sys/block/{array}/queue/read_ahead_kb:8192"]  # fmt: skip
    return {
        "lsblk": _lsblk(),
        "mdadm md5": _mdadm("md5", "raid6", _DATA_DRIVES, "aaaa"),
        "mdadm md6": _mdadm("md6", "raid5", _HOME_DRIVES, "bbbb"),
        "xfs_info": _XFS_INFO,
        "dumpe2fs": _DUMPE2FS,
        "multipath": _MULTIPATH,
        "zpool": _ZPOOL,
        "getstripe": _GETSTRIPE,
        "pfl": _PFL,
        "lctl": _LCTL,
        "sgdisk": _SGDISK,
        "sysfs": "\n".join(lines) + "\n",
        "findmnt": _FINDMNT,
    }


def check_outputs(outputs: Mapping[str, str]) -> LayoutCheck:
    """Checks the outputs of a server, joined as `layout check --from` joins them."""
    storage = ObservedStorage()
    for origin, text in outputs.items():
        storage = merge_observations(storage, read_saved_output(text, origin))
    return check_layout(join_observations(storage))


def change(output: str, old: str, new: str) -> Edit:
    """Replaces a text of one output."""

    def edit(outputs: Outputs) -> None:
        assert old in outputs[output], old
        outputs[output] = outputs[output].replace(old, new)

    return edit


def combine(*edits: Edit) -> Edit:
    """Applies several edits."""

    def edit(outputs: Outputs) -> None:
        for each in edits:
            each(outputs)

    return edit


def set_queue(disk: str, name: str, value: str) -> Edit:
    """Sets one value of a queue or array."""

    def edit(outputs: Outputs) -> None:
        lines = outputs["sysfs"].splitlines()
        changed = [line for line in lines if f"/{disk}/" in line and f"/{name}:" in line]
        assert changed
        outputs["sysfs"] = "\n".join(
            line.partition(":")[0] + f":{value}" if line in changed else line for line in lines
        ) + "\n"  # fmt: skip

    return edit


_DEGRADED_MD5 = combine(
    change("mdadm md5", "State : clean", "State : clean, degraded"),
    change("mdadm md5", "Active Devices : 10", "Active Devices : 9"),
    change("mdadm md5", "Spare Devices : 1", "Spare Devices : 0"),
)
# What is wrong, the kind of fault that names it, and how it gets into the outputs.
FAULTS: list[tuple[str, str, Edit]] = [
    ("no hot spare", "no spare", change("mdadm md5", "Spare Devices : 1", "Spare Devices : 0")),
    ("no bitmap", "no bitmap", combine(change("mdadm md5", "     Intent Bitmap : Internal\n", ""),
                                       change("mdadm md5", "Policy : bitmap", "Policy : resync"))),
    ("a drive lost", "degraded", _DEGRADED_MD5),
    ("a rebuild", "rebuilding", set_queue("md5", "sync_action", "recover")),
    ("a failed drive that was replaced", "failed drive in an array", change(
        "mdadm md6", "Failed Devices : 0", "Failed Devices : 1")),
    ("a small stripe cache", "stripe cache too small", set_queue("md5", "stripe_cache_size", "256")),
    ("two requests under way", "queue too short", set_queue("sdc", "nr_requests", "2")),
    ("bfq", "scheduler", set_queue("sdd", "scheduler", "none [bfq]")),
    ("a short read-ahead", "read-ahead too short", set_queue("md5", "read_ahead_kb", "128")),
    ("ext4 stride against chunk", "unit does not fit the stripe", combine(
        change("dumpe2fs", "RAID stride:              64", "RAID stride:              24"),
        change("dumpe2fs", "RAID stripe width:        256", "RAID stripe width:        96"))),
    ("ext4 width against data drives", "width does not fit the stripe", change(
        "dumpe2fs", "RAID stripe width:        256", "RAID stripe width:        192")),
    ("XFS without a unit", "no stripe unit", change(
        "xfs_info", "sunit=64     swidth=512 blks", "sunit=0      swidth=0 blks")),
    ("XFS unit against chunk", "unit does not fit the stripe", change(
        "xfs_info", "sunit=64     swidth=512 blks", "sunit=48     swidth=384 blks")),
    ("XFS width against data drives", "width does not fit the stripe", change(
        "xfs_info", "swidth=512 blks", "swidth=640 blks")),
    ("width no multiple of unit", "width is no multiple of unit", change(
        "xfs_info", "swidth=512 blks", "swidth=500 blks")),
    ("a small log", "log too small", change("xfs_info", "blocks=521728, version=2", "blocks=2560, version=2")),
    ("three allocation groups", "too few allocation groups", change("xfs_info", "agcount=81", "agcount=3")),
    ("groups between stripes", "groups are not aligned", change("xfs_info", "agsize=268435392", "agsize=268435393")),
    ("all groups on one drive", "groups begin on one drive", change(
        "xfs_info", "agsize=268435392", "agsize=268434944")),
    ("nobarrier", "mount option", change("findmnt", "rw,noatime,largeio", "rw,noatime,nobarrier")),
    ("ext4 that writes data twice", "mount option", change("findmnt", '"rw,noatime"', '"rw,data=journal"')),
    ("a LUN with one path", "single path", change("multipath", _MULTIPATH[_MULTIPATH.index("| `- 3"):], "")),
    ("a failed path", "path failed", change("multipath", "3:0:0:1 sdab 65:176 active ready", "3:0:0:1 sdab 65:176"
                                            " failed faulty")),
    ("a failover policy", "multipath policy", change("multipath", "prio=10 status=enabled", "prio=50 status=enabled")),
    ("round robin", "multipath policy", change("multipath", "service-time 0", "round-robin 0")),
    ("all preferred paths down", "on alternate paths", combine(
        change("multipath", "65:160 active ready", "65:160 failed faulty"),
        change("multipath", "65:176 active ready", "65:176 failed faulty"),
        change("multipath", "prio=10 status=enabled", "prio=10 status=active"))),
    ("a vdev of one drive", "vdev without redundancy", change(
        "zpool", "\tspecial\n", "\t  sdbi      ONLINE       0     0     0\n\tspecial\n")),
    ("checksum errors", "errors of a drive", change("zpool", "sdbf    ONLINE       0     0     0",
                                                    "sdbf    ONLINE       0     0    37")),
    ("a special vdev without a mirror", "special vdev without a mirror", change(
        "zpool", "\t  mirror-2  ONLINE       0     0     0\n\t    nvme0n1 ONLINE       0     0     0\n"
        "\t    nvme1n1 ONLINE       0     0     0\n", "\t  nvme0n1   ONLINE       0     0     0\n")),
    ("unequal vdevs", "unequal members of a stripe", change("zpool", "\t    sdbh    ONLINE       0     0     0\n", "")),
    ("a degraded pool", "degraded", combine(
        change("zpool", " state: ONLINE", " state: DEGRADED"),
        change("zpool", "raidz2-1  ONLINE", "raidz2-1  DEGRADED"),
        change("zpool", "sdbg    ONLINE", "sdbg    FAULTED"))),
    ("small sectors", "sectors too small", change("zpool", "ashift      12", "ashift      9")),
    ("a full pool", "too full", change("zpool", "41%", "93%")),
    ("a pool without spare", "no spare", change("zpool", "\tspares\n\t  sdbz      AVAIL\n", "")),
    ("two objects on one target", "objects on one target", change("getstripe", "\t    13\t", "\t    12\t")),
    ("two objects of a PFL on one target", "objects on one target", change("pfl", "l_ost_idx: 5", "l_ost_idx: 4")),
    ("components on one target", "objects on one target", change("pfl", "l_ost_idx: 4", "l_ost_idx: 3")),
    ("an object missing", "objects are missing", change(
        "getstripe", "\t    15\t       1843281\t     0x1c2051\t             0\n", "")),
    ("a stripe that cuts RPCs", "stripe does not fit RPCs", change("getstripe", "4194304", "1500000")),
    ("short requests of a server", "parameter too small", change("lctl", "brw_size=16", "brw_size=1")),
    ("an inactive target", "target inactive", change("lctl", "active=1", "active=0")),
    ("a partition between stripes", "slice is not aligned", change("sgdisk", "            4096 ", "              63 ")),
    # drawn after the rules were written
    ("XFS without alignment", "mount option", change("findmnt", "rw,noatime,largeio", "rw,noalign")),
    ("requests shorter than a chunk", "requests are cut", set_queue("sda", "max_sectors_kb", "64")),
    ("ext4 without stride", "no stripe unit", combine(
        change("dumpe2fs", "RAID stride:              64\n", ""),
        change("dumpe2fs", "RAID stripe width:        256\n", ""))),
    ("stride and width exchanged", "width is no multiple of unit", combine(
        change("dumpe2fs", "stride:              64", "stride:              256"),
        change("dumpe2fs", "width:        256", "width:        64"))),
    ("no path at all", "no active path", change("multipath", "active ready", "failed faulty")),
    ("a dedup vdev without a mirror", "dedup vdev without a mirror", change(
        "zpool", "\tlogs\n", "\tdedup\t\n\t  nvme5n1   ONLINE       0     0     0\n\tlogs\n")),
    ("many read errors", "errors of a drive", change(
        "zpool", "sdba    ONLINE       0     0     0", "sdba    ONLINE    1.2K     0     0")),
    ("a pool that resilvers", "rebuilding", change("zpool", "config:", "  scan: resilver in progress\nconfig:")),
    ("fewer objects than stripes", "objects are missing", change("getstripe", "count:  4", "count:  5")),
    ("one request in flight", "parameter too small", change("lctl", "in_flight=8", "in_flight=1")),
    ("an array that is synchronized", "rebuilding", set_queue("md6", "sync_action", "resync")),
    # drawn a second time
    ("an array that is read-only", "not optimal", change("mdadm md5", "State : clean", "State : clean, read-only")),
    ("a smaller member", "unequal members of a stripe", change(
        "lsblk", '"name": "sdc", "kname": "sdc", "type": "disk", "size": 10995116277760',
        '"name": "sdc", "kname": "sdc", "type": "disk", "size": 8796093022208')),
    ("XFS sectors below those of the drives", "sectors too small", change("xfs_info", "sectsz=4096", "sectsz=512")),
    ("ext4 without a journal", "no journal", combine(
        change("dumpe2fs", "has_journal ", ""), change("dumpe2fs", "Total journal size:       1024M\n", ""))),
    ("ext4 with blocks of 1 KiB", "blocks too small", combine(
        change("dumpe2fs", "Block size:               4096", "Block size:               1024"),
        change("dumpe2fs", "Block count:              10737418240", "Block count:              42949672960"),
        change("dumpe2fs", "stride:              64", "stride:              256"),
        change("dumpe2fs", "width:        256", "width:        1024"))),
    ("XFS with blocks of 1 KiB", "blocks too small", combine(
        change("xfs_info", "bsize=4096   blocks=21474836480", "bsize=1024   blocks=85899345920"),
        change("xfs_info", "agsize=268435392", "agsize=1073741568"),
        change("xfs_info", "sunit=64     swidth=512 blks", "sunit=256    swidth=2048 blks"))),
    ("requests that fail without a path", "no queue without paths", change(
        "multipath", "features='1 queue_if_no_path'", "features='0'")),
    ("all paths on one adapter", "one adapter for all paths", combine(
        change("multipath", "3:0:0:1", "2:0:2:1"), change("multipath", "3:0:1:1", "2:0:3:1"))),
    ("no handler for ALUA", "no hardware handler", change("multipath", "hwhandler='1 alua'", "hwhandler='0'")),
    ("a vdev of less redundancy", "unequal members of a stripe", change("zpool", "raidz2-1", "raidz1-1")),
    ("lost data", "data lost", change(
        "zpool", "errors: No known data errors", "errors: 3 data errors, use '-v' for a list")),
    ("a drive that is offline", "degraded", combine(
        change("zpool", "sdbh    ONLINE       0     0     0", "sdbh    OFFLINE      0     0     0"),
        change("zpool", "raidz2-1  ONLINE", "raidz2-1  DEGRADED"), change("zpool", " state: ONLINE",
                                                                          " state: DEGRADED"))),
    ("stripes of 64 KiB", "stripe does not fit RPCs", change("getstripe", "4194304", "65536")),
    ("short RPCs of clients", "parameter too small", change("lctl", "max_pages_per_rpc=1024", "max_pages_per_rpc=64")),
    ("a second partition between stripes", "slice is not aligned", change(
        "sgdisk", "   1            4096     19532873694   9.1 TiB     8300  data",
        "   1            4096      9766436863   4.5 TiB     8300  data\n"
        "   2      9766436899     19532873694   4.5 TiB     8300  more")),
    ("a synchronous mount", "mount option", change("findmnt", "rw,noatime,largeio", "rw,sync,noatime")),
]  # fmt: skip
