# SPDX-License-Identifier: Apache-2.0
"""Recorded outputs of Linux tools are parsed; incomplete and unknown ones are one sentence."""

from __future__ import annotations

from pathlib import Path

import pytest
from layout_fault_kinds import find_kinds

from sonde.design.layout.geometry import GIB, KIB, MIB
from sonde.design.layout.live.saved_output import FORMS, read_files, read_saved_output
from sonde.model.errors import UserError

DATA = Path(__file__).resolve().parents[3] / "data" / "layout"


@pytest.mark.parametrize(
    ("file", "expected_names"),
    [
        ("lsblk.json", {"slice is not aligned"}),
        ("mdadm-export.txt", set()),
        ("mdadm-detail.txt", {"degraded", "rebuilding", "no bitmap"}),
        ("lvs.json", set()),
        ("multipathd.json", {"path errors", "path failed"}),
        ("dumpe2fs.txt", set()),
        ("getstripe.txt", {"stripe does not fit RPCs", "objects on one target", "objects are missing"}),
        (
            "zpool.txt",
            {"unequal members of a stripe", "degraded", "sectors too small", "too full", "no spare", "no recent scrub"},
        ),
    ],
)
def test_recorded_outputs_are_parsed(file: str, expected_names: set[str]) -> None:
    assert find_kinds(read_files([DATA / file])) == expected_names


def test_recorded_outputs_have_the_expected_values() -> None:
    storage = read_files([DATA / name for name in ("lsblk.json", "mdadm-export.txt", "mdadm-detail.txt", "lvs.json")])
    assert storage.disks["md5"].full_stripe_bytes == 1536 * KIB
    assert (storage.disks["md6"].geometry, storage.disks["md6"].unit) == ("8+2", 128 * KIB)
    assert storage.disks["fast-scratch"].members == ("md5", "md6")
    (home,) = read_files([DATA / "dumpe2fs.txt"]).file_systems
    assert (home.unit, home.width, home.log) == (512 * KIB, MIB, GIB)


# a log without errors is complete, each line of systemctl names a unit, and drives of NVMe have no SCSI address
_COMPLETE_FORMS = ("dmesg", "systemctl show", "find /sys/block -type l")


@pytest.mark.parametrize("form", [form for form in FORMS if form not in _COMPLETE_FORMS])
def test_incomplete_output_is_one_sentence(form: str) -> None:
    heads = {
        "lsblk --json --bytes --output-all": '{"blockdevices": []}', "multipathd show maps json": '{"maps": []}',
        "lvs --segments --reportformat json": '{"report": [{"seg": []}]}',
        "pvs --reportformat json": '{"report": [{"pv": []}]}',
        "xfs_info, mkfs.xfs or xfs_growfs -n": "meta-data=/dev/x agcount=4",
        "mdadm --detail": "MD_LEVEL=\nMD_DEVICES=\n",
        "dumpe2fs -h": "Block count:   7", "lfs getstripe": "lmm_stripe_count: 1", "zpool status": "  pool: ",
        "csmreport": "RS200 starting at Chassis: 1", "xlv_mgr show -long": "VE x [active]\n", "pm": "pm4d7L0\n",
        "parts": "part 1 lots", "sfdisk --json": '{"partitiontable": {"partitions": [{}]}}',
        "findmnt": "TARGET SOURCE FSTYPE OPTIONS\n", "zpool list": "NAME SIZE ALLOC FREE\n",
        "/proc/mdstat": "Personalities : [raid1]\nunused devices: <none>\n", "multipath -ll": "mpatha dm-3 \n",
        "multipathd show maps status": "name failback queueing paths dm-st write_prot\n",
        "parted": "Number  Start  End  Size\n", "sgdisk --print": "Number  Start (sector)    End (sector)\n",
        "lsblk": "NAME MAJ:MIN RM SIZE RO TYPE\n", "lvs": "LV VG Attr LSize\n", "blkid": '/dev/x UUID="7"\n',
        'grep -H "" /sys/block/*/queue/*': "/sys/block/sda/queue\n", "lctl get_param, lctl dl": "osc.x.y=\n",
        "mdadm --examine": "   Magic : a92b4efc\n", "zpool get, zfs get": "NAME  PROPERTY  VALUE  SOURCE\n",
        "df -i": "Filesystem Inodes IUsed IFree\n", "smartctl -l scterc": "SCT Error Recovery Control:\n",
        "ls -l /dev/disk/by-id": "lrwx a -> ../../\n", "dmsetup table": "vol: 0 8 linear\n",
        "tunefs.lustre --dryrun": "Lustre FS:  fs1\n", "lfs df": "UUID 1K-blocks Used\n",
        "smartctl -H": "SMART Health Status: OK\n", "/etc/fstab": "UUID=1-2 /\n",
        'grep -H "" /sys/module/zfs/parameters/*': "/sys/module/zfs/parameters/zfs_arc_max\n",
        "/etc/lvm/devices/system.devices": "IDTYPE=devname IDNAME=\n", "lvmconfig devices/filter": "filter=[\n",
        "/proc/swaps": "Filename Type Size Used Priority\n",
        "storcli /call show all J": '{"Controllers": []}',
        "storcli /call show all": "VD LIST :\n", "sg_ses --page=es": "Enclosure Status diagnostic page:\n",
        "ssacli controller all show config detail": "Smart Array P440 in Slot 0\n",
        'grep -H "" /sys/class/scsi_host/*/*': "/sys/class/scsi_host/host0\n",
        "smartctl -A": "ID# ATTRIBUTE_NAME FLAG\n", "lfs pool_list": "Pool: fs.flash\n", "lctl list_nids": "0@lo\n",
        "mdadm.conf": "MAILADDR root\n", "date +%Y-%m-%dT%H:%M:%S%z": "2026-02-31T00:00:00+0000\n",
    }  # fmt: skip
    with pytest.raises(UserError) as reason:
        read_saved_output(heads[form], "saved.txt")
    assert "saved.txt" in str(reason.value)


@pytest.mark.parametrize(
    ("text", "expected_sentence"),
    [
        ("hello", "is no output that is known"),
        ('{"blockdevices": [', "is not valid JSON"),
        ("", "is no output that is known"),
    ],
)
def test_unknown_output_is_one_sentence(text: str, expected_sentence: str) -> None:
    with pytest.raises(UserError, match=expected_sentence):
        read_saved_output(text, "saved.txt")
