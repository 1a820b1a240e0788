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
