# SPDX-License-Identifier: Apache-2.0
"""NFS mounts: /proc/self/mountstats (nfsstat(8), format `statvers=1.1`)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from sonde.telemetry.source import LocalSource, ReadingsByPart, SourceReader, UnavailableSourceError, open_kernel_files

_MOUNTSTATS_FILE = "proc/self/mountstats"
# Members of a line of "per-op statistics" after its name.
_OPERATIONS, _TRANSMISSIONS, _ROUND_TRIP_MS = 0, 1, 6
_BYTES_LINE, _SERVER_READ, _SERVER_WRITTEN = "bytes:", 5, 6


def parse_mountstats(mountstats_text: str) -> ReadingsByPart:
    """The values of every NFS mount in the order of the columns of `SOURCE`; the part is the mount point."""
    readings: ReadingsByPart = {}
    for block in mountstats_text.split("\ndevice ") if mountstats_text else ():
        head, _, body = block.partition("\n")
        fields = head.removeprefix("device ").split(" ")
        # device SERVER:/PATH mounted on /MOUNT with fstype nfs4 statvers=1.1
        if "fstype" not in fields or not fields[fields.index("fstype") + 1].startswith("nfs"):
            continue
        mount_point = " ".join(fields[fields.index("on") + 1 : fields.index("with")])
        read_bytes = written_bytes = 0.0
        operations = retransmissions = wait_s = 0.0
        in_operations = False
        for line in body.splitlines():
            fields = line.split()
            if not fields:
                continue
            if fields[0] == _BYTES_LINE:
                read_bytes, written_bytes = float(fields[_SERVER_READ]), float(fields[_SERVER_WRITTEN])
            elif fields[0] == "per-op":
                in_operations = True
            elif in_operations and fields[0].endswith(":") and len(fields) > _ROUND_TRIP_MS + 1:
                counters = [int(field) for field in fields[1:]]
                operations += counters[_OPERATIONS]
                retransmissions += counters[_TRANSMISSIONS] - counters[_OPERATIONS]
                wait_s += counters[_ROUND_TRIP_MS] / 1000
        readings[mount_point] = (read_bytes, written_bytes, operations, max(0.0, retransmissions), wait_s)
    return readings


def _parse_mountstats_file(texts_by_path: Mapping[str, str]) -> ReadingsByPart:
    return parse_mountstats(texts_by_path[_MOUNTSTATS_FILE])


def _open_mountstats_reader(file_system_root: Path) -> SourceReader:
    reader = open_kernel_files(file_system_root, (_MOUNTSTATS_FILE,), _parse_mountstats_file, "mount /proc.")
    if not reader.read():
        reader.close()
        raise UnavailableSourceError("No NFS file system is mounted here; nothing to do.")
    return reader


SOURCE = LocalSource(
    "nfs",
    "bytes, requests, retransmissions and waiting time of every NFS mount",
    "client",
    ("nfs_read_bytes", "nfs_written_bytes", "nfs_operations", "nfs_retransmissions", "nfs_wait_s"),
    _open_mountstats_reader,
)
