# SPDX-License-Identifier: Apache-2.0
"""What servers and clients of Lustre report of services, and what they have in common."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from lustre_hosts import find_faults, print_client, print_server

RECOVERY = """obdfilter.fs-OST0001.recovery_status=
status: {}
recovery_start: 1732700000
completed_clients: 118/120
IR: ENABLED
obdfilter.fs-OST0001.degraded=0"""
CHANGELOG = """mdd.fs-MDT0000.changelog_users=
current_index: 912345678
ID                            index (idle) mask
cl1                           {} ({}) mask=CREAT,UNLNK"""
OLD_CHANGELOG = "mdd.fs-MDT0000.changelog_users=current index: 8\nID    index (idle seconds)\ncl2   8 (180)\n"
THREADS = "ost.OSS.ost_io.threads_max={}"
OSP = "".join(f"{index:3d} UP osp fs-OST{index:04x}-osc-MDT0000 fs-MDT0000-mdtlov_UUID 4\n" for index in range(3))
TABLE = "UUID                   1K-blocks        Used   Available Use% Mounted on\n"


def print_df(*percents: int) -> str:
    return TABLE + "".join(
        f"fs-OST{index:04x}_UUID 14500000000 {percent * 145000000} {(100 - percent) * 145000000} {percent}%"
        f" /fs[OST:{index}]\n"
        for index, percent in enumerate(percents)
    )  # fmt: skip


@pytest.mark.parametrize(("host", "name", "text", "kind"), [
    ("oss1", "recovery_status", RECOVERY.format("RECOVERING"), "target in recovery"),
    ("oss1", "recovery_status", RECOVERY.format("COMPLETE"), ""),
    ("login", "changelog_users", CHANGELOG.format(1200, 40), "changelog not read"),
    ("login", "changelog_users", CHANGELOG.format(912345600, 1209600), "changelog not read"),
    ("login", "changelog_users", CHANGELOG.format(912345600, 2), ""),
    ("login", "changelog_users", CHANGELOG.format(1200, 40).replace("cl1 ", "cl1-audit "), "changelog not read"),
    ("login", "changelog_users", CHANGELOG.format(1200, 40).replace("cl1 ", "audit-cl1 "), "changelog not read"),
    ("login", "changelog_users", OLD_CHANGELOG, ""),
    ("oss1", "threads_max", THREADS.format(16), "parameter too small"),
    ("oss1", "threads_max", THREADS.format(512), ""),
    ("login", "lfs df", print_df(44, 44, 44, 44), ""),
    ("login", "lfs df", print_df(44, 44, 1, 44), "uneven use"),
    ("login", "lfs df", print_df(44, 44, 44), "target unknown to a client"),
    ("login", "lfs df", print_df(44, 44, 44, 44).replace("[OST:2]", "[OST:2] f"), ""),
    ("login", "lfs df", print_df(44, 44, 44, 44).replace("[OST:2]", "[OST:2] D"), "degraded"),
    ("login", "lfs df", print_df(44, 44, 44, 44).replace("[OST:2]", "[OST:2] R"), "mounted read-only"),
    ("oss1", "lctl dl", OSP, "target unknown to its metadata server"),
])  # fmt: skip
def test_report_of_a_service_is_one_fault(tmp_path: Path, host: str, name: str, text: str, kind: str) -> None:
    faults = find_faults(tmp_path, extra={host: {name: text}})
    assert [fault.kind for fault in faults] == [kind] * bool(kind)


@pytest.mark.parametrize(("text", "problem"), [
    (THREADS, "ost_io.threads_max is 512 on oss1, 64 on oss2"), ("version={}", "the version of Lustre is 512 on oss1"),
])  # fmt: skip
def test_setting_of_one_server_is_compared(tmp_path: Path, text: str, problem: str) -> None:
    extra = {host: {"lctl get_param of servers": text.format(value)} for host, value in (("oss1", 512), ("oss2", 64))}
    (fault,) = find_faults(tmp_path, extra=extra)
    assert fault.kind == "servers differ"
    assert problem in fault.problem
    same = {host: {"lctl get_param of servers": text.format(512)} for host in ("oss1", "oss2")}
    assert find_faults(tmp_path, extra=same) == ()


def test_client_without_a_management_server_is_reported(tmp_path: Path) -> None:
    outputs = print_client()
    outputs["findmnt --json --real"] = outputs["findmnt --json --real"].replace("10.0.0.1@o2ib:10.0.0.2", "10.0.0.1")
    (fault,) = find_faults(tmp_path, client=outputs)
    assert (fault.kind, fault.location) == ("management server missing", "login: /fs")
    assert "the labels of the targets also name 10.0.0.2@o2ib" in fault.problem


def test_target_that_no_server_has_mounted_is_reported(tmp_path: Path) -> None:
    outputs = print_server("oss2", {2: False, 3: False}, {}, "noauto")
    disks = json.loads(outputs["lsblk --json --bytes --output-all"])["blockdevices"]
    for disk in disks:
        disk["children"] = [{**disk, "name": f"md{disk['name'][-1]}", "kname": f"md{disk['name'][-1]}",
                             "type": "raid6", "wwn": None}]  # fmt: skip
    mounts = json.loads(outputs["findmnt --json --real"])["filesystems"][:1]
    changed = {"lsblk --json --bytes --output-all": json.dumps({"blockdevices": disks}),
               "findmnt --json --real": json.dumps({"filesystems": mounts})}  # fmt: skip
    faults = [each for each in find_faults(tmp_path, extra={"oss2": changed}) if each.kind == "target not mounted"]
    assert [fault.location for fault in faults] == ["fs-OST0003"]
    assert re.match(r"oss2 runs its array mdc, but none", faults[0].problem)
