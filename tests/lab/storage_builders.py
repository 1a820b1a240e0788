# SPDX-License-Identifier: Apache-2.0
"""System documents with storage to lay out, for tests."""

from __future__ import annotations

from typing import Any


def build_lun_system(**more: Any) -> dict[str, Any]:
    """A subsystem of two controllers with four 8+1 LUNs and two 4x2 LUNs on each of two boxes."""
    document: dict[str, Any] = {
        "schema": "sonde-system/2",
        "id": "luns",
        "nodes": [{"id": "host"}],
        "enclosures": [{"id": "cabinet"}, {"id": "box1", "inside": "cabinet"}, {"id": "box2", "inside": "cabinet"}],
        "controllers": [
            {"id": "ca", "partner": "cb", "enclosure": "cabinet", "rate": "2 GB/s"},
            {"id": "cb", "partner": "ca", "enclosure": "cabinet", "rate": "2 GB/s"},
        ],
        "links": [{"id": f"fc-{side}{number}", "near": "host", "far": f"c{side}", "rate": "800 MB/s"}
                  for side in "ab" for number in (1, 2)],
        "drives": [], "raid_groups": [], "luns": [],
    }  # fmt: skip
    for box in (1, 2):
        for number, (data, parity, level, segment) in enumerate(
            [(8, 1, "5", 256), (4, 4, "10", 128), (8, 1, "5", 256)]
        ):
            name = f"b{box}g{number}"
            drives = f"{name}d[0-{data + parity - 1}]"
            document["drives"].append({"id": drives, "kind": "hdd", "enclosure": f"box{box}", "capacity": "1 GB",
                                       "rate": "150 MB/s"})  # fmt: skip
            document["raid_groups"].append(
                {"id": name, "level": level, "data": data, "parity": parity, "segment": f"{segment} KiB",
                 "drives": drives, "controller": "ca" if (box + number) % 2 else "cb"}
            )  # fmt: skip
            document["luns"].append({"id": f"{name}-lun", "raid_group": name, "number": number})
    return document | more


def make_requirement(name: str, purpose: str, kind: str = "xfs", **required: str) -> dict[str, Any]:
    return {"id": name, "kind": kind, "purpose": purpose, "requirement": required}


def build_lustre(segment: str = "1 MiB", separate_mgt: bool = False) -> dict[str, Any]:
    """Two metadata and two object servers in pairs; each has a RAID 6 of ten drives and shares two spares."""
    document: dict[str, Any] = {
        "schema": "sonde-system/2",
        "id": "lustre",
        "networks": [{"id": "ib", "kind": "infiniband", "addresses": ["10.0.0.0/24"], "lnet": "o2ib"}],
        "servers": [
            {"id": f"{role}[1-2]", "roles": roles, "failover": "pairs",
             "interfaces": [{"network": "ib", "device": "ib0", "addresses": f"10.0.0.[{first}-{first + 1}]"}]}
            for role, roles, first in (("mds", ["mds", "mgs"], 1), ("oss", ["oss"], 11))
        ],
        "drives": [{"id": "d[0-21]", "capacity": "4 TB", "device": "/dev/disk/by-id/d[0-21]"},
                   {"id": "m[0-3]", "kind": "ssd", "capacity": "1 TB", "device": "/dev/disk/by-id/m[0-3]"}],
        "raid_groups": [
            {"id": "g[0-1]", "level": "6", "data": 8, "parity": 2, "segment": segment, "drives": "d[0-19]",
             "spares": "d[20-21]"},
            {"id": "mm[0-1]", "level": "1", "data": 1, "parity": 1, "drives": "m[0-3]"},
        ],
        "file_systems": [{"id": "fs", "kind": "lustre"}],
        "targets": [
            {"id": "ost[0-1]", "kind": "ost", "file_system": "fs", "index": 0, "on": "g[0-1]", "server": "oss[1-2]"},
            {"id": "mdt0", "kind": "mdt", "file_system": "fs", "index": 0, "on": "mm0", "server": "mds1"},
        ],
    }  # fmt: skip
    if separate_mgt:
        document["targets"].append({"id": "mgt", "kind": "mgt", "file_system": "fs", "on": "mm1", "server": "mds2"})
    return document


def describe_pair() -> dict[str, Any]:
    """Two object servers in a pair, each with two targets on LUNs that both see, and a pair of metadata servers."""
    return {
        "schema": "sonde-system/2", "id": "pair",
        "networks": [{"id": "ib", "kind": "infiniband", "addresses": ["10.0.0.0/24"], "lnet": "o2ib"}],
        "servers": [
            {"id": f"{role}[1-2]", "roles": roles, "failover": "pairs",
             "interfaces": [{"network": "ib", "addresses": f"10.0.0.[{first}-{first + 1}]"}]}
            for role, roles, first in (("mds", ["mds", "mgs"], 1), ("oss", ["oss"], 11))
        ],
        "enclosures": [{"id": "e", "slots": 60}], "controllers": [{"id": "c", "enclosure": "e", "rate": "4 GB/s"}],
        "drives": [{"id": "d[0-43]", "kind": "hdd", "enclosure": "e", "capacity": "2 TB", "rate": "200 MB/s"}],
        "raid_groups": [
            {"id": "g[0-3]", "level": "6", "data": 8, "parity": 2, "segment": "128 KiB", "drives": "d[0-39]",
             "controller": "c"},
            {"id": "m", "level": "10", "data": 2, "parity": 2, "segment": "64 KiB", "drives": "d[40-43]",
             "controller": "c"}],
        "luns": [{"id": "olun[0-3]", "raid_group": "g[0-3]", "number": 0, "device": "/dev/mapper/ost[0-3]"},
                 {"id": "mlun", "raid_group": "m", "number": 1, "device": "/dev/mapper/mdt0"}],
        "targets": [
            {"id": "mdt0", "kind": "mdt", "index": 0, "file_system": "fs", "server": "mds1", "on": "mlun"},
            {"id": "ost[0-3]", "kind": "ost", "index": 0, "file_system": "fs", "server": "oss[1-2]",
             "on": "olun[0-3]"}],
        "file_systems": [{"id": "fs", "kind": "lustre"}],
        "mounts": [{"id": "fs-mount", "file_system": "fs", "path": "/fs", "on": ["oss[1-2]"]}],
    }  # fmt: skip
