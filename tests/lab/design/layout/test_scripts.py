# SPDX-License-Identifier: Apache-2.0
"""The scripts of a plan: what they say before, that they run once only, and what they make on real loop devices."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from storage_builders import build_lun_system, make_requirement

from sonde.design.layout.check import check_layout
from sonde.design.layout.live.inspection import inspect_storage
from sonde.design.layout.live.superblocks import query_xfs_geometry
from sonde.design.layout.plan import LayoutPlan, plan_layout
from sonde.design.layout.scripts import make_layout_scripts
from sonde.model.bundled_files import find_bundled_toml_files, find_system_file
from sonde.model.system import make_system, read_system

GIB = 1 << 30
ENV = os.environ | {"PATH": os.environ.get("PATH", "") + ":/usr/sbin:/sbin"}


def run_script(script: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["sh", str(script), *arguments], capture_output=True, text=True, env=ENV, check=False)


@pytest.fixture
def planned_machine(loops: Callable[[int], str], tmp_path: Path) -> tuple[LayoutPlan, Path, dict[str, str]]:
    """A plan whose LUNs are loop devices: a small file system and a log on a mirror, a large one on 8+1."""
    home = make_requirement("home", "home", "ext4", capacity="2 GiB")
    scratch = make_requirement("scratch", "scratch", write="100 MB/s", capacity="6 GB")
    document = build_lun_system(file_systems=[home, scratch])
    sizes = {"b1g1-lun": 3_999_989_760, "b1g0-lun": 7_999_979_520}
    for lun in document["luns"]:
        if lun["id"] in sizes:
            lun["device"] = loops(sizes[lun["id"]])
            lun["size"] = f"{sizes[lun['id']]} B"
    document["luns"] = [lun for lun in document["luns"] if lun["id"] in sizes]
    groups = [lun["raid_group"] for lun in document["luns"]]
    document["raid_groups"] = [group for group in document["raid_groups"] if group["id"] in groups]
    document["drives"] = [drive for drive in document["drives"] if drive["id"].partition("d[")[0] in groups]
    document["mounts"] = [{"id": f"on-{name}", "file_system": name, "path": str(tmp_path / name), "on": "host"}
                          for name in ("home", "scratch")]  # fmt: skip
    plan = plan_layout(make_system(document, "made"), member_count=1)
    (script,) = make_layout_scripts(plan).values()
    path = tmp_path / "layout.sh"
    path.write_text(script, encoding="utf-8")
    return plan, path, {lun["id"]: lun["device"] for lun in document["luns"]}


def test_script_creates_the_plan_and_runs_once(
    planned_machine: tuple[LayoutPlan, Path, dict[str, str]], tmp_path: Path
) -> None:
    plan, script, disks = planned_machine
    before = run_script(script)
    assert before.returncode == 2
    assert all(disk in before.stdout for disk in disks.values())
    done = run_script(script, "go")
    assert done.returncode == 0, done.stderr
    info = subprocess.run(["xfs_info", str(tmp_path / "scratch")], capture_output=True, text=True, env=ENV, check=True)
    scratch = plan.get_layout("scratch")
    assert scratch.groups is not None
    assert scratch.log_size is not None
    assert f"agcount={scratch.groups.count}, agsize={scratch.groups.size} blks" in info.stdout
    assert re.search(rf"sunit={scratch.unit // 4096} +swidth={scratch.width // 4096} blks", info.stdout)
    assert scratch.unit == scratch.width == 2 << 20
    log = re.search(r"log +=(.+?) +bsize=4096 +blocks=(\d+)", info.stdout)
    assert log is not None
    assert int(log[2]) * 4096 == scratch.log_size
    home = plan.get_layout("home")
    device = f"{disks['b1g1-lun']}p1"
    output = subprocess.run(["dumpe2fs", "-h", device], capture_output=True, text=True, env=ENV, check=True).stdout
    assert re.search(rf"RAID stride: +{home.unit // 4096}$", output, re.MULTILINE)
    assert re.search(rf"RAID stripe width: +{home.width // 4096}$", output, re.MULTILINE)
    starts = {name: int(Path(f"/sys/class/block/{Path(disk).name}p1/start").read_text()) * 512
              for name, disk in disks.items()}  # fmt: skip
    assert starts == {"b1g0-lun": 2 << 20, "b1g1-lun": 1 << 20}
    for name, layout in (("scratch", scratch), ("home", home)):
        storage = inspect_storage(str(tmp_path / name))
        verdict = check_layout(storage, layout)
        assert [fault for fault in verdict.faults if fault.kind != "scheduler"] == []
        assert verdict.unknown == ()
        (observed,) = storage.file_systems
        assert (observed.unit, observed.width, observed.log) == (layout.unit, layout.width, layout.log_size)
    assert inspect_storage(device).file_systems[0].kind == "ext4"
    again = run_script(script, "go")
    assert again.returncode == 3
    assert "already holds: gpt" in again.stderr
    assert "Nothing was changed" in again.stderr


def test_faults_of_default_mkfs_are_detected(loops: Callable[[int], str], tmp_path: Path) -> None:
    """The faults that the talk warns of, made for real: sunit 0, a slice at the wrong place."""
    disk = loops(4 * GIB)
    subprocess.run(["sgdisk", "--clear", "--set-alignment=1", "--new=1:2176:6000000", disk], env=ENV, check=True,
                   capture_output=True)  # fmt: skip
    subprocess.run(["partx", "--update", disk], env=ENV, check=True)
    subprocess.run(["mkfs.xfs", "-q", f"{disk}p1"], env=ENV, check=True)
    plan = plan_layout(read_system(find_system_file("cray-x1"))).get_layout("single")
    storage = inspect_storage(f"{disk}p1")
    kinds = {fault.kind for fault in check_layout(storage, plan).faults}
    assert {"no stripe unit", "slice is not aligned", "not as planned"} <= kinds
    mount_point = tmp_path / "mounted"
    mount_point.mkdir()
    subprocess.run(["mount", f"{disk}p1", str(mount_point)], env=ENV, check=True)
    mounted, unmounted = inspect_storage(str(mount_point)).file_systems[0], storage.file_systems[0]
    by_ioctl = query_xfs_geometry(str(mount_point))
    assert by_ioctl is not None
    facts = ("block", "blocks", "unit", "width", "group_count", "group_blocks", "log", "log_device")
    for fact in facts:
        assert getattr(mounted, fact) == getattr(unmounted, fact) == getattr(by_ioctl, fact)


def test_script_refuses_a_disk_with_data(planned_machine: tuple[LayoutPlan, Path, dict[str, str]]) -> None:
    _, script, disks = planned_machine
    subprocess.run(["mke2fs", "-q", "-F", disks["b1g0-lun"], "1000"], env=ENV, check=True)
    result = run_script(script, "go")
    assert result.returncode == 3
    assert "already holds: ext2" in result.stderr
    assert not Path(f"{disks['b1g1-lun']}p1").exists()


@pytest.mark.parametrize(
    "name", [name for name in find_bundled_toml_files("systems") if name not in ("cumulus", "slingshot-routed")]
)
def test_scripts_of_described_systems_are_valid_shell(name: str, tmp_path: Path) -> None:
    plan = plan_layout(read_system(find_system_file(name)))
    files = make_layout_scripts(plan)
    for file, text in list(files.items())[:3]:
        assert subprocess.run(["sh", "-n"], input=text, text=True, check=False).returncode == 0
        path = tmp_path / file
        path.write_text(text, encoding="utf-8")
        result = run_script(path)
        # without "go" it names its disks; where the file has no names of devices it asks for them first
        assert result.returncode == 2
        assert "would destroy everything" in result.stdout or ": set it to " in result.stderr


def commands(document: dict[str, Any], **more: Any) -> str:
    (text,) = make_layout_scripts(plan_layout(make_system(document, "made"), **more)).values()
    return text


def test_drives_become_arrays_and_a_striped_volume() -> None:
    document = {"schema": "sonde-system/2", "id": "d", "nodes": [{"id": "host"}],
                "drives": [{"id": "d[0-19]", "server": "host", "kind": "hdd", "capacity": "4 TB", "rate": "200 MB/s",
                            "device": "/dev/disk/by-path/d[0-19]"}],
                "file_systems": [make_requirement("scratch", "scratch", capacity="60 TB")]}  # fmt: skip
    text = commands(document)
    assert (
        "mdadm --create /dev/md/scratch-g1 --name=scratch-g1 --metadata=1.2 --run --level=6 --raid-devices=10" in text
    )
    assert "--chunk=256K" in text
    assert "lvcreate --name scratch --stripes 2 --stripesize 2048k --extents 100%FREE scratch-vol" in text
    assert re.search(r"mkfs\.xfs .*sunit=4096,swidth=8192.* /dev/scratch-vol/scratch", text)
    assert "largeio,swalloc" in text
    striped = commands(document, software_name="md")
    assert "mdadm --create /dev/md/scratch-vol --name=scratch-vol --metadata=1.2 --run --level=0" in striped


def test_zfs_uses_drives_without_md() -> None:
    document = {"schema": "sonde-system/2", "id": "d", "nodes": [{"id": "host"}],
                "drives": [{"id": "d[0-19]", "server": "host", "kind": "hdd", "capacity": "4 TB",
                            "device": "/dev/disk/by-path/d[0-19]"}],
                "file_systems": [make_requirement("bulk", "archive", "zfs", capacity="40 TB")]}  # fmt: skip
    text = commands(document)
    assert "mdadm" not in text
    assert re.search(r"zpool create -o ashift=12 -O recordsize=1M .* bulk raidz2 /dev/disk/by-path/d0 ", text)


@pytest.mark.skipif(shutil.which("sh") is None, reason="no shell")
def test_script_requires_unset_variables(tmp_path: Path) -> None:
    (text,) = make_layout_scripts(plan_layout(read_system(find_system_file("laptop-md")))).values()
    path = tmp_path / "layout.sh"
    path.write_text(text, encoding="utf-8")
    assert "set it to the device of drive sd1" in run_script(path).stderr


def test_range_of_luns_with_a_range_of_devices_is_written_out() -> None:
    document = {"schema": "sonde-system/2", "id": "d", "nodes": [{"id": "host"}], "enclosures": [{"id": "e"}],
                "controllers": [{"id": "c", "enclosure": "e"}],
                "drives": [{"id": "d[0-19]", "enclosure": "e", "kind": "hdd", "capacity": "4 TB"}],
                "raid_groups": [{"id": "g[0-1]", "level": "6", "data": 8, "parity": 2, "segment": "128 KiB",
                                 "drives": "d[0-19]", "controller": "c"}],
                "luns": [{"id": "lun[0-1]", "raid_group": "g[0-1]", "device": "/dev/mapper/data[1-2]"}],
                "file_systems": [make_requirement("scratch", "scratch", capacity="50 TB")]}  # fmt: skip
    text = commands(document)
    assert "/dev/mapper/data1-part1 /dev/mapper/data2-part1\n" in text
    assert "data[1" not in text
