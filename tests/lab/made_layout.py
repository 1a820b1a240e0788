# SPDX-License-Identifier: Apache-2.0
"""Machines with storage to lay out, for tests."""

from __future__ import annotations

from typing import Any


def lun_machine(**more: Any) -> dict[str, Any]:
    """A subsystem of two controllers with four 8+1 LUNs and two 4x2 LUNs on each of two boxes."""
    document: dict[str, Any] = {
        "schema": "sonde-system/1",
        "id": "luns",
        "nodes": [{"id": "host"}],
        "enclosures": [{"id": "cabinet"}, {"id": "box1", "inside": "cabinet"}, {"id": "box2", "inside": "cabinet"}],
        "controllers": [
            {"id": "ca", "partner": "cb", "enclosure": "cabinet", "rate": "2 GB/s"},
            {"id": "cb", "partner": "ca", "enclosure": "cabinet", "rate": "2 GB/s"},
        ],
        "links": [{"id": f"fc-{side}{at}", "near": "host", "far": f"c{side}", "rate": "800 MB/s"}
                  for side in "ab" for at in (1, 2)],
        "drives": [], "raid_groups": [], "luns": [],
    }  # fmt: skip
    for box in (1, 2):
        for at, (data, parity, level, segment) in enumerate([(8, 1, "5", 256), (4, 4, "10", 128), (8, 1, "5", 256)]):
            name = f"b{box}g{at}"
            drives = f"{name}d[0-{data + parity - 1}]"
            document["drives"].append({"id": drives, "kind": "hdd", "enclosure": f"box{box}", "capacity": "1 GB",
                                       "rate": "150 MB/s"})  # fmt: skip
            document["raid_groups"].append(
                {"id": name, "level": level, "data": data, "parity": parity, "segment": f"{segment} KiB",
                 "drives": drives, "controller": "ca" if (box + at) % 2 else "cb"}
            )  # fmt: skip
            document["luns"].append({"id": f"{name}-lun", "raid_group": name, "number": at})
    return document | more


def wish(name: str, purpose: str, kind: str = "xfs", **wanted: str) -> dict[str, Any]:
    return {"id": name, "kind": kind, "purpose": purpose, "wanted": wanted}
