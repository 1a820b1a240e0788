# SPDX-License-Identifier: Apache-2.0
"""The partitions of scripts: their numbers, starts and sizes, and that no two commands name one device."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from sonde.design.layout.block_devices import assign_partition_numbers, compute_slice_starts
from sonde.design.layout.commands import make_sgdisk_command
from sonde.design.layout.device_names import DeviceNames
from sonde.design.layout.live.saved_output import read_saved_output
from sonde.design.layout.observe_written import PlanView, observe_partitions
from sonde.design.layout.plan import plan_layout
from sonde.design.layout.scripts import list_command_lines, make_layout_scripts
from sonde.design.layout.written_attributes import WrittenAttribute
from sonde.model.bundled_files import find_bundled_toml_files, find_system_file
from sonde.model.errors import UserError
from sonde.model.system import make_system, read_system

MIB = 1 << 20
GIB = 1 << 30
PATH = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
_MAKERS = ("mdadm", "mkfs.xfs", "mke2fs", "mkfs.btrfs", "mkswap", "zpool", "pvcreate", "mkfs.lustre")
_DEVICE = re.compile(r'"\$\(slice (?:"\$(\w+)"|(\S+)) (\d+)\)"|"\$(DEV_\w+)"|(?<![\w=/])(/dev/[^\s")]+)')


def describe_sliced_drive(slices: list[dict[str, Any]], capacity: str = "8 GiB") -> dict[str, Any]:
    """A host with one drive that is divided."""
    return {
        "schema": "sonde-system/2", "id": "sliced", "nodes": [{"id": "host"}],
        "drives": [{"id": "d", "server": "host", "capacity": capacity, "device": "/dev/sdb"}],
        "slices": [{"on": "d", **row} for row in slices],
        "file_systems": [{"id": "home", "kind": "ext4", "device": slices[0]["id"]}],
    }  # fmt: skip


def make_command(document: dict[str, Any]) -> list[str]:
    """The sgdisk command for the drive d."""
    system = make_system(document, "made")
    return [str(argument) for argument in make_sgdisk_command(system, "d", DeviceNames(system))]


def list_maker_devices(line: str) -> list[str]:
    """The devices that a command writes to; a partition as its disk, a space and its number."""
    commands = [part for part in line.split(" && ") if part.startswith(_MAKERS)]
    inputs = [re.sub(r"--create \S+", "", command) for command in commands]
    matches = [match for text in inputs for match in _DEVICE.finditer(text)]
    return [f"{match[1] or match[2]} {match[3]}" if match[3] else match[4] or match[5] for match in matches]


def list_made_partitions(lines: list[str]) -> set[str]:
    """The partitions that the sgdisk commands of a script make: the disk, a space and the number."""
    partitions = set[str]()
    for line in lines:
        if line.startswith("sgdisk "):
            arguments = shlex.split(line)
            disk = arguments[-1].lstrip("$")
            partitions |= {f"{disk} {item[6:].split(':')[0]}" for item in arguments if item.startswith("--new=")}
    return partitions


@pytest.mark.parametrize("name", find_bundled_toml_files("systems"))
def test_shipped_scripts_use_each_device_once(name: str) -> None:
    for text in make_layout_scripts(plan_layout(read_system(find_system_file(name)))).values():
        lines = list(list_command_lines(text))
        devices = Counter(device for line in lines for device in list_maker_devices(line))
        assert [device for device, count in devices.items() if count > 1] == []
        partitions = list_made_partitions(lines)
        used = {device for device in devices if " " in device}
        assert used <= partitions
        divided = {partition.rpartition(" ")[0] for partition in partitions}
        assert divided & devices.keys() == set(), "a divided disk is also used whole"


def test_slices_without_numbers_are_counted_per_disk() -> None:
    text = make_layout_scripts(plan_layout(read_system(find_system_file("slingshot-lustre"))))["scratch-disk-oss01.sh"]
    numbers = re.findall(r"^mkfs\.lustre .*\(slice \S+ (\d)\)", text, re.MULTILINE)
    assert numbers == ["1", "2"]


def test_free_numbers_skip_described_numbers() -> None:
    rows: list[dict[str, Any]] = [
        {"id": "a", "size": "1 GiB"},
        {"id": "b", "size": "1 GiB", "number": 1},
        {"id": "c", "size": "1 GiB"},
    ]
    assert assign_partition_numbers(make_system(describe_sliced_drive(rows), "made"), "d") == {"a": 2, "b": 1, "c": 3}


def test_numbers_from_zero_become_numbers_from_one() -> None:
    rows = [{"id": "s[0-1]", "size": "1 GiB", "number": 0}]
    document = describe_sliced_drive(rows)
    document["file_systems"][0]["device"] = "s0"
    assert assign_partition_numbers(make_system(document, "made"), "d") == {"s0": 1, "s1": 2}


def test_number_of_two_slices_is_rejected() -> None:
    rows = [{"id": name, "size": "1 GiB", "number": 3} for name in "ab"]
    with pytest.raises(UserError, match=r"a and b are both slice 3 of d; give each its own `number`"):
        make_command(describe_sliced_drive(rows))


def test_first_slice_starts_behind_the_partition_table() -> None:
    rows: list[dict[str, Any]] = [{"id": "a", "size": "1 GiB"}, {"id": "b", "size": "1 GiB", "alignment": "2 MiB"}]
    starts = compute_slice_starts(make_system(describe_sliced_drive(rows), "made"), "d")
    assert starts == {"a": MIB, "b": GIB + 2 * MIB}


@pytest.mark.skipif(shutil.which("sgdisk", path=PATH) is None, reason="sgdisk is not installed")
@pytest.mark.parametrize("rows", [
    [{"id": "a", "size": "1 GiB"}, {"id": "b"}],
    [{"id": "a", "share": "50 %"}, {"id": "b", "share": "50 %"}],
    [{"id": "a", "size": "1000003 KiB"}, {"id": "b", "size": "1 GiB", "alignment": "3 MiB"}, {"id": "c"}],
    [{"id": "a", "share": "10 %", "number": 2}, {"id": "b", "share": "90 %"}],
], ids=["remainder", "halves", "alignments", "numbers"])  # fmt: skip
def test_partitions_that_sgdisk_makes_are_as_planned(rows: list[dict[str, Any]], tmp_path: Path) -> None:
    command = make_command(describe_sliced_drive(rows))
    image = tmp_path / "image"
    with image.open("wb") as file:
        file.truncate(8 * GIB)
    environment = os.environ | {"PATH": PATH}
    for arguments in ([*command[:-1], str(image)], ["sgdisk", "--verify", str(image)]):
        done = subprocess.run(arguments, capture_output=True, text=True, env=environment, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    assert "No problems found" in done.stdout
    partitions = list[dict[str, Any]]()
    for number in range(1, len(rows) + 1):
        arguments = ["sgdisk", f"--info={number}", str(image)]
        text = subprocess.run(arguments, capture_output=True, text=True, env=environment, check=True).stdout
        start, sectors = (int(re.findall(rf"{name}: (\d+)", text)[0]) for name in ("First sector", "Partition size"))
        part = {"name": f"sdb{number}", "kname": f"sdb{number}", "type": "part", "start": start, "size": sectors * 512}
        partitions.append(part)
    disk = {"name": "sdb", "kname": "sdb", "type": "disk", "size": 8 * GIB, "children": partitions}
    storage = read_saved_output(json.dumps({"blockdevices": [disk]}), "lsblk")
    written = [WrittenAttribute("sgdisk", "--new", argument.removeprefix("--new="), 1)
               for argument in command if argument.startswith("--new=")]  # fmt: skip
    observations = list(observe_partitions(PlanView(storage, (), tuple(written)), ("sgdisk", "--new")))
    assert len(observations) == len(rows)
    assert [each for each in observations if not each.agrees] == []
    assert min(part["start"] for part in partitions) * 512 == MIB


def test_declustered_pool_has_no_mdadm_command() -> None:
    text = make_layout_scripts(plan_layout(read_system(find_system_file("slingshot-lustre"))))["scratch-disk-oss01.sh"]
    assert "\nmdadm" not in text
    assert "make this declustered pool (8+2 on 53 drives) with the tool of its controller" in text
    assert '\nset -- "$DEV_DISK_POOL01"\n' in text
    assert "DISK_BOX01" not in text


def test_declustered_zfs_pool_is_draid_vdev() -> None:
    document = describe_sliced_drive([{"id": "unused"}])
    document |= {"drives": [{"id": "d[1-20]", "server": "host", "capacity": "1 TB",
                             "device": "/dev/disk/by-id/d[1-20]"}],
                 "slices": [],
                 "raid_groups": [{"id": "pool", "level": "declustered", "data": 8, "parity": 2, "spare_share": "5 %",
                                  "drives": "d[1-20]"}],
                 "file_systems": [{"id": "home", "kind": "zfs", "device": "pool"}]}  # fmt: skip
    (text,) = make_layout_scripts(plan_layout(make_system(document, "made"))).values()
    assert "home draid2:8d:20c:1s /dev/disk/by-id/d1 /dev/disk/by-id/d2 " in text
    assert "mdadm" not in text
