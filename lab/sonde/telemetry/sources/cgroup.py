# SPDX-License-Identifier: Apache-2.0
"""The control group of this process: io.stat of cgroup v2 (Documentation/admin-guide/cgroup-v2.rst)."""

from __future__ import annotations

from pathlib import Path

from sonde.telemetry.source import LocalSource, ReadingsByPart, SourceReader, UnavailableSourceError, open_kernel_files

_IO_STAT_KEYS = ("rbytes", "wbytes", "rios", "wios")


def parse_io_stat(io_stat_text: str) -> ReadingsByPart:
    """The counters of every device, by its major and minor number, in the order of the columns of `SOURCE`."""
    readings: ReadingsByPart = {}
    for line in io_stat_text.splitlines():
        device, *fields = line.split()
        pairs = dict(field.split("=", 1) for field in fields if "=" in field)
        if all(pairs.get(key, "").isdigit() for key in _IO_STAT_KEYS):
            readings[device] = tuple(float(pairs[key]) for key in _IO_STAT_KEYS)
    return readings


def _open_io_stat_reader(file_system_root: Path) -> SourceReader:
    try:
        membership = (file_system_root / "proc/self/cgroup").read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise UnavailableSourceError(f"/proc/self/cgroup: {error.strerror}; mount /proc.") from None
    group = next((line[3:] for line in membership.splitlines() if line.startswith("0::")), None)
    if group is None:
        raise UnavailableSourceError(
            "This process is in no group of cgroup v2; boot with systemd.unified_cgroup_hierarchy=1."
        )
    path = f"sys/fs/cgroup{group.rstrip('/')}/io.stat"
    return open_kernel_files(
        file_system_root,
        (path,),
        lambda texts: parse_io_stat(texts[path]),
        "the root group has none; elsewhere enable the io controller in cgroup.subtree_control.",
    )


SOURCE = LocalSource(
    "cgroup",
    "bytes and requests of the control group of this process, by device",
    "node",
    ("cgroup_read_bytes", "cgroup_written_bytes", "cgroup_reads", "cgroup_writes"),
    _open_io_stat_reader,
)
