# SPDX-License-Identifier: Apache-2.0
"""``sonde layout`` as a user meets it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

LISTINGS = Path(__file__).resolve().parents[2] / "data" / "layout"


def test_layout_plan_writes_all_files(sonde: Any, tmp_path: Path) -> None:
    result = sonde("layout", "plan", "nvme-enclosure", "-o", tmp_path / "layout")
    assert result.code == 0, result.err
    assert {path.name for path in (tmp_path / "layout").iterdir()} == {
        "layout.sh", "layout.svg", "report.txt", "system.toml", "users.txt",
    }  # fmt: skip
    assert "read 50.0 GB/s, write 44.4 GB/s; limit: boxes" in result.out
    again = sonde("layout", "plan", tmp_path / "layout" / "system.toml")
    assert "read 50.0 GB/s, write 44.4 GB/s; limit: boxes" in again.out
    old = sonde("layout", "plan", "cray-x1-requirements", "-o", tmp_path / "old")
    assert "csm-parts-xlv.txt" in old.out


def test_explain_prints_every_derivation(sonde: Any) -> None:
    output = sonde("layout", "plan", "cray-x1", "--explain").out
    text = " ".join(output.split())
    assert "8 data drives x segment 256 KiB" in text
    assert "ceil(853951488 / 262144 blocks of 1 GiB) = 3258 groups" in text
    assert "Not known, so not counted: rates of drives" in text


def test_failed_parts_and_alternatives_are_printed(sonde: Any) -> None:
    without = sonde("layout", "plan", "cray-x1", "--without", "ioca1", "--json").json
    assert without["file_systems"][0]["rates"]["write"] == pytest.approx(500e6)
    lost = sonde("layout", "plan", "laptop-md", "--failures").out
    assert "drive sd1" in lost
    assert "rebuilt after" in lost
    output = sonde(
        "layout", "plan", "nvme-enclosure", "--requirement", "scratch", "--against", "8+1", "--against", "4+1"
    ).out
    assert "1 drive, then 100 %" in output
    report = sonde("layout", "plan", "cray-x1", "--report").out
    assert "RAID-5/8+1/256KB" in report


def test_map_is_printed_with_its_name_and_consequences(sonde: Any, tmp_path: Path) -> None:
    listing = "jb-03 (35000cca2c4a60003) dm-3 HGST,HUH721212AL5200\nsize=11T features='1 queue_if_no_path'"
    listing += " hwhandler='0' wp=rw\n`-+- policy='service-time 0' prio=1 status=active\n"
    listing += "  `- 1:0:3:0 sde 8:64 active ready running\n"
    (tmp_path / "multipath.txt").write_text(listing, encoding="utf-8")
    result = sonde("layout", "check", "--from", tmp_path / "multipath.txt")
    assert result.code == 1
    assert "single path  dm-3 (jb-03)\n" in result.out
    assert "It explains dm-3: requests wait without end when its only path is lost.\n" in result.out


def test_collected_outputs_of_two_hosts_are_checked_alone(sonde: Any, tmp_path: Path) -> None:
    paths = [tmp_path / f"{name}.txt" for name in ("oss1", "oss2")]
    for path, nomerges in zip(paths, (0, 2), strict=True):
        line = f"/sys/block/sda/queue/nomerges:{nomerges}\n"
        path.write_text(f"=== sonde layout collect: grep -H ===\n{line}", encoding="utf-8")
    result = sonde("layout", "check", "--from", paths[0], "--from", paths[1])
    assert result.code == 1
    assert "requests are not merged  oss2: sda\n" in result.out
    assert list(sonde("layout", "check", "--from", paths[0], "--from", paths[1], "--json").json["seen"]) == [
        "oss1", "oss2"]  # fmt: skip


def test_saved_outputs_of_a_host_are_compared_with_all_plans(sonde: Any, tmp_path: Path) -> None:
    mounts = [{"target": mount_point, "source": f"/dev/sd{disk}", "fstype": kind, "options": "rw,relatime"}
              for mount_point, disk, kind in (("/srv/bulk", "y", "ext4"), ("/home", "z", "xfs"))]  # fmt: skip
    disks = [{"kname": f"sd{disk}", "name": f"sd{disk}", "type": "disk", "size": 10**12, "label": name}
             for disk, name in (("y", "bulk"), ("z", "home"))]  # fmt: skip
    path = tmp_path / "host.txt"
    path.write_text(
        f"=== sonde layout collect: findmnt ===\n{json.dumps({'filesystems': mounts})}\n"
        f"=== sonde layout collect: lsblk ===\n{json.dumps({'blockdevices': disks})}\n",
        encoding="utf-8",
    )
    result = sonde("layout", "check", "--from", path, "--plan", "laptop-md")
    assert result.code == 1
    assert "it is ext4; planned is xfs" in result.out
    assert "it is xfs; planned is ext4" in result.out
    single = sonde("layout", "check", "--from", path, "--plan", "laptop-md", "--as", "home")
    assert "it is ext4; planned is xfs" not in single.out


def test_unmet_requirement_is_reported_and_fails(sonde: Any, tmp_path: Path) -> None:
    path = tmp_path / "site.toml"
    path.write_text(
        'schema = "sonde-system/2"\n[[drives]]\nid = "d[0-3]"\nkind = "ssd"\ncapacity = "1 TB"\nrate = "500 MB/s"\n'
        '[[file_systems]]\nid = "fast"\nkind = "xfs"\npurpose = "scratch"\nrequirement = { write = "9 GB/s" }\n',
        encoding="utf-8",
    )
    result = sonde("layout", "plan", path)
    assert result.code == 1
    assert "Not met: fast wants to write 9.00 GB/s" in result.out


def test_saved_outputs_are_checked_against_plan(sonde: Any) -> None:
    result = sonde("layout", "check", "--from", LISTINGS / "pm.txt")
    assert result.code == 0
    assert "Nothing wrong in 1 comparison." in result.out
    result = sonde("layout", "check", "--from", LISTINGS / "mkfs-4plus1.txt", "--plan", "cray-x1", "--as", "single")
    assert result.code == 1
    assert "log too small" in result.out
    assert "Cost: writing that allocates stops growing" in result.out
    other = sonde(
        "layout", "check", "--from", LISTINGS / "mkfs-4plus1.txt", "--plan", "cray-x1", "--as", "large", "--json"
    )
    assert {fault["kind"] for fault in other.json["faults"]} >= {"not as planned"}
    spoilt = sonde("layout", "check", "--from", LISTINGS / "csmreport-as-scanned.txt").out
    assert "a line that could not be parsed" in spoilt


def test_layout_check_inspects_this_machine(sonde: Any, tmp_path: Path) -> None:
    result = sonde("layout", "check", tmp_path)
    assert result.code in (0, 1)
    assert "fault" in result.out or "Nothing wrong was found" in result.out


@pytest.mark.parametrize(
    ("arguments", "expected_text"),
    [
        (("plan", "edisson"), 'Did you mean "edison"?'),
        (("plan", "nvme-enclosure", "--geometry", "8*1"), "is no geometry"),
        (("plan", "nvme-enclosure", "--without", "nvme99"), 'no part "nvme99"'),
        (("plan", "nvme-enclosure", "--against", "8+1"), "--requirement is missing"),
        (("plan", "nvme-enclosure", "--requirement", "scratch"), "--requirement selects the file system"),
        (("plan", "nvme-enclosure", "--requirement", "scrtch", "--against", "8+1"), 'Did you mean "scratch"?'),
        (("plan", "nvme-enclosure", "--requirement", "scratch", "--against", "much"), "is no alternative"),
        (("plan", "nvme-enclosure", "--members", "0"), "members"),
        (("check",), "There is nothing to check"),
        (("verify", "/none/there"), "does not exist"),
        (("verify", "/", "--segment", "64KiB"), "--segment and --stripe go together"),
        (("verify", "/", "--segment", "64k", "--stripe", "1MiB"), "does not say which unit is meant"),
        (("verify", "/", "--segment", "100KiB", "--stripe", "1MiB"), "is no multiple of a segment"),
        (("check", "/none/there"), "cannot be looked at"),
        (("check", "--from", str(LISTINGS.parents[2] / "LICENSE")), "is no output that is known"),
        (("check", "--from", str(LISTINGS / "pm.txt"), "--plan", "cray-x1"), "say with --as which one is meant"),
        (("check", "--from", str(LISTINGS / "pm.txt"), "--plan", "cray-x1", "--as", "larg"), 'Did you mean "large"?'),
        (("check", "--from", str(LISTINGS / "pm.txt"), "--as", "large"), "give the system with --plan"),
    ],
)
def test_impossible_request_prints_one_sentence(sonde: Any, arguments: tuple[str, ...], expected_text: str) -> None:
    answer = sonde("layout", *arguments)
    assert answer.code == 2
    assert expected_text in " ".join(answer.err.split())
