# SPDX-License-Identifier: Apache-2.0
"""Saved outputs of more tools, outputs of several tools joined, and the collector."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from planted_layout_faults import make_server_outputs
from storage_builders import build_lun_system

from sonde.design.layout.check import check_layout
from sonde.design.layout.check_system import check_described_storage
from sonde.design.layout.live.collector import make_collector
from sonde.design.layout.live.saved_output import read_files, read_saved_output
from sonde.model.bundled_files import find_system_file
from sonde.model.system import make_system, read_system

MDSTAT = """Personalities : [raid6] [raid5] [raid4] [raid10]
md5 : active raid6 sdc[2] sdb[1] sda[0] sdd[3](S) sde[4](F)
      23441682432 blocks super 1.2 level 6, 256k chunk, algorithm 2 [4/3] [UUU_]
      [==>..................]  recovery = 12.6% (123/456) finish=12.1min speed=100K/sec
      bitmap: 1/8 pages [4KB], 65536KB chunk

md7 : active raid10 sdf[0] sdg[1] sdh[2] sdi[3]
      1000000 blocks super 1.2 512K chunks 2 near-copies [4/4] [UUUU]

unused devices: <none>
"""
PARTED = """Model: ATA (scsi)
Disk /dev/sdb: 19532873728s
Sector size (logical/physical): 512B/4096B
Partition Table: gpt

Number  Start  End           Size          File system  Name  Flags
 1      63s    19532873694s  19532873632s               data
"""
SFDISK = {"partitiontable": {"label": "gpt", "device": "/dev/nvme0n1", "unit": "sectors", "sectorsize": 512,
          "partitions": [{"node": "/dev/nvme0n1p1", "start": 2048, "size": 4096}]}}  # fmt: skip
LSBLK = """NAME        MAJ:MIN RM  SIZE RO TYPE  MOUNTPOINTS
sda           8:0    0  1.8T  0 disk
└─sda1        8:1    0  1.8T  0 part
  └─md5       9:5    0  3.6T  0 raid0 /scratch
sdb           8:16   0  1.8T  0 disk
└─sdb1        8:17   0  1.8T  0 part
  └─md5       9:5    0  3.6T  0 raid0 /scratch
"""
LVS = """  LV      VG   Attr       LSize  #Str Stripe Devices
  scratch fast -wi-ao---- 10.91t    2  1.00m /dev/md5(0),/dev/md6(0)
"""


def test_mdstat_has_level_chunk_spares_and_bitmap() -> None:
    disks = read_saved_output(MDSTAT, "mdstat").disks
    assert (disks["md5"].geometry, disks["md5"].unit, disks["md5"].members) == (
        "2+2",
        256 * 1024,
        ("sda", "sdb", "sdc"),
    )
    assert {name: disks["md5"].settings[name] for name in ("spares", "failed", "bitmap", "degraded")} == {
        "spares": "1", "failed": "1", "bitmap": "internal", "degraded": "1"
    }  # fmt: skip
    assert disks["md5"].settings["bitmap_position"] == "internal"
    assert disks["md7"].settings["bitmap"] == "none"
    assert "bitmap_position" not in disks["md7"].settings
    in_file = MDSTAT.replace("65536KB chunk", "65536KB chunk, file: /bitmaps/md5")
    assert read_saved_output(in_file, "mdstat").disks["md5"].settings["bitmap_position"] == "/bitmaps/md5"
    assert disks["md7"].geometry == "2x2"


@pytest.mark.parametrize(("line", "kinds"), [
    ("      resync=PENDING", {"resync waits"}), ("      resync=DELAYED", {"resync waits"}),
    ("      [==>..................]  resync = 12.6% (123/456) finish=12.1min speed=100K/sec", {"rebuilding"}),
])  # fmt: skip
def test_resync_that_has_not_begun_is_no_rebuild(line: str, kinds: set[str]) -> None:
    progress = next(each for each in MDSTAT.splitlines() if "recovery" in each)
    faults = check_layout(read_saved_output(MDSTAT.replace(progress, line), "mdstat")).faults
    assert {fault.kind for fault in faults} & {"resync waits", "rebuilding"} == kinds


def test_partition_tables_have_exact_starts() -> None:
    (parted,) = read_saved_output(PARTED, "parted").disks.values()
    assert (parted.name, parted.start, parted.on) == ("sdb1", 63 * 512, "sdb")
    (sfdisk,) = read_saved_output(json.dumps(SFDISK), "sfdisk").disks.values()
    assert (sfdisk.name, sfdisk.start) == ("nvme0n1p1", 2**20)
    rounded = read_saved_output(PARTED.replace("63s ", "32.3kB").replace("632s ", "10.0TB"), "parted")
    assert next(iter(rounded.disks.values())).start is None
    assert any("is rounded" in line for line in rounded.unread)


def test_plain_tables_are_read() -> None:
    disks = read_saved_output(LSBLK, "lsblk").disks
    assert disks["md5"].members == ("sda1", "sdb1")
    assert disks["sda1"].on == "sda"
    assert disks["sda"].size == int(1.8 * 2**40)
    (volume,) = read_saved_output(LVS, "lvs").disks.values()
    assert (volume.name, volume.data, volume.unit, volume.members) == ("fast-scratch", 2, 2**20, ("md5", "md6"))
    (pool,) = read_saved_output(
        "NAME   SIZE  ALLOC   FREE  CAP  HEALTH\ntank  10T  9T 1T 90% DEGRADED\n", "list"
    ).file_systems
    assert {fault.kind for fault in check_layout(read_saved_output(
        "NAME   SIZE  ALLOC   FREE  CAP  HEALTH\ntank  10T  9T 1T 90% DEGRADED\n", "list")).faults} == {
        "degraded", "too full"}  # fmt: skip
    assert pool.location == "tank"


def test_lsblk_without_bytes_is_read() -> None:
    document = {"blockdevices": [{"name": "sda", "type": "disk", "size": "1.8T"}]}
    (disk,) = read_saved_output(json.dumps(document), "lsblk").disks.values()
    assert disk.size == int(1.8 * 2**40)


def test_striped_xfs_info_is_understood() -> None:
    outputs = make_server_outputs()
    storage = read_saved_output(outputs["xfs_info"], "xfs_info")
    assert storage.unread == ()
    assert storage.file_systems[0].width == 2 * 2**20


def test_outputs_of_several_tools_are_joined(tmp_path: Path) -> None:
    """ext4 names no device: its UUID leads to the array, and the chunk of the array to its stride."""
    outputs = make_server_outputs()
    paths = []
    for name in ("lsblk", "mdadm md6", "dumpe2fs"):
        paths.append(tmp_path / name)
        paths[-1].write_text(outputs[name], encoding="utf-8")
    (file_system,) = read_files(paths).file_systems
    assert file_system.device == "/dev/md6"
    alone = check_layout(read_files([paths[2]])).unknown
    assert any("the RAID stripe below /home" in text for text in alone)
    assert not any("the RAID stripe below" in text for text in check_layout(read_files(paths)).unknown)
    paths[1].write_text(outputs["mdadm md6"].replace("raid5", "raid1"), encoding="utf-8")
    lsblk = re.sub(r', "min-io": \d+, "opt-io": \d+', "", outputs["lsblk"]).replace("raid5", "raid1")
    paths[0].write_text(lsblk, encoding="utf-8")
    assert not any("RAID stripe" in text for text in check_layout(read_files(paths)).unknown), "mirrors have no stripe"


def test_array_is_identified_by_name_and_by_number(tmp_path: Path) -> None:
    exported = "MD_LEVEL=raid5\nMD_DEVICES=3\nMD_DEVNAME=scratch\n" + "".join(
        f"MD_DEVICE_dev_sd{letter}_DEV=/dev/sd{letter}\n" for letter in "abc"
    )
    disks = [{"name": f"sd{letter}", "type": "disk", "children": [{"name": "md127", "type": "raid5"}]}
             for letter in "abc"]  # fmt: skip
    for name, text in (("mdadm", exported), ("lsblk", json.dumps({"blockdevices": disks}))):
        (tmp_path / name).write_text(text, encoding="utf-8")
    joined = read_files([tmp_path / "mdadm", tmp_path / "lsblk"]).disks
    assert "scratch" not in joined
    assert joined["md127"].geometry == "2+1"


def test_collected_output_is_read_in_parts(tmp_path: Path) -> None:
    text = "".join(f"=== sonde layout collect: {name} ===\n{part}\n" for name, part in make_server_outputs().items())
    path = tmp_path / "host.txt"
    path.write_text(f"{text}=== sonde layout collect: strange tool ===\nhello\n", encoding="utf-8")
    storage = read_files([path])
    assert {"md5", "md6", "dm-3", "sdq1"} <= set(storage.disks)
    assert any("strange tool" in text for text in storage.unknown)
    assert check_layout(storage).faults == ()


@pytest.mark.parametrize(("command", "line", "last_line"), [
    ("cat /etc/mdadm.conf", "MAILADDR root", "ARRAY /dev/md/hg0 metadata=1.2 UUID=7624c1df:fade2aee:aa13c15c:e2e38f27"),
    ("lctl dl", "  0 UP mgs 1 UP mgs 1 UP mgs MGS 5", "  9 UP osd-ldiskfs fs-OST0000-osd fs-OST0000-osd_UUID 5"),
])  # fmt: skip
def test_long_output_of_a_tool_is_read_in_linear_time(tmp_path: Path, command: str, line: str, last_line: str) -> None:
    """Endless, if the pattern of empty output could divide these lines in many ways."""
    path = tmp_path / "host.txt"
    lines = "\n".join([*[line] * 2000, last_line])
    path.write_text(f"=== sonde layout collect: {command} ===\n{lines}\n", encoding="utf-8")
    read_files([path])


@pytest.mark.parametrize("warning", ["", "  WARNING: VG fast is missing PV 9cQmHf-1rQb (last written to /dev/md6)."])
def test_json_output_with_lvm_messages_is_parsed(tmp_path: Path, warning: str) -> None:
    """The collector saves standard error too, on which LVM prints a missing physical volume."""
    report = json.dumps({"report": [{"lv": [{"lv_name": "scratch", "vg_name": "fast", "lv_attr": "-wi-ao--p-"}]}]})
    path = tmp_path / "host.txt"
    path.write_text(
        f"=== sonde layout collect: lvs --reportformat json ===\n{warning}\n{report}{warning}\n", encoding="utf-8"
    )
    storage = read_files([path])
    assert storage.unknown == ()
    assert [fault.kind for fault in check_layout(storage).faults] == ["volume lacks a device"]


def test_collector_runs_and_its_output_is_read(tmp_path: Path) -> None:
    script = tmp_path / "collect.sh"
    script.write_text(make_collector(), encoding="utf-8")
    completed = subprocess.run(["sh", str(script)], capture_output=True, text=True, check=False)
    assert completed.returncode == 0, completed.stderr
    path = tmp_path / "host.txt"
    path.write_text(completed.stdout, encoding="utf-8")
    if "=== sonde layout collect" not in completed.stdout:
        pytest.skip("none of the tools is on this machine")
    read_files([path])


def build_striped(members: list[str], **volume: Any) -> dict[str, Any]:
    document = build_lun_system()
    document["volumes"] = [{"id": "vol", "kind": "stripe", "members": members, "stripe_unit": "2 MiB", **volume}]
    document["file_systems"] = [{"id": "fs", "kind": "xfs", "device": "vol", "stripe_unit": "2 MiB",
                                 "stripe_width": "4 MiB"}]  # fmt: skip
    return document


def review(document: dict[str, Any]) -> set[str]:
    faults = check_described_storage(make_system(document, "made.toml")).faults
    return {fault.kind for fault in faults} - {"no spare"}


def test_described_storage_is_reviewed() -> None:
    assert review(build_striped(["b1g0-lun", "b2g0-lun"])) == set()
    assert review(build_striped(["b1g0-lun", "b1g2-lun"])) == {"one controller for all members"}
    assert review(build_striped(["b1g0-lun", "b2g0-lun"], stripe_unit="1 MiB")) == {"unit does not fit the stripe"}
    two_of_a_group = build_striped(["b1g0-first", "b1g0-second"])
    two_of_a_group["luns"] = [{"id": f"b1g0-{name}", "raid_group": "b1g0", "size": "3 GB"}
                              for name in ("first", "second")]  # fmt: skip
    assert "two pieces of a group in a stripe" in review(two_of_a_group)
    wide = build_striped(["b1g0-lun", "b2g0-lun"])
    wide["file_systems"][0]["stripe_width"] = "6 MiB"
    assert review(wide) == {"width does not fit the stripe"}
    odd = build_striped(["b1g0-lun", "b2g0-lun"])
    odd["file_systems"][0]["stripe_unit"] = "3 MiB"
    assert "unit does not fit the stripe" in review(odd) or "width is no multiple of unit" in review(odd)


def test_published_layout_has_no_fault_but_absent_spares() -> None:
    faults = check_described_storage(read_system(find_system_file("cray-x1"))).faults
    assert {fault.kind for fault in faults} <= {"no spare"}


def test_empty_outputs_of_the_collector_are_reported(tmp_path: Path) -> None:
    head = "smartctl 7.4 2023-08-01 r5530\nCopyright (C) 2002-23, Bruce Allen"
    parts = {
        "lsblk": LSBLK, "cat /proc/mdstat": "Personalities : [raid6]\nunused devices: <none>",
        "lvs --segments": '{"report": [{"seg": []}], "log": []}', "pvs": '{ "report": [ { "pv": [ ] } ] }',
        "dmsetup table": "No devices found", "zpool list": "", "smartctl -l scterc /dev/sda": head,
        "cat /proc/swaps": "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority",
        "smartctl -l scterc /dev/sdb": f"{head}\n", "other": "a text",
    }  # fmt: skip
    path = tmp_path / "host.txt"
    path.write_text("".join(f"=== sonde layout collect: {name} ===\n{text}\n\n" for name, text in parts.items()))
    assert read_files([path]).unknown == (
        "what other says; it has no known form",
        "lvs --segments, pvs, zpool list: the output is empty or has no entry",
    )


def test_mark_with_a_line_break_begins_a_part(tmp_path: Path) -> None:
    """echo of dash prints the backslash and n in the arguments of find as the end of a line."""
    path = tmp_path / "host.txt"
    path.write_text(
        "=== sonde layout collect: cat /etc/fstab ===\nUUID=1111 /scratch xfs noatime 0 0\n\n"
        "=== sonde layout collect: find /dev -type l -printf %p %l\n ===\n/dev/mapper/a ../dm-0\n\n", encoding="utf-8"
    )  # fmt: skip
    storage = read_files([path])
    assert [entry.mount_point for entry in storage.fstab] == ["/scratch"]
    assert storage.disks["dm-0"].settings["links"] == "/dev/mapper/a"


def test_collector_prints_each_command_in_one_line() -> None:
    function = make_collector().partition("part() {")[2].partition("\n}")[0]
    script = f"part() {{{function}\n}}\npart true -printf '%p %l\\n'\n"
    completed = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True)
    assert completed.stdout.startswith("=== sonde layout collect: true -printf %p %l\\n ===\n")


def test_error_recovery_of_sas_drives_is_not_missed(tmp_path: Path) -> None:
    path = tmp_path / "host.txt"
    path.write_text("".join(
        f"=== sonde layout collect: smartctl -l scterc /dev/{name} ===\nsmartctl 7.2 2020-12-30 r5155 (local build)\n"
        "Copyright (C) 2002-20, Bruce Allen\n\nSCSI device successfully opened\n\nUse 'smartctl -a' (or '-x') to print"
        " SMART (and more) information\n\n" for name in ("sda", "sdb")), encoding="utf-8")  # fmt: skip
    assert read_files([path]).unknown == ()


@pytest.mark.parametrize("debug", ["debug=ioctl neterror\n", ""])
def test_parameters_of_a_standby_server_are_read(debug: str, tmp_path: Path) -> None:
    path = tmp_path / "mds2.txt"
    errors = "".join(f"error: get_param: param_path '{name}': No such file or directory\n"
                     for name in ("obdfilter/*/brw_size", "osc/*/active"))  # fmt: skip
    path.write_text(f"=== sonde layout collect: lctl get_param 'obdfilter.*.brw_size' debug ===\n{errors}{debug}\n")
    storage = read_files([path])
    assert not any("no known form" in text for text in storage.unknown)
    assert [each.facts for each in storage.file_systems] == [{"debug": "ioctl neterror"}] * bool(debug)
