# SPDX-License-Identifier: Apache-2.0
"""Corrects faults of single paths of a map: another path of it works, so the drive or LUN behind them does too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sonde.design.layout.faults import LayoutFault
from sonde.design.layout.live.observations import ObservedStorage

SILENT_PATH = "path does not answer"
_SILENT_DRIVE = "drive does not answer"


def correct_faults_of_paths(faults: Sequence[LayoutFault], observed_storage: ObservedStorage) -> list[LayoutFault]:
    """The faults, where a drive that does not answer is a path of a map: with other paths that answer nothing has to be
    replaced for it but what lies on this path; without any, it is also a fault of the map."""
    silent = {fault.location for fault in faults if fault.kind == _SILENT_DRIVE}
    maps = {path.name: disk for disk in observed_storage.disks.values() for path in disk.paths}
    corrected = []
    for fault in faults:
        disk = maps.get(fault.location) if fault.kind == _SILENT_DRIVE else None
        if disk is None:
            corrected.append(fault)
        elif any(path.name not in silent and not path.state.startswith("fail") for path in disk.paths):
            corrected.append(replace(
                fault, kind=SILENT_PATH, problem=f"{fault.problem}; other paths of its map answer",
                cost="requests on it wait or fail, and are repeated on the other paths",
                remedy="look at adapter, cable, switch and port of this path, and at the log of the kernel; nothing is"
                " wrong with what the other paths reach",
            ))  # fmt: skip
        else:
            corrected.append(replace(fault, parts=(fault.location, disk.name)))
    return corrected
