# SPDX-License-Identifier: Apache-2.0
"""Block devices: /proc/diskstats, as the kernel documents it in Documentation/admin-guide/iostats.rst."""

from __future__ import annotations

from pathlib import Path

from sonde.telemetry.source import LocalSource, ReadingsByPart, ReopenedKernelFile, SourceReader, UnavailableSourceError

SECTOR_BYTES = 512  # of the counters, whatever the device has
_MIN_FIELDS = 14  # major, minor, name and eleven counters; newer kernels append counters of discards and flushes


def parse_diskstats(diskstats_text: str) -> ReadingsByPart:
    """Counters of every device and partition, in the order of the columns of `SOURCE`. Ignores malformed lines."""
    readings: ReadingsByPart = {}
    for line in diskstats_text.splitlines():
        fields = line.split()
        if len(fields) < _MIN_FIELDS:
            continue
        try:
            reads, _, read_sectors, read_ms, writes, _, write_sectors, write_ms, _, busy_ms, queue_ms = map(
                int, fields[3:_MIN_FIELDS]
            )
        except ValueError:
            continue
        readings[fields[2]] = (
            reads, read_sectors * SECTOR_BYTES, read_ms / 1000, writes, write_sectors * SECTOR_BYTES, write_ms / 1000,
            busy_ms / 1000, queue_ms / 1000,
        )  # fmt: skip
    return readings


def _open_diskstats_reader(file_system_root: Path) -> SourceReader:
    try:
        file = ReopenedKernelFile(file_system_root / "proc/diskstats")
    except OSError as error:
        raise UnavailableSourceError(f"/proc/diskstats: {error.strerror}; mount /proc.") from None
    whole_devices: dict[str, bool] = {}  # a partition would count the same bytes again

    def is_whole_device(device_name: str) -> bool:
        if device_name not in whole_devices:
            whole_devices[device_name] = (file_system_root / "sys/block" / device_name.replace("/", "!")).exists()
        return whole_devices[device_name]

    def read_diskstats() -> ReadingsByPart:
        parsed = parse_diskstats(file.read_text())
        return {name: values for name, values in parsed.items() if any(values) and is_whole_device(name)}

    return SourceReader(read_diskstats, file.close)


SOURCE = LocalSource(
    "disks",
    "bytes, requests, busy time and queue of every block device",
    "node",
    (
        "disk_reads", "disk_read_bytes", "disk_read_s", "disk_writes", "disk_written_bytes", "disk_write_s",
        "disk_busy_s", "disk_queue_s",
    ),
    _open_diskstats_reader,
)  # fmt: skip
