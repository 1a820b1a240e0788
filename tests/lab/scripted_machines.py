# SPDX-License-Identifier: Apache-2.0
"""Machines on which the scripts of a plan have run: their tools print what the written attributes say."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from sonde.design.layout.check import check_layout
from sonde.design.layout.faults import LayoutCheck
from sonde.design.layout.file_system_layout import FileSystemLayout
from sonde.design.layout.live.joining import join_observations
from sonde.design.layout.live.observations import ObservedStorage, merge_observations
from sonde.design.layout.live.saved_output import read_saved_output
from sonde.design.layout.observe_written import parse_written_size
from sonde.design.layout.plan import plan_layout
from sonde.design.layout.written_attributes import WrittenAttribute, list_written_attributes
from sonde.model.system import make_system

_TIB = 2**40
_MIB = 2**20
_ARRAY_SETTINGS = ("md/stripe_cache_size", "md/group_thread_cnt", "queue/read_ahead_kb")


@dataclass(frozen=True)
class ScriptedMachine:
    """A planned file system, what its scripts write, and the function that prints the outputs of such a machine."""

    plan: FileSystemLayout
    written: tuple[WrittenAttribute, ...]
    print_outputs: Callable[[WrittenState], list[str]]

    def check(self, state: Sequence[WrittenAttribute]) -> LayoutCheck:
        """Checks a machine that has the attributes `state` against what was written."""
        storage = ObservedStorage()
        texts = self.print_outputs(WrittenState(tuple(state), self.plan))
        for number, text in enumerate(text for text in texts if text):
            storage = merge_observations(storage, read_saved_output(text, f"output {number}"))
        return check_layout(join_observations(storage), self.plan, (), ["/scratch"], self.written)


@dataclass(frozen=True)
class WrittenState:
    """The attributes that a machine has."""

    attributes: tuple[WrittenAttribute, ...]
    plan: FileSystemLayout

    def get(self, program: str, option: str, default: str = "") -> str:
        """The first value of an option."""
        return next((each.value for each in self.attributes if each.key == (program, option)), default)

    def has(self, program: str, option: str) -> bool:
        """Whether an option was written."""
        return any(each.key == (program, option) for each in self.attributes)

    def list_all(self, program: str, option: str) -> list[str]:
        """All values of an option."""
        return [each.value for each in self.attributes if each.key == (program, option)]

    def get_size(self, program: str, option: str) -> int:
        """The first value of an option in bytes."""
        return parse_written_size(self.get(program, option, "0")) or 0


def make_machine(
    document: dict[str, Any], name: str, print_outputs: Callable[[WrittenState], list[str]]
) -> ScriptedMachine:
    """The machine of a system document with its scripts run."""
    plan = plan_layout(make_system(document, "made.toml"))
    layout = plan.get_layout(name)
    return ScriptedMachine(layout, list_written_attributes(plan.system, layout), print_outputs)


def describe_array(level: str, data: int, parity: int, kind: str, purpose: str = "scratch") -> dict[str, Any]:
    """A host with one array of drives and a spare."""
    count = data + parity
    return {
        "schema": "sonde-system/2", "id": "array", "nodes": [{"id": "host"}],
        "drives": [{"id": f"d[1-{count + 1}]", "kind": "hdd", "server": "host", "capacity": f"{2 * _TIB} B",
                    "block": "4096 B", "rate": "200 MB/s"}],
        "raid_groups": [{"id": "md0", "level": level, "data": data, "parity": parity, "segment": "256 KiB",
                         "drives": f"d[1-{count}]", "spares": f"d{count + 1}"}],
        "file_systems": [{"id": "scratch", "kind": kind, "device": "md0", "purpose": purpose}],
        "mounts": [{"id": "scratch-mount", "file_system": "scratch", "path": "/scratch", "on": "host"}],
    }  # fmt: skip


def describe_array_with_bitmap_file() -> dict[str, Any]:
    """A host whose array has its write-intent bitmap in a file on other drives."""
    document = describe_array("6", 4, 2, "ext4")
    document["raid_groups"][0]["bitmap"] = "/bitmaps/md0"
    return document


def describe_luns() -> dict[str, Any]:
    """A host with a volume over slices of three LUNs, and a log on a fourth one."""
    return {
        "schema": "sonde-system/2", "id": "luns", "nodes": [{"id": "host"}], "controllers": [{"id": "c"}],
        "drives": [{"id": "d[0-35]", "kind": "hdd", "capacity": "1 TB", "rate": "150 MB/s"}],
        "raid_groups": [{"id": "g[0-3]", "level": "5", "data": 8, "parity": 1, "segment": "256 KiB",
                         "drives": "d[0-35]", "controller": "c"}],
        "luns": [{"id": "lun[0-3]", "raid_group": "g[0-3]", "number": 0, "queue_depth": 32}],
        "slices": [{"id": "slice[0-2]", "on": "lun[0-2]", "number": 1, "size": f"{2 * _TIB} B"},
                   {"id": "logslice", "on": "lun3", "number": 1, "size": "1 GiB"}],
        "volumes": [{"id": "vol", "kind": "stripe", "software": "LVM", "members": "slice[0-2]",
                     "stripe_unit": "2 MiB", "usable": f"{5 * _TIB} B"}],
        "file_systems": [{"id": "scratch", "kind": "xfs", "device": "vol", "log": "logslice", "purpose": "scratch"}],
        "mounts": [{"id": "scratch-mount", "file_system": "scratch", "path": "/scratch", "on": "host"}],
    }  # fmt: skip


def print_array_host(state: WrittenState) -> list[str]:
    """lsblk, mdadm, xfs_info or dumpe2fs, findmnt and settings of a host with one array."""
    names = [f"sd{letter}" for letter in "bcdefghijklmnopqrstuvwxyz"[: _count_devices(state)]]
    top = {"name": "md0", "kname": "md0", "type": f"raid{state.get('mdadm', '--level')}", "rota": True,
           "size": state.plan.capacity, "fstype": state.plan.table.kind, "uuid": "1111", "mountpoint": "/scratch",
           "min-io": state.get_size("mdadm", "--chunk"),
           "label": state.get("mkfs.xfs", "-L") or state.get("mke2fs", "-L")}  # fmt: skip
    rows = [{"name": name, "kname": name, "type": "disk", "size": 2 * _TIB, "rota": True, "phy-sec": 4096,
             "fstype": "linux_raid_member", "children": [top]} for name in names]  # fmt: skip
    return [
        json.dumps({"blockdevices": rows}), _print_mdadm(state, "md0", names), _print_file_system(state, "/dev/md0"),
        _print_mount(state, "/dev/md0"),
        *_print_settings(state, {name: ["md0"] if name in _ARRAY_SETTINGS else names
                                 for name in _list_settings(state)}),
    ]  # fmt: skip


def _count_devices(state: WrittenState) -> int:
    return int(state.get("mdadm", "--raid-devices")) + int(state.get("mdadm", "--spare-devices", "0"))


def _print_mdadm(state: WrittenState, array: str, names: Sequence[str]) -> str:
    level, chunk = state.get("mdadm", "--level"), state.get_size("mdadm", "--chunk")
    count, spares = int(state.get("mdadm", "--raid-devices")), int(state.get("mdadm", "--spare-devices", "0"))
    bitmap = state.get("mdadm", "--bitmap", "none").replace("internal", "Internal")
    layout = state.get("mdadm", "--layout")
    layout = f"near={layout[1:]}" if layout.startswith("n") else layout
    table = "".join(f"{number:8}{8:8}{16 * number:9}{number:9}      active sync   /dev/{drive}\n"
                    for number, drive in enumerate(names[:count]))  # fmt: skip
    table += "".join(f"{count:8}{8:8}{240:9}        -      spare   /dev/{drive}\n" for drive in names[count:])
    return f"""/dev/{array}:
           Version : {state.get("mdadm", "--metadata")}
        Raid Level : raid{level}
      Raid Devices : {count}
     Total Devices : {count + spares}
{f"     Intent Bitmap : {bitmap}" if bitmap != "none" else ""}
             State : clean
    Active Devices : {count}
    Failed Devices : 0
     Spare Devices : {spares}
{f"            Layout : {layout}" if level != "1" else ""}
{f"        Chunk Size : {chunk // 1024}K" if chunk else ""}
Consistency Policy : {"bitmap" if bitmap != "none" else "resync"}

    Number   Major   Minor   RaidDevice State
{table}"""


def _list_settings(state: WrittenState) -> list[str]:
    return [each.option for each in state.attributes if each.program == "queue"]


def _print_settings(state: WrittenState, disks_by_setting: dict[str, list[str]]) -> list[str]:
    lines = []
    for name, disks in disks_by_setting.items():
        value = state.get("queue", name)
        printed_value = f"[{value}] other" if name.endswith("scheduler") else value
        lines += [f"/sys/block/{disk}/{name}:{printed_value}" for disk in disks]
    return ["\n".join(lines) + "\n"] if lines else []


def _print_mount(state: WrittenState, device: str) -> str:
    options = ["rw"]
    for each in state.attributes:
        if each.program == "mount" and each.option.startswith("-o "):
            name = each.option.removeprefix("-o ")
            value = "/dev/sdg1" if name == "logdev" else each.value
            options.append(f"{name}={value}" if value else name)
    row = {"target": "/scratch", "source": device, "fstype": state.plan.table.kind, "options": ",".join(options)}
    return json.dumps({"filesystems": [row]})


def _print_file_system(state: WrittenState, device: str) -> str:
    return _print_xfs(state, device) if state.plan.table.kind == "xfs" else _print_ext4(state)


def _print_xfs(state: WrittenState, device: str) -> str:
    assert state.plan.groups is not None
    block = state.get_size("mkfs.xfs", "-b size")
    size = int(state.get("mkfs.xfs", "-d size", "0b")[:-1]) * block or state.plan.groups.blocks * state.plan.block_bytes
    size //= 2 if state.get("lvcreate", "--extents").startswith("50") else 1
    blocks, group = size // block, int(state.get("mkfs.xfs", "-d agsize")[:-1])
    unit, width = (int(state.get("mkfs.xfs", f"-d {name}", "0")) * 512 // block for name in ("sunit", "swidth"))
    log_blocks, log_unit = int(state.get("mkfs.xfs", "-l size")[:-1]), int(state.get("mkfs.xfs", "-l su", "4096"))
    log = "/dev/sdg1" if state.has("mkfs.xfs", "-l logdev") else "internal log"
    return f"""meta-data={device}               isize=512    agcount={-(-blocks // group)}, agsize={group} blks
         =                       sectsz=4096  attr=2, projid32bit=1
         =                       crc=1        finobt=1, sparse=1, rmapbt=0
data     =                       bsize={block}   blocks={blocks}, imaxpct=1
         =                       sunit={unit}     swidth={width} blks
naming   =version 2              bsize={block}   ascii-ci=0, ftype=1
log      ={log}                  bsize={block}   blocks={log_blocks * state.plan.block_bytes // block}, version=2
         =                       sectsz=4096  sunit={log_unit // block} blks, lazy-count=1
realtime =none                   extsz=4096   blocks=0, rtextents=0
"""


def _print_ext4(state: WrittenState) -> str:
    block, capacity = int(state.get("mke2fs", "-b")), state.plan.capacity or 0
    inode_bytes = _MIB if state.get("mke2fs", "-T") == "largefile" else 16384
    return f"""Filesystem volume name:   {state.get("mke2fs", "-L")}
Last mounted on:          /scratch
Filesystem UUID:          1111
Filesystem magic number:  0xEF53
Filesystem features:      has_journal ext_attr {"extent" if state.get("mke2fs", "-t") == "ext4" else ""} flex_bg
Filesystem state:         clean
Inode count:              {capacity // inode_bytes}
Block count:              {capacity // block}
Reserved block count:     {capacity // block * int(state.get("mke2fs", "-m")) // 100}
Block size:               {block}
Blocks per group:         32768
RAID stride:              {state.get("mke2fs", "-E stride")}
RAID stripe width:        {state.get("mke2fs", "-E stripe_width")}
Total journal size:       {state.get("mke2fs", "-J size")}M
"""


def print_lun_host(state: WrittenState) -> list[str]:
    """lsblk, lvs, pvs, xfs_info, findmnt and settings of a host with a volume over LUNs."""
    volume = {"name": "vol-vol", "kname": "dm-0", "type": "lvm", "size": state.plan.capacity, "fstype": "xfs",
              "mountpoint": "/scratch", "label": state.get("mkfs.xfs", "-L")}  # fmt: skip
    rows, partitions = list[dict[str, Any]](), list[str]()
    names_of_partitions = state.list_all("sgdisk", "--change-name")
    for position, (letter, text) in enumerate(zip("bcdg", state.list_all("sgdisk", "--new"), strict=True)):
        number, start, size = text.split(":")
        name = f"sd{letter}{number}"
        part = {"name": name, "kname": name, "type": "part", "size": parse_written_size(size[1:]),
                "partlabel": names_of_partitions[position].partition(":")[2],
                "start": (parse_written_size(start) or 0) // 512,
                "children": [volume] if letter != "g" else []}  # fmt: skip
        partitions += [name] if letter != "g" else []
        rows.append({"name": f"sd{letter}", "kname": f"sd{letter}", "type": "disk", "size": 8 * 10**12, "rota": True,
                     "children": [part]})  # fmt: skip
    segment = {"vg_name": "vol", "lv_name": "vol", "lv_attr": "-wi-ao----", "lv_size": str(state.plan.capacity),
               "stripes": state.get("lvcreate", "--stripes"),
               "stripe_size": str(state.get_size("lvcreate", "--stripesize")),
               "devices": ",".join(f"/dev/{name}(0)" for name in partitions)}  # fmt: skip
    physical = [{"pv_name": f"/dev/{name}", "vg_name": "vol",
                 "pe_start": str(state.get_size("pvcreate", "--dataalignment")),
                 "vg_extent_size": str(state.get_size("vgcreate", "--physicalextentsize"))}
                for name in partitions]  # fmt: skip
    disks = {name: ["dm-0"] if name == "queue/read_ahead_kb" else ["sdb", "sdc", "sdd"]
             for name in _list_settings(state)}  # fmt: skip
    return [
        json.dumps({"blockdevices": rows}), json.dumps({"report": [{"seg": [segment]}]}),
        json.dumps({"report": [{"pv": physical}]}), _print_xfs(state, "/dev/dm-0"), _print_mount(state, "/dev/dm-0"),
        *_print_settings(state, disks),
    ]  # fmt: skip


def print_multipath_host(state: WrittenState) -> list[str]:
    """The host with LUNs, each of which is a map over two disks: the maps have queues, the disks have a depth."""
    first, *others = print_lun_host(state)
    rows, maps = list[dict[str, Any]](), list[str]()
    for number, lun in enumerate(json.loads(first)["blockdevices"]):
        name = f"mpath{'abcd'[number]}"
        top = {**lun, "name": name, "kname": f"dm-{number + 1}", "type": "mpath"}
        disks = [f"sd{path}{'bcdg'[number]}" for path in "xy"]
        rows += [{"name": disk, "kname": disk, "type": "disk", "size": lun["size"], "rota": True, "children": [top]}
                 for disk in disks]  # fmt: skip
        paths = "".join(f"  |- {path}:0:0:{number} {disk} 8:{16 * number + path} active ready running\n"
                        for path, disk in enumerate(disks))  # fmt: skip
        maps.append(f"{name} (3600{number}) dm-{number + 1} ACME,LUN\nsize=8.0T features='1 queue_if_no_path'"
                    " hwhandler='1 alua' wp=rw\n`-+- policy='service-time 0' prio=50"
                    f" status=active\n{paths}")  # fmt: skip
    disks_by_setting = {
        name: ["dm-0"] if name == "queue/read_ahead_kb"
        else [f"sd{path}{letter}" for path in "xy" for letter in "bcd"] if name == "device/queue_depth"
        else ["dm-1", "dm-2", "dm-3"]
        for name in _list_settings(state)
    }  # fmt: skip
    texts = [text for text in others if "/sys/block" not in text]
    for number, letter in enumerate("bcdg"):
        texts = [text.replace(f"/dev/sd{letter}1", f"/dev/mapper/mpath{'abcd'[number]}1") for text in texts]
    return [json.dumps({"blockdevices": rows}), "".join(maps), *texts, *_print_settings(state, disks_by_setting)]


def print_pool_host(state: WrittenState) -> list[str]:
    """zpool status with the properties of the pool, and settings of its drives."""
    kind, *devices = state.get("zpool", "").split()[2:]
    end = devices.index("spare") if "spare" in devices else len(devices)
    drives = devices[:end]
    count = len(drives)
    rows = "".join(f"\t    sd{letter}  ONLINE       0     0     0\n" for letter in "bcdefghijklmnopq"[:count])
    properties = "".join(f"scratch  {name}  {state.get(program, option)}  local\n" for program, option, name in (
        ("zpool", "-o ashift", "ashift"), ("zpool", "-O recordsize", "recordsize"), ("zpool", "-O atime", "atime"),
        ("zpool", "-O xattr", "xattr"), ("zpool", "-O compression", "compression"), ("zfs", "mountpoint", "mountpoint"),
    ))  # fmt: skip
    head = "\tNAME        STATE     READ WRITE CKSUM\n\tscratch  ONLINE       0     0     0\n"
    scan = "  scan: scrub repaired 0B in 09:41:22 with 0 errors on Sun Nov  8 10:05:24 2026\n"
    return [
        f"  pool: scratch\n state: ONLINE\n{scan}config:\n\n{head}\t  {kind}-0  ONLINE       0     0     0\n{rows}"
        f"\tspares\n\t  sdz      AVAIL\n\nerrors: No known data errors\n{properties}",
        *_print_settings(state, {name: ["sdb", "sdc"] for name in _list_settings(state)}),
    ]


def print_lustre_servers(state: WrittenState) -> list[str]:
    """tunefs.lustre of all targets, and parameters of the OSTs."""
    texts, targets = list[str](), list[str]()
    for number in dict.fromkeys(each.number for each in state.attributes if each.program == "mkfs.lustre"):
        target_state = WrittenState(tuple(each for each in state.attributes if each.number == number), state.plan)
        texts.append(_print_target(target_state))
        targets.append(texts[-1].split("Target:")[1].split()[0])
    size = state.get("lctl", "brw_size")
    parameters = "".join(f"obdfilter.{name}.brw_size={size}\n" for name in targets if "OST" in name)
    return [*texts, parameters, *_print_backends(state), *_print_target_arrays(state, targets)]


def _print_backends(state: WrittenState) -> list[str]:
    """dumpe2fs of the targets with options of ldiskfs."""
    texts = []
    for number in dict.fromkeys(each.number for each in state.attributes if each.program == "mkfs.lustre"):
        target = WrittenState(tuple(each for each in state.attributes if each.number == number), state.plan)
        option = {name: target.get("mkfs.lustre", f"--mkfsoptions {name}", "0") for name in
                  ("-b", "-E stride", "-E stripe_width", "-J size")}  # fmt: skip
        index = target.get("mkfs.lustre", "--index")
        if option["-b"] == "0" or not index:
            continue
        role = "MDT" if target.has("mkfs.lustre", "--mdt") else "OST"
        protection = "mmp" if target.has("mkfs.lustre", "--servicenode") else ""  # as mkfs.lustre decides
        texts.append(f"""Filesystem volume name:   {target.get("mkfs.lustre", "--fsname")}-{role}{int(index):04x}
Last mounted on:          /
Filesystem magic number:  0xEF53
Filesystem features:      has_journal ext_attr extent flex_bg {protection}
Block count:              {4 * _TIB // 4096}
Block size:               {option["-b"]}
Blocks per group:         32768
RAID stride:              {option["-E stride"]}
RAID stripe width:        {option["-E stripe_width"]}
Total journal size:       {option["-J size"]}M
""")
    return texts


def _print_target_arrays(state: WrittenState, targets: Sequence[str]) -> list[str]:
    """lsblk, mdadm and settings of the arrays below all targets; those of metadata are mirrors of flash."""
    rows, details, settings = list[dict[str, Any]](), list[str](), list[str]()
    numbers = list(dict.fromkeys(each.number for each in state.attributes if each.program == "mdadm"))
    # each server makes one array for its one target
    for position, (number, label) in enumerate(zip(numbers, targets, strict=True)):
        end = [*numbers, 10**9][position + 1]
        target_state = WrittenState(tuple(each for each in state.attributes if number <= each.number < end), state.plan)
        array, level = f"md{position}", target_state.get("mdadm", "--level")
        drives = [f"sd{'abcd'[position]}{letter}" for letter in "abcdefghijklmnop"[: _count_devices(target_state)]]
        top = {"name": array, "kname": array, "type": f"raid{level}", "size": 4 * _TIB, "rota": "OST" in label,
               "fstype": "ext4", "label": label}  # fmt: skip
        rows += [{"name": name, "kname": name, "type": "disk", "size": (4 if "OST" in label else 1) * 10**12,
                  "rota": "OST" in label, "children": [top]} for name in drives]  # fmt: skip
        details.append(_print_mdadm(target_state, array, drives))
        settings += _print_settings(target_state, {name: [array] if name in _ARRAY_SETTINGS else drives
                                                   for name in _list_settings(target_state)})  # fmt: skip
    return [json.dumps({"blockdevices": rows}), *details, "".join(settings)]


def _print_target(target_state: WrittenState) -> str:
    fsname, index = target_state.get("mkfs.lustre", "--fsname"), target_state.get("mkfs.lustre", "--index")
    role = "MDT" if target_state.has("mkfs.lustre", "--mdt") else "OST"
    name = f"{fsname}-{role}{int(index):04x}" if index else "MGS"
    flags = " ".join([role] * bool(index) + ["MGS"] * target_state.has("mkfs.lustre", "--mgs"))
    parameters = [f"mgsnode={value}" for value in target_state.list_all("mkfs.lustre", "--mgsnode")]
    nodes = target_state.list_all("mkfs.lustre", "--servicenode")
    parameters += [f"failover.node={':'.join(nodes)}"] if nodes else []
    return f"""checking for existing Lustre data: found

   Read previous values:
Target:     {name}
Index:      {index}
Lustre FS:  {fsname or "fs"}
Mount type: {target_state.get("mkfs.lustre", "--backfstype")}
Flags:      0x1002
              ({flags} )
Persistent mount opts: errors=remount-ro
Parameters:  {" ".join(parameters)}
"""
