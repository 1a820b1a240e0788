# SPDX-License-Identifier: Apache-2.0
"""Hosts with arrays of md whose drives a plan names: the system, and what mdadm and find print of the arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sonde.design.layout.check import check_layout
from sonde.design.layout.faults import LayoutCheck
from sonde.design.layout.live.joining import join_observations
from sonde.design.layout.live.observations import ObservedStorage, merge_observations
from sonde.design.layout.live.saved_output import read_saved_output
from sonde.design.layout.plan import plan_layout
from sonde.design.layout.written_attributes import list_written_attributes
from sonde.model.system import make_system

PATHS = "/dev/disk/by-path/pci-0000:3b:00.0-sas-phy"


def describe_arrays(spares: tuple[str, str] = ("d12", "d13")) -> dict[str, Any]:
    """A host with two arrays of RAID 6, 4+2, below one striped volume; `spares` are those of each array."""
    groups = [{"id": f"md{number}", "level": "6", "data": 4, "parity": 2, "segment": "128 KiB",
               "drives": f"d[{6 * number}-{6 * number + 5}]", "spares": spares[number],
               "device": f"/dev/md{number}"} for number in (0, 1)]  # fmt: skip
    return {
        "schema": "sonde-system/2", "id": "arrays", "nodes": [{"id": "host"}],
        "drives": [{"id": "d[0-13]", "kind": "hdd", "server": "host", "capacity": "2 TB", "block": "4096 B",
                    "rate": "200 MB/s", "device": f"{PATHS}[0-13]-lun-0"}],
        "raid_groups": groups,
        "volumes": [{"id": "vol", "kind": "stripe", "software": "LVM", "members": "md[0-1]", "stripe_unit": "512 KiB"}],
        "file_systems": [{"id": "scratch", "kind": "xfs", "device": "vol", "purpose": "scratch"}],
    }  # fmt: skip


@dataclass(frozen=True)
class PrintedArray:
    """One array: its name, the numbers of its drives in the order of slots, and those of its spares."""

    name: str
    drives: Sequence[int]
    spares: Sequence[int] = ()
    level: str = "raid6"
    chunk_kib: int = 128
    layout: str = "left-symmetric"


def name_drive(drive_number: int) -> str:
    """The kernel's name of a drive."""
    return f"sd{chr(ord('a') + drive_number)}"


def print_detail(array: PrintedArray) -> str:
    """Output of mdadm --detail for an array."""
    rows = "".join(f"{slot:8}{8:8}{16 * slot:9}{slot:9}      active sync   /dev/{name_drive(number)}\n"
                   for slot, number in enumerate(array.drives))  # fmt: skip
    rows += "".join(f"{20 + number:8}{8:8}{16:9}        -      spare   /dev/{name_drive(number)}\n"
                    for number in array.spares)  # fmt: skip
    count = len(array.drives)
    return f"""/dev/{array.name}:
           Version : 1.2
        Raid Level : {array.level}
      Raid Devices : {count}
     Total Devices : {count + len(array.spares)}
     Intent Bitmap : Internal
             State : clean
    Active Devices : {count}
   Working Devices : {count + len(array.spares)}
    Failed Devices : 0
     Spare Devices : {len(array.spares)}
            Layout : {array.layout}
        Chunk Size : {array.chunk_kib}K
Consistency Policy : bitmap
              Name : host:{array.name}  (local to host host)

    Number   Major   Minor   RaidDevice State
{rows}"""


def print_links(link_count: int = 14, folder: str = PATHS, name_suffix: str = "-lun-0") -> str:
    """Output of find for the links to the drives."""
    return "".join(f"{folder}{number}{name_suffix} ../../{name_drive(number)}\n" for number in range(link_count))


def check_outputs(outputs: Mapping[str, str], document: Mapping[str, Any], file_system: str = "scratch") -> LayoutCheck:
    """The check of outputs against the plan of a system."""
    plan = plan_layout(make_system(dict(document), "system.toml"))
    layout, storage = plan.get_layout(file_system), ObservedStorage()
    for origin, text in outputs.items():
        storage = merge_observations(storage, read_saved_output(text, origin))
    return check_layout(join_observations(storage), layout, (), [], list_written_attributes(plan.system, layout))


def check_arrays(arrays: Sequence[PrintedArray], document: Mapping[str, Any], **more: str) -> LayoutCheck:
    """The check of a host with arrays; `more` are further outputs."""
    outputs = {"links": print_links(), **{array.name: print_detail(array) for array in arrays}, **more}
    return check_outputs(outputs, document)
