# SPDX-License-Identifier: Apache-2.0
"""Multipath devices: device mapper devices whose uuid begins with ``mpath-``, and the SCSI state of their paths.

/sys/block/dm-N/slaves has the paths, and device/state of each is ``running``, or for example ``offline`` or
``transport-offline``. A path that multipathd alone holds for failed is not seen here.
"""

from __future__ import annotations

from pathlib import Path

from sonde.telemetry.source import LocalSource, Readings, SourceReader, UnavailableSourceError

_WORKING = ("running", "live")  # of SCSI devices, and of NVMe controllers


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def _find_state(path: Path) -> str:
    return _read_text(path / "device/state") or _read_text(path / "device/device/state") or "unknown"


def _open_reader(root: Path) -> SourceReader:
    devices = {
        _read_text(folder / "dm/name") or folder.name: folder
        for folder in sorted((root / "sys/block").glob("dm-*"))
        if _read_text(folder / "dm/uuid").startswith("mpath-")
    }
    if not devices:
        raise UnavailableSourceError(
            "No multipath device below /sys/block; where devices have several paths, install multipath-tools and start"
            " multipathd."
        )

    def read() -> Readings:
        readings: Readings = {}
        for name, folder in devices.items():
            states = [_find_state(path) for path in (folder / "slaves").iterdir()]
            readings[name] = (float(len(states)), float(sum(state not in _WORKING for state in states)))
        return readings

    return SourceReader(read)


SOURCE = LocalSource(
    "multipath",
    "paths of every multipath device, and those that do not work",
    "node",
    ("device_paths", "device_failed_paths"),
    _open_reader,
)
