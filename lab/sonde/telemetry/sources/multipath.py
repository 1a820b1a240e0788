# SPDX-License-Identifier: Apache-2.0
"""Multipath devices: device mapper devices whose uuid begins with ``mpath-``, and the SCSI state of their paths.

/sys/block/dm-N/slaves has the paths, and device/state of each is ``running``, or for example ``offline`` or
``transport-offline``. A path that multipathd alone holds for failed is not seen here.
"""

from __future__ import annotations

from pathlib import Path

from sonde.telemetry.source import LocalSource, ReadingsByPart, SourceReader, UnavailableSourceError

_WORKING_STATES = ("running", "live")  # of SCSI devices, and of NVMe controllers


def _read_kernel_text(kernel_file: Path) -> str:
    try:
        return kernel_file.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def _find_path_state(device_folder: Path) -> str:
    return (
        _read_kernel_text(device_folder / "device/state")
        or _read_kernel_text(device_folder / "device/device/state")
        or "unknown"
    )


def _open_path_state_reader(file_system_root: Path) -> SourceReader:
    devices = {
        _read_kernel_text(folder / "dm/name") or folder.name: folder
        for folder in sorted((file_system_root / "sys/block").glob("dm-*"))
        if _read_kernel_text(folder / "dm/uuid").startswith("mpath-")
    }
    if not devices:
        raise UnavailableSourceError(
            "No multipath device below /sys/block; where devices have several paths, install multipath-tools and start"
            " multipathd."
        )

    def read_path_states() -> ReadingsByPart:
        readings: ReadingsByPart = {}
        for name, folder in devices.items():
            states = [_find_path_state(path) for path in (folder / "slaves").iterdir()]
            readings[name] = (float(len(states)), float(sum(state not in _WORKING_STATES for state in states)))
        return readings

    return SourceReader(read_path_states)


SOURCE = LocalSource(
    "multipath",
    "paths of every multipath device, and those that do not work",
    "node",
    ("device_paths", "device_failed_paths"),
    _open_path_state_reader,
)
