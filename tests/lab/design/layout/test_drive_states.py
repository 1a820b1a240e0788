# SPDX-License-Identifier: Apache-2.0
"""States of drives, paths, arrays, pools and mounts in which requests fail, with causes and remedies that fit."""

from __future__ import annotations

import pytest
from planted_layout_faults import Outputs, change, check_outputs, make_server_outputs

from sonde.design.layout.faults import LayoutFault
from sonde.design.layout.live.saved_output import read_collector_output

MDSTAT = """Personalities : [raid6]
md5 : active (read-only) raid6 sdj[9] sdi[8] sdh[7] sdg[6] sdf[5] sde[4] sdd[3] sdc[2] sdb[1] sda[0] sdz[10](S)
      85899345920 blocks super 1.2 level 6, 256k chunk, algorithm 2 [10/10] [UUUUUUUUUU]
      bitmap: 0/88 pages [0KB], 65536KB chunk
"""
REPLACING = """replacing-1  DEGRADED     0     0     0
\t      sdbb    OFFLINE       0     0     0
\t      sdby    ONLINE        0     0     0
"""


def find_faults(outputs: Outputs) -> list[LayoutFault]:
    return list(check_outputs(outputs).faults)


@pytest.mark.parametrize(("kind", "location", "text", "edit"), [
    ("array read-only", "md5", "--readwrite", ("mdadm md5", "State : clean", "State : readonly")),
    ("array broken", "md5", "mdadm --stop it, then mdadm --assemble", (
        "mdadm md5", "State : clean", "State : broken")),
    ("file system stopped", "/home", "e2fsck", ("findmnt", '"rw,noatime"', '"rw,noatime,shutdown"')),
    ("file system stopped", "/scratch", "xfs_repair", ("findmnt", "noatime,largeio", "noatime,shutdown,largeio")),
    ("mount option", "/scratch", "without allocsize", ("findmnt", "noatime,largeio", "noatime,allocsize=64k,largeio")),
    ("errors of a resilver", "tank", "zpool status -v", (
        "zpool", "scrub repaired 0B in 09:41:22 with 0 errors", "resilvered 4.1T in 09:41:22 with 3 errors")),
])  # fmt: skip
def test_state_is_reported_with_its_remedy(kind: str, location: str, text: str, edit: tuple[str, str, str]) -> None:
    outputs = make_server_outputs()
    change(*edit)(outputs)
    (fault,) = find_faults(outputs)
    assert (fault.kind, fault.location) == (kind, location)
    assert text in fault.remedy


def test_mount_that_df_cannot_read_is_reported() -> None:
    table = "Filesystem Type Inodes IUsed IFree IUse% Mounted on\n/dev/md6 ext4 900 100 800 12% /home\n"
    faults = find_faults(make_server_outputs() | {"df": f"df: /scratch: Input/output error\n{table}"})
    assert [(fault.kind, fault.location) for fault in faults] == [("file system stopped", "/scratch")]
    assert "df: Input/output error" in faults[0].problem


def test_array_that_mdstat_shows_as_read_only_is_reported() -> None:
    faults = find_faults({"mdstat": MDSTAT} | make_server_outputs())
    assert [(fault.kind, fault.location) for fault in faults] == [("array read-only", "md5")]
    assert find_faults({"mdstat": MDSTAT.replace("(read-only)", "(auto-read-only)")} | make_server_outputs()) == []


def test_suspended_pool_waits_for_its_drives() -> None:
    outputs = make_server_outputs()
    change("zpool", "state: ONLINE", "state: SUSPENDED")(outputs)
    (fault,) = find_faults(outputs)
    assert "every write, and most reads, wait" in fault.cost
    assert "zpool clear tank" in fault.remedy


def test_replaced_drive_that_stays_is_detached() -> None:
    outputs = make_server_outputs()
    change("zpool", "sdbb    ONLINE       0     0     0\n", REPLACING)(outputs)
    (fault,) = [fault for fault in find_faults(outputs) if fault.kind == "degraded"]
    assert fault.remedy == "zpool detach tank sdbb, which another drive replaces"


@pytest.mark.parametrize(("state", "cost"), [
    ("transport-offline", "the transport has given the device up"), ("blocked", "its requests wait")])  # fmt: skip
def test_state_of_a_path_has_the_remedy_of_a_path(state: str, cost: str) -> None:
    outputs = make_server_outputs() | {"sysfs lines": f"/sys/block/sdaa/device/state:{state}\n"}
    (fault,) = find_faults(outputs)
    assert (fault.kind, fault.location) == ("not optimal", "sdaa")
    assert cost in fault.cost
    assert "cable and port" in fault.remedy


def test_path_with_a_pending_check_counts_as_a_path() -> None:
    outputs = make_server_outputs()
    change("multipath", "sdab 65:176 active ready running", "sdab 65:176 active i/o pending running")(outputs)
    assert find_faults(outputs) == []


@pytest.mark.parametrize(("text", "settings"), [
    ("Smartctl open device: /dev/sdc failed: No such device", {"health": "no answer (No such device)"}),
    ("Read SMART Data failed: Input/output error", {"health": "no answer (Input/output error)"}),
    ("Smartctl open device: /dev/sdc failed: Permission denied", {}),
    ("SMART overall-health self-assessment test result: FAILED!\n- available spare has fallen below threshold",
     {"health": "FAILED! (available spare has fallen below threshold)"}),
])  # fmt: skip
def test_answer_of_smartctl_is_read(text: str, settings: dict[str, str]) -> None:
    storage = read_collector_output(f"=== sonde layout collect: smartctl -H /dev/sdc ===\n{text}\n", "host")
    disk = storage.disks.get("sdc")
    assert (dict(disk.settings) if disk is not None else {}) == settings
    assert bool(storage.unknown) == (not settings)


@pytest.mark.parametrize(("text", "kind"), [
    ("SMART Health Status: WARNING - SPECIFIED TEMPERATURE EXCEEDED [asc=b, ascq=1]", "drive too hot"),
    ("SMART Health Status: DATA CHANNEL IMPENDING FAILURE [asc=5d, ascq=32]", "drive about to fail"),
    ("Read SMART Data failed: Input/output error", "drive does not answer"),
])  # fmt: skip
def test_health_has_a_cause_that_fits(text: str, kind: str) -> None:
    outputs = make_server_outputs()
    outputs["smartctl -H /dev/sdc"] = text
    (fault,) = find_faults(outputs)
    assert (fault.kind, fault.location) == (kind, "sdc")
