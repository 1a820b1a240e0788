# SPDX-License-Identifier: Apache-2.0
"""InfiniBand and RoCE ports: /sys/class/infiniband/DEVICE/ports/N/counters.

The counters are described in Documentation/ABI/stable/sysfs-class-infiniband of the kernel.
"""

from __future__ import annotations

from pathlib import Path

from sonde.telemetry.source import LocalSource, ReadingsByPart, ReopenedKernelFile, SourceReader, UnavailableSourceError

_LANE_BYTES = 4  # the data counters count words of four bytes, one per lane
_COUNTER_FILES_AND_UNITS: tuple[tuple[tuple[str, ...], int], ...] = (
    (("port_rcv_data",), _LANE_BYTES),
    (("port_xmit_data",), _LANE_BYTES),
    (("symbol_error", "port_rcv_errors", "port_xmit_discards"), 1),
    (("link_downed",), 1),
)


def _open_port_counters_reader(file_system_root: Path) -> SourceReader:
    ports = sorted((file_system_root / "sys/class/infiniband").glob("*/ports/*/counters"))
    files: dict[str, dict[str, ReopenedKernelFile]] = {}
    for folder in ports:
        part = f"{folder.parents[2].name}:{folder.parent.name}"
        files[part] = {}
        for name in (name for names, _ in _COUNTER_FILES_AND_UNITS for name in names):
            try:
                files[part][name] = ReopenedKernelFile(folder / name)
            except OSError:
                continue  # a virtual port does not have every counter
    if not files:
        raise UnavailableSourceError("/sys/class/infiniband has no port: this node has no InfiniBand; nothing to do.")

    def read_port_counters() -> ReadingsByPart:
        return {
            part: tuple(_sum_counters(counters, names, unit) for names, unit in _COUNTER_FILES_AND_UNITS)
            for part, counters in files.items()
        }

    def close_port_counters() -> None:
        for counters in files.values():
            for file in counters.values():
                file.close()

    return SourceReader(read_port_counters, close_port_counters)


def _sum_counters(
    counter_files: dict[str, ReopenedKernelFile], counter_names: tuple[str, ...], unit_bytes: int
) -> float | None:
    present = [int(counter_files[name].read_text()) for name in counter_names if name in counter_files]
    return float(sum(present) * unit_bytes) if present else None


SOURCE = LocalSource(
    "infiniband",
    "bytes, errors and link failures of every InfiniBand port",
    "node",
    ("fabric_received_bytes", "fabric_sent_bytes", "fabric_errors", "fabric_link_failures"),
    _open_port_counters_reader,
)
